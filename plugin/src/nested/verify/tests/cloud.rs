//! The list in the cloud.

use super::*;

const VROUTER: &str = "10.10.10.1:9091";

/// With fabric SNAT, where the cloud has these rows.
fn of(rows: Vec<Row>) -> Cluster {
    let mut cluster = Cluster::good(Connectivity::FabricSnat);
    cluster.plan = plan(&cluster.input, &cloud(rows));
    cluster
}

#[test]
fn a_row_is_in_place_missing_or_not_known() {
    let good = Cluster::good(Connectivity::FabricSnat);
    says(&good.result(Part::Cloud, VROUTER), "OSDN3090", Outcome::Ok, "in place");
    says(&of(vec![]).result(Part::Cloud, VROUTER), "OSDN3090", Outcome::Fail, "not in the cloud");
    let mut unread = Cluster::good(Connectivity::FabricSnat);
    unread.input.choices.vrouter_address = Some("10.10.10.1".parse().unwrap());
    unread.plan = plan(&unread.input, &Live::unknown("is forbidden"));
    says(&unread.result(Part::Cloud, VROUTER), "OSDN3090", Outcome::Uncertain, "is forbidden");
}

#[test]
fn a_row_of_another_name_is_only_said_and_one_that_is_taken_or_shadowed_fails() {
    let renamed = of(vec![row("K8s-cni-to-agent", VROUTER, "127.0.0.1:9091")]);
    let found = renamed.result(Part::Cloud, VROUTER);
    says(&found, "OSDN3093", Outcome::Ok, "a-vrouter");

    let with_address = |rows: Vec<Row>| {
        let mut cluster = of(vec![]);
        cluster.input.choices.vrouter_address = Some("10.10.10.1".parse().unwrap());
        cluster.plan = plan(&cluster.input, &cloud(rows));
        cluster.result(Part::Cloud, VROUTER)
    };
    let other = || row("other", VROUTER, "192.168.1.7:80");
    says(&with_address(vec![other()]), "OSDN3095", Outcome::Fail, "192.168.1.7");
    let ours = row("a-vrouter", VROUTER, "127.0.0.1:9091");
    says(&with_address(vec![other(), ours]), "OSDN3092", Outcome::Fail, "wins");
}

#[test]
fn a_row_of_ours_that_leads_elsewhere_and_one_that_is_not_wanted_are_said() {
    use opensdn_config_api::ownership::{Held, How};
    let mut live = cloud(vec![
        row("a-vrouter", VROUTER, "127.0.0.1:9999"),
        row("a-old", "10.10.10.9:8082", "192.168.1.9:8082"),
    ]);
    let mut records = Records::default();
    for (name, at, target) in
        [("a-vrouter", VROUTER, "127.0.0.1:9999"), ("a-old", "10.10.10.9:8082", "192.168.1.9:8082")]
    {
        let row = row(name, at, target);
        let held = Held { name: name.to_owned(), target: row.target(), how: How::Written };
        records.ours.rows.insert(row.key(), held);
    }
    live.records = Fact::Known(records);
    let mut cluster = Cluster::good(Connectivity::FabricSnat);
    cluster.plan = plan(&cluster.input, &live);
    says(&cluster.result(Part::Cloud, VROUTER), "OSDN3091", Outcome::Fail, "elsewhere");
    says(&cluster.result(Part::Cloud, "10.10.10.9"), "OSDN3094", Outcome::Warn, "it is ours");
}

#[test]
fn snat_that_is_off_and_pools_that_are_gone_fail() {
    let mut cluster = Cluster::good(Connectivity::FabricSnat);
    let mut live = cloud(cluster.plan.rows.iter().map(opensdn_nested::PlannedRow::row).collect());
    live.network = Fact::Known(Some(NodeNetwork::default()));
    live.pools = Fact::Known([].into());
    cluster.plan = plan(&cluster.input, &live);
    says(&cluster.result(Part::Cloud, "fabric SNAT"), "OSDN3026", Outcome::Fail, "it is off");
    says(
        &cluster.result(Part::Cloud, "pools"),
        "OSDN3037",
        Outcome::Fail,
        "not both protocols have some",
    );
    live.pools = Fact::Unknown("is forbidden".to_owned());
    cluster.plan = plan(&cluster.input, &live);
    says(&cluster.result(Part::Cloud, "pools"), "OSDN3037", Outcome::Uncertain, "not read");
}

#[test]
fn what_forbids_the_plan_fails_under_its_own_code() {
    let mut cluster = Cluster::good(Connectivity::FabricSnat);
    let mut live = cloud(cluster.plan.rows.iter().map(opensdn_nested::PlannedRow::row).collect());
    live.network = Fact::Known(None);
    cluster.plan = plan(&cluster.input, &live);
    let found = cluster.verified().results;
    assert!(
        found.iter().any(|one| one.code == "OSDN3031" && one.result == Outcome::Fail),
        "{found:#?}"
    );
}
