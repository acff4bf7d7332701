//! Fabric SNAT of the nodes' network and its port pools: what is as it should be is left alone, and what was there before
//! is there again after the removal.

use http::Method;
use opensdn_config_api::ConfigApi;
use opensdn_config_api::vrouter_config::{EnsuredPools, RemovedPools};
use opensdn_nested_cloud::{Error, Leftover, Removed, SnatDone, SnatError, remove};
use opensdn_testing::config_api::{Settings, Times};
use serde_json::{Value, json};

use crate::cloud::{Cloud, cluster, save, timing};
use crate::example::{Example, OPTIONS, carry_out, state, worked_example};

pub(crate) async fn removed(api: &ConfigApi, name: &str) -> Removed {
    remove(api, &cluster(name), &timing(), save).await.unwrap()
}

fn snat_of(network: &Value) -> bool {
    network["fabric_snat"] == true
}

fn pools_of(object: &Value) -> Value {
    object["port_translation_pools"]["port_translation_pool"].clone()
}

#[tokio::test]
async fn pools_that_are_absent_are_added_and_taken_back() {
    let cloud = worked_example(Settings::default());
    let (api, before) = (cloud.api(), state(&cloud).await);
    let done = Example::new("a", OPTIONS[0]).set_up(&api).await;
    assert_eq!((done.pools, done.snat), (Some(EnsuredPools::Added), SnatDone::Changed));
    let pools = pools_of(&cloud.object().await.1);
    let pool = |at: usize| {
        let range = &pools[at]["port_range"];
        format!("{} {}-{}", pools[at]["protocol"], range["start_port"], range["end_port"])
    };
    assert_eq!([pool(0), pool(1)], [r#""tcp" 56000-57023"#, r#""udp" 57024-58047"#]);
    let removed = removed(&api, "a").await;
    assert_eq!((removed.pools, &removed.left[..]), (Some(RemovedPools::Removed), &[][..]));
    assert_eq!(state(&cloud).await, before);
}

#[tokio::test]
async fn pools_that_are_there_are_not_touched() {
    let cloud = worked_example(Settings::default());
    let pools = json!({"port_translation_pool": [
        {"protocol": "udp", "port_count": "9"}, {"protocol": "tcp", "port_count": "1024"}]});
    let uuid = cloud.faults().global_vrouter_config();
    cloud.faults().update(&uuid, json!({ "port_translation_pools": pools })).unwrap();
    let (api, before) = (cloud.api(), pools_of(&cloud.object().await.1));
    let done = Example::new("a", OPTIONS[0]).set_up(&api).await;
    assert_eq!(done.pools, Some(EnsuredPools::Present));
    assert_eq!(pools_of(&cloud.object().await.1), before);
    removed(&api, "a").await;
    assert_eq!(pools_of(&cloud.object().await.1), before);
}

#[tokio::test]
async fn a_protocol_without_a_usable_pool_gets_one_and_what_is_there_stays() {
    for (there, added) in [
        (json!({"protocol": "udp", "port_count": "9"}), "tcp"),
        (json!({"protocol": "TCP", "port_range": {"start_port": 40000, "end_port": 40100}}), "udp"),
    ] {
        let cloud = worked_example(Settings::default());
        let pools = json!({"port_translation_pool": [there]});
        let uuid = cloud.faults().global_vrouter_config();
        cloud.faults().update(&uuid, json!({ "port_translation_pools": pools })).unwrap();
        let (api, before) = (cloud.api(), pools_of(&cloud.object().await.1));
        let example = Example::new("a", OPTIONS[0]);
        let done = example.set_up(&api).await;
        assert_eq!(done.pools, Some(EnsuredPools::Added));
        let after = pools_of(&cloud.object().await.1);
        assert_eq!((&after[0], &after[1]["protocol"]), (&before[0], &json!(added)), "{after}");
        assert_eq!(after.as_array().map(Vec::len), Some(2));
        let again = example.set_up(&api).await;
        assert_eq!(pools_of(&cloud.object().await.1), after, "{again:?}");
        // What others had is not given back as ours.
        removed(&api, "a").await;
        assert_eq!(pools_of(&cloud.object().await.1), after);
    }
    // One without ports is none: agents translate nothing by it.
    let cloud = worked_example(Settings::default());
    let pools = json!({"port_translation_pool": [{"protocol": "tcp"}, {"protocol": "udp", "port_count": "9"}]});
    let uuid = cloud.faults().global_vrouter_config();
    cloud.faults().update(&uuid, json!({ "port_translation_pools": pools })).unwrap();
    let done = Example::new("a", OPTIONS[0]).set_up(&cloud.api()).await;
    assert_eq!(done.pools, Some(EnsuredPools::Added));
}

#[tokio::test]
async fn pools_that_others_add_between_plan_and_run_stay_theirs() {
    let cloud = worked_example(Settings::default());
    let (api, example) = (cloud.api(), Example::new("a", OPTIONS[0]));
    let plan = example.plan(&api).await;
    // The numbers of kube-manager, which are ours as well.
    let pools = json!({"port_translation_pool": [
        {"protocol": "tcp", "port_range": {"start_port": 56000, "end_port": 57023}},
        {"protocol": "udp", "port_range": {"start_port": 57024, "end_port": 58047}}]});
    let uuid = cloud.faults().global_vrouter_config();
    cloud.faults().update(&uuid, json!({ "port_translation_pools": pools })).unwrap();
    let before = pools_of(&cloud.object().await.1);
    carry_out(&api, &plan, &timing()).await.unwrap();
    removed(&api, "a").await;
    assert_eq!(pools_of(&cloud.object().await.1), before);
}

#[tokio::test]
async fn snat_that_is_on_is_not_written_and_stays_on_after_the_removal() {
    Cloud::any(async |cloud| {
        cloud
            .with_network(json!(true), async |name, uuid| {
                let (api, before) = (cloud.api(), cloud.network(uuid).await);
                let done = Example::in_network("a", name).set_up(&api).await;
                assert_eq!(done.snat, SnatDone::AsWanted);
                assert_eq!(cloud.network(uuid).await, before);
                assert_eq!(cloud.count(&Method::PUT, "/virtual-network"), 0);
                let removed = removed(&api, "a").await;
                let is_it =
                    |one: &Leftover| matches!(one, Leftover::FormerSnat(one) if one.uuid == uuid);
                assert!(removed.left.iter().any(is_it), "{:?}", removed.left);
                assert_eq!(cloud.network(uuid).await, before);
            })
            .await;
    })
    .await;
}

#[tokio::test]
async fn snat_that_was_off_is_off_after_the_removal() {
    Cloud::any(async |cloud| {
        for off in [json!(false), json!(null)] {
            cloud
                .with_network(off, async |name, uuid| {
                    let api = cloud.api();
                    let done = Example::in_network("a", name).set_up(&api).await;
                    assert_eq!(done.snat, SnatDone::Changed);
                    assert!(snat_of(&cloud.network(uuid).await.1));
                    let off = removed(&api, "a").await.snat_off;
                    assert_eq!(off.iter().map(|one| &one.uuid).collect::<Vec<_>>(), [uuid]);
                    assert!(!snat_of(&cloud.network(uuid).await.1));
                })
                .await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_network_that_the_nodes_have_left_has_the_snat_that_it_had_before() {
    Cloud::any(async |cloud| {
        for was_on in [false, true] {
            cloud
                .with_network(json!(was_on), async |first, first_id| {
                    cloud
                        .with_network(json!(false), async |second, second_id| {
                            let api = cloud.api();
                            Example::in_network("a", first).set_up(&api).await;
                            let moved = Example::in_network("a", second);
                            let left = moved.set_up(&api).await;
                            assert!(left.snat_off.is_empty(), "workloads may need it still");
                            assert!(snat_of(&cloud.network(first_id).await.1));
                            let moved = moved.pruning();
                            let done = moved.set_up(&api).await;
                            let off = done.snat_off.iter().map(|one| one.uuid.as_str());
                            let expected = if was_on { vec![] } else { vec![first_id] };
                            assert_eq!(off.collect::<Vec<_>>(), expected);
                            assert_eq!(snat_of(&cloud.network(first_id).await.1), was_on);
                            assert!(snat_of(&cloud.network(second_id).await.1));
                            let before = cloud.object().await;
                            assert!(moved.set_up(&api).await.snat_off.is_empty());
                            assert_eq!(
                                cloud.object().await,
                                before,
                                "the same again writes nothing"
                            );
                            removed(&api, "a").await;
                            assert_eq!(snat_of(&cloud.network(first_id).await.1), was_on);
                            assert!(!snat_of(&cloud.network(second_id).await.1));
                        })
                        .await;
                })
                .await;
        }
    })
    .await;
}

#[tokio::test]
async fn with_link_local_services_snat_goes_unless_another_cluster_depends_on_it() {
    let cloud = worked_example(Settings::default());
    let api = cloud.api();
    for name in ["a", "b"] {
        Example::new(name, OPTIONS[0]).set_up(&api).await;
    }
    let first = Example::new("a", OPTIONS[1]).pruning().set_up(&api).await;
    assert!(first.snat_off.is_empty());
    assert_eq!(state(&cloud).await["snat"], true, "b depends on it");
    let last = Example::new("b", OPTIONS[1]).pruning().set_up(&api).await;
    assert_eq!(last.snat_off.len(), 1);
    assert_eq!(state(&cloud).await["snat"], false);
}

#[tokio::test]
async fn the_last_cluster_of_a_network_takes_away_what_the_first_switched_on() {
    for order in [["a", "b"], ["b", "a"]] {
        let cloud = worked_example(Settings::default());
        let (api, before) = (cloud.api(), state(&cloud).await);
        for name in ["a", "b"] {
            Example::new(name, OPTIONS[0]).set_up(&api).await;
        }
        let both = state(&cloud).await;
        let first = removed(&api, order[0]).await;
        assert!(first.snat_off.is_empty());
        assert!(first.left.iter().any(|one| matches!(one, Leftover::SharedSnat(_))), "{first:?}");
        let one = state(&cloud).await;
        assert_eq!((&one["rows"], &one["pools"]), (&both["rows"], &both["pools"]));
        assert_eq!(one["snat"], true);
        removed(&api, order[1]).await;
        assert_eq!(state(&cloud).await, before, "{order:?}");
    }
}

#[tokio::test]
async fn two_clusters_that_go_at_once_leave_neither_snat_nor_pools() {
    let cloud = worked_example(Settings::default());
    let (api, before) = (cloud.api(), state(&cloud).await);
    for name in ["a", "b"] {
        Example::new(name, OPTIONS[0]).set_up(&api).await;
    }
    let other = cloud.api();
    tokio::join!(removed(&api, "a"), removed(&other, "b"));
    assert_eq!(state(&cloud).await, before);
}

#[tokio::test]
async fn a_cluster_that_comes_while_another_goes_has_what_it_needs() {
    let cloud = worked_example(Settings::default());
    let (api, other) = (cloud.api(), cloud.api());
    Example::new("a", OPTIONS[0]).set_up(&api).await;
    let coming = Example::new("b", OPTIONS[0]);
    tokio::join!(removed(&api, "a"), coming.set_up(&other));
    let after = state(&cloud).await;
    assert_eq!(after["snat"], true, "{after}");
    assert_ne!(after["pools"], json!([]), "{after}");
    removed(&other, "b").await;
    assert_eq!(state(&cloud).await["snat"], false);
}

#[tokio::test]
async fn snat_that_is_answered_and_not_stored_is_an_error() {
    let cloud = worked_example(Settings::default());
    let (api, example) = (cloud.api(), Example::new("a", OPTIONS[0]));
    example.set_up(&api).await;
    let fq_name = ["default-domain", "admin", "k8s-vms"];
    let network = cloud.faults().read("virtual-network", &fq_name).unwrap();
    let uuid = network["uuid"].as_str().unwrap();
    cloud.faults().update(uuid, json!({"fabric_snat": false})).unwrap();
    let plan = example.plan(&api).await;
    cloud.faults().lose_puts(Times::Always);
    let error = carry_out(&api, &plan, &timing()).await.unwrap_err();
    assert!(matches!(error, Error::Snat(SnatError::NotStored { .. })), "{error}");
}

#[tokio::test]
async fn a_network_that_is_gone_does_not_hold_up_the_removal() {
    Cloud::any(async |cloud| {
        let api = cloud.api();
        cloud
            .with_network(json!(false), async |name, _| {
                Example::in_network("a", name).set_up(&api).await;
            })
            .await;
        removed(&api, "a").await;
        assert!(cloud.records().await.is_empty());
    })
    .await;
}
