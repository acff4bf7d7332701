//! Comments of a document, and the suppressions among them: `# opensdn-ignore: OSDN2104 reason`.
//! Whether a suppression is granted is the caller's business.

use crate::source::Span;

/// A comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// From the `#` to the end of the line.
    pub span: Span,
    /// What is behind the `#`, without blanks around it.
    pub text: String,
    /// Whether something other than blanks is before it on its line.
    pub trailing: bool,
}

/// A comment that asks for findings to be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// The codes, as written, separated by commas there.
    pub codes: Vec<String>,
    /// Why; empty where it is not said.
    pub reason: String,
    /// The comment.
    pub span: Span,
    /// Whether it is about its own line, and not about the next line that is no comment.
    pub trailing: bool,
}

const MARK: &str = "opensdn-ignore:";

impl Comment {
    /// The suppression that the comment is, if it is one.
    #[must_use]
    pub fn suppression(&self) -> Option<Suppression> {
        let rest = self.text.strip_prefix(MARK)?.trim();
        let mut codes = Vec::new();
        let mut reason = rest;
        // Codes may be separated by commas with and without blanks; the first word without a
        // comma before it begins the reason.
        loop {
            let (word, after) = reason.split_once(char::is_whitespace).unwrap_or((reason, ""));
            codes.extend(word.split(',').filter(|code| !code.is_empty()).map(str::to_owned));
            reason = after.trim_start();
            if let Some(more) = reason.strip_prefix(',') {
                reason = more.trim_start();
            } else if !word.ends_with(',') || reason.is_empty() {
                break;
            }
        }
        let (reason, span) = (reason.to_owned(), self.span);
        Some(Suppression { codes, reason, span, trailing: self.trailing })
    }
}

#[cfg(test)]
mod tests {
    use super::Comment;
    use crate::source::Span;

    fn read(text: &str) -> Option<(Vec<String>, String)> {
        let comment = Comment { span: Span::default(), text: text.to_owned(), trailing: false };
        comment.suppression().map(|found| (found.codes, found.reason))
    }

    #[test]
    fn suppressions_name_codes_and_a_reason() {
        let one = || vec!["OSDN2104".to_owned()];
        let two = || vec!["OSDN2104".to_owned(), "OSDN1".to_owned()];
        assert_eq!(read("opensdn-ignore: OSDN2104 a lab"), Some((one(), "a lab".into())));
        assert_eq!(read("opensdn-ignore: OSDN2104,OSDN1 both"), Some((two(), "both".into())));
        assert_eq!(read("opensdn-ignore: OSDN2104, OSDN1 both"), Some((two(), "both".into())));
        assert_eq!(read("opensdn-ignore: OSDN2104"), Some((one(), String::new())));
        assert_eq!(read("opensdn-ignore:"), Some((Vec::new(), String::new())));
        assert_eq!(read("nothing of that"), None);
    }
}
