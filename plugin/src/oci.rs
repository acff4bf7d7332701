//! Images of containers between registries and files: references, what a registry says (`registry`), a layout in a tar
//! archive (`layout`), and what is copied from one to the other (`copy`). Every byte is held to its digest on its way in and
//! on its way out. Which images an installation has is not known here.

pub(crate) mod archive;
pub(crate) mod copy;
pub(crate) mod credentials;
pub(crate) mod digest;
pub(crate) mod error;
pub(crate) mod http;
pub(crate) mod layout;
pub(crate) mod manifest;
pub(crate) mod reference;
pub(crate) mod registry;
mod token;
