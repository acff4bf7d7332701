//! Objects from files and standard input, as they are: without defaults, without a schema.
//! Deliberately not here: saying everything that is wrong with a manifest (`validate`).

use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use opensdn_manifests::{Document, Limited, Sources, open_named, read};
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::output::API_VERSION;

/// The name of standard input.
pub(crate) const STDIN: &str = "-";

/// The most of one file: more objects do not fit into memory, and what has more may have no end.
const MOST: u64 = 256 << 20;

/// The one object of the file.
///
/// # Errors
/// The file cannot be read, or does not hold exactly one object.
pub(crate) fn one(path: &Path) -> Result<Value, Failure> {
    let mut objects = all(path)?;
    let number = objects.len();
    match objects.pop() {
        Some(object) if number == 1 => Ok(object),
        _ => {
            let message = format!("{} holds {number} objects, and one is needed", shown(path));
            let hint = "to check many objects with all policies: kubectl opensdn validate";
            Err(Failure::new(Exit::Usage, "not-one-object", message, hint))
        }
    }
}

/// All objects of the file, those of lists included.
///
/// # Errors
/// The file cannot be read, or holds something else.
pub(crate) fn all(path: &Path) -> Result<Vec<Value>, Failure> {
    Ok(all_documents(path)?.into_iter().map(|document| document.value).collect())
}

/// All objects of the file, those of lists included, with what is around them.
///
/// # Errors
/// As of [`all`].
pub(crate) fn all_documents(path: &Path) -> Result<Vec<Document>, Failure> {
    only_objects(path, documents(path)?)
}

fn only_objects(path: &Path, documents: Vec<Document>) -> Result<Vec<Document>, Failure> {
    let object = |document: Document| {
        if document.kind().is_some() && document.api_version().is_some() {
            return Ok(document);
        }
        let message = format!("{} holds something without apiVersion and kind", shown(path));
        let hint = "give a Kubernetes object, such as `kubectl get -o yaml` prints";
        Err(Failure::new(Exit::Usage, "not-an-object", message, hint))
    };
    documents.into_iter().map(object).collect()
}

/// What is in a file.
pub(crate) enum Content {
    /// Objects.
    Objects(Vec<Document>),
    /// One mapping that is no object of a cluster.
    Mapping(Value),
}

/// All objects of the file, or the one mapping that it holds and that says neither kind nor API, or those of this program.
///
/// # Errors
/// As of [`all`].
pub(crate) fn objects_or_mapping(path: &Path) -> Result<Content, Failure> {
    let documents = documents(path)?;
    let is_ours = |document: &Document| match (document.api_version(), document.kind()) {
        (None, None) => true,
        (version, _) => version == Some(API_VERSION),
    };
    match <[Document; 1]>::try_from(documents) {
        Ok([document]) if is_ours(&document) => Ok(Content::Mapping(document.value)),
        Ok(document) => only_objects(path, document.into()).map(Content::Objects),
        Err(documents) => only_objects(path, documents).map(Content::Objects),
    }
}

/// The one mapping of the file, whatever it means.
///
/// # Errors
/// The file cannot be read, or holds not exactly one.
pub(crate) fn mapping(path: &Path) -> Result<Value, Failure> {
    let mut documents = documents(path)?;
    let number = documents.len();
    match documents.pop() {
        Some(document) if number == 1 => Ok(document.value),
        _ => {
            let message = format!("{} holds {number} documents, and one is needed", shown(path));
            Err(Failure::new(Exit::Usage, "not-one-document", message, "leave `---` out"))
        }
    }
}

fn documents(path: &Path) -> Result<Vec<Document>, Failure> {
    let stream = open(path).map_err(|error| unreadable(path, &error))?;
    let mut documents = Vec::new();
    for source in Sources::new(shown(path), stream) {
        let source = source.map_err(|error| unreadable(path, &error))?;
        let parsed = read(&source);
        refuse(path, parsed.errors(&source))?;
        documents.extend(parsed.documents);
    }
    Ok(documents)
}

fn refuse(path: &Path, causes: Vec<String>) -> Result<(), Failure> {
    if causes.is_empty() {
        return Ok(());
    }
    let message = format!("{} cannot be understood", shown(path));
    let mut failure = Failure::new(Exit::Usage, "unreadable-file", message, "fix these places");
    failure.causes = causes;
    Err(failure)
}

fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    if path.as_os_str() == STDIN {
        return Ok(Box::new(BufReader::new(Limited::new(io::stdin().lock(), MOST))));
    }
    Ok(Box::new(BufReader::new(Limited::new(open_named(path)?, MOST))))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("{} cannot be read", shown(path));
    Failure::new(Exit::Usage, "unreadable-file", message, "is the path right?").because(error)
}

/// The text of a file or of standard input.
///
/// # Errors
/// It cannot be read.
pub(crate) fn text(path: &Path) -> Result<String, Failure> {
    let read = || -> io::Result<String> {
        let mut text = String::new();
        open(path)?.read_to_string(&mut text)?;
        Ok(text)
    };
    read().map_err(|error| unreadable(path, &error))
}

fn shown(path: &Path) -> String {
    if path.as_os_str() == STDIN {
        return "standard input".to_owned();
    }
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{all, one};

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("objects.yaml");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn documents_and_lists_are_taken_apart() {
        let text = "apiVersion: v1\nkind: Node\n---\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod}\n- {apiVersion: v1, kind: Node}\n";
        let (_folder, path) = file(text);
        assert_eq!(all(&path).unwrap().len(), 3);
        assert_eq!(one(&path).unwrap_err().code, "not-one-object");
    }

    #[test]
    fn a_file_without_an_end_is_refused() {
        let failure = one("/dev/zero".as_ref()).unwrap_err();
        assert_eq!(failure.causes, ["it is larger than 256 MiB"]);
    }

    #[test]
    fn a_named_pipe_is_refused_instead_of_waiting_for_a_writer() {
        let (folder, _) = file("");
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let failure = one(&pipe).unwrap_err();
        assert_eq!(failure.causes, ["it is a named pipe: give a file, or - for standard input"]);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for (text, code) in
            [("a: [", "unreadable-file"), ("a: 1", "not-an-object"), ("", "not-one-object")]
        {
            let (_folder, path) = file(text);
            assert_eq!(one(&path).unwrap_err().code, code, "{text}");
        }
    }
}
