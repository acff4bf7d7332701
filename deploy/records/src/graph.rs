//! The packages that are linked into a program, and which of them uses which, as `cargo tree` says:
//! without what only builds, tests or derives.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package that has the built-in policies in it, as data. Each is a package in a folder beside its
/// own.
const BUILT_IN_POLICIES: &str = "opensdn-policies";
/// What policies are compiled for.
const POLICY_TARGET: &str = "wasm32-unknown-unknown";
/// Name, version and place; then the licence.
const FORMAT: &str = "{p}\t{l}";

/// Why it is not known what is linked.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// Cargo cannot be started.
    #[error("run cargo tree")]
    Run(#[source] io::Error),
    /// Cargo has refused.
    #[error("ask cargo for what is linked into {package}: {said}")]
    Refused {
        /// Of this package.
        package: String,
        /// What Cargo said.
        said: String,
    },
    /// Another Cargo may write other lines.
    #[error("read the line {0:?} of cargo tree")]
    Line(String),
    /// The folder with the policies.
    #[error("list the policies in {}", .0.display())]
    Policies(PathBuf, #[source] io::Error),
}

/// A package by name and version. There are never two of both from different sources here, which
/// cargo-deny sees to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// What is linked of it, and into what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Package {
    /// As an SPDX expression.
    pub licence: String,
    /// A folder of this workspace; none for one of a registry.
    pub folder: Option<PathBuf>,
    /// Targets that it was compiled for.
    pub targets: BTreeSet<String>,
    /// What it uses.
    pub uses: BTreeSet<Id>,
}

/// All that is linked into a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The program's own package.
    pub root: Id,
    /// It, and everything that it uses.
    pub packages: BTreeMap<Id, Package>,
}

impl Graph {
    /// Asks the Cargo of the environment about a package of the workspace in `folder`.
    ///
    /// # Errors
    /// Cargo cannot say.
    pub fn of(folder: &Path, package: &str, target: &str) -> Result<Self, GraphError> {
        let said = tree(folder, &[package.to_owned()], target)?;
        let mut packages = BTreeMap::new();
        let roots = add(&mut packages, &said, target)?;
        let root = roots.into_iter().next().ok_or(GraphError::Line(said))?;
        let mut graph = Self { root, packages };
        graph.add_policies(folder)?;
        Ok(graph)
    }

    fn add_policies(&mut self, folder: &Path) -> Result<(), GraphError> {
        let built_in = self.packages.iter().find(|(id, _)| id.name == BUILT_IN_POLICIES);
        let Some((id, Package { folder: Some(place), .. })) = built_in else { return Ok(()) };
        let (id, policies) = (id.clone(), policies_beside(place)?);
        let said = tree(folder, &policies, POLICY_TARGET)?;
        let roots = add(&mut self.packages, &said, POLICY_TARGET)?;
        if let Some(package) = self.packages.get_mut(&id) {
            package.uses.extend(roots);
        }
        Ok(())
    }
}

/// The names of the packages in the folders beside this one, which are those of the folders.
fn policies_beside(folder: &Path) -> Result<Vec<String>, GraphError> {
    let above = folder.parent().unwrap_or(folder);
    let entries = std::fs::read_dir(above).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(|error| GraphError::Policies(above.to_owned(), error))?;
    let paths = entries.into_iter().map(|entry| entry.path());
    let others = paths.filter(|path| path != folder && path.join("Cargo.toml").is_file());
    let mut names: Vec<String> =
        others.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect();
    names.sort();
    Ok(names)
}

fn tree(folder: &Path, packages: &[String], target: &str) -> Result<String, GraphError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(folder).args(["tree", "--quiet", "--locked", "--target", target]);
    command.args(["--edges", "normal,no-proc-macro", "--prefix", "depth", "--format", FORMAT]);
    for package in packages {
        command.args(["--package", package]);
    }
    let output = command.output().map_err(GraphError::Run)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(GraphError::Refused { package: packages.join(", "), said })
}

/// Adds what Cargo said; returns the packages that were asked about.
fn add(
    packages: &mut BTreeMap<Id, Package>,
    said: &str,
    target: &str,
) -> Result<Vec<Id>, GraphError> {
    let mut roots = Vec::new();
    // From a root to the line before, each with its depth.
    let mut above: Vec<(usize, Id)> = Vec::new();
    for line in said.lines().filter(|line| !line.is_empty()) {
        let Line { depth, id, licence, folder } =
            parse(line).ok_or_else(|| GraphError::Line(line.to_owned()))?;
        above.retain(|(other, _)| *other < depth);
        match above.last().and_then(|(_, user)| packages.get_mut(user)) {
            Some(user) => {
                user.uses.insert(id.clone());
            }
            None => roots.push(id.clone()),
        }
        let package = packages.entry(id.clone()).or_default();
        package.licence = licence;
        package.folder = folder;
        package.targets.insert(target.to_owned());
        above.push((depth, id));
    }
    Ok(roots)
}

struct Line {
    depth: usize,
    id: Id,
    licence: String,
    folder: Option<PathBuf>,
}

/// `12name v1.2.3 (/folder)\tLicence (*)`, where the star says that what it uses stands further up.
fn parse(line: &str) -> Option<Line> {
    let name_at = line.find(|one: char| !one.is_ascii_digit())?;
    let (depth, rest) = line.split_at_checked(name_at)?;
    let (package, licence) = rest.split_once('\t')?;
    let mut words = package.splitn(3, ' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    let folder = words.next().and_then(|text| text.strip_prefix('(')?.strip_suffix(')'));
    Some(Line {
        depth: depth.parse().ok()?,
        id: Id { name: name.to_owned(), version: version.to_owned() },
        // As Cargo allowed it before there were expressions.
        licence: licence.trim_end_matches(" (*)").replace('/', " OR "),
        folder: folder.map(PathBuf::from),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str, version: &str) -> Id {
        Id { name: name.to_owned(), version: version.to_owned() }
    }

    #[test]
    fn what_uses_what_is_read_from_the_depths() {
        let said = "0ours v0.1.0 (/work/ours)\tApache-2.0\n1one v1.0.0\tMIT/Apache-2.0\n\
                    2deep v0.3.0+sys\tMIT\n1two v2.0.0\tMIT\n2one v1.0.0\tMIT/Apache-2.0 (*)\n\
                    \n0other v0.1.0 (/work/other)\tApache-2.0\n1two v2.0.0\tMIT (*)\n";
        let mut packages = BTreeMap::new();
        let roots = add(&mut packages, said, "there").unwrap();
        assert_eq!(roots, [id("ours", "0.1.0"), id("other", "0.1.0")]);
        let uses = |name: &str, version: &str| {
            let package = packages.get(&id(name, version)).unwrap();
            package.uses.iter().map(|one| one.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(uses("ours", "0.1.0"), ["one", "two"]);
        assert_eq!(uses("one", "1.0.0"), ["deep"]);
        assert_eq!(uses("two", "2.0.0"), ["one"]);
        assert_eq!(uses("other", "0.1.0"), ["two"]);
        assert_eq!(uses("deep", "0.3.0+sys"), Vec::<String>::new());
        let one = packages.get(&id("one", "1.0.0")).unwrap();
        assert_eq!((one.licence.as_str(), &one.folder), ("MIT OR Apache-2.0", &None));
        let ours = packages.get(&id("ours", "0.1.0")).unwrap();
        assert_eq!(ours.folder.as_deref(), Some(Path::new("/work/ours")));
    }

    #[test]
    fn a_line_of_another_form_is_an_error_and_no_package_less() {
        for line in ["0ours 0.1.0\tMIT", "ours v0.1.0\tMIT", "0ours v0.1.0", "0ours"] {
            assert!(add(&mut BTreeMap::new(), line, "there").is_err(), "{line}");
        }
    }
}
