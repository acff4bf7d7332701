//! Images for tests of programs that this machine has, with the libraries that they load: ours as the tests
//! have built them, so that nothing is compiled twice, and servers as Debian packs them. Deliberately not here:
//! the image as it is shipped (`deploy/images/build.sh`), which takes a release build, and those of
//! `tests/images`, which are systems of their own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::programs::{ProgramsError, program};

/// As a kubelet completes the names in `deploy`.
const REGISTRY: &str = "docker.io/library";
/// What an image of a folder runs.
const ENTRYPOINT: &str = "/entrypoint";
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

/// An image's archive, which goes when this is dropped.
pub struct DevelopmentImage {
    archive: PathBuf,
    _folder: TempDir,
}

impl DevelopmentImage {
    /// Builds a program of ours if it is not built, and packs it under its name and version: seconds.
    ///
    /// # Errors
    /// It does not build, or cannot be packed.
    pub fn of_ours(name: &str) -> Result<Self, DevelopmentImageError> {
        let name_and_tag = format!("{name}:{}", env!("CARGO_PKG_VERSION"));
        Self::pack(&name_and_tag, &[ours(name)?], None)
    }

    /// Packs programs of this machine, by their names in `/usr/bin`, into an image `NAME:TAG`.
    ///
    /// # Errors
    /// One of them is not installed, or cannot be packed.
    pub fn of_installed(
        name_and_tag: &str,
        programs: &[&str],
    ) -> Result<Self, DevelopmentImageError> {
        Self::pack(name_and_tag, &programs.iter().map(installed).collect::<Vec<_>>(), None)
    }

    /// Packs the files of a folder, with a program of ours and programs of this machine that they use. The entrypoint runs
    /// `/entrypoint` of the folder.
    ///
    /// # Errors
    /// A program does not build or is not installed, or something cannot be packed.
    pub fn of_folder(
        name_and_tag: &str,
        folder: &Path,
        name: &str,
        programs: &[&str],
    ) -> Result<Self, DevelopmentImageError> {
        let mut all = vec![ours(name)?];
        all.extend(programs.iter().map(installed));
        Self::pack(name_and_tag, &all, Some(folder))
    }

    /// Files, each by its place here and its place there, and those of a folder. Without a folder the first is the program
    /// that runs.
    fn pack(
        name_and_tag: &str,
        programs: &[(PathBuf, String)],
        files: Option<&Path>,
    ) -> Result<Self, DevelopmentImageError> {
        let copy_error = |path: &Path| {
            let path = path.to_owned();
            |source| DevelopmentImageError::Copy { path, source }
        };
        let folder = TempDir::new().map_err(copy_error(Path::new("a new folder")))?;
        // Not the folder itself: only its owner may enter that, and in pods the program has
        // another user.
        let root = folder.path().join("root");
        for (from, to) in programs {
            copy(from, &root.join(to.trim_start_matches('/')))?;
            for library in libraries(from)? {
                let relative = library.strip_prefix("/").unwrap_or(&library);
                copy(&library, &root.join(relative))?;
            }
        }
        let archive = folder.path().join("image.tar");
        let mut entrypoint = programs.first().map_or("", |(_, path)| path);
        if let Some(files) = files {
            let mut copy = Command::new("cp");
            run("cp", copy.arg("-a").args([&files.join("."), &root]))?;
            entrypoint = ENTRYPOINT;
        }
        let mut pack = Command::new(PACK);
        pack.args([&format!("{REGISTRY}/{name_and_tag}"), entrypoint]).args([&root, &archive]);
        run("pack.sh", &mut pack)?;
        Ok(Self { archive, _folder: folder })
    }

    /// Where the archive is.
    #[must_use]
    pub fn archive(&self) -> &Path {
        &self.archive
    }
}

/// A program of ours, and its place in an image.
fn ours(name: &str) -> Result<(PathBuf, String), ProgramsError> {
    Ok((program(name)?, format!("/{name}")))
}

/// One of this machine, and its place in an image.
fn installed(name: &&str) -> (PathBuf, String) {
    (PathBuf::from(format!("/usr/bin/{name}")), format!("/bin/{name}"))
}

fn run(program: &'static str, command: &mut Command) -> Result<(), DevelopmentImageError> {
    let output =
        command.output().map_err(|source| DevelopmentImageError::Run { program, source })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(DevelopmentImageError::Pack(said))
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
