//! Archives that are whole, broken, or not what they say.

use std::io::Write as _;
use std::path::Path;

use super::{Archive, Part};
use crate::oci::digest::Digest;
use crate::oci::error::Error;

fn header(name: &str, size: u64, kind: tar::EntryType) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    // Not by set_path, which would not take what is to be refused.
    let bytes = name.as_bytes();
    header.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_entry_type(kind);
    header.set_cksum();
    header
}

fn file(path: &Path, entries: &[(&str, &[u8], tar::EntryType)]) {
    let mut out = std::fs::File::create(path).unwrap();
    for (name, content, kind) in entries {
        out.write_all(header(name, content.len() as u64, *kind).as_bytes()).unwrap();
        out.write_all(content).unwrap();
        out.write_all(&vec![0; (512 - content.len() % 512) % 512]).unwrap();
    }
    out.write_all(&[0; 1024]).unwrap();
}

fn why(path: &Path) -> String {
    match Archive::open(path).err() {
        Some(Error::Archive { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_leads_out_is_a_link_or_is_there_twice_is_refused() {
    use tar::EntryType as Kind;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar");
    for (name, kind, expected) in [
        ("../../etc/passwd", Kind::Regular, "leads out"),
        ("blobs/../../x", Kind::Regular, "leads out"),
        ("/etc/passwd", Kind::Regular, "leads out"),
        ("./../x", Kind::Directory, "leads out"),
        ("blobs/sha256/x", Kind::Symlink, "neither a file"),
        ("blobs/sha256/x", Kind::Link, "neither a file"),
        ("x", Kind::Char, "neither a file"),
        ("x", Kind::GNULongName, "neither a file"),
    ] {
        file(&path, &[("index.json", b"{}", Kind::Regular), (name, b"", kind)]);
        let why = why(&path);
        assert!(why.contains(expected), "{name} {kind:?}: {why}");
    }
    file(&path, &[("a", b"1", Kind::Regular), ("./a", b"2", Kind::Regular)]);
    assert!(why(&path).contains("twice"));
    std::fs::write(&path, [0x1f, 0x8b, 8]).unwrap();
    assert!(why(&path).contains("compressed"));
    std::fs::write(&path, vec![b'x'; 4096]).unwrap();
    assert!(why(&path).contains("broken"));
}

#[test]
fn one_that_is_cut_off_is_refused_wherever_it_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar");
    file(&path, &[("index.json", &[b'x'; 1500], tar::EntryType::Regular)]);
    let whole = std::fs::read(&path).unwrap();
    for length in [100, 512, 513, 2011] {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert!(matches!(Archive::open(&path), Err(Error::Archive { .. })), "{length}");
    }
    let mut huge = header("index.json", 0, tar::EntryType::Regular);
    huge.set_size(u64::MAX);
    huge.set_cksum();
    std::fs::write(&path, huge.as_bytes()).unwrap();
    assert!(matches!(Archive::open(&path), Err(Error::Archive { .. })));
}

fn add(part: &mut Part, content: &[u8]) -> Digest {
    let (digest, size) = (Digest::of(content), content.len() as u64);
    part.begin(digest, size).unwrap();
    part.write(content).unwrap();
    part.commit(digest, size).unwrap();
    digest
}

#[test]
fn a_run_that_ended_is_taken_up_after_the_last_blob_that_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar");
    let mut part = Part::open(&path).unwrap();
    assert!(matches!(Part::open(&path), Err(Error::Busy { .. })), "two runs at once");
    let (one, two) = (add(&mut part, b"one"), add(&mut part, &[2; 1000]));
    part.begin(Digest::of(b"three"), 5).unwrap();
    part.write(b"thr").unwrap();
    drop(part);
    assert!(!path.exists(), "nothing is in its place before it is whole");

    let mut part = Part::open(&path).unwrap();
    assert!(part.has(one) && part.has(two) && !part.has(Digest::of(b"three")));
    let three = add(&mut part, b"three");
    part.finish(&[("index.json", b"{}".to_vec())]).unwrap();
    let archive = Archive::open(&path).unwrap();
    for (digest, size) in [(one, 3), (two, 1000), (three, 5)] {
        archive.check(digest, size).unwrap();
    }
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(matches!(Part::open(&path), Err(Error::Exists { .. })));
    // Other programs read it, and the same again is the same.
    let listed = std::process::Command::new("tar").arg("-tf").arg(&path).output().unwrap();
    assert!(listed.status.success() && listed.stdout.ends_with(b"index.json\n"), "{listed:?}");
}

#[test]
fn a_blob_of_an_ended_run_that_has_changed_is_fetched_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar");
    let mut part = Part::open(&path).unwrap();
    let (one, two) = (add(&mut part, b"one"), add(&mut part, b"two"));
    drop(part);
    let left = folder.path().join("a.tar.part");
    let mut bytes = std::fs::read(&left).unwrap();
    bytes[1024 + 512] ^= 1;
    std::fs::write(&left, bytes).unwrap();
    let part = Part::open(&path).unwrap();
    assert!(part.has(one) && !part.has(two));
}
