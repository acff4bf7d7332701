//! Embeds the templates and the SDK's source. Of the workspace's own manifest and lock file only
//! what the SDK needs is taken, so that versions are in one place and a new project begins with
//! those that were tested here.

use std::{
    collections::BTreeSet,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// The SDK's folders and files, below `sdk`.
const SDK: [&str; 5] = ["derive/Cargo.toml", "derive/src", "guest/Cargo.toml", "guest/src", "wit"];

/// What a policy in Rust depends on; the rest of the lock file follows from that.
const ROOTS: [&str; 2] = ["opensdn-policy-sdk", "serde"];

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    // Cargo runs this in the crate's folder. Paths stay relative to it, so that the same sources in
    // another clone are no change.
    let here = PathBuf::from(".");
    let (sdk, root) = (Path::new(".."), Path::new("../.."));
    let out = PathBuf::from(std::env::var("OUT_DIR")?);

    let mut table = String::new();
    for language in ["c", "javascript", "python", "rust"] {
        let files = files_below(&here.join(language))?;
        constant(&mut table, &language.to_uppercase(), &here.join(language), &files)?;
    }
    let mut files = Vec::new();
    for part in SDK {
        let path = sdk.join(part);
        if path.is_dir() { files.extend(files_below(&path)?) } else { files.push(path) }
    }
    constant(&mut table, "SDK", sdk, &files)?;
    fs::write(out.join("files.rs"), table)?;

    println!("cargo::rerun-if-changed=../../Cargo.toml");
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    fs::write(out.join("sdk-workspace.toml"), sdk_workspace(&manifest)?)?;
    let lock = fs::read_to_string(root.join("Cargo.lock"))?;
    fs::write(out.join("Cargo.lock"), locked_for(&lock, &ROOTS))?;
    Ok(())
}

fn files_below(folder: &Path) -> Outcome<Vec<PathBuf>> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { files.extend(files_below(&path)?) } else { files.push(path) }
    }
    files.sort();
    Ok(files)
}

fn constant(table: &mut String, name: &str, below: &Path, files: &[PathBuf]) -> Outcome<()> {
    writeln!(table, "pub(crate) const {name}: &[File] = &[")?;
    for file in files {
        let path = file.strip_prefix(below)?;
        let text = fs::read_to_string(file)?;
        writeln!(table, "    File {{ path: {path:?}, text: {text:?} }},")?;
    }
    writeln!(table, "];")?;
    Ok(())
}

/// The manifest of a workspace of the SDK's crates alone, with what they inherit.
fn sdk_workspace(manifest: &str) -> Outcome<String> {
    let wanted = dependencies_of_sdk()?;
    let mut text = String::from(
        "# The OpenSDN policy SDK, as `kubectl opensdn policy new` carries it.\n\
         [workspace]\nresolver = \"3\"\nmembers = [\"derive\", \"guest\"]\n",
    );
    let mut table = "";
    for line in manifest.lines().filter(|line| !line.trim_start().starts_with('#')) {
        if line.starts_with('[') {
            table = line;
        }
        let taken = match table {
            "[workspace.dependencies]" => {
                let name = line.split([' ', '=']).next().unwrap_or_default();
                line.starts_with('[') || wanted.contains(name)
            }
            "[workspace.package]" => true,
            lints => lints.starts_with("[workspace.lints"),
        };
        if taken && !line.is_empty() {
            let gap = if line.starts_with('[') { "\n" } else { "" };
            // Its crates are beside each other, without the folder that they have here.
            writeln!(text, "{gap}{}", line.replace("path = \"sdk/", "path = \""))?;
        }
    }
    Ok(text)
}

/// Names that the SDK's crates inherit.
fn dependencies_of_sdk() -> Outcome<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for manifest in ["../derive/Cargo.toml", "../guest/Cargo.toml"] {
        for line in fs::read_to_string(manifest)?.lines() {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if line.contains("workspace") && !name.is_empty() && !name.starts_with('[') {
                names.insert(name.to_owned());
            }
        }
    }
    Ok(names)
}

/// The entries of a lock file that the named packages need.
fn locked_for(lock: &str, roots: &[&str]) -> String {
    let mut parts = lock.split("[[package]]\n");
    let head = parts.next().unwrap_or_default();
    let packages: Vec<&str> = parts.map(str::trim_end).collect();
    let mut wanted: BTreeSet<String> = roots.iter().map(|name| (*name).to_owned()).collect();
    let mut reached = 0;
    while reached != wanted.len() {
        reached = wanted.len();
        let found = packages.iter().filter(|package| is_wanted(package, &wanted));
        let needed: Vec<String> = found.flat_map(|package| dependencies(package)).collect();
        wanted.extend(needed);
    }
    let mut text = format!("{}\n", head.trim_end());
    for package in packages.into_iter().filter(|package| is_wanted(package, &wanted)) {
        text.push_str("\n[[package]]\n");
        text.push_str(package);
        text.push('\n');
    }
    text
}

/// A dependency is written as `name`, or as `name version` where there are several.
fn is_wanted(package: &str, wanted: &BTreeSet<String>) -> bool {
    let value = |key: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(key));
        line.map(|text| text.trim_matches('"').to_owned()).unwrap_or_default()
    };
    let (name, version) = (value("name = "), value("version = "));
    wanted.contains(&format!("{name} {version}")) || wanted.contains(&name)
}

fn dependencies(package: &str) -> impl Iterator<Item = String> {
    let list = package.split_once("dependencies = [").map(|(_, rest)| rest).unwrap_or_default();
    list.lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.split('"').next())
        .map(str::to_owned)
}
