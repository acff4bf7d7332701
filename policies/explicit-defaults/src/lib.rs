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
//! which its scripts print private keys into the log. It is written on creation only: it is in the
//! environment of every container, so that whatever writes it into a running cluster, the edit of an
//! annotation even, restarts all of it (tf-operator, `pkg/apis/tf/v1alpha1/base_types.go:755-801`).
//! For the same reason a second database gets ports of its own only when it comes: one that runs and
//! names none has those of the code.

mod presence;
mod table;

use opensdn_policy_components::{ComponentView, Owners, Services};
use opensdn_policy_sdk::{NoSettings, Operation, Outcome, Patch, Pointer, Reads, Request, policy};
use serde::Deserialize;
use serde_json::{Value, json};

use presence::Fields;
use table::{KEYSTONE, LINK_LOCAL, defaults_of};

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/spec/commonConfiguration")]
    common: Option<Value>,
    #[read("/spec/services")]
    services: Option<Services<Spec>>,
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
    let Some(Manager { common, services }) = &request.object else { return Ok(()) };
    if common.is_none() && services.is_none() {
        return Ok(());
    }
    let mut spec = json!({"commonConfiguration": common});
    write_common(patch, &mut spec, request.operation)?;
    let at = Pointer::from("/spec");
    patch.default_value(&mut spec, &at, "/commonConfiguration/certKeyLength", 4096)?;
    patch.default_value(&mut spec, &at, "/commonConfiguration/certSigner", "SelfSignedCA")?;
    let before = request.old_object.as_ref().and_then(|old| old.services.as_ref());
    for component in services.iter().flat_map(Services::walk) {
        let Some(service) = &component.spec.service_configuration else { continue };
        if component.spec.common_configuration.is_none() {
            patch.default_value(
                &mut json!({}),
                &component.at,
                "/commonConfiguration",
                json!({}),
            )?;
        }
        let mut alike = before.iter().flat_map(|before| before.of_kind(component.kind));
        let is_there = alike.any(|old| old.name == component.name);
        let operation = if is_there { request.operation } else { Operation::Create };
        write_service(patch, &component, service, operation)?;
    }
    Ok(())
}

fn standalone(request: &Request<Standalone>, _: &NoSettings, patch: &mut Patch) -> Outcome {
    let Some(Standalone { owners, common, service: Some(service) }) = &request.object else {
        return Ok(());
    };
    let mut spec = json!({"commonConfiguration": common});
    if owners.as_ref().and_then(Owners::manager).is_some() {
        patch.default_value(&mut spec, &"/spec".into(), "/commonConfiguration", json!({}))?;
    } else {
        write_common(patch, &mut spec, request.operation)?;
    }
    let component = ComponentView::standalone(&request.kind, &request.name, service);
    write_service(patch, &component, service, request.operation)
}

/// What is in the commonConfiguration of a Manager, and of a component that has none.
fn write_common(patch: &mut Patch, spec: &mut Value, operation: Operation) -> Outcome {
    let at = Pointer::from("/spec");
    if operation == Operation::Create {
        patch.default_value(spec, &at, "/commonConfiguration/logLevel", "info")?;
    }
    let mode = "/commonConfiguration/authParameters/authMode";
    patch.default_value(spec, &at, mode, "noauth")?;
    if spec.pointer(mode).and_then(Value::as_str) == Some("keystone") {
        for (path, value) in KEYSTONE {
            let path = format!("/commonConfiguration/authParameters/keystoneAuthParameters{path}");
            patch.default_value(spec, &at, &path, value)?;
        }
    }
    Ok(())
}

fn write_service<S>(
    patch: &mut Patch,
    component: &ComponentView<'_, S>,
    service: &Fields,
    operation: Operation,
) -> Outcome {
    let mut current = service.0.clone();
    let at = component.setting("");
    for (path, value) in defaults_of(component.kind, component.name, operation) {
        patch.default_value(&mut current, &at, &path, value)?;
    }
    if component.kind == "Config"
        && current.get("linklocalServiceConfig").is_some_and(Value::is_object)
    {
        for (path, value) in LINK_LOCAL {
            patch.default_value(&mut current, &at, path, value)?;
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
