//! The files of a new policy's project.
//!
//! A template is a folder beside this one, named after its language, of ordinary files in which a
//! few places are filled in (`fill.rs` has the grammar). Nothing here touches a disk or a network:
//! who calls this writes the files.

mod fill;
mod kind;
mod project;

pub use kind::{Kind, KindError};
pub use project::{Language, Project, Sdk};

/// A file that this crate carries.
#[derive(Clone, Copy, Debug)]
struct File {
    path: &'static str,
    text: &'static str,
}

mod embedded {
    //! What the build script collected.
    use super::File;

    include!(concat!(env!("OUT_DIR"), "/files.rs"));

    /// The manifest of a workspace of the SDK's crates.
    pub(crate) const SDK_WORKSPACE: &str =
        include_str!(concat!(env!("OUT_DIR"), "/sdk-workspace.toml"));

    /// The versions that the SDK was tested with.
    pub(crate) const LOCK: &str = include_str!(concat!(env!("OUT_DIR"), "/Cargo.lock"));
}
