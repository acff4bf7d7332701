//! A tar archive (ustar) with a manifest of what is in it. Plain: what reads it need not unpack it first, and it is
//! compressed as well by any other program.

use std::io::{self, Write};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::report::{Failed, File};

/// Blocks of a tar archive.
const BLOCK: usize = 512;
/// A name's room; ours are shorter, as what they are made of is.
const NAME: usize = 100;

/// What is in an archive, and what is not.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest<'a> {
    created_at: &'a str,
    version: &'static str,
    files: &'a [File],
    failed: &'a [Failed],
    redacted: &'static str,
}

/// Writes the files, the manifest last.
pub(crate) struct Archive<W> {
    out: W,
    folder: String,
    time: u64,
    files: Vec<File>,
}

impl<W: Write> Archive<W> {
    /// One whose files are all below the folder.
    pub(crate) fn new(out: W, folder: &str, time: u64) -> Self {
        Self { out, folder: folder.to_owned(), time, files: Vec::new() }
    }

    /// Adds a file.
    ///
    /// # Errors
    /// Of the stream.
    pub(crate) fn add(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        self.put(path, content)?;
        let digest = Sha256::digest(content);
        let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        self.files.push(File { path: path.to_owned(), sha256, bytes: content.len() });
        Ok(())
    }

    fn put(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        let name = format!("{}/{path}", self.folder);
        self.out.write_all(&header(&name, content.len(), self.time))?;
        self.out.write_all(content)?;
        let rest = content.len() % BLOCK;
        if rest > 0 {
            self.out.write_all([0; BLOCK].get(rest..).unwrap_or_default())?;
        }
        Ok(())
    }

    /// Ends it with the manifest; what is in it.
    ///
    /// # Errors
    /// Of the stream.
    pub(crate) fn finish(mut self, created_at: &str, failed: &[Failed]) -> io::Result<Vec<File>> {
        let manifest = Manifest {
            created_at,
            version: env!("CARGO_PKG_VERSION"),
            files: &self.files,
            failed,
            redacted: "data of Secrets, and values that are called like secrets, in objects, texts and logs",
        };
        let text = serde_json::to_vec_pretty(&manifest).map_err(io::Error::other)?;
        self.put("manifest.json", &text)?;
        self.out.write_all(&[0; 2 * BLOCK])?;
        self.out.flush()?;
        Ok(self.files)
    }
}

/// The head of a file: name, mode, owner, size, time, checksum, kind, and the prefix of a long name.
fn header(name: &str, size: usize, time: u64) -> [u8; BLOCK] {
    let (prefix, name) = split(name);
    let mut fields: Vec<u8> = Vec::with_capacity(BLOCK);
    let mut field = |text: &str, width: usize| {
        let bytes = text.as_bytes();
        fields.extend(bytes.iter().take(width));
        fields.resize(fields.len() + width.saturating_sub(bytes.len()), 0);
    };
    field(&name, NAME);
    field("0000600\0", 8);
    field("0000000\0", 8);
    field("0000000\0", 8);
    field(&format!("{size:011o}\0"), 12);
    field(&format!("{time:011o}\0"), 12);
    field("        ", 8);
    field("0", 1);
    field("", 100);
    field("ustar\0", 6);
    field("00", 2);
    field("", 32 + 32 + 8 + 8);
    field(&prefix, 155);
    fields.resize(BLOCK, 0);
    let sum: u32 = fields.iter().map(|byte| u32::from(*byte)).sum();
    let sum = format!("{sum:06o}\0 ");
    let mut block = [0; BLOCK];
    for (at, (to, from)) in block.iter_mut().zip(&fields).enumerate() {
        let of_sum = at.checked_sub(148).and_then(|at| sum.as_bytes().get(at));
        *to = *of_sum.unwrap_or(from);
    }
    block
}

/// A name that is too long is cut at a slash, and what cannot be cut at its end.
fn split(name: &str) -> (String, String) {
    if name.len() <= NAME {
        return (String::new(), name.to_owned());
    }
    let cut = name.char_indices().filter(|(at, letter)| *letter == '/' && *at <= 155);
    let cut = cut.map(|(at, _)| at).find(|at| name.len() - at - 1 <= NAME);
    match cut.and_then(|at| Some((name.get(..at)?, name.get(at + 1..)?))) {
        Some((prefix, name)) => (prefix.to_owned(), name.to_owned()),
        None => (String::new(), name.chars().take(NAME).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tar_reads_it_and_the_digests_of_the_manifest_are_those_of_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar");
        let long = format!("logs/{}/{}.log", "n".repeat(60), "p".repeat(60));
        let mut archive =
            Archive::new(std::fs::File::create(&path).unwrap(), "bundle", 1_800_000_000);
        archive.add("a.json", b"{}").unwrap();
        archive.add(&long, &[b'x'; 1000]).unwrap();
        let failed = [Failed { path: "b".into(), why: "forbidden".into() }];
        archive.finish("now", &failed).unwrap();
        let run = |arguments: &[&str]| {
            let output = std::process::Command::new("tar")
                .arg("-C")
                .arg(folder.path())
                .args(arguments)
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        run(&["-xf", path.to_str().unwrap()]);
        let read = |name: &str| std::fs::read(folder.path().join("bundle").join(name)).unwrap();
        assert_eq!((read("a.json").as_slice(), read(&long).len()), (&b"{}"[..], 1000));
        let manifest: serde_json::Value = serde_json::from_slice(&read("manifest.json")).unwrap();
        assert_eq!(
            manifest["files"][0]["sha256"],
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
        assert_eq!(manifest["failed"][0]["why"], "forbidden");
    }
}
