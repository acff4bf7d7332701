//! Whether pods have a network: what pods as any other found of each other, of Services and of names is judged here, test
//! by test, and every function is pure but those of `sample`, which asks the pods. The tests are in `scenario`, which of them
//! are meant in `chosen`, what a cleanup answers in `cleanup`, text and
//! JUnit's XML in `text`; how fast it is measures `speed`. Deliberately not here: how pods are asked (`crate::probe`).

use std::net::SocketAddr;

use opensdn_node_probe::{FORMAT, Question, Target, Wanted, WantedService};
use schemars::JsonSchema;
use serde::Serialize;

use crate::checks::report::{NodeResult, Outcome, Summary};
use crate::output::Answer;
use crate::probe::Answers;
use crate::probe::peers::questions;

pub(crate) mod chosen;
pub(crate) mod cleanup;
pub(crate) mod sample;
mod scenario;
pub(crate) mod speed;
mod speed_text;
mod text;

pub(crate) use scenario::Scenario;

/// A name that each cluster has.
pub(crate) const NAME: &str = "kubernetes.default.svc";

/// What pods answer.
#[derive(Clone, Debug)]
pub(crate) struct PodAnswers {
    /// Pods that listen.
    pub(crate) peers: Answers,
    /// Pods that ask.
    pub(crate) askers: Answers,
    /// Pods on the network of their node.
    pub(crate) of_nodes: Answers,
    /// By which line peers are known.
    pub(crate) mark: String,
}

/// Where pods are to get, or why that is not known.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// The API server, by the Service `kubernetes`.
    pub(crate) api: Result<SocketAddr, String>,
    /// A Service in front of those that listen.
    pub(crate) service: Result<SocketAddr, String>,
    /// What is outside of the cluster and was named.
    pub(crate) outside: Vec<Target>,
}

impl Places {
    /// What pods ask that are not on the network of their node.
    pub(crate) fn asked_by_pods(&self, peers: &Answers) -> Wanted {
        let connect = |at: &SocketAddr| WantedService { at: *at, question: Question::Connect };
        let line = |at: &SocketAddr| WantedService { at: *at, question: Question::Line };
        let services = self.api.iter().map(connect).chain(self.service.iter().map(line));
        Wanted {
            format: FORMAT,
            services: services.chain(questions(peers)).collect(),
            names: vec![NAME.to_owned()],
            targets: self.outside.clone(),
            ..Wanted::default()
        }
    }

    /// What is asked on the network of each node.
    pub(crate) fn asked_by_nodes(&self) -> Wanted {
        let connect = |at: &SocketAddr| WantedService { at: *at, question: Question::Connect };
        Wanted {
            format: FORMAT,
            services: self.api.iter().map(connect).collect(),
            ..Wanted::default()
        }
    }
}

/// What `connectivity test` answers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConnectivityReport {
    /// The context of the kubeconfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cluster: Option<String>,
    /// Address of the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    /// How many ended in which way.
    pub(crate) summary: Summary,
    /// Each test.
    pub(crate) tests: Vec<Tested>,
    /// The support bundle that was made as a test failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bundle: Option<String>,
}

impl Answer for ConnectivityReport {
    const KIND: &'static str = "ConnectivityReport";
}

/// A test, and what came of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tested {
    /// By what it is known.
    pub(crate) id: &'static str,
    /// What has to be so.
    pub(crate) title: &'static str,
    /// What it is.
    pub(crate) result: Outcome,
    /// What was found, or why it was not tried.
    pub(crate) message: String,
    /// A command that says more, where something is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<String>,
    /// What each node says.
    pub(crate) nodes: Vec<NodeResult>,
}

/// Judges these tests.
pub(crate) fn judge(pods: &PodAnswers, places: &Places, chosen: &[Scenario]) -> ConnectivityReport {
    let tests: Vec<Tested> = chosen.iter().map(|one| one.tested(pods, places)).collect();
    let outcomes: Vec<Outcome> = tests.iter().map(|one| one.result).collect();
    let summary = Summary::of(&outcomes);
    ConnectivityReport { cluster: None, server: None, summary, tests, bundle: None }
}

#[cfg(test)]
pub(crate) mod tests;
