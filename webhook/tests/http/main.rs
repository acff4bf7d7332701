//! The HTTPS and admin ports over real connections, with a reviewer that is only an echo. What
//! reviews say is tested elsewhere.

mod stage;

mod abuse;
mod admin;
mod drain;
mod process;
mod protocol;
mod tls;
