//! Worlds of the checks of the API server: credentials, rights, owners, what it admits.

use super::super::privileged::LetIn;
use super::*;
use crate::checks::world::Applied;
use crate::snapshot::tf_operator::TfOperator;

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
    let tried = |refused: &[&str]| {
        let refused = refused.iter().map(|one| (*one).to_owned()).collect();
        but(|world| {
            world.applied = Some(Ok(Applied { objects: 72, refused, untried: Vec::new() }));
        })
    };
    says(&tried(&[]), "K003", Outcome::Ok, "none of 72 objects would be refused");
    let refused = tried(&["ClusterRole/a: no"]);
    says(&refused, "K003", Outcome::Fail, "1 of 72 objects would be refused: ClusterRole/a: no");
    let may_not_bind = but(|world| {
        world.may_grant = Read::Known(false);
        world.applied = Some(Ok(Applied { objects: 72, ..Applied::default() }));
    });
    let untried = but(|world| {
        let untried = vec!["ClusterRole/a: failed calling webhook".to_owned()];
        world.applied = Some(Ok(Applied { objects: 72, untried, ..Applied::default() }));
    });
    says(&untried, "K003", Outcome::Uncertain, "1 of 72 objects would be refused is not known");
    says(&may_not_bind, "K003", Outcome::Uncertain, "escalate and bind");
    let unknown = but(|world| world.applied = Some(Err("it does not answer".to_owned())));
    says(&unknown, "K003", Outcome::Uncertain, "is not known: it does not answer");

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
    let gone = |deployments: Read<Value>| {
        but(|world| {
            world.definitions.insert("admissionpolicies.opensdn.io".to_owned(), Read::Absent);
            world.deployments.insert("opensdn-webhook".to_owned(), deployments.clone());
        })
    };
    says(&gone(Read::Known(json!({}))), "K004", Outcome::Fail, "nothing is judged");
    assert_eq!(outcome(&gone(Read::Absent), "K004"), Outcome::Ok, "nothing is installed");
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
    says(
        &but(|world| drop(world.deployments.insert("x".to_owned(), forbidden()))),
        "K005",
        Outcome::Uncertain,
        "could be read",
    );
}

#[test]
fn upstreams_operator_beside_ours_or_away() {
    let upstream = |replicas: u32, ours: &[&str]| {
        let other = json!({"metadata": {"name": "tf-operator", "namespace": "sdn"}, "spec": {"replicas": replicas}});
        but(|world| {
            world.tf_operators = Read::Known(vec![TfOperator::of(&other)]);
            for name in ours {
                let own = Read::Known(json!({"metadata": {"name": name}}));
                world.deployments.insert((*name).to_owned(), own);
            }
        })
    };
    let both = upstream(1, &["opensdn-operator", "opensdn-webhook"]);
    says(&both, "K005", Outcome::Fail, "tf-operator runs (sdn/tf-operator)");
    let end = "kubectl scale deployment tf-operator -n sdn --replicas=0";
    assert_eq!(
        verdict(&both, "K005").fix.as_deref(),
        Some(end),
        "and not to install, which is refused"
    );
    let owner = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Redis", "name": "redis1"});
    let made = json!({"metadata": {"name": "a", "ownerReferences": [owner]}});
    let mut alone = upstream(0, &[]);
    alone.workloads = Read::Known(vec![made]);
    let said = "(sdn/tf-operator) is scaled to 0, and no operator looks after the 1 workload";
    says(&alone, "K005", Outcome::Fail, said);
    let mut before = upstream(1, &[]);
    before.workloads = alone.workloads.clone();
    says(&before, "K005", Outcome::Warn, "tf-operator runs (sdn/tf-operator)");
    says(&upstream(0, &["opensdn-operator"]), "K005", Outcome::Ok, "1 object of OpenSDN");
    let mut judged = upstream(1, &["opensdn-webhook"]);
    says(&judged, "K005", Outcome::Warn, "the policy tf-operator-limits is not in force");
    assert!(verdict(&judged, "K005").fix.unwrap().contains("policy manifest tf-operator-limits"));
    judged.policies = forbidden();
    says(&judged, "K005", Outcome::Uncertain, "tf-operator-limits is in force is not known");
    let policy = |module: &str| json!({"spec": {"module": {"builtIn": module}}});
    judged.policies = Read::Known(vec![policy("even-quorum")]);
    says(&judged, "K005", Outcome::Warn, "is not in force");
    judged.policies = Read::Known(vec![policy("tf-operator-limits")]);
    says(&judged, "K005", Outcome::Warn, "on Kubernetes v1.34.1: it asks for policy/v1beta1");
    judged.version = json!({"gitVersion": "v1.24.9", "minor": "24"});
    says(&judged, "K005", Outcome::Ok, "1 object of OpenSDN");
    says(&upstream(1, &[]), "K005", Outcome::Warn, "no operator of ours beside it");
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
fn a_privileged_pod_that_was_tried_says_more_than_labels() {
    let tried = |labels: Value, came: LetIn| {
        but(|world| {
            known(&mut world.namespaces)[0]["metadata"]["labels"] = labels;
            world.pods = Read::Known(vec![]);
            world.let_in = [("tf".to_owned(), came)].into();
        })
    };
    let level = |level: &str| json!({"pod-security.kubernetes.io/enforce": level});
    let no = |why: &str| LetIn::No(why.to_owned());
    let not_tried = || LetIn::Unknown("pods is forbidden: bob cannot create".to_owned());
    for labels in [json!({}), level("privileged")] {
        says(
            &tried(labels.clone(), LetIn::Yes),
            "K006",
            Outcome::Ok,
            "privileged pods may run in tf",
        );
        let refused = tried(labels, no("admission webhook a.b.c denied the request: hostPath"));
        says(
            &refused,
            "K006",
            Outcome::Fail,
            "in namespace tf the API server refuses a privileged pod: ",
        );
        let fix = verdict(&refused, "K006").fix.unwrap();
        assert!(fix.starts_with("kubectl get validatingwebhookconfigurations"), "{fix}");
    }
    // What the API server enforces where there is no label.
    let by_default =
        tried(json!({}), no("violates PodSecurity \"baseline:latest\": host namespaces"));
    says(&by_default, "K006", Outcome::Fail, "violates PodSecurity");
    assert!(verdict(&by_default, "K006").fix.unwrap().contains("enforce=privileged"));
    let constraints =
        tried(json!({}), no("unable to validate against any security context constraint"));
    assert!(verdict(&constraints, "K006").fix.unwrap().contains("platform=openshift"));
    // Where none could be tried labels say it, or nothing.
    says(
        &tried(json!({}), not_tried()),
        "K006",
        Outcome::Uncertain,
        "none was tried: pods is forbidden",
    );
    let by_label = "in tf, by their labels or what runs there; none was tried: pods is forbidden";
    says(&tried(level("privileged"), not_tried()), "K006", Outcome::Ok, by_label);
    says(&tried(level("baseline"), not_tried()), "K006", Outcome::Fail, "enforces Pod Security");
    says(
        &tried(level("baseline"), LetIn::Yes),
        "K006",
        Outcome::Uncertain,
        "whether you are exempt",
    );
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
    let rbac = webhook("Fail", "rbac.authorization.k8s.io");
    says(&behind(rbac, slice(false)), "K007", Outcome::Warn, "other (ns/svc)");
    let mut connects = webhook("Fail", "*");
    connects["webhooks"][0]["rules"][0]["operations"] = json!(["CONNECT"]);
    says(&behind(connects, slice(false)), "K007", Outcome::Ok, "");
    // What it chooses by is not compared.
    for (field, value) in [
        ("namespaceSelector", json!({"matchLabels": {"team": "a"}})),
        ("objectSelector", json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]})),
        ("matchConditions", json!([{"name": "a", "expression": "false"}])),
    ] {
        let mut narrow = webhook("Fail", "*");
        narrow["webhooks"][0][field] = value;
        let world = behind(narrow, slice(false));
        says(&world, "K007", Outcome::Uncertain, "which chooses by labels or conditions");
    }
    let mut wide = webhook("Fail", "*");
    wide["webhooks"][0]["namespaceSelector"] = json!({});
    says(&behind(wide, slice(false)), "K007", Outcome::Warn, "other (ns/svc)");
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
fn a_quota_that_is_not_about_pods_of_components_takes_no_room() {
    let scoped = |spec: Value| {
        but(|world| {
            let used = json!({"hard": {"pods": "0"}, "used": {"pods": "0"}});
            let metadata = json!({"name": "q", "namespace": "tf"});
            world.quotas =
                Read::Known(vec![json!({"metadata": metadata, "spec": spec, "status": used})]);
        })
    };
    let classes = |operator: &str, values: &[&str]| {
        let one = json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
        json!({"scopeSelector": {"matchExpressions": [one]}})
    };
    for spec in [
        json!({"scopes": ["Terminating"]}),
        json!({"scopes": ["CrossNamespacePodAffinity"]}),
        classes("In", &["batch"]),
        classes("NotIn", &["system-node-critical", "system-cluster-critical"]),
    ] {
        says(&scoped(spec), "K008", Outcome::Ok, "room");
    }
    for spec in [
        json!({"scopes": ["NotTerminating"]}),
        classes("In", &["batch", "system-node-critical"]),
        classes("NotIn", &["batch"]),
        json!({}),
    ] {
        says(&scoped(spec), "K008", Outcome::Warn, "tf/q has no pods left");
    }
}

#[test]
fn room_for_our_own_programs() {
    let quota = |place: &str, hard: Value, used: Value| {
        but(|world| {
            world.deployments.clear();
            world.quotas = Read::Known(vec![
                json!({"metadata": {"name": "q", "namespace": place}, "status": {"hard": hard, "used": used}}),
            ])
        })
    };
    let of_webhook = |most: &str, used: &str| {
        quota("opensdn-system", json!({"pods": most}), json!({"pods": used}))
    };
    let said = "opensdn-system/q has 1 pods left, and 5 more are to run there";
    says(&of_webhook("1", "0"), "K008", Outcome::Warn, said);
    says(&of_webhook("6", "1"), "K008", Outcome::Ok, "room");
    says(&of_webhook("5", "5"), "K008", Outcome::Warn, "has no pods left");
    let operator = quota("opensdn-operator", json!({"count/pods": "1"}), json!({}));
    says(&operator, "K008", Outcome::Warn, "opensdn-operator/q has 1 count/pods left");
    let stated =
        quota("opensdn-system", json!({"requests.cpu": "64", "limits.memory": "1Ti"}), json!({}));
    says(&stated, "K008", Outcome::Ok, "room");
    let not_stated = quota("opensdn-system", json!({"limits.cpu": "64"}), json!({}));
    says(&not_stated, "K008", Outcome::Warn, "refuses pods without limits.cpu");

    let mut installed = of_webhook("5", "5");
    let running = json!({"spec": {"replicas": 3}, "status": {"replicas": 3}});
    installed.deployments.insert("opensdn-webhook".to_owned(), Read::Known(running));
    installed.places.webhook = "elsewhere".to_owned();
    says(&installed, "K008", Outcome::Ok, "elsewhere");
}
