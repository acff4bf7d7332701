//! Passwords in kube-manager's configuration file, which Python reads with interpolation: a `%` ends the pod
//! at its start, and blanks at the ends are lost.
//!
//! Nothing in this crate reads a Secret, so the caller has to ask this of the passwords of Keystone and of
//! RabbitMQ, and write what is [`InFile::Escaped`] into a key of a Secret of its own. It has to ask it of
//! RabbitMQ's user and vhost, too: for these only [`InFile::Plain`] will do.

use std::fmt;

/// How a password gets into the file.
#[derive(Clone, PartialEq, Eq)]
pub enum InFile {
    /// As it is.
    Plain,
    /// In this form, by `escaped_password` or `escaped_rabbitmq_password` of the inputs.
    Escaped(String),
    /// Not at all, for the reason given: it must be changed.
    Impossible(&'static str),
}

impl fmt::Debug for InFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Plain => "Plain",
            Self::Escaped(_) => "Escaped",
            Self::Impossible(_) => "Impossible",
        })
    }
}

/// How a password gets into the file.
#[must_use]
pub fn in_configuration(password: &str) -> InFile {
    if password.is_empty() {
        InFile::Impossible("it is empty, for which the image takes a default of its own")
    } else if password.chars().any(char::is_control) {
        InFile::Impossible("it has a line break or another control character")
    } else if password.trim() != password {
        InFile::Impossible("it begins or ends with a blank, which is lost")
    } else if password.contains('%') {
        InFile::Escaped(password.replace('%', "%%"))
    } else {
        InFile::Plain
    }
}

/// The same of Keystone's: upstream's client writes it into JSON as it is (tf-api-client api-lib/vnc_api/vnc_api.py,
/// `_v3_authn_body`), where these two end or change the text.
#[must_use]
pub fn for_keystone(password: &str) -> InFile {
    if password.contains(['"', '\\']) {
        return InFile::Impossible(
            "it has a quotation mark or a backslash, by which the request for a token is broken",
        );
    }
    in_configuration(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percent_sign_is_doubled_and_what_a_line_cannot_have_is_refused() {
        assert_eq!(in_configuration("s3cret$(x)\"'#;"), InFile::Plain);
        assert_eq!(in_configuration("50%a%%"), InFile::Escaped("50%%a%%%%".to_owned()));
        for wrong in ["", " a", "a ", "a\nb", "a\u{0}"] {
            assert!(matches!(in_configuration(wrong), InFile::Impossible(_)), "{wrong:?}");
        }
    }

    #[test]
    fn a_password_of_keystone_can_have_no_quotation_mark_and_no_backslash() {
        assert_eq!(for_keystone("s3cret$(x)'#;"), InFile::Plain);
        assert_eq!(for_keystone("a%"), in_configuration("a%"));
        for wrong in ["a\"b", "a\\b", "\\"] {
            assert!(matches!(for_keystone(wrong), InFile::Impossible(_)), "{wrong:?}");
            assert_eq!(in_configuration(wrong), InFile::Plain, "{wrong:?} of RabbitMQ");
        }
    }

    #[test]
    fn a_password_is_not_in_its_debug_output() {
        assert_eq!(format!("{:?}", in_configuration("hunter%2")), "Escaped");
    }
}
