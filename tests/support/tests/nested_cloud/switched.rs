//! A cluster that is changed keeps the way that its workloads still use: what is new is added, the workloads switch, and
//! what is old goes when that is asked for.

use std::net::Ipv4Addr;

use opensdn_nested::drift::State;
use opensdn_nested::{Fate, drift};
use opensdn_testing::config_api::Settings;
use serde_json::Value;

use crate::example::{Example, OPTIONS, state, worked_example};

fn names(state: &Value) -> Vec<String> {
    let rows = state["rows"]["linklocal_service_entry"].as_array().unwrap();
    let text = |row: &Value| {
        let of = |field: &str| row[field].to_string().trim_matches('"').to_owned();
        format!("{}:{}", of("linklocal_service_ip"), of("linklocal_service_port"))
    };
    rows.iter().map(text).collect()
}

fn ports(state: &Value) -> Vec<String> {
    let names = names(state);
    let port = |name: &String| Some(name.split_once(':')?.1.to_owned());
    let mut all: Vec<String> = names.iter().filter_map(port).collect();
    all.sort();
    all
}

#[tokio::test]
async fn another_option_is_added_first_and_the_former_one_goes_when_it_is_pruned() {
    for [from, to] in [OPTIONS, [OPTIONS[1], OPTIONS[0]]] {
        let cloud = worked_example(Settings::default());
        let api = cloud.api();
        Example::new("a", from).set_up(&api).await;
        let before = state(&cloud).await;
        let example = Example::new("a", to);
        example.set_up(&api).await;
        let both = state(&cloud).await;
        for row in names(&before) {
            assert!(names(&both).contains(&row), "{from:?}: {row} is gone: {both}");
        }
        assert_eq!(both["snat"], true, "{from:?}: SNAT is needed by what was or what is");
        // What stays is said, is nothing to be put right, and the same again writes nothing.
        let plan = example.plan(&api).await;
        assert!(plan.removed.iter().all(|row| row.fate == Fate::Kept), "{:?}", plan.removed);
        assert_eq!(plan.former_snat.len(), usize::from(from == OPTIONS[0]), "{from:?}");
        assert!(drift(&plan).iter().all(|one| one.state.is_served()), "{:?}", drift(&plan));
        let leaving = drift(&plan).iter().filter(|one| one.state == State::Leaving).count();
        assert_eq!(leaving, plan.removed.len());
        let etag = cloud.etag().await;
        example.set_up(&api).await;
        assert_eq!(cloud.etag().await, etag, "{from:?}");
        // Then it is as if it had never been otherwise, but for addresses: those that are in use never change.
        let fresh = worked_example(Settings::default());
        Example::new("a", to).set_up(&fresh.api()).await;
        example.pruning().set_up(&api).await;
        let (pruned, fresh) = (state(&cloud).await, state(&fresh).await);
        assert_eq!(ports(&pruned), ports(&fresh), "{from:?}");
        assert_eq!(pruned["snat"], fresh["snat"], "{from:?}");
    }
}

#[tokio::test]
async fn another_service_address_stays_the_one_also_when_it_is_not_given_any_more() {
    let cloud = worked_example(Settings::default());
    let api = cloud.api();
    Example::new("a", OPTIONS[0]).set_up(&api).await;
    let first = Example::new("a", OPTIONS[0]).plan(&api).await.rows[0].service.address;
    let other = Ipv4Addr::new(10, 10, 10, 77);
    let mut moved = Example::new("a", OPTIONS[0]);
    moved.input.choices.vrouter_address = Some(other);
    moved.set_up(&api).await;
    let all = names(&state(&cloud).await);
    for address in [first, other] {
        assert!(all.contains(&format!("{address}:9091")), "{address}: {all:?}");
    }
    let without = Example::new("a", OPTIONS[0]);
    assert_eq!(without.plan(&api).await.rows[0].service.address, other, "the old one came back");
    without.pruning().set_up(&api).await;
    let all = names(&state(&cloud).await);
    assert!(!all.contains(&format!("{first}:9091")) && all.contains(&format!("{other}:9091")));
}

#[tokio::test]
async fn a_removal_takes_away_what_was_leaving_too() {
    let cloud = worked_example(Settings::default());
    let (api, before) = (cloud.api(), state(&cloud).await);
    for option in OPTIONS {
        Example::new("a", option).set_up(&api).await;
    }
    crate::snat::removed(&api, "a").await;
    assert_eq!(state(&cloud).await, before);
}
