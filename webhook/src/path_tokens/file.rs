//! Path tokens in a file, which an administrator keeps.

use std::io;
use std::path::{Path, PathBuf};

use opensdn_runtime::error_chain;

use super::{PathToken, PathTokens, TokenError};
use crate::poll_file;

/// Why the tokens of a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FileError {
    #[error("read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("read line {line} of {path}")]
    Line { path: PathBuf, line: usize, source: TokenError },
    #[error("{path} has no path token")]
    Empty { path: PathBuf },
}

/// The tokens of the file, read again for as long as the process runs. Where it cannot be read later, the
/// last ones stay.
///
/// # Errors
/// It cannot be read at first.
pub async fn follow(path: PathBuf) -> Result<PathTokens, FileError> {
    let (current, others) = parse(&path, tokio::fs::read_to_string(&path).await)?;
    let tokens = PathTokens::new(current, others);
    let followed = tokens.clone();
    tokio::spawn(async move {
        let take = |text| {
            let (current, others) = parse(&path, text)?;
            followed.replace(current, others);
            Ok(())
        };
        let failed = |error: &FileError| {
            let error = error_chain(error);
            tracing::error!(error, "failed to read the path tokens; keeping the last ones");
        };
        poll_file::poll(&path, take, failed).await;
    });
    Ok(tokens)
}

fn parse(path: &Path, text: io::Result<String>) -> Result<(PathToken, Vec<PathToken>), FileError> {
    let text = text.map_err(|source| FileError::Read { path: path.to_owned(), source })?;
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    let tokens = lines.filter(|(_, line)| !line.is_empty()).map(|(line, text)| {
        let path = path.to_owned();
        PathToken::parse(text).map_err(|source| FileError::Line { path, line, source })
    });
    let mut tokens = tokens.collect::<Result<Vec<_>, _>>()?.into_iter();
    let first = tokens.next().ok_or_else(|| FileError::Empty { path: path.to_owned() })?;
    Ok((first, tokens.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_current_token_and_every_line_is_accepted() {
        let text = "current-token-0123456789\n\n  older-token-0123456789ab  \n";
        let (current, others) = parse(Path::new("f"), Ok(text.to_owned())).unwrap();
        assert_eq!(current.as_str(), "current-token-0123456789");
        assert_eq!(others.len(), 1);
    }

    #[test]
    fn an_error_names_the_line_and_never_its_text() {
        for (text, expected) in [
            ("current-token-0123456789\nsecret but bad\n", "read line 2 of f: a path token is"),
            ("\n\n", "f has no path token"),
        ] {
            let error = error_chain(&parse(Path::new("f"), Ok(text.to_owned())).unwrap_err());
            assert!(error.starts_with(expected) && !error.contains("bad"), "{error}");
        }
    }
}
