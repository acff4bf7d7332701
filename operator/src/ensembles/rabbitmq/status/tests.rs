//! What `rabbitmqctl cluster_status` says, as read.

use super::*;
use crate::ensemble::View;

/// Of RabbitMQ 3.10.8, one of its two nodes drained: with colours in it.
const OF_3_10: &str = "rabbit@192.0.2.1\n{\"alarms\":[],\"cluster_name\":\"rabbit@vm\",\"disk_nodes\":[\"rabbit@192.0.2.1\",\"rabbit@192.0.2.2\"],\"maintenance_status\":{\"rabbit@192.0.2.1\":\"not under maintenance\",\"rabbit@192.0.2.2\":\"\\u001b[35mmarked for maintenance\\u001b[0m\"},\"partitions\":{},\"ram_nodes\":[],\"running_nodes\":[\"rabbit@192.0.2.2\",\"rabbit@192.0.2.1\"]}\n";
/// As its source before 3.8 has it.
const OF_3_7: &str = "rabbit@192.0.2.1\n{\"nodes\":{\"disc\":[\"rabbit@192.0.2.1\",\"rabbit@192.0.2.2\"]},\"running_nodes\":[\"rabbit@192.0.2.1\"],\"cluster_name\":\"a\",\"partitions\":[],\"alarms\":[]}";

fn status(own: &str, members: &[&str], running: &[&str]) -> Result<Status, String> {
    let name = |host: &&str| format!("rabbit@{host}");
    Ok(Status {
        own: name(&own),
        members: members.iter().map(name).collect(),
        running: running.iter().map(name).collect(),
    })
}

fn view(said: &[(&str, Result<Status, String>)]) -> (Answers, Result<View, String>) {
    let said = said.iter().map(|(host, said)| ((*host).to_owned(), said.clone())).collect();
    let answers = answers(said);
    let view = View::of(&answers, str::to_owned, |_| false).map_err(|why| why.0);
    (answers, view)
}

#[test]
fn what_releases_say_is_read() {
    let read = Status::read(OF_3_10).unwrap();
    let both: BTreeSet<_> = ["rabbit@192.0.2.1", "rabbit@192.0.2.2"].map(str::to_owned).into();
    assert_eq!((&read.members, &read.running), (&both, &both));
    assert_eq!(Status::read(OF_3_7).unwrap().members, both);
}

#[test]
fn one_that_does_not_serve_or_is_parted_says_so() {
    let other = OF_3_7.replacen("rabbit@192.0.2.1", "rabbit@192.0.2.2", 1);
    assert!(Status::read(&other).unwrap_err().contains("does not serve"));
    let parted =
        OF_3_10.replace("\"partitions\":{}", "\"partitions\":{\"rabbit@a\":[\"rabbit@b\"]}");
    assert!(Status::read(&parted).unwrap_err().contains("parted"));
    assert!(Status::read("rabbit@a\nno JSON").is_err());
    assert!(Status::read("").is_err());
}

#[test]
fn all_that_agree_are_a_view_with_one_leader() {
    let all = ["a", "b", "c"];
    let one = |own| status(own, &all, &all);
    let (_, view) = view(&[("a", one("a")), ("b", one("b")), ("c", one("c"))]);
    let view = view.unwrap();
    assert_eq!((view.leader.as_str(), view.members.len(), view.serving.len()), ("a", 3, 3));
}

#[test]
fn lists_that_differ_count_only_where_most_have_them() {
    let of = |own, members: &[&str]| status(own, members, members);
    let (said, seen) =
        view(&[("a", of("a", &["a"])), ("b", of("b", &["b", "c"])), ("c", of("c", &["b", "c"]))]);
    assert!(said["a"].as_ref().unwrap_err().contains("lists other members"));
    assert_eq!(seen.unwrap().leader, "b");
    let (_, seen) = view(&[("a", of("a", &["a"])), ("b", of("b", &["b"]))]);
    assert!(seen.unwrap_err().contains("no member answers"));
}

#[test]
fn who_is_not_seen_by_another_does_not_serve() {
    let all = ["a", "b", "c"];
    let (said, view) = view(&[
        ("a", status("a", &all, &all)),
        ("b", status("b", &all, &["b", "c"])),
        ("c", status("c", &all, &all)),
    ]);
    assert!(said["a"].as_ref().unwrap_err().contains("rabbit@b does not see it"));
    // It is safe: nothing is changed where the one that leads is in doubt.
    assert!(view.is_err(), "{view:?}");
}
