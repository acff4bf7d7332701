//! `connectivity perf`: how fast pods on different nodes reach each other, beside what their nodes do without a network
//! of pods. One pair after the other, as two at once would measure each other.

use std::net::SocketAddr;
use std::time::Duration;

use kube::Client;
use opensdn_node_probe::{FORMAT, Seen, Sink, Speed, Wanted, WantedSpeed};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;

use super::sample::{Cluster, Sample};
use crate::exit::Failure;
use crate::output::Answer as Document;
use crate::probe::peers::{PORT, address};
use crate::probe::run::Asking;
use crate::probe::{Answer, Answers, Asked, Network, Nodes};
use crate::ui::Ui;

/// All of it has to end before the next run takes it for left over.
const LONGEST: Duration = Duration::from_secs(10 * 60);
/// What the answer of an image is that does not know the question.
const OLDER: &str = "its pod is of an older release, which measures nothing: take the image of this one with --probe-image";

/// What `connectivity perf` answers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConnectivitySpeed {
    /// The context of the kubeconfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cluster: Option<String>,
    /// Address of the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    /// So long each sent.
    pub(crate) seconds: u8,
    /// By so many connections at once.
    pub(crate) streams: u8,
    /// From each node to the next, over pods and without them.
    pub(crate) measurements: Vec<Measured>,
}

impl Document for ConnectivitySpeed {
    const KIND: &'static str = "ConnectivitySpeed";
}

/// By which network it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Over {
    /// That of pods.
    Pods,
    /// That of the nodes.
    Nodes,
}

impl Over {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Pods => "pods",
            Self::Nodes => "nodes",
        }
    }

    fn network(self) -> Network {
        match self {
            Self::Pods => Network::Pods,
            Self::Nodes => Network::NodeAlone,
        }
    }

    /// Where a port may be held by something else, one is taken that is free.
    fn port(self) -> u16 {
        match self {
            Self::Pods => PORT,
            Self::Nodes => 0,
        }
    }
}

/// What came of measuring one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Measured {
    /// The node that sent.
    pub(crate) from: String,
    /// The node that took it.
    pub(crate) to: String,
    /// By which network.
    pub(crate) over: Over,
    /// How fast it was.
    #[serde(flatten)]
    pub(crate) found: Found,
}

/// How fast it was, or why that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Found {
    /// It was measured.
    #[serde(rename_all = "camelCase")]
    Fast {
        /// Megabits that arrived a second.
        megabits_per_second: u64,
        /// Microseconds of a byte there and back: the median of up to a thousand.
        round_trip_microseconds: u32,
        /// The 99th percentile of these.
        round_trip_p99_microseconds: u32,
    },
    /// It was not.
    Not {
        /// Why.
        why: String,
    },
}

impl From<Speed> for Found {
    fn from(speed: Speed) -> Self {
        Self::Fast {
            megabits_per_second: speed.megabits_per_second(),
            round_trip_microseconds: speed.round_trips.median,
            round_trip_p99_microseconds: speed.round_trips.p99,
        }
    }
}

impl ConnectivitySpeed {
    /// Whether all of it is known.
    pub(crate) fn is_complete(&self) -> bool {
        let is_fast = |one: &Measured| matches!(one.found, Found::Fast { .. });
        !self.measurements.is_empty() && self.measurements.iter().all(is_fast)
    }

    /// How many of a hundred the network of pods leaves of what the nodes of this measurement do.
    pub(super) fn of_nodes(&self, one: &Measured) -> Option<u64> {
        let rate = |found: &Found| match found {
            Found::Fast { megabits_per_second, .. } => Some(*megabits_per_second),
            Found::Not { .. } => None,
        };
        let is_its = |other: &&Measured| {
            other.over == Over::Nodes && (&other.from, &other.to) == (&one.from, &one.to)
        };
        let nodes = self.measurements.iter().find(is_its)?;
        if one.over == Over::Nodes {
            return None;
        }
        rate(&one.found)?.saturating_mul(100).checked_div(rate(&nodes.found)?)
    }
}

/// From each node to the next one, and from the last to the first; of two that is both ways.
fn pairs(nodes: &Nodes) -> Vec<(String, String)> {
    let names: Vec<&String> = nodes.keys().collect();
    let next = names.iter().cycle().skip(1);
    let pairs = names.iter().zip(next).filter(|(from, to)| from != to);
    pairs.map(|(from, to)| ((*from).clone(), (*to).clone())).collect()
}

/// What is measured, and how.
#[derive(Clone, Debug)]
pub(crate) struct Measurement {
    /// On which nodes, by which image.
    pub(crate) sample: Sample,
    /// So long each sends.
    pub(crate) seconds: u8,
    /// By so many connections at once.
    pub(crate) streams: u8,
}

impl Measurement {
    /// Makes the pods, measures, and removes them.
    ///
    /// # Errors
    /// The cluster cannot be asked, or has no two nodes. What keeps pods from answering is in the report.
    pub(crate) async fn run(
        &self,
        client: &Client,
        server: &str,
        ui: &mut Ui,
    ) -> Result<ConnectivitySpeed, Failure> {
        let cluster = self.sample.cluster(client, server).await?;
        let pairs = pairs(&cluster.nodes);
        if pairs.is_empty() {
            let message = format!("there are {} nodes that could be measured", cluster.nodes.len());
            let hint = "it takes two whose kubelets answer: kubectl get nodes";
            return Err(Failure::usage(message, hint));
        }
        let run = self.sample.run(&cluster)?;
        let done = run
            .within(client, ui, async |asking, ui| self.measure(asking, &cluster, &pairs, ui).await)
            .await?;
        let measurements = done.unwrap_or_else(|why| {
            ui.warn(&format!("no pods were made, so that nothing was measured: {why}"));
            none(&pairs, &why)
        });
        let (seconds, streams) = (self.seconds, self.streams);
        Ok(ConnectivitySpeed { cluster: None, server: None, seconds, streams, measurements })
    }

    async fn measure(
        &self,
        asking: &Asking<'_>,
        cluster: &Cluster,
        pairs: &[(String, String)],
        ui: &mut Ui,
    ) -> Vec<Measured> {
        let end = Instant::now() + LONGEST;
        let of_pods = sinks(asking, cluster, Over::Pods, ui).await;
        let of_nodes = sinks(asking, cluster, Over::Nodes, ui).await;
        let mut measured: Vec<Measured> = Vec::new();
        for (from, to) in pairs {
            for (over, sinks) in [(Over::Pods, &of_pods), (Over::Nodes, &of_nodes)] {
                let found = match sink(sinks, to) {
                    Err(why) => Found::Not { why },
                    Ok(_) if Instant::now() >= end => {
                        let minutes = LONGEST.as_secs() / 60;
                        Found::Not { why: format!("the {minutes} min of a run are over") }
                    }
                    Ok(at) => {
                        ui.progress(&format!("measuring from {from} to {to} over {}", over.word()));
                        // Each pod of a run has a name of its own.
                        let name = format!("opensdn-speed-{:02}", measured.len());
                        let asked = self.asked(name, from, over, (at, asking.mark()));
                        let left = end.saturating_duration_since(Instant::now());
                        let limit = self.sample.timeout.min(left);
                        of(&asking.ask_within(limit, &asked, ui).await, from)
                    }
                };
                measured.push(Measured { from: from.clone(), to: to.clone(), over, found });
            }
        }
        measured
    }

    /// A pod on that node that sends.
    fn asked(&self, name: String, from: &str, over: Over, (at, mark): (SocketAddr, &str)) -> Asked {
        let (mark, seconds, streams) = (mark.to_owned(), self.seconds, self.streams);
        let speed = Some(WantedSpeed { at, mark, seconds, streams });
        let wanted = Wanted { format: FORMAT, speed, ..Wanted::default() };
        let nodes = Nodes::from([(from.to_owned(), None)]);
        Asked { name, network: over.network(), nodes, wanted }
    }
}

/// Pods on all nodes that take bytes.
async fn sinks(asking: &Asking<'_>, cluster: &Cluster, over: Over, ui: &mut Ui) -> Answers {
    let sink = Some(Sink { port: over.port(), mark: asking.mark().to_owned() });
    let wanted = Wanted { format: FORMAT, sink, ..Wanted::default() };
    let (name, nodes) = (format!("opensdn-sink-{}", over.word()), cluster.nodes.clone());
    asking.ask(&Asked { name, network: over.network(), nodes, wanted }, ui).await
}

/// The same reason of all.
fn none(pairs: &[(String, String)], why: &str) -> Vec<Measured> {
    let each = pairs.iter().flat_map(|(from, to)| {
        [Over::Pods, Over::Nodes].map(|over| {
            let found = Found::Not { why: why.to_owned() };
            Measured { from: from.clone(), to: to.clone(), over, found }
        })
    });
    each.collect()
}

/// Where the node takes bytes.
fn sink(sinks: &Answers, node: &str) -> Result<SocketAddr, String> {
    let at = |answer: &Answer| match (&answer.findings.sink, address(answer)) {
        (None, _) => Err(OLDER.to_owned()),
        (Some(Seen::Unknown(why)), _) => Err(why.clone()),
        (Some(Seen::Is(_)), None) => Err("its pod has no address of IPv4".to_owned()),
        (Some(Seen::Is(port)), Some(address)) => Ok((address, *port).into()),
    };
    match sinks.get(node) {
        None => Err(format!("{node}: no pod was made")),
        Some(Err(why)) => Err(format!("{node}: {why}")),
        Some(Ok(answer)) => at(answer).map_err(|why| format!("{node}: {why}")),
    }
}

/// What the node that sent says.
fn of(answers: &Answers, node: &str) -> Found {
    let why = match answers.get(node) {
        None => "no pod was made".to_owned(),
        Some(Err(why)) => why.clone(),
        Some(Ok(answer)) => match answer.findings.speed.clone() {
            Some(Seen::Is(speed)) => return speed.into(),
            Some(Seen::Unknown(why)) => why,
            None => OLDER.to_owned(),
        },
    };
    Found::Not { why: format!("{node}: {why}") }
}

#[cfg(test)]
mod tests {
    use opensdn_node_probe::RoundTrips;

    use super::*;
    use crate::probe::unseen::unseen;

    fn nodes(names: &[&str]) -> Nodes {
        names.iter().map(|name| ((*name).to_owned(), None)).collect()
    }

    fn answer(
        change: impl FnOnce(&mut opensdn_node_probe::NodeFindings),
    ) -> Result<Answer, String> {
        let mut findings = unseen("10.32.0.1");
        change(&mut findings);
        Ok(Answer { findings, ahead: Seen::Is(0) })
    }

    #[test]
    fn each_node_sends_to_the_next_and_two_to_each_other() {
        let names = |all: &[&str]| {
            let pairs = pairs(&nodes(all)).into_iter();
            pairs.map(|(from, to)| format!("{from}>{to}")).collect::<Vec<_>>()
        };
        assert_eq!(names(&["a", "b"]), ["a>b", "b>a"]);
        assert_eq!(names(&["a", "b", "c"]), ["a>b", "b>c", "c>a"]);
        assert!(names(&["a"]).is_empty() && names(&[]).is_empty());
    }

    #[test]
    fn what_cannot_be_measured_has_its_reason_and_its_node() {
        let sinks = Answers::from([
            ("good".to_owned(), answer(|one| one.sink = Some(Seen::Is(40_000)))),
            ("old".to_owned(), answer(|_| ())),
            ("held".to_owned(), answer(|one| one.sink = Some(Seen::Unknown("in use".to_owned())))),
            ("away".to_owned(), Err("no image".to_owned())),
        ]);
        assert_eq!(sink(&sinks, "good").unwrap().to_string(), "10.32.0.1:40000");
        for (node, why) in [
            ("old", "old: its pod is of an older release"),
            ("held", "held: in use"),
            ("away", "away: no image"),
            ("missing", "missing: no pod was made"),
        ] {
            let error = sink(&sinks, node).unwrap_err();
            assert!(error.starts_with(why), "{error}");
            assert!(matches!(of(&sinks, node), Found::Not { why } if why.starts_with(node)));
        }
    }

    #[test]
    fn the_network_of_pods_is_compared_with_that_of_its_nodes() {
        let round_trips = RoundTrips { count: 9, median: 80, p99: 200 };
        let fast = |gigabits: u64| {
            let speed = Speed { bytes: gigabits * 125_000_000, micros: 1_000_000, round_trips };
            Found::from(speed)
        };
        let one = |from: &str, to: &str, over, found| Measured {
            from: from.to_owned(),
            to: to.to_owned(),
            over,
            found,
        };
        let lost = Found::Not { why: "w2: lost".to_owned() };
        let report = ConnectivitySpeed {
            cluster: None,
            server: None,
            seconds: 5,
            streams: 1,
            measurements: vec![
                one("w1", "w2", Over::Pods, fast(8)),
                one("w1", "w2", Over::Nodes, fast(10)),
                one("w2", "w1", Over::Pods, fast(4)),
                one("w2", "w1", Over::Nodes, lost),
            ],
        };
        let shares: Vec<_> = report.measurements.iter().map(|one| report.of_nodes(one)).collect();
        assert_eq!(shares, [Some(80), None, None, None]);
        assert!(!report.is_complete());
        let json = serde_json::to_value(&report.measurements).unwrap();
        assert_eq!(json[0]["megabitsPerSecond"], 8_000);
        assert_eq!(json[0]["roundTripP99Microseconds"], 200);
        assert_eq!(json[3]["why"], "w2: lost");
        let mut text = Vec::new();
        report.write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains("w1    w2  pods      8.00 Gbit/s       80 µs  200 µs      80 %"),
            "{text}"
        );
        assert!(text.contains("w2    w1  nodes    not measured: w2: lost"), "{text}");
    }
}
