//! The services that count their own members, in pods on real nodes by the operator as it is installed, while a client
//! writes the whole time: members come and go, nodes are killed, parted and drained, what is stored on one is lost, and
//! all pods are deleted at once. At the end every write that was acknowledged is there. Deliberately not here: the steps
//! between members alone (`operator/tests/servers`), and what is decided of them (`operator_ensembles`).

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]
#![allow(clippy::print_stderr, reason = "how long each step took, for who runs it by hand")]

mod authorities;
pub(crate) mod cassandra;
mod clock;
mod handshakes;
pub(crate) mod rabbitmq;
pub(crate) mod stories;
mod volumes;
pub(crate) mod world;
pub(crate) mod zookeeper;
