//! Worlds of images that nodes are to pull: who pulls what, and how much of it.

use serde_json::json;

use super::*;
use crate::checks::tests::node;
use crate::snapshot::Read;

fn image(number: usize) -> String {
    format!("registry.example.com/opensdn/image-{number}:1")
}

/// Three nodes of the control plane and so many others, with a Config for the former and a Vrouter for all.
fn world(workers: u8, images: usize) -> World {
    let mut nodes = Vec::new();
    for number in 0..workers + 3 {
        let mut node = node(&format!("n{number:02}"), &format!("10.0.0.{number}"));
        if number >= 3 {
            node["metadata"]["labels"] = json!({"kubernetes.io/os": "linux"});
        }
        nodes.push(node);
    }
    let containers: Vec<Value> =
        (0..images).map(|number| json!({"image": image(number)})).collect();
    let service = |containers: Value, secrets: Value| {
        json!({"metadata": {"name": "one"}, "spec": {"commonConfiguration": {"imagePullSecrets": secrets},
            "serviceConfiguration": {"containers": containers}}})
    };
    let manager = json!({"metadata": {"name": "cluster1", "namespace": "tf"}, "spec": {"services": {
        "config": service(json!(containers), json!(["pull"])),
        "vrouters": [service(json!([{"image": image(1000)}]), json!([]))],
    }}});
    World { nodes: Read::Known(nodes), managers: Read::Known(vec![manager]), ..World::default() }
}

fn nodes_of(world: &World) -> Nodes {
    crate::probe::nodes(world.nodes.items())
}

#[test]
fn one_node_of_those_that_are_alike_pulls_what_its_components_need() {
    let world = world(20, 2);
    let (plan, unknown) = plan(&world, &nodes_of(&world), On::Pools);
    assert_eq!(unknown, AllPulled::new());
    let alike: Vec<(&str, usize)> = plan.iter().map(|(node, one)| (&**node, one.alike)).collect();
    assert_eq!(alike, [("n00", 2), ("n03", 19)]);
    let of = |secrets: &[&str], images: &[usize]| {
        let secrets = secrets.iter().map(|one| (*one).to_owned()).collect();
        (("tf".to_owned(), secrets), images.iter().copied().map(image).collect())
    };
    assert_eq!(plan["n03"].needed, Needed::from([of(&[], &[1000])]));
    assert_eq!(plan["n00"].needed, Needed::from([of(&[], &[1000]), of(&["pull"], &[0, 1])]));
}

#[test]
fn a_node_of_another_kind_pulls_for_itself() {
    let mut world = world(2, 1);
    if let Read::Known(nodes) = &mut world.nodes {
        nodes[4]["status"]["nodeInfo"]["architecture"] = json!("arm64");
    }
    let (plan, _) = plan(&world, &nodes_of(&world), On::Pools);
    assert_eq!(plan.keys().collect::<Vec<_>>(), ["n00", "n03", "n04"]);
}

#[test]
fn nodes_and_images_are_bounded_and_what_is_left_out_is_not_known() {
    let world = world(100, 100);
    let (plan, unknown) = plan(&world, &nodes_of(&world), On::All);
    assert_eq!((plan.len(), unknown.len()), (MOST_NODES, 71 + 3));
    for node in ["n00", "n99"] {
        let of_node = &unknown[node].images;
        assert!(of_node.values().all(|pull| matches!(pull, Pull::Unknown(_))), "{of_node:?}");
    }
    let count = plan["n00"].needed.values().map(BTreeSet::len).sum::<usize>();
    assert_eq!((count, unknown["n00"].images.len()), (MOST_IMAGES, 101 - MOST_IMAGES));
}

#[test]
fn a_node_that_is_silent_and_one_that_is_not_meant_pull_nothing() {
    let world = world(0, 1);
    let mut nodes = nodes_of(&world);
    nodes.remove("n00");
    nodes.insert("n01".to_owned(), Some("its kubelet does not answer".to_owned()));
    let (plan, unknown) = plan(&world, &nodes, On::All);
    assert_eq!(plan.keys().collect::<Vec<_>>(), ["n02"]);
    let why = Pull::Unknown("its kubelet does not answer".to_owned());
    assert!(unknown["n01"].images.values().all(|pull| *pull == why), "{unknown:?}");
    assert!(!unknown.contains_key("n00"));
}
