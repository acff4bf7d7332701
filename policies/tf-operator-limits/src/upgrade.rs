//! What tf-operator's upgrade (ZIU) cannot cope with. It begins when the tag of one container changes, the first
//! of the first service in [`LEADS`], and goes through twelve kinds, one after the other, without a time limit
//! and without a way back.

use opensdn_policy_components::{ComponentView, component::Component};
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Common, Spec};

pub(crate) const ABSENT: Message = Message {
    code: "OSDN2001",
    severity: Severity::Deny,
    title: "tf-operator's upgrade ends with a panic where a service is absent",
    explanation: "It walks through a fixed list of kinds. Of one that the Manager does not name it reads \
        the spec all the same: the operator's process ends, begins again, and ends at the same place. Of \
        cassandras, redis and controls it waits for one without limit instead.",
    hint: "add the services to the Manager first, in a change of its own",
};

pub(crate) const KEYSTONE: Message = Message {
    code: "OSDN2002",
    severity: Severity::Deny,
    title: "tf-operator's upgrade uses Keystone's parameters without their defaults",
    explanation: "While it upgrades it copies the specs as they stand. In the configuration of every service a port or \
        password that is unset becomes the text <nil>, and what else is unset an empty one. Without address, \
        protocol, adminPort, user or password no service gets a token until the upgrade is over; with a lack of \
        others alone this is a warning.",
    hint: "write the parameters out before the upgrade",
};

pub(crate) const LOG_LEVEL: Message = Message {
    code: "OSDN2003",
    severity: Severity::Warn,
    title: "tf-operator's upgrade restarts everything twice",
    explanation: "While it upgrades it writes an empty logLevel, and its default afterwards. The level \
        is in the environment of every container, so all of them restart again, all kinds at once.",
    hint: "set spec.commonConfiguration.logLevel before the upgrade, to debug if it was unset",
};

pub(crate) const RUNNING: Message = Message {
    code: "OSDN2004",
    severity: Severity::Deny,
    title: "tf-operator upgrades the cluster now",
    explanation: "What changes meanwhile is mixed into the stages that are left, and not into those that \
        are done. Vrouters have no stage: what changes of them alone it does when it is over.",
    hint: "wait until it is done: kubectl -n tf get managers.tf.tungsten.io -o \
        jsonpath='{.items[*].status.ziuState}' says -1",
};

/// Of images alone: to put the image right that it hangs at, and to start the process again, is the only way out
/// (upstream's `cmd/manager/main.go:82-92`).
const IF_IT_HANGS: &str = "wait until it is done; if it hangs at an image that cannot be had, put that right and restart \
    the tf-operator pod, which begins again at the first stage";

pub(crate) const INACTIVE: Message = Message {
    code: "OSDN2006",
    severity: Severity::Deny,
    title: "an upgrade would begin while services are not active",
    explanation: "tf-operator takes all services for active when it begins, and waits without limit at the first that \
        is not so after its turn, with one half of the cluster in the new version and one in the old. A database or a \
        queue that is not active is refused: its turn is after that of Config or Analytics, which need \
        it; another service may come up by the new image itself. It does not wait \
        for vrouters, nor for the condition Ready of the Manager, which counts them too. Where the service \
        that begins an upgrade has never been active there may be none to begin: this is a warning then.",
    hint: "bring the services up first; which are not active says: kubectl -n tf get \
        managers.tf.tungsten.io -o yaml",
};

/// What is read of the status of a Manager.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Status {
    /// The stage, or -1. Of the first one, which takes some seconds, nothing is stored (`omitempty` in upstream's
    /// `pkg/apis/tf/v1alpha1/manager_types.go:198`): that is no different from a Manager that it has not seen yet.
    ziu_state: Option<i64>,
    /// What is said of each service, by its key in `spec.services`: one, or a list. The rest of the status
    /// is among it.
    #[serde(flatten)]
    services: Map<String, Value>,
}

impl Status {
    /// Whether it upgrades the cluster.
    pub(crate) fn is_of_an_upgrade(&self) -> bool {
        self.stage().is_some()
    }

    fn stage(&self) -> Option<i64> {
        self.ziu_state.filter(|state| *state >= 0)
    }

    /// Whether it says of the component that it is active, if it says anything of it.
    fn active(&self, component: &ComponentView<'_, Spec>) -> Option<bool> {
        let said =
            Component::of_kind(component.kind).and_then(|known| self.services.get(known.key));
        let all = said.map_or(&[][..], |said| match said {
            Value::Array(items) => items,
            one => std::slice::from_ref(one),
        });
        let is_it =
            |service: &&Value| service.get("name").and_then(Value::as_str) == Some(component.name);
        let service = all.iter().find(is_it)?;
        Some(service.get("active") == Some(&Value::Bool(true)))
    }

    fn is_inactive(&self, component: &ComponentView<'_, Spec>) -> bool {
        self.active(component) == Some(false)
    }

    /// Not where nothing is known.
    fn is_active(&self, component: &ComponentView<'_, Spec>) -> bool {
        self.active(component) == Some(true)
    }
}

/// A change of a Manager.
pub(crate) struct Change<'a> {
    pub(crate) common: &'a Common,
    pub(crate) before: &'a [ComponentView<'a, Spec>],
    pub(crate) after: &'a [ComponentView<'a, Spec>],
    pub(crate) status: Option<&'a Status>,
    pub(crate) edits: Edits,
}

/// What of the spec changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edits {
    Nothing,
    /// Vrouters, and nothing else.
    Vrouters,
    /// Images of services, and of vrouters whatever it is.
    Images,
    Other,
}

impl Edits {
    pub(crate) fn of<'a>(
        (common_before, before): (&Common, &'a [ComponentView<'a, Spec>]),
        (common_after, after): (&Common, &'a [ComponentView<'a, Spec>]),
    ) -> Self {
        let staged =
            |all: &'a [ComponentView<'a, Spec>]| all.iter().filter(|one| one.kind != "Vrouter");
        let same = |alike: fn(&Spec, &Spec) -> bool| {
            common_before == common_after
                && staged(before).count() == staged(after).count()
                && staged(before).zip(staged(after)).all(|(old, new)| {
                    (old.kind, old.name) == (new.kind, new.name) && alike(old.spec, new.spec)
                })
        };
        let identity = |one: &ComponentView<'a, Spec>| (one.kind, one.name, one.spec);
        if common_before == common_after
            && before.iter().map(identity).eq(after.iter().map(identity))
        {
            Self::Nothing
        } else if same(|old, new| old == new) {
            Self::Vrouters
        } else if same(|old, new| without_images(old) == without_images(new)) {
            Self::Images
        } else {
            Self::Other
        }
    }
}

fn without_images(spec: &Spec) -> Spec {
    let mut spec = spec.clone();
    let containers = spec.service_configuration.get_mut("containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
        container.remove("image");
    }
    spec
}

/// The kinds that the upgrade walks through (upstream's `pkg/apis/tf/v1alpha1/base_types.go:104`), with
/// their keys.
const WALKED: &[(&str, &str)] = &[
    ("Config", "config"),
    ("Analytics", "analytics"),
    ("AnalyticsAlarm", "analyticsAlarm"),
    ("AnalyticsSnmp", "analyticsSnmp"),
    ("Redis", "redis"),
    ("QueryEngine", "queryengine"),
    ("Cassandra", "cassandras"),
    ("Zookeeper", "zookeeper"),
    ("Rabbitmq", "rabbitmq"),
    ("Control", "controls"),
    ("Webui", "webui"),
];

/// Those whose turn comes after that of a service that needs them (upstream's `pkg/apis/tf/v1alpha1/base_types.go:104`).
/// That they are not active Config and Analytics do not see: their status is changed before
/// (`pkg/controller/manager/ziu_2011_21.go:48-70`).
const NEEDED: &[&str] = &["Cassandra", "Rabbitmq", "Redis", "Zookeeper"];

/// The services of which the first that a Manager has decides whether an upgrade begins (upstream's
/// `pkg/apis/tf/v1alpha1/base_types.go:2130-2179`).
const LEADS: &[&str] = &[
    "Kubemanager",
    "Webui",
    "Control",
    "Rabbitmq",
    "Zookeeper",
    "Cassandra",
    "QueryEngine",
    "Redis",
    "AnalyticsSnmp",
    "AnalyticsAlarm",
    "Analytics",
    "Config",
];

/// Parameters of Keystone that get their defaults only where it does not upgrade, and without which no service gets a
/// token (upstream's `pkg/apis/tf/v1alpha1/auth_types.go:53-107`, `templates/config_config.go:138-146`).
const NEEDED_OF_KEYSTONE: &[&str] =
    &["address", "adminPassword", "adminPort", "adminUsername", "authProtocol"];

/// Those that one service alone reads, or that Keystone may do without (`templates/webui_config.go:27,57`,
/// `templates/config_config.go:141,157-158`).
const MORE_OF_KEYSTONE: &[&str] = &["adminTenant", "port", "projectDomainName", "userDomainName"];

/// An image in its two parts.
pub(crate) struct Image<'a> {
    pub(crate) name: &'a str,
    pub(crate) tag: &'a str,
}

/// The images of a component by the names of their containers, as tf-operator reads them: the tag is
/// what stands behind the last colon.
pub(crate) fn images<'a>(component: &'a ComponentView<'_, Spec>) -> Vec<(&'a str, Image<'a>)> {
    let containers = component.spec.given("containers").and_then(Value::as_array);
    let text = |container: &'a Value, field| container.get(field).and_then(Value::as_str);
    let image = |container: &'a Value| {
        let (name, tag) = text(container, "image")?.rsplit_once(':')?;
        Some((text(container, "name")?, Image { name, tag }))
    };
    containers.into_iter().flatten().filter_map(image).collect()
}

/// The tag of the first container.
fn first_tag<'a>(component: &'a ComponentView<'_, Spec>) -> Option<&'a str> {
    tag(component.spec.given("containers")?.as_array()?.first()?)
}

/// What tf-operator takes for the tag of a container: what stands behind the last colon, else all.
pub(crate) fn tag(container: &Value) -> Option<&str> {
    let image = container.get("image")?.as_str().filter(|image| !image.is_empty())?;
    image.rsplit(':').next()
}

/// The service that decides whether an upgrade begins.
pub(crate) fn leader<'a>(
    components: &'a [ComponentView<'a, Spec>],
) -> Option<&'a ComponentView<'a, Spec>> {
    LEADS.iter().find_map(|kind| components.iter().find(|one| one.kind == *kind))
}

/// The service that begins an upgrade, with the tags of its first container before and after; none where
/// none begins, whatever other images change.
pub(crate) fn begins<'a>(
    before: &'a [ComponentView<'a, Spec>],
    after: &'a [ComponentView<'a, Spec>],
) -> Option<(&'a ComponentView<'a, Spec>, &'a str, &'a str)> {
    let new = leader(after)?;
    let old = before.iter().find(|old| (old.kind, old.name) == (new.kind, new.name))?;
    let (was, is) = (first_tag(old)?, first_tag(new)?);
    (was != is).then_some((new, was, is))
}

pub(crate) fn judge(change: &Change<'_>, verdict: &mut Verdict) {
    let status = change.status.cloned().unwrap_or_default();
    judge_running(change, &status, verdict);
    let Some((component, ..)) = begins(change.before, change.after) else { return };
    let at = component.setting("/containers");
    // It compares the image of the StatefulSet, and what never came up may have none.
    let is_certain = status.is_active(component);
    let severity = |is_damage: bool| match is_certain && is_damage {
        true => Severity::Deny,
        false => Severity::Warn,
    };
    let absent: Vec<_> = WALKED
        .iter()
        .filter(|(kind, _)| change.after.iter().all(|component| component.kind != *kind))
        .map(|(_, key)| *key)
        .collect();
    if !absent.is_empty() {
        let text = format!(
            "a limit of tf-operator: its upgrade does not end, for the Manager has no {}",
            absent.join(", ")
        );
        verdict.add(ABSENT.at(&at).says(text).severity(severity(true)));
    }
    judge_common(change.common, severity(true), verdict);
    let inactive = change.after.iter();
    let inactive: Vec<_> = inactive
        .filter(|component| component.kind != "Vrouter" && status.is_inactive(component))
        .collect();
    if !inactive.is_empty() {
        let is_damage = inactive.iter().any(|component| NEEDED.contains(&component.kind));
        let titles: Vec<_> = inactive.iter().map(|component| component.title()).collect();
        let text = format!(
            "a limit of tf-operator: its upgrade waits without limit until each service is active, and these are not \
             active: {}",
            titles.join(", ")
        );
        verdict.add(INACTIVE.at(&at).says(text).severity(severity(is_damage)));
    }
}

/// A change while it upgrades.
fn judge_running(change: &Change<'_>, status: &Status, verdict: &mut Verdict) {
    let Some(state) = status.stage() else { return };
    let what = match change.edits {
        Edits::Nothing => return,
        Edits::Vrouters => "and changes vrouters only when that is over",
        Edits::Images | Edits::Other => "and a change would get between its stages",
    };
    let text = format!(
        "a limit of tf-operator: it upgrades the cluster (status.ziuState is {state}), {what}"
    );
    let finding = RUNNING.at("/spec").says(text);
    verdict.add(match change.edits {
        Edits::Nothing | Edits::Other => finding,
        Edits::Vrouters => finding.severity(Severity::Warn),
        Edits::Images => finding.severity(Severity::Warn).hint(IF_IT_HANGS),
    });
}

/// `severity` is that of damage.
fn judge_common(common: &Common, severity: Severity, verdict: &mut Verdict) {
    let at = Pointer::from("/spec/commonConfiguration");
    if common.has_keystone() {
        let parameters = common.auth_parameters.get("keystoneAuthParameters");
        let value = |field: &str| parameters.and_then(|all| all.get(field));
        let is_unset =
            |field: &&str| value(field).is_none_or(|value| value.is_null() || *value == "");
        // Without TLS it means nothing.
        let is_secure = value("authProtocol").and_then(Value::as_str) == Some("https");
        let insecure = Some("insecure").filter(|_| is_secure);
        let all = NEEDED_OF_KEYSTONE.iter().chain(MORE_OF_KEYSTONE).copied().chain(insecure);
        let unset: Vec<_> = all.filter(is_unset).collect();
        if !unset.is_empty() {
            let is_damage = unset.iter().any(|field| NEEDED_OF_KEYSTONE.contains(field));
            let severity = if is_damage { severity } else { Severity::Warn };
            let text = format!(
                "a limit of tf-operator: its upgrade writes <nil> or nothing for what is unset of \
                 Keystone: {}",
                unset.join(", ")
            );
            let hint = "set them in keystoneAuthParameters before the upgrade; adminPassword may be taken \
                out again afterwards";
            let at = at.join("/authParameters/keystoneAuthParameters");
            verdict.add(KEYSTONE.at(at).says(text).hint(hint).severity(severity));
        }
    }
    if common.log_level.is_empty() {
        let text = "a limit of tf-operator: logLevel is unset, so everything restarts once more after its \
            upgrade";
        verdict.add(LOG_LEVEL.at(at.key("logLevel")).says(text));
    }
}
