//! What every server process of OpenSDN is made of: log, client, admin port with readiness, metrics,
//! shutdown, leader election, watch and discovery, and calls of the API server. Each part is
//! independent and brings its own flags.
//! Deliberately not here: any kind of OpenSDN, policies, and what a process serves.

pub mod admin;
pub mod apply;
pub mod call;
pub mod client;
pub mod counts;
pub mod declared;
pub mod discovery;
pub mod events;
pub mod leader;
pub mod levels;
pub mod list;
pub mod log;
pub mod memory;
pub mod metrics;
pub mod open_files;
pub mod path;
pub mod process;
pub mod readiness;
pub mod serve;
pub mod shutdown;
pub mod watch;

pub use opensdn_error_chain::error_chain;
