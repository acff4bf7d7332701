//! Worlds of the checks of nodes that services share: data planes and ports.

use opensdn_crds::component::COMPONENTS;

use super::*;

/// Another Manager with these services, on all nodes of the control plane.
fn beside(services: Value) -> World {
    but(|world| {
        known(&mut world.managers).push(json!({
            "metadata": {"name": "cluster2", "namespace": "other"}, "spec": {"services": services}}));
    })
}

fn vrouters(selector: Value) -> Value {
    json!([{"metadata": {"name": "vrouter2"}, "spec": {"commonConfiguration": {"nodeSelector": selector}}}])
}

#[test]
fn a_node_has_one_group_of_vrouters() {
    says(&good(), "N107", Outcome::Ok, "3 nodes: at most one group of vrouters on each");
    let two = beside(json!({"vrouters": vrouters(json!({"kubernetes.io/hostname": "m2"}))}));
    says(
        &two,
        "N107",
        Outcome::Fail,
        "1 of 3 nodes: m2: Vrouter vrouter1 of tf/cluster1 and Vrouter vrouter2 of other/cluster2",
    );
    let start = "kubectl patch managers.tf.tungsten.io cluster2 -n other --type=json -p '";
    let path = "/spec/services/vrouters/0/spec/commonConfiguration/nodeSelector";
    let add = json!([{"op": "add", "path": path, "value": ["LABEL", "VALUE"]}]);
    assert_eq!(verdict(&two, "N107").fix, Some(format!("{start}{add}'")));
    assert_eq!(outcome(&two, "P205"), Outcome::Ok, "their ports are not said besides");
    let apart = beside(json!({"vrouters": vrouters(json!({"rack": "b"}))}));
    assert_eq!(outcome(&apart, "N107"), Outcome::Ok, "no node has the label");
    let mut met = apart;
    known(&mut met.nodes)[2]["metadata"]["labels"]["rack"] = json!("b");
    says(&met, "N107", Outcome::Fail, "m3: ");
    let kept_away = |effect: &str| {
        let mut world = met.clone();
        known(&mut world.nodes)[2]["spec"]["taints"] = json!([{"key": "b", "effect": effect}]);
        known(&mut world.managers)[0]["spec"]["commonConfiguration"]["tolerations"] =
            json!([{"key": "other", "operator": "Exists"}]);
        world
    };
    assert_eq!(outcome(&kept_away("NoSchedule"), "N107"), Outcome::Ok, "a taint keeps one away");
    assert_eq!(outcome(&kept_away("PreferNoSchedule"), "N107"), Outcome::Fail);
    for id in ["N107", "P205"] {
        says(&but(|world| world.managers = forbidden()), id, Outcome::Uncertain, "Managers");
        says(&but(|world| world.nodes = forbidden()), id, Outcome::Uncertain, "nodes");
    }
}

#[test]
fn a_port_of_a_node_is_wanted_by_one_service() {
    let control = |name: &str| json!([{"metadata": {"name": name}, "spec": {}}]);
    says(
        &beside(json!({"controls": control("control2")})),
        "P205",
        Outcome::Fail,
        "3 of 3 nodes: m1: Control control1 of tf/cluster1 and Control control2 of other/cluster2 want 53/TCP, 53/UDP, \
         179/TCP",
    );
    // What is not there is made: a patch makes no parents.
    let path = "/spec/services/controls/0/spec/commonConfiguration";
    let add = json!([{"op": "add", "path": path, "value": {"nodeSelector": ["LABEL", "VALUE"]}}]);
    let fix = verdict(&beside(json!({"controls": control("control2")})), "P205").fix.unwrap();
    assert!(fix.ends_with(&format!(" -p '{add}'")), "{fix}");
    let zookeeper = |settings: Value| {
        beside(
            json!({"zookeeper": {"metadata": {"name": "z"}, "spec": {"serviceConfiguration": settings}}}),
        )
    };
    says(&zookeeper(json!({})), "P205", Outcome::Fail, "want 2181/TCP");
    let apart =
        json!({"clientPort": 2281, "electionPort": 3889, "serverPort": 3890, "adminPort": 2282});
    assert_eq!(outcome(&zookeeper(apart), "P205"), Outcome::Ok, "each of its ports is another");
    let of_control = with_manager(|manager| {
        manager["spec"]["services"]["zookeeper"]["spec"]["serviceConfiguration"]["clientPort"] =
            json!(8083);
    });
    says(
        &of_control,
        "P205",
        Outcome::Fail,
        "Control control1 of tf/cluster1 and Zookeeper zookeeper1 of tf/cluster1 want 8083/TCP",
    );
}

#[test]
fn all_components_with_their_defaults_fit_on_one_node() {
    let services = COMPONENTS.iter().map(|facts| {
        let item = json!({"metadata": {"name": "one"}, "spec": {}});
        let is_many = facts.count == opensdn_crds::component::Count::Many;
        (facts.key.to_owned(), if is_many { json!([item]) } else { item })
    });
    let services: serde_json::Map<String, Value> = services.collect();
    let all = with_manager(|manager| manager["spec"]["services"] = Value::Object(services));
    assert_eq!(verdict(&all, "P205").message, "3 nodes: no two services want one port");
    assert_eq!(outcome(&all, "N107"), Outcome::Ok);
}

#[test]
fn where_there_is_no_node_nothing_is_shared() {
    let empty = but(|world| world.nodes = Read::Known(vec![]));
    for id in ["N107", "P205"] {
        says(&empty, id, Outcome::Skipped, "the cluster has no node");
    }
    for id in ["N102", "N105"] {
        says(&empty, id, Outcome::Fail, "the cluster has no node");
    }
}
