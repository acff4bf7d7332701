//! Runs that are killed at each of their calls, and calls that fail once: the next run ends where one ends that nothing
//! has disturbed, and what others have is there at each moment.

use std::time::Duration;

use http::Method;
use opensdn_config_api::ConfigApi;
use opensdn_config_api::apply::Timing;
use opensdn_config_api::lock;
use opensdn_crds::nested_cluster::Connectivity;
use opensdn_nested::Plan;
use opensdn_nested_cloud::remove;
use opensdn_testing::config_api::{Disturbance, Service, Settings, Times};
use serde_json::Value;

use crate::cloud::{Cloud, LOCK, cluster, row, save, set_up, timing};
use crate::example::{Example, OPTIONS, carry_out, state, worked_example};

/// More than any run has calls.
const MOST: usize = 100;

/// The lock of a killed run is not waited for, which is a test of its own.
fn without_waiting() -> Timing {
    Timing { lock: lock::Timing { hold: Duration::ZERO, ..timing().lock }, ..timing() }
}

/// What is tried.
#[derive(Clone, Copy, Debug)]
enum Work {
    SetUp,
    Removal,
}

/// A cloud with another cluster, which shares the vrouters' row, before the work.
async fn cloud(work: Work, plan: &Plan) -> Cloud {
    let cloud = worked_example(Settings::default());
    let vrouters = plan.rows.last().unwrap().row();
    let rows = [row("other", [7, 7], 8082, 100), vrouters];
    set_up(&cloud.api(), &cluster("other"), &rows, &timing()).await.unwrap();
    if matches!(work, Work::Removal) {
        carry_out(&cloud.api(), plan, &timing()).await.unwrap();
    }
    cloud
}

async fn run(work: Work, api: &ConfigApi, plan: &Plan) -> Result<(), String> {
    let id = cluster("interrupted");
    match work {
        Work::SetUp => carry_out(api, plan, &without_waiting()).await.map(|_| ()).map_err(text),
        Work::Removal => remove(api, &id, &without_waiting(), save).await.map(|_| ()).map_err(text),
    }
}

fn text(error: impl std::error::Error + 'static) -> String {
    opensdn_error_chain::error_chain(&error)
}

/// Kills the work when it comes to this call; whether it came there. What it does then is as if it had not been sent.
async fn is_killed(work: Work, cloud: &Cloud, plan: &Plan, at: usize) -> bool {
    cloud.faults().forget_calls();
    cloud.faults().disturb(Service::ConfigApi, Disturbance::Cut, Times::From(at));
    let api = cloud.api();
    let comes_there = async {
        while cloud.faults().calls().len() <= at {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let is_killed = tokio::select! {
        ended = run(work, &api, plan) => ended.is_err(),
        () = comes_there => true,
    };
    cloud.faults().disturb(Service::ConfigApi, Disturbance::Cut, Times::Never);
    is_killed
}

/// What holds at each moment.
fn assert_nothing_is_lost(state: &Value, before: &Value, at: usize) {
    let field = "linklocal_service_entry";
    let rows = |state: &Value| state["rows"][field].as_array().unwrap().clone();
    let (all, of_others) = (rows(state), rows(before));
    let kept: Vec<Value> = all.iter().filter(|row| of_others.contains(row)).cloned().collect();
    assert_eq!(kept, of_others, "at call {at}");
    let annotations = |state: &Value| state["annotations"]["key_value_pair"].clone();
    for pair in annotations(before).as_array().unwrap() {
        if pair["key"] != cluster("interrupted").annotation() {
            assert!(annotations(state).as_array().unwrap().contains(pair), "at call {at}");
        }
    }
    if state["snat"] == true {
        assert_eq!(state["pools"].as_array().unwrap().len(), 2, "SNAT without pools at {at}");
    }
    // Each row that is neither of others is in the record, so that a removal finds it.
    let record = annotations(state).to_string();
    for row in all.iter().filter(|row| !of_others.contains(row)) {
        let key = format!("{}:{}", row["linklocal_service_ip"], row["linklocal_service_port"]);
        let key = key.replace('"', "");
        assert!(record.contains(&key), "{key} is in no record at call {at}: {record}");
    }
}

async fn plan_of(option: Connectivity) -> Plan {
    Example::new("interrupted", option).plan(&worked_example(Settings::default()).api()).await
}

/// The states before the work, after it, and those that are there before either of them.
async fn undisturbed(work: Work, plan: &Plan) -> (Value, Value, Value) {
    let untouched = state(&cloud(Work::SetUp, plan).await).await;
    let cloud = cloud(work, plan).await;
    let before = state(&cloud).await;
    run(work, &cloud.api(), plan).await.unwrap();
    let after = state(&cloud).await;
    assert_ne!(before, after);
    (untouched, before, after)
}

async fn assert_it_is_finished_after_each_kill(work: Work, option: Connectivity) {
    let plan = plan_of(option).await;
    let (untouched, _, after) = undisturbed(work, &plan).await;
    for at in 0..MOST {
        let cloud = cloud(work, &plan).await;
        let is_killed = is_killed(work, &cloud, &plan, at).await;
        assert_nothing_is_lost(&state(&cloud).await, &untouched, at);
        run(work, &cloud.api(), &plan).await.unwrap();
        assert_eq!(state(&cloud).await, after, "{work:?} killed at call {at}");
        if !is_killed {
            assert!(at > 5, "it has {at} calls only");
            return;
        }
    }
    panic!("it has no end");
}

#[tokio::test]
async fn a_set_up_that_is_killed_at_any_call_is_finished_by_the_next() {
    for option in OPTIONS {
        assert_it_is_finished_after_each_kill(Work::SetUp, option).await;
    }
}

#[tokio::test]
async fn a_removal_that_is_killed_at_any_call_is_finished_by_the_next() {
    for option in OPTIONS {
        assert_it_is_finished_after_each_kill(Work::Removal, option).await;
    }
}

#[tokio::test]
async fn a_set_up_that_is_killed_at_any_call_can_be_removed() {
    let plan = plan_of(OPTIONS[0]).await;
    let untouched = state(&cloud(Work::SetUp, &plan).await).await;
    for at in 0..MOST {
        let cloud = cloud(Work::SetUp, &plan).await;
        let is_killed = is_killed(Work::SetUp, &cloud, &plan, at).await;
        run(Work::Removal, &cloud.api(), &plan).await.unwrap();
        assert_eq!(state(&cloud).await, untouched, "killed at call {at}");
        if !is_killed {
            return;
        }
    }
    panic!("it has no end");
}

/// One call fails, done or not; the run itself has to get over it.
async fn assert_it_gets_over_one_failure(work: Work, disturbance: Disturbance) {
    let plan = plan_of(OPTIONS[0]).await;
    let (_, _, after) = undisturbed(work, &plan).await;
    for at in 0..MOST {
        let cloud = cloud(work, &plan).await;
        cloud.faults().forget_calls();
        let once = Times::Once { after: at };
        cloud.faults().disturb(Service::ConfigApi, disturbance, once);
        let ended = run(work, &cloud.api(), &plan).await;
        let count = cloud.faults().calls().len();
        cloud.faults().disturb(Service::ConfigApi, disturbance, Times::Never);
        let call = cloud.faults().calls().get(at).cloned();
        assert_eq!(ended, Ok(()), "{work:?} {disturbance:?} at {at}: {call:?}");
        assert_eq!(state(&cloud).await, after, "{work:?} {disturbance:?} at {at}: {call:?}");
        assert_eq!(cloud.faults().read("namespace", &LOCK), None, "the lock stays, {call:?}");
        if count <= at {
            return;
        }
    }
    panic!("it has no end");
}

#[tokio::test]
async fn a_set_up_gets_over_any_call_that_fails_once() {
    for disturbance in [Disturbance::Cut, Disturbance::Unanswered, Disturbance::Unavailable] {
        assert_it_gets_over_one_failure(Work::SetUp, disturbance).await;
    }
}

#[tokio::test]
async fn a_removal_gets_over_any_call_that_fails_once() {
    for disturbance in [Disturbance::Cut, Disturbance::Unanswered, Disturbance::Unavailable] {
        assert_it_gets_over_one_failure(Work::Removal, disturbance).await;
    }
}

#[tokio::test]
async fn no_read_in_the_middle_of_another_write_is_taken_for_the_whole() {
    for work in [Work::SetUp, Work::Removal] {
        let plan = plan_of(OPTIONS[0]).await;
        let (_, _, after) = undisturbed(work, &plan).await;
        for at in 0..MOST {
            let cloud = cloud(work, &plan).await;
            cloud.faults().forget_calls();
            cloud.faults().tear_reads(Times::Once { after: at });
            let ended = run(work, &cloud.api(), &plan).await;
            let reads = cloud.faults().count(&Method::GET, "/global-vrouter-config");
            cloud.faults().tear_reads(Times::Never);
            assert_eq!(ended, Ok(()), "{work:?} at read {at}");
            assert_eq!(state(&cloud).await, after, "{work:?} at read {at}");
            if reads <= at {
                break;
            }
        }
    }
}
