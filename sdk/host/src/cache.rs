//! Precompiled policies on disk.
//!
//! A precompiled policy is native code that is run without further checks, so only what this very
//! program wrote is ever taken: the folder must belong to the user alone, an entry's name says
//! which module and engine it was made of, and its content is checked against its digest.

use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use crate::{digest::Digest, engine::Engine};

/// A folder of precompiled policies.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
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

impl Cache {
    /// Uses `folder`, which is made if it is absent.
    ///
    /// # Errors
    /// The folder cannot be made, or somebody else can write to it.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, CacheError> {
        let folder = folder.into();
        let failed = |error| CacheError::Folder(folder.clone(), error);
        if !folder.exists() {
            fs::create_dir_all(&folder).map_err(failed)?;
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).map_err(failed)?;
        }
        let metadata = fs::metadata(&folder).map_err(failed)?;
        // A file made now shows who we are, without a call to libc.
        let probe = tempfile::tempfile_in(&folder).map_err(failed)?;
        let own = probe.metadata().map_err(failed)?.uid() == metadata.uid();
        if !own || metadata.mode() & 0o022 != 0 {
            return Err(CacheError::Shared(folder));
        }
        Ok(Self { folder })
    }

    /// The precompiled code of the module, if it is there and is what was written.
    pub(crate) fn read(&self, engine: &Engine, module: Digest) -> Option<Vec<u8>> {
        let content = fs::read(self.entry(engine, module)).ok()?;
        let (digest, code) = content.split_at_checked(Self::HEADER)?;
        (digest == Digest::of(code).to_string().as_bytes()).then(|| code.to_vec())
    }

    /// Keeps the precompiled code. A reader sees all of it or nothing.
    pub(crate) fn write(
        &self,
        engine: &Engine,
        module: Digest,
        code: &[u8],
    ) -> Result<(), CacheError> {
        let entry = self.entry(engine, module);
        let write = || -> io::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            file.write_all(Digest::of(code).to_string().as_bytes())?;
            file.write_all(code)?;
            file.persist(&entry).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(|error| CacheError::Write(entry.clone(), error))
    }

    const HEADER: usize = "sha256:".len() + 64;

    fn entry(&self, engine: &Engine, module: Digest) -> PathBuf {
        let key = Digest::of(format!("{module}\n{}", engine.fingerprint()).as_bytes()).to_string();
        self.folder.join(key.replace(':', "-"))
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}
