//! The webhook configurations are changed by another client.

use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;

use super::*;

const OURS: &str = "ours.validate.opensdn.io";

/// The entry for our own kinds, and where it is.
fn ours(object: &Value) -> Option<(usize, &Value)> {
    let entries = object["webhooks"].as_array()?;
    entries.iter().enumerate().find(|(_, entry)| entry["name"] == OURS)
}

async fn read(world: &World) -> Result<Value, Failed> {
    Ok(serde_json::to_value(world.validating().get(CONFIGURATION).await?)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_keeps_requests_from_the_webhook_is_noticed_and_removed() -> Outcome {
    let world = World::start().await?;
    let replica = world.replica("a", &[]).await?;
    world.apply("unsafe", unsafe_parameter(json!({}))).await?;
    refused(&world, "plain").await;
    let metric = "opensdn_webhook_configuration_tampered_total\
        {kind=\"ValidatingWebhookConfiguration\"}";
    assert_eq!(replica.metric(metric), None);
    let never = json!([{"name": "off", "expression": "false"}]);
    let nothing = json!({"matchLabels": {"no": "such"}});
    let ways = [
        ("matchConditions", never),
        ("objectSelector", nothing.clone()),
        ("namespaceSelector", nothing),
    ];
    for (number, (field, value)) in ways.into_iter().enumerate() {
        let mut object = read(&world).await?;
        let (place, before) = ours(&object).ok_or("no entry")?;
        let before = before.clone();
        object["webhooks"][place][field] = value;
        let change = Patch::Merge(json!({"webhooks": object["webhooks"]}));
        world.validating().patch(CONFIGURATION, &PatchParams::default(), &change).await?;
        let is = async || {
            let now = read(&world).await.unwrap_or_default();
            ours(&now).is_some_and(|(_, entry)| *entry == before)
        };
        eventually(&format!("{field} is as it was"), is).await;
        refused(&world, "plain").await;
        let counted = async || replica.metric(metric) == Some((number + 1) as f64);
        eventually(&format!("{field} is counted"), counted).await;
    }
    reported(&world, "ConfigurationTampered", CONFIGURATION).await;
    Ok(())
}

/// Waits for an Event with this reason about an object of this name.
async fn reported(world: &World, reason: &str, name: &str) {
    let events: Api<Event> = Api::all(world.client.clone());
    let is_it = |event: &Event| {
        let about = event.regarding.as_ref().and_then(|about| about.name.as_deref());
        event.reason.as_deref() == Some(reason) && about == Some(name)
    };
    let told = async || {
        let events = events.list(&ListParams::default()).await;
        events.is_ok_and(|events| events.iter().any(is_it))
    };
    eventually(&format!("there is an Event {reason} about {name}"), told).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_that_was_deleted_is_restored_with_an_event() -> Outcome {
    let world = World::start().await?;
    let _replica = world.replica("a", &[]).await?;
    world.validating().delete(CONFIGURATION, &DeleteParams::default()).await?;
    let is = async || world.validating().get(CONFIGURATION).await.is_ok();
    eventually("it is restored", is).await;
    reported(&world, "ConfigurationDeleted", CONFIGURATION).await;
    Ok(())
}

/// The entries with a condition that lets nothing be judged; none if they have it.
fn switched_off(mut object: Value) -> Option<Value> {
    let (place, entry) = ours(&object)?;
    let is_judged = entry.get("matchConditions").is_none();
    let entry = object.pointer_mut(&format!("/webhooks/{place}"))?.as_object_mut()?;
    entry.insert("matchConditions".into(), json!([{"name": "off", "expression": "false"}]));
    object.get("webhooks").filter(|_| is_judged).cloned()
}

/// Another program that takes the configuration for its own, and changes it as soon as it is put right.
fn fighter(world: &World) -> JoinHandle<()> {
    let api = world.validating();
    tokio::spawn(async move {
        loop {
            if let Ok(object) = api.get(CONFIGURATION).await
                && let Ok(object) = serde_json::to_value(object)
                && let Some(entries) = switched_off(object)
            {
                let change = Patch::Merge(json!({"webhooks": entries}));
                // Another fighter was faster, or it is being put right.
                drop(api.patch(CONFIGURATION, &PatchParams::default(), &change).await);
            }
            sleep(Duration::from_millis(20)).await;
        }
    })
}

/// Five repairs are made at once, and then after 2, 4 and 8 seconds more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_fights_over_a_configuration_gets_few_answers_and_one_event() -> Outcome {
    const WINDOW: Duration = Duration::from_secs(16);
    const MOST: f64 = 9.0;
    let world = World::start().await?;
    let replica = world.replica("a", &[]).await?;
    let metric = "opensdn_webhook_configuration_tampered_total\
        {kind=\"ValidatingWebhookConfiguration\"}";
    let counted = || replica.metric(metric).unwrap_or_default();
    let fighters = [fighter(&world), fighter(&world)];
    eventually("the first repairs are made at once", async || counted() >= 5.0).await;
    // That no more are made than so many, only time shows.
    sleep(WINDOW).await;
    let repairs = counted();
    assert!(repairs <= MOST, "{repairs} repairs");

    // Both are of one mind, and stop: it is put right, and reported in one Event that counts.
    fighters.iter().for_each(JoinHandle::abort);
    let is = async || {
        let now = read(&world).await.unwrap_or_default();
        ours(&now).is_some_and(|(_, entry)| entry.get("matchConditions").is_none())
    };
    eventually("it is put right in the end", is).await;
    let all = counted();
    let events: Api<Event> = Api::all(world.client.clone());
    let told = async || {
        let listed = events.list(&ListParams::default()).await;
        let listed = listed.map(|events| events.items).unwrap_or_default();
        let is_it = |event: &&Event| event.reason.as_deref() == Some("ConfigurationTampered");
        let counts: Vec<i32> = listed
            .iter()
            .filter(is_it)
            .map(|event| event.series.as_ref().map_or(1, |series| series.count))
            .collect();
        matches!(counts.as_slice(), [one] if f64::from(*one) >= all)
    };
    eventually("there is one Event, which counts them", told).await;
    Ok(())
}
