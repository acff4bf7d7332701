//! Defaults that are invisible: writes them into the objects.
//!
//! tf-operator has its defaults in its code: `kubectl get -o yaml` does not show on which port a
//! service listens, a new version may have another, and where the code forgets one (reaperEnabled,
//! a missing commonConfiguration) the process ends with a panic. Here they become a part of the
//! object when it is written:
//!
//! ```yaml
//! kind: Zookeeper
//! spec:
//!   commonConfiguration: {}                 # written
//!   serviceConfiguration:
//!     clientPort: 2182
//!     electionPort: 2888                    # written
//!     serverPort: 3888                      # written …
//! ```
//!
//! Written is what does not depend on the cluster, into blocks that are there; a service that is
//! absent stays absent. Deliberately not written:
//! - secrets and names of users: there is no default that may be known;
//! - what a component takes from its Manager (authentication, log level, node selector);
//! - `insecure` and `adminPort` of Keystone: their defaults are bad, and a bad value should not
//!   look as if it had been chosen;
//! - what is computed: node selector, tolerations, aaaMode, addresses, public pool, pod subnet;
//! - fields without effect.
//!
//! The log level is the one exception to tf-operator's defaults: `info` instead of `debug`, at
//! which its scripts print private keys into the log.
//!
//! Into what exists a default is written only where the change takes a value out. What has been unset is left so: it has
//! been running with what its operator takes then, which may be another value than the one here (keys of 2,048 bits,
//! ports of the first database). And a value that comes with the edit of an annotation is a change of the spec: it
//! restarts services (the log level is in the environment of every container: tf-operator,
//! `pkg/apis/tf/v1alpha1/base_types.go:755-801`), and is refused while tf-operator upgrades. But what tf-operator's
//! process ends without is written always.

mod block;
mod presence;
mod table;

use opensdn_policy_components::{ComponentView, Owners, Services};
use opensdn_policy_sdk::{NoSettings, Outcome, Patch, Reads, Request, policy};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

use block::{Block, Write};
use presence::Fields;
use table::{FABRIC_SNAT, KEYSTONE, LINK_LOCAL, REAPER, defaults_of};

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/spec/commonConfiguration")]
    common: Option<Value>,
    #[read("/spec/services")]
    services: Option<Services<Spec>>,
    #[read("/spec/nested")]
    nested: Option<IgnoredAny>,
}

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "*")]
struct Standalone {
    #[read("/metadata/ownerReferences")]
    owners: Option<Owners>,
    #[read("/spec/commonConfiguration")]
    common: Option<Value>,
    #[read("/spec/serviceConfiguration")]
    service: Option<Fields>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    common_configuration: Option<Fields>,
    service_configuration: Option<Fields>,
}

fn manager(request: &Request<Manager>, _: &NoSettings, patch: &mut Patch) -> Outcome {
    let Some(Manager { common, services, nested }) = &request.object else { return Ok(()) };
    if common.is_none() && services.is_none() {
        return Ok(());
    }
    let old = request.old_object.as_ref();
    let mut block = Block::of_spec(common, old.map(|old| &old.common));
    write_common(patch, &mut block)?;
    block.write(patch, "/commonConfiguration/certKeyLength", 4096)?;
    block.write(patch, "/commonConfiguration/certSigner", "SelfSignedCA")?;
    block.write_always(patch, "/commonConfiguration", json!({}))?;
    let old = old.and_then(|old| old.services.as_ref());
    for component in services.iter().flat_map(Services::walk) {
        let Some(service) = &component.spec.service_configuration else { continue };
        if component.spec.common_configuration.is_none() {
            let value = json!({});
            patch.default_value(&mut json!({}), &component.at, "/commonConfiguration", value)?;
        }
        let mut alike = old.iter().flat_map(|old| old.of_kind(component.kind));
        let before = alike.find(|old| old.name == component.name);
        let before = before.map(|old| old.spec.service_configuration.as_ref());
        write_service(patch, &component, service, (before, nested.is_some()))?;
    }
    Ok(())
}

fn standalone(request: &Request<Standalone>, _: &NoSettings, patch: &mut Patch) -> Outcome {
    let Some(Standalone { owners, common, service: Some(service) }) = &request.object else {
        return Ok(());
    };
    let old = request.old_object.as_ref();
    let mut block = Block::of_spec(common, old.map(|old| &old.common));
    if owners.as_ref().and_then(Owners::manager).is_none() {
        write_common(patch, &mut block)?;
    }
    block.write_always(patch, "/commonConfiguration", json!({}))?;
    let component = ComponentView::standalone(&request.kind, &request.name, service);
    write_service(patch, &component, service, (old.map(|old| old.service.as_ref()), false))
}

/// What is in the commonConfiguration of a Manager, and of a component that has none.
fn write_common(patch: &mut Patch, block: &mut Block) -> Outcome {
    block.write(patch, "/commonConfiguration/logLevel", "info")?;
    let mode = "/commonConfiguration/authParameters/authMode";
    block.write(patch, mode, "noauth")?;
    if block.current.pointer(mode).and_then(Value::as_str) == Some("keystone") {
        let was_there = block.before(mode).and_then(Value::as_str) == Some("keystone");
        let write: Write = if was_there { Block::write } else { Block::write_always };
        for (path, value) in KEYSTONE {
            let path = format!("/commonConfiguration/authParameters/keystoneAuthParameters{path}");
            write(block, patch, &path, *value)?;
        }
    }
    Ok(())
}

/// `before` is what was stored of the component, which may have had no serviceConfiguration; none of a new one. `nested`:
/// whether the Manager says that its cluster is.
fn write_service<S>(
    patch: &mut Patch,
    component: &ComponentView<'_, S>,
    service: &Fields,
    (before, nested): (Option<Option<&Fields>>, bool),
) -> Outcome {
    let nested = nested || service.0.get("nested").is_some_and(|nested| !nested.is_null());
    let before = before.map(|fields| fields.map_or(Value::Null, |fields| fields.0.clone()));
    let mut block = Block { at: component.setting(""), current: service.0.clone(), before };
    // In a nested cluster kube-manager has another default, and the nodes' network is the cloud's.
    let defaults = defaults_of(component.kind, component.name)
        .filter(|(path, _)| !(nested && path == FABRIC_SNAT));
    for (path, value) in defaults {
        let write: Write = if path == REAPER { Block::write_always } else { Block::write };
        write(&mut block, patch, &path, value)?;
    }
    let link_local = "/linklocalServiceConfig";
    if component.kind == "Config" && block.current.pointer(link_local).is_some_and(Value::is_object)
    {
        let was_there = block.before(link_local).is_some();
        let write: Write = if was_there { Block::write } else { Block::write_always };
        for (path, value) in LINK_LOCAL {
            write(&mut block, patch, path, *value)?;
        }
    }
    Ok(())
}

policy! {
    name: "explicit-defaults",
    summary: "writes the defaults that do not depend on the cluster into the objects",
    settings: NoSettings,
    messages: [],
    mutate: [manager, standalone],
}
