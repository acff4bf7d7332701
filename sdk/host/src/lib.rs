//! Loads, checks, limits and runs policies; matches and merges what they say.
//!
//! ```text
//! bytes --Policy::load--> Policy --Binding--> PolicySet --evaluate(Request)--> Verdict
//!                                                       --mutate(Request)----> Mutation
//! ```
//!
//! A policy is WebAssembly and is not trusted: it gets a fresh instance, the declared parts of the
//! request and bounded memory and time, and whatever it does ends as a value. This crate sees JSON;
//! it knows neither OpenSDN's kinds nor Kubernetes' API nor HTTP.

mod binding;
mod budget;
mod cache;
pub mod cases;
mod clock;
mod contract;
mod description;
mod digest;
mod engine;
mod group;
mod instance;
pub mod lookup;
mod metering;
mod patch;
mod policy;
mod request;
pub mod scan;
mod set;
mod slots;
pub mod stored;
mod text;
mod verdict;

pub use binding::{
    Binding, Exemptions, KindRule, Ratcheting, Requirement, Scope, Selector, SelectorOperator,
};
pub use cache::{Cache, CacheError};
pub use clock::TICK;
pub use contract::{Index, Interest, Message, Metadata, Operation, Severity, Step};
pub use description::{
    DescriptionError, MAX_INDEXES, MAX_INTERESTS, MAX_MESSAGES, MAX_NAME_BYTES, MAX_PATTERN_BYTES,
    MAX_POINTER_BYTES, MAX_POINTER_SEGMENTS, MAX_READS, MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH,
    MAX_SCHEMA_VALUES, MAX_SETTINGS_STEPS, SchemaError,
};
pub use digest::{Digest, DigestError};
pub use engine::{Engine, EngineError, Limits, MAX_LOOKUP_BYTES, MAX_MEMORY};
pub use group::{Group, gist, group};
pub use metering::{Cost, Meter, Metering};
pub use patch::apply;
pub use policy::{ALLOWED_IMPORTS, LoadError, Policy, PrecompileError};
pub use request::Request;
pub use set::{
    Context, InactivePolicy, NEVER_RATCHETS, Part, PolicySet, Seen, TELLS_ABSENCE, absent_kinds,
    ratchet,
};
pub use text::{MAX_QUOTED_BYTES, MAX_TEXT_BYTES, beginning, cut, is_unseen, quoted, quoted_name};
pub use verdict::{
    Claim, EvalFailure, Evaluation, FailureMode, FailureReason, Finding, Mode, Mutation, Outcome,
    UnappliedPatch, Verdict,
};
