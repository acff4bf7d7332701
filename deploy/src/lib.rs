//! What OpenSDN is in a cluster: the names of its own objects, and the objects that install it,
//! rendered from the kustomize files of this folder. Pure: deliberately not here is who applies
//! them, which is the plugin's and the sandbox's.

mod adjust;
mod bases;
pub mod names;
mod render;
pub mod values;

pub use adjust::render;
pub use render::{
    Phase, RenderError, Step, openshift_machines, operator, operator_on, webhook, webhook_on,
};
pub use values::Values;
