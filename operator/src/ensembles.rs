//! The services that count their members, each with what it is asked by its own protocol. Which members there are to
//! be is decided in [`crate::ensemble`].

pub(crate) mod cassandra;
pub(crate) mod rabbitmq;
pub mod simulated;
pub(crate) mod zookeeper;
