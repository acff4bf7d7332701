//! Worlds of the checks of nodes: roles, health, sizes, addresses, clocks, and images.

use super::*;
use crate::probe::pull::{AllPulled, Pull, Pulled};

#[test]
fn roles_of_nodes() {
    says(&good(), "N101", Outcome::Ok, "each of 4 services has nodes");
    let k3s = |label: &str| {
        let label = label.to_owned();
        but(move |world| {
            for node in known(&mut world.nodes) {
                node["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] = json!(label);
            }
        })
    };
    assert_eq!(outcome(&k3s("true"), "N101"), Outcome::Ok, "the presence of the label counts");
    let selector = |world: &mut World, key: &str| {
        known(&mut world.managers)[0]["spec"]["commonConfiguration"]["nodeSelector"] =
            json!({ key: "" });
    };
    let mut other = k3s("true");
    selector(&mut other, "node-role.kubernetes.io/control-plane");
    says(&other, "N101", Outcome::Fail, "with the value \"true\", and not \"\"");
    assert!(
        verdict(&other, "N101")
            .fix
            .unwrap()
            .contains(r#"{"nodeSelector":{"node-role.kubernetes.io/control-plane":"true"}}"#)
    );
    let legacy = but(|world| selector(world, "node-role.kubernetes.io/master"));
    says(&legacy, "N101", Outcome::Fail, "does not give since 1.24");
    let fix = "kubectl label nodes -l node-role.kubernetes.io/control-plane node-role.kubernetes.io/master=";
    assert_eq!(verdict(&legacy, "N101").fix.as_deref(), Some(fix));
    says(
        &but(|world| selector(world, "rack")),
        "N101",
        Outcome::Fail,
        "no node has the labels rack=",
    );

    let two = but(|world| drop(known(&mut world.nodes).pop()));
    says(&two, "N101", Outcome::Warn, "Zookeeper zookeeper1 on 2");
    let tainted = but(|world| {
        for node in known(&mut world.nodes) {
            node["spec"]["taints"] = json!([{"key": "only", "effect": "NoSchedule"}]);
        }
    });
    assert_eq!(outcome(&tainted, "N101"), Outcome::Ok, "by default all taints are tolerated");
    let mut narrow = tainted;
    known(&mut narrow.managers)[0]["spec"]["commonConfiguration"]["tolerations"] =
        json!([{"key": "other", "operator": "Exists"}]);
    says(&narrow, "N101", Outcome::Fail, "has the taint only");
    let cordoned = but(|world| {
        for node in known(&mut world.nodes) {
            node["spec"]["unschedulable"] = json!(true);
        }
    });
    assert_eq!(outcome(&cordoned, "N101"), Outcome::Ok, "the default tolerates the taint of it");
    let mut narrow = cordoned;
    known(&mut narrow.managers)[0]["spec"]["commonConfiguration"]["tolerations"] =
        json!([{"key": "other", "operator": "Exists"}]);
    says(&narrow, "N101", Outcome::Fail, "has the taint node.kubernetes.io/unschedulable");
    the_command_that_is_said_mends_what_is_wrong();
    says(&but(|world| world.managers = forbidden()), "N101", Outcome::Uncertain, "Managers");
}

fn the_command_that_is_said_mends_what_is_wrong() {
    const CONTROL: &str = "node-role.kubernetes.io/control-plane";
    const MASTER: &str = "node-role.kubernetes.io/master";
    // One node is of Windows, and no node has the other label: that one is why.
    let windows = but(|world| {
        known(&mut world.nodes)[0]["metadata"]["labels"]["kubernetes.io/os"] = json!("windows");
        known(&mut world.managers)[0]["spec"]["commonConfiguration"]["nodeSelector"] =
            json!({"kubernetes.io/os": "linux", MASTER: ""});
    });
    says(&windows, "N101", Outcome::Fail, "does not give since 1.24");
    let all_windows = with_manager(|manager| {
        manager["spec"]["commonConfiguration"]["nodeSelector"] =
            json!({"kubernetes.io/arch": "s390x"});
    });
    says(&all_windows, "N101", Outcome::Fail, "no node has the labels kubernetes.io/arch=s390x");
    // A selector of the service's own wins: to change the Manager's would move what has none.
    let own = with_manager(|manager| {
        manager["spec"]["services"]["controls"][0]["spec"]["commonConfiguration"] =
            json!({"nodeSelector": { CONTROL: "true" }});
    });
    says(&own, "N101", Outcome::Fail, "Control control1: nodes have the label");
    let fix = verdict(&own, "N101").fix.unwrap();
    assert!(fix.contains("--type=json"), "{fix}");
    let path = "/spec/services/controls/0/spec/commonConfiguration/nodeSelector/node-role.kubernetes.io~1control-plane";
    let patch: Value = serde_json::from_str(fix.split('\'').nth(1).unwrap()).unwrap();
    assert_eq!(patch, json!([{"op": "replace", "path": path, "value": ""}]));
}

/// As kubeadm has it before there is a network of pods: what OpenSDN is installed for.
#[test]
fn a_new_cluster_without_a_network_of_pods_is_good() {
    let ready = json!([{"type": "Ready", "status": "False", "reason": "KubeletNotReady",
        "message": "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"}]);
    let new = but(|world| {
        for node in known(&mut world.nodes) {
            node["status"]["conditions"] = ready.clone();
        }
    });
    says(&new, "N102", Outcome::Ok, "waiting for a network of pods only");
    for id in ["N101", "N102", "D306", "T601"] {
        assert_eq!(outcome(&new, id), Outcome::Ok, "{id}: {}", verdict(&new, id).message);
    }
    let mut without = new;
    without.managers = Read::Absent;
    says(&without, "N101", Outcome::Ok, "of the control plane: 3 nodes");
    let lost = but(|world| {
        for node in known(&mut world.nodes) {
            node["status"]["conditions"] =
                json!([{"type": "Ready", "status": "Unknown", "message": "x"}]);
        }
        world.managers = Read::Absent;
    });
    says(&lost, "N101", Outcome::Warn, "no node of the control plane is ready: m1");
    let fix = verdict(&lost, "N101").fix.unwrap();
    assert_eq!(fix, "kubectl describe node m1", "the label is there");
}

#[test]
fn health_kernels_sizes_and_addresses() {
    let status = |type_: &str, status: &str| json!([{"type": "Ready", "status": "True"}, {"type": type_, "status": status}]);
    let lost = with_node(|node| {
        node["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown"}])
    });
    says(&lost, "N102", Outcome::Fail, "1 of 3 nodes: m1: not ready");
    let full = with_node(|node| node["status"]["conditions"] = status("DiskPressure", "True"));
    says(&full, "N102", Outcome::Warn, "m1: DiskPressure");
    let before =
        with_node(|node| node["status"]["conditions"] = status("NetworkUnavailable", "True"));
    assert_eq!(outcome(&before, "N102"), Outcome::Ok, "OpenSDN brings the network");
    let arm = with_node(|node| node["status"]["nodeInfo"]["architecture"] = json!("arm64"));
    says(&arm, "N102", Outcome::Uncertain, "m1: arm64");
    says(&but(|world| world.nodes = forbidden()), "N102", Outcome::Uncertain, "may not be read");

    says(&good(), "N103", Outcome::Ok, "upstream builds modules");
    let kernel = |text: &str| {
        let text = text.to_owned();
        with_node(move |node| node["status"]["nodeInfo"]["kernelVersion"] = json!(text))
    };
    says(&kernel("6.12.1"), "N103", Outcome::Uncertain, "kernel 6.12.1");
    says(&kernel("5.15.0-91-generic"), "N103", Outcome::Uncertain, "kernel 5.15.0-91-generic");
    says(
        &with_node(|node| node["status"]["nodeInfo"]["operatingSystem"] = json!("windows")),
        "N103",
        Outcome::Warn,
        "windows",
    );

    says(&good(), "N104", Outcome::Ok, "at least 4 cores");
    says(
        &with_node(|node| node["status"]["capacity"]["memory"] = json!("16Gi")),
        "N104",
        Outcome::Warn,
        "only 16.0 GiB of memory",
    );
    let silent = with_node(|node| {
        drop(node["status"]["capacity"].as_object_mut().unwrap().remove("ephemeral-storage"))
    });
    says(&silent, "N104", Outcome::Uncertain, "does not report its GiB of disk");
}

#[test]
fn systems_and_runtimes_that_upstream_does_not_know_are_uncertain() {
    let with = |field: &str, value: &str| {
        let (field, value) = (field.to_owned(), value.to_owned());
        with_node(move |node| node["status"]["nodeInfo"][field] = json!(value))
    };
    for known in
        ["Red Hat Enterprise Linux CoreOS 9.6", "Ubuntu 22.04.5 LTS", "CentOS Linux 7 (Core)"]
    {
        says(&with("osImage", known), "N103", Outcome::Ok, "systems and runtimes");
    }
    for known in ["cri-o://1.34.1", "docker://27.3.1"] {
        says(&with("containerRuntimeVersion", known), "N103", Outcome::Ok, "");
    }
    let debian = "m1: operating system Debian GNU/Linux 12 (bookworm): upstream has neither";
    says(&with("osImage", "Debian GNU/Linux 12 (bookworm)"), "N103", Outcome::Uncertain, debian);
    says(&with("osImage", ""), "N103", Outcome::Uncertain, "operating system none reported");
    let other = with("containerRuntimeVersion", "frakti://1.0");
    says(&other, "N103", Outcome::Uncertain, "container runtime frakti://1.0: node managers");
    let k3s = with("kubeletVersion", "v1.34.1+k3s1");
    says(&k3s, "N103", Outcome::Warn, "containerd of k3s is not /run/containerd/containerd.sock");
    says(&but(|world| world.nodes = forbidden()), "N103", Outcome::Uncertain, "may not be read");
}

#[test]
fn what_others_request_and_what_services_state_counts() {
    let pod = |requests: Value, more: Value| {
        let mut pod = json!({"metadata": {"name": "p", "namespace": "other"}, "spec": {"nodeName": "m1",
            "containers": [{"image": "x", "resources": {"requests": requests}}]}, "status": {"phase": "Running"}});
        let parts = more.as_object().into_iter().flatten();
        parts.for_each(|(key, value)| pod["spec"][key] = value.clone());
        but(|world| known(&mut world.pods).push(pod))
    };
    says(&pod(json!({"cpu": "4", "memory": "35Gi"}), json!({})), "N104", Outcome::Ok, "");
    let large = pod(json!({"cpu": "4100m", "memory": "36Gi"}), json!({}));
    says(
        &large,
        "N104",
        Outcome::Warn,
        "1 of 3 nodes: m1: only 3.9 of 8.0 cores left beside requests of others, only 28.0 of 64.0 GiB of memory left",
    );
    let before =
        json!({"initContainers": [{"image": "i", "resources": {"requests": {"cpu": "5"}}}]});
    says(&pod(json!({"cpu": "1"}), before), "N104", Outcome::Warn, "only 3.0 of 8.0");
    // Those of Kubernetes itself, of components, on no node yet, or that are over.
    for harmless in [json!({"priorityClassName": "system-node-critical"}), json!({"nodeName": ""})]
    {
        says(&pod(json!({"cpu": "7"}), harmless), "N104", Outcome::Ok, "");
    }
    let mut ours = large.clone();
    let last = known(&mut ours.pods).len() - 1;
    known(&mut ours.pods)[last]["metadata"]["labels"] = json!({"tf_manager": "control"});
    known(&mut ours.pods)[last]["metadata"]["namespace"] = json!("tf");
    says(&ours, "N104", Outcome::Ok, "");
    let mut over = large;
    known(&mut over.pods)[last]["status"]["phase"] = json!("Succeeded");
    says(&over, "N104", Outcome::Ok, "");

    let pages = with_node(|node| node["status"]["capacity"]["hugepages-1Gi"] = json!("40Gi"));
    says(&pages, "N104", Outcome::Warn, "only 24.0 of 64.0 GiB of memory left");
    let cassandras = |heap: &str, disk: i64| {
        let one = |name: &str| json!({"metadata": {"name": name}, "spec": {"serviceConfiguration": {"maxHeapSize": heap, "minimumDiskGB": disk}}});
        let both = json!([one("configdb1"), one("analyticsdb1")]);
        with_manager(move |manager| manager["spec"]["services"]["cassandras"] = both)
    };
    says(&cassandras("30g", 100), "N104", Outcome::Ok, "");
    let heaps = "64.0 GiB of memory left, and heaps of Cassandra (maxHeapSize) have 66.0 in sum";
    says(&cassandras("33g", 100), "N104", Outcome::Warn, heaps);
    says(&cassandras("8g", 200), "N104", Outcome::Warn, "is to have (minimumDiskGB) 372.5 in sum");
    let unread = but(|world| world.pods = forbidden());
    says(&unread, "N104", Outcome::Uncertain, "what its pods request is not known");
}

#[test]
fn addresses_of_nodes() {
    says(&good(), "N105", Outcome::Ok, "of its own");
    let address = |text: &str| {
        let text = text.to_owned();
        with_node(move |node| node["status"]["addresses"][0]["address"] = json!(text))
    };
    says(&address("192.168.0.2"), "N105", Outcome::Fail, "another node has 192.168.0.2 too");
    says(&address("fd00::1"), "N105", Outcome::Fail, "no InternalIP of IPv4");
    let more = |first: &str, second: &str| {
        let both = json!([{"type": "InternalIP", "address": first}, {"type": "InternalIP", "address": second}]);
        with_node(move |node| node["status"]["addresses"] = both)
    };
    assert_eq!(
        outcome(&more("192.168.0.1", "192.168.0.2"), "N105"),
        Outcome::Ok,
        "the first is taken"
    );
    says(
        &more("fd00::1", "192.168.0.1"),
        "N105",
        Outcome::Fail,
        "which components take, is of IPv6",
    );
    let host = with_node(|node| node["metadata"]["labels"]["kubernetes.io/hostname"] = json!("m2"));
    says(&host, "N105", Outcome::Fail, "another node is called m2 too");
    says(&but(|world| world.nodes = forbidden()), "N105", Outcome::Uncertain, "");
}

#[test]
fn clocks_and_images() {
    says(&good(), "T601", Outcome::Ok, "3 nodes");
    let here = |now: &str| {
        let now = now.parse().ok();
        but(move |world| world.now = now)
    };
    says(&here("2026-11-24T12:01:00Z"), "T601", Outcome::Warn, "your clock is 60 s ahead");
    let lease = |time: &str| {
        let time = time.to_owned();
        but(move |world| known(&mut world.leases)[0]["spec"]["renewTime"] = json!(time))
    };
    says(
        &lease("2026-11-24T12:05:00.0Z"),
        "T601",
        Outcome::Warn,
        "m1: its clock, or its heartbeat, is 300 s ahead",
    );
    says(&lease("2026-11-24T11:59:45.0Z"), "T601", Outcome::Ok, "");
    says(&but(|world| world.leases = forbidden()), "T601", Outcome::Uncertain, "may not be read");
    says(&but(|world| world.date = None), "T601", Outcome::Uncertain, "");

    says(&good(), "I801", Outcome::Ok, "for all registries");
    let secret = |read: Read<Registries>| {
        but(|world| drop(world.registries.insert(("tf".to_owned(), "pull".to_owned()), read)))
    };
    says(&secret(Read::Absent), "I801", Outcome::Fail, "Secret tf/pull is missing");
    let of = |type_: &str, host: &str| {
        Read::Known(Registries { type_: type_.to_owned(), hosts: vec![host.to_owned()] })
    };
    says(&secret(of("Opaque", "x")), "I801", Outcome::Fail, "is of type Opaque");
    says(
        &secret(of("kubernetes.io/dockerconfigjson", "quay.io")),
        "I801",
        Outcome::Uncertain,
        "registry.example.com in tf",
    );
    says(&secret(forbidden()), "I801", Outcome::Uncertain, "may not be read");
    says(&but(|world| world.registries.clear()), "I801", Outcome::Skipped, "--only I802");
}

/// The nodes have pulled, the second with this result of one of its images.
fn pulled(pull: Pull) -> World {
    but(|world| {
        let done = |alike: usize| Pulled {
            alike,
            images: [("registry.example.com/a:1".to_owned(), Pull::Done)].into(),
        };
        let mut second = done(0);
        second.images.insert("registry.example.com/b:1".to_owned(), pull);
        world.pulled = Some([("m1".to_owned(), done(1)), ("m2".to_owned(), second)].into());
    })
}

#[test]
fn what_nodes_have_pulled_counts_more_than_the_secrets() {
    says(
        &pulled(Pull::Done),
        "I801",
        Outcome::Ok,
        "2/2 nodes: they have pulled their images, for 1 more",
    );
    let why = "ImagePullBackOff: 401 Unauthorized";
    says(
        &pulled(Pull::Failed(why.to_owned())),
        "I801",
        Outcome::Fail,
        "1/2 nodes: they have pulled their images, for 1 more that are alike (--pull=all: each); m2: \
         registry.example.com/b:1: ImagePullBackOff: 401 Unauthorized",
    );
    let late = Pull::Unknown("not known after 120 s: it is being pulled".to_owned());
    says(
        &pulled(late.clone()),
        "I801",
        Outcome::Uncertain,
        "m2: registry.example.com/b:1: not known",
    );

    // A registry that wants no password is known by what came of it, and a Secret that is missing stays so.
    let mut none = pulled(Pull::Done);
    none.registries.clear();
    says(&none, "I801", Outcome::Ok, "they have pulled");
    let mut missing = pulled(late);
    missing.registries.insert(("tf".to_owned(), "pull".to_owned()), Read::Absent);
    says(&missing, "I801", Outcome::Fail, "Secret tf/pull is missing; 1/2 nodes");
    let mut nothing = pulled(Pull::Done);
    nothing.pulled = Some(AllPulled::new());
    says(&nothing, "I801", Outcome::Ok, "for all registries");
}
