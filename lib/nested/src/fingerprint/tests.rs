//! What changes it and what does not.

use serde_json::json;

use super::Fingerprint;
use crate::fixture::{applied, cloud_with, empty_cloud, row, snat_input};
use crate::live::{AaaMode, Fact, Live, NodeNetwork};

fn one() -> Live {
    cloud_with(vec![
        row("x", "10.9.9.1", 80, "192.168.7.7", 80),
        row("y", "10.9.9.2", 80, "192.168.7.7", 80),
    ])
}

#[test]
fn unrelated_changes_leave_it() {
    let known = Fingerprint::of(&one());
    let mut live = one();
    live.aaa_mode = Fact::Known(AaaMode::NoAuth);
    live.subnets = Fact::Unknown("broken".to_owned());
    live.network =
        Fact::Known(Some(NodeNetwork { fabric_snat: Some(false), ..Default::default() }));
    assert_eq!(Fingerprint::of(&live), known, "off and never set are the same");

    // The same rows as another client writes them, in another order.
    let x = json!({
        "linklocal_service_name": "x",
        "linklocal_service_ip": "10.9.9.1",
        "linklocal_service_port": "80",
        "ip_fabric_DNS_service_name": "",
        "ip_fabric_service_ip": ["192.168.7.7", ""],
        "ip_fabric_service_port": 80,
    });
    let rows = vec![row("y", "10.9.9.2", 80, "192.168.7.7", 80), x.into()];
    assert_eq!(Fingerprint::of(&cloud_with(rows)), known);
}

#[test]
fn each_part_of_what_is_planned_changes_it() {
    let base = one();
    let mut worlds = vec![base.clone()];
    worlds.push(cloud_with(vec![row("x", "10.9.9.1", 80, "192.168.7.7", 80)]));
    worlds.push(cloud_with(Vec::new()));
    let snat = NodeNetwork { fabric_snat: Some(true), ..Default::default() };
    worlds.push(Live { network: Fact::Known(Some(snat)), ..base.clone() });
    worlds.push(Live { network: Fact::Known(None), ..base.clone() });
    worlds.push(Live { network: Fact::Unknown(String::new()), ..base.clone() });
    worlds.push(Live { pools: Fact::Known([].into()), ..base.clone() });
    worlds.push(Live { rows: Fact::Unknown(String::new()), ..base.clone() });
    worlds.push(Live { records: Fact::Unknown(String::new()), ..base.clone() });
    worlds.push(applied(&base, &crate::plan(&snat_input(), &base)));
    let recorded = applied(&base, &crate::plan(&snat_input(), &base)).records;
    worlds.push(Live { records: recorded, ..base });
    let all: std::collections::BTreeSet<String> =
        worlds.iter().map(|world| Fingerprint::of(world).to_string()).collect();
    assert_eq!(all.len(), worlds.len());
}

#[test]
fn of_one_key_the_order_matters() {
    let rows = vec![
        row("x", "10.9.9.1", 80, "192.168.7.7", 80),
        row("y", "10.9.9.1", 80, "192.168.8.8", 80),
    ];
    let turned: Vec<_> = rows.iter().rev().cloned().collect();
    assert_ne!(Fingerprint::of(&cloud_with(rows)), Fingerprint::of(&cloud_with(turned)));
}

#[test]
fn an_empty_cloud_is_known_and_an_unread_one_is_not() {
    assert_ne!(Fingerprint::of(&empty_cloud()), Fingerprint::of(&Live::unknown("down")));
}
