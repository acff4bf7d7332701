//! How many reviews the webhook has denied, by the counters of its replicas: each counts since it started.

use opensdn_deploy::names;
use opensdn_deploy::names::webhook::NAME;
use serde_json::Value;

use crate::snapshot::ask::{Asker, NotRead};
use crate::snapshot::places::Places;
use crate::snapshot::{Read, list, name, text};

/// So many replicas are asked: no installation has more.
const MOST_REPLICAS: usize = 10;
/// The most of what one answers, in bytes.
const MOST: u64 = 4 << 20;
const COUNTER: &str = "opensdn_webhook_reviews_total{";
const IS_DENIED: &str = "verdict=\"denied\"";
const PORT: i64 = 8080;

/// What is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Denied {
    /// There is none to ask.
    #[default]
    Nothing,
    /// So many since then, when the replica started that runs longest, RFC 3339.
    Known { reviews: u64, since: String },
    /// It is not known, and why.
    Unknown(String),
}

impl Denied {
    pub(super) fn why_unknown(&self) -> Option<&str> {
        match self {
            Self::Unknown(why) => Some(why),
            Self::Nothing | Self::Known { .. } => None,
        }
    }
}

/// Asks the replicas, by the API server's proxy: one list, and a page of each.
pub(super) async fn denied(asker: &Asker, places: &Places) -> Denied {
    let namespace = &places.webhook;
    let selector = format!("{}%3D{NAME}", names::NAME_LABEL.replace('/', "%2F"));
    let pods = match asker
        .list(&format!("/api/v1/namespaces/{namespace}/pods?labelSelector={selector}"))
        .await
    {
        Read::Known(pods) => pods,
        Read::Absent => return Denied::Nothing,
        Read::Unknown(why) => return Denied::Unknown(why),
    };
    let running: Vec<&Value> =
        pods.iter().filter(|pod| text(pod, "/status/phase") == "Running").collect();
    if running.len() > MOST_REPLICAS {
        return Denied::Unknown(format!("there are more than {MOST_REPLICAS} replicas"));
    }
    let pages = running.iter().map(|pod| {
        let path =
            format!("/api/v1/namespaces/{namespace}/pods/{}:{PORT}/proxy/metrics", name(pod));
        async move { asker.page(&path, MOST).await }
    });
    let pages = futures::future::join_all(pages).await;
    let since = running.iter().filter_map(|pod| started(pod)).min();
    summed(pages, since)
}

/// When its container started.
fn started(pod: &Value) -> Option<&str> {
    let mut states = list(pod, "/status/containerStatuses");
    let started = states.find_map(|one| one.pointer("/state/running/startedAt")?.as_str());
    started.or_else(|| pod.pointer("/status/startTime")?.as_str())
}

/// Of all replicas; one that is not known makes all of it so.
fn summed(pages: Vec<Result<String, NotRead>>, since: Option<&str>) -> Denied {
    let Some(since) = since else { return Denied::Nothing };
    let mut reviews = 0;
    for page in pages {
        match page {
            Ok(page) => reviews += count(&page),
            Err(NotRead::Absent) => return Denied::Unknown("a replica has no metrics".to_owned()),
            Err(why) => return Denied::Unknown(why.to_string()),
        }
    }
    Denied::Known { reviews, since: since.to_owned() }
}

/// What is denied, in the text of Prometheus.
fn count(page: &str) -> u64 {
    let lines = page.lines().filter(|line| line.starts_with(COUNTER) && line.contains(IS_DENIED));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# TYPE opensdn_webhook_reviews counter\n\
        opensdn_webhook_reviews_total{step=\"validate\",kind=\"Control\",operation=\"create\",verdict=\"denied\"} 3\n\
        opensdn_webhook_reviews_total{step=\"validate\",kind=\"Control\",operation=\"create\",verdict=\"allowed\"} 9\n\
        opensdn_webhook_reviews_total{step=\"validate\",kind=\"Vrouter\",operation=\"update\",verdict=\"denied\"} 1\n\
        opensdn_webhook_policy_evaluations_total{policy=\"a\",mode=\"enforce\",verdict=\"denied\"} 7\n";

    #[test]
    fn reviews_that_were_denied_are_summed_over_replicas() {
        let page = || Ok(PAGE.to_owned());
        let known = Denied::Known { reviews: 8, since: "2026-11-24T00:00:00Z".to_owned() };
        assert_eq!(summed(vec![page(), page()], Some("2026-11-24T00:00:00Z")), known);
        assert_eq!(summed(vec![], None), Denied::Nothing);
    }

    #[test]
    fn a_replica_that_cannot_be_asked_makes_it_unknown() {
        let pages = vec![Ok(PAGE.to_owned()), Err(NotRead::Failed("forbidden".to_owned()))];
        let said = summed(pages, Some("2026-11-24T00:00:00Z"));
        assert_eq!(said.why_unknown(), Some("forbidden"));
        let said = summed(vec![Err(NotRead::Absent)], Some("2026-11-24T00:00:00Z"));
        assert_eq!(said.why_unknown(), Some("a replica has no metrics"));
    }
}
