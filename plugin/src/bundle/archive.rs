//! A compressed tar archive with a manifest of what is in it.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::report::{Failed, File};

/// What is in an archive, and what is not.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest<'a> {
    created_at: &'a str,
    version: &'static str,
    files: &'a [File],
    failed: &'a [Failed],
    absent: &'a [Failed],
    redacted: &'static str,
}

/// Writes the files, the manifest last.
pub(crate) struct Archive<W: Write> {
    out: tar::Builder<GzEncoder<W>>,
    folder: String,
    time: u64,
    files: Vec<File>,
}

impl<W: Write> Archive<W> {
    /// One whose files are all below the folder.
    pub(crate) fn new(out: W, folder: &str, time: u64) -> Self {
        let out = tar::Builder::new(GzEncoder::new(out, Compression::default()));
        Self { out, folder: folder.to_owned(), time, files: Vec::new() }
    }

    /// Adds a file.
    ///
    /// # Errors
    /// Of the stream.
    pub(crate) fn add(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        let path = &within(path);
        self.put(path, content)?;
        let digest = Sha256::digest(content);
        let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        self.files.push(File { path: path.to_owned(), sha256, bytes: content.len() });
        Ok(())
    }

    fn put(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(self.time);
        self.out.append_data(&mut header, format!("{}/{path}", self.folder), content)
    }

    /// Ends it with the manifest; what is in it.
    ///
    /// # Errors
    /// Of the stream.
    pub(crate) fn finish(
        mut self,
        created_at: &str,
        failed: &[Failed],
        absent: &[Failed],
    ) -> io::Result<Vec<File>> {
        let manifest = Manifest {
            created_at,
            version: env!("CARGO_PKG_VERSION"),
            files: &self.files,
            failed,
            absent,
            redacted: "data of Secrets, and what is a secret by its name, its form or its shape, in objects, texts and logs",
        };
        let text = serde_json::to_vec_pretty(&manifest).map_err(io::Error::other)?;
        self.put("manifest.json", &text)?;
        self.out.into_inner()?.finish()?.flush()?;
        Ok(self.files)
    }
}

/// Names come from a cluster: none leads out of the folder, whatever that says.
fn within(path: &str) -> String {
    let parts = path.split('/').map(|part| match part {
        "" | "." | ".." => "_".to_owned(),
        part => part.replace(['\\', '\0'], "_"),
    });
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_leads_out_stays_within_and_the_rest_is_written() {
        let mut bytes = Vec::new();
        let mut archive = Archive::new(&mut bytes, "bundle", 0);
        for path in ["logs/../../x.log", "/etc/passwd", "logs/./..\\x"] {
            archive.add(path, b"x").unwrap();
        }
        archive.finish("now", &[], &[]).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
        let names: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        assert_eq!(
            names,
            [
                "bundle/logs/_/_/x.log",
                "bundle/_/etc/passwd",
                "bundle/logs/_/.._x",
                "bundle/manifest.json"
            ]
        );
    }

    #[test]
    fn tar_reads_it_and_the_digests_of_the_manifest_are_those_of_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar.gz");
        let long = format!("logs/{}/{}.log", "n".repeat(60), "p".repeat(60));
        let mut archive =
            Archive::new(std::fs::File::create(&path).unwrap(), "bundle", 1_800_000_000);
        archive.add("a.json", b"{}").unwrap();
        archive.add(&long, &[b'x'; 1000]).unwrap();
        let failed = [Failed { path: "b".into(), why: "forbidden".into() }];
        archive.finish("now", &failed, &[]).unwrap();
        let run = |arguments: &[&str]| {
            let output = std::process::Command::new("tar")
                .arg("-C")
                .arg(folder.path())
                .args(arguments)
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        run(&["-xzf", path.to_str().unwrap()]);
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
