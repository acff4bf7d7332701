//! The documents of what is named on a command line, as they are: for commands that do something else with manifests than
//! to judge them, and read the same ones. All are in memory at once.

use std::io::BufReader;
use std::path::PathBuf;

use opensdn_manifests::{Document, Sources, read};

use crate::error::Error;
use crate::inputs::{self, Input, Unreadable};

/// A file, standard input or what kustomize writes, and what is in it.
#[derive(Debug)]
pub struct Text {
    /// What people call it; standard input is `<stdin>`.
    pub name: String,
    /// Its documents, those of lists one by one.
    pub documents: Vec<Document>,
}

/// Every document of files, folders, globs and standard input, in their order.
///
/// # Errors
/// Something named cannot be read, or is no YAML or JSON.
pub fn documents(names: &[PathBuf]) -> Result<Vec<Text>, Error> {
    let found = inputs::collect(names)?;
    if let Some(Unreadable { message, hint, .. }) = found.unreadable.into_iter().next() {
        return Err(Error::input("unreadable-file", message, hint));
    }
    found.inputs.iter().map(of_input).collect()
}

fn of_input(input: &Input) -> Result<Text, Error> {
    let unreadable = |error: &std::io::Error| {
        let (message, hint) = inputs::explain(&input.name, error);
        Error::input("unreadable-file", message, hint)
    };
    let stream = input.open().map_err(|error| unreadable(&error))?;
    let mut text = Text { name: input.name.clone(), documents: Vec::new() };
    for source in Sources::new(input.name.clone(), BufReader::new(stream)) {
        let source = source.map_err(|error| unreadable(&error))?;
        let parsed = read(&source);
        let causes = parsed.errors(&source);
        if !causes.is_empty() {
            let message = format!("{} cannot be understood", input.name);
            let error = Error::input("unreadable-file", message, "correct these places");
            return Err(Error { causes, ..error });
        }
        text.documents.extend(parsed.documents);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_of_a_folder_come_in_the_order_of_its_files_and_what_is_broken_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("b.yaml", "kind: B\n---\nkind: C\n");
        write("a.json", r#"{"kind": "A"}"#);
        write("c.txt", "no manifest");
        let names = [folder.path().to_owned()];
        let texts = documents(&names).unwrap();
        let kinds: Vec<_> =
            texts.iter().flat_map(|text| &text.documents).map(Document::kind).collect();
        assert_eq!(kinds, [Some("A"), Some("B"), Some("C")]);
        write("d.yaml", "a: 1\na: 2\n");
        let error = documents(&names).unwrap_err();
        assert!(error.message.contains("d.yaml cannot be understood"), "{error:?}");
        assert!(error.causes.iter().any(|cause| cause.starts_with("2:1: ")), "{error:?}");
    }
}
