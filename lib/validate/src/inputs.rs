//! What was named on the command line, as a list of texts to read: files, folders, globs, standard
//! input. Nothing is parsed here; what kustomize makes of a folder is in `kustomize.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opensdn_manifests::{Limited, open_named};

use crate::error::Error;
use crate::kustomize::{self, Built};
use crate::report::{Location, NotChecked, Origin};

/// The name of standard input for people.
pub(crate) const STDIN: &str = "<stdin>";
/// More than this is not taken from standard input or from kustomize, which are kept in memory.
pub(crate) const MOST_IN_MEMORY: u64 = 1 << 30;
/// As a shell has it: `*` takes no hidden file.
const OPTIONS: glob::MatchOptions = glob::MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};
/// Folders in folders, beyond which something is wrong.
const DEEPEST: usize = 64;

/// One text to read, as often as needed.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// Its number in the order in which texts are read.
    pub(crate) number: usize,
    /// The name that people see.
    pub(crate) name: String,
    /// Where it comes from.
    pub(crate) origin: Origin,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    File(PathBuf),
    Memory(Arc<[u8]>),
}

/// Something that was named and cannot be read.
#[derive(Clone, Debug)]
pub(crate) struct Unreadable {
    pub(crate) place: Location,
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// All that is to be read.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    pub(crate) inputs: Vec<Input>,
    pub(crate) unreadable: Vec<Unreadable>,
    pub(crate) not_checked: Vec<NotChecked>,
    seen: BTreeSet<PathBuf>,
}

impl Input {
    /// The file, where it is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.content {
            Content::File(path) => Some(path),
            Content::Memory(_) => None,
        }
    }

    /// Opens the text; each time from its beginning.
    pub(crate) fn open(&self) -> io::Result<Box<dyn Read>> {
        Ok(match &self.content {
            Content::File(path) => opened(path)?,
            Content::Memory(bytes) => Box::new(Cursor::new(Arc::clone(bytes))),
        })
    }
}

/// A file has an end, and need not fit into memory; a device or a pipe may have none.
fn opened(path: &Path) -> io::Result<Box<dyn Read>> {
    let file = open_named(path)?;
    if file.metadata()?.is_file() {
        return Ok(Box::new(file));
    }
    Ok(Box::new(Limited::new(file, MOST_IN_MEMORY)))
}

/// Why a file cannot be read, with advice.
pub(crate) fn explain(name: &str, error: &io::Error) -> (String, String) {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => "give yourself the right to read it: chmod u+r",
        io::ErrorKind::NotFound => "look at the name; in a shell, * stands for many files",
        _ => "",
    };
    (format!("{name} cannot be read: {error}"), hint.to_owned())
}

/// Finds every input that the names match.
///
/// # Errors
/// A name matches nothing, or standard input is named twice.
pub(crate) fn collect(names: &[PathBuf]) -> Result<Inputs, Error> {
    let mut inputs = Inputs::default();
    let mut stdin = false;
    for name in names {
        if name.as_os_str() == "-" {
            if std::mem::replace(&mut stdin, true) {
                let hint = "name it once";
                return Err(Error::input("usage", "standard input (-) is named twice", hint));
            }
            inputs.add_stdin()?;
        } else {
            inputs.add_named(name)?;
        }
    }
    if inputs.inputs.is_empty() && inputs.unreadable.is_empty() {
        let names: Vec<String> = names.iter().map(|name| shown(name)).collect();
        let message = format!("there is no manifest in {}", names.join(", "));
        let hint = "manifests are files that end in .yaml, .yml or .json";
        return Err(Error::input("no-manifests", message, hint));
    }
    Ok(inputs)
}

impl Inputs {
    fn push(&mut self, name: String, origin: Origin, content: Content) {
        let number = self.next();
        self.inputs.push(Input { number, name, origin, content });
    }

    fn next(&self) -> usize {
        self.inputs.len() + self.unreadable.len()
    }

    fn refuse(&mut self, path: &Path, error: &io::Error) {
        let name = shown(path);
        let (message, hint) = explain(&name, error);
        let place = Location::of_file(Origin::File, name, self.next());
        self.unreadable.push(Unreadable { place, message, hint });
    }

    fn add_stdin(&mut self) -> Result<(), Error> {
        let mut bytes = Vec::new();
        let read = io::stdin().lock().take(MOST_IN_MEMORY + 1).read_to_end(&mut bytes);
        if let Err(error) = read {
            let (message, hint) = explain("standard input", &error);
            return Err(Error::input("unreadable-file", message, hint));
        }
        if bytes.len() as u64 > MOST_IN_MEMORY {
            let message = "standard input is larger than 1 GiB";
            let hint = "put it into files and name these: they need not fit into memory";
            return Err(Error::input("unreadable-file", message, hint));
        }
        // A pipe that brought nothing must not look like one whose objects are fine.
        if bytes.trim_ascii().is_empty() {
            let hint = "look at the command that was to write manifests";
            return Err(Error::input("no-manifests", "standard input is empty", hint));
        }
        self.push(STDIN.to_owned(), Origin::File, Content::Memory(bytes.into()));
        Ok(())
    }

    fn add_named(&mut self, name: &Path) -> Result<(), Error> {
        match fs::metadata(name) {
            Ok(metadata) if metadata.is_dir() => {
                if let Some(file) = kustomize::file_in(name) {
                    self.add_kustomization(name, &file);
                } else {
                    self.add_folder(name, 0);
                }
            }
            Ok(_) => self.add_file(name),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.add_glob(name, &error);
            }
            Err(error) => self.refuse(name, &error),
        }
        Ok(())
    }

    fn add_glob(&mut self, name: &Path, absent: &io::Error) -> Result<(), Error> {
        let pattern = name.to_str().filter(|text| text.contains(['*', '?', '[']));
        let Some(paths) = pattern.and_then(|pattern| glob::glob_with(pattern, OPTIONS).ok()) else {
            self.refuse(name, absent);
            return Ok(());
        };
        let mut any = false;
        for path in paths {
            any = true;
            match path {
                Ok(path) if path.is_dir() => self.add_folder(&path, 0),
                Ok(path) => self.add_file(&path),
                Err(error) => {
                    let path = error.path().to_owned();
                    self.refuse(&path, error.error());
                }
            }
        }
        if !any {
            let message = format!("no file matches {}", shown(name));
            let hint = "`**` stands for any folders: 'deploy/**/*.yaml'";
            return Err(Error::input("no-manifests", message, hint));
        }
        Ok(())
    }

    /// Each file once, even if it is named twice.
    fn add_file(&mut self, path: &Path) {
        let canonical = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if !self.seen.insert(canonical) {
            return;
        }
        // A file that cannot be opened is reported here; one that goes later, when it is read.
        match open_named(path) {
            Ok(_) => self.push(shown(path), Origin::File, Content::File(path.to_owned())),
            Err(error) => self.refuse(path, &error),
        }
    }

    fn add_folder(&mut self, folder: &Path, depth: usize) {
        let canonical = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        // A link may lead back up.
        if depth > DEEPEST || !self.seen.insert(canonical) {
            return;
        }
        let entries = fs::read_dir(folder)
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
        let mut paths: Vec<PathBuf> = match entries {
            Ok(paths) => paths,
            Err(error) => return self.refuse(folder, &error),
        };
        paths.sort();
        for path in paths {
            let hidden =
                path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if hidden {
                continue;
            }
            if path.is_dir() {
                self.add_folder(&path, depth + 1);
            } else if kustomize::is_kustomization(&path) {
                self.not_checked.push(NotChecked {
                    what: shown(&path),
                    why: "its folder's files are read as they are; to have it built, name its \
                          folder"
                        .to_owned(),
                });
            } else if is_manifest(&path) {
                self.add_file(&path);
            }
        }
    }

    fn add_kustomization(&mut self, folder: &Path, file: &Path) {
        match kustomize::build(folder) {
            Ok(Built::Files(files)) => {
                for file in files {
                    self.add_file(&file);
                }
            }
            Ok(Built::Rendered(bytes)) => {
                let name = format!("kustomize output of {}", shown(folder));
                self.push(name, Origin::Kustomize, Content::Memory(bytes.into()));
            }
            Err(error) => {
                let place = Location::of_file(Origin::File, shown(file), self.next());
                let (message, hint) = (error.to_string(), error.hint().to_owned());
                self.unreadable.push(Unreadable { place, message, hint });
            }
        }
    }
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| matches!(extension, "yaml" | "yml" | "json"))
}

/// A path as people know it: below the current folder without that folder.
pub(crate) fn shown(path: &Path) -> String {
    let current = std::env::current_dir().ok();
    let below = current.as_deref().and_then(|current| path.strip_prefix(current).ok());
    let path = below.filter(|path| !path.as_os_str().is_empty()).unwrap_or(path);
    let path = path.strip_prefix("./").unwrap_or(path);
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Category;

    fn names(inputs: &Inputs, root: &Path) -> Vec<String> {
        let root = format!("{}/", root.display());
        inputs.inputs.iter().map(|input| input.name.replace(&root, "")).collect()
    }

    #[test]
    fn folders_are_read_in_order_and_links_back_up_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "a: b\n").unwrap();
        };
        for name in ["b.yaml", "a/c.yml", "a/d.json", "e.txt", ".git/f.yaml"] {
            make(name);
        }
        std::os::unix::fs::symlink(root.path(), root.path().join("a/loop")).unwrap();
        let found = collect(&[root.path().to_owned()]).unwrap();
        assert_eq!(names(&found, root.path()), ["a/c.yml", "a/d.json", "b.yaml"]);
        let again = collect(&[root.path().join("b.yaml"), root.path().join("**/*.yaml")]).unwrap();
        assert_eq!(names(&again, root.path()), ["b.yaml"], "a file named twice is read once");
    }

    #[test]
    fn a_name_without_manifests_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let none = collect(&[root.path().to_owned()]).unwrap_err();
        assert_eq!((none.category, none.code), (Category::Input, "no-manifests"));
        let none = collect(&[root.path().join("*.yaml")]).unwrap_err();
        assert_eq!(none.code, "no-manifests");
        let absent = collect(&[root.path().join("absent.yaml")]).unwrap();
        assert!(absent.unreadable[0].message.contains("cannot be read"));
    }
}
