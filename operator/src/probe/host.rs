//! The files of the node, below a folder. A file that is not there is told from one that cannot be seen.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// So many links a path may have.
const LINKS: usize = 16;

/// The files of a node.
#[derive(Clone, Debug)]
pub struct Host {
    root: PathBuf,
}

impl Host {
    /// Those below this folder.
    #[must_use]
    pub fn below(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Where a path of the node is for us. A link to an absolute path is one below the folder.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.below_root(&self.followed(path))
    }

    /// Where the links of a path that lead to absolute paths lead on the node; the path itself where it has none.
    pub(super) fn followed(&self, path: &str) -> PathBuf {
        let mut path = PathBuf::from(path);
        for _ in 0..LINKS {
            match self.first_absolute_link(&path) {
                Some(other) => path = other,
                None => break,
            }
        }
        path
    }

    fn below_root(&self, path: &Path) -> PathBuf {
        let path = path.strip_prefix("/").unwrap_or(path);
        // On the systems of today it is a link, and only what it leads to is given to us.
        if path.starts_with("lib") && !self.root.join("lib").exists() {
            return self.root.join("usr").join(path);
        }
        self.root.join(path)
    }

    /// The same path by what its first link to an absolute path leads to.
    fn first_absolute_link(&self, path: &Path) -> Option<PathBuf> {
        let mut until = PathBuf::from("/");
        let mut parts = path.components().filter(|part| matches!(part, Component::Normal(_)));
        while let Some(part) = parts.next() {
            until.push(part);
            let link = fs::read_link(self.below_root(&until)).ok();
            if let Some(target) = link.filter(|target| target.is_absolute()) {
                return Some(parts.fold(target, |path, part| path.join(part)));
            }
        }
        None
    }

    /// The first folder of the path, which has to be given to us.
    fn is_given(&self, path: &str) -> bool {
        let first = Path::new(path).components().find(|part| matches!(part, Component::Normal(_)));
        first.is_none_or(|first| self.below_root(first.as_ref()).is_dir())
    }

    fn read<T>(
        &self,
        path: &str,
        read: impl FnOnce(&Path) -> std::io::Result<T>,
    ) -> Result<Option<T>, String> {
        match read(&self.path(path)) {
            Ok(value) => Ok(Some(value)),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                if self.is_given(path) {
                    return Ok(None);
                }
                Err(format!("{path} of the node is not among what this pod is given"))
            }
            Err(error) => Err(format!("failed to read {path}: {error}")),
        }
    }

    /// The text of a file; nothing where there is none.
    pub(super) fn text(&self, path: &str) -> Result<Option<String>, String> {
        self.bytes(path)
            .map(|bytes| bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The text of a file that every node has.
    pub(super) fn needed(&self, path: &str) -> Result<String, String> {
        self.text(path)?.ok_or_else(|| format!("the node has no {path}"))
    }

    /// The content of a file; nothing where there is none.
    pub(super) fn bytes(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        self.read(path, |path| fs::read(path))
    }

    /// The names in a folder, sorted; nothing where there is none.
    pub(super) fn names(&self, path: &str) -> Result<Option<Vec<String>>, String> {
        self.read(path, |path| {
            let mut names = Vec::new();
            for entry in fs::read_dir(path)? {
                names.push(entry?.file_name().to_string_lossy().into_owned());
            }
            names.sort_unstable();
            Ok(names)
        })
    }

    /// What a path is; nothing where nothing is there.
    pub(super) fn metadata(&self, path: &str) -> Result<Option<fs::Metadata>, String> {
        self.read(path, |path| fs::metadata(path))
    }

    /// The last name of what a link leads to.
    pub(super) fn link_name(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.below_root(Path::new(path))).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// The last name of what a link leads to; nothing where there is no link.
    pub(super) fn link(&self, path: &str) -> Result<Option<String>, String> {
        let target = self.read(path, |path| fs::read_link(path))?;
        Ok(target.and_then(|target| Some(target.file_name()?.to_string_lossy().into_owned())))
    }

    /// The last name of what a path leads to by all its links.
    pub(super) fn real_name(&self, path: &str) -> Result<String, String> {
        let real = self.read(path, |path| fs::canonicalize(path))?;
        let name = real.as_deref().and_then(Path::file_name);
        name.map(|name| name.to_string_lossy().into_owned())
            .ok_or_else(|| format!("the node has no {path}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::node;
    use super::*;

    #[test]
    fn what_is_not_there_is_told_from_what_is_not_given() {
        let (_folder, host) = node(&[("proc/swaps", "x")]);
        assert_eq!(host.text("/proc/swaps"), Ok(Some("x".to_owned())));
        assert_eq!(host.text("/proc/other"), Ok(None));
        let why = host.text("/sys/other").unwrap_err();
        assert!(why.contains("not among what this pod is given"), "{why}");
    }

    #[test]
    fn an_absolute_link_leads_below_the_folder() {
        let (folder, host) = node(&[("usr/src/headers/Makefile", "all:")]);
        fs::create_dir_all(folder.path().join("lib/modules/5.1")).unwrap();
        std::os::unix::fs::symlink("/usr/src/headers", folder.path().join("lib/modules/5.1/build"))
            .unwrap();
        let read = host.text("/lib/modules/5.1/build/Makefile");
        assert_eq!(read, Ok(Some("all:".to_owned())));
    }
}
