//! The cloud of the worked example, as a client discovers it.

use opensdn_testing::config_api::WorkedExample;
use serde_json::{Value, json};

use crate::asker::Asker;

async fn addresses(asker: &Asker, kind: &str, field: &str) -> Vec<String> {
    let list = asker.get(&format!("/{kind}s?detail=true&fields={field}")).await.json();
    let items = list[format!("{kind}s")].as_array().unwrap().clone();
    let of = |item: &Value| item[kind][field].as_str().unwrap().to_owned();
    items.iter().map(of).collect()
}

#[tokio::test]
async fn nodes_are_found_by_their_types() {
    let asker = Asker::new();
    WorkedExample::fill(&asker.fake).unwrap();
    let nodes = |last: &[u8]| -> Vec<String> {
        last.iter().map(|last| format!("192.168.1.{last}")).collect()
    };
    let expected = [
        ("config-node", "config_node_ip_address", nodes(&[100])),
        ("analytics-node", "analytics_node_ip_address", nodes(&[100, 101])),
        ("config-database-node", "config_database_node_ip_address", nodes(&[100, 101, 102])),
        ("virtual-router", "virtual_router_ip_address", nodes(&[201, 202, 203])),
    ];
    for (kind, field, nodes) in expected {
        assert_eq!(addresses(&asker, kind, field).await, nodes, "{kind}");
    }
}

#[tokio::test]
async fn each_vm_has_an_address_in_the_network_and_a_host_with_a_virtual_router() {
    let asker = Asker::new();
    let example = WorkedExample::fill(&asker.fake).unwrap();
    let path = format!("/virtual-network/{}", example.network);
    let network = asker.get(&path).await.json()["virtual-network"].clone();
    let subnet = &network["network_ipam_refs"][0]["attr"]["ipam_subnets"][0]["subnet"];
    assert_eq!(subnet, &json!({"ip_prefix": "10.0.0.0", "ip_prefix_len": 24}));
    assert_eq!(network.get("fabric_snat"), None);
    let query = format!("/instance-ips?detail=true&back_ref_id={}", example.network);
    let list = asker.get(&query).await.json();
    let found = list["instance-ips"].as_array().unwrap();
    assert_eq!(found.len(), example.vms.len());
    for (ip, address) in found.iter().zip(&example.vms) {
        let ip = &ip["instance-ip"];
        assert_eq!(ip["instance_ip_address"], *address);
        let interface = ip["virtual_machine_interface_refs"][0]["uuid"].as_str().unwrap();
        let path = format!("/virtual-machine-interface/{interface}");
        let interface = asker.get(&path).await.json()["virtual-machine-interface"].clone();
        let bindings = &interface["virtual_machine_interface_bindings"]["key_value_pair"];
        assert_eq!(bindings[0]["key"], "host_id");
        let host = bindings[0]["value"].as_str().unwrap();
        let router = ["default-global-system-config", host];
        assert!(asker.fake.read("virtual-router", &router).is_some(), "{host}");
    }
}

#[tokio::test]
async fn the_row_of_the_metadata_service_is_there() {
    let asker = Asker::new();
    WorkedExample::fill(&asker.fake).unwrap();
    let entries = asker.entries().await;
    assert_eq!(entries.as_array().unwrap().len(), 1);
    assert_eq!(entries[0]["linklocal_service_name"], "metadata");
    assert_eq!(entries[0]["linklocal_service_ip"], "169.254.169.254");
    assert_eq!(entries[0]["ip_fabric_service_port"], 8775);
}

#[tokio::test]
async fn the_ipam_of_service_chains_is_there_to_be_skipped() {
    let asker = Asker::new();
    let fq_name = ["default-domain", "default-project", "service-chain-flat-ipam"];
    let ipam = asker.fake.read("network-ipam", &fq_name).unwrap();
    let prefixes: Vec<&Value> = ipam["ipam_subnets"]["subnets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|subnet| &subnet["subnet"]["ip_prefix"])
        .collect();
    assert_eq!(prefixes, ["0.0.0.0", "::ffff"]);
}
