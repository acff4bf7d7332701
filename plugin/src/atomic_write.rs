//! A file that is replaced as a whole: a reader sees the old text or the new one, never a
//! part, also when the machine stops in between. What the text is, is not known here.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::Path;

/// Puts the text in the place of the file, or makes it. A link stays one: what it points to is
/// replaced. Permissions and, where that is allowed, the owner stay what they are.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    // A device or a pipe is written to: a file in its place would be none.
    if fs::metadata(&target).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return fs::OpenOptions::new().write(true).open(&target)?.write_all(text);
    }
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let new = target.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let written = write(&new, text, fs::metadata(&target).ok().as_ref())
        .and_then(|()| fs::rename(&new, &target));
    if written.is_err() {
        // The error to report is the first one, not what became of the clean-up.
        let _ = fs::remove_file(&new);
    }
    written
}

fn write(path: &Path, text: &[u8], like: Option<&Metadata>) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text)?;
    if let Some(like) = like {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            // Only root may give a file away; for others it is theirs already, or becomes theirs.
            let _ = std::os::unix::fs::chown(path, Some(like.uid()), Some(like.gid()));
        }
        file.set_permissions(like.permissions())?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_pipe_stays_one_and_gets_the_text() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let path = pipe.clone();
        let reader = std::thread::spawn(move || fs::read_to_string(path).unwrap());
        replace(&pipe, b"text").unwrap();
        assert_eq!(reader.join().unwrap(), "text");
        assert!(!fs::metadata(&pipe).unwrap().is_file());
    }

    #[test]
    fn a_link_stays_one_and_permissions_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let names = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 2, "nothing is left behind");
    }

    #[test]
    fn a_folder_that_may_not_be_written_to_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gone").join("file");
        assert!(replace(&file, b"new").is_err());
        assert!(!file.exists());
    }
}
