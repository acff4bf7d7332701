//! A page for each component (`docs/src/reference/components/`), made of what is applied for the golden case of its
//! name: what its pods are, what they mount, which files they read. `UPDATE=1` writes them again.

use std::fmt::Write as _;
use std::path::Path;

use crate::built::{ClusterState, Ended};
use opensdn_operator::component::{ComponentKind, word};
use opensdn_operator::components::described;
use opensdn_upgrade::order::{WAVES, has_canary};
use serde_json::Value;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
const PAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/reference/components");
/// An address of the golden cases; each pod has its own.
const ADDRESS: &str = ".192.0.2.";

fn list<'a>(value: &'a Value, pointer: &str) -> Vec<&'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten().collect()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn probe(container: &Value, key: &str) -> String {
    let probe = &container[key];
    if probe.is_null() {
        return "–".to_owned();
    }
    if let Some(port) = probe.pointer("/tcpSocket/port") {
        return format!("port {port} takes connections");
    }
    if let Some(port) = probe.pointer("/httpGet/port") {
        return format!("`GET {}` on port {port}", text(probe, "/httpGet/path"));
    }
    let command = list(probe, "/exec/command");
    let command = command.last().and_then(|last| last.as_str()).unwrap_or_default();
    format!("`{}`", command.replace('|', "\\|"))
}

fn requests(container: &Value) -> String {
    let requests = container.pointer("/resources/requests").and_then(Value::as_object);
    let each = requests.into_iter().flatten();
    let each = each.map(|(name, amount)| format!("{name} {}", amount.as_str().unwrap_or_default()));
    each.collect::<Vec<_>>().join(", ")
}

fn rights(container: &Value) -> String {
    let security = &container["securityContext"];
    if security["privileged"] == true {
        return "privileged".to_owned();
    }
    let added = list(security, "/capabilities/add");
    let added: Vec<_> = added.iter().filter_map(|one| one.as_str()).collect();
    if added.is_empty() { "–".to_owned() } else { added.join(", ") }
}

fn containers(page: &mut String, pod: &Value) {
    let init = list(pod, "/initContainers");
    if !init.is_empty() {
        let names = init.iter().map(|one| format!("`{}`", text(one, "/name")));
        let names = names.collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            page,
            "Init containers, in order, each only if it has an image or is needed: {names}.\n"
        );
    }
    let _ = writeln!(page, "| container | works, if | is ready, if | asks for | may do |");
    let _ = writeln!(page, "| --- | --- | --- | --- | --- |");
    for one in list(pod, "/containers") {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} |",
            text(one, "/name"),
            probe(one, "livenessProbe"),
            probe(one, "readinessProbe"),
            requests(one),
            rights(one)
        );
    }
}

fn volumes(page: &mut String, pod: &Value) {
    let folders: Vec<_> = list(pod, "/volumes")
        .into_iter()
        .filter(|volume| volume["hostPath"].is_object())
        .map(|volume| (text(volume, "/hostPath/path"), text(volume, "/name")))
        .collect();
    let _ = writeln!(page, "\n## On its nodes\n\n| folder | mounted by |\n| --- | --- |");
    for (path, name) in folders {
        let mounts =
            |one: &&&Value| list(one, "/volumeMounts").iter().any(|mount| mount["name"] == name);
        let all = [list(pod, "/initContainers"), list(pod, "/containers")].concat();
        let by: Vec<_> =
            all.iter().filter(mounts).map(|one| format!("`{}`", text(one, "/name"))).collect();
        let by = if by.len() == all.len() { "all".to_owned() } else { by.join(", ") };
        let _ = writeln!(page, "| `{path}` | {by} |");
    }
    let projected = |volume: &Value| -> Option<String> {
        let sources = list(volume, "/projected/sources");
        let name = |one: &Value| text(one, "/secret/name").to_owned();
        let (first, last) = (name(sources.first()?), name(sources.last()?));
        Some(format!("`{first}`, on hundreds of nodes also `{first}-2` to `{last}`"))
    };
    let secrets = list(pod, "/volumes").into_iter().filter_map(|volume| {
        let whole = volume["secret"].is_object().then(|| text(volume, "/secret/secretName"));
        whole.map(|name| format!("`{name}`")).or_else(|| projected(volume))
    });
    let secrets: Vec<_> = secrets.collect();
    let _ = writeln!(page, "\nIts pods mount these Secrets: {}.", secrets.join(", "));
}

fn files(page: &mut String, objects: &[Value]) {
    let maps = objects.iter().filter(|one| one["kind"] == "ConfigMap");
    let keys = maps.flat_map(|map| map["data"].as_object().cloned().unwrap_or_default());
    let mut names: Vec<_> = keys
        .map(|(key, _)| match key.split_once(ADDRESS) {
            Some((name, _)) => format!("`{name}.ADDRESS`"),
            None => format!("`{key}`"),
        })
        .collect();
    names.sort();
    names.dedup();
    let _ = writeln!(
        page,
        "\n## Files\n\nIn `/etc/contrailconfigmaps`; those with an address are one pod's own: {}.",
        names.join(", ")
    );
}

fn page(component: &dyn ComponentKind, objects: &[Value]) -> String {
    let kind = component.facts().kind;
    let mut page = format!(
        "# {kind}\n\nAs the operator makes it of the example in `operator/tests/golden/{}`. Ports and what it waits for \
         are [in the table of all](../components.md). Generated.\n\n| object | name |\n| --- | --- |\n",
        kind.to_lowercase()
    );
    for object in objects {
        let _ =
            writeln!(page, "| {} | `{}` |", text(object, "/kind"), text(object, "/metadata/name"));
    }
    let workload = objects.iter().find(|one| one.pointer("/spec/template").is_some()).unwrap();
    let how = match component.asked_before_a_restart() {
        Some(_) => {
            "Its pods are started again one at a time by the operator, after it has asked the service."
        }
        None if text(workload, "/kind") == "DaemonSet" => {
            "Its pods are started again one at a time, the next when the one before is ready."
        }
        None => "Its pods are started again one at a time, the next when all are ready.",
    };
    let _ = writeln!(page, "\n## Pods\n\n{how}\n");
    let pod = &workload["spec"]["template"]["spec"];
    containers(&mut page, pod);
    volumes(&mut page, pod);
    files(&mut page, objects);
    upgrade(&mut page, component, workload);
    page
}

/// How it gets other images.
fn upgrade(page: &mut String, component: &dyn ComponentKind, workload: &Value) {
    let kind = component.facts().kind;
    let place = WAVES.iter().position(|wave| wave.kinds.contains(&kind)).unwrap();
    let after = WAVES[..place].iter().map(|wave| format!("`{}`", wave.name)).collect::<Vec<_>>();
    let after = if after.is_empty() {
        "the first".to_owned()
    } else {
        format!("after {}", after.join(", "))
    };
    let seconds = &workload["spec"]["minReadySeconds"];
    let how = match text(workload, "/kind") {
        "DaemonSet" => format!(
            "One node after the other, the next when the pod on the one before has been ready for {seconds} s"
        ),
        _ if component.asked_before_a_restart().is_some() => {
            "The operator replaces one pod after the other".to_owned()
        }
        _ if seconds.is_null() => "The operator replaces one pod after the other, from the last to the first, when all are ready".to_owned(),
        _ => format!(
            "The operator replaces one pod after the other, from the last to the first, when all have been ready for {seconds} s"
        ),
    };
    let _ = writeln!(
        page,
        "\n## Upgrade\n\n[Wave](../../upgrade.md) `{}`: {after}. {how}.",
        WAVES[place].name
    );
    if has_canary(kind) {
        let _ = writeln!(
            page,
            "Where it has several pods, one is replaced first, and has to be well for `spec.soak` before the next."
        );
    }
    if let Some(asked) = component.asked_before_a_restart() {
        let _ = writeln!(page, "\nAsked before each: {asked}");
    }
    // As its own gate has it: opensdn-upgrade, `daemons.rs`.
    let asked = match kind {
        "Config" => Some("whether its daemons are functional"),
        "Control" => Some(
            "whether its daemons are functional, and agents have as many sessions with control nodes as before",
        ),
        "Vrouter" => Some(
            "whether its agent is functional and has a control node; with `--wait-for-drain` whether the node is drained",
        ),
        _ => None,
    };
    if let Some(asked) = asked {
        let _ = writeln!(
            page,
            "\nAsked in an Upgrade after each, by introspect where that answers: {asked}."
        );
    }
}

/// What runs in the place of its usual pods in a nested cluster, of a component that has a golden case of that.
fn nested(page: &mut String, word: &str) {
    let path = Path::new(GOLDEN).join(format!("{word}-nested")).join("in.yaml");
    if !path.exists() {
        return;
    }
    let around = ClusterState::read(&path);
    let Ended::Built(objects) = around.built(&around.object) else { panic!("{word} is refused") };
    let _ = writeln!(
        page,
        "\n## In a nested cluster\n\nAs it is made of `operator/tests/golden/{word}-nested`, in the place of all that is above. [How \
         it is run](../../nested.md#kube-manager-by-the-operator).\n\n| object | name |\n| --- | --- |"
    );
    for object in &objects {
        let _ =
            writeln!(page, "| {} | `{}` |", text(object, "/kind"), text(object, "/metadata/name"));
    }
    for workload in objects.iter().filter(|one| one.pointer("/spec/template").is_some()) {
        let _ = writeln!(page, "\n{}:\n", text(workload, "/kind"));
        containers(page, &workload["spec"]["template"]["spec"]);
    }
}

#[test]
fn the_page_of_each_component_is_current() {
    let mut stale = Vec::new();
    let mut index = String::new();
    for component in described() {
        let word = word(component.facts());
        let around = ClusterState::read(&Path::new(GOLDEN).join(&word).join("in.yaml"));
        let Ended::Built(objects) = around.built(&around.object) else {
            panic!("{word} is refused")
        };
        let kind = component.facts().kind;
        let mut text = page(component, &objects);
        nested(&mut text, &word);
        let path = Path::new(PAGES).join(format!("{word}.md"));
        let _ = writeln!(index, "  - [{kind}](reference/components/{word}.md)");
        if std::fs::read_to_string(&path).unwrap_or_default() == text {
            continue;
        }
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(PAGES).unwrap();
            std::fs::write(&path, text).unwrap();
        } else {
            stale.push(path.display().to_string());
        }
    }
    assert!(stale.is_empty(), "run again with UPDATE=1: {stale:?}");
    let summary = std::fs::read_to_string(Path::new(PAGES).join("../../SUMMARY.md")).unwrap();
    assert!(summary.contains(&index), "SUMMARY.md lacks, below «The components»:\n{index}");
}
