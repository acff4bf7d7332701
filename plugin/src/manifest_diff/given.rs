//! What `-f` of `diff` names: manifests, or values of an installation. What is in the files says which: an object of
//! Kubernetes has apiVersion and kind, values have neither, or those of Values.

use std::path::PathBuf;

use opensdn_manifests::Document;
use opensdn_validate::{Text, documents};
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::output::API_VERSION;
use crate::policy::objects::STDIN;

/// What has been given.
#[derive(Debug)]
pub(crate) enum Given {
    /// Objects, in their order.
    Manifests(Vec<Value>),
    /// Values, with what has been read of standard input, which cannot be read again.
    Values(Option<(PathBuf, Value)>),
}

/// Reads the files.
///
/// # Errors
/// Something cannot be read, or is both.
pub(crate) fn given(files: &[PathBuf]) -> Result<Given, Failure> {
    if files.is_empty() {
        return Ok(Given::Values(None));
    }
    let texts = documents(files)?;
    let of = |is_object: bool| {
        texts.iter().find(|text| text.documents.iter().any(|one| is_manifest(one) == is_object))
    };
    match (of(true), of(false)) {
        (Some(manifest), Some(values)) => Err(mixed(manifest, values)),
        (Some(_), None) => {
            let documents = texts.into_iter().flat_map(|text| text.documents);
            Ok(Given::Manifests(documents.map(|document| document.value).collect()))
        }
        _ => {
            let stdin = files.iter().any(|file| file.as_os_str() == STDIN);
            let read = texts.into_iter().find(|text| stdin && text.name == "<stdin>");
            // More than one document, or none: that is said where values are read.
            let value = read
                .and_then(|mut text| text.documents.pop().filter(|_| text.documents.is_empty()));
            Ok(Given::Values(value.map(|document| (PathBuf::from(STDIN), document.value))))
        }
    }
}

fn is_manifest(document: &Document) -> bool {
    document.kind().is_some()
        && document.api_version().is_some_and(|version| version != API_VERSION)
}

fn mixed(manifest: &Text, values: &Text) -> Failure {
    let message = match manifest.name == values.name {
        true => format!("{} has manifests, and something without apiVersion and kind", values.name),
        false => format!(
            "{} has manifests, and {} has none: values, by what is in it",
            manifest.name, values.name
        ),
    };
    let hint = "give either: manifests have apiVersion and kind each, values of the installation have neither";
    Failure::new(Exit::Usage, "manifests-and-values", message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Result<Given, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let files: Vec<PathBuf> = texts
            .iter()
            .enumerate()
            .map(|(at, text)| {
                let path = folder.path().join(format!("{at}.yaml"));
                std::fs::write(&path, text).unwrap();
                path
            })
            .collect();
        given(&files)
    }

    const MANIFEST: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

    #[test]
    fn what_is_in_the_files_says_what_they_are() {
        let values = "apiVersion: cli.opensdn.io/v1\nkind: Values\nprofile: ha\n";
        for texts in
            [&["profile: ha\n"][..], &[values], &[values, "webhook: {replicas: 5}\n"], &[""]]
        {
            assert!(matches!(of(texts), Ok(Given::Values(None))), "{texts:?}");
        }
        let two = format!("{MANIFEST}---\n{MANIFEST}");
        let Ok(Given::Manifests(objects)) = of(&[&two, MANIFEST]) else { panic!("no manifests") };
        assert_eq!(objects.len(), 3);
        assert!(matches!(given(&[]), Ok(Given::Values(None))));
    }

    #[test]
    fn a_mix_is_refused_and_both_files_are_named() {
        let failure = of(&["profile: ha\n", MANIFEST]).unwrap_err();
        assert_eq!(failure.code, "manifests-and-values");
        assert!(failure.message.contains("1.yaml has manifests, and"), "{failure:?}");
        let failure = of(&[&format!("{MANIFEST}---\nprofile: ha\n")]).unwrap_err();
        assert!(failure.message.contains("something without apiVersion and kind"), "{failure:?}");
    }
}
