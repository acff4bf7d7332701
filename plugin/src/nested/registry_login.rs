//! The login to a registry from the command line, but for the password, which comes from a file, standard input or the
//! environment: everyone on a machine can read the arguments of a program.

use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use opensdn_manifests::{Limited, read_limited};
use opensdn_nested_workloads::registry::Login;

use crate::exit::{Exit, Failure};
use crate::policy::objects::STDIN;

/// The variable with the password.
const VARIABLE: &str = "OPENSDN_REGISTRY_PASSWORD";
/// The most of a password.
const MOST: u64 = 64 << 10;

/// A login to a registry.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Login")]
pub(crate) struct LoginFlags {
    /// The registry: a host with or without a port.
    #[arg(long, value_name = "HOST", required_unless_present = "check")]
    registry: Option<String>,
    /// The user.
    #[arg(long, value_name = "NAME", required_unless_present = "check")]
    username: Option<String>,
    /// A file with the password, - for standard input [default: $OPENSDN_REGISTRY_PASSWORD].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    password_file: Option<PathBuf>,
    /// The address that some registries want.
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,
}

impl LoginFlags {
    /// The login.
    ///
    /// # Errors
    /// There is no password, or the file cannot be read.
    pub(crate) fn login(&self) -> Result<Login, Failure> {
        Ok(Login {
            server: self.registry.clone().unwrap_or_default(),
            username: self.username.clone().unwrap_or_default(),
            password: self.password()?,
            email: self.email.clone(),
        })
    }

    fn password(&self) -> Result<String, Failure> {
        let hint = "give it by --password-file FILE (- for standard input), or in the variable \
                    OPENSDN_REGISTRY_PASSWORD";
        let text = match &self.password_file {
            Some(path) => read(path)?,
            None => std::env::var(VARIABLE)
                .map_err(|_| Failure::usage("there is no password of the registry", hint))?,
        };
        let password = without_line_end(&text);
        if password.is_empty() {
            return Err(Failure::usage("the password of the registry is empty", hint));
        }
        Ok(password.to_owned())
    }
}

/// An editor ends a file with a line break, which is not of the password.
fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

fn read(path: &Path) -> Result<String, Failure> {
    let unreadable = |error: &dyn std::error::Error| {
        let message = format!("the password cannot be read from {}", path.display());
        Failure::new(Exit::Usage, "unreadable-file", message, "is the path right?").because(error)
    };
    let bytes = match path.as_os_str() == STDIN {
        true if io::stdin().is_terminal() => {
            let message = "standard input is a terminal, which would show the password";
            return Err(Failure::usage(message, "pipe it, or name a file by --password-file"));
        }
        true => {
            let mut bytes = Vec::new();
            Limited::new(io::stdin().lock(), MOST).read_to_end(&mut bytes).map(|_| bytes)
        }
        false => read_limited(path, MOST),
    };
    let bytes = bytes.map_err(|error| unreadable(&error))?;
    // The text of an error of UTF-8 has nothing of the bytes.
    String::from_utf8(bytes).map_err(|error| unreadable(&error.utf8_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(file: &Path) -> LoginFlags {
        LoginFlags {
            registry: Some("hub.example.com".to_owned()),
            username: Some("alice".to_owned()),
            password_file: Some(file.to_owned()),
            email: None,
        }
    }

    #[test]
    fn a_password_is_what_is_in_the_file_but_for_the_line_break_at_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        for (written, password) in [
            ("hunter2\n", "hunter2"),
            ("hunter2\r\n", "hunter2"),
            (" a b ", " a b "),
            ("a\n\n", "a\n"),
        ] {
            std::fs::write(&file, written).unwrap();
            assert_eq!(flags(&file).login().unwrap().password, password);
        }
    }

    #[test]
    fn a_password_that_cannot_be_read_is_not_in_the_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        for wrong in [b"\n".to_vec(), b"hunter2\xff".to_vec()] {
            std::fs::write(&file, wrong).unwrap();
            let failure = flags(&file).login().unwrap_err();
            assert!(!format!("{failure:?}").contains("hunter2"), "{failure:?}");
        }
        let endless = flags(Path::new("/dev/zero")).login().unwrap_err();
        assert_eq!(endless.causes, ["it is larger than 65536 bytes"]);
    }
}
