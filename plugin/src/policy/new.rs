//! Writes the project of a new policy. What its files say is in `sdk/templates`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use opensdn_policy_templates::{Kind, Project, Sdk};

use crate::exit::{Exit, Failure};

/// The kinds that an argument names: `apps/v1/Deployment`, or an OpenSDN kind alone.
///
/// # Errors
/// It names none.
pub(crate) fn kind(word: &str) -> Result<Kind, Failure> {
    let own = opensdn_crds::all();
    let mut own = own.iter().map(|definition| &definition.spec);
    if let Some(spec) = own.find(|spec| spec.names.kind == word) {
        let version = spec.versions.first().map(|version| version.name.clone());
        let version = version.unwrap_or_else(|| "v1".to_owned());
        return Ok(Kind { group: spec.group.clone(), version, kind: word.to_owned() });
    }
    word.parse().map_err(|error| {
        let message = format!("{word} is not a kind that a policy can be about");
        let hint = "write group/version/Kind, such as apps/v1/Deployment or v1/ConfigMap; \
                    an OpenSDN kind alone: Vrouter";
        Failure::new(Exit::Usage, "bad-kind", message, hint).because(&error)
    })
}

/// Where the SDK comes from: a checkout of the product, a release, or by default this program.
///
/// # Errors
/// The argument is neither.
pub(crate) fn sdk(word: Option<&str>) -> Result<Sdk, Failure> {
    let Some(word) = word else { return Ok(Sdk::Embedded) };
    let checkout = Path::new(word);
    if checkout.join("sdk/guest/Cargo.toml").is_file() {
        let folder = fs::canonicalize(checkout).map_err(|error| {
            let message = format!("{word} cannot be read");
            Failure::new(Exit::Usage, "unreadable-file", message, "").because(&error)
        })?;
        return Ok(Sdk::Checkout(folder));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-+".contains(c);
    if word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(plain) {
        return Ok(Sdk::Release(word.to_owned()));
    }
    let message = format!("{word} is neither a version nor a checkout with sdk/guest in it");
    let hint = "leave --sdk out: the SDK's source is then written into the project";
    Err(Failure::new(Exit::Usage, "bad-sdk", message, hint))
}

/// Writes the project's files into a folder that is not there yet, or is empty.
///
/// # Errors
/// Something is there already, or cannot be written; what was written is then taken away again.
pub(crate) fn write(project: &Project, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let made = make_empty(folder)?;
    let files = project.files();
    let written = files.iter().try_for_each(|(path, text)| write_new(&folder.join(path), text));
    if let Err(error) = written {
        if made == Made::New {
            // It held only what was written here; if it stays, that does no harm.
            let _ = fs::remove_dir_all(folder);
        }
        return Err(unwritable(folder, &error));
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

#[derive(PartialEq)]
enum Made {
    New,
    WasEmpty,
}

fn make_empty(folder: &Path) -> Result<Made, Failure> {
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).map_err(|error| unwritable(folder, &error))?;
    }
    match fs::create_dir(folder) {
        Ok(()) => Ok(Made::New),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let mut entries = fs::read_dir(folder).map_err(|error| exists(folder, &error))?;
            match entries.next() {
                None => Ok(Made::WasEmpty),
                Some(_) => Err(exists(folder, &error)),
            }
        }
        Err(error) => Err(unwritable(folder, &error)),
    }
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}

fn exists(folder: &Path, error: &io::Error) -> Failure {
    let message = format!("{} is there already; nothing is overwritten", folder.display());
    let hint = "take another name, or another folder with --dir";
    let failure = Failure::new(Exit::Refused, "exists", message, hint);
    if error.kind() == io::ErrorKind::AlreadyExists { failure } else { failure.because(error) }
}

fn unwritable(folder: &Path, error: &io::Error) -> Failure {
    let message = format!("{} cannot be written", folder.display());
    let hint = "choose a folder that you may write to with --dir";
    Failure::new(Exit::Usage, "unwritable-folder", message, hint).because(error)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use opensdn_policy_templates::{Language, Project, Sdk};

    use super::{kind, sdk, write};

    fn project() -> Project {
        let kinds = vec![kind("v1/ConfigMap").unwrap()];
        Project { name: "no-owner".into(), language: Language::Rust, kinds, sdk: Sdk::Embedded }
    }

    #[test]
    fn a_kind_of_opensdn_needs_no_group() {
        assert_eq!(kind("Vrouter").unwrap().to_string(), "tf.tungsten.io/v1alpha1/Vrouter");
        assert_eq!(kind("apps/v1/Deployment").unwrap().to_string(), "apps/v1/Deployment");
        assert_eq!(kind("Deployment").unwrap_err().code, "bad-kind");
    }

    #[test]
    fn the_sdk_is_embedded_or_a_checkout_or_a_release() {
        assert_eq!(sdk(None), Ok(Sdk::Embedded));
        assert_eq!(sdk(Some("0.1.0")), Ok(Sdk::Release("0.1.0".into())));
        let checkout = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        assert!(matches!(sdk(Some(checkout)), Ok(Sdk::Checkout(folder)) if folder.is_absolute()));
        for word in ["", "/nowhere", "1.0\" # x", "latest"] {
            assert_eq!(sdk(Some(word)).unwrap_err().code, "bad-sdk", "{word}");
        }
    }

    #[test]
    fn nothing_is_overwritten() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("a/b");
        assert!(write(&project(), &folder).unwrap().contains(&"src/lib.rs".into()));
        fs::write(folder.join("src/lib.rs"), "mine").unwrap();
        assert_eq!(write(&project(), &folder).unwrap_err().code, "exists");
        assert_eq!(fs::read_to_string(folder.join("src/lib.rs")).unwrap(), "mine");
        let file = scratch.path().join("file");
        fs::write(&file, "mine").unwrap();
        assert_eq!(write(&project(), &file).unwrap_err().code, "exists");
        assert_eq!(
            write(&project(), Path::new("/proc/new")).unwrap_err().code,
            "unwritable-folder"
        );
    }

    #[test]
    fn an_empty_folder_is_used() {
        let scratch = tempfile::tempdir().unwrap();
        assert!(write(&project(), scratch.path()).is_ok());
    }
}
