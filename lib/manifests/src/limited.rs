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

/// The bytes of a file that has at most so many.
///
/// # Errors
/// It cannot be read, or has more.
pub fn read_limited(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Limited::new(File::open(path)?, most).read_to_end(&mut bytes)?;
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
