//! What the author of an OpenSDN policy sees.
//!
//! A policy is a list of functions, one per kind of object. What a function reads is the struct
//! in its signature, what it can say are [`Message`] constants, and [`policy!`] makes the
//! WebAssembly component of both:
//!
//! ```
//! use opensdn_policy_sdk::{
//!     Message, NoSettings, Outcome, Reads, Request, Severity, Verdict, policy,
//! };
//!
//! #[derive(Reads)]
//! #[reads(group = "", kind = "ConfigMap")]
//! struct ConfigMap {
//!     #[read("/metadata/labels/owner")]
//!     owner: Option<String>,
//! }
//!
//! const NO_OWNER: Message = Message {
//!     code: "TEAM0001",
//!     severity: Severity::Deny,
//!     title: "a ConfigMap has no owner",
//!     explanation: "No one can be asked about it.",
//!     hint: "set the label owner",
//! };
//!
//! fn has_owner(request: &Request<ConfigMap>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
//!     if let Some(ConfigMap { owner: None }) = &request.object {
//!         verdict.add(NO_OWNER.at("/metadata/labels").says("there is no label owner"));
//!     }
//!     Ok(())
//! }
//!
//! policy! {
//!     name: "no-owner",
//!     summary: "every ConfigMap names its owner",
//!     settings: NoSettings,
//!     messages: [NO_OWNER],
//!     validate: [has_owner],
//! }
//! # fn main() {}
//! ```
//!
//! How a policy is loaded, limited and run is not here but in `opensdn-policy-host`.

// The generated code and the derive name this crate from outside.
extern crate self as opensdn_policy_sdk;

mod export;
mod finding;
mod lookup;
#[cfg(target_arch = "wasm32")]
mod memory;
mod patch;
mod pointer;
mod reads;
mod request;

pub use export::NoSettings;
pub use finding::{Claim, Failure, Finding, Message, Outcome, Severity, Verdict};
pub use lookup::{Found, Index};
pub use opensdn_policy_sdk_derive::Reads;
pub use patch::Patch;
pub use pointer::Pointer;
pub use reads::{FromPart, Operation, Reads, Unreadable};
pub use request::Request;

#[doc(hidden)]
pub mod exported {
    //! What the macro [`policy!`](crate::policy) expands to.
    pub use crate::export::{Step, interest, metadata, run_mutate, run_validate, unknown_interest};
}

/// The contract's own types, generated from `sdk/wit/policy.wit`.
#[allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    clippy::all,
    clippy::allow_attributes_without_reason,
    reason = "generated from sdk/wit/policy.wit"
)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../wit",
        world: "policy",
        pub_export_macro: true,
        export_macro_name: "export_policy",
        default_bindings_module: "opensdn_policy_sdk::bindings",
        runtime_path: "opensdn_policy_sdk::wit_bindgen_rt",
    });
}

#[doc(hidden)]
pub use schemars;
#[doc(hidden)]
pub use wit_bindgen::rt as wit_bindgen_rt;
