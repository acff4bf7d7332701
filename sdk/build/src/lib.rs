//! Builds policies to WebAssembly components.
//!
//! From Rust, the bytes do not depend on the folder that they are built in: a digest that an
//! administrator pinned must be the digest of the next build of the same source. Modules that other
//! compilers made become components here too. Deliberately not here: which packages are policies,
//! and what becomes of the components.

mod component;
mod rust;

use std::{
    io,
    path::{Path, PathBuf},
};

pub use component::{component_of, is_component};
pub use rust::folders_outside;

/// What policies are compiled for.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Why there is no component.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A folder or file cannot be used.
    #[error("read {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// A program cannot be started, or prints nothing usable.
    #[error("run {}; is Rust installed, and `cargo` in the PATH?", .0.display())]
    Run(PathBuf, #[source] io::Error),
    /// Neither `CARGO_HOME` nor `HOME` says where cargo keeps its sources.
    #[error("find cargo's folder; set HOME or CARGO_HOME")]
    CargoHome,
    /// Rust is there, but its standard library for policies is not.
    #[error("compile for {TARGET}, Rust's target is missing; run: rustup target add {TARGET}")]
    Target,
    /// The compiler has said why.
    #[error("compile for {TARGET}, the compiler says why above")]
    Compile,
    /// Cargo has said why, or says something that is not understood.
    #[error("ask cargo for the packages of {}", .0.display())]
    Metadata(PathBuf, #[source] Box<dyn std::error::Error + Send + Sync>),
    /// What was compiled does not fit the contract.
    #[error("make a component of {package}; does it end with `policy!`?")]
    Component {
        /// Name of the package.
        package: String,
        /// What the encoder says.
        #[source]
        cause: ComponentError,
    },
}

/// A module does not fit the contract, or is none.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ComponentError(Box<dyn std::error::Error + Send + Sync>);

/// What to build, and where.
#[derive(Clone, Copy, Debug)]
pub struct Build<'a> {
    /// The workspace that the packages are in, or the folder of a single package.
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
