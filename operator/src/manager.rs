//! One pass over a Manager: each of its services becomes an object of the service's kind, which the controller of
//! that kind makes run. In the five steps of [`crate::reconcile`], the pure ones in `services.rs` beside this file and `status.rs`.
//!
//! What a service waits for it waits for by itself; all objects are there from the start. One that cannot be
//! written keeps none of the others from being written. An object whose service is gone from the Manager is
//! deleted only when that is confirmed.

pub mod status;

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::controller::Action;
use opensdn_crds::component::{COMPONENTS, Component};
use opensdn_runtime::apply::read_as;
use opensdn_runtime::call::CallError;
use opensdn_runtime::error_chain;
use serde_json::{Value, json};

use crate::build::{self, Intent};
use crate::components;
use crate::kind::Kind;
use crate::names::{self, ADOPT, CONFIRM_LOSS};
use crate::object::controller_of;
use crate::reconcile::live::{self, LiveError};
use crate::reconcile::{Context, Error, apply, now};
use crate::services::{self, Service, services};
use status::Row;

/// Knows nothing any more of a Manager that goes, or is gone. Where there is another of its name the series are the other's.
pub fn forget(ctx: &Context, manager: &DynamicObject) {
    ctx.reporter.forget(manager);
    let namespace = manager.namespace().unwrap_or_default();
    let there = ctx.cache.get(Kind::Manager, &namespace, &manager.name_any());
    if there.is_none_or(|there| there.metadata.uid == manager.metadata.uid) {
        ctx.metrics.services(manager, BTreeMap::new());
    }
}

/// Makes one pass.
///
/// # Errors
/// A call fails, or something of ours is wrong.
pub async fn reconcile(
    ctx: &Context,
    resource: &ApiResource,
    manager: Arc<DynamicObject>,
) -> Result<Action, Error> {
    if manager.metadata.deletion_timestamp.is_some() {
        // Its services go with it: the garbage collector does that.
        forget(ctx, &manager);
        return Ok(Action::await_change());
    }
    let manager = ctx.reporter.newest(manager);
    let spec = manager.data.get("spec").unwrap_or(&Value::Null);
    let (services, unnamed) = services(spec);
    let paused = names::paused(&manager, None);
    let mut failed = None;
    let mut rows = Vec::new();
    let mut is_first = true;
    for service in &services {
        let (row, error) = make_so(ctx, &manager, service, paused.is_some(), &mut is_first).await?;
        rows.push(row);
        failed = failed.or(error);
    }
    for (facts, object) in removed(ctx, &manager, &services) {
        match remove(ctx, &manager, facts, &object, paused.is_some()).await {
            Ok(row) => rows.extend(row),
            Err(LiveError::Call(error)) => failed = failed.or(Some(error)),
            Err(LiveError::Behind(behind)) => return Err(behind.into()),
        }
    }
    let signer = services::other_signer(spec);
    let wrong = unnamed.iter().map(|one| one.message.as_str()).chain(signer.as_deref());
    let wrong: Vec<_> = wrong.collect();
    let wrong = Some(wrong.join("; ")).filter(|wrong| !wrong.is_empty());
    let status = status::status(&manager, &rows, wrong.as_deref(), paused.as_deref(), &now());
    let stored = json!(status::before(&manager));
    ctx.metrics.services(&manager, rows.iter().map(Row::counted).collect());
    ctx.reporter.report(resource, &manager, &stored, json!(status)).await?;
    failed.map_or(Ok(Action::await_change()), |error| Err(error.into()))
}

/// Makes the object of a service as the Manager says. How the service is, and the call that failed.
async fn make_so(
    ctx: &Context,
    manager: &DynamicObject,
    service: &Service,
    is_paused: bool,
    is_first: &mut bool,
) -> Result<(Row, Option<CallError>), Error> {
    let namespace = manager.namespace().unwrap_or_default();
    let kind = Kind::Component(service.facts.kind);
    let facts = service.facts;
    let not_written = |error: CallError| {
        let why = format!("failed to write its object: {}", error_chain(&error));
        let row = Row::stalled(facts, &service.name, "NotWritten", why);
        let is_progressing = !error.is_refusal();
        Ok((Row { is_stalled: false, is_progressing, ..row }, Some(error)))
    };
    let live = match ctx.cache.get(kind, &namespace, &service.name) {
        Some(live) => Some(live),
        // The watch of the Manager may be ahead of that of its services, and what a user has made is not to be overwritten.
        None => {
            let resource = kind.resource();
            match read_as(&ctx.writer, &resource, Some(&namespace), &service.name).await {
                Ok(there) => there.map(Arc::new),
                Err(error) => return not_written(error),
            }
        }
    };
    if let Some(why) = live.as_ref().and_then(|live| belongs_to_others(facts, live, manager)) {
        return Ok((Row::stalled(facts, &service.name, "NotOurs", why), None));
    }
    if is_paused {
        return Ok((Row::of(service, live.as_deref()), None));
    }
    let intent = intent(manager, service)?;
    if live.as_ref().is_some_and(|live| apply::is_so(&intent.object, live)) {
        ctx.metrics.skipped(kind);
    } else {
        if *is_first {
            match live::is_current(&ctx.writer, manager).await {
                Err(LiveError::Call(error)) => return not_written(error),
                current => current?,
            }
            *is_first = false;
        }
        if let Err(error) = apply::write(&ctx.writer, &ctx.cache, kind, &intent.object).await {
            return not_written(error);
        }
    }
    let live = ctx.cache.get(kind, &namespace, &service.name);
    if components::of_kind(service.facts.kind).is_none() {
        let why = format!("this version of the operator does not run {} yet", service.facts.kind);
        let known = Row::of(service, None);
        return Ok((
            Row { is_stalled: true, reason: "NotSupported".to_owned(), message: why, ..known },
            None,
        ));
    }
    Ok((Row::of(service, live.as_deref()), None))
}

/// Why an object is not to be written, though it has the name: it is another's, or has no owner, and a user has
/// written what it says.
fn belongs_to_others(
    facts: &Component,
    live: &DynamicObject,
    manager: &DynamicObject,
) -> Option<String> {
    let name = manager.name_any();
    match controller_of(live) {
        Some(owner) if owner.uid == manager.uid().unwrap_or_default() => None,
        Some(owner) => Some(format!(
            "its object belongs to {} {}: give the service another name",
            owner.kind, owner.name
        )),
        None if live.annotations().get(ADOPT) == Some(&name) => None,
        None => Some(format!(
            "its object was there before and is not the Manager's: give the service another name, or have it \
             overwritten: kubectl annotate -n {} {}.tf.tungsten.io/{} {ADOPT}={name}",
            live.namespace().unwrap_or_default(),
            facts.plural,
            live.name_any(),
        )),
    }
}

/// The object of a service, as the Manager has it.
///
/// # Errors
/// It is no object.
pub fn intent(manager: &DynamicObject, service: &Service) -> Result<Intent, Error> {
    let (api, _) = Kind::Manager.path();
    let object = json!({
        "apiVersion": api.trim_start_matches("/apis/"),
        "kind": service.facts.kind,
        "metadata": {
            "name": service.name,
            "namespace": manager.namespace(),
            "labels": names::managed(service.labels.clone()),
            "ownerReferences": [build::owner(manager)],
        },
        "spec": service.spec,
    });
    Ok(build::intent(Kind::Component(service.facts.kind), &object)?)
}

/// The objects whose services are gone from the Manager.
fn removed(
    ctx: &Context,
    manager: &DynamicObject,
    services: &[Service],
) -> Vec<(&'static Component, Arc<DynamicObject>)> {
    let namespace = manager.namespace().unwrap_or_default();
    let is_wanted = |facts: &Component, name: &str| {
        services.iter().any(|service| service.facts.kind == facts.kind && service.name == name)
    };
    let mut removed = Vec::new();
    for facts in COMPONENTS {
        for object in ctx.cache.list(Kind::Component(facts.kind), &namespace) {
            let is_ours = controller_of(&object)
                .is_some_and(|owner| Some(&owner.uid) == manager.metadata.uid.as_ref());
            if is_ours && !is_wanted(facts, &object.name_any()) {
                removed.push((facts, object));
            }
        }
    }
    removed
}

/// Deletes the object of a service that is gone, if that is confirmed. How it is, unless it is gone.
async fn remove(
    ctx: &Context,
    manager: &DynamicObject,
    facts: &'static Component,
    object: &DynamicObject,
    is_paused: bool,
) -> Result<Option<Row>, LiveError> {
    let name = object.name_any();
    let item = format!("{}/{name}", facts.kind);
    let confirmed = manager.annotations().get(CONFIRM_LOSS).map(String::as_str).unwrap_or_default();
    if confirmed.split(',').any(|one| one.trim() == item) && !is_paused {
        live::is_current(&ctx.writer, manager).await?;
        apply::delete(&ctx.writer, Kind::Component(facts.kind), object).await?;
        return Ok(None);
    }
    let why = format!(
        "it is gone from spec.services.{}, and runs on: put it back, or have it deleted: kubectl annotate \
         --overwrite -n {} managers.tf.tungsten.io/{} {CONFIRM_LOSS}={item}",
        facts.key,
        manager.namespace().unwrap_or_default(),
        manager.name_any(),
    );
    Ok(Some(Row::stalled(facts, &name, "RemovalNotConfirmed", why)))
}
