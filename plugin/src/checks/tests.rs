//! Worlds of each check: one in which it passes, one in which it does not, one in which it cannot be known; and good
//! clusters of which nothing bad may be said.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::catalogue::{CHECKS, Mode, of_id};
use super::report::{Outcome, Verdict};
use super::world::{Registries, World};
use super::{Chosen, judge, text};
use crate::snapshot::Read;

mod probed;

fn is_bad(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Fail | Outcome::Warn)
}

const DATE: &str = "2026-11-24T12:00:00Z";

fn node(name: &str, address: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"node-role.kubernetes.io/control-plane": "",
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
        "spec": {"podCIDR": "10.32.1.0/24"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": address}],
            "capacity": {"cpu": "8", "memory": "64Gi", "ephemeral-storage": "300Gi"},
            "allocatable": {"cpu": "8", "memory": "64Gi", "ephemeral-storage": "300Gi", "hugepages-2Mi": "512Mi"},
            "nodeInfo": {"kubeletVersion": "v1.34.1", "architecture": "amd64", "operatingSystem": "linux",
                "kernelVersion": "5.14.0-503.14.1.el9_5.x86_64"}}})
}

fn manager() -> Value {
    let image =
        |name: &str| json!([{"name": name, "image": format!("registry.example.com/{name}:R24.1")}]);
    json!({"metadata": {"name": "cluster1", "namespace": "tf"},
        "spec": {"commonConfiguration": {"imagePullSecrets": ["pull"]}, "services": {
            "zookeeper": {"metadata": {"name": "zookeeper1"}, "spec": {"serviceConfiguration": {"containers": image("zookeeper")}}},
            "controls": [{"metadata": {"name": "control1"}, "spec": {"serviceConfiguration": {}}}],
            "kubemanager": {"metadata": {"name": "kubemanager1"}, "spec": {"serviceConfiguration": {}}},
            "vrouters": [{"metadata": {"name": "vrouter1"}, "spec": {"serviceConfiguration": {"hugePages2M": 128}}}]}}})
}

/// An installed, healthy cluster of kubeadm, whose networks are what kubeadm has.
fn good() -> World {
    let nodes = ["m1", "m2", "m3"]
        .iter()
        .zip(1..)
        .map(|(name, number)| node(name, &format!("192.168.0.{number}")));
    let ours = json!({"metadata": {"name": "control1-0", "namespace": "tf", "labels": {"tf_manager": "control"}},
        "spec": {"nodeName": "m1", "hostNetwork": true, "containers": [{"image": "c", "ports": [{"containerPort": 179}]}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    let lease = |name: &str| json!({"metadata": {"name": name}, "spec": {"renewTime": "2026-11-24T11:59:55.000000Z"}});
    let versions = [
        "admissionregistration.k8s.io/v1",
        "apiextensions.k8s.io/v1",
        "coordination.k8s.io/v1",
        "discovery.k8s.io/v1",
        "rbac.authorization.k8s.io/v1",
    ];
    let versions: Vec<Value> = versions.iter().map(|one| json!({"groupVersion": one})).collect();
    let labels = json!({"pod-security.kubernetes.io/enforce": "privileged"});
    World {
        version: json!({"gitVersion": "v1.34.1", "minor": "34"}),
        date: DATE.parse().ok(),
        now: "2026-11-24T12:00:01Z".parse().ok(),
        user: Read::Known(json!({"status": {"userInfo": {"username": "admin"}}})),
        groups: Read::Known(json!({"groups": [{"versions": versions}]})),
        nodes: Read::Known(nodes.collect()),
        leases: Read::Known(["m1", "m2", "m3"].iter().map(|name| lease(name)).collect()),
        namespaces: Read::Known(vec![json!({"metadata": {"name": "tf", "labels": labels}})]),
        pods: Read::Known(vec![ours]),
        daemon_sets: Read::Known(vec![]),
        managers: Read::Known(vec![manager()]),
        quotas: Read::Known(vec![]),
        limits: Read::Known(vec![]),
        webhooks: Read::Known(vec![]),
        service_networks: Read::Known(vec![
            json!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.0/12"]}}),
        ]),
        kubernetes: Read::Known(json!({"spec": {"clusterIP": "10.96.0.1"}})),
        kubeadm: Read::Known(
            json!({"networking": {"podSubnet": "10.32.0.0/12", "serviceSubnet": "10.96.0.0/12"}}),
        ),
        registries: [(
            ("tf".to_owned(), "pull".to_owned()),
            Read::Known(Registries {
                type_: "kubernetes.io/dockerconfigjson".to_owned(),
                hosts: vec!["https://registry.example.com/v1/".to_owned()],
            }),
        )]
        .into(),
        rights: Read::Known(vec![("create pods".to_owned(), true)]),
        may_grant: Read::Known(true),
        ..World::default()
    }
}

fn verdict(world: &World, id: &str) -> Verdict {
    let check = of_id(id).unwrap();
    check.judge.unwrap()(world).within(check.severity)
}

fn outcome(world: &World, id: &str) -> Outcome {
    verdict(world, id).outcome
}

/// The world with something changed.
fn but(change: impl FnOnce(&mut World)) -> World {
    let mut world = good();
    change(&mut world);
    world
}

fn known<T>(read: &mut Read<T>) -> &mut T {
    match read {
        Read::Known(value) => value,
        _ => panic!("it is known"),
    }
}

fn forbidden<T>() -> Read<T> {
    Read::Unknown("is forbidden".to_owned())
}

fn with_node(change: impl FnOnce(&mut Value)) -> World {
    but(|world| change(&mut known(&mut world.nodes)[0]))
}

fn with_manager(change: impl FnOnce(&mut Value)) -> World {
    but(|world| change(&mut known(&mut world.managers)[0]))
}

#[track_caller]
fn says(world: &World, id: &str, expected: Outcome, part: &str) {
    let verdict = verdict(world, id);
    assert_eq!(verdict.outcome, expected, "{id}: {}", verdict.message);
    assert!(verdict.message.contains(part), "{id}: {part:?} is missing in: {}", verdict.message);
}

#[test]
fn of_a_good_cluster_no_check_says_anything_bad() {
    let report = judge(&good(), &Chosen::default());
    for check in &report.checks {
        assert!(!is_bad(check.result), "{} {:?}: {}", check.id, check.result, check.message);
    }
    let uncertain = report.checks.iter().filter(|check| check.result == Outcome::Uncertain);
    let uncertain: Vec<&str> = uncertain.map(|check| check.id).collect();
    assert_eq!(uncertain, ["D304", "C401"], "only nodes know their interfaces and files");
}

#[test]
fn of_an_empty_cluster_without_anything_of_opensdn_nothing_fails() {
    let empty = but(|world| {
        world.managers = Read::Absent;
        world.namespaces = Read::Known(vec![]);
        world.pods = Read::Known(vec![]);
        world.registries.clear();
    });
    let report = judge(&empty, &Chosen::default());
    let bad = report.checks.iter().filter(|check| is_bad(check.result));
    assert_eq!(bad.map(|check| check.id).collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn where_nothing_may_be_read_no_check_passes_or_fails() {
    let nothing = World {
        version: json!({"gitVersion": "v1.34.1", "minor": "34"}),
        user: forbidden(),
        groups: forbidden(),
        nodes: forbidden(),
        leases: forbidden(),
        namespaces: forbidden(),
        pods: forbidden(),
        daemon_sets: forbidden(),
        managers: forbidden(),
        quotas: forbidden(),
        limits: forbidden(),
        webhooks: forbidden(),
        service_networks: forbidden(),
        kubernetes: forbidden(),
        kubeadm: forbidden(),
        openshift: forbidden(),
        tf_operators: forbidden(),
        rights: forbidden(),
        may_grant: forbidden(),
        deployments: [("opensdn-operator".to_owned(), forbidden())].into(),
        ..World::default()
    };
    for check in judge(&nothing, &Chosen::default()).checks {
        let is_open = matches!(check.result, Outcome::Uncertain | Outcome::Skipped);
        assert!(is_open, "{} {:?}: {}", check.id, check.result, check.message);
    }
}

#[test]
fn credentials_and_versions() {
    says(&good(), "K001", Outcome::Ok, "you are admin");
    let anonymous = json!({"status": {"userInfo": {"username": "system:anonymous"}}});
    says(&but(|world| world.user = Read::Known(anonymous)), "K001", Outcome::Fail, "anonymous");

    says(&good(), "K002", Outcome::Ok, "v1.34.1 is supported");
    let server = |minor: &str| {
        but(|world| world.version = json!({"gitVersion": format!("v1.{minor}.0"), "minor": minor}))
    };
    says(&server("29"), "K002", Outcome::Fail, "supported are 1.33 - 1.36");
    says(&server("33"), "K002", Outcome::Warn, "3 kubelets of another minor version");
    says(&server("40+"), "K002", Outcome::Warn, "is tested with");
    says(&but(|world| world.version = json!({})), "K002", Outcome::Uncertain, "cannot be read");
    let old = with_node(|node| node["status"]["nodeInfo"]["kubeletVersion"] = json!("v1.31.9"));
    assert_eq!(outcome(&old, "K002"), Outcome::Ok, "three minor versions are allowed");
    let old = with_node(|node| node["status"]["nodeInfo"]["kubeletVersion"] = json!("v1.30.9"));
    says(&old, "K002", Outcome::Warn, "m1: kubelet v1.30.9");
}

#[test]
fn rights_apis_and_owners() {
    let missing =
        but(|world| world.rights = Read::Known(vec![("create pods in tf".to_owned(), false)]));
    says(&missing, "K003", Outcome::Fail, "1 of 1 rights are missing: create pods in tf");
    says(
        &but(|world| world.may_grant = Read::Known(false)),
        "K003",
        Outcome::Uncertain,
        "escalate",
    );

    let without = but(|world| world.groups = Read::Known(json!({"groups": []})));
    says(&without, "K004", Outcome::Fail, "not served: admissionregistration.k8s.io/v1");
    let definition = |stored: &str| {
        Read::Known(
            json!({"metadata": {"name": "x.tf.tungsten.io"}, "status": {"storedVersions": [stored]}}),
        )
    };
    let stored = but(|world| drop(world.definitions.insert("x".to_owned(), definition("v1beta1"))));
    says(&stored, "K004", Outcome::Fail, "x has objects in v1beta1");
    let stored =
        but(|world| drop(world.definitions.insert("x".to_owned(), definition("v1alpha1"))));
    assert_eq!(outcome(&stored, "K004"), Outcome::Ok);
    says(
        &but(|world| drop(world.definitions.insert("x".to_owned(), forbidden()))),
        "K004",
        Outcome::Uncertain,
        "CRDs may not be read",
    );
}

#[test]
fn owners_of_what_is_there() {
    let deployment =
        |metadata: Value| {
            but(|world| {
                drop(world.deployments.insert(
                    "opensdn-operator".to_owned(),
                    Read::Known(json!({"metadata": metadata})),
                ))
            })
        };
    let helm =
        json!({"name": "opensdn-operator", "labels": {"app.kubernetes.io/managed-by": "Helm"}});
    says(&deployment(helm), "K005", Outcome::Ok, "all of OpenSDN is managed by Helm");
    let argo = json!({"name": "x", "annotations": {"argocd.argoproj.io/tracking-id": "a"}});
    says(&deployment(argo.clone()), "K005", Outcome::Ok, "Argo CD: change it there");
    let mut mixed = deployment(argo);
    mixed.definitions.insert("x".to_owned(), Read::Known(json!({"metadata": {"name": "x"}})));
    says(
        &mixed,
        "K005",
        Outcome::Fail,
        "Argo CD manages x; other objects of OpenSDN are not of it",
    );
    let kubectl = json!({"name": "x", "managedFields": [{"manager": "kubectl"}]});
    says(&deployment(kubectl), "K005", Outcome::Ok, "managed by no other tool");
    let upstream = |replicas: u32, ours: &[&str]| {
        let other = json!({"metadata": {"name": "tf-operator", "namespace": "sdn"}, "spec": {"replicas": replicas}});
        but(|world| {
            world.tf_operators = Read::Known(vec![other]);
            for name in ours {
                let own = Read::Known(json!({"metadata": {"name": name}}));
                world.deployments.insert((*name).to_owned(), own);
            }
        })
    };
    let both = upstream(1, &["opensdn-operator", "opensdn-webhook"]);
    says(&both, "K005", Outcome::Fail, "tf-operator runs (sdn/tf-operator)");
    says(&upstream(0, &["opensdn-operator"]), "K005", Outcome::Ok, "1 object of OpenSDN");
    says(&upstream(1, &["opensdn-webhook"]), "K005", Outcome::Ok, "1 object of OpenSDN");
    says(&upstream(1, &[]), "K005", Outcome::Warn, "no operator of ours beside it");
    says(
        &but(|world| drop(world.deployments.insert("x".to_owned(), forbidden()))),
        "K005",
        Outcome::Uncertain,
        "could be read",
    );
}

#[test]
fn what_the_api_server_admits() {
    let enforced = |level: &str| {
        but(|world| {
            known(&mut world.namespaces)[0]["metadata"]["labels"] =
                json!({"pod-security.kubernetes.io/enforce": level})
        })
    };
    says(
        &enforced("baseline"),
        "K006",
        Outcome::Fail,
        "namespace tf enforces Pod Security \"baseline\"",
    );
    let fix = verdict(&enforced("restricted"), "K006").fix.unwrap();
    assert_eq!(
        fix,
        "kubectl label namespace tf pod-security.kubernetes.io/enforce=privileged --overwrite"
    );
    let unlabelled = but(|world| known(&mut world.namespaces)[0]["metadata"]["labels"] = json!({}));
    says(&unlabelled, "K006", Outcome::Ok, "privileged pods may run in tf");
    let first = but(|world| {
        known(&mut world.namespaces)[0]["metadata"]["labels"] = json!({});
        world.pods = Read::Known(vec![]);
    });
    says(&first, "K006", Outcome::Uncertain, "no label");
    let before = but(|world| {
        world.namespaces = Read::Known(vec![]);
        world.managers = Read::Known(vec![]);
        world.pods = Read::Known(vec![]);
    });
    says(&before, "K006", Outcome::Ok, "an installation brings the namespaces");
    let openshift = |pods: bool| {
        but(|world| {
            known(&mut world.groups)["groups"]
                .as_array_mut()
                .unwrap()
                .push(json!({"name": "security.openshift.io"}));
            if !pods {
                world.pods = Read::Known(vec![]);
            }
        })
    };
    assert_eq!(outcome(&openshift(true), "K006"), Outcome::Ok, "a pod was let in");
    says(&openshift(false), "K006", Outcome::Uncertain, "SecurityContextConstraints");
}

#[test]
fn webhooks_of_others() {
    let webhook = |policy: &str, group: &str| {
        json!({"metadata": {"name": "other"}, "webhooks": [{"name": "a.b.c", "failurePolicy": policy,
        "clientConfig": {"service": {"namespace": "ns", "name": "svc"}},
        "rules": [{"apiGroups": [group], "resources": ["*"]}]}]})
    };
    let key = || ("ns".to_owned(), "svc".to_owned());
    let behind = |webhook: Value, endpoints: Read<Vec<Value>>| {
        but(|world| {
            world.webhooks = Read::Known(vec![webhook]);
            world.endpoints.insert(key(), endpoints);
        })
    };
    let slice =
        |ready: bool| Read::Known(vec![json!({"endpoints": [{"conditions": {"ready": ready}}]})]);
    says(&behind(webhook("Fail", "*"), slice(true)), "K007", Outcome::Ok, "ready endpoint");
    says(
        &behind(webhook("Fail", "*"), slice(false)),
        "K007",
        Outcome::Warn,
        "no endpoint is ready behind other (ns/svc)",
    );
    says(
        &behind(webhook("Fail", "tf.tungsten.io"), Read::Known(vec![])),
        "K007",
        Outcome::Warn,
        "other",
    );
    says(&behind(webhook("Ignore", "*"), slice(false)), "K007", Outcome::Ok, "");
    says(&behind(webhook("Fail", "cert-manager.io"), slice(false)), "K007", Outcome::Ok, "");
    says(&behind(webhook("Fail", "*"), forbidden()), "K007", Outcome::Uncertain, "not known");
}

#[test]
fn room_for_components() {
    let quota = |hard: Value, used: Value| {
        but(|world| {
            world.quotas = Read::Known(vec![
                json!({"metadata": {"name": "q", "namespace": "tf"}, "status": {"hard": hard, "used": used}}),
            ])
        })
    };
    says(
        &quota(json!({"pods": "10"}), json!({"pods": "10"})),
        "K008",
        Outcome::Warn,
        "tf/q has no pods left",
    );
    says(&quota(json!({"pods": "1k"}), json!({"pods": "999"})), "K008", Outcome::Ok, "room");
    let hardening = json!({"services.nodeports": "0", "services.loadbalancers": "0", "requests.nvidia.com/gpu": "0"});
    says(&quota(hardening.clone(), hardening), "K008", Outcome::Ok, "room");
    says(
        &quota(json!({"requests.cpu": "64"}), json!({"requests.cpu": "1"})),
        "K008",
        Outcome::Warn,
        "refuses pods without requests.cpu",
    );
    says(
        &quota(json!({"limits.memory": "1Ti"}), json!({})),
        "K008",
        Outcome::Warn,
        "refuses pods without limits.memory",
    );
    let limit = |memory: &str| {
        but(|world| {
            world.limits = Read::Known(vec![
                json!({"metadata": {"name": "l", "namespace": "tf"}, "spec": {"limits": [{"type": "Container", "max": {"memory": memory}}]}}),
            ])
        })
    };
    says(&limit("512Mi"), "K008", Outcome::Warn, "LimitRange tf/l");
    assert_eq!(outcome(&limit("64Gi"), "K008"), Outcome::Ok);
    says(&but(|world| world.quotas = forbidden()), "K008", Outcome::Uncertain, "may not be read");
}

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
fn a_port_counts_on_the_nodes_of_its_component_alone() {
    let worker = json!({"metadata": {"name": "w1", "labels": {"kubernetes.io/os": "linux"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let on = |node: &str, port: u32, without_manager: bool| {
        let pod = json!({"metadata": {"name": "p", "namespace": "other"},
            "spec": {"nodeName": node, "hostNetwork": true, "containers": [{"image": "x", "ports": [{"containerPort": port}]}]},
            "status": {"phase": "Running"}});
        but(|world| {
            known(&mut world.nodes).push(worker.clone());
            known(&mut world.pods).push(pod);
            if without_manager {
                world.managers = Read::Absent;
            }
        })
    };
    for without_manager in [false, true] {
        says(&on("m1", 179, without_manager), "P202", Outcome::Fail, "m1: port 179/TCP of Control");
        assert_eq!(
            outcome(&on("w1", 179, without_manager), "P202"),
            Outcome::Ok,
            "Control is elsewhere"
        );
        says(
            &on("w1", 9091, without_manager),
            "P202",
            Outcome::Fail,
            "w1: port 9091/TCP of Vrouter",
        );
    }
    says(
        &but(|world| world.nodes = forbidden()),
        "P202",
        Outcome::Uncertain,
        "nodes may not be read",
    );
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
fn claimed_ports() {
    let other = |name: &str, container: Value| {
        let pod = json!({"metadata": {"name": name, "namespace": "other"},
            "spec": {"nodeName": "m2", "hostNetwork": true, "containers": [container]}, "status": {"phase": "Running"}});
        but(|world| known(&mut world.pods).push(pod))
    };
    says(&good(), "P202", Outcome::Ok, "no other pod claims");
    let exporter =
        other("e", json!({"image": "prom/node-exporter:1", "ports": [{"containerPort": 9100}]}));
    assert_eq!(outcome(&exporter, "P202"), Outcome::Ok, "9100 is no port of a component");
    let webhook = other("w", json!({"image": "x", "ports": [{"containerPort": 9091}]}));
    says(&webhook, "P202", Outcome::Fail, "m2: port 9091/TCP of Vrouter: other/w");
    let bird = json!([{"name": "CALICO_NETWORKING_BACKEND", "value": "bird"}]);
    let bird = other("calico-node-x", json!({"image": "docker.io/calico/node:v3.28", "env": bird}));
    says(&bird, "P202", Outcome::Fail, "port 179/TCP of Control: other/calico-node-x");
    // As in Calico's own manifests, and in those of KubeSpray, which has VXLAN by default.
    let said_elsewhere = json!([{"name": "CALICO_NETWORKING_BACKEND", "valueFrom": {"configMapKeyRef": {"name": "calico-config"}}}]);
    let calico = json!({"image": "rancher/mirrored-calico-node:v3.28", "env": said_elsewhere});
    says(
        &other("c", calico),
        "P202",
        Outcome::Uncertain,
        "179/TCP of Control: other/c, if it listens",
    );
    let metal = other("m", json!({"image": "quay.io/frrouting/frr:9"}));
    assert_eq!(outcome(&metal, "P202"), Outcome::Ok, "the bgpd of MetalLB listens nowhere");
    let dns = json!({"image": "registry.k8s.io/dns/k8s-dns-node-cache:1.23", "ports": [{"containerPort": 53, "protocol": "UDP"}]});
    says(&other("d", dns), "P202", Outcome::Warn, "port 53/UDP of Control");
    let vxlan = json!([{"name": "CALICO_NETWORKING_BACKEND", "value": "vxlan"}]);
    let calico = other("c", json!({"image": "docker.io/calico/node:v3.28", "env": vxlan}));
    assert_eq!(outcome(&calico, "P202"), Outcome::Ok, "without BIRD nothing listens");
    let felix = json!([{"name": "CALICO_NETWORKING_BACKEND", "value": "vxlan"}, {"name": "FELIX_PROMETHEUSMETRICSENABLED", "value": "true"}]);
    says(
        &other("f", json!({"image": "docker.io/calico/node:v3.28", "env": felix})),
        "P202",
        Outcome::Fail,
        "9091/TCP",
    );
    let no_redis = other("r", json!({"image": "redis", "ports": [{"containerPort": 6389}]}));
    assert_eq!(outcome(&no_redis, "P202"), Outcome::Ok, "this Manager has no Redis");
    says(&but(|world| world.pods = forbidden()), "P202", Outcome::Uncertain, "may not be read");
}

#[test]
fn the_data_plane_as_it_is_configured() {
    let with = |settings: Value| {
        with_manager(|manager| {
            manager["spec"]["services"]["vrouters"][0]["spec"]["serviceConfiguration"] = settings
        })
    };
    says(&with(json!({"cniMTU": 1450})), "D304", Outcome::Uncertain, "pods have 1450");
    says(&with(json!({"cniMTU": 100})), "D304", Outcome::Fail, "Vrouter vrouter1 has 100");
    let two = with_manager(|manager| {
        let item = |name: &str, mtu: i64| json!({"metadata": {"name": name}, "spec": {"serviceConfiguration": {"cniMTU": mtu}}});
        manager["spec"]["services"]["vrouters"] = json!([item("a", 1450), item("b", 1500)]);
    });
    says(&two, "D304", Outcome::Warn, "a 1450, b 1500");
    says(&but(|world| world.managers = forbidden()), "D304", Outcome::Uncertain, "");

    says(&good(), "D306", Outcome::Ok, "report what these ask for");
    let down = with_node(|node| node["status"]["conditions"] = json!([]));
    says(&down, "D306", Outcome::Uncertain, "not ready, so that its pages are not known: m1");
    let same = with_manager(|manager| {
        let item = |name: &str, settings: Value| json!({"metadata": {"name": name}, "spec": {"serviceConfiguration": settings}});
        manager["spec"]["services"]["vrouters"] =
            json!([item("a", json!({})), item("b", json!({"cniMTU": 1500}))]);
    });
    assert_eq!(outcome(&same, "D304"), Outcome::Uncertain, "the default is 1500");
    says(
        &with(json!({"hugePages2M": 1024})),
        "D306",
        Outcome::Fail,
        "m1 has 256 of 1024 hugepages-2Mi",
    );
    says(&with(json!({"hugePages1G": 1})), "D306", Outcome::Fail, "has 0 of 1 hugepages-1Gi");
    assert_eq!(outcome(&with(json!({})), "D306"), Outcome::Skipped);
    says(&but(|world| world.nodes = forbidden()), "D306", Outcome::Uncertain, "");
}

#[test]
fn other_networks_of_pods() {
    let set = |image: &str| {
        json!({"metadata": {"name": "x", "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": [{"image": image}]}}}})
    };
    says(&good(), "C401", Outcome::Uncertain, "no DaemonSet");
    let named = |name: &str| json!({"metadata": {"name": name, "namespace": "ns"}});
    for (name, what) in
        [("ovnkube-node", "OVN-Kubernetes"), ("rke2-canal", "Canal"), ("cilium", "Cilium")]
    {
        let world = but(|world| known(&mut world.daemon_sets).push(named(name)));
        says(&world, "C401", Outcome::Uncertain, &format!("{what} (ns/{name})"));
    }
    let calico = but(|world| known(&mut world.daemon_sets).push(set("docker.io/calico/node:v3")));
    says(&calico, "C401", Outcome::Uncertain, "Calico (kube-system/x)");
    let k3s =
        with_node(|node| node["status"]["nodeInfo"]["kubeletVersion"] = json!("v1.34.1+k3s1"));
    says(&k3s, "C401", Outcome::Uncertain, "the network of k3s");
    says(
        &but(|world| world.daemon_sets = forbidden()),
        "C401",
        Outcome::Uncertain,
        "may not be read",
    );
    let multus = |world: &mut World| {
        known(&mut world.daemon_sets).push(set("ghcr.io/k8snetworkplumbingwg/multus-cni:v4"))
    };
    let both = but(|world| {
        multus(world);
        known(&mut world.daemon_sets).push(set("docker.io/calico/node:v3"));
    });
    says(&both, "C401", Outcome::Ok, "by intent");
    says(&both, "C402", Outcome::Ok, "Multus runs");
    let nested = but(|world| {
        known(&mut world.managers)[0]["spec"]["nested"] = json!({});
        known(&mut world.daemon_sets).push(set("docker.io/calico/node:v3"));
    });
    says(&nested, "C401", Outcome::Ok, "by intent");

    says(&good(), "C402", Outcome::Ok, "no meta plugin");
    says(&but(|world| world.daemon_sets = forbidden()), "C402", Outcome::Uncertain, "");
}

#[test]
fn the_plan_of_networks() {
    says(&good(), "S501", Outcome::Ok, "pods 10.32.0.0/12, Services 10.96.0.0/12");
    let address = |text: &str| {
        let text = text.to_owned();
        with_node(move |node| node["status"]["addresses"][0]["address"] = json!(text))
    };
    says(
        &address("10.40.3.12"),
        "S501",
        Outcome::Fail,
        "the network 10.32.0.0/12 of pods has a node in it: node m1 has 10.40.3.12",
    );
    says(&address("10.64.3.12"), "S501", Outcome::Warn, "of the fabric has a node in it");
    let with = |settings: Value| {
        with_manager(|manager| {
            manager["spec"]["services"]["kubemanager"]["spec"]["serviceConfiguration"] = settings
        })
    };
    says(
        &with(json!({"podSubnet": "10.96.128.0/17"})),
        "S501",
        Outcome::Fail,
        "both have 10.96.128.0/17",
    );
    says(&with(json!({"podSubnet": "169.254.8.0/24"})), "S501", Outcome::Fail, "link-local");
    says(
        &with(json!({"serviceSubnet": "10.112.0.0/16"})),
        "S501",
        Outcome::Fail,
        "the Service kubernetes has 10.96.0.1",
    );
    says(
        &with(json!({"ipFabricSubnets": "10.33.0.0/16"})),
        "S501",
        Outcome::Fail,
        "10.33.0.0/16 of the fabric",
    );
    // Of kubeadm's own networks, whatever they are, nothing is wrong.
    let own = but(|world| {
        world.kubeadm = Read::Known(
            json!({"networking": {"podSubnet": "10.244.0.0/16,fd00:1::/64", "serviceSubnet": "10.10.0.0/16"}}),
        );
        world.service_networks = Read::Known(vec![
            json!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.10.0.0/16", "fd00:2::/112"]}}),
        ]);
        world.kubernetes = Read::Known(json!({"spec": {"clusterIP": "10.10.0.1"}}));
        known(&mut world.nodes)[0]["spec"]["podCIDR"] = json!("10.244.1.0/24");
    });
    says(&own, "S501", Outcome::Ok, "pods 10.244.0.0/16");
    says(
        &but(|world| world.nodes = forbidden()),
        "S501",
        Outcome::Uncertain,
        "nodes may not be read",
    );
}

#[test]
fn networks_are_those_of_who_made_the_cluster_and_not_guessed() {
    let openshift = |address: &str| {
        let address = address.to_owned();
        but(move |world| {
            world.kubeadm = Read::Absent;
            let networking = json!({"clusterNetwork": [{"cidr": "10.128.0.0/14"}], "serviceNetwork": ["172.30.0.0/16"]});
            world.openshift = Read::Known(json!({"networking": networking}));
            world.service_networks = Read::Absent;
            world.kubernetes = Read::Known(json!({"spec": {"clusterIP": "172.30.0.1"}}));
            known(&mut world.nodes)[0]["status"]["addresses"][0]["address"] = json!(address);
        })
    };
    says(&openshift("10.40.0.1"), "S501", Outcome::Ok, "pods 10.128.0.0/14");
    says(&openshift("10.129.0.1"), "S501", Outcome::Fail, "node m1 has 10.129.0.1");
    for unread in [
        |world: &mut World| world.kubeadm = forbidden(),
        |world: &mut World| {
            world.service_networks = forbidden();
        },
    ] {
        says(&but(unread), "S501", Outcome::Uncertain, "are not known: is forbidden");
    }
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
    assert_eq!(outcome(&but(|world| world.registries.clear()), "I801"), Outcome::Skipped);
}

#[test]
fn only_and_skip_choose_checks_and_what_is_left_out_says_so() {
    let only = Chosen { only: vec!["k002".into(), "P201".into()], skip: vec![] };
    let report = judge(&good(), &only);
    let ids: Vec<_> = report.checks.iter().map(|check| (check.id, check.result)).collect();
    assert_eq!(ids, [("K002", Outcome::Ok), ("P201", Outcome::Skipped)]);
    assert!(report.checks[1].message.contains("needs --probe"), "{}", report.checks[1].message);
    let skip = Chosen { only: vec![], skip: vec!["K002".into()] };
    let report = judge(&good(), &skip);
    assert_eq!(report.checks.len(), CHECKS.len());
    assert_eq!(
        report.checks.iter().find(|check| check.id == "K002").unwrap().message,
        "left out by --skip"
    );
    assert_eq!(Chosen { only: vec!["K999".into()], skip: vec![] }.unknown(), Some("K999"));
}

/// The ids that have been given. One that is gone stays in this list, and is never given again.
#[test]
fn no_id_is_given_twice_and_none_changes() {
    const GIVEN: [&str; 38] = [
        "K001", "K002", "K003", "K004", "K005", "K006", "K007", "K008", "N101", "N102", "N103",
        "N104", "N105", "P201", "P202", "P203", "P204", "D301", "D302", "D303", "D304", "D305",
        "D306", "D307", "D308", "C401", "C402", "S501", "S502", "T601", "T602", "V701", "V702",
        "I801", "I802", "X901", "X902", "B001",
    ];
    let ids: Vec<&str> =
        CHECKS.iter().map(|check| check.id).filter(|id| !id.starts_with('Q')).collect();
    assert_eq!(ids, GIVEN);
    let nested: Vec<&str> =
        CHECKS.iter().filter(|check| check.mode == Mode::Nested).map(|check| check.id).collect();
    assert!(nested.iter().all(|id| id.starts_with('Q')) && !nested.is_empty());
    assert_eq!(CHECKS.iter().map(|check| check.id).collect::<BTreeSet<_>>().len(), CHECKS.len());
    for check in CHECKS {
        let is_api = matches!(check.mode, Mode::Api | Mode::ApiAndProbe);
        assert!(!is_api || check.judge.is_some(), "{} is judged by the API alone", check.id);
        assert!(
            [check.title, check.why, check.fix].iter().all(|text| !text.is_empty()),
            "{}",
            check.id
        );
    }
}

#[test]
fn the_page_of_checks_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/reference/checks.md");
    let expected = text::page();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &expected).unwrap();
    }
    let current = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        current == expected,
        "UPDATE=1 cargo test -p kubectl-opensdn the_page_of_checks_is_current"
    );
}
