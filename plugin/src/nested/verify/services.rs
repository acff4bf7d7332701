//! The services of the underlay as nodes reach them: which there are, what each is asked, and what its answer means.

use std::net::{Ipv4Addr, SocketAddr};

use opensdn_crds::nested_cluster::Connectivity;
use opensdn_nested::{Input, Plan, Role};
use opensdn_node_probe::{By, Question, Reached, Reply, WantedService};
use serde_json::Value;

use super::code::Code;
use super::{Part, Verified, World, placement};
use crate::checks::probed::rolled;
use crate::checks::report::{NodeResult, Outcome};
use crate::probe::peers::{OLDER, found};
use crate::snapshot::name;

/// A service of the underlay, as nodes reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    /// What it is.
    pub(crate) role: Role,
    /// Where it is.
    pub(crate) at: SocketAddr,
}

/// All of them: link-local services, and with fabric SNAT the real addresses of the others.
pub(crate) fn targets(plan: &Plan, input: &Input) -> Vec<Target> {
    let target =
        |role: Role, address: Ipv4Addr, port: u16| Target { role, at: (address, port).into() };
    let rows = plan.rows.iter();
    let rows = rows.map(|row| target(row.role, row.service.address, row.service.port));
    let mut all: Vec<Target> = rows.collect();
    if plan.connectivity == Connectivity::FabricSnat {
        for (role, service) in &input.services {
            all.extend(service.nodes.iter().map(|node| target(*role, *node, service.fabric_port)));
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

impl Target {
    /// What it is asked.
    pub(crate) fn question(self) -> WantedService {
        let question = match self.role {
            Role::Config | Role::Vrouter => Question::Get("/".to_owned()),
            Role::Keystone => Question::Get("/v3".to_owned()),
            Role::Analytics | Role::Rabbitmq | Role::ConfigDatabase | Role::Zookeeper => {
                Question::Connect
            }
        };
        WantedService { at: self.at, question }
    }

    pub(super) fn title(self) -> String {
        format!("{} {}", self.role.label(), self.at)
    }

    /// Whether it is what it has to be, with the words for it; else by which code it is not.
    pub(super) fn judge(self, reached: &Reached) -> Result<String, (Code, String)> {
        let other = |why: String| Err((Code::OtherService, why));
        match reached {
            Reached::No(why) => Err((Code::Unreachable, why.clone())),
            Reached::Connected => Ok("a connection".to_owned()),
            Reached::Silent(why) => {
                other(format!("it connects, and what answers is no HTTP: {why}"))
            }
            Reached::Answered(reply) if self.is_expected(reply) => Ok(match reply.by {
                By::Plain => "the expected answer".to_owned(),
                By::UnverifiedTls => {
                    "the expected answer, by TLS whose certificate was not checked".to_owned()
                }
            }),
            Reached::Answered(reply) => {
                let status =
                    reply.status.map_or_else(String::new, |status| format!("status {status}, "));
                let by = if reply.by == By::UnverifiedTls { "by TLS " } else { "" };
                other(format!("it connects, and {by}answers {status}{:?}", short(&reply.begins)))
            }
        }
    }

    fn is_expected(self, reply: &Reply) -> bool {
        let has = |key: &str| reply.keys.iter().any(|one| one == key);
        match self.role {
            Role::Config => reply.status == Some(200) && has("links"),
            Role::Keystone => reply.status == Some(200) && has("version"),
            // Whatever its agent is asked that it does not know.
            Role::Vrouter => {
                reply.status == Some(404)
                    && has("error")
                    && reply.begins.contains("Unknown Request")
            }
            Role::Analytics | Role::Rabbitmq | Role::ConfigDatabase | Role::Zookeeper => true,
        }
    }
}

fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Each service, as all nodes reach it.
pub(super) fn judge(world: &World<'_>) -> Vec<Verified> {
    let targets = targets(world.plan, world.input);
    targets.into_iter().map(|target| of_target(world, target)).collect()
}

fn of_target(world: &World<'_>, target: Target) -> Verified {
    let mut codes = Vec::new();
    let results = world.of_nodes.iter().map(|(node, answer)| {
        let (result, message) = match answer {
            Err(why) => (Outcome::Uncertain, why.clone()),
            Ok(answer) => match found(answer, target.at).map(|one| target.judge(&one.reached)) {
                None => (Outcome::Uncertain, OLDER.to_owned()),
                Some(Ok(good)) => (Outcome::Ok, good),
                Some(Err((code, why))) => {
                    codes.push(code);
                    bad(world, target, node, code, why)
                }
            },
        };
        NodeResult { name: node.clone(), result, message }
    });
    let results: Vec<NodeResult> = results.collect();
    let first_good = results.iter().find(|one| one.result == Outcome::Ok);
    let verdict = rolled(results.clone(), first_good.map_or("reached", |one| one.message.as_str()));
    let code = if codes.contains(&Code::Unreachable) {
        Code::Unreachable
    } else {
        codes.first().copied().unwrap_or(Code::Unreachable)
    };
    Verified::of(Part::Services, code, target.title(), verdict)
}

/// Workers need only the agent; the rest is kube-manager's.
fn bad(
    world: &World<'_>,
    target: Target,
    node: &str,
    code: Code,
    why: String,
) -> (Outcome, String) {
    let object = world.nodes.iter().find(|one| name(one) == node);
    let pod = world.workloads.kube_manager_pod();
    let runs = |object: &Value| pod.is_none_or(|pod| placement::can_run(pod, object));
    let is_needed =
        target.role == Role::Vrouter || code == Code::OtherService || object.is_none_or(runs);
    match is_needed {
        true => (Outcome::Fail, why),
        false => (Outcome::Warn, format!("{why} (kube-manager does not run here)")),
    }
}
