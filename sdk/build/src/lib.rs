//! Builds policies written in Rust to WebAssembly components.
//!
//! The bytes do not depend on the folder that they are built in: a digest that an administrator
//! pinned must be the digest of the next build of the same source. Deliberately not here: which
//! packages are policies, and what becomes of the components.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use wit_component::ComponentEncoder;

/// What policies are compiled for.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Why there is no component.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A folder or file cannot be used.
    #[error("read {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// A program cannot be started, or says nothing of use.
    #[error("run {}; is Rust installed, and `cargo` in the PATH?", .0.display())]
    Run(PathBuf, #[source] io::Error),
    /// Neither `CARGO_HOME` nor `HOME` says where cargo keeps its sources.
    #[error("find cargo's folder; set HOME or CARGO_HOME")]
    CargoHome,
    /// The compiler has said why.
    #[error(
        "compile for {TARGET}, the compiler says why above; if the target is missing: rustup target add {TARGET}"
    )]
    Compile,
    /// What was compiled does not fit the contract.
    #[error("make a component of {package}; does it end with `policy!`?")]
    Component {
        /// Name of the package.
        package: String,
        /// What the encoder says.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// What to build, and where.
#[derive(Clone, Copy, Debug)]
pub struct Build<'a> {
    /// The workspace that the packages are in. It has the profile `policy`.
    pub workspace: &'a Path,
    /// The cargo to build with.
    pub cargo: &'a Path,
    /// Where cargo keeps what it has built.
    pub target: &'a Path,
    /// Names of the packages. They share the features of their dependencies, so another list may
    /// give other bytes.
    pub packages: &'a [String],
}

/// A policy that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Name of the package.
    pub package: String,
    /// The component.
    pub bytes: Vec<u8>,
}

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
            let bytes = componentize(&module)
                .map_err(|cause| BuildError::Component { package: package.clone(), cause })?;
            Ok(Component { package: package.clone(), bytes })
        };
        self.packages.iter().map(component).collect()
    }

    /// The folder with the modules.
    fn compile(&self) -> Result<PathBuf, BuildError> {
        let workspace = fs::canonicalize(self.workspace)
            .map_err(|error| BuildError::Read(self.workspace.to_owned(), error))?;
        let mut cargo = Command::new(self.cargo);
        forget_the_outer_cargo(&mut cargo);
        cargo
            .current_dir(&workspace)
            .env("CARGO_ENCODED_RUSTFLAGS", reproducible_flags(&workspace)?.join("\u{1f}"))
            .env("CARGO_BUILD_BUILD_DIR", self.target)
            .args(["build", "--quiet", "--lib", "--profile", "policy", "--target", TARGET])
            .arg("--target-dir")
            .arg(self.target);
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

/// Takes every absolute path out of the modules (panic messages carry some).
fn reproducible_flags(workspace: &Path) -> Result<Vec<String>, BuildError> {
    let rustc = PathBuf::from(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let output = Command::new(&rustc)
        .current_dir(workspace)
        .args(["--print", "sysroot"])
        .output()
        .map_err(|error| BuildError::Run(rustc, error))?;
    let sysroot = String::from_utf8_lossy(&output.stdout);
    Ok(vec![
        format!("--remap-path-prefix={}=/rust", sysroot.trim()),
        format!("--remap-path-prefix={}=/cargo", cargo_home()?.display()),
        format!("--remap-path-prefix={}=/opensdn", workspace.display()),
    ])
}

fn cargo_home() -> Result<PathBuf, BuildError> {
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        return Ok(home.into());
    }
    let home = std::env::var_os("HOME").ok_or(BuildError::CargoHome)?;
    Ok(Path::new(&home).join(".cargo"))
}

fn componentize(module: &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
    Ok(ComponentEncoder::default().validate(true).module(module)?.encode()?)
}
