//! Tags, passwords and certificates, each as a plan gets it.

use opensdn_crds::nested_cluster::NestedClusterSpec;
use opensdn_pki::{Authority, CaProfile, LeafProfile};
use serde_json::json;

use super::*;
use crate::nested::cluster::NestedFacts;
use crate::nested::flags::ChoiceFlags;
use crate::nested::world;

fn input(services: Value) -> Input {
    #[derive(clap::Parser)]
    struct Only {
        #[command(flatten)]
        choices: ChoiceFlags,
    }
    let only = <Only as clap::Parser>::parse_from(["x"]);
    let spec: NestedClusterSpec = serde_json::from_value(json!({
        "clusterName": "a", "connectivity": "LinkLocal",
        "clusterNetwork": {"project": "admin", "name": "vms"}, "configApi": {"urls": []},
        "services": services, "serviceAddresses": ["10.10.10.0/24"],
    }))
    .unwrap();
    let unknown = || "not asked".to_owned();
    let facts = NestedFacts {
        id: "id".to_owned(),
        nodes: Fact::Unknown(unknown()),
        api_service: Fact::Unknown(unknown()),
    };
    world::input(&spec, &only.choices, facts)
}

fn with_keystone() -> Input {
    input(json!({"config": {"addresses": ["192.168.1.100"]},
        "keystone": {"addresses": ["192.168.1.200"]}}))
}

#[test]
fn the_driver_is_that_of_the_release_in_the_tag() {
    for tag in ["R24.1", "24.1", "25.1-rc2", "R25.3.l1", "v24.2"] {
        assert_eq!(driver_of(tag), Fact::Known(Driver::Cql), "{tag}");
    }
    for tag in ["R2011", "2011.L5.406", "R21.4", "21.4.L2", "R5.0", "5.1-el7", "R23.2"] {
        assert_eq!(driver_of(tag), Fact::Known(Driver::Thrift), "{tag}");
    }
    for tag in ["latest", "master", "nightly", "", "7", "dev-x"] {
        assert!(matches!(driver_of(tag), Fact::Unknown(_)), "{tag}");
    }
}

fn taken(
    mut input: Input,
    keystone: Fact<Option<InFile>>,
    rabbitmq: Fact<Option<InFile>>,
) -> Input {
    let all = [
        Looked { variable: KEYSTONE, state: keystone },
        Looked { variable: RABBITMQ, state: rabbitmq },
    ];
    take_passwords(&mut input, all);
    input
}

#[test]
fn a_password_that_kube_manager_cannot_read_is_found_and_never_shown() {
    let known = |variable: &str, password: &str| Fact::Known(Some(in_file(variable, password)));
    let bad = taken(with_keystone(), known(KEYSTONE, "hunter\"2"), known(RABBITMQ, "50%"));
    assert_eq!(bad.choices.percent_passwords, Some(Fact::Known(vec![RABBITMQ.to_owned()])));
    assert_eq!(bad.problems.len(), 1);
    assert_eq!(bad.problems[0].code, Code::PasswordUnusable);
    assert!(!format!("{bad:?}").contains("hunter"));
    let good = taken(with_keystone(), known(KEYSTONE, "hunter2"), known(RABBITMQ, "a\"b\\c"));
    assert_eq!(good.choices.percent_passwords, Some(Fact::Known(Vec::new())));
    assert_eq!(good.problems, [], "RabbitMQ's is in no JSON");
}

#[test]
fn a_password_that_was_not_looked_at_is_unknown_where_one_will_be_read() {
    let none = || Fact::Known(None);
    let unknown = taken(with_keystone(), none(), none()).choices.percent_passwords;
    assert!(matches!(unknown, Some(Fact::Unknown(why)) if why.contains("--keystone-secret")));
    let without = input(json!({"config": {"addresses": ["192.168.1.100"]}}));
    assert_eq!(taken(without, none(), none()).choices.percent_passwords, None);
    let absent = Fact::Unknown("the Secret kube-system/k: it is not there yet".to_owned());
    let unknown = taken(with_keystone(), absent, none()).choices.percent_passwords;
    assert!(matches!(unknown, Some(Fact::Unknown(why)) if why.contains("not there yet")));
}

#[test]
fn a_password_is_read_under_its_key_alone() {
    let secret = json!({"data": {"password": "aHVudGVyMg==", "binary": "/w=="}});
    assert_eq!(password(&secret, "password").as_deref(), Some("hunter2"));
    assert_eq!(password(&secret, "binary"), None);
    assert_eq!(password(&secret, "other"), None);
}

#[tokio::test]
async fn a_service_that_is_not_reached_has_unknown_names() {
    let names = names_of(&[Ipv4Addr::LOCALHOST], 1).await;
    assert!(matches!(&names, Fact::Unknown(why) if why.contains("127.0.0.1:1")), "{names:?}");
}

#[test]
fn names_and_addresses_of_a_certificate_are_read() {
    let now = time::OffsetDateTime::now_utc();
    let authority = Authority::create(&CaProfile::new("ca"), now).unwrap();
    let names = ["api.example.net", "10.10.10.4"].map(str::to_owned);
    let leaf = authority.issue(&LeafProfile::server("api", names.to_vec()), now).unwrap();
    let (_, pem) = x509_parser::pem::parse_x509_pem(leaf.certificate().as_bytes()).unwrap();
    assert_eq!(names_in(&pem.contents), Some(names.into()));
    assert_eq!(names_in(b"no certificate"), None);
}
