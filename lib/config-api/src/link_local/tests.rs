//! Rows as others have written them.

use super::*;

fn row(value: Value) -> Row {
    Row::from(value)
}

fn addresses(all: &[&str]) -> BTreeSet<Ipv4Addr> {
    all.iter().map(|one| one.parse().unwrap()).collect()
}

#[test]
fn a_row_of_ours_is_what_the_server_stores() {
    let target = Target::new(["192.168.1.100".parse().unwrap()], 8082);
    let ours = Row::new("Contrail Config", Key::new([10, 10, 10, 1].into(), 8082), &target);
    let stored = json!({
        "linklocal_service_name": "Contrail Config",
        "linklocal_service_ip": "10.10.10.1",
        "linklocal_service_port": 8082,
        "ip_fabric_service_ip": ["192.168.1.100"],
        "ip_fabric_service_port": 8082,
    });
    assert_eq!(ours.json(), &stored);
    assert_eq!(
        (ours.name(), ours.key().to_string()),
        ("Contrail Config", "10.10.10.1:8082".into())
    );
    assert_eq!(ours.target(), target);
    assert_eq!(target.to_string(), "192.168.1.100:8082");
}

#[test]
fn ports_are_what_an_agent_makes_of_them() {
    let cases = [
        (json!(8082), 8082),
        (json!("8082"), 8082),
        (json!(80.7), 80),
        (json!(70000), 4464),
        (json!(-5), 65531),
        (json!(true), 0),
        (json!("abc"), 0),
        (json!(""), 0),
        (json!(null), 0),
    ];
    for (written, seen) in cases {
        let row =
            row(json!({"linklocal_service_port": written, "ip_fabric_service_port": written}));
        assert_eq!((row.key().port, row.target().port), (seen, seen), "{written}");
    }
    assert_eq!(row(json!({"linklocal_service_port": 70000})).service_port(), Some(70000));
}

#[test]
fn an_address_that_is_none_is_zero_and_ipv6_stays() {
    let ip = |value: Value| row(json!({"linklocal_service_ip": value})).key().ip.to_string();
    assert_eq!(ip(json!("not-an-ip")), "0.0.0.0");
    assert_eq!(ip(json!("010.1.1.1")), "0.0.0.0");
    assert_eq!(ip(json!(0)), "0.0.0.0");
    assert_eq!(ip(json!("fd00::1")), "fd00::1");
    assert_eq!(row(json!(null)).key().to_string(), "0.0.0.0:0");
    assert_eq!(row(json!({})).key(), row(json!(null)).key());
}

#[test]
fn a_target_is_addresses_or_a_name_and_empty_texts_are_neither() {
    let hosts = |ips: Value, name: Value| {
        row(json!({"ip_fabric_service_ip": ips, "ip_fabric_DNS_service_name": name})).target().hosts
    };
    let name = || "api.example".to_owned();
    assert_eq!(hosts(json!([""]), json!("api.example")), Hosts::Name(name()));
    assert_eq!(hosts(json!(null), json!("api.example")), Hosts::Name(name()));
    assert_eq!(hosts(json!(["10.0.0.1"]), json!("")), Hosts::Addresses(addresses(&["10.0.0.1"])));
    assert_eq!(hosts(json!(["x", "fd00::1"]), json!(null)), Hosts::Neither);
    let both = hosts(json!(["10.0.0.2", "10.0.0.1"]), json!("api.example"));
    let all = addresses(&["10.0.0.1", "10.0.0.2"]);
    assert_eq!(both, Hosts::Both { addresses: all.clone(), name: name() });
    let both = Target { hosts: both, port: 1 };
    assert!(both.is_same(&Target::new(all, 1)), "the name has no effect");
    assert!(!both.is_same(&Target::new(addresses(&["10.0.0.1"]), 1)));
    assert!(!both.is_same(&Target { hosts: Hosts::Name(name()), port: 1 }));
}

#[test]
fn rows_are_equal_by_what_they_mean() {
    let plain = row(json!({"linklocal_service_name": "a", "linklocal_service_port": 1}));
    let written = json!({
        "linklocal_service_name": "a", "linklocal_service_port": 1,
        "linklocal_service_ip": null, "ip_fabric_service_ip": [""], "ip_fabric_DNS_service_name": "",
    });
    assert_eq!(plain, row(written));
    assert_ne!(plain, row(json!({"linklocal_service_name": "A", "linklocal_service_port": 1})));
    assert_ne!(plain, row(json!({"linklocal_service_name": "a"})));
    assert_eq!(row(json!(null)), row(json!({"linklocal_service_name": null})));
    assert_ne!(plain, row(json!(null)));
}

#[test]
fn the_property_is_read_in_every_form_that_the_server_stores() {
    let none = [
        None,
        Some(json!(null)),
        Some(json!({})),
        Some(json!({"linklocal_service_entry": null})),
        Some(json!({"linklocal_service_entry": []})),
        Some(json!({"linklocal_service_entry": 0})),
        Some(json!([])),
        Some(json!("")),
        Some(json!(0)),
        Some(json!(false)),
    ];
    for property in none {
        assert_eq!(Rows::read(property.as_ref()).unwrap().rows().len(), 0, "{property:?}");
    }
    let two = json!([{"linklocal_service_name": "b"}, null]);
    for property in [two.clone(), json!({"linklocal_service_entry": two})] {
        let rows = Rows::read(Some(&property)).unwrap();
        assert_eq!(rows.rows()[0].name(), "b");
        assert_eq!(rows.json(), json!({"linklocal_service_entry": two}));
    }
    let wrong = Rows::read(Some(&json!("rows"))).unwrap_err().to_string();
    assert!(wrong.contains("\"rows\""), "{wrong}");
}

#[test]
fn a_row_is_written_byte_for_byte_as_it_was_read_and_in_its_place() {
    let property = json!({"linklocal_service_entry": [
        {"linklocal_service_port": "80", "x-unknown": {"a": [1.50, null]}, "linklocal_service_name": true},
        null,
        {"linklocal_service_port": 80.0},
        {"linklocal_service_port": 80.0},
    ], "y": 1});
    let rows = Rows::read(Some(&property)).unwrap();
    assert_eq!(rows.json().to_string(), property.to_string());
    let fewer = rows.with(rows.rows()[1..3].to_vec());
    assert_eq!(fewer.json()["y"], 1);
    assert_eq!(fewer.json()["linklocal_service_entry"].as_array().unwrap().len(), 2);
}

#[test]
fn a_target_on_a_host_is_its_address_or_its_name_as_the_provisioner_has_it() {
    let key = Key::new([169, 254, 169, 254].into(), 80);
    let by_address = Row::new("metadata", key, &Target::on_host("10.0.0.9", 8775));
    assert_eq!(by_address, Row::new("metadata", key, &Target::new([[10, 0, 0, 9].into()], 8775)));
    for name in ["nova.example", "10.0.0", "fd00::1"] {
        let row = Row::new("metadata", key, &Target::on_host(name, 8775));
        assert_eq!(row.json()["ip_fabric_DNS_service_name"], name);
        assert_eq!(row.json()["ip_fabric_service_ip"], json!([]));
        assert_eq!(row.target(), Target::on_host(name, 8775));
        assert_eq!(row.target().to_string(), format!("{name}:8775"));
    }
    assert_eq!(Target::on_host("", 8775).hosts, Hosts::Neither);
}
