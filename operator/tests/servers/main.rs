//! What is described, on the real servers; `make test-lab` runs it.

mod cluster;
mod lab_cassandra;
mod lab_packets;
mod lab_rabbitmq;
mod lab_zookeeper;
