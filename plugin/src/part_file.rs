//! A file that is written beside its place, as `FILE.part`, until it is whole; a lock says that a run is at work. What a
//! killed run has left is removed or taken up, as its writer can. What is in it is not known here.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why nothing can be written there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PartFileError {
    /// The place is taken.
    #[error("{} is there already", .0.display())]
    Exists(PathBuf),
    /// By another run that is at work.
    #[error("another run is writing {}", .0.display())]
    Busy(PathBuf),
    /// The folder is not there, or nothing may be written to it, or the disk is full.
    #[error("write {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct PartFile {
    path: PathBuf,
    part: PathBuf,
    /// Its lock says that a run is at work.
    file: File,
    /// Whether the next run can take up what is there.
    stays: bool,
}

impl PartFile {
    /// Begins one, of which nothing stays where it is not finished. Only this user may read it.
    ///
    /// # Errors
    /// The place is taken, or cannot be written to.
    pub(crate) fn begin(path: &Path) -> Result<Self, PartFileError> {
        let part = part_of(path)?;
        if let Ok(left) = File::open(&part)
            && let Err(busy @ PartFileError::Busy(_)) = lock(&left, &part)
        {
            return Err(busy);
        }
        remove(&part)?;
        let file = File::options().write(true).create_new(true).mode(0o600).open(&part);
        let file = file.map_err(|source| unwritable(&part, source))?;
        match lock(&file, &part) {
            // A network's file system without locks: nobody is kept out, and nothing is lost by it.
            Ok(()) | Err(PartFileError::Write { .. }) => {}
            Err(busy) => return Err(busy),
        }
        Ok(Self { path: path.to_owned(), part, file, stays: false })
    }

    /// Begins one, or opens what an earlier run has left; it stays for the next run where it is not finished.
    ///
    /// # Errors
    /// The place is taken, or cannot be written to and locked.
    pub(crate) fn resume(path: &Path) -> Result<Self, PartFileError> {
        let part = part_of(path)?;
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&part);
        let file = file.map_err(|source| unwritable(&part, source))?;
        lock(&file, &part)?;
        Ok(Self { path: path.to_owned(), part, file, stays: true })
    }

    /// What is written to.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// An error of writing to it.
    pub(crate) fn unwritable(&self, source: io::Error) -> PartFileError {
        unwritable(&self.part, source)
    }

    /// Puts it into its place.
    ///
    /// # Errors
    /// The place was taken meanwhile, or the disk is full.
    pub(crate) fn finish(mut self) -> Result<(), PartFileError> {
        let unwritable = |source| unwritable(&self.path, source);
        self.file.sync_all().map_err(unwritable)?;
        match fs::hard_link(&self.part, &self.path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(PartFileError::Exists(self.path.clone()));
            }
            // A file system without links.
            Err(_) => fs::rename(&self.part, &self.path).map_err(unwritable)?,
        }
        self.stays = false;
        Ok(())
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.stays {
            // Where it was put into its place by its only name there is nothing left.
            let _ = fs::remove_file(&self.part);
        }
    }
}

/// A file that is younger may be one that a run has just created and not locked yet.
const YOUNG: Duration = Duration::from_secs(60);

/// Removes what killed runs have left in the folder of files whose names begin and end so. One that a run is writing, and what
/// cannot be removed, stays: it is in the way of nothing.
pub(crate) fn remove_left(folder: &Path, start: &str, end: &str) {
    remove_older(YOUNG, folder, start, end);
}

fn remove_older(age_of_left: Duration, folder: &Path, start: &str, end: &str) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_left = name.to_str().is_some_and(|name| {
            let whole = name.strip_suffix(".part").and_then(|whole| whole.strip_prefix(start));
            // Between them is a time: what a user has named himself is his.
            let time = whole.and_then(|whole| whole.strip_suffix(end)).unwrap_or_default();
            !time.is_empty() && time.chars().all(|one| one.is_ascii_digit() || one == '-')
        });
        let part = entry.path();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let changed = entry.metadata().and_then(|metadata| metadata.modified());
        let is_old = changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > age_of_left));
        if is_left
            && is_file
            && is_old
            && let Ok(file) = File::open(&part)
            && lock(&file, &part).is_ok()
        {
            let _ = remove(&part);
        }
    }
}

/// Where it is until it is whole. What another user may have put there, such as a link, is removed, and not followed.
fn part_of(path: &Path) -> Result<PathBuf, PartFileError> {
    if path.symlink_metadata().is_ok() {
        return Err(PartFileError::Exists(path.to_owned()));
    }
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    if part.symlink_metadata().is_ok_and(|found| !found.is_file()) {
        remove(&part)?;
    }
    Ok(part)
}

fn remove(part: &Path) -> Result<(), PartFileError> {
    match fs::remove_file(part) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(unwritable(part, source)),
        _ => Ok(()),
    }
}

fn lock(file: &File, part: &Path) -> Result<(), PartFileError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(PartFileError::Busy(part.to_owned())),
        Err(TryLockError::Error(source)) => Err(unwritable(part, source)),
    }
}

fn unwritable(path: &Path, source: io::Error) -> PartFileError {
    PartFileError::Write { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let all = fs::read_dir(folder).unwrap();
        let mut all: Vec<String> =
            all.map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
        all.sort();
        all
    }

    #[test]
    fn it_is_in_its_place_when_it_is_whole_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let destination = PartFile::begin(&path).unwrap();
        destination.file().write_all(b"half").unwrap();
        assert_eq!(names(folder.path()), ["a.part"]);
        drop(destination);
        assert_eq!(names(folder.path()), [""; 0], "what is not finished leaves nothing");
        let destination = PartFile::begin(&path).unwrap();
        destination.file().write_all(b"whole").unwrap();
        destination.finish().unwrap();
        assert_eq!(
            (names(folder.path()), fs::read(&path).unwrap()),
            (vec!["a".to_owned()], b"whole".into())
        );
        let again = PartFile::begin(&path).unwrap_err();
        assert!(matches!(again, PartFileError::Exists(_)), "{again:?}");
    }

    #[test]
    fn what_a_killed_run_has_left_is_in_nobodys_way_and_one_at_work_is_let_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let at_work = PartFile::begin(&path).unwrap();
        let second = PartFile::begin(&path).unwrap_err();
        assert!(matches!(second, PartFileError::Busy(_)), "{second:?}");
        drop(at_work);
        fs::write(folder.path().join("a.part"), "left").unwrap();
        let destination = PartFile::begin(&path).unwrap();
        destination.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        // A link that another user has put there leads nowhere.
        fs::remove_file(&path).unwrap();
        let other = folder.path().join("other");
        fs::write(&other, "mine").unwrap();
        std::os::unix::fs::symlink(&other, folder.path().join("a.part")).unwrap();
        PartFile::begin(&path).unwrap().finish().unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"mine");
        // Nor does it where a run is taken up.
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&other, folder.path().join("a.part")).unwrap();
        PartFile::resume(&path).unwrap().file().write_all(b"ours").unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"mine");
    }

    #[test]
    fn what_killed_runs_have_left_under_other_names_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a-1.gz.part", "a-2.gz", "b-1.gz.part", "a-1.txt.part", "a-notes.gz.part"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::create_dir(folder.path().join("a-3.gz.part")).unwrap();
        let at_work = PartFile::begin(&folder.path().join("a-4.gz")).unwrap();
        remove_left(folder.path(), "a-", ".gz");
        assert_eq!(names(folder.path()).len(), 7, "they may be of a run that has just started");
        remove_older(Duration::ZERO, folder.path(), "a-", ".gz");
        let left = [
            "a-1.txt.part",
            "a-2.gz",
            "a-3.gz.part",
            "a-4.gz.part",
            "a-notes.gz.part",
            "b-1.gz.part",
        ];
        assert_eq!(names(folder.path()), left);
        at_work.finish().unwrap();
    }

    #[test]
    fn who_takes_the_place_meanwhile_keeps_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let destination = PartFile::begin(&path).unwrap();
        fs::write(&path, "theirs").unwrap();
        let late = destination.finish().unwrap_err();
        assert!(matches!(late, PartFileError::Exists(_)), "{late:?}");
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
    }
}
