//! One pass over a LinkLocalService: its row is written into the Config API of its namespace, and kept there.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use futures::FutureExt as _;
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType};
use opensdn_config_api::ConfigApi;
use opensdn_config_api::apply::{Request, apply};
use opensdn_config_api::edit::{Foreign, Unwanted};
use opensdn_config_api::link_local::{Hosts, Key, Row, Target, is_metadata};
use opensdn_config_api::ownership::ClusterId;
use opensdn_crds::link_local_service::{LinkLocalServiceSpec, LinkLocalServiceStatus};
use opensdn_crds::status::READY;
use opensdn_runtime::error_chain;
use serde_json::{Value, json};

use super::condition::{NO_CONNECTION, Said};
use super::own_config::{self, Reached};
use super::pass::Pass;
use super::settled::Found;
use super::{Clouds, finalizer, timing};
use crate::components::config_api;
use crate::reconcile::{Context, Error, now};

/// Makes one pass.
///
/// # Errors
/// A call of the cluster fails. What fails in the cloud is in the status of the object.
pub(crate) async fn reconcile(
    ctx: &Context,
    clouds: &Clouds,
    resource: &ApiResource,
    object: Arc<DynamicObject>,
) -> Result<Action, Error> {
    let pass = Pass { ctx, clouds, resource, object: ctx.reporter.newest(object) };
    let is_going = pass.object.metadata.deletion_timestamp.is_some();
    let wanted = (!is_going).then(|| pass.wanted());
    let (found, _room) = match pass.turn(wanted.as_deref()) {
        Ok(turn) => turn,
        Err(later) => return Ok(later),
    };
    if is_going {
        return remove(&pass).await;
    }
    let look = |_| look(&pass, found.clone()).boxed();
    match clouds.limited(look).await?.unwrap_or_else(Some) {
        Some(said) => say(&pass, &said).await,
        None => Ok(Action::requeue(clouds.interval)),
    }
}

/// What is to be said of it, unless it is as it was found before.
async fn look(pass: &Pass<'_>, found: Option<Found>) -> Result<Option<Said>, Error> {
    let row = match row(&pass.object) {
        Ok(row) => row,
        Err(said) => return Ok(Some(said)),
    };
    let api = match connect(pass).await? {
        Ok(api) => api,
        Err(said) => return Ok(Some(said)),
    };
    if pass.is_as_found(&api, found).await {
        return Ok(None);
    }
    make_so(pass, &api, row).await.map(Some)
}

/// The client, or why there is none.
async fn connect(pass: &Pass<'_>) -> Result<Result<Arc<ConfigApi>, Said>, Error> {
    let namespace = pass.object.namespace().unwrap_or_default();
    match Reached::only(pass.ctx, &namespace) {
        Ok(reached) => own_config::connect(pass, &reached).await,
        Err(said) => Ok(Err(said)),
    }
}

/// Writes the row, unless it is there or was put right too often.
async fn make_so(pass: &Pass<'_>, api: &ConfigApi, row: Row) -> Result<Said, Error> {
    let id = match pass.id() {
        Ok(id) => id,
        Err(said) => return Ok(said),
    };
    let title = row.to_string();
    if pass.paused().is_none() {
        pass.keep().await?;
    }
    let before = pass.version_of_rows(api).await;
    if let Err(said) = pass.write_rows(api, &id, &[row], pass.earlier(READY)).await? {
        return Ok(said);
    }
    pass.settle(before, &pass.wanted(), None);
    Ok(Said::in_place(format!("the Config API has {title}")))
}

/// The row that the object wants.
fn row(object: &DynamicObject) -> Result<Row, Said> {
    let spec = object.data.get("spec").cloned().unwrap_or_default();
    let unreadable = |why: String| Said::stalled("Unreadable", why);
    let spec: LinkLocalServiceSpec =
        serde_json::from_value(spec).map_err(|error| unreadable(error.to_string()))?;
    let name = spec.name.filter(|name| !name.is_empty()).unwrap_or_else(|| object.name_any());
    if is_metadata(&name) {
        let message = format!(
            "OSDN3012: spec.name {name:?} has metadata in it, by which vrouter agents take it for Nova's metadata \
             service: choose another name"
        );
        return Err(Said::stalled("NameUnusable", message));
    }
    let port = |field: &str, port: i64| {
        let number = u16::try_from(port).ok().filter(|port| *port > 0);
        number.ok_or_else(|| unreadable(format!("{field} is {port}: give a port from 1 to 65535")))
    };
    let address = |field: &str, text: &str| {
        let address = text.parse::<Ipv4Addr>();
        address.map_err(|_| unreadable(format!("{field} is {text:?}: give an IPv4 address")))
    };
    let key = Key::new(address("spec.ip", &spec.ip)?, port("spec.port", spec.port)?);
    if config_api::is_of_metadata(key) {
        let message = format!(
            "OSDN3010: {key} is that of Nova's metadata service, which every virtual machine asks: choose another address"
        );
        return Err(Said::stalled("Taken", message));
    }
    let addresses = spec.fabric.addresses.iter().flatten();
    let addresses: BTreeSet<Ipv4Addr> =
        addresses.map(|text| address("spec.fabric.addresses", text)).collect::<Result<_, _>>()?;
    let hosts = match spec.fabric.dns_name {
        Some(name) if addresses.is_empty() => Hosts::Name(name),
        _ => Hosts::Addresses(addresses),
    };
    let target = Target { hosts, port: port("spec.fabric.port", spec.fabric.port)? };
    Ok(Row::new(&name, key, &target))
}

/// Takes the row away, and lets the object go.
async fn remove(pass: &Pass<'_>) -> Result<Action, Error> {
    if !finalizer::is_set(&pass.object) {
        return Ok(pass.forget());
    }
    if let Some(said) = pass.stays() {
        say(pass, &said).await?;
        return Ok(Action::await_change());
    }
    let Ok(id) = pass.id() else { return Ok(pass.forget()) };
    if let Some(said) = pass.go(&id, || take_away(pass, &id).boxed()).await? {
        return say(pass, &said).await;
    }
    Ok(Action::await_change())
}

/// What was done, or why it could not be.
async fn take_away(pass: &Pass<'_>, id: &ClusterId) -> Result<Event, Said> {
    let last = |said| pass.clouds.connections.last(pass.uid()).map(|(api, _)| api).ok_or(said);
    let api = match connect(pass).await {
        Ok(Ok(api)) => api,
        Ok(Err(said)) => last(said)?,
        Err(error) => last(Said::waits(NO_CONNECTION, error_chain(&error)))?,
    };
    let (foreign, unwanted) = (Foreign::Respect, Unwanted::Remove);
    let request = Request { cluster: id, rows: &[], foreign, unwanted };
    let save = async |rows: Value| pass.save_if_possible(&rows).await;
    match apply(&api, &request, &timing(), save).await {
        Ok(outcome) => {
            let done: Vec<String> = outcome.changes.iter().map(ToString::to_string).collect();
            let note = match done.is_empty() {
                true => "nothing of it was to be taken away from the Config API".to_owned(),
                false => format!("took it away from the Config API: {}", done.join("; ")),
            };
            Ok(Event {
                type_: EventType::Normal,
                reason: "TakenAway".to_owned(),
                note: Some(note),
                action: "Delete".to_owned(),
                secondary: None,
            })
        }
        Err(error) => Err(pass.failed(&error.into())),
    }
}

async fn say(pass: &Pass<'_>, said: &Said) -> Result<Action, Error> {
    let again = pass.look_again(said, &pass.wanted());
    let before = pass.object.data.get("status").cloned().unwrap_or_default();
    let before: LinkLocalServiceStatus = serde_json::from_value(before).unwrap_or_default();
    let status = LinkLocalServiceStatus {
        conditions: Some(said.conditions(&pass.conditions(), pass.generation(), &now())),
        observed_generation: pass.generation(),
    };
    pass.ctx.reporter.report(pass.resource, &pass.object, &json!(before), json!(status)).await?;
    Ok(again)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(spec: Value) -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": "node-exporter"}, "spec": spec}))
            .unwrap()
    }

    fn text(spec: Value) -> String {
        row(&object(spec)).map_or_else(|said| said.message().to_owned(), |row| row.to_string())
    }

    #[test]
    fn the_row_is_named_after_the_object_unless_it_is_named() {
        let mut spec = json!({"ip": "169.254.1.1", "port": 9100, "fabric": {"addresses": ["192.0.2.2", "192.0.2.1"], "port": 9100}});
        assert_eq!(
            text(spec.clone()),
            "\"node-exporter\" 169.254.1.1:9100 -> 192.0.2.1,192.0.2.2:9100"
        );
        spec["name"] = "exporter".into();
        spec["fabric"] = json!({"dnsName": "mirror.example.com", "port": 80});
        assert_eq!(text(spec), "\"exporter\" 169.254.1.1:9100 -> mirror.example.com:80");
    }

    #[test]
    fn what_no_agent_serves_is_refused_with_its_field() {
        let with = |field: &str, value: Value| {
            let mut spec = json!({"ip": "169.254.1.1", "port": 9100, "fabric": {"addresses": ["192.0.2.1"], "port": 9100}});
            spec[field] = value;
            text(spec)
        };
        assert!(with("name", "my-Metadata".into()).contains("OSDN3012"));
        let metadata = json!({"ip": "169.254.169.254", "port": 80, "fabric": {"addresses": ["192.0.2.1"], "port": 80}});
        assert!(text(metadata).contains("Nova's metadata service"));
        assert!(with("port", 0.into()).contains("spec.port is 0"));
        assert!(with("ip", "fd00::1".into()).contains("spec.ip"));
        let fabric = json!({"addresses": ["192.0.2.1"], "port": 70000});
        assert!(with("fabric", fabric).contains("spec.fabric.port is 70000"));
    }
}
