//! What etcd has on the disk, kept after it has ended, for others to start with. Deliberately not here: what is in it.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// What etcd's log is read in.
const PAGE: u64 = 4096;

/// Copies what an etcd that has ended has in its data folder. Its log has 64 MB, which it had reserved: the end that was never
/// written is left out.
///
/// # Errors
/// A file cannot be read or written.
pub(super) fn keep(data: &Path, to: &Path) -> io::Result<()> {
    for file in files(data)? {
        let copy = copy_file(data, &file, to)?;
        if copy.extension().is_some_and(|extension| extension == "wal") {
            let copy = File::options().read(true).write(true).open(&copy)?;
            copy.set_len(written(&copy)?)?;
        }
    }
    Ok(())
}

/// Has an etcd start with what was kept.
///
/// # Errors
/// A file cannot be read or written.
pub(super) fn restore(kept: &Path, data: &Path) -> io::Result<()> {
    files(kept)?.iter().try_for_each(|file| copy_file(kept, file, data).map(drop))
}

/// The files of a data folder, by their path in it: the store and the log, and nothing that is only reserved.
fn files(data: &Path) -> io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for folder in ["member/snap", "member/wal"] {
        for entry in fs::read_dir(data.join(folder))? {
            let name = PathBuf::from(entry?.file_name());
            if name.extension().is_none_or(|extension| extension != "tmp") {
                all.push(Path::new(folder).join(name));
            }
        }
    }
    Ok(all)
}

fn copy_file(from: &Path, file: &Path, to: &Path) -> io::Result<PathBuf> {
    let copy = to.join(file);
    if let Some(folder) = copy.parent() {
        // As etcd has them.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    fs::copy(from.join(file), &copy)?;
    Ok(copy)
}

/// How much of the log was written: up to the last page that has anything, and one more, at which etcd sees the end.
fn written(mut log: &File) -> io::Result<u64> {
    let length = log.metadata()?.len();
    let mut page = Vec::new();
    let mut end = length / PAGE;
    while end > 0 {
        log.seek(SeekFrom::Start((end - 1) * PAGE))?;
        page.clear();
        log.take(PAGE).read_to_end(&mut page)?;
        if page.iter().any(|byte| *byte != 0) {
            break;
        }
        end -= 1;
    }
    Ok(((end + 1) * PAGE).min(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_log_what_was_only_reserved_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        for name in ["member/snap", "member/wal"] {
            fs::create_dir_all(data.join(name)).unwrap();
        }
        fs::write(data.join("member/snap/db"), vec![0; 100_000]).unwrap();
        fs::write(data.join("member/wal/1.tmp"), vec![0; 100_000]).unwrap();
        let mut log = vec![0; 100_000];
        log[8_192] = 1;
        fs::write(data.join("member/wal/0.wal"), &log).unwrap();
        let (kept, again) = (folder.path().join("kept"), folder.path().join("again"));
        keep(&data, &kept).unwrap();
        restore(&kept, &again).unwrap();
        let length = |file: &str| fs::metadata(again.join(file)).map(|file| file.len());
        assert_eq!(length("member/snap/db").unwrap(), 100_000, "nothing is cut off it");
        assert_eq!(length("member/wal/0.wal").unwrap(), 4 * PAGE);
        assert_eq!(fs::read(again.join("member/wal/0.wal")).unwrap(), log[..4 * 4096]);
        assert!(length("member/wal/1.tmp").is_err());
        assert!(keep(&folder.path().join("none"), &kept).is_err());
    }
}
