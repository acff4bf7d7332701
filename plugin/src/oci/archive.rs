//! A tar archive with blobs by their digests. It is written beside its place and put there when it is whole; what a run that
//! ended has left is taken up. It is read where it is: nothing of it is ever unpacked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opensdn_manifests::open_named;

use super::digest::{Check, Digest};
use super::error::Error;
use crate::part_file::PartFile;

const BLOCK: u64 = 512;
/// Bytes that are read at once.
pub(super) const PIECE: usize = 1 << 20;
/// More files than this has no archive of images.
const MOST_FILES: usize = 1 << 16;
const BLOBS: &str = "blobs/sha256/";

/// Where a file of an archive is.
#[derive(Clone, Copy, Debug)]
struct Span {
    offset: u64,
    size: u64,
}

/// The files of an archive, as far as they are whole, and why not further.
fn files(file: &File) -> (Vec<(String, Span)>, Option<String>) {
    let mut found = Vec::new();
    let broken = scan(file, &mut found).err();
    (found, broken)
}

fn scan(file: &File, found: &mut Vec<(String, Span)>) -> Result<(), String> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let mut archive = tar::Archive::new(file);
    let entries = archive.entries_with_seek().map_err(|error| error.to_string())?;
    // Raw: long names and extensions, which none of these files needs, are not obeyed.
    for entry in entries.raw(true) {
        let entry = entry.map_err(|error| format!("it is broken: {error}"))?;
        let name = String::from_utf8(entry.path_bytes().into_owned())
            .map_err(|_| "a name in it is no text".to_owned())?;
        let span = Span { offset: entry.raw_file_position(), size: entry.size() };
        let end = span.offset.checked_add(span.size);
        if end.is_none_or(|end| end > length) {
            return Err(format!("it ends within {name:?}: it is cut off"));
        }
        if found.len() == MOST_FILES {
            return Err(format!("it has more than {MOST_FILES} files"));
        }
        let kind = entry.header().entry_type();
        if kind.is_pax_global_extensions() || kind.is_pax_local_extensions() {
            continue;
        }
        let plain = name.strip_prefix("./").unwrap_or(&name);
        let leads_out = name.starts_with('/') || plain.split('/').any(|part| part == "..");
        match () {
            () if leads_out => return Err(format!("{name:?} leads out of it")),
            () if kind.is_dir() => {}
            () if kind.is_file() => found.push((plain.to_owned(), span)),
            () => return Err(format!("{name:?} is neither a file nor a folder")),
        }
    }
    Ok(())
}

fn blob_of(name: &str) -> Option<Digest> {
    format!("sha256:{}", name.strip_prefix(BLOBS)?).parse().ok()
}

/// Reads a file of an archive in pieces.
fn read(
    file: &File,
    span: Span,
    mut take: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), String> {
    let mut buffer = vec![0; PIECE];
    let mut done = 0;
    while done < span.size {
        let length = usize::try_from(span.size - done).unwrap_or(PIECE).min(PIECE);
        let piece = buffer.get_mut(..length).unwrap_or_default();
        file.read_exact_at(piece, span.offset + done).map_err(|error| error.to_string())?;
        take(piece)?;
        done += length as u64;
    }
    Ok(())
}

fn verified(file: &File, span: Span, digest: Digest, size: u64) -> Result<(), String> {
    let mut check = Check::new(digest, size);
    read(file, span, |piece| check.take(piece))?;
    check.finish()
}

/// An archive that can be read.
pub(crate) struct Archive {
    path: PathBuf,
    file: Arc<File>,
    files: BTreeMap<String, Span>,
}

impl Archive {
    /// Looks at what is in it.
    ///
    /// # Errors
    /// It cannot be read, is cut off, or has what no archive of images has.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let unreadable = |source| Error::Read { path: path.to_owned(), source };
        let file = open_named(path).map_err(unreadable)?;
        let wrong = |why: String| Error::Archive { path: path.to_owned(), why };
        let mut magic = [0; 2];
        if file.read_exact_at(&mut magic, 0).is_ok() && magic == [0x1f, 0x8b] {
            return Err(wrong("it is compressed: unpack it with gunzip first".to_owned()));
        }
        let (found, broken) = files(&file);
        if let Some(why) = broken {
            return Err(wrong(why));
        }
        let mut files = BTreeMap::new();
        for (name, span) in found {
            if files.contains_key(&name) {
                return Err(wrong(format!("{name:?} is in it twice")));
            }
            files.insert(name, span);
        }
        Ok(Self { path: path.to_owned(), file: Arc::new(file), files })
    }

    pub(super) fn wrong(&self, why: impl Into<String>) -> Error {
        Error::Archive { path: self.path.clone(), why: why.into() }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// A whole file that is not longer than `most`.
    pub(super) fn small(&self, name: &str, most: u64) -> Result<Vec<u8>, Error> {
        let span = self.files.get(name).ok_or_else(|| self.wrong(format!("{name} is missing")))?;
        if span.size > most {
            return Err(self.wrong(format!("{name} is larger than {} MiB", most >> 20)));
        }
        let mut bytes = Vec::new();
        let read = read(&self.file, *span, |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        });
        read.map(|()| bytes).map_err(|why| self.wrong(format!("{name}: {why}")))
    }

    /// A small blob, which is what its digest says.
    pub(super) fn small_blob(&self, digest: Digest, most: u64) -> Result<Vec<u8>, Error> {
        let bytes = self.small(&format!("{BLOBS}{}", digest.hex()), most)?;
        let found = Digest::of(&bytes);
        if found == digest {
            Ok(bytes)
        } else {
            Err(self.wrong(format!("instead of {digest} there is {found}")))
        }
    }

    /// Reads a blob to see whether it is what its digest says.
    pub(super) fn check(&self, digest: Digest, size: u64) -> Result<(), Error> {
        let (file, offset) = self.place(digest, size)?;
        verified(&file, Span { offset, size }, digest, size).map_err(|why| self.wrong(why))
    }

    /// Where a blob is.
    pub(super) fn place(&self, digest: Digest, size: u64) -> Result<(Arc<File>, u64), Error> {
        let span = self.files.get(&format!("{BLOBS}{}", digest.hex()));
        let span = span.ok_or_else(|| self.wrong(format!("the blob {digest} is missing")))?;
        if span.size != size {
            return Err(self.wrong(format!("{digest} has {} bytes instead of {size}", span.size)));
        }
        Ok((self.file.clone(), span.offset))
    }
}

/// An archive that is being written.
pub(crate) struct Part {
    file: PartFile,
    blobs: BTreeMap<Digest, u64>,
    /// Until here it is good.
    end: u64,
}

impl Part {
    /// Begins one, or takes up what is left of an earlier run: blobs that are whole stay.
    ///
    /// # Errors
    /// The file is there already, another run writes it, or the folder may not be written to.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = PartFile::resume(path)?;
        let (mut blobs, mut end) = (BTreeMap::new(), 0);
        for (name, span) in files(file.file()).0 {
            let Some(digest) = blob_of(&name) else { break };
            if span.offset != end + BLOCK || verified(file.file(), span, digest, span.size).is_err()
            {
                break;
            }
            blobs.insert(digest, span.size);
            end = span.offset + span.size.next_multiple_of(BLOCK);
        }
        let this = Self { file, blobs, end };
        this.back()?;
        Ok(this)
    }

    pub(crate) fn has(&self, digest: Digest) -> bool {
        self.blobs.contains_key(&digest)
    }

    fn unwritable(&self, source: io::Error) -> Error {
        self.file.unwritable(source).into()
    }

    /// Begins a blob.
    pub(super) fn begin(&self, digest: Digest, size: u64) -> Result<(), Error> {
        let name = format!("{BLOBS}{}", digest.hex());
        self.header(&name, size).map_err(|error| self.unwritable(error))
    }

    fn header(&self, name: &str, size: u64) -> io::Result<()> {
        let mut header = tar::Header::new_ustar();
        header.set_path(name)?;
        header.set_size(size);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        header.set_entry_type(tar::EntryType::Regular);
        header.set_cksum();
        self.file.file().write_all(header.as_bytes())
    }

    /// Writes the next piece of it.
    pub(super) fn write(&self, piece: &[u8]) -> Result<(), Error> {
        self.file.file().write_all(piece).map_err(|error| self.unwritable(error))
    }

    /// Ends it: from here on it stays.
    pub(super) fn commit(&mut self, digest: Digest, size: u64) -> Result<(), Error> {
        self.pad(size).map_err(|error| self.unwritable(error))?;
        self.blobs.insert(digest, size);
        self.end += BLOCK + size.next_multiple_of(BLOCK);
        Ok(())
    }

    fn pad(&self, size: u64) -> io::Result<()> {
        let rest = usize::try_from(size.next_multiple_of(BLOCK) - size).unwrap_or_default();
        self.file.file().write_all(&vec![0; rest])
    }

    /// Forgets what was begun.
    pub(super) fn back(&self) -> Result<(), Error> {
        let cut = self.file.file().set_len(self.end);
        let cut = cut.and_then(|()| self.file.file().seek(SeekFrom::Start(self.end)));
        cut.map(|_| ()).map_err(|error| self.unwritable(error))
    }

    /// Adds the files that say what is in it, and puts it into its place.
    pub(super) fn finish(self, last: &[(&str, Vec<u8>)]) -> Result<(), Error> {
        self.write_last(last).map_err(|error| self.unwritable(error))?;
        Ok(self.file.finish()?)
    }

    fn write_last(&self, last: &[(&str, Vec<u8>)]) -> io::Result<()> {
        for (name, content) in last {
            self.header(name, content.len() as u64)?;
            self.file.file().write_all(content)?;
            self.pad(content.len() as u64)?;
        }
        self.file.file().write_all(&[0; 1024])
    }
}

#[cfg(test)]
mod tests;
