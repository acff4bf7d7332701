//! Which node needs which image, and what the pod says that pulls them.

use opensdn_crds::upgrade::ImageChange;
use serde_json::json;

use super::*;
use crate::health::Pod;

fn pod(node: &str, is_ready: bool, containers: &[&str]) -> Pod {
    let image = |name: &&str| ((*name).to_owned(), format!("{name}:1"));
    Pod {
        node: Some(node.to_owned()),
        is_ready,
        images: containers.iter().map(image).collect(),
        pull_secrets: vec![format!("login-{node}")],
        ..Pod::default()
    }
}

fn step(id: &str, state: State, containers: &[&str]) -> Step {
    let change = |name: &&str| ImageChange {
        container: (*name).to_owned(),
        from: format!("{name}:1"),
        to: format!("{name}:2"),
    };
    let images = containers.iter().map(change).collect();
    Step { state, ..Step::new(id.to_owned(), "config".to_owned(), images) }
}

fn service(id: &str, pods: Vec<Pod>) -> Service {
    Service { id: id.to_owned(), is_ready: true, pods, ..Service::default() }
}

#[test]
fn a_node_needs_the_images_of_the_pods_that_it_has() {
    let services = [
        service("Config/a", vec![pod("n1", true, &["api"]), pod("n2", true, &["api"])]),
        service("Webui/a", vec![pod("n2", true, &["web"]), pod("n3", true, &["web"])]),
        service("Redis/a", vec![pod("n3", true, &["redis"])]),
    ];
    let steps = [
        step("Config/a", State::Pending, &["api", "not-run-here"]),
        step("Webui/a", State::Pending, &["web"]),
        step("Redis/a", State::Skipped, &["redis"]),
    ];
    let found: Vec<_> = wanted(&steps, &services)
        .into_iter()
        .map(|pull| {
            let images: Vec<_> = pull.images.into_iter().collect();
            (pull.node, images.join(" "), pull.secrets.len())
        })
        .collect();
    let expected = [("n1", "api:2", 1), ("n2", "api:2 web:2", 1), ("n3", "web:2", 1)];
    assert_eq!(found, expected.map(|(node, images, n)| (node.to_owned(), images.to_owned(), n)));
}

#[test]
fn a_node_whose_pods_are_not_well_is_not_waited_for() {
    let services = [service("Config/a", vec![pod("n1", false, &["api"])])];
    assert_eq!(wanted(&[step("Config/a", State::Pending, &["api"])], &services), []);
}

fn puller(status: Value) -> Puller {
    let (a, b) = (container_name("api:2"), container_name("web:2"));
    // As if admission had pinned it.
    Puller::of_object(&json!({"metadata": {"name": "p"},
        "spec": {"nodeName": "n1", "containers": [{"name": a, "image": "api:2@sha256:1"}, {"name": b, "image": "web:2"}]},
        "status": status}))
}

fn statuses(a: Value, b: Value) -> Value {
    let [one, other] = ["api:2", "web:2"].map(container_name);
    json!({"containerStatuses": [{"name": one, "state": a}, {"name": other, "state": b}]})
}

#[test]
fn a_container_that_could_not_be_started_has_its_image() {
    let cannot = json!({"waiting": {"reason": "RunContainerError", "message": "no /bin/true"}});
    let ended = json!({"terminated": {"exitCode": 128}});
    let pull = Pull {
        node: "n1".to_owned(),
        images: ["api:2", "web:2"].map(str::to_owned).into(),
        ..Pull::default()
    };
    assert_eq!(pull.waits(&[puller(statuses(ended.clone(), cannot))]), None);
    assert_eq!(
        pull.waits(&[]).unwrap(),
        "node n1 has 0 of 2 images, and pulls api:2",
        "there is no pod yet"
    );
    let creating = json!({"waiting": {"reason": "ContainerCreating"}});
    let half = puller(statuses(ended.clone(), creating.clone()));
    assert_eq!(
        pull.waits(std::slice::from_ref(&half)).unwrap(),
        "node n1 has 1 of 2 images, and pulls web:2"
    );
    let elsewhere = Puller { node: "n2".to_owned(), ..puller(statuses(ended.clone(), ended)) };
    assert!(pull.waits(&[half, elsewhere]).is_some(), "another node has it");
}

#[test]
fn what_keeps_an_image_from_a_node_is_said_in_the_words_of_its_kubelet() {
    let backoff = json!({"waiting": {"reason": "ImagePullBackOff", "message": "not found"}});
    let failing = puller(statuses(json!({"running": {}}), backoff));
    assert_eq!(failing.trouble.as_deref(), Some("web:2: ImagePullBackOff not found"));
    assert!(!failing.has_failed, "the kubelet tries it again");
    let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: ephemeral-storage."});
    let mut ended = evicted.clone();
    let unknown = json!({"terminated": {"reason": "ContainerStatusUnknown", "exitCode": 137}});
    ended["containerStatuses"] = statuses(unknown.clone(), unknown)["containerStatuses"].clone();
    let ended = puller(ended);
    assert!(ended.has_failed && ended.pulled.is_empty(), "none of it was started: {ended:?}");
    let evicted = puller(evicted);
    assert!(evicted.has_failed);
    assert!(evicted.trouble.unwrap().contains("ephemeral-storage"));
    let mut done = statuses(json!({"terminated": {"exitCode": 1}}), json!({"terminated": {}}));
    done["phase"] = json!("Failed");
    assert!(!puller(done).has_failed, "it could not run, and is there");
}
