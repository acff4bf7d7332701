//! An error with its causes, as text for logs, statuses and terminals. A crate of its own because
//! libraries that must not know each other write errors. Deliberately not here: how a cause is
//! classified, and hints.

use std::error::Error;

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
