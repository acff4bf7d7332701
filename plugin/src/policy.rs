//! Policies on a developer's machine: what the commands below `policy` are made of. Deliberately
//! not here: how a policy is run and limited (`opensdn-policy-host`), and the commands' arguments.

pub(crate) mod answer;
pub(crate) mod build;
pub(crate) mod case_files;
pub(crate) mod cluster;
pub(crate) mod dev_policy;
pub(crate) mod evaluation;
pub(crate) mod installation;
pub(crate) mod junit;
pub(crate) mod measurement;
pub(crate) mod module_info;
pub(crate) mod new;
pub(crate) mod objects;
pub(crate) mod project;
pub(crate) mod reference;
pub(crate) mod rights;
pub(crate) mod selector;
pub(crate) mod test_report;
