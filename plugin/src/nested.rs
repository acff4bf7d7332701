//! Nested mode: a cluster on virtual machines of a cloud whose network OpenSDN makes. From the command line, the cluster
//! and the cloud come the inputs of a plan. The plan itself is opensdn-nested's, what is read and written of the cloud
//! opensdn-nested-cloud's.

pub(crate) mod cluster;
pub(crate) mod cni_files;
pub(crate) mod common_env;
pub(crate) mod connection;
pub(crate) mod discover;
pub(crate) mod flags;
pub(crate) mod plan_file;
pub(crate) mod registry_check;
pub(crate) mod registry_login;
pub(crate) mod running;
pub(crate) mod surroundings;
pub(crate) mod text;
pub(crate) mod verify;
pub(crate) mod waited;
pub(crate) mod workload_advice;
pub(crate) mod workload_flags;
pub(crate) mod workloads;
pub(crate) mod world;
