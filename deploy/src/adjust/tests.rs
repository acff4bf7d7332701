//! What values do to the objects, and that they do nothing else.

use super::*;
use crate::values::Platform;

fn objects(change: impl FnOnce(&mut Values)) -> Vec<Value> {
    let mut values = Values::default();
    change(&mut values);
    assert_eq!(values.problems(), []);
    let steps = render(&values).unwrap();
    assert!(steps.is_sorted_by_key(|step| step.phase));
    steps.into_iter().flat_map(|step| step.objects).collect()
}

fn one<'a>(objects: &'a [Value], of_kind: &str, name: &str) -> &'a Value {
    let is = |object: &&Value| kind(object) == of_kind && text(object, "/metadata/name") == name;
    objects.iter().find(is).unwrap()
}

fn key(object: &Value) -> String {
    let parts = ["/kind", "/metadata/namespace", "/metadata/name"].map(|part| text(object, part));
    parts.join("/")
}

#[test]
fn default_values_render_the_files_and_nothing_else() {
    let mut written: Vec<Value> = Vec::new();
    for object in [render::webhook().unwrap(), render::operator().unwrap()]
        .concat()
        .into_iter()
        .flat_map(|step| step.objects)
    {
        if !written.contains(&object) {
            written.push(object);
        }
    }
    let mut rendered = objects(|_| {});
    written.sort_by_key(key);
    rendered.sort_by_key(key);
    assert_eq!(rendered, written);
}

#[test]
fn another_namespace_is_followed_everywhere() {
    let objects = objects(|values| {
        values.namespace = "my-webhook".to_owned();
        values.operator.namespace = "my-operator".to_owned();
        values.operator.watched_namespaces = vec!["one".to_owned(), "two".to_owned()];
    });
    let others = objects.iter().filter(|object| kind(object) != "CustomResourceDefinition");
    let all: String = others.map(ToString::to_string).collect();
    for old in [
        "opensdn-system",
        "\"namespace\":\"opensdn-operator\"",
        "serviceaccount:opensdn-operator",
        "\"tf\"",
    ] {
        assert!(!all.contains(old), "{old} is left");
    }
    assert!(all.contains("system:serviceaccount:my-webhook:opensdn-webhook'"));
    for namespace in ["one", "two"] {
        one(&objects, "Namespace", namespace);
        let role = |object: &&Value| {
            kind(object) == "Role" && text(object, "/metadata/namespace") == namespace
        };
        assert!(objects.iter().any(|object| role(&object)), "{namespace}");
    }
    let operator = one(&objects, "Deployment", operator::NAME).to_string();
    assert!(operator.contains("\"one,two\""), "{operator}");
    let binding = one(&objects, "ClusterRoleBinding", "opensdn-kube-manager");
    assert_eq!(binding["subjects"].as_array().map(Vec::len), Some(2));
    assert_eq!(binding["subjects"][1]["namespace"], "two");
}

#[test]
fn images_come_from_one_registry_by_tag_or_digest() {
    let digest = format!("sha256:{}", "0".repeat(64));
    let objects = objects(|values| {
        values.registry = Some("registry.local:5000/sdn".to_owned());
        values.operator.image.digest = Some(digest.clone());
        values.webhook.image.tag = Some("0.2.0".to_owned());
        values.image_pull_secrets = vec!["pull".to_owned()];
    });
    for (name, image) in [
        (webhook::NAME, "registry.local:5000/sdn/opensdn-webhook:0.2.0".to_owned()),
        (configuration::NAME, "registry.local:5000/sdn/opensdn-webhook:0.2.0".to_owned()),
        (operator::NAME, format!("registry.local:5000/sdn/opensdn-operator@{digest}")),
    ] {
        let pod = &one(&objects, "Deployment", name)["spec"]["template"]["spec"];
        assert_eq!(pod["containers"][0]["image"], json!(image));
        assert_eq!(pod["imagePullSecrets"], json!([{"name": "pull"}]));
    }
}

#[test]
fn profiles_say_how_many_replicas_there_are_unless_a_value_does() {
    let replicas = |objects: &[Value]| {
        [webhook::NAME, configuration::NAME, operator::NAME]
            .map(|name| one(objects, "Deployment", name)["spec"]["replicas"].as_u64().unwrap())
    };
    let single = objects(|values| {
        values.profile = Profile::SingleNode;
        values.webhook.replicas = Some(2);
    });
    assert_eq!(replicas(&single), [2, 1, 1]);
    let ha = objects(|values| values.profile = Profile::Ha);
    assert_eq!(replicas(&ha), [3, 2, 2]);
    let pod = &one(&ha, "Deployment", webhook::NAME)["spec"]["template"]["spec"];
    let spread = &pod["topologySpreadConstraints"][0];
    assert_eq!(
        (&spread["whenUnsatisfiable"], &spread["minDomains"]),
        (&"DoNotSchedule".into(), &3.into())
    );
}

#[test]
fn the_port_of_the_api_server_is_let_out_and_dns_still_is() {
    let objects = objects(|values| values.api_server_ports = vec![16443]);
    for name in [webhook::NAME, configuration::NAME] {
        let ports = &one(&objects, "NetworkPolicy", name)["spec"]["egress"][0]["ports"];
        let ports: Vec<u64> =
            ports.as_array().unwrap().iter().map(|port| port["port"].as_u64().unwrap()).collect();
        assert_eq!(ports, [16443, 53, 53, 5353, 5353]);
    }
}

#[test]
fn policies_are_switched_by_values() {
    let names = |objects: &[Value]| -> Vec<String> {
        let policies = objects.iter().filter(|object| kind(object) == "AdmissionPolicy");
        policies.map(|object| text(object, "/metadata/name").to_owned()).collect()
    };
    let none = objects(|values| values.policies.enabled = false);
    assert_eq!(names(&none), [""; 0]);
    let more = objects(|values| {
        values.policies.tf_operator = true;
        values.policies.secret_keys = true;
        values.policies.without = vec!["even-quorum".to_owned()];
        values.policies.mode = Some(Mode::Warn);
    });
    let found = names(&more);
    assert!(
        found.contains(&"tf-operator-limits".to_owned())
            && found.contains(&"missing-secret-key".to_owned())
    );
    assert!(!found.contains(&"even-quorum".to_owned()));
    assert_eq!(found.iter().filter(|name| *name == "unsafe-parameter").count(), 1);
    let parameter = one(&more, "AdmissionPolicy", "unsafe-parameter");
    assert_eq!(parameter["spec"]["mode"], "warn");
}

#[test]
fn without_the_operator_nothing_of_it_is_rendered() {
    let objects = objects(|values| values.operator.enabled = false);
    assert!(objects.iter().all(|object| !text(object, "/metadata/name").contains("operator")));
    assert!(objects.iter().any(|object| kind(object) == "AdmissionPolicy"));
}

#[test]
fn the_log_level_is_a_flag_that_our_programs_take() {
    let objects = objects(|values| values.webhook.log_level = Some(crate::values::LogLevel::Debug));
    let container =
        &one(&objects, "Deployment", webhook::NAME)["spec"]["template"]["spec"]["containers"][0];
    let arguments = container["args"].as_array().unwrap();
    assert_eq!(arguments.last().unwrap(), "--log=debug,kube=warn");
    let operator =
        &one(&objects, "Deployment", operator::NAME)["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(operator["args"].as_array().map(Vec::len), Some(1));
}

#[test]
fn openshift_lets_components_of_each_watched_namespace_be_privileged_and_no_others() {
    let objects = objects(|values| {
        values.platform = Platform::Openshift;
        values.operator.watched_namespaces = vec!["one".to_owned(), "two".to_owned()];
    });
    let bindings = objects.iter().filter(|object| {
        kind(object) == "RoleBinding" && text(object, "/metadata/name") == "opensdn-components-scc"
    });
    let subjects: Vec<(&str, &str)> = bindings
        .map(|object| (text(object, "/metadata/namespace"), text(object, "/subjects/0/name")))
        .collect();
    let expected = [("one", "system:serviceaccounts:one"), ("two", "system:serviceaccounts:two")];
    assert_eq!(subjects, expected);
    // A cluster-wide binding would not know namespaces.
    let used = objects.iter().filter(|object| kind(object) == "ClusterRoleBinding");
    assert!(used.into_iter().all(|object| !object.to_string().contains("scc")));
}

#[test]
fn an_openstack_has_no_kube_manager_and_everything_else() {
    let of = |platform| objects(|values| values.platform = platform);
    let (kubernetes, openstack) = (of(Platform::Kubernetes), of(Platform::Openstack));
    let is_of_kube_manager =
        |object: &&Value| text(object, "/metadata/name") == "opensdn-kube-manager";
    assert_eq!(kubernetes.iter().filter(is_of_kube_manager).count(), 2);
    let rest: Vec<&Value> =
        kubernetes.iter().filter(|object| !is_of_kube_manager(object)).collect();
    assert_eq!(openstack.iter().collect::<Vec<_>>(), rest);
}
