//! Sandboxes that serve our CRDs from the start: their etcd begins with what it had in the end in one into which they had been
//! installed. To make them known is more than half of what an API server does at its start (2.4 s of processor time, and 1.1 with them
//! there). The first test that asks makes what the others start with.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sha2::{Digest as _, Sha256};

use crate::Failed;
use crate::installer::install_crds;
use crate::sandbox::{Builder, Sandbox, prepared};

impl Builder {
    /// Starts one with our CRDs.
    ///
    /// # Errors
    /// As [`Builder::start`]; or what it is to start with cannot be made.
    pub async fn with_crds(self) -> Result<Sandbox, Failed> {
        // By the program that they are built into, for to make them takes it most of a second.
        let program = std::env::current_exe()?;
        let of_program = program.metadata()?;
        let built = of_program.modified()?.duration_since(UNIX_EPOCH)?.as_nanos();
        let mut hash = Sha256::new();
        hash.update(format!("{} {} {built} ", program.display(), of_program.len()));
        // Another version of Kubernetes stores in other ways.
        hash.update(self.api_server().await?.as_os_str().as_encoded_bytes());
        let digest: String =
            hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let folder = prepared();
        fs::create_dir_all(&folder)?;
        let kept = folder.join(&digest);
        // Other tests wait for who makes it.
        let lock = File::create(folder.join(format!("{digest}.lock")))?;
        let lock = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await??;
        if !kept.exists() {
            self.make(&kept).await?;
            remove_others(&folder, &digest)?;
        }
        drop(lock);
        Ok(self.starting_with(kept).start().await?)
    }

    async fn make(&self, kept: &Path) -> Result<(), Failed> {
        let sandbox = self.same_kubernetes().only_api_server().start().await?;
        install_crds(&sandbox.client()?, &opensdn_crds::all()).await?;
        let parts = kept.with_extension("new");
        remove(&parts)?;
        sandbox.keep_data(&parts).await?;
        Ok(fs::rename(parts, kept)?)
    }
}

/// Of programs as they were.
fn remove_others(folder: &Path, digest: &str) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path: PathBuf = entry?.path();
        let is_it = path.file_stem().is_some_and(|name| name == digest);
        // A test of another clone may start with it just now.
        let is_old = path.metadata()?.modified()?.elapsed().is_ok_and(|age| age.as_secs() > 86_400);
        if !is_it && is_old {
            remove(&path)?;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
