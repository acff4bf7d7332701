//! Objects from files and standard input, as they are: without defaults, without a schema.
//! Deliberately not here: saying everything that is wrong with a manifest (`validate`).

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use serde_json::Value;

use crate::exit::{Exit, Failure};

/// The name of standard input.
pub(crate) const STDIN: &str = "-";

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
/// The file cannot be read.
pub(crate) fn all(path: &Path) -> Result<Vec<Value>, Failure> {
    let text = text(path)?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).map_err(|error| {
        let message = format!("{} is neither YAML nor JSON", shown(path));
        Failure::new(Exit::Usage, "unreadable-file", message, "mend the place that is named")
            .because(&error)
    })?;
    let mut objects = Vec::new();
    for document in documents {
        add(path, document, &mut objects)?;
    }
    Ok(objects)
}

fn add(path: &Path, document: Value, objects: &mut Vec<Value>) -> Result<(), Failure> {
    if document.is_null() {
        return Ok(());
    }
    let kind = document.get("kind").and_then(Value::as_str);
    let version = document.get("apiVersion").and_then(Value::as_str);
    let (Some(kind), Some(_)) = (kind, version) else {
        let message = format!("{} holds something without apiVersion and kind", shown(path));
        return Err(Failure::new(
            Exit::Usage,
            "not-an-object",
            message,
            "give a Kubernetes object, such as `kubectl get -o yaml` prints",
        ));
    };
    match document.get("items").and_then(Value::as_array) {
        Some(items) if kind.ends_with("List") => {
            for item in items.clone() {
                add(path, item, objects)?;
            }
        }
        _ => objects.push(document),
    }
    Ok(())
}

/// The text of a file or of standard input.
///
/// # Errors
/// It cannot be read.
pub(crate) fn text(path: &Path) -> Result<String, Failure> {
    let read = || -> io::Result<String> {
        if path.as_os_str() != STDIN {
            return fs::read_to_string(path);
        }
        let mut text = String::new();
        io::stdin().lock().read_to_string(&mut text)?;
        Ok(text)
    };
    read().map_err(|error| {
        let message = format!("{} cannot be read", shown(path));
        Failure::new(Exit::Usage, "unreadable-file", message, "is the path right?").because(&error)
    })
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
    fn what_is_no_object_is_refused() {
        for (text, code) in
            [("a: [", "unreadable-file"), ("a: 1", "not-an-object"), ("", "not-one-object")]
        {
            let (_folder, path) = file(text);
            assert_eq!(one(&path).unwrap_err().code, code, "{text}");
        }
    }
}
