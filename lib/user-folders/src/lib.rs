//! Where a user's files are, by the XDG Base Directory Specification. Deliberately not here: what is
//! in them, and whether they exist.

use std::ffi::OsString;
use std::path::PathBuf;

/// The folder of OpenSDN's programs for what can be made again: `opensdn` in `$XDG_CACHE_HOME`, else in
/// `~/.cache`. Nothing where there is no home.
#[must_use]
pub fn cache() -> Option<PathBuf> {
    Some(folder("XDG_CACHE_HOME", ".cache", |name| std::env::var_os(name))?.join("opensdn"))
}

/// The folder with a folder of configuration for each program: `$XDG_CONFIG_HOME`, else `~/.config`.
/// Nothing where there is no home.
#[must_use]
pub fn configuration() -> Option<PathBuf> {
    folder("XDG_CONFIG_HOME", ".config", |name| std::env::var_os(name))
}

/// The folder that `name` names, else the one of that name in the home. The specification has
/// relative paths ignored, and an empty one is relative.
fn folder(
    name: &str,
    in_home: &str,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(name).or_else(|| Some(absolute("HOME")?.join(in_home)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_wins_over_the_home_unless_it_is_relative() {
        let cache = |home: Option<&str>, named: Option<&str>| {
            let variable = |name: &str| if name == "HOME" { home } else { named };
            folder("XDG_CACHE_HOME", ".cache", |name| variable(name).map(OsString::from))
        };
        assert_eq!(cache(Some("/h"), Some("/c")), Some("/c".into()));
        assert_eq!(cache(Some("/h"), None), Some("/h/.cache".into()));
        for relative in ["", "c", "./c"] {
            assert_eq!(cache(Some("/h"), Some(relative)), Some("/h/.cache".into()), "{relative:?}");
        }
        assert_eq!(cache(None, None), None);
        assert_eq!(cache(Some("h"), None), None);
    }
}
