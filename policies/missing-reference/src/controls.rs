//! The Control that a Vrouter or Webui names.

use opensdn_policy_components::{ComponentView, Item, Owners, Services};
use opensdn_policy_sdk::{Failure, Index, Message, Outcome, Severity, Verdict};
use serde::de::IgnoredAny;

use crate::Spec;

pub(crate) const OF_VROUTER: Message = Message {
    code: "OSDN1801",
    severity: Severity::Deny,
    title: "the vrouters name a Control that is not there",
    explanation: "The agents connect to the nodes of that Control. Without it tf-operator renders \
        an empty list and says nothing: the agents turn to the nodes of Config instead, which is \
        right only where control nodes run there too. Our operator waits for a Control that is named, \
        and takes the first by name where none is.",
    hint: "set controlInstance to the name of a Control: kubectl get controls; or name the control \
        nodes in the variable CONTROL_NODES of envVariablesConfig",
};

pub(crate) const OF_WEBUI: Message = Message {
    code: "OSDN1616",
    severity: Severity::Deny,
    title: "the web UI names a Control that is not there",
    explanation: "The web UI is configured with the nodes of that Control. tf-operator waits for it without \
        limit, for the empty name too. Our operator makes nothing for a name that no Control has, and takes the \
        only Control where none is named; of several it takes none.",
    hint: "set controlInstance to the name of a Control: kubectl get controls",
};

pub(crate) const CONTROLS: Index = Index {
    name: "controls",
    group: "tf.tungsten.io",
    kind: "Control",
    key: "",
    reads: &["/metadata/ownerReferences"],
};

/// A Manager's Controls are as good as there: the operator is about to make them.
///
/// By namespace: who makes thousands in one of his own that have a Control of the name must lock none in another.
pub(crate) const MANAGERS_WITH_CONTROLS: Index = Index {
    name: "managers-with-controls",
    group: "tf.tungsten.io",
    kind: "Manager",
    key: "/metadata/namespace",
    reads: &["/spec/services/controls"],
};

/// Which Controls may be named.
pub(crate) enum Controls<'a> {
    /// Those of the Manager that is judged, and those of the namespace that are not its own.
    OfManager { names: Vec<&'a str>, uid: Option<&'a str>, namespace: &'a str },
    /// Those of the namespace, and of its Managers.
    OfNamespace { namespace: &'a str },
    /// It is another's business.
    NotJudged,
}

impl<'a> Controls<'a> {
    pub(crate) fn of_manager(
        services: &'a Services<Spec>,
        uid: Option<&'a str>,
        namespace: &'a str,
    ) -> Self {
        let names = services.of_kind("Control").map(|control| control.name).collect();
        Self::OfManager { names, uid, namespace }
    }

    pub(crate) fn of_namespace(namespace: &'a str) -> Self {
        Self::OfNamespace { namespace }
    }

    pub(crate) fn judge(
        &self,
        component: &ComponentView<'_, Spec>,
        message: &Message,
        verdict: &mut Verdict,
    ) -> Outcome {
        let name = component.spec.service_configuration.control_instance.as_deref();
        let name = name.unwrap_or_default();
        let variables = &component.spec.service_configuration.env_variables_config;
        let known = match self {
            Self::NotJudged => true,
            // It is written last, so it wins.
            _ if variables.get("CONTROL_NODES").is_some_and(|nodes| !nodes.is_empty()) => true,
            _ if name.is_empty() => false,
            Self::OfManager { names, .. } if names.contains(&name) => true,
            Self::OfManager { uid, namespace, .. } => exists_apart_from(name, namespace, *uid)?,
            Self::OfNamespace { namespace } => {
                exists_apart_from(name, namespace, None)? || is_planned(name, namespace)?
            }
        };
        if known {
            return Ok(());
        }
        let title = component.title();
        let text = if name.is_empty() && component.kind == "Vrouter" {
            format!(
                "{title}: controlInstance is unset: tf-operator gives it no control nodes of a Control, our operator those \
                 of the first Control by name"
            )
        } else if name.is_empty() {
            format!(
                "{title}: controlInstance is unset: tf-operator waits for a Control without a name, our operator takes \
                 the only one if there are not several"
            )
        } else {
            format!("{title}: there is no Control {name:?}{}", self.scope())
        };
        let finding = message.at(component.setting("/controlInstance")).says(text);
        // The agents turn to the nodes of Config then, which are the right ones where control nodes run there
        // (tf-container-builder, containers/base/common.sh:168). Our operator takes a Control then, for the web UI only
        // where there are not several.
        let is_taken = component.kind == "Vrouter" || !self.are_several();
        let finding =
            if name.is_empty() && is_taken { finding.severity(Severity::Warn) } else { finding };
        verdict.add(match self {
            Self::OfManager { names, .. } if !names.is_empty() => {
                finding.hint(format!("set controlInstance to one of: {}", names.join(", ")))
            }
            _ => finding,
        });
        Ok(())
    }

    /// As far as it is known here.
    fn are_several(&self) -> bool {
        matches!(self, Self::OfManager { names, .. } if names.len() > 1)
    }

    fn scope(&self) -> String {
        match self {
            Self::OfManager { namespace, .. } => {
                format!(" in spec.services.controls, nor another in namespace {namespace}")
            }
            Self::OfNamespace { namespace } => format!(" in namespace {namespace}"),
            Self::NotJudged => String::new(),
        }
    }
}

/// Whether the Control is there and does not belong to the Manager with this UID: what that
/// Manager does not list any more is about to go.
fn exists_apart_from(name: &str, namespace: &str, manager: Option<&str>) -> Result<bool, Failure> {
    let Some(control) = CONTROLS.get(namespace, name)? else { return Ok(false) };
    let owners = control.part::<Owners>(0)?.unwrap_or_default();
    let owner = owners.manager().map(|owner| owner.uid.as_str());
    Ok(owner.is_none() || owner != manager)
}

fn is_planned(name: &str, namespace: &str) -> Result<bool, Failure> {
    for manager in MANAGERS_WITH_CONTROLS.find(namespace)? {
        let controls = manager.part::<Vec<Option<Item<IgnoredAny>>>>(0)?.unwrap_or_default();
        if controls.iter().flatten().any(|control| control.name() == name) {
            return Ok(true);
        }
    }
    Ok(false)
}
