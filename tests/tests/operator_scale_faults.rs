//! A service that counts its members, while it grows and shrinks and a write of the operator fails: it is killed there, before the
//! write arrives or after. In the end the members are those that are wanted, and those that stay were never started again.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::collections::BTreeMap;
use std::time::Duration;

use opensdn_testing::fault_proxy::{Fault, FaultProxy};
use opensdn_testing::kubectl::read;
use opensdn_testing::operator::Operator;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome, long_runs};

use crate::operator_ensembles::{is_ready, label, places, running, unlabel};
use crate::operator_storage::unless_killed;

/// Longer than between two writes of one pass.
const QUIET: Duration = Duration::from_millis(700);
/// What is there of the service, besides the pods of members that come and go.
const KINDS: &str = "statefulsets,configmaps,secrets,serviceaccounts,poddisruptionbudgets,pods";
const STAY: [&str; 3] = ["node-0", "node-1", "node-2"];
const COMES: &str = "node-3";

/// UIDs by kind and name.
async fn identities(sandbox: &Sandbox) -> Result<BTreeMap<String, String>, Failed> {
    let all = read(sandbox, &["-n", "tf", KINDS]).await?;
    let items = all["items"].as_array().cloned().unwrap_or_default();
    let identities = items.iter().map(|one| {
        let text = |pointer: &str| one.pointer(pointer).and_then(|text| text.as_str());
        let part = |pointer: &str| text(pointer).unwrap_or_default().to_owned();
        (format!("{} {}", part("/kind"), part("/metadata/name")), part("/metadata/uid"))
    });
    Ok(identities.collect())
}

/// A member comes and goes again, while one write of the operator fails. Returns how many writes it made.
async fn scale_with(sandbox: &Sandbox, fault: Option<(usize, Fault)>) -> Result<usize, Failed> {
    let proxy = FaultProxy::start(sandbox.client()?, fault).await?;
    let kubeconfig = proxy.kubeconfig(sandbox.data_folder())?;
    let operator = Operator::start_with(sandbox, &kubeconfig, "tf")?;
    let passes = async || operator.metric(0, "opensdn_reconcile_total").await > 0.0;
    unless_killed(&proxy, &operator, "it has looked at ZooKeeper", passes).await?;
    proxy.quiet_for(QUIET).await;
    assert_eq!(proxy.writes(), [], "it has nothing to do yet");
    let what = |members: usize| format!("{members} members with {fault:?}");
    label(sandbox, &[COMES]).await?;
    let four = async || is_ready(sandbox, 4).await;
    unless_killed(&proxy, &operator, &what(4), four).await?;
    unlabel(sandbox, &[COMES]).await?;
    let three = async || is_ready(sandbox, 3).await && places(sandbox).await == STAY;
    unless_killed(&proxy, &operator, &what(3), three).await?;
    proxy.quiet_for(QUIET).await;
    let writes = proxy.writes().len();
    operator.stop(0).await;
    Ok(writes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_write_fails_as_members_come_and_go_those_that_stay_are_left_alone() -> Outcome {
    let (sandbox, first) = running().await?;
    first.stop(0).await;
    let before = identities(&sandbox).await?;
    let writes = scale_with(&sandbox, None).await?;
    assert_eq!(identities(&sandbox).await?, before);
    // A StatefulSet, files, certificates and a budget, twice, and what the status says meanwhile.
    assert!((8..60).contains(&writes), "{writes}");
    let numbers = long_runs::every(8, (0..writes).collect());
    for (number, fault) in long_runs::pairs(numbers, [Fault::LoseRequest, Fault::LoseAnswer]) {
        scale_with(&sandbox, Some((number, fault))).await?;
        assert_eq!(identities(&sandbox).await?, before, "write {number}, {fault:?}");
    }
    Ok(())
}
