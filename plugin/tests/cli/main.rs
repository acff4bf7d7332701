//! The program as it is called: transcripts in `tests/cmd`, and here what a transcript cannot show.
//! One binary for all, because linking it takes long.

mod author;
mod bounded;
mod bundle;
mod bundle_bounds;
mod config;
mod connectivity;
mod credentials;
mod failed_upgrade;
mod fake_api_server;
mod frame;
mod healthy_cluster;
mod healthy_transcripts;
mod hostile_messages;
mod namespaces;
mod offline;
mod page;
mod policy;
mod probe_pods;
mod program;
mod render;
mod stored_objects;
mod transcripts;
mod validate;
mod watch;
