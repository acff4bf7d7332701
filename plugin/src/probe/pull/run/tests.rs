//! A run against an API server that answers as a test says.

use serde_json::{Value, json};

use super::*;
use crate::clients::of_tests;
use crate::fake_api_server::{FakeApiServer, Reply, refusal};

/// In which state the container of each image is.
fn status(number: usize) -> Value {
    let waits =
        |reason: &str, message: &str| json!({"waiting": {"reason": reason, "message": message}});
    let state = match number {
        0 => json!({"terminated": {"reason": "StartError", "exitCode": 128}}),
        1 => waits("ImagePullBackOff", "Back-off pulling image: ErrImagePull: 401 Unauthorized"),
        2 => waits("InvalidImageName", "couldn't parse image name"),
        _ => waits("ContainerCreating", ""),
    };
    json!({"name": format!("image-{number}"), "state": state})
}

fn world(namespaces: &[&str]) -> World {
    let image = |number: usize| json!({"image": format!("registry.example.com/{number}:1")});
    let spec = json!({"commonConfiguration": {"imagePullSecrets": ["pull"]},
        "serviceConfiguration": {"containers": [image(0), image(1), image(2), image(3)]}});
    let manager = json!({"metadata": {"name": "cluster1", "namespace": "tf"}, "spec": {"services":
        {"vrouters": [{"metadata": {"name": "one"}, "spec": spec}]}}});
    let namespaces = namespaces.iter().map(|name| json!({"metadata": {"name": name}}));
    World {
        nodes: Read::Known(vec![crate::checks::tests::node("w1", "10.0.0.1")]),
        managers: Read::Known(vec![manager]),
        namespaces: Read::Known(namespaces.collect()),
        ..World::default()
    }
}

/// What came of it on the node, and the requests.
async fn run(world: &World) -> (Pulled, Vec<String>) {
    let server = FakeApiServer::start(|request, before| {
        let document = |body: Value| Reply::Document(200, "", body);
        let (method, path) = request.split_once(' ').unwrap();
        match (method, path) {
            ("POST", path) if path.ends_with("selfsubjectaccessreviews") => {
                document(json!({"status": {"allowed": true}}))
            }
            ("GET", "/api/v1/namespaces") => document(json!({"items": []})),
            ("GET", path) if path.contains("/pods") => {
                let statuses: Vec<Value> = (0..4).map(status).collect();
                document(json!({"items": [{"metadata": {"labels": {"opensdn.io/pull-number": "0"}},
                    "status": {"phase": "Pending", "containerStatuses": statuses}}]}))
            }
            // The namespace goes away a moment after it was deleted.
            ("GET", _) if before > 0 => refusal(404, "NotFound", "namespaces \"x\" not found"),
            _ => document(json!({"metadata": {"name": "x", "uid": "u"}})),
        }
    });
    let client = of_tests(server.url());
    let mut ui = Ui::plain(anstream::ColorChoice::Never, None);
    let timeout = Duration::from_secs(2);
    let pulling = Pulling { on: On::Pools, timeout, now: Timestamp::now() };
    let nodes = crate::probe::nodes(world.nodes.items());
    let mut found = pulling.run(&client, world, &nodes, &mut ui).await.unwrap();
    (found.remove("w1").unwrap(), server.seen())
}

fn of(pulled: &Pulled, number: usize) -> &Pull {
    &pulled.images[&format!("registry.example.com/{number}:1")]
}

#[tokio::test]
async fn what_a_kubelet_says_is_the_reason_and_the_pods_are_deleted() {
    let (pulled, requests) = run(&world(&["tf"])).await;
    assert_eq!(of(&pulled, 0), &Pull::Done);
    let failed = "ImagePullBackOff: Back-off pulling image: ErrImagePull: 401 Unauthorized";
    assert_eq!(of(&pulled, 1), &Pull::Failed(failed.to_owned()));
    let Pull::Failed(why) = of(&pulled, 2) else { panic!("{pulled:?}") };
    assert!(why.contains("InvalidImageName"), "{why}");
    let late = "not known after 2 s: it is being pulled".to_owned();
    assert_eq!(of(&pulled, 3), &Pull::Unknown(late));
    let of_pods = |method: &str| -> Vec<&String> {
        let requests = requests.iter().filter(|one| one.starts_with(method));
        requests.filter(|one| one.contains("/namespaces/tf/pods")).collect()
    };
    assert_eq!((of_pods("POST").len(), of_pods("DELETE").len()), (1, 1), "{requests:#?}");
}

#[tokio::test]
async fn where_the_namespace_of_components_is_not_there_a_refusal_is_uncertain() {
    let (pulled, requests) = run(&world(&["default"])).await;
    assert_eq!(of(&pulled, 0), &Pull::Done);
    let Pull::Unknown(why) = of(&pulled, 1) else { panic!("{pulled:?}") };
    assert!(why.contains("no Secret for the registry: ImagePullBackOff"), "{why}");
    let is_elsewhere = |one: &String| one.contains("/namespaces/tf/");
    assert!(!requests.iter().any(is_elsewhere), "{requests:#?}");
}
