//! All pods, and of each only what a check judges: others write what else is in it, as much as they like. Asked for in
//! pages, of which one is held at a time.

use serde_json::{Map, Value, json};

use crate::checks::cluster_api::quantity;
use crate::checks::ports::{NODE_PORTS_FLAG, VARIABLES};
use crate::checks::sizes::RESOURCES;
use crate::checks::subnets::in_use::OWN_NETWORK;
use crate::snapshot::ask::Asker;
use crate::snapshot::{Read, condition, list, number, text};

/// More labels of one pod are not looked at.
const MOST_LABELS: usize = 64;
/// The label by which a component's pods are known.
const COMPONENT: &str = "tf_manager";
/// The names of images are no longer.
const LONGEST_IMAGE: usize = 1024;
/// Nor are ports and switches.
const LONGEST_VALUE: usize = 64;

/// All pods.
pub(super) async fn pods(asker: &Asker) -> Read<Vec<Value>> {
    asker.picked("/api/v1/pods", |pod| Some(kept(pod))).await
}

/// The pod with what is judged of it.
pub(in crate::checks) fn kept(pod: &Value) -> Value {
    let is_host = pod.pointer("/spec/hostNetwork").and_then(Value::as_bool) == Some(true);
    let containers: Vec<Value> =
        list(pod, "/spec/containers").map(|one| container(one, is_host)).collect();
    let ready = condition(pod, "Ready");
    let ready = ready.map(|one| json!({"type": "Ready", "status": text(one, "/status")}));
    json!({
        "metadata": {
            "name": text(pod, "/metadata/name"),
            "namespace": text(pod, "/metadata/namespace"),
            "uid": text(pod, "/metadata/uid"),
            "labels": labels(pod),
        },
        "spec": {
            "nodeName": text(pod, "/spec/nodeName"),
            "hostNetwork": is_host,
            "priorityClassName": text(pod, "/spec/priorityClassName"),
            "containers": containers,
        },
        "status": {"phase": text(pod, "/status/phase"), "podIP": text(pod, "/status/podIP"),
            "conditions": Vec::from_iter(ready)},
        "requests": requests(pod),
        "hasOwnNetwork": has_own_network(pod),
    })
}

/// What its containers request in sum, as numbers: no less than each init container, which runs before.
fn requests(pod: &Value) -> Map<String, Value> {
    let of = |container: &Value, what: &str| {
        let stated = container.pointer("/resources/requests").and_then(|all| all.get(what));
        stated.and_then(quantity).unwrap_or_default()
    };
    let sum = |what: &str| {
        let all: f64 = list(pod, "/spec/containers").map(|one| of(one, what)).sum();
        let before = list(pod, "/spec/initContainers").map(|one| of(one, what));
        before.fold(all, f64::max)
    };
    RESOURCES.iter().map(|what| ((*what).to_owned(), json!(sum(what)))).collect()
}

/// Whether kube-manager gives it an address of another network than that of pods.
fn has_own_network(pod: &Value) -> bool {
    let annotations = pod.pointer("/metadata/annotations");
    annotations.is_some_and(|all| all.get(OWN_NETWORK).is_some())
}

fn labels(pod: &Value) -> Map<String, Value> {
    let all = pod.pointer("/metadata/labels").and_then(Value::as_object);
    let of_component = all.and_then(|all| all.get_key_value(COMPONENT));
    let all = all.into_iter().flatten().take(MOST_LABELS).chain(of_component);
    all.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// What it claims on its node, and what says that it listens elsewhere.
fn container(container: &Value, is_host: bool) -> Value {
    let image: String = text(container, "/image").chars().take(LONGEST_IMAGE).collect();
    let claims = |port: &&Value| is_host || number(port, "/hostPort").is_some_and(|port| port > 0);
    let ports: Vec<Value> = list(container, "/ports")
        .filter(claims)
        .map(|port| {
            let number = |pointer| number(port, pointer);
            json!({"hostPort": number("/hostPort"), "containerPort": number("/containerPort"),
                "protocol": text(port, "/protocol")})
        })
        .collect();
    let is_read = |one: &&Value| VARIABLES.contains(&text(one, "/name"));
    let variable = |one: &Value| {
        let value = one.pointer("/value").and_then(Value::as_str);
        let value = value.map(|value| value.chars().take(LONGEST_VALUE).collect::<String>());
        json!({"name": text(one, "/name"), "value": value})
    };
    let env: Vec<Value> = list(container, "/env").filter(is_read).map(variable).collect();
    let words = list(container, "/command").chain(list(container, "/args"));
    let is_read = |word: &&Value| word.as_str().is_some_and(|one| one.starts_with(NODE_PORTS_FLAG));
    let args: Vec<&Value> = words.filter(is_read).collect();
    json!({"image": image, "ports": ports, "env": env, "args": args})
}

#[cfg(test)]
mod tests {
    use kube::{Client, Config};

    use super::*;
    use crate::fake_api_server::{FakeApiServer, Reply, refusal};

    fn asker(
        answer: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
    ) -> (Asker, FakeApiServer) {
        let server = FakeApiServer::start(answer);
        let mut config = Config::new(server.url().parse().unwrap());
        (config.proxy_url, config.default_retry) = (None, false);
        (Asker::new(Client::try_from(config).unwrap()), server)
    }

    fn large(name: &str) -> Value {
        let env = json!([{"name": "FELIX_PROMETHEUSMETRICSPORT", "value": "9099"}, {"name": "A", "value": "b".repeat(1000)}]);
        json!({"metadata": {"name": name, "annotations": {"a": "x".repeat(900_000)}, "labels": {"tf_manager": "control"}},
            "spec": {"nodeName": "w1", "containers": [{"image": "i", "env": env, "ports": [{"containerPort": 80}]}]}})
    }

    #[tokio::test]
    async fn all_pages_are_read_and_of_a_large_pod_little_is_kept() {
        let (asker, server) = asker(|_, before| {
            let next = if before < 2 { "more=" } else { "" };
            let name = format!("p{before}");
            Reply::Document(
                200,
                "",
                json!({"items": [large(&name)], "metadata": {"continue": next}}),
            )
        });
        let read = pods(&asker).await;
        let names: Vec<&str> = read.items().iter().map(crate::snapshot::name).collect();
        assert_eq!(names, ["p0", "p1", "p2"]);
        assert_eq!(server.seen().len(), 3);
        let held = Value::from(read.items()).to_string();
        assert!(held.len() < 3000, "{held}");
        assert!(
            held.contains("9099") && held.contains("control") && !held.contains("bbb"),
            "{held}"
        );
    }

    #[tokio::test]
    async fn a_page_that_may_not_be_read_makes_pods_unknown() {
        let (asker, _server) = asker(|_, before| match before {
            0 => Reply::Document(200, "", json!({"items": [], "metadata": {"continue": "more"}})),
            _ => refusal(403, "Forbidden", "cannot list"),
        });
        assert!(pods(&asker).await.why_unknown().is_some());
        let (asker, _server) =
            self::asker(|_, _| Reply::Document(200, "", json!({"kind": "Other"})));
        assert!(pods(&asker).await.why_unknown().is_some(), "that is no list");
    }
}
