//! Pods of a probe as a healthy cluster has them: one on each node for each DaemonSet of a run, whose log says that it
//! reaches all that it was asked for.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may end here, and the line says where"
)]

use opensdn_node_probe::{
    By, NameFinding, Names, NodeFindings, Question, Reached, Seen, ServiceFinding, Wanted,
};
use serde_json::{Value, json};

use crate::fake_api_server::{Asked, Reply};
use crate::healthy_cluster::NODES;
use crate::stored_objects::StoredObjects;

/// What is answered of a run; nothing of other requests.
pub(crate) fn answer(stored: &StoredObjects, asked: &Asked) -> Option<Reply> {
    let (namespace, rest) = asked.line.split_once("/namespaces/")?.1.split_once('/')?;
    if !namespace.starts_with("opensdn-probe-") || !asked.line.starts_with("GET ") {
        return None;
    }
    let sets = stored.list(&format!("/apis/apps/v1/namespaces/{namespace}/daemonsets"), "");
    let list = |items: Vec<Value>| Reply::Document(200, "", json!({"items": items}));
    Some(match rest {
        "pods" => list(sets.iter().flat_map(pods).collect()),
        "endpointslices" => list(vec![json!({"endpoints": NODES})]),
        "events" => list(Vec::new()),
        _ => {
            let pod = rest.strip_prefix("pods/")?.strip_suffix("/log")?;
            let (set, node) = pod.rsplit_once('-')?;
            let set = sets.iter().find(|one| one["metadata"]["name"] == set)?;
            Reply::Text(200, log(set, node, namespace).leak())
        }
    })
}

fn pods(set: &Value) -> Vec<Value> {
    let name = set["metadata"]["name"].as_str().unwrap();
    let pod = |(node, _): &(&str, &str)| {
        json!({"metadata": {"name": format!("{name}-{node}"), "labels": set["metadata"]["labels"]},
            "spec": {"nodeName": node}, "status": {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}})
    };
    NODES.iter().map(pod).collect()
}

fn log(set: &Value, node: &str, mark: &str) -> String {
    let variable = set.pointer("/spec/template/spec/containers/0/env/0/value").unwrap();
    let wanted: Wanted = serde_json::from_str(variable.as_str().unwrap()).unwrap();
    let number = NODES.iter().position(|(name, _)| *name == node).unwrap();
    let unknown = || json!({"unknown": "it was not looked at"});
    let kernel = ["release", "loaded", "files", "headers", "secureBoot", "onlySigned", "lockdown"];
    let kernel: Value = kernel.map(|key| (key.to_owned(), unknown())).into_iter().collect();
    let findings = json!({"kind": "NodeFindings", "format": 1, "version": "0.1.0",
        "addresses": [format!("10.32.{number}.7")], "ports": [], "kernel": kernel, "interfaces": unknown(),
        "routes": unknown(), "cni": unknown(), "directories": [], "hugePages": unknown(),
        "sysctls": [], "swaps": unknown(), "synchronised": unknown(), "firewall": unknown()});
    let mut findings: NodeFindings = serde_json::from_value(findings).unwrap();
    findings.listens = wanted.listen.map(|listen| Seen::Is(listen.port));
    findings.services = wanted.services.into_iter().map(|wanted| reached(wanted, mark)).collect();
    let addresses = || Seen::Is(vec!["10.96.0.1".parse().unwrap()]);
    let names = wanted.names.into_iter().map(|name| NameFinding { name, addresses: addresses() });
    findings.names = Names { own: None, wanted: names.collect() };
    serde_json::to_string(&findings).unwrap() + "\n"
}

fn reached(wanted: opensdn_node_probe::WantedService, mark: &str) -> ServiceFinding {
    let reached = match wanted.question {
        Question::Connect | Question::Get(_) => Reached::Connected,
        Question::Line => Reached::Answered(opensdn_node_probe::Reply {
            by: By::Plain,
            status: None,
            keys: Vec::new(),
            begins: mark.to_owned(),
        }),
    };
    ServiceFinding { wanted, reached }
}
