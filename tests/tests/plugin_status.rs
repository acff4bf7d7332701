//! `kubectl opensdn status` of a real control plane: what it says of a Manager that the real operator looks after, what a
//! user with few rights is shown, and how often it asks. What it makes of single states is tested in the plugin.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::path::Path;
use std::process::{Command, Output};

use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{kubectl, send};
use opensdn_testing::operator::Operator;
use opensdn_testing::programs::program;
use opensdn_testing::sandbox::{Sandbox, User};
use opensdn_testing::written_cluster::{manager, nodes_with_vrouters, written};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::operator::LABEL;

/// The plugin with nothing of the developer's; its output goes into pipes.
pub(crate) fn plugin(kubeconfig: &Path, arguments: &[&str]) -> Result<Output, Failed> {
    let home = tempfile::tempdir()?;
    let mut command = Command::new(program("kubectl-opensdn")?);
    command.env_clear().env("HOME", home.path()).arg("--kubeconfig").arg(kubeconfig);
    Ok(command.args(arguments).output()?)
}

/// The document that it answers, held to its published schema, and the code.
pub(crate) fn document(kubeconfig: &Path, arguments: &[&str]) -> Result<(Value, i32), Failed> {
    let output = plugin(kubeconfig, &[arguments, &["-o", "json"]].concat())?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let answer: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {text}"))?;
    let kind = answer["kind"].as_str().ok_or("the document has no kind")?.to_owned();
    let mut explain = Command::new(program("kubectl-opensdn")?);
    let schema = explain.env_clear().args(["explain", "--schema", &kind]).output()?.stdout;
    let validator = jsonschema::validator_for(&serde_json::from_slice(&schema)?)?;
    let wrong: Vec<String> =
        validator.iter_errors(&answer).map(|error| error.to_string()).collect();
    assert!(wrong.is_empty(), "{kind} is not as published: {wrong:#?}");
    Ok((answer, output.status.code().ok_or("ended by a signal")?))
}

fn component<'a>(report: &'a Value, kind: &str) -> &'a Value {
    let mut all = report["components"].as_array().into_iter().flatten();
    all.find(|one| one["kind"] == kind).unwrap_or(&Value::Null)
}

fn as_text(kubeconfig: &Path) -> Outcome {
    // As text: no escape in a pipe, also with pods, and within 80 columns.
    let output = plugin(kubeconfig, &["status", "--depth", "2"])?;
    let text = String::from_utf8(output.stdout)?;
    assert!(
        !text.contains('\u{1b}') && text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(text.contains("redis1-redis-statefulset-0"), "{text}");
    let legacy = plugin(kubeconfig, &["status", "redis", "--node", "node-0", "--legacy"])?;
    let legacy = String::from_utf8(legacy.stdout)?;
    assert!(
        legacy.starts_with("== Contrail redis ==\n") && legacy.contains("stunnel: active"),
        "{legacy}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_manager_that_the_operator_looks_after_status_says_what_works_and_what_the_cause_is()
-> Outcome {
    let sandbox = Sandbox::builder().simulated_nodes(3).with_crds().await?;
    let _operator = Operator::install(&sandbox, 1).await?;
    kubectl(&sandbox, &["label", "nodes", "--all", LABEL]).await?.success();
    let kubeconfig = sandbox.kubeconfig();
    let (report, code) = document(&kubeconfig, &["status"])?;
    assert_eq!((&report["state"], code), (&json!("absent"), 1), "{report:#}");

    send(&sandbox, &["apply"], &manager(&["Redis", "Rabbitmq"])).await?.success();
    let is_active = async || {
        document(&kubeconfig, &["status"])
            .is_ok_and(|(report, code)| report["state"] == "active" && code == 0)
    };
    eventually("status says active", is_active).await;
    let (report, _) = document(&kubeconfig, &["status"])?;
    assert_eq!(
        component(&report, "Redis")["podsReady"],
        json!({"ready": 3, "wanted": 3}),
        "{report:#}"
    );
    assert_eq!(component(&report, "Redis")["versions"], json!(["R24.1"]));
    assert_eq!(report["nodes"], json!({"ready": 3, "wanted": 3}));
    assert_eq!(report["causes"], json!([]));

    as_text(&kubeconfig)?;
    certificates_are_good(&kubeconfig)?;

    // ZooKeeper has no node, and never had one: what runs would serve on. What needs it waits, and only it is the cause.
    let mut degraded = manager(&["Redis", "Zookeeper", "Cassandra", "Rabbitmq", "Config"]);
    degraded["spec"]["services"]["zookeeper"]["spec"]["commonConfiguration"] =
        json!({"nodeSelector": {"rack": "none"}});
    send(&sandbox, &["apply"], &degraded).await?.success();
    let is_known = async || {
        document(&kubeconfig, &["status"]).is_ok_and(|(report, _)| {
            let causes = report["causes"]
                .as_array()
                .map(|all| all.iter().map(|one| one["name"].clone()).collect());
            causes == Some(vec![json!("zookeeper1")])
        })
    };
    eventually("ZooKeeper is the only cause", is_known).await;
    let (report, code) = document(&kubeconfig, &["status"])?;
    assert_eq!((&report["state"], code), (&json!("degraded"), 1), "{report:#}");
    assert!(
        report["causes"][0]["message"].as_str().is_some_and(|text| text.contains("rack=none")),
        "{report:#}"
    );
    let config = component(&report, "Config");
    assert_eq!(config["blockedBy"], json!(["Zookeeper zookeeper1"]), "{report:#}");
    let output = plugin(&kubeconfig, &["status"])?;
    let text = String::from_utf8(output.stdout)?;
    assert!(
        text.contains("cause  Zookeeper zookeeper1: ")
            && text.contains("blocked by Zookeeper zookeeper1"),
        "{text}"
    );
    assert_eq!(
        plugin(&kubeconfig, &["status", "redis"])?.status.code(),
        Some(0),
        "of Redis nothing is wrong"
    );
    Ok(())
}

/// The requests of a user, as verb and path, without those that were counted before.
fn requests(sandbox: &Sandbox, user: &str, before: usize) -> Result<Vec<String>, Failed> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(sandbox
        .requests_of(user)?
        .iter()
        .map(|event| format!("{} {}", text(&event["verb"]), text(&event["requestURI"])))
        .skip(before)
        .collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_asks_as_often_of_300_nodes_as_of_one_and_for_twelve_lists_at_most() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    written(&sandbox).await?;
    let counted = sandbox.kubeconfig_for(&User::new("counted").in_group("system:masters"))?;
    // A CRD that was just made is served a moment later, and until then the API server has a client ask again.
    document(&sandbox.kubeconfig(), &["status"])?;
    let mut before = 0;
    let mut each = Vec::new();
    for (has, more) in [(1, 0..1), (300, 1..300)] {
        nodes_with_vrouters(&sandbox, more).await?;
        let (report, _) = document(&counted, &["status"])?;
        assert_eq!(report["nodes"]["wanted"], has, "{}", report["nodes"]);
        assert_eq!(component(&report, "Vrouter")["pods"].as_array().map(Vec::len), Some(has));
        let known = async || {
            requests(&sandbox, "counted", before)
                .is_ok_and(|all| all.iter().any(|one| one.contains("/leases/")))
        };
        eventually("the requests are in the audit log", known).await;
        let mut seen = requests(&sandbox, "counted", before)?;
        before += seen.len();
        seen.sort();
        each.push(seen);
    }
    let lists = each[0].iter().filter(|request| request.starts_with("list ")).count();
    assert!((1..=12).contains(&lists), "{:#?}", each[0]);
    assert_eq!(each[0], each[1]);
    assert!(
        each[0].iter().all(|request| request.starts_with("list ") || request.starts_with("get ")),
        "{:#?}",
        each[0]
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_user_may_not_read_is_a_question_mark_and_the_rest_is_shown() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    written(&sandbox).await?;
    let bob = sandbox.kubeconfig_for(&User::new("bob"))?;
    let (report, code) = document(&bob, &["status"])?;
    assert_eq!((&report["state"], code), (&json!("unknown"), 3), "{report:#}");
    let unread = report["notRead"].as_array().cloned().unwrap_or_default();
    assert!(
        unread.iter().any(|one| one["what"] == "Managers"
            && one["why"].as_str().is_some_and(|why| why.contains("\"bob\""))),
        "{report:#}"
    );

    for grant in [
        &["role", "managers", "--verb=list", "--resource=managers.tf.tungsten.io"][..],
        &["rolebinding", "managers", "--role=managers", "--user=bob"],
    ] {
        kubectl(&sandbox, &[&["create", "-n", "tf"], grant].concat()).await?.success();
    }
    let (report, code) = document(&bob, &["status", "-n", "tf"])?;
    assert_eq!((&report["state"], code), (&json!("active"), 0), "{report:#}");
    assert_eq!(
        component(&report, "Redis")["podsReady"],
        json!({"ready": null, "wanted": null}),
        "{report:#}"
    );
    let output = plugin(&bob, &["status", "-n", "tf"])?;
    let (text, said) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    assert!(text.contains("nodes ?") && text.contains("redis         ?      active"), "{text}");
    assert!(said.contains("not read: pods: ") && !said.contains("error"), "{said}");

    // Where nothing answers nothing is said.
    let output = plugin(&bob, &["status", "--server", "https://127.0.0.1:1", "-o", "json"])?;
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!((&answer["kind"], output.status.code()), (&json!("Error"), Some(3)), "{answer:#}");
    assert_eq!(plugin(&bob, &["status", "no-such-component"])?.status.code(), Some(2));
    Ok(())
}

/// The rules of a ClusterRole with what the page says that `status` needs, and no more.
pub(crate) fn rules_of_the_page() -> Result<Vec<Value>, Failed> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/status.md");
    let page = std::fs::read_to_string(page)?;
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let verb = cells.next().filter(|verb| ["list", "get"].contains(verb))?;
        Some((verb, cells.next()?))
    });
    let mut rules = Vec::new();
    for (verb, resources) in rows {
        // In backticks are resources, and namespaces and names of which a rule knows nothing here.
        for resource in resources.split('`').skip(1).step_by(2) {
            let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
            let plural = if plural == "tf-operator" { "deployments" } else { plural };
            let group = if plural == "deployments" { "apps" } else { group };
            rules.push(json!({"verbs": [verb], "apiGroups": [group], "resources": [plural]}));
        }
    }
    assert!(rules.len() > 8, "the table of rights has gone: {rules:?}");
    Ok(rules)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_rights_of_its_page_and_no_others_status_reads_all() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    written(&sandbox).await?;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "page"}, "rules": rules_of_the_page()?});
    send(&sandbox, &["create"], &role).await?.success();
    let bind = ["create", "clusterrolebinding", "page", "--clusterrole=page", "--user=eve"];
    kubectl(&sandbox, &bind).await?.success();
    let eve = sandbox.kubeconfig_for(&User::new("eve"))?;
    let seen = async || document(&eve, &["status"]).is_ok_and(|(_, code)| code != 3);
    eventually("the rights are known", seen).await;
    let (report, _) = document(&eve, &["status"])?;
    let unread = report["notRead"].as_array().cloned().unwrap_or_default();
    assert!(unread.is_empty(), "{unread:#?}");
    Ok(())
}

/// Redis has two for each node, as a server and as a client, of the CA that the operator has made.
fn certificates_are_good(kubeconfig: &Path) -> Outcome {
    let (report, code) = document(kubeconfig, &["certs", "status"])?;
    let all = report["certificates"].as_array().ok_or("no certificates")?;
    let of = |user: &str| all.iter().filter(|one| one["usedBy"] == user).count();
    assert_eq!((code, of("Redis redis1"), of("CA")), (0, 6, 1), "{report:#}");
    assert!(all.iter().all(|one| one["state"] == "ok" && one["issuer"] != ""), "{report:#}");
    let shown = plugin(kubeconfig, &["certs", "status"])?;
    let shown = String::from_utf8(shown.stdout)?;
    assert!(shown.starts_with("STATE") && !shown.contains("BEGIN"), "{shown}");
    Ok(())
}
