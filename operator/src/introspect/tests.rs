//! Daemons that are asked over real connections.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use futures::FutureExt as _;
use opensdn_crds::status::{DaemonWord, SessionCounts};
use opensdn_pki::{Authorities, CaProfile, Identity, KeyKind, LeafProfile, Usage, crypto_provider};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

/// What a daemon does with a request.
#[derive(Clone)]
enum Behaviour {
    /// Answers with that page where the cache is asked for that structure, and else as of none that it knows.
    Page(&'static str, String),
    /// Never answers.
    Hangs,
    /// Answers a byte a second, without an end.
    Drips,
}

fn authorities() -> Authorities {
    Authorities::first(&CaProfile::new("test CA"), OffsetDateTime::now_utc()).unwrap()
}

/// A daemon with a certificate of that CA for its address.
async fn daemon(authorities: &Authorities, address: &str, port: u16, behaviour: Behaviour) -> u16 {
    let profile = LeafProfile {
        common_name: "daemon".to_owned(),
        names: vec![address.to_owned()],
        lifetime: Duration::hours(1),
        usage: Usage::Server,
        key: KeyKind::default(),
    };
    let leaf = authorities.current.issue(&profile, OffsetDateTime::now_utc()).unwrap();
    let identity =
        Identity::from_pem(leaf.certificate().as_bytes(), leaf.key().as_bytes()).unwrap();
    let tls = rustls::ServerConfig::builder_with_provider(crypto_provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(
            identity.certified_key(),
        )));
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind((address, port)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, behaviour) = (acceptor.clone(), behaviour.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { return };
                    head.push(byte);
                }
                let (name, page) = match behaviour {
                    Behaviour::Page(name, page) => (name, page),
                    Behaviour::Hangs => return std::future::pending::<()>().await,
                    Behaviour::Drips => return drip(stream).await,
                };
                let asked = format!("GET /Snh_SandeshUVECacheReq?x={name} HTTP/1.1\r\n");
                let unknown = "<SandeshUVECacheResp><returned>0</returned></SandeshUVECacheResp>";
                let is_known = head.starts_with(asked.as_bytes());
                let page = if is_known { page } else { unknown.to_owned() };
                let length = page.len();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {length}\r\n\r\n{page}"
                );
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    port
}

async fn drip(mut stream: impl tokio::io::AsyncWrite + Unpin) {
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n").await;
    while stream.write_all(b"<").await.is_ok() && stream.flush().await.is_ok() {
        tokio::time::sleep(StdDuration::from_secs(1)).await;
    }
}

fn page(state: &str, control_node: &str, description: &str) -> Behaviour {
    Behaviour::Page(
        "NodeStatus",
        format!(
            "<NodeStatusUVE><ProcessStatus><module_id>contrail-vrouter-agent</module_id><state>{state}</state>\
         <connection_infos><list><ConnectionInfo><type>XMPP</type><name>control-node:10.0.0.1</name>\
         <status>{control_node}</status></ConnectionInfo></list></connection_infos>\
         <description>{description}</description></ProcessStatus></NodeStatusUVE>"
        ),
    )
}

fn put(cache: &Cache, kind: Kind, object: Value) {
    cache.put(kind, serde_json::from_value(object).unwrap());
}

/// A cluster with one group of vrouters, and the CAs of its namespace.
fn cluster(authorities: &Authorities) -> Cache {
    let cache = Cache::default();
    put(
        &cache,
        Kind::ConfigMap,
        json!({"metadata": {"name": TRUST, "namespace": "tf", "resourceVersion": "1"},
            "data": {TRUST_KEY: authorities.bundle()}}),
    );
    put(
        &cache,
        Kind::DaemonSet,
        json!({"metadata": {"name": "v1-vrouter-daemonset", "namespace": "tf", "uid": "1", "resourceVersion": "1",
            "ownerReferences": [{"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter", "name": "v1", "uid": "v1",
                "controller": true}]}}),
    );
    put(
        &cache,
        Kind::Component("Vrouter"),
        json!({"metadata": {"name": "v1", "namespace": "tf", "uid": "v1", "resourceVersion": "1"}}),
    );
    cache
}

fn pod(node: &str, address: &str) -> Value {
    json!({"metadata": {"name": format!("v1-{node}"), "namespace": "tf", "resourceVersion": "1",
            "labels": {"tf_manager": "vrouter", "vrouter": "v1"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "v1-vrouter-daemonset",
                "uid": "1", "controller": true}]},
        "spec": {"nodeName": node},
        "status": {"podIP": address, "containerStatuses": [{"name": "vrouteragent", "state": {"running": {}}}]}})
}

/// One to which that service is described: its agents listen on that port.
fn asking(service: &Service, port: u16) -> Introspect {
    let introspect = Introspect::new(Some(StdDuration::from_millis(10)));
    introspect.describe(service, &agent(port));
    introspect
}

fn agent(port: u16) -> [Container; 1] {
    let introspect = At { ports: vec![port], sessions: Counted::WithControlNodes, ..At::default() };
    [Container { name: "vrouteragent", introspect: Some(introspect), ..Container::default() }]
}

fn group() -> Service {
    Service { kind: "Vrouter", namespace: "tf".to_owned(), name: "v1".to_owned() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_says_of_each_daemon_whether_it_works_and_why_not() {
    let (ours, others) = (authorities(), authorities());
    let port = daemon(&ours, "127.0.77.1", 0, page("Functional", "Up", "")).await;
    let waits = "XMPP:control-node:10.0.0.1 connection down";
    daemon(&ours, "127.0.77.2", port, page("Non-Functional", "Down", waits)).await;
    daemon(&ours, "127.0.77.3", port, Behaviour::Hangs).await;
    daemon(&others, "127.0.77.4", port, page("Functional", "Up", "")).await;
    daemon(&ours, "127.0.77.6", port, Behaviour::Drips).await;
    let cache = cluster(&ours);
    for (node, address) in [("w1", 1), ("w2", 2), ("w3", 3), ("w4", 4), ("w5", 5), ("w6", 6)] {
        put(&cache, Kind::Pod, pod(node, &format!("127.0.77.{address}")));
    }
    let introspect = asking(&group(), port);
    let mut changes = introspect.changes().unwrap();
    let stored = IntrospectStatus { daemons: Some(7), ..IntrospectStatus::default() };
    assert_eq!(introspect.of(&group(), Some(&stored)), Some(stored), "nothing is taken back yet");

    let round = async || introspect.round(&cache, "tf".to_owned()).await;
    round().await;
    let status = introspect.of(&group(), None).unwrap();
    assert_eq!((status.functional, status.daemons), (Some(1), Some(6)));
    assert_eq!(status.xmpp, Some(SessionCounts { up: Some(1), all: Some(6) }));
    let said = status.not_active.clone().unwrap();
    let words: Vec<_> = said.iter().map(|one| (one.node.as_str(), one.state)).collect();
    assert_eq!(
        words,
        [
            ("w2", DaemonWord::Initializing),
            ("w3", DaemonWord::Timeout),
            ("w4", DaemonWord::Unknown),
            ("w5", DaemonWord::Initializing),
            ("w6", DaemonWord::Timeout),
        ]
    );
    assert_eq!(said[0].message.as_deref(), Some(waits));
    let distrust = said[2].message.as_deref().unwrap();
    assert!(
        distrust.contains("certificate"),
        "who has no certificate of the CA is not believed: {distrust}"
    );
    assert_eq!(changes.next().await, Some(group()));

    // The same again is no change, and who is gone is asked no more.
    for (node, address) in [("w3", "127.0.77.3"), ("w6", "127.0.77.6")] {
        cache.remove(Kind::Pod, &serde_json::from_value(pod(node, address)).unwrap());
    }
    round().await;
    assert_eq!(changes.next().await, Some(group()));
    round().await;
    assert!(changes.next().now_or_never().is_none(), "nothing has changed");
    assert_eq!(introspect.of(&group(), None).unwrap().daemons, Some(4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_node_is_asked_for_its_bgp_sessions() {
    let ours = authorities();
    let counted = "<BgpRouterState><num_bgp_peer>2</num_bgp_peer><num_up_bgp_peer>1</num_up_bgp_peer></BgpRouterState>";
    let page = Behaviour::Page("BgpRouterState", counted.to_owned());
    let port = daemon(&ours, "127.0.78.1", 0, page).await;
    let trust = Trust::of_none().with_pem("the test", ours.bundle().as_bytes()).unwrap();
    let client = HttpClient::new(trust, StdDuration::from_secs(3)).unwrap();
    let endpoint =
        Endpoint { address: format!("127.0.78.1:{port}").parse().unwrap(), is_plain: false };
    let sessions = ask::bgp(&client, &endpoint).await.unwrap().unwrap();
    assert_eq!((sessions.up, sessions.all), (1, 2));
    let other = ask::process(&client, &endpoint).await;
    assert!(matches!(other, Err(ask::AskError::Page(_))), "{other:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_drips_keeps_no_other_namespace_waiting() {
    let ours = authorities();
    let port = daemon(&ours, "127.0.76.1", 0, Behaviour::Hangs).await;
    daemon(&ours, "127.0.76.2", port, page("Functional", "Up", "")).await;
    let cache = cluster(&ours);
    put(&cache, Kind::Pod, pod("w1", "127.0.76.1"));
    for (kind, name) in [
        (Kind::ConfigMap, TRUST),
        (Kind::DaemonSet, "v1-vrouter-daemonset"),
        (Kind::Component("Vrouter"), "v1"),
    ] {
        let mut other = (*cache.get(kind, "tf", name).unwrap()).clone();
        other.metadata.namespace = Some("other".to_owned());
        cache.put(kind, other);
    }
    let mut second = pod("w2", "127.0.76.2");
    second["metadata"]["namespace"] = json!("other");
    put(&cache, Kind::Pod, second);
    let introspect = asking(&group(), port);
    introspect.describe(&Service { namespace: "other".to_owned(), ..group() }, &agent(port));
    let mut changes = introspect.changes().unwrap();
    let first = tokio::select! {
        () = introspect.run(&cache) => None,
        first = changes.next() => first,
    };
    let first = first.unwrap();
    assert_eq!(first.namespace, "other", "its round is over before the other's");
    assert_eq!(introspect.of(&first, None).unwrap().functional, Some(1));
    let stored = IntrospectStatus { daemons: Some(7), ..IntrospectStatus::default() };
    assert_eq!(introspect.of(&group(), Some(&stored)), Some(stored), "of tf nothing is known yet");
}

#[test]
fn who_asks_no_daemon_says_nothing_of_any() {
    let stored = IntrospectStatus { daemons: Some(7), ..IntrospectStatus::default() };
    assert_eq!(Introspect::new(None).of(&group(), Some(&stored)), None);
}

#[test]
fn of_whom_nothing_can_be_asked_nothing_is_said() {
    let ours = authorities();
    let introspect = asking(&group(), 1);
    let number = |cache: &Cache| -> usize {
        let clients = ["tf", "other"].map(|name| Some((name, introspect.client(cache, name)?)));
        let targets = |(name, client)| introspect.targets(cache, name, &client).len();
        clients.into_iter().flatten().map(targets).sum()
    };
    let cache = cluster(&ours);
    put(&cache, Kind::Pod, pod("w1", "127.0.0.1"));
    assert_eq!(number(&cache), 1);
    let changed: BTreeMap<&str, fn(&mut Value)> = BTreeMap::from([
        ("no address yet", (|pod| pod["status"]["podIP"] = json!("")) as fn(&mut Value)),
        ("it is terminating", |pod| {
            pod["metadata"]["deletionTimestamp"] = json!("2026-11-24T12:00:00Z");
        }),
        ("of no component", |pod| pod["metadata"]["labels"]["vrouter"] = json!("v2")),
        ("of another namespace, without a CA", |pod| pod["metadata"]["namespace"] = json!("other")),
        ("nothing of ours keeps it", |pod| pod["metadata"]["ownerReferences"] = json!([])),
        ("what keeps it is called so, and is another", |pod| {
            pod["metadata"]["ownerReferences"][0]["uid"] = json!("2");
        }),
        ("something else keeps it", |pod| {
            pod["metadata"]["ownerReferences"][0]["name"] = json!("v2-vrouter-daemonset");
        }),
        ("the container does not run", |pod| {
            pod["status"]["containerStatuses"][0]["state"] = json!({"waiting": {}});
        }),
    ]);
    for (why, change) in changed {
        let cache = cluster(&ours);
        let mut pod = pod("w1", "127.0.0.1");
        change(&mut pod);
        put(&cache, Kind::Pod, pod);
        assert_eq!(number(&cache), 0, "{why}");
    }
    introspect.forget(&group());
    assert_eq!(number(&cache), 0, "nobody describes it any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_said_stays_of_its_time_while_none_can_be_asked() {
    let ours = authorities();
    let port = daemon(&ours, "127.0.75.1", 0, page("Functional", "Up", "")).await;
    let cache = cluster(&ours);
    put(&cache, Kind::Pod, pod("w1", "127.0.75.1"));
    let introspect = asking(&group(), port);
    let round = async || introspect.round(&cache, "tf".to_owned()).await;
    round().await;
    let first = introspect.heard(&group(), None).unwrap();
    assert_eq!(first.said.as_ref().unwrap().functional, Some(1));

    let trusted = cache.get(Kind::ConfigMap, "tf", TRUST).unwrap();
    cache.remove(Kind::ConfigMap, &trusted);
    round().await;
    let without_a_ca = introspect.heard(&group(), None).unwrap();
    assert_eq!((&without_a_ca.said, without_a_ca.began), (&first.said, first.began));
    cache.put(Kind::ConfigMap, (*trusted).clone());
    round().await;
    assert!(introspect.heard(&group(), None).unwrap().began > first.began, "asked again");

    // Where no pod is there to be asked, none has been asked.
    cache.remove(Kind::Pod, &serde_json::from_value(pod("w1", "127.0.75.1")).unwrap());
    round().await;
    let without_pods = introspect.heard(&group(), None).unwrap();
    assert_eq!((without_pods.said, without_pods.began), (None, None));
}
