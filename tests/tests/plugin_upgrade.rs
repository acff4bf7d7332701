//! `kubectl opensdn upgrade` on a real API server, where no operator runs: the test itself writes what the operator would
//! write into statuses. Deliberately not here: what is shown of single states (unit tests of `plugin/src/upgrade`), and
//! what the operator does (`operator_upgrade`).

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

mod before;
mod killed;
mod watched;
mod wishes;

use std::process::{Command, Output, Stdio};

use opensdn_crds::component::COMPONENTS;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::output::{code, text};
use opensdn_testing::programs::program;
use opensdn_testing::sandbox::{Sandbox, User};
use opensdn_testing::written_cluster::manager;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use crate::plugin_status::{document, plugin};

const KINDS: [&str; 4] = ["Cassandra", "Config", "Webui", "Vrouter"];
const UPGRADE: &str = "upgrades.opensdn.io";

/// A cluster with a Manager whose services are ready, as far as their objects say so.
struct Cluster {
    sandbox: Sandbox,
    kubeconfig: std::path::PathBuf,
}

impl Cluster {
    async fn start() -> Result<Self, Failed> {
        let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
        kubectl(&sandbox, &["create", "namespace", "tf"]).await?.success();
        // No controller runs that would make it, and no pod is without.
        kubectl(&sandbox, &["create", "serviceaccount", "default", "-n", "tf"]).await?.success();
        let kubeconfig = sandbox.kubeconfig_for(&User::new("alice").in_group("system:masters"))?;
        let cluster = Self { sandbox, kubeconfig };
        cluster.with_manager().await?;
        Ok(cluster)
    }

    /// Each service with its object and two pods.
    async fn with_manager(&self) -> Outcome {
        let text = manager(&KINDS).to_string().replace("example.com/", "example.com/contrail-");
        send(&self.sandbox, &["create"], &serde_json::from_str(&text)?).await?.success();
        let stored =
            read(&self.sandbox, &["-n", "tf", "managers.tf.tungsten.io", "cluster1"]).await?;
        let owner = json!([{"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager", "name": "cluster1",
            "uid": stored["metadata"]["uid"], "controller": true}]);
        for facts in COMPONENTS.iter().filter(|facts| KINDS.contains(&facts.kind)) {
            let (word, item) = (facts.kind.to_lowercase(), &stored["spec"]["services"][facts.key]);
            let item = item.get(0).unwrap_or(item);
            let name = format!("{word}1");
            let object = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": facts.kind,
                "metadata": {"name": name, "namespace": "tf", "ownerReferences": owner}, "spec": item["spec"]});
            let keeper = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": name, "controller": true}]);
            let pod = |number: usize| {
                json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": format!("{name}-{number}"), "namespace": "tf", "ownerReferences": keeper,
                    "labels": {"tf_manager": word, (word.clone()): name}},
                "spec": {"automountServiceAccountToken": false, "containers": [{"name": "a", "image": "a"}]}})
            };
            let items =
                json!({"apiVersion": "v1", "kind": "List", "items": [object, pod(0), pod(1)]});
            send(&self.sandbox, &["create"], &items).await?.success();
            let ready = json!({"type": "Ready", "status": "True", "reason": "PodsReady", "lastTransitionTime": "2026-11-25T08:00:00Z"});
            let status = json!({"observedGeneration": 1, "conditions": [ready]});
            self.set_status(&format!("{}.tf.tungsten.io", facts.plural), &name, &status).await?;
        }
        Ok(())
    }

    async fn set_status(&self, kind: &str, name: &str, status: &Value) -> Outcome {
        let patch = json!({ "status": status }).to_string();
        let words =
            ["patch", kind, name, "-n", "tf", "--subresource=status", "--type=merge", "-p", &patch];
        kubectl(&self.sandbox, &words).await?.success();
        Ok(())
    }

    /// As the operator writes it.
    async fn says(&self, name: &str, status: &Value) -> Outcome {
        self.set_status(UPGRADE, name, status).await
    }

    fn command(&self, line: &str) -> Result<Command, Failed> {
        self.command_by(&self.kubeconfig, line)
    }

    fn command_by(&self, kubeconfig: &std::path::Path, line: &str) -> Result<Command, Failed> {
        let mut command = Command::new(program("kubectl-opensdn")?);
        let words = ["upgrade", "-n", "tf", "--kubeconfig"].map(std::ffi::OsString::from);
        command.env_clear().env("HOME", "/nonexistent").args(words).arg(kubeconfig);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.args(line.split_whitespace());
        Ok(command)
    }

    fn run(&self, line: &str) -> Result<Output, Failed> {
        Ok(self.command(line)?.output()?)
    }

    /// It ends so, and says all of these.
    #[track_caller]
    fn expect(&self, line: &str, expected: i32, parts: &[&str]) -> Result<String, Failed> {
        let output = self.run(line)?;
        let said = text(&output);
        assert_eq!(code(&output), expected, "{line}: {said}");
        parts.iter().for_each(|part| {
            assert!(said.contains(part), "{line}: {part:?} is missing in: {said}")
        });
        Ok(said)
    }

    /// The document, as its schema has it, and the code.
    fn document(&self, line: &str) -> Result<(Value, i32), Failed> {
        let words: Vec<&str> =
            ["upgrade", "-n", "tf"].into_iter().chain(line.split_whitespace()).collect();
        document(&self.kubeconfig, &words)
    }

    async fn upgrade(&self, name: &str) -> Result<Value, Failed> {
        read(&self.sandbox, &["-n", "tf", UPGRADE, name]).await
    }

    async fn names(&self) -> Result<Vec<String>, Failed> {
        let all = read(&self.sandbox, &["-n", "tf", UPGRADE]).await?;
        let all = all["items"].as_array().into_iter().flatten();
        Ok(all.filter_map(|one| one["metadata"]["name"].as_str().map(str::to_owned)).collect())
    }
}

/// A status of two waves.
fn status(phase: &str, states: [&str; 2]) -> Value {
    let step = |id: &str, wave: &str, state: &str| {
        json!({"id": id, "wave": wave, "state": state, "attempts": 1,
            "images": [{"container": "api", "from": "x/a:R24.1", "to": "x/a:R25.1"}]})
    };
    let [config, web_ui] = states;
    json!({"phase": phase, "observedGeneration": 1, "from": "R24.1", "to": "R25.1",
        "message": format!("in phase {phase}"), "startedAt": "2026-11-25T08:00:00Z",
        "waves": [{"name": "config", "state": config}, {"name": "web-ui", "state": web_ui}],
        "steps": [step("Config/config1", "config", config), step("Webui/webui1", "web-ui", web_ui)]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_writes_nothing_and_only_what_was_looked_at_and_confirmed_is_applied() -> Outcome {
    let cluster = Cluster::start().await?;
    let (plan, code) = cluster.document("plan R25.1")?;
    assert_eq!((code, &plan["mayBegin"], &plan["pods"]), (0, &json!(true), &json!(8)), "{plan:#}");
    let services: Vec<_> =
        plan["services"].as_array().into_iter().flatten().map(|one| &one["service"]).collect();
    assert_eq!(
        services,
        ["Cassandra/cassandra1", "Config/config1", "Webui/webui1", "Vrouter/vrouter1"]
    );
    let hash = plan["hash"].as_str().ok_or("no hash")?;
    let next = format!("kubectl opensdn upgrade apply R25.1 --plan {hash} -n tf");
    assert_eq!(plan["next"], next);
    let meanwhile = ["MEANWHILE", "workloads of a node are cut off", "connect to another pod"];
    cluster.expect("plan R25.1", 0, &["WAVE", "node by node", "OSDN5013", &next])?;
    cluster.expect("plan R25.1", 0, &meanwhile)?;
    cluster.expect("plan R24.1", 0, &["up to date: R24.1"])?;
    cluster.expect("apply R24.1 --yes", 0, &["up to date: R24.1"])?;
    cluster.expect("plan R21.3", 1, &["OSDN5005", "nothing passes over it"])?;
    cluster.expect("apply R21.3 --yes --force OSDN5005", 1, &["OSDN5005"])?;
    cluster.expect(
        "plan --image api=x:1 --image nothing=x:1",
        1,
        &["OSDN5003", "container nothing"],
    )?;

    let other = cluster.expect(
        "apply R25.1 --yes --plan 0123456789",
        5,
        &["OSDN5010", "0123456789", hash],
    )?;
    assert!(other.contains(&next), "{other}");
    cluster.expect("apply R25.1", 5, &["needs a yes", "--yes"])?;
    let dry = cluster.expect("apply R25.1 --dry-run server", 0, &["nothing was written"])?;
    assert!(dry.contains(hash), "{dry}");
    assert_eq!(cluster.names().await?, Vec::<String>::new());

    let line = format!(
        "apply R25.1 --plan {hash} --yes --no-wait --pause-before vrouters --soak 2m --on-failure stop --vrouters-at-once 5 --wait-for-drain --no-pre-pull"
    );
    let (report, code) = cluster.document(&line)?;
    assert_eq!((code, &report["verdict"]), (0, &json!("running")), "{report:#}");
    let spec = &cluster.upgrade("to-r25-1").await?["spec"];
    let expected = json!({"manager": "cluster1", "version": "R25.1", "plan": hash, "requestedBy": "alice",
        "pauseBefore": ["vrouters"], "soak": "120s", "onFailure": "Stop", "vroutersAtOnce": 5, "waitForDrain": true, "prePull": false});
    assert_eq!(*spec, expected);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_ready_refuses_a_plan_unless_it_is_passed_over_by_its_code() -> Outcome {
    let cluster = Cluster::start().await?;
    let away = json!([{"type": "Ready", "status": "False", "message": "1 of 3 pods ready\u{1b}[2J",
        "lastTransitionTime": "2026-11-25T08:00:00Z"}]);
    cluster.set_status("configs.tf.tungsten.io", "config1", &json!({ "conditions": away })).await?;
    let said = cluster.expect(
        "plan R25.1",
        1,
        &["OSDN5008", "1 of 3 pods ready", "--force OSDN5008 passes over it"],
    )?;
    assert!(!said.contains('\u{1b}'), "{said:?}");
    let (plan, code) = cluster.document("plan R25.1 --force 5008")?;
    let mut remarks = plan["remarks"].as_array().into_iter().flatten();
    let forced = remarks.find(|one| one["code"] == "OSDN5008").ok_or("no remark")?;
    assert_eq!((code, &forced["severity"]), (0, &json!("Forced")), "{plan:#}");
    cluster.expect(
        "apply R25.1 --yes --no-wait --force OSDN5008",
        0,
        &["made the Upgrade tf/to-r25-1"],
    )?;
    assert_eq!(cluster.upgrade("to-r25-1").await?["spec"]["force"], json!(["OSDN5008"]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_is_named_a_kind_a_right_a_manager_or_an_upgrade() -> Outcome {
    let empty = Sandbox::builder().only_api_server().start().await?;
    for line in ["plan R25.1", "apply R25.1 --yes", "status", "history", "pause"] {
        let words: Vec<&str> = ["upgrade"].into_iter().chain(line.split(' ')).collect();
        let output = plugin(&empty.kubeconfig(), &words)?;
        assert_eq!(code(&output), 3, "{}", text(&output));
        assert!(text(&output).contains("kubectl opensdn install"), "{line}: {}", text(&output));
    }
    drop(empty);

    let cluster = Cluster::start().await?;
    let bob = cluster.sandbox.kubeconfig_for(&User::new("bob"))?;
    for (line, right) in [("plan R25.1", "managers"), ("status", "upgrades"), ("retry", "upgrades")]
    {
        let words: Vec<&str> = ["upgrade", "-n", "tf"].into_iter().chain(line.split(' ')).collect();
        let output = plugin(&bob, &words)?;
        assert_eq!(code(&output), 3, "{}", text(&output));
        let missing = format!("User \"bob\" cannot list resource \"{right}\"");
        assert!(text(&output).contains(&missing), "{line}: {}", text(&output));
    }
    let output = plugin(&cluster.kubeconfig, &["upgrade", "plan", "R25.1"])?;
    assert_eq!(code(&output), 2);
    let said = text(&output);
    assert!(
        said.contains("no Manager in the namespace default") && said.contains("one of: tf"),
        "{said}"
    );
    cluster.expect("status", 2, &["there is no Upgrade in the namespace tf"])?;
    cluster.expect("history", 0, &["there is no Upgrade in the namespace tf"])?;
    Ok(())
}
