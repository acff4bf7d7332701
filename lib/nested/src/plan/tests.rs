//! SNAT and pools, what is unknown, and the plan as a file.

use std::collections::BTreeSet;

use super::{Part, Plan, PoolsAction, SnatAction, plan};
use crate::catalogue::Code;
use crate::fixture::{empty_cloud, input, of, snat_input};
use crate::live::{Fact, Live, NodeNetwork, Protocol};
use crate::roles::Profile;

fn with_snat(fabric_snat: Option<bool>) -> Live {
    let network = NodeNetwork { fabric_snat, ..NodeNetwork::default() };
    Live { network: Fact::Known(Some(network)), ..empty_cloud() }
}

#[test]
fn option_1_turns_snat_on_and_remembers_what_was_there() {
    for previous in [None, Some(false)] {
        let plan = plan(&snat_input(), &with_snat(previous));
        assert_eq!(plan.snat, SnatAction::Enable { previous });
        assert_eq!(of(&plan, Code::SnatWillBeOn).len(), 1);
    }
    let already = plan(&snat_input(), &with_snat(Some(true)));
    assert_eq!(already.snat, SnatAction::AlreadyOn);
    assert_eq!(of(&already, Code::SnatWillBeOn).len(), 0);
}

#[test]
fn pools_are_added_where_they_are_missing_and_left_where_they_are() {
    let with = |there: &[Protocol]| Live {
        pools: Fact::Known(there.iter().copied().collect::<BTreeSet<_>>()),
        ..empty_cloud()
    };
    let none = plan(&snat_input(), &with(&[]));
    let PoolsAction::Add(pools) = &none.pools else { panic!("{:?}", none.pools) };
    let ports: Vec<(u16, u16)> = pools.iter().map(|pool| (pool.first, pool.last)).collect();
    assert_eq!(ports, [(56000, 57023), (57024, 58047)]);
    assert_eq!(of(&none, Code::PoolsWillBeMade).len(), 1);

    // Agents drop the flows of a protocol that has none, and kube-manager comes to the Config API by TCP.
    for (there, missing) in [(Protocol::Tcp, 57024), (Protocol::Udp, 56000)] {
        let one = plan(&snat_input(), &with(&[there]));
        let PoolsAction::Add(pools) = &one.pools else { panic!("{:?}", one.pools) };
        assert_eq!(pools.iter().map(|pool| pool.first).collect::<Vec<u16>>(), [missing]);
    }
    let left = plan(&snat_input(), &with(&[Protocol::Tcp, Protocol::Udp]));
    assert_eq!(left.pools, PoolsAction::Leave);
    assert_eq!(of(&left, Code::PoolsWillBeMade).len(), 0);
}

#[test]
fn that_kube_manager_replaces_pools_of_others_is_said_with_either_option() {
    let live = Live { pools_of_others: Fact::Known(true), ..empty_cloud() };
    for input in [snat_input(), input(Profile::Doc)] {
        assert_eq!(of(&plan(&input, &live), Code::PoolsOverwritten).len(), 1);
        assert_eq!(of(&plan(&input, &empty_cloud()), Code::PoolsOverwritten).len(), 0);
    }
}

#[test]
fn option_2_touches_neither() {
    let mut live = with_snat(None);
    live.pools = Fact::Known(BTreeSet::new());
    let plan = plan(&input(Profile::Doc), &live);
    assert_eq!((plan.snat, plan.pools), (SnatAction::Leave, PoolsAction::Leave));
}

#[test]
fn of_an_unknown_cloud_nothing_is_passed_and_nothing_is_carried_out() {
    let plan = plan(&snat_input(), &Live::unknown("the Config API does not answer"));
    assert_eq!(plan.unread, [Part::Rows, Part::Records, Part::Network, Part::Pools]);
    assert!(!plan.is_applicable());
    assert_eq!((&plan.snat, &plan.pools), (&SnatAction::Unknown, &PoolsAction::Unknown));
    let unknown: BTreeSet<Code> = plan.unknown.iter().map(|one| one.code).collect();
    let expected = BTreeSet::from([
        Code::AddressOfUnderlay,
        Code::AddressInSubnet,
        Code::AddressInUse,
        Code::KeyTaken,
        Code::NameTaken,
        Code::Shadowed,
        Code::DuplicateInList,
        Code::AddressUnparsable,
        Code::PortInListOutOfRange,
        Code::ServedElsewhere,
        Code::SnatWillBeOn,
        Code::SnatIsolates,
        Code::SeveralMetadata,
        Code::NetworkMissing,
        Code::NodeOutside,
        Code::ClusterNameTaken,
        Code::PoolsWillBeMade,
        Code::SubnetOfNodes,
        Code::NoAuthentication,
        Code::VirtualRouterMissing,
        Code::SeveralNetworks,
        Code::SubnetOfOtherCluster,
        Code::PoolsOverwritten,
        Code::MayNotWrite,
    ]);
    assert_eq!(unknown, expected);
    assert!(plan.unknown.iter().any(|one| one.why == "the Config API does not answer"));
}

#[test]
fn a_plan_as_a_file_is_stable_and_reads_back() {
    let mut live = empty_cloud();
    live.pools = Fact::Known(BTreeSet::new());
    for input in [input(Profile::Cql), snat_input()] {
        let made = plan(&input, &live);
        let text = serde_json::to_string_pretty(&made).unwrap();
        assert_eq!(text, serde_json::to_string_pretty(&plan(&input, &live)).unwrap());
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), made);
    }
}

#[test]
fn a_row_in_a_file_is_written_by_meaning() {
    let plan = plan(&snat_input(), &empty_cloud());
    assert_eq!(
        serde_json::to_value(&plan.rows).unwrap(),
        serde_json::json!([{
            "role": "vrouter",
            "name": "K8s-cni-to-agent",
            "service": {"address": "10.10.10.1", "port": 9091},
            "target": {"address": "127.0.0.1", "port": 9091},
            "origin": "new",
            "change": "add",
            "how": "written",
            "sharing": "alone",
        }])
    );
    assert_eq!(plan.findings[0].severity, crate::Severity::Warning);
}
