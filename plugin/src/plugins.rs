//! Other programs on PATH that kubectl takes for parts of this one. kubectl looks for the longest
//! name first: `kubectl opensdn policy test` runs `kubectl-opensdn-policy-test` if that is there.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What the names of our parts begin with.
const PREFIX: &str = "kubectl-opensdn";

/// A program on PATH whose name begins like ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct External {
    /// The words after `kubectl opensdn` with which kubectl runs it; none: it has our own name.
    pub(crate) words: Vec<String>,
    /// Where it is.
    pub(crate) path: PathBuf,
}

/// Every such program in the folders, the one that is found first only.
pub(crate) fn found_in(path: &OsStr) -> Vec<External> {
    let mut found: Vec<External> = Vec::new();
    for folder in std::env::split_paths(path) {
        // A folder of PATH that is not there, or may not be read, has nothing to run either.
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut here: Vec<External> = entries
            .flatten()
            .filter_map(|entry| {
                let words = words(entry.file_name().to_str()?)?;
                let path = entry.path();
                executable(&path).then_some(External { words, path })
            })
            .collect();
        here.sort_by(|one, other| one.words.cmp(&other.words));
        for external in here {
            if !found.iter().any(|before| before.words == external.words) {
                found.push(external);
            }
        }
    }
    found
}

/// The words of a file's name, where it is a part of ours.
fn words(name: &str) -> Option<Vec<String>> {
    let name = name.strip_suffix(std::env::consts::EXE_SUFFIX).unwrap_or(name);
    let rest = name.strip_prefix(PREFIX)?;
    match rest.strip_prefix('-') {
        None if rest.is_empty() => Some(Vec::new()),
        None => None,
        // kubectl writes a dash within a name as an underscore.
        Some(rest) => Some(rest.split('-').map(|word| word.replace('_', "-")).collect()),
    }
}

#[cfg(unix)]
fn executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn executable(path: &Path) -> bool {
    path.is_file()
}

/// Of the programs, those that kubectl runs in the place of what `command` can do itself.
pub(crate) fn shadows<'a>(
    externals: &'a [External],
    command: &clap::Command,
) -> impl Iterator<Item = &'a External> {
    let command = command.clone();
    externals.iter().filter(move |external| {
        let mut within = &command;
        !external.words.is_empty()
            && external.words.iter().all(|word| match within.find_subcommand(word) {
                Some(next) => {
                    within = next;
                    true
                }
                None => false,
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &Path, name: &str, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.join(name);
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn finds_the_programs_that_kubectl_would_run() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        put(one.path(), "kubectl-opensdn-version", 0o755);
        put(one.path(), "kubectl-opensdn-notes", 0o644);
        put(one.path(), "kubectl-opensdnx", 0o755);
        put(two.path(), "kubectl-opensdn-version", 0o755);
        put(two.path(), "kubectl-opensdn-policy-dry_run", 0o755);
        let path = std::env::join_paths([one.path(), Path::new("/nowhere"), two.path()]).unwrap();
        let found = found_in(&path);
        let [version, policy] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(version.path, one.path().join("kubectl-opensdn-version"));
        assert_eq!(policy.words, ["policy", "dry-run"]);
    }

    #[test]
    fn only_a_program_that_stands_for_a_whole_command_shadows() {
        let command = clap::Command::new("opensdn")
            .subcommand(clap::Command::new("policy").subcommand(clap::Command::new("test")));
        let external = |words: &[&str]| External {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            path: PathBuf::new(),
        };
        let all = [
            external(&[]),
            external(&["policy"]),
            external(&["policy", "test"]),
            external(&["policy", "other"]),
            external(&["other"]),
        ];
        let shadows: Vec<usize> =
            shadows(&all, &command).map(|shadow| shadow.words.len()).collect();
        assert_eq!(shadows, [1, 2]);
    }
}
