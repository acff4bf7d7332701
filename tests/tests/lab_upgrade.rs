//! Upgrades of real services, in pods on real nodes by the operator as it is installed, while a client of each writes the
//! whole time: one that is good, two that are not, one in the middle of which a node is lost and the API server
//! restarts, one in which all certificates change, one that finds a volume full, and one whose node never comes back. No service is without more than one of its members by what is done, and in the end every write that was
//! acknowledged is there. Deliberately not here: what is decided when (`lib/upgrade`), and all other faults, which are
//! tried on simulated pods (`operator_upgrade`, `operator_upgrade_faults`).

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]
#![allow(clippy::print_stderr, reason = "how long each step took, for who runs it by hand")]

mod redis;
mod services;
pub(crate) mod watch;

use std::time::Duration;

use opensdn_testing::Outcome;
use serde_json::json;

use services::{AGAIN, BAD, FIRST, FULL, GOOD, IDS, LEFT, MISSING, NODES, Services};
use watch::Watch;

/// A client waits for another leader, or for a member to count as gone; on two busy cores that takes its time.
const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// Longer than until the operator looks at an upgrade again, several times.
const LOOKED_AGAIN: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn good_and_bad_upgrades_and_one_that_loses_a_node_lose_no_acknowledged_write() -> Outcome {
    let mut services = Services::start(3).await?;
    services.write().await?;
    a_good_one_ends_with_its_report(&services).await?;
    one_that_is_bad_comes_back_by_itself(&services, "missing", MISSING, "60s").await?;
    // In that time one pod of each service is made again, too.
    one_that_is_bad_comes_back_by_itself(&services, "bad", BAD, "180s").await?;
    one_that_loses_a_node_ends_when_it_is_back(&services).await?;
    services.have_all_that_was_acknowledged(&NODES).await
}

async fn a_good_one_ends_with_its_report(services: &Services) -> Outcome {
    let (mut watch, written) = (Watch::of(GOOD), services.written());
    services.upgrade("good", GOOD, "15m").await?;
    let status = services.until("good", "Succeeded", &mut watch).await?;
    services.are_written().await?;
    let longest = services.print_waits("a good upgrade", &written);
    assert!(longest < LONGEST_WAIT, "a client waited for {} s", longest.as_secs());
    watch.only_one_of_each_was_missing();
    assert_eq!((&status["from"], &status["to"]), (&FIRST.into(), &GOOD.into()), "{status:#}");
    for id in IDS {
        let mut steps = status["steps"].as_array().into_iter().flatten();
        let step = steps.find(|step| step["id"] == id);
        let step = step.ok_or_else(|| format!("no step {id} in {status:#}"))?;
        let pods = step["pods"].as_array().map_or(0, Vec::len);
        assert_eq!((&step["state"], pods), (&"Succeeded".into(), NODES.len()), "{step:#}");
    }
    services.run_on(&NODES, GOOD).await
}

async fn one_that_is_bad_comes_back_by_itself(
    services: &Services,
    name: &str,
    version: &'static str,
    wave_timeout: &str,
) -> Outcome {
    let (mut watch, written) = (Watch::of(version), services.written());
    services.upgrade(name, version, wave_timeout).await?;
    let status = services.until(name, "RolledBack", &mut watch).await?;
    services.are_written().await?;
    let longest = services.print_waits(&format!("the upgrade {name}"), &written);
    assert!(longest < LONGEST_WAIT, "a client waited for {} s", longest.as_secs());
    watch.only_one_of_each_was_missing();
    watch.at_most_one_of_each_was_new();
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.contains("not well in time"), "{status:#}");
    services.run_on(&NODES, GOOD).await
}

/// The node goes while a member has the new images, and with it maybe the operator that leads.
async fn one_that_loses_a_node_ends_when_it_is_back(services: &Services) -> Outcome {
    let (mut watch, written) = (Watch::of(AGAIN), services.written());
    services.upgrade("again", AGAIN, "20m").await?;
    services.until_one_is_new("again", &mut watch).await?;
    services.lab()?.kill_node("node-3")?;
    services.are_written().await?;
    services.until_lost("node-3").await?;
    services.until_others_are_ready("node-3").await?;
    let before = services.pods_beside("node-3").await;
    services.sandbox().restart_api_server().await?;
    // Nothing shows that nothing is done.
    tokio::time::sleep(LOOKED_AGAIN).await;
    let status = services.status("again").await;
    let message = status["message"].as_str().unwrap_or_default();
    assert_eq!(status["phase"], "Running", "{status:#}");
    assert!(IDS.iter().any(|id| message.contains(id)), "{message}");
    eprintln!("without the node: {message}");
    assert_eq!(services.pods_beside("node-3").await, before, "no other member is replaced");
    services.are_written().await?;

    let client = services.sandbox().client()?;
    services.lab()?.start_node(&client, "node-3").await?;
    let status = services.until("again", "Succeeded", &mut watch).await?;
    services.are_written().await?;
    services.print_waits("an upgrade with a node that was lost", &written);
    assert_eq!(status["to"], AGAIN, "{status:#}");
    services.run_on(&NODES, AGAIN).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_certificates_a_full_volume_and_a_node_that_never_comes_back_lose_no_acknowledged_write()
-> Outcome {
    let mut services = Services::start(4).await?;
    services.write().await?;
    one_in_which_certificates_change_ends_as_any(&services).await?;
    one_that_finds_no_room_changes_one_member_until_there_is_some(&services).await?;
    one_whose_node_never_comes_back_ends_on_another(&services).await?;
    services.have_all_that_was_acknowledged(&LEFT).await
}

/// Who reads a new certificate starts again, beside the members that are replaced.
async fn one_in_which_certificates_change_ends_as_any(services: &Services) -> Outcome {
    let (mut watch, written) = (Watch::of(GOOD), services.written());
    let before = services.certificates().await?;
    services.upgrade("certificates", GOOD, "15m").await?;
    services.until_one_is_new("certificates", &mut watch).await?;
    services.renew_certificates().await?;
    services.until("certificates", "Succeeded", &mut watch).await?;
    services.are_written().await?;
    let longest = services.print_waits("an upgrade with new certificates", &written);
    assert!(longest < LONGEST_WAIT, "a client waited for {} s", longest.as_secs());
    services.have_new_certificates(&before).await?;
    services.run_on(&NODES, GOOD).await
}

/// The member that is replaced first finds its volume full. It stops there; with room it is tried again, and ends.
async fn one_that_finds_no_room_changes_one_member_until_there_is_some(
    services: &Services,
) -> Outcome {
    let (mut watch, written) = (Watch::of(FULL), services.written());
    services.fill_volumes()?;
    let settings = json!({"waveTimeout": "120s", "onFailure": "Stop"});
    services.upgrade_with("full", FULL, &settings).await?;
    let status = services.until("full", "Stopped", &mut watch).await?;
    services.are_written().await?;
    watch.only_one_of_each_was_missing();
    // Another service of the wave has room, and is not held up.
    watch.at_most_one_was_new("zookeeper");
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.contains("pod zookeeper1-zookeeper-"), "{message}");

    services.free_volumes()?;
    services.try_again("full").await?;
    services.until("full", "Succeeded", &mut watch).await?;
    services.are_written().await?;
    services.print_waits("an upgrade that found no room", &written);
    services.run_on(&NODES, FULL).await
}

/// It stops and says which node is away. With another node in its place it is tried again, and ends.
async fn one_whose_node_never_comes_back_ends_on_another(services: &Services) -> Outcome {
    let (mut watch, written) = (Watch::of(AGAIN), services.written());
    let settings = json!({"waveTimeout": "120s", "onFailure": "Stop"});
    services.upgrade_with("lost", AGAIN, &settings).await?;
    services.until_one_is_new("lost", &mut watch).await?;
    services.lab()?.kill_node("node-3")?;
    let status = services.until("lost", "Stopped", &mut watch).await?;
    services.are_written().await?;
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.contains("node-3") && message.contains("retry"), "{message}");

    services.replace_node("node-3", LEFT[2]).await?;
    services.members_are_on(&LEFT).await?;
    services.are_written().await?;
    services.try_again("lost").await?;
    services.until("lost", "Succeeded", &mut watch).await?;
    services.are_written().await?;
    services.print_waits("an upgrade whose node never came back", &written);
    services.run_on(&LEFT, AGAIN).await
}
