//! The two webhook configurations, `opensdn-webhook`: written by one process, which leads, in one
//! apply each, whenever the policies, the served kinds or the CA bundle change, and restored when
//! they are changed or deleted. Their entries are ours alone: what others add there, a condition that
//! is never true for one, is removed by an update, since an apply leaves it. What they should say is
//! in `configuration/rules.rs`.
//!
//! Who answers reviews need not write them (`--run`): a process that parses what strangers send, and may
//! say what is sent to it, could be made to ask for more. It then only watches them, for what they carry
//! decides how far a rotation may go.
//!
//! The API server calls no webhook about webhook configurations, so no user can be kept from
//! deleting or changing ours; it is noticed (metric, event, log) and undone within a second. To uninstall,
//! remove the webhook first and the configurations then; a webhook that drains restores nothing.
//!
//! Where another client changes them again and again, they are put right ever later, up to once a minute
//! (`configuration/restraint.rs`).
//!
//! Where there is none, and where another client has changed one, it is written only if an API server says
//! that it reaches the webhook (`configuration/reach.rs`): no request waits for a webhook that cannot
//! answer, and who has switched a broken one off has it off until it is repaired.

pub mod args;
pub(crate) mod bundle;
mod object;
mod observed;
mod reach;
mod restraint;
mod rules;
mod writer;

use kube::Client;
use opensdn_pki::Published;
use opensdn_runtime::shutdown::{Drain, Phase};
use serde_json::Value;
use time::OffsetDateTime;
use tokio::sync::watch;

use crate::metrics::ConfigurationMetrics;
use crate::path_tokens::PathToken;
use object::STEPS;
use observed::Configuration;
use writer::Writer;

pub use object::Address;
pub(crate) use reach::Serving;
pub(crate) use writer::WriterDeps;

/// What every process needs, also one that does not write them.
pub(crate) struct Deps {
    pub(crate) client: Client,
    /// Where to say which bundle all configurations carry, and since when.
    pub(crate) published: watch::Sender<Option<Published>>,
    /// Where to say which path token all configurations carry.
    pub(crate) published_path: watch::Sender<Option<PathToken>>,
    pub(crate) drain: Drain,
    pub(crate) metrics: ConfigurationMetrics,
}

/// Starts to watch the configurations and, with a `writer`, to reconcile them.
pub(crate) fn start(deps: Deps, writer: Option<WriterDeps>) {
    let configurations = STEPS.map(|step| Configuration::watch(deps.client.clone(), step));
    let writer = writer.map(Writer::new);
    tokio::spawn(ConfigurationController { deps, configurations, writer }.run());
}

struct ConfigurationController {
    deps: Deps,
    configurations: [Configuration; 2],
    writer: Option<Writer>,
}

impl ConfigurationController {
    async fn run(mut self) {
        loop {
            let [mutating, validating] = &mut self.configurations;
            tokio::select! {
                () = self.deps.drain.reached(Phase::Draining) => return,
                event = mutating.next() => mutating.observe(event),
                event = validating.next() => validating.observe(event),
                () = changed(&mut self.writer) => {}
            }
            self.publish();
            if let Some(writer) = &mut self.writer {
                writer.reconcile(&mut self.configurations).await;
                self.publish();
            }
        }
    }

    /// Says which are there, and which bundle and which path all of them carry.
    fn publish(&self) {
        for one in &self.configurations {
            let present = i64::from(one.object().is_some());
            self.deps.metrics.present(object::kind(one.step)).set(present);
        }
        let objects: Vec<&Value> =
            self.configurations.iter().filter_map(Configuration::object).collect();
        let token = object::path_token(&objects);
        self.deps.published_path.send_if_modified(|before| {
            let changed = *before != token;
            *before = token;
            changed
        });
        let bundle = object::bundle(&objects);
        self.deps.published.send_if_modified(|before| {
            if before.as_ref().map(|before| &before.bundle) == bundle.as_ref() {
                return false;
            }
            let since = OffsetDateTime::now_utc();
            *before = bundle.map(|bundle| Published { bundle, since });
            true
        });
    }
}

async fn changed(writer: &mut Option<Writer>) {
    match writer {
        Some(writer) => writer.changed().await,
        None => std::future::pending().await,
    }
}
