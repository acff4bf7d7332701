//! Folders with a kustomization. One that only lists files is read without any help; what changes
//! them is kustomize's own business, and kubectl, whose plugin this is, has it built in. Nothing is
//! fetched from elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use opensdn_manifests::read_limited_text;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The names that kustomize takes.
const FILES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// Fields that change nothing.
const PLAIN: [&str; 5] = ["apiVersion", "kind", "metadata", "resources", "sortOptions"];
const DEEPEST: usize = 32;

/// What a kustomization comes to.
#[derive(Debug)]
pub(crate) enum Built {
    /// These files as they are.
    Files(Vec<PathBuf>),
    /// A rendered stream.
    Rendered(Vec<u8>),
}

/// Why a folder was not built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KustomizeError {
    /// The file cannot be read.
    #[error("{} cannot be read: {}", .0.display(), .1)]
    Unreadable(PathBuf, #[source] io::Error),
    /// The file is no kustomization.
    #[error("{} is no kustomization: {}", .0.display(), .1)]
    Malformed(PathBuf, String),
    /// Something is outside of the folder.
    #[error("{:?} of {} is not on this machine, and nothing is fetched here", .1, .0.display())]
    Remote(PathBuf, String),
    /// Something is not there.
    #[error("{:?} of {} is not there", .1, .0.display())]
    Absent(PathBuf, String),
    /// A kustomization includes itself.
    #[error("{} includes itself", .0.display())]
    Cycle(PathBuf),
    /// kubectl is not there.
    #[error("{} changes its resources ({}), which needs kubectl, and kubectl cannot be run: {}", .0.display(), .1, .2)]
    NoKubectl(PathBuf, String, #[source] io::Error),
    /// kubectl refuses the folder.
    #[error("kubectl kustomize {} failed: {}", .0.display(), .1)]
    Refused(PathBuf, String),
}

impl KustomizeError {
    /// What to do.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Remote(..) => "build it with `kubectl kustomize DIR` and pipe it to `validate -`",
            Self::NoKubectl(..) => {
                "put kubectl on the PATH, or pipe the output of `kustomize build` to `validate -`"
            }
            Self::Refused(..) => "run that command by itself to see more",
            Self::Unreadable(..) | Self::Malformed(..) | Self::Absent(..) | Self::Cycle(..) => {
                "look at the list `resources`"
            }
        }
    }
}

#[derive(Debug, Deserialize)]
struct Kustomization {
    #[serde(default)]
    resources: Vec<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// Whether a file is a kustomization by its name.
pub(crate) fn is_kustomization(path: &Path) -> bool {
    path.file_name().is_some_and(|name| FILES.iter().any(|file| name == *file))
}

/// The kustomization of the folder, if it has one.
pub(crate) fn file_in(folder: &Path) -> Option<PathBuf> {
    FILES.iter().map(|name| folder.join(name)).find(|file| file.is_file())
}

/// Builds the folder.
pub(crate) fn build(folder: &Path) -> Result<Built, KustomizeError> {
    let mut walk = Walk::default();
    walk.folder(folder, 0)?;
    match walk.changing {
        None => Ok(Built::Files(walk.files)),
        Some((file, field)) => render(folder, file, field),
    }
}

#[derive(Debug, Default)]
struct Walk {
    files: Vec<PathBuf>,
    open: BTreeSet<PathBuf>,
    /// The first kustomization that changes something, and the field by which it does.
    changing: Option<(PathBuf, String)>,
}

/// The most of a kustomization, which is written by hand.
const MOST: u64 = 16 << 20;

impl Walk {
    fn folder(&mut self, folder: &Path, depth: usize) -> Result<(), KustomizeError> {
        let Some(file) = file_in(folder) else {
            let text = "it has no kustomization.yaml".to_owned();
            return Err(KustomizeError::Malformed(folder.to_owned(), text));
        };
        let canonical = fs::canonicalize(folder)
            .map_err(|error| KustomizeError::Unreadable(folder.to_owned(), error))?;
        if depth > DEEPEST || !self.open.insert(canonical.clone()) {
            return Err(KustomizeError::Cycle(file));
        }
        let text = read_limited_text(&file, MOST)
            .map_err(|error| KustomizeError::Unreadable(file.clone(), error))?;
        let kustomization: Kustomization = serde_saphyr::from_str(&text).map_err(|error| {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            KustomizeError::Malformed(file.clone(), line.to_owned())
        })?;
        let Kustomization { resources, others } = kustomization;
        let changing = others.keys().find(|field| !PLAIN.contains(&field.as_str()));
        if let Some(field) = changing.filter(|_| self.changing.is_none()) {
            self.changing = Some((file.clone(), field.clone()));
        }
        for list in ["components", "bases", "crds", "generators", "transformers"] {
            for one in others.get(list).and_then(Value::as_array).into_iter().flatten() {
                refuse_remote(&file, one.as_str().unwrap_or_default())?;
            }
        }
        for resource in resources {
            self.resource(&file, folder, &resource, depth)?;
        }
        self.open.remove(&canonical);
        Ok(())
    }

    fn resource(
        &mut self,
        file: &Path,
        folder: &Path,
        resource: &str,
        depth: usize,
    ) -> Result<(), KustomizeError> {
        let path = folder.join(resource);
        if path.is_dir() {
            return self.folder(&path, depth + 1);
        }
        if path.is_file() {
            self.files.push(path);
            return Ok(());
        }
        refuse_remote(file, resource)?;
        Err(KustomizeError::Absent(file.to_owned(), resource.to_owned()))
    }
}

fn refuse_remote(file: &Path, resource: &str) -> Result<(), KustomizeError> {
    let remote = resource.contains("://")
        || resource.contains("?ref=")
        || resource.starts_with("git@")
        || resource.starts_with("github.com/");
    if remote {
        return Err(KustomizeError::Remote(file.to_owned(), resource.to_owned()));
    }
    Ok(())
}

fn render(folder: &Path, file: PathBuf, field: String) -> Result<Built, KustomizeError> {
    let output = Command::new("kubectl")
        .arg("kustomize")
        .arg(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| KustomizeError::NoKubectl(file, field, error))?;
    if output.status.success() {
        return Ok(Built::Rendered(output.stdout));
    }
    let text = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(KustomizeError::Refused(folder.to_owned(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn a_list_of_files_is_read_without_help() {
        let root = folder(&[
            ("kustomization.yaml", "resources: [a.yaml, base]\n"),
            ("a.yaml", "{}"),
            ("base/kustomization.yml", "resources: [b.yaml]\n"),
            ("base/b.yaml", "{}"),
        ]);
        let Built::Files(files) = build(root.path()).unwrap() else { panic!("it is plain") };
        let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap()).collect();
        assert_eq!(names, ["a.yaml", "b.yaml"]);
    }

    #[test]
    fn what_is_elsewhere_missing_or_circular_is_reported() {
        let text = |resources: &str| {
            let root = folder(&[("kustomization.yaml", resources), ("a/x", "")]);
            build(root.path()).unwrap_err().to_string()
        };
        assert!(text("resources: ['https://example.com/a.yaml']\n").contains("nothing is fetched"));
        assert!(text("resources: [absent.yaml]\n").contains("is not there"));
        assert!(text("resources: [../]\n").contains("no kustomization"));
        assert!(text("resources: [.]\n").contains("includes itself"));
        assert!(text("resources: 7\n").contains("is no kustomization"));
    }
}
