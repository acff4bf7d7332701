//! What is kept of objects, and what of theirs concerns others.

use serde_json::json;

use super::*;

fn pod(name: &str, version: u64, address: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "tf", "uid": name,
        "resourceVersion": version.to_string(), "managedFields": [{"manager": "a"}]},
        "spec": {"nodeName": "n", "volumes": [1], "containers": [{"name": "c", "image": "i", "env": [1]}]}, "status": {"podIP": address}})
}

fn names(cache: &Cache) -> Vec<String> {
    let all = cache.list(Kind::Pod, "tf");
    all.iter().map(|one| one.name_any()).collect()
}

#[test]
fn of_an_upgrade_no_annotation_is_kept_and_of_one_that_is_over_its_name_and_phase() {
    let kept = |phase: &str, goal: Option<&str>| {
        let cache = Cache::default();
        let upgrade = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade", "metadata": {"name": "a",
            "namespace": "tf", "uid": "a", "resourceVersion": "1", "annotations": {"large": "x"}},
            "spec": {"manager": "m", "goal": goal}, "status": {"phase": phase, "steps": []}});
        cache.put(Kind::Upgrade, read(upgrade).unwrap());
        let kept = cache.get(Kind::Upgrade, "tf", "a").unwrap();
        assert_eq!(kept.metadata.annotations, None);
        kept.data.clone()
    };
    for phase in ["Succeeded", "RolledBack"] {
        let expected = json!({"spec": {"manager": "m"}, "status": {"phase": phase}});
        assert_eq!(kept(phase, None), expected);
    }
    // What is at work, or is to go back, is needed whole.
    for (phase, goal) in [("Running", None), ("Stopped", None), ("Succeeded", Some("RollBack"))] {
        assert_eq!(kept(phase, goal)["status"]["steps"], json!([]), "{phase}");
    }
}

#[test]
fn what_is_not_needed_of_a_pod_is_not_kept() {
    let cache = Cache::default();
    cache.put(Kind::Pod, read(pod("a", 1, "192.0.2.1")).unwrap());
    let kept = cache.get(Kind::Pod, "tf", "a").unwrap();
    let expected = json!({"spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}, "status": {"podIP": "192.0.2.1"}});
    assert_eq!((&kept.data, &kept.metadata.managed_fields), (&expected, &None));
}

#[test]
fn what_the_operator_wrote_is_not_replaced_by_what_a_watch_reports_later_of_before() {
    let (cache, mut feed) = (Cache::default(), Feed::new(Kind::Pod, ""));
    cache.put(Kind::Pod, read(pod("a", 10, "192.0.2.2")).unwrap());
    assert!(feed.take(&cache, Event::Apply(pod("a", 9, "192.0.2.1"))).is_empty());
    assert_eq!(cache.get(Kind::Pod, "tf", "a").unwrap().data["status"]["podIP"], "192.0.2.2");
    assert_eq!(feed.take(&cache, Event::Apply(pod("a", 11, "192.0.2.3"))).len(), 2);
}

#[test]
fn a_change_of_nothing_that_is_kept_concerns_no_controller() {
    let (cache, mut feed) = (Cache::default(), Feed::new(Kind::Pod, ""));
    assert_eq!(feed.take(&cache, Event::Apply(pod("a", 1, "192.0.2.1"))).len(), 1);
    assert!(feed.take(&cache, Event::Apply(pod("a", 2, "192.0.2.1"))).is_empty());
}

#[test]
fn of_a_manager_what_it_wants_is_kept_and_not_how_it_is() {
    let (cache, mut feed) = (Cache::default(), Feed::new(Kind::Manager, ""));
    let mut manager = pod("m", 1, "192.0.2.1");
    manager["spec"] = json!({"commonConfiguration": {"certKeyLength": 4096}});
    assert_eq!(feed.take(&cache, Event::Apply(manager.clone())).len(), 1);
    assert_eq!(cache.all(Kind::Manager)[0].data, json!({"spec": manager["spec"]}));
    manager["metadata"]["resourceVersion"] = json!("2");
    manager["status"] = json!({"podIP": "192.0.2.2"});
    assert!(feed.take(&cache, Event::Apply(manager)).is_empty());
}

#[test]
fn what_was_deleted_is_going_before_its_watch_says_so_and_a_successor_is_not() {
    let cache = Cache::default();
    let of = |uid: &str, version: u64| {
        let mut pod = pod("a", version, "10.0.0.1");
        pod["metadata"]["uid"] = uid.into();
        read(pod).unwrap()
    };
    cache.put(Kind::Pod, of("1", 1));
    let is_going = || cache.list(Kind::Pod, "tf")[0].metadata.deletion_timestamp.is_some();
    cache.mark_going(Kind::Pod, &of("other", 1));
    assert!(!is_going());
    cache.mark_going(Kind::Pod, &of("1", 1));
    assert!(is_going());
    cache.put(Kind::Pod, of("2", 5));
    assert!(!is_going());
    cache.remove(Kind::Pod, &of("2", 5));
    cache.mark_going(Kind::Pod, &of("2", 5));
    assert!(cache.list(Kind::Pod, "tf").is_empty(), "what is gone stays so");
}

#[test]
fn of_a_node_it_counts_whether_it_is_ready_and_not_when_it_said_so() {
    let cache = Cache::default();
    let node = |version: u64, status: &str, time: &str| {
        let conditions = json!([{"type": "MemoryPressure", "status": "False", "lastHeartbeatTime": time},
            {"type": "Ready", "status": status, "lastHeartbeatTime": time}]);
        read(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "resourceVersion": version.to_string()},
            "status": {"conditions": conditions}}))
        .unwrap()
    };
    cache.put(Kind::Node, node(1, "True", "a"));
    assert!(!cache.put(Kind::Node, node(2, "True", "b")).1);
    assert!(cache.put(Kind::Node, node(3, "Unknown", "b")).1);
    assert!(crate::node::Node::of(&cache.list(Kind::Node, "")[0]).is_lost);
}

#[test]
fn what_went_while_the_watch_was_lost_is_gone_in_its_own_namespace_only() {
    let (cache, mut feed) = (Cache::default(), Feed::new(Kind::Pod, "tf"));
    for name in ["a", "b"] {
        feed.take(&cache, Event::Apply(pod(name, 1, "192.0.2.1")));
    }
    let mut other = pod("c", 1, "192.0.2.1");
    other["metadata"]["namespace"] = "other".into();
    cache.put(Kind::Pod, read(other).unwrap());
    feed.take(&cache, Event::Init);
    feed.take(&cache, Event::InitApply(pod("b", 2, "192.0.2.1")));
    assert_eq!(names(&cache), ["a", "b"], "until the list is whole");
    assert_eq!(feed.take(&cache, Event::InitDone(Listed::default())).len(), 1);
    assert_eq!(names(&cache), ["b"]);
    assert_eq!(cache.list(Kind::Pod, "other").len(), 1);
}

#[test]
fn after_an_etcd_was_put_back_a_list_has_the_last_word_but_of_what_was_written_since() {
    let address = |cache: &Cache, name: &str| {
        let pod = cache.get(Kind::Pod, "tf", name).unwrap();
        pod.data["status"]["podIP"].as_str().unwrap().to_owned()
    };
    for (is_restored, of_b) in [(false, "192.0.2.2"), (true, "192.0.2.1")] {
        let (cache, mut feed) = (Cache::default(), Feed::new(Kind::Pod, "tf"));
        feed.take(&cache, Event::Apply(pod("a", 90, "192.0.2.2")));
        feed.take(&cache, Event::Apply(pod("b", 110, "192.0.2.2")));
        feed.take(&cache, Event::Init);
        for name in ["a", "b"] {
            assert_eq!(feed.take(&cache, Event::InitApply(pod(name, 50, "192.0.2.1"))).len(), 0);
        }
        let listed = Listed { version: Some(100), is_restored };
        let changed = feed.take(&cache, Event::InitDone(listed)).len();
        assert_eq!(changed, if is_restored { 4 } else { 2 });
        assert_eq!([address(&cache, "a"), address(&cache, "b")], ["192.0.2.1", of_b]);
    }
}

#[test]
fn the_group_of_a_kind_is_read_off_its_path() {
    let groups = [Kind::StatefulSet, Kind::Secret, Kind::Manager].map(|kind| kind.resource().group);
    assert_eq!(groups, ["apps", "", "tf.tungsten.io"]);
    assert_eq!(Kind::PodDisruptionBudget.resource().api_version, "policy/v1");
    assert_eq!(Kind::Component("QueryEngine").resource().plural, "queryengine");
}

#[test]
fn a_deletion_takes_no_other_object_of_the_name() {
    let cache = Cache::default();
    cache.put(Kind::Pod, read(pod("a", 5, "192.0.2.1")).unwrap());
    let mut old = pod("a", 4, "192.0.2.1");
    old["metadata"]["uid"] = "of the one before".into();
    assert!(cache.remove(Kind::Pod, &read(old).unwrap()).is_none());
    assert_eq!(names(&cache), ["a"]);
}
