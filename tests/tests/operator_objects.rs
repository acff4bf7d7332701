//! The rules by which the campaign (`operator/tests/campaign`) knows what the API server would refuse of the operator's objects are the
//! API server's own: asked for all objects of the golden files, and for what becomes of them when single values are replaced.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

#[path = "../../operator/tests/campaign/accepted.rs"]
mod accepted;

use std::fs;

use opensdn_testing::kubectl::send;
use opensdn_testing::shared::Shared;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../operator/tests/golden");
const APPLY: [&str; 4] = ["apply", "--server-side", "--dry-run=server", "--force-conflicts"];

/// All objects of a golden file, in that namespace.
fn objects(case: &str, namespace: &str) -> Result<Vec<Value>, Failed> {
    let text = fs::read_to_string(format!("{GOLDEN}/{case}/out.yaml"))?;
    let mut all: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    for object in &mut all {
        object["metadata"]["namespace"] = namespace.into();
    }
    Ok(all)
}

#[tokio::test]
async fn the_api_server_takes_every_object_of_the_golden_files() -> Outcome {
    let shared = Shared::with_crds().await?;
    let namespace = shared.namespace().await?;
    for case in fs::read_dir(GOLDEN)? {
        let case = case?.file_name().to_string_lossy().into_owned();
        let all = objects(&case, &namespace)?;
        for object in &all {
            let problems = accepted::problems(object);
            assert!(problems.is_empty(), "{case}: {}: {problems:?}", object["kind"]);
        }
        let list = json!({"apiVersion": "v1", "kind": "List", "items": all});
        let said = send(shared, &APPLY, &list).await?;
        assert!(said.ok, "{case}: {}", said.err);
    }
    Ok(())
}

/// What is replaced in the StatefulSet of Redis.
fn replaced() -> Vec<(&'static str, Value)> {
    const POD: &str = "/spec/template/spec";
    let of_pod = [
        ("nodeSelector", json!({"zone": "a"})),
        ("nodeSelector", json!({"zone": "a b"})),
        ("nodeSelector", json!({"a/b/c": "x"})),
        ("tolerations", json!([{"operator": "Exists"}])),
        ("tolerations", json!([{"key": "a", "value": "b c"}])),
        ("tolerations", json!([{"key": "a", "value": "b"}])),
        ("tolerations", json!([{"key": "x".repeat(64), "operator": "Exists"}])),
        ("tolerations", json!([{"key": "a", "operator": "Exists", "value": "b"}])),
        ("tolerations", json!([{"value": "b"}])),
        ("tolerations", json!([{"key": "a", "effect": "Else"}])),
        ("tolerations", json!([{"operator": "Exists", "tolerationSeconds": 1}])),
        ("imagePullSecrets", json!([{"name": "a"}, {"name": "b"}])),
        ("imagePullSecrets", json!([{"name": "a"}, {"name": "a"}])),
        ("containers/0/image", json!("")),
        ("containers/0/name", json!("stunnel")),
        ("containers/0/name", json!("Redis")),
        ("containers/0/env", json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}])),
        ("containers/0/env", json!([{"name": "A=B", "value": "1"}])),
        ("containers/0/env", json!([{"name": "", "value": "1"}])),
        ("containers/0/env", json!([{"name": "1 A", "value": "1"}])),
        ("containers/0/volumeMounts/0/mountPath", json!("a:b")),
        ("containers/0/volumeMounts/0/name", json!("unknown")),
        ("containers/1/readinessProbe/tcpSocket/port", json!(0)),
        ("containers/1/readinessProbe/tcpSocket/port", json!(65_536)),
        ("containers/0/resources", json!({"requests": {"cpu": "x"}})),
        (
            "containers/0/resources",
            json!({"limits": {"hugepages-2Mi": "4Mi"}, "requests": {"hugepages-2Mi": "4Mi"}}),
        ),
        (
            "containers/0/resources",
            json!({"limits": {"hugepages-2Mi": "4Mi"}, "requests": {"hugepages-2Mi": "2Mi", "memory": "1Mi"}}),
        ),
        ("volumes/0/name", json!("Volume")),
        ("volumes/3", json!({"name": "redis-data", "hostPath": {"path": "/var/../etc"}})),
    ];
    let of_pod = of_pod.into_iter().map(|(field, value)| {
        let pointer: &'static str = Box::leak(format!("{POD}/{field}").into_boxed_str());
        (pointer, value)
    });
    let others = [
        ("/spec/selector/matchLabels/redis", json!("other")),
        ("/metadata/labels/redis", json!("a b")),
        ("/metadata/name", json!("Redis")),
        ("/spec/template/metadata/labels/redis", json!("x".repeat(64))),
    ];
    of_pod.chain(others).collect()
}

#[tokio::test]
async fn what_the_campaign_takes_for_refused_the_api_server_refuses_and_nothing_else() -> Outcome {
    let shared = Shared::with_crds().await?;
    let namespace = shared.namespace().await?;
    let all = objects("redis", &namespace)?;
    let set = all.iter().find(|one| one["kind"] == "StatefulSet").ok_or("no StatefulSet")?;
    // An image with white space at its ends is refused of a pod, and not of a template.
    let (mut ended, mut wrong) = ([0, 0], Vec::new());
    for (pointer, value) in replaced() {
        let mut changed = set.clone();
        let (parent, last) = pointer.rsplit_once('/').ok_or(pointer)?;
        let parent = changed.pointer_mut(parent).ok_or(pointer)?;
        match last.parse::<usize>() {
            Ok(at) => parent[at] = value.clone(),
            Err(_) => parent[last] = value.clone(),
        }
        let problems = accepted::problems(&changed);
        let said = send(shared, &APPLY, &changed).await?;
        if problems.is_empty() != said.ok {
            wrong.push(format!("{pointer} = {value}: {problems:?}, and {}", said.err));
        }
        ended[usize::from(said.ok)] += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ended[0] > 15 && ended[1] > 4, "{ended:?}");
    Ok(())
}
