//! The tests of whole programs, one binary of them: to link wasmtime and kube once is enough. Each
//! module is one promise. Those that need real nodes begin with `lab_`, by which the gate knows
//! them. Deliberately not here: what one crate can test by itself.

mod admission;
mod audit;
mod book;
mod claims;
mod component_facts;
mod crds;
mod deep_objects;
mod deploy;
mod gate;
mod guide;
mod hostile_modules;
mod images;
mod krew;
mod kubectl_plugin;
mod lab_cluster;
mod lab_ends;
mod lab_operator;
mod lab_outage;
mod lab_probe;
mod lab_quorum;
mod lab_servers;
mod lab_short;
mod lab_uniqueness;
mod lab_webhook;
mod metrics_page;
mod module_order;
mod operator;
mod operator_ensembles;
mod operator_faults;
mod operator_given_ca;
mod operator_manager;
mod plugin_bundle;
mod plugin_certs;
mod plugin_check;
mod plugin_images;
mod plugin_install;
mod plugin_logs;
mod plugin_nested;
mod plugin_status;
mod policy_author;
mod promises;
mod reproducible;
mod same_verdict;
mod sandbox;
mod sandbox_command_line;
mod schema_like_the_api_server;
/// Its images are big and not OpenSDN's own, so it is not of the gate: `make test-images`.
#[cfg(feature = "service-images")]
mod service_images;
mod tidy;
mod under_load;
mod uniqueness;
mod webhook_apart;
mod webhook_callers;
mod webhook_certificates;
mod webhook_compiler;
mod webhook_memory;
mod webhook_policies;
mod webhook_redirects;
mod webhook_secret_values;
mod webhook_secrets;
mod words;
mod yaml_like_kubectl;
