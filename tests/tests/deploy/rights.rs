//! The RBAC of `deploy/webhook` is what each account uses, by the API server's audit log: nothing that it
//! does is forbidden, and nothing is granted that it does not do.

use std::collections::BTreeSet;
use std::time::Duration;

use opensdn_deploy::names::{configuration, webhook};
use opensdn_testing::creation_order::wait_for_next_second;
use opensdn_testing::eventually::{TIMEOUT, eventually};
use opensdn_testing::installer::install_crds;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::product::{Installation, Product};
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::service;

/// The accounts, by the names of their roles: who answers reviews, and who writes the webhook
/// configurations.
const ACCOUNTS: [(&str, &str); 2] =
    [(webhook::NAME, webhook::USER), (configuration::NAME, configuration::USER)];

/// What is granted, but not done in this test, and when it is.
const NOT_SEEN: [(&str, &str); 2] = [
    (
        "patch events of events.k8s.io",
        "an Event that is repeated within minutes is counted up instead of written again",
    ),
    (
        "get services/proxy https:opensdn-webhook:443 in opensdn-system",
        "asked only where the webhook is behind a Service; the lab's outages show it",
    ),
];

/// Groups of which `audit.rs` shows what is done: without their definitions, as here, nothing is.
const NOT_SERVED: [&str; 2] = [" of openreports.io", " of wgpolicyk8s.io"];

/// A request of the webhook, or a right to one: `verb resource[/subresource] of group`, with the
/// namespace and the name where there are any.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Request {
    verb: String,
    group: String,
    resource: String,
    namespace: String,
    name: String,
}

/// A right that a rule grants.
#[derive(Debug)]
pub(crate) struct Right {
    verb: String,
    group: String,
    resource: String,
    /// Only there, if it is from a Role.
    namespace: Option<String>,
    /// Only that one, if the rule names names.
    name: Option<String>,
}

impl Right {
    pub(crate) fn allows(&self, request: &Request) -> bool {
        let whole = self.resource == "*" && !request.resource.contains('/');
        self.verb == request.verb
            && self.group == request.group
            && (whole || self.resource == request.resource)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == request.namespace)
            && self.name.as_ref().is_none_or(|name| *name == request.name)
    }

    pub(crate) fn text(&self) -> String {
        let Self { verb, group, resource, .. } = self;
        let mut text = format!("{verb} {resource}");
        if let Some(name) = &self.name {
            text.push_str(&format!(" {name}"));
        }
        if !group.is_empty() {
            text.push_str(&format!(" of {group}"));
        }
        if let Some(namespace) = &self.namespace {
            text.push_str(&format!(" in {namespace}"));
        }
        text
    }
}

/// The requests of an account, and those that were forbidden.
pub(crate) fn requests(
    sandbox: &Sandbox,
    user: &str,
) -> Result<(BTreeSet<Request>, Vec<String>), Failed> {
    let (mut seen, mut forbidden) = (BTreeSet::new(), Vec::new());
    for line in std::fs::read_to_string(sandbox.audit_log())?.lines() {
        // The API server may be writing the last one.
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        if event["user"]["username"] != user {
            continue;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if event["responseStatus"]["code"] == 403 {
            forbidden.push(format!("{} {}", event["verb"], event["requestURI"]));
        }
        let object = &event["objectRef"];
        let (mut resource, subresource) = (text(&object["resource"]), &object["subresource"]);
        if let Some(subresource) = subresource.as_str() {
            resource = format!("{resource}/{subresource}");
        }
        let request = Request {
            verb: text(&event["verb"]),
            group: text(&object["apiGroup"]),
            resource,
            namespace: text(&object["namespace"]),
            name: text(&object["name"]),
        };
        // An apply that creates needs the right to create as well.
        if request.verb == "patch" && event["responseStatus"]["code"] == 201 {
            seen.insert(Request { verb: "create".to_owned(), ..request.clone() });
        }
        seen.insert(request);
    }
    Ok((seen, forbidden))
}

/// What an account's roles of its own name grant: that of the cluster, and those of these namespaces.
pub(crate) async fn rights(
    sandbox: &Sandbox,
    account: &str,
    namespaces: &[&str],
) -> Result<Vec<Right>, Failed> {
    let mut rights = Vec::new();
    let roles = namespaces.iter().map(|namespace| ("role", Some(*namespace)));
    for (kind, namespace) in [("clusterrole", None)].into_iter().chain(roles) {
        let role = read(sandbox, &["-n", namespace.unwrap_or("default"), kind, account]).await?;
        for rule in role["rules"].as_array().into_iter().flatten() {
            let names = match texts(&rule["resourceNames"]) {
                none if none.is_empty() => vec![None],
                names => names.into_iter().map(Some).collect(),
            };
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    for verb in texts(&rule["verbs"]) {
                        rights.extend(names.iter().map(|name| Right {
                            verb: verb.clone(),
                            group: group.clone(),
                            resource: resource.clone(),
                            namespace: namespace.map(str::to_owned),
                            name: name.clone(),
                        }));
                    }
                }
            }
        }
    }
    Ok(rights)
}

fn texts(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

fn config(name: &str, ip: &str) -> Value {
    let entry = json!({"ipFabricServiceHost": "10.1.1.1", "ipFabricServicePort": 8080,
        "name": name, "ip": ip, "port": 80});
    let daemons = ["api", "devicemanager", "dnsmasq", "schematransformer", "servicemonitor"];
    let containers: Vec<Value> = daemons
        .into_iter()
        .chain(["nodemanager", "provisioner"])
        .map(|name| json!({"name": name, "image": format!("registry.example.com/{name}:R24.1")}))
        .collect();
    json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Config",
        "metadata": {"name": name, "namespace": "tf"},
        "spec": {"serviceConfiguration":
            {"linklocalServiceConfig": entry, "containers": containers}}})
}

fn nested(name: &str) -> Value {
    json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "NestedCluster",
        "metadata": {"name": name, "namespace": "tf"},
        "spec": {"clusterName": "k8s-a", "clusterNetwork": {"project": "admin", "name": "vms"},
            "configApi": {"urls": ["http://192.168.1.100:8082"]},
            "services": {"config": {"addresses": ["192.168.1.100"]}},
            "serviceAddresses": ["10.10.10.1"]}})
}

/// One older service and, of every kind that can, a newer object with the same address, stored
/// while no webhook was there to refuse it.
async fn conflicts(sandbox: &Sandbox) -> Outcome {
    install_crds(&sandbox.client()?, &opensdn_crds::all()).await?;
    kubectl(sandbox, &["create", "namespace", "tf"]).await?.success();
    send(sandbox, &["create"], &service("older", "169.254.7.1")).await?.success();
    wait_for_next_second().await;
    send(sandbox, &["create"], &service("younger", "169.254.7.1")).await?.success();
    let config = config("alone", "169.254.7.1");
    let service = &config["spec"];
    let manager = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
        "metadata": {"name": "cluster", "namespace": "tf"},
        "spec": {"services": {"config": {"metadata": {"name": "config1"}, "spec": service}}}});
    for name in ["older", "younger"] {
        send(sandbox, &["create"], &nested(name)).await?.success();
        wait_for_next_second().await;
    }
    for object in [&config, &manager] {
        send(sandbox, &["create"], object).await?.success();
    }
    Ok(())
}

/// The webhook's main paths, as users and administrators set them off.
async fn use_it(sandbox: &Sandbox, product: &Product) -> Outcome {
    // Claims: taken, contested, released.
    let (first, second) = (service("first", "169.254.7.2"), service("second", "169.254.7.2"));
    send(sandbox, &["create"], &first).await?.success();
    send(sandbox, &["create"], &second).await?.refused(&["tf/first"]);
    send(sandbox, &["create"], &first).await?.refused(&["already exists"]);
    written_again(sandbox).await?;
    send(sandbox, &["create"], &config("holding", "169.254.7.3")).await?.success();
    let third = service("third", "169.254.7.3");
    send(sandbox, &["create"], &third).await?.refused(&["tf/holding"]);
    kubectl(sandbox, &["label", "linklocalservice", "first", "-n", "tf", "a=b"]).await?.success();
    kubectl(sandbox, &["delete", "linklocalservice", "first", "-n", "tf"]).await?.success();
    // A policy from a ConfigMap, and one for some namespaces only.
    let place = json!({"namespace": "tf", "name": "later", "key": "policy.wasm"});
    let digest = format!("sha256:{}", "0".repeat(64));
    let module = json!({"configMap": place, "digest": digest});
    let policy = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy",
        "metadata": {"name": "later"}, "spec": {"module": module,
            "namespaceSelector": {"matchLabels": {"judge": "yes"}}}});
    send(sandbox, &["create"], &policy).await?.success();
    let selector = r#"{"spec":{"namespaceSelector":{"matchLabels":{"judge":"yes"}}}}"#;
    let patch = ["patch", "admissionpolicy", "plaintext", "--type=merge", "-p", selector];
    kubectl(sandbox, &patch).await?.success();
    // What is put right: what others have added to the configurations.
    let condition = r#"[{"op":"add","path":"/webhooks/0/matchConditions",
        "value":[{"name":"off","expression":"false"}]}]"#;
    let added = "-o=jsonpath={.webhooks[0].matchConditions}";
    for kind in ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"] {
        let tamper = ["patch", kind, "opensdn-webhook", "--type=json", "-p", condition];
        kubectl(sandbox, &tamper).await?.success();
        // Before it is deleted: what is gone by then is restored, not put right.
        let read = async || kubectl(sandbox, &["get", kind, "opensdn-webhook", added]).await;
        let is = async || read().await.is_ok_and(|said| said.ok && said.out.is_empty());
        eventually("what was added is taken out", is).await;
    }
    // What is restored: a configuration. What is rotated: the CA and the paths.
    let kind = "validatingwebhookconfiguration";
    kubectl(sandbox, &["delete", kind, "opensdn-webhook"]).await?.success();
    let secret = ["secret", "opensdn-webhook-ca", "-n", "opensdn-system"];
    let ask = [&["annotate"][..], &secret, &["opensdn.io/rotate-ca=now"]].concat();
    kubectl(sandbox, &ask).await?.success();
    let secret = ["secret", "opensdn-webhook-paths", "-n", "opensdn-system"];
    let ask = [&["annotate"][..], &secret, &["opensdn.io/rotate-paths=now"]].concat();
    kubectl(sandbox, &ask).await?.success();
    product.drain_replica(1).await;
    product.start_replica(1)?;
    Ok(())
}

/// Twice the same create that a quota refuses: the claim of the first try becomes that of the second.
async fn written_again(sandbox: &Sandbox) -> Outcome {
    let hard = "--hard=count/linklocalservices.opensdn.io=0";
    kubectl(sandbox, &["create", "quota", "none", "-n", "tf", hard]).await?.success();
    // As the controller manager would, which is not here.
    let none = json!({"count/linklocalservices.opensdn.io": "0"});
    let status = json!({"status": {"hard": none, "used": none}}).to_string();
    let patch =
        ["patch", "quota", "none", "-n", "tf", "--subresource=status", "--type=merge", "-p"];
    kubectl(sandbox, &[&patch[..], &[status.as_str()]].concat()).await?.success();
    let never = service("never", "169.254.7.4");
    let is_refused = async || {
        let said = send(sandbox, &["create", "--dry-run=server"], &never).await;
        said.is_ok_and(|said| said.err.contains("quota"))
    };
    eventually("the API server knows of the quota", is_refused).await;
    for _ in 0..2 {
        send(sandbox, &["create"], &never).await?.refused(&["quota"]);
    }
    kubectl(sandbox, &["delete", "quota", "none", "-n", "tf"]).await?.success();
    Ok(())
}

/// What is granted to the account and has not been seen yet.
async fn unused(sandbox: &Sandbox, account: &str, user: &str) -> Result<Vec<String>, Failed> {
    let (seen, _) = requests(sandbox, user)?;
    let rights = rights(sandbox, account, &["opensdn-system"]).await?;
    let unused = rights.iter().filter(|right| !seen.iter().any(|one| right.allows(one)));
    let unknown = |text: &String| {
        !NOT_SEEN.iter().any(|(known, _)| known == text)
            && !NOT_SERVED.iter().any(|group| text.ends_with(group))
    };
    Ok(unused.map(Right::text).filter(unknown).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_the_webhook_does_is_granted_and_all_that_is_granted_it_does() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    conflicts(&sandbox).await?;
    let installation = Installation::built()?.replicas(2).apart(2);
    let installation = installation.argument("--audit-delay=1").argument("--claim-grace=3");
    let product = installation.install(&sandbox).await?;
    use_it(&sandbox, &product).await?;

    let deadline = Instant::now() + TIMEOUT;
    for (account, user) in ACCOUNTS {
        while !unused(&sandbox, account, user).await?.is_empty() && Instant::now() < deadline {
            sleep(Duration::from_millis(500)).await;
        }
    }
    for (account, user) in ACCOUNTS {
        let (_, forbidden) = requests(&sandbox, user)?;
        assert!(forbidden.is_empty(), "not granted to {account}: {forbidden:#?}");
        let unused = unused(&sandbox, account, user).await?;
        assert!(unused.is_empty(), "granted to {account}, but never used: {unused:#?}");
    }
    Ok(())
}
