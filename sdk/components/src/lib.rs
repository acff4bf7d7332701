//! One view of an OpenSDN component for policies, whether it is an object of its own or nested in
//! a Manager: where its spec is, what it is called, what it inherits from the Manager.
//!
//! A rule on a component is written once, as a function of a [`ComponentView`]; [`Services::walk`]
//! feeds it from a Manager and [`ComponentView::standalone`] from an object. The spec's type `S` is the
//! policy's own: a small struct with the few fields that it judges, for parsing is most of what an
//! evaluation costs. That is why the full types of `opensdn-crds` are deliberately not here, but for its table of
//! components, which has no dependency.

pub mod characters;
mod inheritance;
mod keystone;
mod network;
pub mod nodes;
mod nulls;
mod owner;
pub mod owning_manager;
mod release;
mod services;
mod settings;
mod unused;

pub use inheritance::{Field, Inheritable, effective, effective_if_given};
pub use keystone::KeystoneSecret;
pub use network::Network;
/// The facts of the components.
pub use opensdn_crds::component;
pub use opensdn_crds::dpdk;
pub use opensdn_crds::virtual_functions::number_of_virtual_functions;

pub use nulls::null_as_default;
pub use owner::{Owner, Owners};
pub use release::release;
pub use services::{ComponentView, Item, Services, is_analytics_database};
pub use settings::{Level, Profile};
pub use unused::UNUSED_OF_VROUTER;
