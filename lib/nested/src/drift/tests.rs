//! Each state, as one change of a cloud in which all is in place.

use std::collections::BTreeSet;

use opensdn_config_api::link_local::Row;

use super::{State, drift};
use crate::fixture::{applied, cloud_with, empty_cloud, input, listed, row, snat_input};
use crate::input::Permission;
use crate::live::{Fact, Live, NodeNetwork};
use crate::plan::plan;
use crate::roles::Profile;

/// The worked example, carried out.
fn in_place() -> Live {
    let cloud = empty_cloud();
    applied(&cloud, &plan(&input(Profile::Doc), &cloud))
}

fn states(live: &Live) -> Vec<State> {
    let all = drift(&plan(&input(Profile::Doc), live));
    all.iter().map(|one| one.state).collect()
}

/// The rows changed, and the first state that is not as wanted.
fn after(change: impl FnOnce(&mut Vec<Row>)) -> Option<State> {
    let mut live = in_place();
    let mut rows = listed(&live).to_vec();
    change(&mut rows);
    live.rows = Fact::Known(rows);
    states(&live).into_iter().find(|state| *state != State::InPlace)
}

#[test]
fn all_that_was_carried_out_is_in_place() {
    assert_eq!(states(&in_place()), [State::InPlace; 9]);
    assert_eq!(after(|_| ()), None);
}

#[test]
fn a_row_that_is_gone_is_missing() {
    assert_eq!(after(|rows| drop(rows.remove(3))), Some(State::Missing));
}

#[test]
fn a_row_of_ours_that_leads_elsewhere_is_changed() {
    let changed = after(|rows| {
        let (name, key) = (rows[0].name().to_owned(), rows[0].key());
        rows[0] = row(&name, &key.ip.to_string(), key.port, "192.168.1.9", 1);
    });
    assert_eq!(changed, Some(State::Changed));
}

#[test]
fn a_row_behind_another_of_its_key_is_shadowed() {
    let shadowed = after(|rows| {
        let key = rows[0].key();
        rows.insert(0, row("other", &key.ip.to_string(), key.port, "192.168.1.9", 1));
    });
    assert_eq!(shadowed, Some(State::Shadowed));
}

#[test]
fn a_row_with_another_name_is_renamed() {
    let renamed = after(|rows| {
        let (key, target) = (rows[0].key(), rows[0].target());
        rows[0] = Row::new("by hand", key, &target);
    });
    assert_eq!(renamed, Some(State::Renamed));
}

#[test]
fn a_row_of_ours_that_is_not_wanted_any_more_is_leaving_and_where_it_is_to_go_an_orphan() {
    let live = in_place();
    let mut fewer = input(Profile::Doc);
    fewer.services.remove(&crate::Role::Keystone);
    let kept = drift(&plan(&fewer, &live));
    assert_eq!(kept.last().map(|one| one.state), Some(State::Leaving));
    assert!(State::Leaving.is_served(), "there is nothing to be put right");
    fewer.choices.permissions.prune = Permission::Granted;
    let all = drift(&plan(&fewer, &live));
    let orphan = all.last().unwrap();
    assert_eq!((all.len(), orphan.state), (9, State::Orphan));
    assert!(orphan.service.ends_with(":35357"), "{orphan}");
}

#[test]
fn a_row_of_another_owner_at_our_key_has_taken_it() {
    let key = plan(&input(Profile::Doc), &empty_cloud()).rows[0].key();
    let live = cloud_with(vec![row("other", &key.ip.to_string(), key.port, "192.168.1.9", 1)]);
    // By the address that is given, for one that is taken is not allocated.
    let mut fixed = input(Profile::Doc);
    let node = fixed.services[&crate::Role::Config].nodes.first().copied().unwrap();
    fixed.choices.node_addresses.insert(node, key.ip.to_string().parse().unwrap());
    let all = drift(&plan(&fixed, &live));
    let taken = all.iter().find(|one| one.state == State::Taken);
    let text = taken.map(ToString::to_string).unwrap_or_default();
    assert!(text.contains("not ours") && text.contains("other"), "{text} {all:#?}");
}

#[test]
fn snat_that_was_switched_off_is_missing_and_of_an_unknown_cloud_nothing_is_said() {
    let with = |fabric_snat| {
        let network = NodeNetwork { fabric_snat, ..NodeNetwork::default() };
        let live = Live { network: Fact::Known(Some(network)), ..empty_cloud() };
        drift(&plan(&snat_input(), &live)).pop().unwrap().state
    };
    assert_eq!((with(Some(true)), with(None)), (State::InPlace, State::Missing));
    let unknown = Live::unknown("it does not answer");
    assert_eq!(drift(&plan(&snat_input(), &unknown)), []);
}

#[test]
fn every_state_but_the_wanted_one_has_a_code_of_its_own() {
    // What is leaving is of no use either, and only stays longer.
    let others = State::ALL.iter().filter(|state| **state != State::Leaving);
    let codes: BTreeSet<_> = others.clone().filter_map(|state| state.code()).collect();
    assert_eq!(codes.len() + 1, others.count());
    assert_eq!(State::InPlace.code(), None);
    assert_eq!(State::Leaving.code(), State::Orphan.code());
}
