//! The number of calls is bounded, and does not depend on how much is in the cloud.

use opensdn_nested_cloud::remove;
use opensdn_testing::config_api::Settings;
use serde_json::json;

use crate::cloud::{Cloud, cluster, row, save, set_up, timing};
use crate::example::{Example, OPTIONS, carry_out, worked_example};

/// How many calls it takes to plan, to carry out, to do so again, and to remove.
async fn calls(cloud: &Cloud, example: &Example) -> [usize; 4] {
    let api = cloud.api();
    let count = || {
        let count = cloud.faults().calls().len();
        cloud.faults().forget_calls();
        count
    };
    count();
    let plan = example.plan(&api).await;
    let planned = count();
    let done = carry_out(&api, &plan, &timing()).await.unwrap();
    let carried_out = count();
    assert_eq!(done.calls, carried_out as u64);
    carry_out(&api, &plan, &timing()).await.unwrap();
    let again = count();
    let removed = remove(&api, &example.id, &timing(), save).await.unwrap();
    let removal = count();
    assert_eq!(removed.calls, removal as u64);
    [planned, carried_out, again, removal]
}

/// A cloud with many clusters, networks and addresses.
async fn crowded() -> Cloud {
    let cloud = worked_example(Settings::default());
    let api = cloud.api();
    for number in 0..100_u8 {
        let own = |port| row(&format!("{number}-{port}"), [number, 1], port, 100);
        let rows = [own(8082), own(9161), own(35357), row("of-all", [200, 1], 9091, 9)];
        let id = cluster(&format!("other-{number}"));
        set_up(&api, &id, &rows, &timing()).await.unwrap();
        let (project, name) = (["default-domain", "admin"], format!("network-{number}"));
        let network = json!({"fq_name": [project[0], project[1], name], "parent_type": "project"});
        let network = cloud.faults().create("virtual-network", network).unwrap();
        let address = json!({"fq_name": [format!("ip-{number}")],
            "instance_ip_address": format!("10.77.0.{number}"),
            "virtual_network_refs": [{"uuid": network}]});
        cloud.faults().create("instance-ip", address).unwrap();
    }
    assert_eq!(cloud.records().await.len(), 100);
    cloud
}

#[tokio::test]
async fn calls_are_few_and_do_not_grow_with_the_cloud() {
    let crowded = crowded().await;
    for option in OPTIONS {
        let example = Example::new("counted", option);
        let alone = calls(&worked_example(Settings::default()), &example).await;
        let among_many = calls(&crowded, &example).await;
        // A list of annotations or pools that is empty is read a second time.
        for (alone, among_many) in alone.iter().zip(among_many) {
            assert!(among_many <= alone + 1, "{alone} calls grow to {among_many}");
        }
        let bounds = [26, 40, 16, 34];
        for (calls, bound) in alone.iter().zip(bounds) {
            assert!(*calls <= bound, "{option:?} takes {alone:?} calls");
        }
    }
}
