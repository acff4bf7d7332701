//! Files that people name, read up to a limit: what they name may be a device or a pipe that never ends.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A reader that fails where more comes than may be, so that what was cut does not pass for the whole.
#[derive(Debug)]
pub struct Limited<R> {
    reader: R,
    left: u64,
    most: u64,
}

impl<R: Read> Limited<R> {
    /// So many bytes of a reader.
    pub fn new(reader: R, most: u64) -> Self {
        Self { reader, left: most, most }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            return match self.reader.read(&mut [0])? {
                0 => Ok(0),
                _ => Err(too_large(self.most)),
            };
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.reader.read(buffer.get_mut(..room).unwrap_or_default())?;
        self.left -= read as u64;
        Ok(read)
    }
}

fn too_large(most: u64) -> io::Error {
    let message = match most >> 20 {
        0 => format!("it is larger than {most} bytes"),
        mebibytes => format!("it is larger than {mebibytes} MiB"),
    };
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}

/// Opens what a person named. To open a named pipe waits, without a word, for a writer that may never come: it is refused.
/// Those that a shell makes (`<(command)`) are below `/dev/fd` and have theirs.
///
/// # Errors
/// It cannot be opened, or is a named pipe.
pub fn open_named(path: &Path) -> io::Result<File> {
    let of_shell = ["/dev/fd", "/dev/stdin", "/proc"].iter().any(|one| path.starts_with(one));
    if !of_shell && is_pipe(&std::fs::metadata(path)?) {
        return Err(io::Error::other("it is a named pipe: give a file, or - for standard input"));
    }
    File::open(path)
}

#[cfg(unix)]
fn is_pipe(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&metadata.file_type())
}

#[cfg(not(unix))]
fn is_pipe(_: &std::fs::Metadata) -> bool {
    false
}

/// The bytes of a file that has at most so many.
///
/// # Errors
/// It cannot be read, or has more.
pub fn read_limited(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Limited::new(open_named(path)?, most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The same of a text.
///
/// # Errors
/// As of [`read_limited`], or it is no text.
pub fn read_limited_text(path: &Path, most: u64) -> io::Result<String> {
    let bytes = read_limited(path, most)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, repeat};

    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_named_pipe_is_refused_instead_of_waiting_for_a_writer() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let error = read_limited(&pipe, 10).unwrap_err();
        assert_eq!(error.to_string(), "it is a named pipe: give a file, or - for standard input");
    }

    #[test]
    fn what_has_no_end_is_refused_and_what_fits_is_read_whole() {
        let read = |length: u64| {
            let mut bytes = Vec::new();
            Limited::new(repeat(b'a').take(length), 10).read_to_end(&mut bytes).map(|_| bytes.len())
        };
        assert_eq!(read(0).unwrap(), 0);
        assert_eq!(read(10).unwrap(), 10);
        assert_eq!(read(11).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let error = read_limited(Path::new("/dev/zero"), 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than 1 MiB");
    }
}
