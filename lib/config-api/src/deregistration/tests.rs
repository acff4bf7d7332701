//! Nodes that change while they are deleted, by canned answers.

use serde_json::{Value, json};

use super::*;
use crate::client::tests::{Canned, answer, ok};

fn expected(cluster: &ClusterId) -> Expected<'_> {
    let address = "10.0.0.1".parse().unwrap();
    Expected { kind: NodeKind::Config, name: "n1", address, sub_cluster: None, cluster }
}

fn named(uuid: &str) -> String {
    ok(&json!({ "uuid": uuid }))
}

fn node(address: &str) -> Value {
    json!({"config-node": {"fq_name": ["default-global-system-config", "n1"],
        "config_node_ip_address": address}})
}

const SAME: &str = "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n";

fn deletions(canned: &Canned) -> usize {
    canned.asked().iter().filter(|one| one.starts_with("DELETE ")).count()
}

#[tokio::test]
async fn a_node_that_is_registered_again_is_not_deleted_a_second_time() {
    let (found, deleted) = (ok(&node("10.0.0.1")), answer("200 OK", "text/html", ""));
    let answers = [named("u1"), found.clone(), SAME.to_owned(), deleted, named("u2"), found];
    let canned = Canned::start(answers).await;
    let cluster = ClusterId::new("a").unwrap();
    let done = deregister(&canned.api(None), &expected(&cluster), Workloads::Ignore).await.unwrap();
    assert_eq!(done.node, Fate::Left(Why::Registered));
    let uuids: Vec<&str> = done.deleted.iter().map(|one| one.uuid.as_str()).collect();
    assert_eq!((uuids, deletions(&canned)), (vec!["u1"], 1));
}

#[tokio::test]
async fn a_node_that_gets_another_address_meanwhile_is_not_deleted() {
    let (found, other) = (ok(&node("10.0.0.1")), ok(&node("10.0.0.2")));
    let answers = [named("u1"), found.clone(), found, named("u1"), other];
    let canned = Canned::start(answers).await;
    let cluster = ClusterId::new("a").unwrap();
    let done = deregister(&canned.api(None), &expected(&cluster), Workloads::Ignore).await.unwrap();
    let address =
        Mismatch { what: "address", expected: "10.0.0.1".to_owned(), found: "10.0.0.2".to_owned() };
    assert_eq!(done.node, Fate::Left(Why::Another(vec![address])));
    assert_eq!((done.deleted, deletions(&canned)), (vec![], 0));
}

#[tokio::test]
async fn a_node_that_changes_all_the_time_is_left_after_a_few_attempts() {
    let found = ok(&node("10.0.0.1"));
    let once = [named("u1"), found.clone(), found];
    let answers = std::iter::repeat_n(once, ATTEMPTS + 1).flatten();
    let canned = Canned::start(answers).await;
    let cluster = ClusterId::new("a").unwrap();
    let done = deregister(&canned.api(None), &expected(&cluster), Workloads::Ignore).await.unwrap();
    assert_eq!((done.node, deletions(&canned)), (Fate::Left(Why::Unsettled), 0));
}

#[tokio::test]
async fn a_refusal_without_a_reference_that_is_seen_is_given_as_it_is() {
    let found = ok(&node("10.0.0.1"));
    let refused = answer("409 Conflict", "text/html", "Delete when resource still referred: ['x']");
    let canned = Canned::start([named("u1"), found.clone(), SAME.to_owned(), refused, found]).await;
    let cluster = ClusterId::new("a").unwrap();
    let done = deregister(&canned.api(None), &expected(&cluster), Workloads::Ignore).await.unwrap();
    let Fate::Left(why) = done.node else { panic!("{done:?}") };
    assert!(
        why.to_string()
            .ends_with("refuses to delete it: Delete when resource still referred: ['x']")
    );
}

#[test]
fn reasons_name_what_differs_and_what_is_in_the_way() {
    let mismatch =
        |what, found: &str| Mismatch { what, expected: "a".to_owned(), found: found.to_owned() };
    let another = Why::Another(vec![mismatch("address", "b"), mismatch("cluster", "c")]);
    assert_eq!(
        another.to_string(),
        "it is another node: its address is \"b\" and not \"a\", its cluster is \"c\" and not \"a\""
    );
    let user =
        Named { kind: "virtual-machine".to_owned(), name: "vm".to_owned(), uuid: "u".to_owned() };
    let in_use = Why::InUse(vec![user.clone(), user]).to_string();
    assert_eq!(
        in_use,
        "it is in use by virtual-machine vm, virtual-machine vm: delete these first"
    );
}
