//! A bundle that is being written: each file goes into the archive as soon as it is clean, so that no more than a few are
//! held at a time, however many there are.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;

use super::archive::Archive;
use super::collect::{Collected, Found};
use super::redactor::Redactor;
use super::report::{Failed, SupportBundle};
use crate::part_file::{self, PartFile, PartFileError};

const START: &str = "opensdn-support-";
const END: &str = ".tar.gz";

/// What is written, and what could not be had.
pub(crate) struct Bundle {
    now: Timestamp,
    path: PathBuf,
    file: PartFile,
    archive: Archive<BufWriter<File>>,
    redactor: Arc<Redactor>,
    taken: BTreeSet<String>,
    failed: Vec<Failed>,
    absent: Vec<Failed>,
    bytes: usize,
}

impl Bundle {
    /// Begins one at this path; without one in this folder, named by the time, where what killed runs have left is removed.
    ///
    /// # Errors
    /// The place is taken, or cannot be written to.
    pub(crate) fn begin(
        out: Option<&Path>,
        now: Timestamp,
        redactor: Arc<Redactor>,
    ) -> Result<Self, PartFileError> {
        let name = format!("{START}{}", now.strftime("%Y%m%d-%H%M%S"));
        let path = out.map_or_else(|| PathBuf::from(format!("{name}{END}")), Path::to_owned);
        if out.is_none() {
            part_file::remove_left(Path::new("."), START, END);
        }
        let file = PartFile::begin(&path)?;
        let of_archive = file.file().try_clone().map_err(|source| file.unwritable(source))?;
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let archive = Archive::new(BufWriter::new(of_archive), &name, seconds);
        let (taken, failed, absent) = (BTreeSet::new(), Vec::new(), Vec::new());
        Ok(Self { now, path, file, archive, redactor, taken, failed, absent, bytes: 0 })
    }

    /// Writes what came of asking for a file.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn put(&mut self, (name, found): Collected) -> Result<(), PartFileError> {
        let path = unlike(self.redactor.name(&name), &mut self.taken);
        let because = |path, why: &str| Failed { path, why: self.redactor.text(why) };
        match found {
            Found::Content(content) => self.add(&path, &content)?,
            Found::Part(content, why) => {
                self.failed.push(because(path.clone(), &why));
                self.add(&path, &content)?;
            }
            Found::Nothing => {}
            Found::Absent(why) => self.absent.push(because(path, &why)),
            Found::Failed(why) => self.failed.push(because(path, &why)),
        }
        Ok(())
    }

    fn add(&mut self, path: &str, content: &[u8]) -> Result<(), PartFileError> {
        self.bytes += content.len();
        self.archive.add(path, content).map_err(|source| self.file.unwritable(source))
    }

    /// How much is in it, before it is compressed.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Ends it, and puts it into its place.
    ///
    /// # Errors
    /// The disk is full, or the place was taken meanwhile.
    pub(crate) fn finish(self) -> Result<SupportBundle, PartFileError> {
        let Self { now, path, file, archive, failed, absent, .. } = self;
        let files = archive.finish(&now.to_string(), &failed, &absent);
        let files = files.map_err(|source| file.unwritable(source))?;
        file.finish()?;
        let archive = Some(path.display().to_string());
        Ok(SupportBundle { archive, files, failed, absent, planned: vec![] })
    }
}

/// Names that were different before something was taken out of them stay so: one file would be written over the other.
fn unlike(path: String, taken: &mut BTreeSet<String>) -> String {
    let mut names = (1..).map(|count| match count {
        1 => path.clone(),
        _ => format!("{path}.{count}"),
    });
    let name = names.find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(name.clone());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_in_it_and_said_and_names_stay_different() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("a.tar.gz");
        let redactor = Arc::new(Redactor::default());
        let mut bundle = Bundle::begin(Some(&out), Timestamp::UNIX_EPOCH, redactor).unwrap();
        let part = Found::Part(b"{}".to_vec(), "password=hunter2".to_owned());
        bundle.put(("a".to_owned(), part)).unwrap();
        bundle.put(("a".to_owned(), Found::Content(b"x".to_vec()))).unwrap();
        assert!(!out.exists());
        let report = bundle.finish().unwrap();
        let paths: Vec<&str> = report.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a", "a.2"]);
        let failed = Failed { path: "a".to_owned(), why: "password=<redacted>".to_owned() };
        assert_eq!(report.failed, [failed]);
        assert!(out.exists());
    }
}
