//! An error with its causes, as text for logs, statuses and terminals, without what of it is a secret. A crate of its
//! own because libraries that must not know each other write errors. Deliberately not here: how a cause is
//! classified but for what the API server has words alone for, and hints.

use std::error::Error;

/// What the API server says where it cannot ask a webhook.
const WEBHOOK_FAILED: &str = "failed calling webhook";

/// Whether this says that the API server could not ask a webhook; it has no reason of its own for that.
#[must_use]
pub fn is_of_webhook(text: &str) -> bool {
    text.contains(WEBHOOK_FAILED)
}

/// What the API server says, for people: the path of a webhook's URL may be a secret, as some of them know the API server by
/// it alone.
#[must_use]
pub fn shown(text: &str) -> String {
    if is_of_webhook(text) { without_paths(text) } else { text.to_owned() }
}

fn without_paths(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, url)) = rest.split_once("://") {
        let end = url.find(|letter: char| letter == '"' || letter.is_whitespace());
        let (url, after) = url.split_at(end.unwrap_or(url.len()));
        let (host, path) = url.split_at(url.find('/').unwrap_or(url.len()));
        shown.extend([before, "://", host, if path.is_empty() { "" } else { "/..." }]);
        rest = after;
    }
    shown + rest
}

/// The error and its causes in one line: `failed to read a: permission denied`.
#[must_use]
pub fn error_chain(error: &dyn Error) -> String {
    error_causes(error).join(": ")
}

/// The text of the error and those of its causes, outermost first. Some libraries write the cause
/// into the text of the error as well; such a cause is left out.
#[must_use]
pub fn error_causes(error: &dyn Error) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for one in std::iter::successors(Some(error), |&error| error.source()) {
        let text = one.to_string();
        if !text.is_empty() && !texts.last().is_some_and(|before| before.ends_with(&text)) {
            texts.push(text);
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Link(&'static str, Option<Box<Link>>);

    impl fmt::Display for Link {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(self.0)
        }
    }

    impl Error for Link {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_ref().map(|cause| &**cause as &dyn Error)
        }
    }

    fn links(texts: &[&'static str]) -> Link {
        let mut texts = texts.iter().rev();
        let last = Link(texts.next().unwrap(), None);
        texts.fold(last, |cause, text| Link(text, Some(Box::new(cause))))
    }

    #[test]
    fn of_a_webhook_its_host_is_shown_and_not_its_path() {
        let said = |url: &str| {
            format!(
                "Internal error occurred: failed calling webhook \"a.b\": failed to call webhook: Post \"{url}\": EOF"
            )
        };
        assert_eq!(
            shown(&said("https://a.b:1/validate/0463f4?timeout=10s")),
            said("https://a.b:1/...")
        );
        assert_eq!(shown(&said("https://a.b:1")), said("https://a.b:1"));
        let other = "Get \"https://a.b:1/api\": EOF";
        assert_eq!(shown(other), other);
    }

    #[test]
    fn causes_follow_the_error() {
        assert_eq!(
            error_chain(&links(&["no lease", "timed out", "no route"])),
            "no lease: timed out: no route"
        );
        assert_eq!(error_causes(&links(&["alone"])), ["alone"]);
    }

    #[test]
    fn a_cause_that_the_error_repeats_is_left_out() {
        assert_eq!(
            error_chain(&links(&["no lease: timed out", "timed out"])),
            "no lease: timed out"
        );
        // A transparent error has its cause's text.
        assert_eq!(
            error_chain(&links(&["timed out", "timed out", "no route"])),
            "timed out: no route"
        );
        assert_eq!(error_chain(&links(&["no lease", "", "no route"])), "no lease: no route");
    }
}
