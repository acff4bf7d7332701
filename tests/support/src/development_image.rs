//! The webhook's image for tests: the program as the tests have built it, with the libraries that it
//! loads, so that nothing is compiled twice. Deliberately not here: the image as it is shipped
//! (`deploy/images/build.sh`), which takes a release build.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::programs::{ProgramsError, program};

/// As a kubelet completes the name in `deploy/webhook/kustomization.yaml`.
const NAME: &str = concat!("docker.io/library/opensdn-webhook:", env!("CARGO_PKG_VERSION"));
const PACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../control-plane/images/pack.sh");

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum DevelopmentImageError {
    /// The program does not build.
    #[error(transparent)]
    Program(#[from] ProgramsError),
    /// A file could not be copied.
    #[error("copy {} into an image", path.display())]
    Copy {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        #[source]
        source: io::Error,
    },
    /// A program that makes the image could not be run.
    #[error("run {program}")]
    Run {
        /// Which.
        program: &'static str,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// The archive was not made.
    #[error("pack the image: {0}")]
    Pack(String),
}

/// The image's archive, which goes when this is dropped.
pub struct DevelopmentImage {
    archive: PathBuf,
    _folder: TempDir,
}

impl DevelopmentImage {
    /// Builds the program if it is not built, and packs it: seconds.
    ///
    /// # Errors
    /// It does not build, or cannot be packed.
    pub fn make() -> Result<Self, DevelopmentImageError> {
        let program = program("opensdn-webhook")?;
        let copy_error = |path: &Path| {
            let path = path.to_owned();
            |source| DevelopmentImageError::Copy { path, source }
        };
        let folder = TempDir::new().map_err(copy_error(Path::new("a new folder")))?;
        // Not the folder itself: only its owner may enter that, and in pods the program has
        // another user.
        let root = folder.path().join("root");
        copy(&program, &root.join("opensdn-webhook"))?;
        for library in libraries(&program)? {
            let relative = library.strip_prefix("/").unwrap_or(&library);
            copy(&library, &root.join(relative))?;
        }
        let archive = folder.path().join("image.tar");
        let output = Command::new(PACK)
            .args([NAME, "/opensdn-webhook"])
            .args([&root, &archive])
            .output()
            .map_err(|source| DevelopmentImageError::Run { program: "pack.sh", source })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(DevelopmentImageError::Pack(said));
        }
        Ok(Self { archive, _folder: folder })
    }

    /// Where the archive is.
    #[must_use]
    pub fn archive(&self) -> &Path {
        &self.archive
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), DevelopmentImageError> {
    let made = to.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::copy(from, to).map(drop))
        .map_err(|source| DevelopmentImageError::Copy { path: from.to_owned(), source })
}

/// What the program loads, and what loads it. Nothing for a static one.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, DevelopmentImageError> {
    let output = Command::new("ldd")
        .arg(program)
        .output()
        .map_err(|source| DevelopmentImageError::Run { program: "ldd", source })?;
    Ok(paths(&String::from_utf8_lossy(&output.stdout)))
}

/// The paths in what ldd says: `name => /path (address)`, or `/path (address)`.
fn paths(said: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let place = line.split_once(" => ").map_or(line, |(_, place)| place);
        let path = place.split_whitespace().next()?;
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    said.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_loader_are_found_and_what_the_kernel_brings_is_not() {
        let said = "\tlinux-vdso.so.1 (0x00007fff)\n\
                    \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f00)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f01)\n";
        let wanted = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(paths(said), wanted.map(PathBuf::from));
        assert_eq!(paths("\tstatically linked\n"), Vec::<PathBuf>::new());
    }
}
