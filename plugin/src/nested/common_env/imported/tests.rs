//! What becomes of variables.

use super::*;

/// `kubernetes/sample_config_files/common.env.sample.nested_mode` of OpenSDN-io/tf-container-builder, without its comments.
const SAMPLE: &str = r#"
CONTRAIL_REGISTRY="docker.io/opencontrailnightly"
CONTRAIL_CONTAINER_TAG="latest"
CONTROLLER_NODES=10.10.10.1
CONFIG_NODES=10.10.10.1
RABBITMQ_NODE_PORT=5673
ANALYTICS_API_VIP=10.10.10.1
CONFIG_API_VIP=10.10.10.1
LOG_LEVEL=SYS_DEBUG
AUTH_MODE='keystone'
KEYSTONE_AUTH_HOST=10.10.10.1
KEYSTONE_AUTH_ADMIN_TENANT='admin'
KEYSTONE_AUTH_ADMIN_USER='admin'
KEYSTONE_AUTH_ADMIN_PASSWORD='c0ntrail123'
KEYSTONE_AUTH_ADMIN_PORT=35357
KEYSTONE_AUTH_URL_VERSION='/v3'
CLOUD_ORCHESTRATOR='kubernetes'
KUBERNETES_API_SERVER="10.84.31.67"
KUBERNETES_API_SECURE_PORT=6443
KUBERNETES_CLUSTER_NETWORK="{'domain': 'default-domain', 'project': 'admin', 'name': '__public__'}"
KUBEMANAGER_NESTED_MODE="1"
KUBERNESTES_NESTED_VROUTER_VIP="10.10.10.2"
KUBERNETES_CLUSTER_NAME="k8s"
KUBERNETES_POD_SUBNETS="10.32.0.0/12"
KUBERNETES_SERVICE_SUBNETS="10.96.0.0/12"
KUBERNETES_IP_FABRIC_SUBNETS="10.64.0.0/12"
KUBERNETES_IP_FABRIC_FORWARDING="false"
KUBERNETES_IP_FABRIC_SNAT="false"
KUBERNETES_PUBLIC_FIP_POOL="{}"
"#;

fn nodes(pairs: &[(&str, &str)]) -> BTreeMap<Ipv4Addr, Ipv4Addr> {
    let address = |text: &str| text.parse::<Ipv4Addr>().unwrap();
    pairs.iter().map(|(node, service)| (address(node), address(service))).collect()
}

fn of(text: &str, how: Connectivity) -> Result<Imported, Vec<String>> {
    import(&CommonEnv::parse(text), how, &nodes(&[("192.168.1.100", "10.10.10.1")]))
}

#[test]
fn the_sample_of_upstream_becomes_a_nested_cluster_with_link_local_services() {
    let found = of(SAMPLE, Connectivity::LinkLocal).unwrap();
    let spec = serde_json::to_value(&found.spec).unwrap();
    let expected = serde_json::json!({
        "clusterName": "k8s", "connectivity": "LinkLocal",
        "clusterNetwork": {"project": "admin", "name": "__public__"},
        "configApi": {"urls": ["http://192.168.1.100:8082"]},
        "services": {"config": {"addresses": ["192.168.1.100"]},
            "keystone": {"addresses": ["192.168.1.100"], "port": 35357}},
        "serviceAddresses": ["10.10.10.1", "10.10.10.2"]});
    assert_eq!(spec, expected);
    assert_eq!(
        found.plan.join(" "),
        "--vrouter-address 10.10.10.2 --tag latest --node-address 192.168.1.100=10.10.10.1"
    );
    let old = SAMPLE.replace("CONTAINER_TAG=\"latest\"", "CONTAINER_TAG=R2011.1\nVROUTER_MTU=1400");
    let old = of(&old, Connectivity::LinkLocal).unwrap();
    assert!(old.plan.join(" ").contains("--tag R2011.1 --profile thrift"), "{:?}", old.plan);
    assert!(old.manifest.join(" ").contains("--mtu 1400"), "{:?}", old.manifest);
    assert_eq!(
        found.manifest.join(" "),
        "--api-server 10.84.31.67:6443 --registry docker.io/opencontrailnightly --tag latest \
         --keystone-secret keystone"
    );
    assert!(found.needs_keystone);
    assert!(!format!("{found:?}").contains("c0ntrail123"), "{found:?}");
    for name in
        ["LOG_LEVEL", "CONFIG_API_VIP", "KEYSTONE_AUTH_ADMIN_PASSWORD", "KUBERNETES_IP_FABRIC_SNAT"]
    {
        assert!(found.notes.iter().any(|note| note.starts_with(&format!("{name}: "))), "{name}");
    }
}

#[test]
fn with_fabric_snat_addresses_are_those_of_the_fabric() {
    let text = SAMPLE.replace("10.10.10.1\n", "192.168.1.100\n")
        + "ANALYTICS_NODES=192.168.1.100,192.168.1.101\n\
        CONFIGDB_NODES='192.168.1.102'\nKUBERNETES_POD_SUBNETS=10.48.0.0/12\nCONFIG_API_SSL_ENABLE=True\n";
    let found = of(&text, Connectivity::FabricSnat).unwrap();
    let spec = serde_json::to_value(&found.spec).unwrap();
    assert_eq!(spec["serviceAddresses"], serde_json::json!(["10.10.10.2"]));
    assert_eq!(spec["configApi"]["urls"], serde_json::json!(["https://192.168.1.100:8082"]));
    let services = &spec["services"];
    assert_eq!(
        services["analytics"]["addresses"],
        serde_json::json!(["192.168.1.100", "192.168.1.101"])
    );
    // The message bus is where the database is, as upstream's script has it, and as is the default here.
    assert_eq!(services["rabbitmq"], serde_json::json!(null));
    let other_port = of(&text.replace("PORT=5673", "PORT=5672"), Connectivity::FabricSnat).unwrap();
    assert_eq!(
        serde_json::to_value(&other_port.spec.services.rabbitmq).unwrap(),
        serde_json::json!({"addresses": ["192.168.1.102"], "port": 5672})
    );
    assert_eq!(
        found.plan.join(" "),
        "--pod-subnets 10.48.0.0/12 --vrouter-address 10.10.10.2 --tag latest"
    );
    assert!(found.manifest.join(" ").contains("--tls config"), "{:?}", found.manifest);
    assert!(found.notes.iter().any(|note| note.starts_with("ANALYTICS_NODES: the old manifest")));
}

#[test]
fn all_that_is_missing_or_unreadable_is_said_at_once() {
    let errors = of("AUTH_MODE=keystone", Connectivity::FabricSnat).unwrap_err();
    let all = errors.join("\n");
    for said in [
        "CONFIG_NODES or CONTROLLER_NODES is not set",
        "KUBERNESTES_NESTED_VROUTER_VIP is not set",
        "KUBERNETES_CLUSTER_NETWORK is not set",
        "KEYSTONE_AUTH_HOST is not set",
    ] {
        assert!(all.contains(said), "{said}: {all}");
    }
    for (line, said) in [
        ("CONFIG_NODES=cfg1", "CONFIG_NODES has \"cfg1\", which is no address of IPv4"),
        ("CONFIG_NODES=$(hostname -i)", "CONFIG_NODES is computed by a shell"),
        ("CONFIG_NODES=10.10.10.9", "CONFIG_NODES has 10.10.10.9, a service address"),
        ("RABBITMQ_NODE_PORT=no", "RABBITMQ_NODE_PORT is \"no\", which is no port"),
        (
            "KUBERNETES_CLUSTER_NETWORK=vms",
            "KUBERNETES_CLUSTER_NETWORK is \"vms\", and not such as",
        ),
        ("KUBERNETES_POD_SUBNETS=$(x)", "KUBERNETES_POD_SUBNETS is computed by a shell"),
        ("KEYSTONE_AUTH_HOST=$(x)", "KEYSTONE_AUTH_HOST is computed by a shell"),
        ("KUBERNESTES_NESTED_VROUTER_VIP=$(x)", "KUBERNESTES_NESTED_VROUTER_VIP is computed"),
        ("KUBERNETES_CLUSTER_NETWORK=$(x)", "KUBERNETES_CLUSTER_NETWORK is computed"),
        ("KUBERNESTES_NESTED_VROUTER_VIP=x", "KUBERNESTES_NESTED_VROUTER_VIP has \"x\""),
    ] {
        let errors = of(&format!("{SAMPLE}\n{line}"), Connectivity::LinkLocal).unwrap_err();
        assert!(matches!(&*errors, [error] if error.contains(said)), "{line}: {errors:?}");
    }
}

#[test]
fn what_upstream_does_not_read_is_named_and_what_a_shell_would_do_too() {
    let text = format!(
        "{}\nKUBERNETES_NESTED_VROUTER_VIP=10.10.10.3\nsource x\nK8S_VERSION=1.15",
        SAMPLE.replace("KUBERNESTES_NESTED_VROUTER_VIP", "OTHER")
    );
    let found = of(&text, Connectivity::LinkLocal).unwrap();
    assert!(found.spec.service_addresses.contains(&"10.10.10.3".to_owned()));
    let notes = found.notes.join("\n");
    for said in
        ["read only KUBERNESTES_NESTED_VROUTER_VIP", "K8S_VERSION, ", "lines assign nothing"]
    {
        assert!(notes.contains(said), "{said}: {notes}");
    }
}

/// What a NestedCluster cannot say is said, whichever way it is lost.
#[test]
fn nothing_is_lost_without_a_note() {
    let base = "CONFIG_NODES=10.1.1.1\nKUBERNESTES_NESTED_VROUTER_VIP=10.10.10.2\n\
        KUBERNETES_CLUSTER_NETWORK=\"{'project': 'admin', 'name': 'vms'}\"\n";
    let notes = |more: &str| {
        of(&format!("{base}{more}"), Connectivity::FabricSnat).unwrap().notes.join("\n")
    };
    for (more, part) in [
        (
            "COLLECTOR_PORT=8186",
            "COLLECTOR_PORT: is left out, as it says nothing without ANALYTICS_NODES",
        ),
        ("ZOOKEEPER_PORT=2182", "ZOOKEEPER_PORT: is left out"),
        ("CONFIGDB_CQL_PORT=9141", "CONFIGDB_CQL_PORT: is left out"),
        (
            "CONTROLLER_NODES=10.7.7.7",
            "CONTROLLER_NODES: the Config API is at CONFIG_NODES, and the collectors",
        ),
        ("RABBITMQ_VHOST=/a", "RABBITMQ_VHOST: the old manifest hands it to no program"),
        ("OTHER=1", "no field has these, which are left out: OTHER"),
    ] {
        let said = notes(more);
        assert!(said.contains(part), "{more}: {said}");
        let name = more.split('=').next().unwrap();
        assert_eq!(
            said.matches(name).count(),
            1 + usize::from(name == "CONTROLLER_NODES"),
            "{said}"
        );
    }
    assert!(
        notes("")
            .contains("KUBERNETES_IP_FABRIC_FORWARDING: pods of the old cluster are in the fabric")
    );
    assert!(!notes("KUBERNETES_IP_FABRIC_FORWARDING=false").contains("FORWARDING"));
    assert!(!notes("CONTROLLER_NODES=10.1.1.1").contains("CONTROLLER_NODES"), "they are the same");
}

#[test]
fn tls_is_what_the_scripts_take_for_it() {
    let urls = |more: &str| {
        let text = format!(
            "CONFIG_NODES=10.1.1.1\nKUBERNESTES_NESTED_VROUTER_VIP=10.10.10.2\n\
             KUBERNETES_CLUSTER_NETWORK=\"{{'project': 'admin', 'name': 'vms'}}\"\n{more}"
        );
        of(&text, Connectivity::FabricSnat).unwrap().spec.config_api.urls
    };
    for on in ["CONFIG_API_SSL_ENABLE=yes", "CONFIG_API_SSL_ENABLE=Enabled", "SSL_ENABLE=True"] {
        assert_eq!(urls(on), ["https://10.1.1.1:8082"], "{on}");
    }
    for off in ["", "CONFIG_API_SSL_ENABLE=1", "SSL_ENABLE=True CONFIG_API_SSL_ENABLE=false"] {
        assert_eq!(urls(off), ["http://10.1.1.1:8082"], "{off}");
    }
}

#[test]
fn of_a_long_value_only_its_start_is_repeated() {
    let text = format!("CONFIG_NODES={}", "a".repeat(1_000_000));
    let errors = of(&text, Connectivity::FabricSnat).unwrap_err();
    assert!(errors.iter().all(|error| error.len() < 300), "{}", errors[0].len());
}
