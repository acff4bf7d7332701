//! What goes with an image: a bill of materials of what is linked into its program (CycloneDX), the same
//! list for the program itself, as `cargo auditable` embeds it, and the provenance of its files (in-toto,
//! SLSA). All of them are the same bytes for the same source: there is no time and no random number in
//! them. Deliberately not here: how program and image are made (`deploy/images`), and signatures.
//!
//! What is linked is asked of `cargo tree`, which resolves features as the build of that one package
//! does. Tools that read `cargo metadata` see the features of the whole workspace, its tests among
//! them, and name packages that the program does not have; and none sees the policies, which are built
//! for another target and are in the program as data.

pub mod auditable;
pub mod bill;
pub mod built;
pub mod command_line;
pub mod graph;
pub mod lock;
pub mod provenance;
