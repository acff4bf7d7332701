//! Where the archive goes: beside its place until it is whole. What does not come so far leaves nothing: not where the
//! disk is full, nor at an interrupt. What a run has left that was killed, the next one removes. What is in the
//! archive is not known here.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Why nothing can be written there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DestinationError {
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

/// A file that is being written: `FILE.part` until it is whole.
#[derive(Debug)]
pub(crate) struct Destination {
    path: PathBuf,
    part: PathBuf,
    /// Its lock says that a run is at work.
    file: File,
}

impl Destination {
    /// Begins one. Only this user may read it.
    ///
    /// # Errors
    /// The place is taken, or cannot be written to.
    pub(crate) fn open(path: &Path) -> Result<Self, DestinationError> {
        if path.symlink_metadata().is_ok() {
            return Err(DestinationError::Exists(path.to_owned()));
        }
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let unwritable = |source| DestinationError::Write { path: part.clone(), source };
        remove_left(&part)?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part);
        let file = file.map_err(unwritable)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), part, file }),
            Err(TryLockError::WouldBlock) => Err(DestinationError::Busy(part)),
            // A network's file system without locks: nobody is kept out, and nothing is lost by it.
            Err(TryLockError::Error(_)) => Ok(Self { path: path.to_owned(), part, file }),
        }
    }

    /// Where it is written.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Puts it into its place.
    ///
    /// # Errors
    /// The place was taken meanwhile, or the disk is full.
    pub(crate) fn finish(self) -> Result<(), DestinationError> {
        let unwritable = |source| DestinationError::Write { path: self.path.clone(), source };
        self.file.sync_all().map_err(unwritable)?;
        match fs::hard_link(&self.part, &self.path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(DestinationError::Exists(self.path.clone()))
            }
            // A file system without links.
            Err(_) => fs::rename(&self.part, &self.path).map_err(unwritable),
        }
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        // Where it was put into its place by its only name there is nothing left.
        let _ = fs::remove_file(&self.part);
    }
}

/// Removes what a killed run has left. A link is removed, and not followed.
fn remove_left(part: &Path) -> Result<(), DestinationError> {
    let unwritable = |source| DestinationError::Write { path: part.to_owned(), source };
    let Ok(metadata) = part.symlink_metadata() else { return Ok(()) };
    if metadata.is_file()
        && let Ok(file) = File::open(part)
        && let Err(TryLockError::WouldBlock) = file.try_lock()
    {
        return Err(DestinationError::Busy(part.to_owned()));
    }
    fs::remove_file(part).map_err(unwritable)
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
        let destination = Destination::open(&path).unwrap();
        destination.file().write_all(b"half").unwrap();
        assert_eq!(names(folder.path()), ["a.part"]);
        drop(destination);
        assert_eq!(names(folder.path()), [""; 0], "what is not finished leaves nothing");
        let destination = Destination::open(&path).unwrap();
        destination.file().write_all(b"whole").unwrap();
        destination.finish().unwrap();
        assert_eq!(
            (names(folder.path()), fs::read(&path).unwrap()),
            (vec!["a".to_owned()], b"whole".into())
        );
        let again = Destination::open(&path).unwrap_err();
        assert!(matches!(again, DestinationError::Exists(_)), "{again:?}");
    }

    #[test]
    fn what_a_killed_run_has_left_is_in_nobodys_way_and_one_at_work_is_let_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let at_work = Destination::open(&path).unwrap();
        let second = Destination::open(&path).unwrap_err();
        assert!(matches!(second, DestinationError::Busy(_)), "{second:?}");
        drop(at_work);
        fs::write(folder.path().join("a.part"), "left").unwrap();
        let destination = Destination::open(&path).unwrap();
        destination.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        // A link that another user has put there leads nowhere.
        fs::remove_file(&path).unwrap();
        let other = folder.path().join("other");
        fs::write(&other, "mine").unwrap();
        std::os::unix::fs::symlink(&other, folder.path().join("a.part")).unwrap();
        Destination::open(&path).unwrap().finish().unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"mine");
    }

    #[test]
    fn who_takes_the_place_meanwhile_keeps_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let destination = Destination::open(&path).unwrap();
        fs::write(&path, "theirs").unwrap();
        let late = destination.finish().unwrap_err();
        assert!(matches!(late, DestinationError::Exists(_)), "{late:?}");
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
    }
}
