//! Whether a nested cluster works: what was looked at is judged here, part by part, and every function is pure. The parts
//! are the list in the cloud (`link_local`), services as nodes reach them (`services`, with where kube-manager can run in
//! `placement`), files of nodes (`nested::cni_files`), the workloads (`workloads`), and pods as any other (`pods`).
//! Deliberately not here: how nodes and pods are asked (`crate::probe`), and in which order (`commands::nested::verify`).

use opensdn_crds::nested_cluster::Connectivity;
use opensdn_nested::{Input, Plan};
use schemars::JsonSchema;
use serde::Serialize;

use crate::checks::report::{NodeResult, Outcome, Summary, Verdict};
use crate::output::Answer;
use crate::probe::Answers;

pub(crate) mod code;
mod link_local;
mod placement;
pub(crate) mod pods;
pub(crate) mod services;
mod text;
pub(crate) mod workloads;

use code::Code;
use workloads::Workloads;

/// All that was looked at.
pub(crate) struct World<'a> {
    /// What the cluster wants.
    pub(crate) input: &'a Input,
    /// The plan of this moment.
    pub(crate) plan: &'a Plan,
    /// The nodes as the API server has them.
    pub(crate) nodes: &'a [serde_json::Value],
    /// What runs of the workloads.
    pub(crate) workloads: &'a Workloads,
    /// What nodes answer.
    pub(crate) of_nodes: &'a Answers,
    /// What pods answer; none where they were not to be made.
    pub(crate) of_pods: Option<&'a pods::PodAnswers>,
}

/// What `nested verify` answers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NestedVerification {
    /// The cluster's name in OpenSDN.
    pub(crate) cluster: String,
    /// How it reaches the underlay.
    #[schemars(with = "String")]
    pub(crate) connectivity: Connectivity,
    /// The addresses of the Config API.
    pub(crate) config_api: Vec<String>,
    /// How many ended in which way.
    pub(crate) summary: Summary,
    /// What was looked at, by parts.
    pub(crate) results: Vec<Verified>,
}

impl Answer for NestedVerification {
    const KIND: &'static str = "NestedVerification";
}

/// Something that was looked at.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Verified {
    /// Of which part it is.
    pub(crate) part: Part,
    /// By what it is known where it is not as it has to be.
    pub(crate) code: &'static str,
    /// What it is about.
    pub(crate) subject: String,
    /// What it is.
    pub(crate) result: Outcome,
    /// What was found, or why it was not looked at.
    pub(crate) message: String,
    /// What to do, where something is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<String>,
    /// What each node says.
    pub(crate) nodes: Vec<NodeResult>,
}

/// A part of what is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    /// The list in the cloud, and what else a plan finds there.
    Cloud,
    /// Services, as nodes reach them.
    Services,
    /// Files of nodes.
    NodeFiles,
    /// kube-manager and the CNI agent.
    Workloads,
    /// Pods, as any other.
    Pods,
}

impl Verified {
    pub(crate) fn new(
        part: Part,
        code: &'static str,
        subject: impl Into<String>,
        verdict: Verdict,
    ) -> Self {
        Self {
            part,
            code,
            subject: subject.into(),
            result: verdict.outcome,
            message: verdict.message,
            fix: verdict.fix,
            nodes: verdict.nodes,
        }
    }

    /// With the remedy of the code, where something is wrong.
    fn of(part: Part, code: Code, subject: impl Into<String>, mut verdict: Verdict) -> Self {
        let is_bad = matches!(verdict.outcome, Outcome::Fail | Outcome::Warn);
        if is_bad && verdict.fix.is_none() {
            verdict.fix = Some(code.remedy().to_owned());
        }
        Self::new(part, code.as_str(), subject, verdict)
    }
}

/// Judges it all.
pub(crate) fn verify(world: &World<'_>, config_api: &[String]) -> NestedVerification {
    let mut results = link_local::judge(world.plan);
    results.extend(services::judge(world));
    results.extend(node_files(world.of_nodes));
    results.extend(workloads::judge(world.workloads));
    results.extend(pods::judge(world));
    let outcomes: Vec<Outcome> = results.iter().map(|one| one.result).collect();
    NestedVerification {
        cluster: world.plan.cluster.clone(),
        connectivity: world.plan.connectivity,
        config_api: config_api.to_vec(),
        summary: Summary::of(&outcomes),
        results,
    }
}

fn node_files(answers: &Answers) -> Vec<Verified> {
    use crate::checks::probed::rolled;
    use crate::nested::cni_files::{is_first, is_there};
    let each = |judge: &dyn Fn(&crate::probe::Answer) -> (Outcome, String), good: &str| {
        let results = answers.iter().map(|(node, answer)| {
            let (result, message) = match answer {
                Ok(answer) => judge(answer),
                Err(why) => (Outcome::Uncertain, why.clone()),
            };
            NodeResult { name: node.clone(), result, message }
        });
        rolled(results.collect(), good)
    };
    let there = each(&|answer| is_there(&answer.findings.cni), "10-contrail.conf is there");
    let first = each(&|answer| is_first(&answer.findings.cni), "no other is taken before it");
    vec![
        Verified::of(Part::NodeFiles, Code::CniFileMissing, "CNI configuration", there),
        Verified::of(Part::NodeFiles, Code::OtherCni, "other CNI configurations", first),
    ]
}

#[cfg(test)]
mod tests;
