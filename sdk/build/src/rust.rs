//! From packages in Rust to core modules: one call of cargo, with everything that depends on the
//! folder taken out.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::Deserialize;

use crate::{Build, BuildError, Component, TARGET, component::encode};

/// The profile that policies are built with: fast, small, and no bytes for what never happens.
const PROFILE: [&str; 6] = [
    "inherits=\"release\"",
    "opt-level=3",
    "lto=\"fat\"",
    "codegen-units=1",
    "panic=\"abort\"",
    "strip=true",
];

impl Build<'_> {
    /// Builds the packages, in the order of their names in the list.
    ///
    /// # Errors
    /// A package does not compile, or is no policy.
    pub fn run(&self) -> Result<Vec<Component>, BuildError> {
        let modules = self.compile()?;
        let component = |package: &String| {
            let file = modules.join(format!("{}.wasm", package.replace('-', "_")));
            let module = fs::read(&file).map_err(|error| BuildError::Read(file, error))?;
            let bytes = encode(&module)
                .map_err(|cause| BuildError::Component { package: package.clone(), cause })?;
            Ok(Component { package: package.clone(), bytes })
        };
        self.packages.iter().map(component).collect()
    }

    /// The folder with the modules.
    fn compile(&self) -> Result<PathBuf, BuildError> {
        let workspace = fs::canonicalize(self.workspace)
            .map_err(|error| BuildError::Read(self.workspace.to_owned(), error))?;
        let sysroot = sysroot(&workspace)?;
        if !sysroot.join("lib/rustlib").join(TARGET).join("lib").is_dir() {
            return Err(BuildError::Target);
        }
        let flags = reproducible_flags(&workspace, &sysroot)?;
        let mut cargo = Command::new(self.cargo);
        forget_the_outer_cargo(&mut cargo);
        cargo
            .current_dir(&workspace)
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
            .env("CARGO_BUILD_BUILD_DIR", self.target)
            // The standard output of who calls this is its own.
            .stdout(Stdio::from(std::io::stderr()))
            .args(["build", "--quiet", "--lib", "--profile", "policy", "--target", TARGET])
            .arg("--target-dir")
            .arg(self.target);
        for setting in PROFILE {
            cargo.arg("--config").arg(format!("profile.policy.{setting}"));
        }
        for package in self.packages {
            cargo.args(["--package", package]);
        }
        let status =
            cargo.status().map_err(|error| BuildError::Run(self.cargo.to_owned(), error))?;
        if !status.success() {
            return Err(BuildError::Compile);
        }
        Ok(self.target.join(TARGET).join("policy"))
    }
}

/// Folders of packages that the one in `project` is built with and that are outside of it. Their
/// paths go into the module, so it has another digest on another machine.
///
/// # Errors
/// Cargo cannot say.
pub fn folders_outside(project: &Path, cargo: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let project =
        fs::canonicalize(project).map_err(|error| BuildError::Read(project.to_owned(), error))?;
    let refused = |cause| BuildError::Metadata(project.clone(), cause);
    let mut command = Command::new(cargo);
    forget_the_outer_cargo(&mut command);
    let output = command
        .current_dir(&project)
        .args(["metadata", "--format-version", "1", "--quiet", "--filter-platform", TARGET])
        .output()
        .map_err(|error| BuildError::Run(cargo.to_owned(), error))?;
    if !output.status.success() {
        return Err(refused(String::from_utf8_lossy(&output.stderr).trim().into()));
    }
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).map_err(|error| refused(error.into()))?;
    let ours = metadata.packages.into_iter().filter(|package| package.source.is_none());
    let folders = ours.filter_map(|package| package.manifest_path.parent().map(Path::to_owned));
    Ok(folders.filter(|folder| !folder.starts_with(&project)).collect())
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    /// None where the package is a folder of this machine.
    source: Option<String>,
    manifest_path: PathBuf,
}

/// What a cargo, clippy or rustdoc around this one set for themselves must not reach it.
fn forget_the_outer_cargo(cargo: &mut Command) {
    const FLAGS: [&str; 5] =
        ["RUSTFLAGS", "RUSTC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CLIPPY_ARGS"];
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let outer = text.starts_with("CARGO_") && text != "CARGO_HOME" && text != "CARGO_MAKEFLAGS";
        if outer || FLAGS.contains(&text.as_ref()) {
            cargo.env_remove(&name);
        }
    }
}

fn sysroot(workspace: &Path) -> Result<PathBuf, BuildError> {
    let rustc = PathBuf::from(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let output = Command::new(&rustc)
        .current_dir(workspace)
        .args(["--print", "sysroot"])
        .output()
        .map_err(|error| BuildError::Run(rustc, error))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().into())
}

/// Bytes of a policy's stack. All memory that an instance begins with is set up again for each
/// evaluation, and a mebibyte, which is what the linker gives, takes longer than most policies run.
/// This is enough to read and walk JSON as deep as the parser takes it (a test sends such objects).
const STACK: u32 = 64 * 1024;

/// Bytes beyond its data that a module begins with, whole pages: most evaluations need no more. What it begins
/// with is cleared each time, what it asks for later costs the host a change of protection.
const HEAP: u32 = 64 * 1024;

/// Takes every absolute path out of the modules (panic messages carry some).
fn reproducible_flags(workspace: &Path, sysroot: &Path) -> Result<Vec<String>, BuildError> {
    Ok(vec![
        format!("--remap-path-prefix={}=/rust", sysroot.display()),
        format!("--remap-path-prefix={}=/cargo", cargo_home()?.display()),
        format!("--remap-path-prefix={}=/opensdn", workspace.display()),
        format!("-Clink-arg=-zstack-size={STACK}"),
        format!("-Clink-arg=--initial-heap={HEAP}"),
    ])
}

fn cargo_home() -> Result<PathBuf, BuildError> {
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        return Ok(home.into());
    }
    let home = std::env::var_os("HOME").ok_or(BuildError::CargoHome)?;
    Ok(Path::new(&home).join(".cargo"))
}
