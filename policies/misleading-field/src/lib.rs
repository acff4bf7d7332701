//! A field that does not do what it seems to.
//!
//! ```yaml
//! kind: Vrouter
//! spec:
//!   serviceConfiguration:
//!     agentMode: tsn                     # no effect; AGENT_MODE in envVariablesConfig has one
//!     physicalInterface: ens3,ens4       # two interfaces, and no l3mhCidr to use them with
//! ```
//!
//! tf-operator accepts 70 fields that it never reads, gives others a meaning of its own, and
//! ignores one of two that contradict each other. Nothing warns the administrator, who sees the
//! value in the object and believes it.
//!
//! What the operator makes of a Manager is not judged: the Manager has been. Fields that switch
//! protection off are the business of `plaintext`.

mod access;
mod data_plane;
mod dead;
mod functions;
mod interfaces;
mod keystone;
mod signer;
mod values;

use std::{collections::BTreeMap, fmt};

use opensdn_policy_components::{ComponentView, Owners, Services, null_as_default};
use opensdn_policy_sdk::{NoSettings, Outcome, Pointer, Reads, Request, Verdict, policy};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

use keystone::AuthParameters;

#[derive(Reads)]
#[reads(group = "tf.tungsten.io", kind = "Manager")]
struct Manager {
    #[read("/spec/commonConfiguration/authParameters")]
    authentication: Option<AuthParameters>,
    #[read("/spec/commonConfiguration/certSigner")]
    signer: Option<String>,
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
    #[read("/spec")]
    spec: Option<Spec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    common_configuration: Common,
    #[serde(deserialize_with = "null_as_default")]
    service_configuration: SetFields,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Common {
    auth_parameters: Option<AuthParameters>,
}

/// The fields of a serviceConfiguration that are given: neither null nor an empty text. The large
/// ones, which no rule here is about, are passed over.
#[derive(Clone, Debug, Default)]
struct SetFields(BTreeMap<String, Value>);

const IGNORED: [&str; 3] = ["containers", "linklocalServices", "tcpListenOptions"];

impl SetFields {
    fn has(&self, field: &str) -> bool {
        self.0.contains_key(field)
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.0.get(field).and_then(Value::as_str)
    }

    /// The fields that are texts.
    fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|(field, value)| Some((field.as_str(), value.as_str()?)))
    }

    fn number(&self, field: &str) -> Option<i64> {
        self.0.get(field).and_then(Value::as_i64)
    }

    /// A text or a number, as text.
    fn shown(&self, field: &str) -> Option<String> {
        match self.0.get(field)? {
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// The variable of that name in envVariablesConfig.
    fn variable(&self, name: &str) -> Option<&str> {
        self.0.get("envVariablesConfig")?.get(name)?.as_str()
    }

    /// Whether VrouterProfiles are named, whose variables win over all else with our operator.
    fn names_profiles(&self) -> bool {
        self.0.get("profiles").and_then(Value::as_array).is_some_and(|all| !all.is_empty())
    }

    fn switch(&self, field: &str) -> Option<bool> {
        self.0.get(field).and_then(Value::as_bool)
    }
}

impl<'de> Deserialize<'de> for SetFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SetFieldsVisitor)
    }
}

struct SetFieldsVisitor;

impl<'de> Visitor<'de> for SetFieldsVisitor {
    type Value = SetFields;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SetFields, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some(field) = map.next_key::<String>()? {
            if IGNORED.contains(&field.as_str()) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value: Value = map.next_value()?;
            if !value.is_null() && value.as_str() != Some("") {
                fields.insert(field, value);
            }
        }
        Ok(SetFields(fields))
    }
}

fn manager(request: &Request<Manager>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(Manager { authentication, signer, services, nested }) = &request.object else {
        return Ok(());
    };
    if let Some(signer) = signer {
        signer::judge(signer, "/spec/commonConfiguration/certSigner".into(), verdict);
    }
    if let Some(authentication) = authentication {
        let at = Pointer::from("/spec/commonConfiguration/authParameters");
        keystone::judge(authentication, &at, verdict);
    }
    let mode = authentication.as_ref().map(AuthParameters::mode).unwrap_or_default();
    for component in services.iter().flat_map(Services::walk) {
        access::judge(&component, mode, verdict);
        if component.spec.common_configuration.auth_parameters.is_some() {
            keystone::ignored(&component, verdict);
        }
        judge(&component, nested.is_some(), verdict);
    }
    Ok(())
}

fn standalone(request: &Request<Standalone>, _: &NoSettings, verdict: &mut Verdict) -> Outcome {
    let Some(Standalone { owners, spec: Some(spec) }) = &request.object else { return Ok(()) };
    if owners.as_ref().and_then(Owners::manager).is_some() {
        return Ok(());
    }
    let component = ComponentView::standalone(&request.kind, &request.name, spec);
    let authentication = spec.common_configuration.auth_parameters.as_ref();
    access::judge(
        &component,
        authentication.map(AuthParameters::mode).unwrap_or_default(),
        verdict,
    );
    if let Some(authentication) = authentication {
        keystone::judge(authentication, &component.shared("/authParameters"), verdict);
    }
    judge(&component, false, verdict);
    Ok(())
}

/// `nested`: whether the Manager says that its cluster is.
fn judge(component: &ComponentView<'_, Spec>, nested: bool, verdict: &mut Verdict) {
    dead::judge(component, verdict);
    match component.kind {
        "Cassandra" => values::judge_heap(component, verdict),
        "Kubemanager" => {
            values::judge_fabric(component, nested, verdict);
            values::judge_orchestrator(component, verdict);
        }
        "Vrouter" => {
            values::judge_orchestrator(component, verdict);
            values::judge_pages(component, verdict);
            data_plane::judge(component, verdict);
            interfaces::judge(component, verdict);
            values::judge_paths(component, verdict);
            functions::judge(component, verdict);
        }
        _ => {}
    }
}

policy! {
    name: "misleading-field",
    summary: "every field does what it seems to",
    settings: NoSettings,
    messages: [
        keystone::ADDRESS,
        keystone::PASSWORD,
        keystone::TWO_PASSWORDS,
        keystone::ADMIN_PORT,
        keystone::IGNORED,
        dead::PORT,
        access::MODE,
        dead::ANALYTICS,
        dead::VROUTER,
        interfaces::INTERFACES,
        interfaces::L3MH,
        values::FABRIC,
        values::HEAP,
        functions::FUNCTIONS,
        values::PATHS,
        values::ORCHESTRATOR,
        values::PAGES,
        data_plane::DPDK,
        signer::SIGNER,
    ],
    validate: [manager, standalone, functions::profile],
}
