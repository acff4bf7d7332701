//! From settings to inputs, and to what is wrong with them.

use opensdn_crds::pod::PodConfiguration;
use serde_json::{Value, json};

use super::images::cni_image;
use super::*;
use crate::cluster::{ApiServer as Known, Cluster};
use crate::peers::Peers;
use crate::release::Release;

/// Of a cluster with one API server.
fn of(settings: &Value, common: &Value) -> Nested {
    let cluster =
        Cluster { api_servers: vec![Known::of("192.0.2.1").unwrap()], ..Cluster::default() };
    within(&cluster, settings, common)
}

fn within(cluster: &Cluster, settings: &Value, common: &Value) -> Nested {
    let mut all = json!({"containers": [{"name": "kubemanager", "image": "r.example/opensdn-kubernetes-kube-manager:R25.1"}],
        "nested": {"clusterName": "a", "clusterNetwork": {"project": "p", "name": "n"},
            "underlay": {"config": {"addresses": ["10.0.0.1"]}, "vrouter": {"addresses": ["10.0.0.2"]}}}});
    all.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    let common: PodConfiguration = serde_json::from_value(common.clone()).unwrap();
    let peers = Peers::default();
    let (release, profiles) = (Release::default(), &[][..]);
    let given = Given {
        name: "n",
        settings: &all,
        common: &common,
        peers: &peers,
        cluster,
        release,
        profiles,
    };
    nested(&given).unwrap().unwrap()
}

fn wrong(nested: &Nested) -> Vec<&str> {
    nested.wrong.iter().map(|(field, _)| *field).collect()
}

#[test]
fn the_image_of_the_cni_is_that_of_kube_managers_release_or_has_to_be_given() {
    for (kube_manager, cni) in [
        (
            "r.example/opensdn-kubernetes-kube-manager:R25.1",
            "r.example/opensdn-kubernetes-cni-init:R25.1",
        ),
        (
            "r.example:5000/a/contrail-kubernetes-kube-manager:R24.1",
            "r.example:5000/a/contrail-kubernetes-cni-init:R24.1",
        ),
        ("kubernetes-kube-manager:1", "kubernetes-cni-init:1"),
    ] {
        assert_eq!(cni_image(kube_manager).as_deref(), Some(cni));
    }
    for other in [
        "r.example/kube-manager:1",
        "r/opensdn-kubernetes-kube-manager",
        "r:1/kubernetes-kube-manager",
        "r/kubernetes-kube-manager:1@sha256:0",
        "r/kubernetes-kube-manager@sha256:0",
    ] {
        assert_eq!(cni_image(other), None, "{other}");
    }
    let own = json!({"containers": [{"name": "kubemanager", "image": "r.example/mine:1"}]});
    assert_eq!(wrong(&of(&own, &json!({}))), ["images.cni"]);
    assert_eq!(wrong(&of(&json!({"containers": []}), &json!({}))), ["images"]);
}

#[test]
fn kube_manager_knows_one_api_server() {
    assert_eq!(of(&json!({}), &json!({})).inputs.api_server.host, "192.0.2.1");
    let own = of(&json!({"kubernetesAPIServer": "vip.example:8443"}), &json!({})).inputs.api_server;
    assert_eq!((own.host.as_str(), own.port), ("vip.example", 8443));
    let several = ["192.0.2.1", "192.0.2.2"].map(|host| Known::of(host).unwrap());
    let cluster = Cluster { api_servers: several.into(), ..Cluster::default() };
    assert_eq!(wrong(&within(&cluster, &json!({}), &json!({}))), ["api_server"]);
    let cluster = Cluster { endpoint: Known::of("vip.example:443"), ..cluster };
    assert_eq!(within(&cluster, &json!({}), &json!({})).inputs.api_server.host, "vip.example");
    let cluster = Cluster { unreadable: Some("it is no YAML".to_owned()), ..cluster };
    assert_eq!(wrong(&within(&cluster, &json!({}), &json!({}))), ["subnets"]);
}

#[test]
fn what_has_no_meaning_in_a_nested_cluster_is_refused_and_not_passed_over() {
    let settings = json!({"cloudOrchestrator": "openshift", "kubernetesTokenFile": "/etc/a/token",
        "publicFIPPool": "{'domain': 'd', 'project': 'p'}"});
    assert_eq!(wrong(&of(&settings, &json!({}))), ["orchestrator", "token", "floating_ip_pool"]);
    let fine = of(&json!({"cloudOrchestrator": "kubernetes", "publicFIPPool": "{}"}), &json!({}));
    assert!(wrong(&fine).is_empty() && fine.inputs.floating_ip_pool.is_none());
    let pool =
        json!({"publicFIPPool": "{'domain': 'd', \"project\" : 'p', 'network': 'n', 'name': 'f'}"});
    assert_eq!(of(&pool, &json!({})).inputs.floating_ip_pool.unwrap().project, "p");
}

#[test]
fn a_password_comes_from_a_secret_or_from_the_spec_and_there_is_no_default() {
    let auth = |more: Value| {
        let mut auth =
            json!({"authMode": "keystone", "keystoneAuthParameters": {"address": "10.0.0.1"}});
        auth.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        of(&json!({}), &json!({"authParameters": auth}))
    };
    assert_eq!(wrong(&auth(json!({}))), ["keystone.password"]);
    let given = json!({"keystoneAuthParameters": {"adminPassword": "p", "userDomainName": "d"}});
    let of_spec = auth(given);
    assert_eq!(
        (wrong(&of_spec), of_spec.keystone_password.clone()),
        (vec!["keystone.domain"], Some("p".to_owned()))
    );
    let both = json!({"keystoneSecretName": "s", "keystoneAuthParameters": {"adminPassword": "p"}});
    let of_secret = auth(both);
    assert_eq!((wrong(&of_secret).len(), of_secret.keystone_password.clone()), (0, None));
    assert_eq!(of_secret.inputs.keystone.unwrap().password.secret, "s");
    assert!(
        of(&json!({}), &json!({"authParameters": {"keystoneSecretName": "s"}}))
            .inputs
            .keystone
            .is_none()
    );
}

#[test]
fn each_field_that_is_refused_is_named_as_a_user_writes_it() {
    for (field, place) in [
        (
            "nested.underlay.config.addresses",
            "spec.serviceConfiguration.nested.underlay.config.addresses",
        ),
        ("nested.clusterName", "spec.serviceConfiguration.nested.clusterName"),
        ("subnets.pod", "spec.serviceConfiguration.podSubnet"),
        ("keystone.host", "spec.commonConfiguration.authParameters.keystoneAuthParameters.address"),
        ("node_selector[\"a\"]", "spec.commonConfiguration.nodeSelector[\"a\"]"),
    ] {
        assert_eq!(field::of_spec(field), place);
    }
}
