//! Precompiled policies on disk.
//!
//! A precompiled policy is native code that is run without further checks, so only what this very
//! program wrote is ever taken: the folder must belong to the user alone, and so must an entry, which
//! may be from a time when others could write to the folder; an entry's name says which module and
//! engine it was made of, and name and content are checked against its digest.
//!
//! An entry is the code and then the digest of both, so that the file can be mapped as code: memory is then
//! needed only for what is used of it, and all processes share it. Entries are never changed in
//! place, only replaced, so what is mapped stays as it was.

use std::{
    collections::HashSet,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::fs::OFlags;
use tempfile::NamedTempFile;

use crate::{digest::Digest, engine::Engine};

const WRITABLE_BY_OTHERS: u32 = 0o022;
/// How the name of a file starts that is being written.
const UNFINISHED: &str = ".unfinished-";
/// Twice as long as a compiler may take.
const LONGEST_WRITE: Duration = Duration::from_secs(1_200);

/// A folder of precompiled policies.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    /// Number of the user to whom it belongs.
    user: u32,
}

/// The folder cannot serve as a cache.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// It cannot be made or looked at.
    #[error("use {} as the cache of compiled policies", .0.display())]
    Folder(PathBuf, #[source] io::Error),
    /// Others could put code there.
    #[error(
        "{} is not used as the cache of compiled policies: others may write there; `chmod 700` it",
        .0.display()
    )]
    Shared(PathBuf),
    /// An entry cannot be written.
    #[error("write {}", .0.display())]
    Write(PathBuf, #[source] io::Error),
}

impl CacheError {
    /// Whether there is no room left, which a user can make.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let (Self::Folder(_, error) | Self::Write(_, error)) = self else { return false };
        matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

impl Cache {
    /// The one that this user's programs share, which is [`below`](Self::below) the user's own cache
    /// folder; none where there is no home.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of_user() -> Result<Option<Self>, CacheError> {
        opensdn_user_folders::cache().map(|folder| Self::below(&folder)).transpose()
    }

    /// The one in a folder for all that can be made again.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn below(folder: &Path) -> Result<Self, CacheError> {
        Self::open(folder.join("compiled"))
    }

    /// Uses `folder`, which is made if it is absent.
    ///
    /// # Errors
    /// The folder cannot be made, or other users can write to it.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, CacheError> {
        let folder = folder.into();
        let failed = |error| CacheError::Folder(folder.clone(), error);
        // At no moment may others write there: another process may open it in that moment.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
        let metadata = fs::metadata(&folder).map_err(failed)?;
        // A file made now shows who we are, without a call to libc.
        let probe = tempfile::tempfile_in(&folder).map_err(failed)?;
        let user = probe.metadata().map_err(failed)?.uid();
        if user != metadata.uid() || metadata.mode() & WRITABLE_BY_OTHERS != 0 {
            return Err(CacheError::Shared(folder));
        }
        Ok(Self { folder, user })
    }

    /// The file with the precompiled code of the module, if it is there and is what was written.
    pub(crate) fn find(&self, engine: &Engine, module: Digest) -> Option<PathBuf> {
        let path = self.entry(engine, module);
        let file = self.open_entry(&path).ok()?;
        // The oldest go first. Where the time cannot be set, one that is used may go.
        let _touched = file.set_modified(SystemTime::now());
        is_sound(&path, file).unwrap_or(false).then_some(path)
    }

    /// Opens an entry that no other user can have put there or written to.
    fn open_entry(&self, path: &Path) -> io::Result<File> {
        // What is no file is not followed, and not waited for.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let flags = i32::try_from(flags).map_err(io::Error::other)?;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        let is_own = metadata.uid() == self.user && metadata.mode() & WRITABLE_BY_OTHERS == 0;
        if metadata.is_file() && is_own {
            Ok(file)
        } else {
            Err(io::Error::from(io::ErrorKind::PermissionDenied))
        }
    }

    /// Removes the oldest entries until all take no more than `most` bytes, but none of `kept`. What
    /// is mapped from an entry that is removed stays as it is.
    ///
    /// # Errors
    /// The folder cannot be read, or an entry not removed.
    pub fn trim(
        &self,
        engine: &Engine,
        most: u64,
        kept: &HashSet<Digest>,
    ) -> Result<(), CacheError> {
        let failed = |error| CacheError::Folder(self.folder.clone(), error);
        let kept: HashSet<PathBuf> = kept.iter().map(|one| self.entry(engine, *one)).collect();
        self.remove_unfinished().map_err(failed)?;
        let mut entries = self.entries().map_err(failed)?;
        entries.sort();
        let mut total: u64 = entries.iter().map(|(_, length, _)| length).sum();
        for (_, length, path) in entries {
            if total <= most {
                break;
            }
            if !kept.contains(&path) {
                fs::remove_file(&path).map_err(failed)?;
                total = total.saturating_sub(length);
            }
        }
        Ok(())
    }

    /// What a compiler was writing when it was killed. No entry is written for so long.
    fn remove_unfinished(&self) -> io::Result<()> {
        for file in fs::read_dir(&self.folder)? {
            let file = file?;
            let is_unfinished = file.file_name().to_string_lossy().starts_with(UNFINISHED);
            // One that is renamed meanwhile is none any more.
            let age = || file.metadata().ok()?.modified().ok()?.elapsed().ok();
            if is_unfinished && age().is_some_and(|age| age > LONGEST_WRITE) {
                fs::remove_file(file.path())?;
            }
        }
        Ok(())
    }

    /// When each was used last, its bytes, its file.
    fn entries(&self) -> io::Result<Vec<(SystemTime, u64, PathBuf)>> {
        let mut entries = Vec::new();
        for file in fs::read_dir(&self.folder)? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "code") {
                let metadata = fs::metadata(&path)?;
                entries.push((metadata.modified()?, metadata.len(), path));
            }
        }
        Ok(entries)
    }

    /// Keeps the precompiled code. A reader sees all of it or nothing.
    pub(crate) fn write(
        &self,
        engine: &Engine,
        module: Digest,
        code: &[u8],
    ) -> Result<PathBuf, CacheError> {
        self.stage(engine, module, code)?.keep()
    }

    /// Writes the precompiled code beside the entries: no one finds it until it is kept.
    pub(crate) fn stage(
        &self,
        engine: &Engine,
        module: Digest,
        code: &[u8],
    ) -> Result<Staged, CacheError> {
        let entry = self.entry(engine, module);
        let write = || -> io::Result<NamedTempFile> {
            let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.folder)?;
            file.write_all(code)?;
            file.write_all(digest_of_entry(&entry, code)?.to_string().as_bytes())?;
            Ok(file)
        };
        let file = write().map_err(|error| CacheError::Write(entry.clone(), error))?;
        Ok(Staged { file, entry })
    }

    fn entry(&self, engine: &Engine, module: Digest) -> PathBuf {
        let key = Digest::of(format!("{module}\n{}", engine.fingerprint()).as_bytes()).to_string();
        self.folder.join(format!("{}.code", key.replace(':', "-")))
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Code that is in the folder and not yet an entry; gone with this.
pub(crate) struct Staged {
    file: NamedTempFile,
    entry: PathBuf,
}

impl Staged {
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) fn keep(self) -> Result<PathBuf, CacheError> {
        let Self { file, entry } = self;
        match file.persist(&entry) {
            Ok(_) => Ok(entry),
            Err(error) => Err(CacheError::Write(entry, error.error)),
        }
    }
}

/// The digest of an entry's name and code: an entry that is given another's name is not taken for it.
fn digest_of_entry(path: &Path, code: impl io::Read) -> io::Result<Digest> {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    Digest::of_stream(name.chain(code))
}

/// Whether the file ends with the digest of its name and of what is before it.
fn is_sound(path: &Path, mut file: File) -> io::Result<bool> {
    const DIGEST: u64 = "sha256:".len() as u64 + 64;
    let Some(length) = file.metadata()?.len().checked_sub(DIGEST) else { return Ok(false) };
    let digest = digest_of_entry(path, (&mut file).take(length))?;
    file.seek(SeekFrom::Start(length))?;
    let mut written = String::new();
    file.read_to_string(&mut written)?;
    Ok(written == digest.to_string())
}
