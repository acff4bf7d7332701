//! How a policy is named on the command line, one grammar for all verbs, and the bytes that it
//! names. Deliberately not here: compiling them.

use std::borrow::Cow;
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use opensdn_policy_host::Digest;

use crate::exit::{Exit, Failure};

/// Where `policy build` leaves a component, seen from the project's folder.
pub(crate) const BUILD_FOLDER: &str = "build";

/// A module larger than this is none: the largest, of Python, are 20 MiB.
pub(super) const MAX_BYTES: u64 = 256 << 20;

/// The shortest beginning of a digest that names a policy.
const MIN_DIGITS: usize = 4;

/// What a reference names.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    pub(crate) origin: Origin,
    pub(crate) bytes: Cow<'static, [u8]>,
    /// The version that was asked for.
    pub(crate) version: Option<String>,
}

/// Where a module comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It is part of this program.
    BuiltIn(&'static str),
    /// A file.
    File(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(name) => write!(formatter, "built-in {name}"),
            Self::File(path) => write!(formatter, "{}", path.display()),
        }
    }
}

impl Module {
    /// What the reference names; without one, what `policy build` left in the project.
    ///
    /// # Errors
    /// It names nothing, or the file cannot be read.
    pub(crate) fn find(reference: Option<&str>) -> Result<Self, Failure> {
        let Some(reference) = reference else { return of_project(Path::new(".")) };
        if reference.starts_with("oci://") {
            let hint = "pull the module with your registry's client and name the file";
            let message = "policies cannot be taken from a registry yet";
            return Err(Failure::new(Exit::Usage, "not-supported", message, hint));
        }
        if let Some(digits) = reference.strip_prefix("sha256:") {
            return by_digest(digits);
        }
        let path = Path::new(reference);
        if path.is_dir() {
            return of_project(path);
        }
        let looks_like_path = reference.contains('/') || reference.ends_with(".wasm");
        if looks_like_path || path.is_file() {
            return read(path);
        }
        by_name(reference)
    }

    /// The digest of its bytes.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }

    /// The name of the policy, if it is built in.
    pub(crate) fn built_in(&self) -> Option<&'static str> {
        match self.origin {
            Origin::BuiltIn(name) => Some(name),
            Origin::File(_) => None,
        }
    }

    fn of_built_in(policy: &'static opensdn_policies::BuiltIn) -> Self {
        Self {
            origin: Origin::BuiltIn(policy.name),
            bytes: Cow::Borrowed(policy.bytes),
            version: None,
        }
    }
}

fn read(path: &Path) -> Result<Module, Failure> {
    let failed = |error: std::io::Error| {
        let message = format!("{} cannot be read", path.display());
        let hint =
            "name a component that `kubectl opensdn policy build` made, or a built-in policy";
        Failure::new(Exit::Usage, "unreadable-file", message, hint).because(&error)
    };
    let file = fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("{} is larger than {} MiB", path.display(), MAX_BYTES >> 20);
        let hint = "is this the component that `kubectl opensdn policy build` made?";
        return Err(Failure::new(Exit::Usage, "unreadable-file", message, hint));
    }
    Ok(Module { origin: Origin::File(path.to_owned()), bytes: Cow::Owned(bytes), version: None })
}

/// The one component in the build folder.
fn of_project(project: &Path) -> Result<Module, Failure> {
    let folder = project.join(BUILD_FOLDER);
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let is_component = |path: &PathBuf| path.extension().is_some_and(|end| end == "wasm");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_component).collect();
    found.sort();
    match found.as_slice() {
        [one] => read(one.strip_prefix(".").unwrap_or(one)),
        [] => {
            let message = format!("there is no component in {}", shown(&folder));
            let hint =
                "build it: kubectl opensdn policy build; or name a policy, such as even-quorum";
            Err(Failure::new(Exit::Usage, "no-component", message, hint))
        }
        many => {
            let names: Vec<String> = many.iter().map(|path| shown(path)).collect();
            let message = format!("there are several components: {}", names.join(", "));
            Err(Failure::new(Exit::Usage, "ambiguous-policy", message, "name one of them"))
        }
    }
}

fn shown(path: &Path) -> String {
    path.strip_prefix(".").unwrap_or(path).display().to_string()
}

fn by_digest(digits: &str) -> Result<Module, Failure> {
    let unknown = |message: String| {
        let hint = "a digest finds built-in policies only; name the file of any other";
        Failure::new(Exit::Usage, "unknown-policy", message, hint)
    };
    if digits.len() < MIN_DIGITS || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        let message = format!("sha256:{digits} is not the beginning of a digest");
        let hint = format!("give at least {MIN_DIGITS} hexadecimal digits");
        return Err(Failure::new(Exit::Usage, "unknown-policy", message, hint));
    }
    let wanted = format!("sha256:{}", digits.to_ascii_lowercase());
    let has_it = |policy: &&opensdn_policies::BuiltIn| {
        Digest::of(policy.bytes).to_string().starts_with(&wanted)
    };
    let found: Vec<_> = opensdn_policies::ALL.iter().filter(has_it).collect();
    match found.as_slice() {
        [one] => Ok(Module::of_built_in(one)),
        [] => Err(unknown(format!("no built-in policy has a digest that begins with {wanted}"))),
        many => {
            let names: Vec<&str> = many.iter().map(|policy| policy.name).collect();
            Err(unknown(format!("{wanted} is the beginning of {}", names.join(" and "))))
        }
    }
}

fn by_name(reference: &str) -> Result<Module, Failure> {
    let (name, version) = match reference.split_once('@') {
        Some((name, version)) => (name, Some(version.to_owned())),
        None => (reference, None),
    };
    if let Some(policy) = opensdn_policies::find(name) {
        return Ok(Module { version, ..Module::of_built_in(policy) });
    }
    let names: Vec<&str> = opensdn_policies::ALL.iter().map(|policy| policy.name).collect();
    let message = format!("{name} is neither a file nor a built-in policy");
    let hint = match nearest(name, &names) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("the built-in policies are {}", names.join(", ")),
    };
    Err(Failure::new(Exit::Usage, "unknown-policy", message, hint))
}

/// The candidate that was probably meant.
fn nearest<'n>(word: &str, candidates: &[&'n str]) -> Option<&'n str> {
    let far = word.chars().count().max(3) / 2;
    let distance = |candidate: &&'n str| (strsim::damerau_levenshtein(word, candidate), *candidate);
    let near = candidates.iter().map(distance).min()?;
    (near.0 <= far).then_some(near.1)
}

#[cfg(test)]
mod tests {
    use opensdn_policy_host::Digest;

    use super::{Module, Origin};

    fn hint(reference: &str) -> String {
        let failure = Module::find(Some(reference)).unwrap_err();
        format!("{}: {}", failure.message, failure.hint)
    }

    #[test]
    fn a_name_a_version_and_a_digest_name_a_built_in_policy() {
        let module = Module::find(Some("even-quorum@0.1.0")).unwrap();
        assert_eq!(module.origin, Origin::BuiltIn("even-quorum"));
        assert_eq!(module.version.as_deref(), Some("0.1.0"));
        let digest = Digest::of(&module.bytes).to_string();
        let found = Module::find(digest.get(..20)).unwrap();
        assert_eq!(found.origin, module.origin);
    }

    #[test]
    fn a_wrong_reference_is_answered_with_what_to_do() {
        assert!(hint("evn-quorum").ends_with("did you mean even-quorum?"));
        assert!(hint("zzzzzzzzzzzzzzz").contains("the built-in policies are"));
        assert!(hint("oci://registry/policy:1").contains("cannot be taken from a registry yet"));
        assert!(hint("sha256:12").contains("at least 4"));
        assert!(hint("sha256:zzzz").contains("not the beginning"));
        assert!(hint("./absent.wasm").contains("cannot be read"));
    }

    #[test]
    fn the_component_of_a_project_is_found_if_there_is_one() {
        let project = tempfile::tempdir().unwrap();
        let place = project.path().to_str().unwrap();
        assert_eq!(Module::find(Some(place)).unwrap_err().code, "no-component");
        std::fs::create_dir(project.path().join("build")).unwrap();
        std::fs::write(project.path().join("build/a.wasm"), "x").unwrap();
        assert_eq!(&*Module::find(Some(place)).unwrap().bytes, b"x");
        std::fs::write(project.path().join("build/b.wasm"), "y").unwrap();
        assert_eq!(Module::find(Some(place)).unwrap_err().code, "ambiguous-policy");
    }
}
