//! What a tenant may make as often as he likes stops nobody else: the policies look at the first few only.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use opensdn_policies::ALL;
use opensdn_policy_host::{
    Engine, Policy,
    cases::{self, Case},
};
use serde_json::json;

/// Of a name this long, they are more than the 4 MiB that an evaluation may find.
const SERVICES: usize = 20_000;

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_link_local_services_of_one_name_stop_nobody_who_wants_it() {
    let built_in = ALL.iter().find(|policy| policy.name == "duplicate-link-local").unwrap();
    let engine = Engine::start(4).unwrap();
    let policy =
        Policy::load(&engine, built_in.bytes, None, crate::compiled().as_ref()).await.unwrap();
    let name = ["a".repeat(60), "b".repeat(60), "c".repeat(60), "d".repeat(60)].join(".");
    let service = |namespace: &str, ip: &str| {
        json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "LinkLocalService",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"name": name, "ip": ip, "port": 123, "fabric": {"addresses": ["192.0.2.1"], "port": 123}}})
    };
    let cluster: Vec<_> =
        (0..SERVICES).map(|number| service(&format!("tenant{number}"), "169.254.77.1")).collect();
    let judge = async |ip: &str| {
        let case = json!({"object": service("another", ip), "cluster": cluster, "expect": {}});
        let case: Case = serde_json::from_value(case).unwrap();
        let verdict = cases::run(&policy, &case).await.unwrap().verdict;
        assert_eq!(verdict.failures, []);
        verdict.findings.into_iter().map(|finding| finding.code).collect::<Vec<_>>()
    };
    assert_eq!(judge("169.254.10.1").await, ["OSDN3011"], "of another address it is warned");
    assert_eq!(judge("169.254.77.1").await, [""; 0], "of the same address there is nothing to say");
}

/// A tenant can make as many objects as he likes in a namespace of his own. Those that an index finds there by a key that he
/// chooses end the evaluation of others, unless it finds those of one namespace alone or its policy looks at the first few.
#[tokio::test(flavor = "multi_thread")]
async fn no_policy_finds_all_objects_of_other_namespaces_by_a_key_that_a_tenant_chooses() {
    const FIRST_FEW: [&str; 4] = [
        "controls-by-subcluster",
        "kubemanagers-by-cluster",
        "services-by-name",
        "services-by-object",
    ];
    // Tenants make no nodes.
    const OF_THE_CLUSTER: [&str; 1] = ["Node"];
    let engine = Engine::start(4).unwrap();
    let mut by_key = Vec::new();
    for built_in in ALL {
        let policy =
            Policy::load(&engine, built_in.bytes, None, crate::compiled().as_ref()).await.unwrap();
        for index in &policy.metadata().indexes {
            let is_safe = ["", "/metadata/namespace"].contains(&index.key.as_str())
                || OF_THE_CLUSTER.contains(&index.kind.as_str());
            by_key.extend((!is_safe).then(|| index.name.clone()));
        }
    }
    by_key.sort();
    by_key.dedup();
    assert_eq!(by_key, FIRST_FEW, "find_first, and its name here; or the key /metadata/namespace");
}
