//! Which VrouterProfiles may stand in one list: a node has one data plane. Judged where a list is written, and where a
//! profile in it changes.

use std::collections::BTreeMap;

use opensdn_policy_components::{ComponentView, Item};
use opensdn_policy_sdk::{
    Failure, Found, Message, Outcome, Pointer, Reads, Request, Severity, Verdict,
};
use serde::de::IgnoredAny;

use crate::{
    Settings, Spec,
    profiles::{MANAGERS, PROFILES, VROUTERS},
};

pub(crate) const CONFLICT: Message = Message {
    code: "OSDN1822",
    severity: Severity::Deny,
    title: "the vrouters name profiles for two data planes",
    explanation: "A node has one data plane, the kernel module or a DPDK process. Of a profile for \
        each the later one would win, and the settings of the other would stay. Virtual functions \
        and variables go with either. A profile whose nodeSelector none of the nodes has is left out of the list, so \
        where one of the two has a nodeSelector it is a warning.",
    hint: "leave the profiles of one data plane in the list; a profile with moreConfig alone is for \
        both",
};

/// What is done about a pair of which one may be for other nodes.
const SEPARATE: &str = "let no node of the group match both of them, or leave the profiles of one data plane in the list";

type Selector = BTreeMap<String, IgnoredAny>;

/// What a profile says of the data plane.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    name: String,
    kernel: bool,
    dpdk: bool,
    /// It has a nodeSelector, so that it may be for none of the nodes of a group.
    chooses_nodes: bool,
}

impl Profile {
    pub(crate) fn of(found: &Found) -> Result<Self, Failure> {
        let is_given = |part| -> Result<bool, Failure> {
            Ok(found.part::<Option<IgnoredAny>>(part)?.flatten().is_some())
        };
        let selector = found.part::<Option<Selector>>(2)?.flatten();
        Ok(Self {
            name: found.name().to_owned(),
            kernel: is_given(0)?,
            dpdk: is_given(1)?,
            chooses_nodes: selector.is_some_and(|labels| !labels.is_empty()),
        })
    }

    fn of_changed(changed: &ChangedProfile, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kernel: changed.kernel.is_some(),
            dpdk: changed.dpdk.is_some(),
            chooses_nodes: changed.selector.as_ref().is_some_and(|labels| !labels.is_empty()),
        }
    }

    fn plane(&self) -> &'static str {
        if self.dpdk { "DPDK" } else { "the kernel module" }
    }

    fn excludes(&self, other: &Self) -> bool {
        (self.kernel && other.dpdk) || (self.dpdk && other.kernel)
    }
}

/// Of these the last, before all others one that is for every node.
fn certain<'a>(all: impl Iterator<Item = &'a Profile>) -> Option<&'a Profile> {
    all.max_by_key(|profile| !profile.chooses_nodes)
}

/// Which of the two are for some nodes only, for a message; nothing where none is.
fn choosing(one: &Profile, other: &Profile) -> Option<String> {
    let choosing: Vec<_> = [one, other]
        .into_iter()
        .filter(|profile| profile.chooses_nodes)
        .map(|profile| profile.name.as_str())
        .collect();
    match choosing.as_slice() {
        [] => None,
        [one] => {
            Some(format!("{one} has a nodeSelector: whether both are for one node is not known"))
        }
        _ => {
            Some("both have a nodeSelector: whether they are for one node is not known".to_owned())
        }
    }
}

fn add(at: Pointer, text: String, pair: (&Profile, &Profile), verdict: &mut Verdict) {
    verdict.add(match choosing(pair.0, pair.1) {
        None => CONFLICT.at(at).says(text),
        Some(why) => {
            let finding = CONFLICT.at(at).severity(Severity::Warn);
            finding.says(format!("{text}; {why}")).hint(SEPARATE)
        }
    });
}

/// Judges the profiles that a Vrouter names.
pub(crate) fn judge(component: &ComponentView<'_, Spec>, all: &[Profile], verdict: &mut Verdict) {
    let kernel = certain(all.iter().filter(|profile| profile.kernel));
    let dpdk = certain(all.iter().filter(|profile| profile.dpdk));
    if let (Some(kernel), Some(dpdk)) = (kernel, dpdk) {
        let text = format!(
            "{}: profile {} is for the kernel module, {} for DPDK",
            component.title(),
            kernel.name,
            dpdk.name
        );
        add(component.setting("/profiles"), text, (kernel, dpdk), verdict);
    }
}

#[derive(Reads)]
#[reads(group = "opensdn.io", kind = "VrouterProfile", operations(Update))]
pub(crate) struct ChangedProfile {
    #[read("/spec/kernel")]
    kernel: Option<IgnoredAny>,
    #[read("/spec/dpdk")]
    dpdk: Option<IgnoredAny>,
    #[read("/spec/nodeSelector")]
    selector: Option<Selector>,
}

/// Judges a profile that is for another data plane from now on, or for more nodes, by those beside which it is named.
pub(crate) fn changed_profile(
    request: &Request<ChangedProfile>,
    _: &Settings,
    verdict: &mut Verdict,
) -> Outcome {
    let (Some(new), Some(old)) = (&request.object, &request.old_object) else { return Ok(()) };
    let new = Profile::of_changed(new, &request.name);
    let old = Profile::of_changed(old, &request.name);
    let is_new = (new.kernel && !old.kernel) || (new.dpdk && !old.dpdk);
    let is_for_more = old.chooses_nodes && !new.chooses_nodes;
    // Where it has changed nothing of that, each that names it has been judged.
    if !is_new && !is_for_more {
        return Ok(());
    }
    let at = Pointer::from(if new.dpdk { "/spec/dpdk" } else { "/spec/kernel" });
    for (user, lists) in users(&request.name, &request.namespace)? {
        for list in lists.iter().filter(|list| list.contains(&request.name)) {
            let others = others(list, &request.name, &request.namespace)?;
            if let Some(other) = certain(others.iter().filter(|other| new.excludes(other))) {
                let text = format!(
                    "VrouterProfile {} would be for {}, and {user} names it beside {}, which is for {}",
                    new.name,
                    new.plane(),
                    other.name,
                    other.plane()
                );
                add(at.clone(), text, (&new, other), verdict);
            }
        }
    }
    Ok(())
}

/// The others of a list, as far as they are there.
fn others(list: &[String], name: &str, namespace: &str) -> Result<Vec<Profile>, Failure> {
    let mut others = Vec::new();
    for other in list.iter().filter(|other| *other != name) {
        if let Some(found) = PROFILES.get(namespace, other)? {
            others.push(Profile::of(&found)?);
        }
    }
    Ok(others)
}

/// How a message calls it, and the lists of profiles that it has.
type User = (String, Vec<Vec<String>>);

/// Who names the profile.
pub(crate) fn users(name: &str, namespace: &str) -> Result<Vec<User>, Failure> {
    let mut users = Vec::new();
    for found in MANAGERS.find(namespace)? {
        let groups = found.part::<Vec<Option<Item<Spec>>>>(0)?.unwrap_or_default();
        let lists = groups.iter().flatten().filter_map(|group| {
            let vrouter = group.component("Vrouter", &Pointer::from(""))?;
            Some(vrouter.spec.service_configuration.profiles.clone())
        });
        users.push((format!("Manager {}", found.name()), lists.collect()));
    }
    for found in VROUTERS.find(namespace)? {
        let list = found.part::<Vec<String>>(0)?.unwrap_or_default();
        users.push((format!("Vrouter {}", found.name()), vec![list]));
    }
    let names_it =
        |lists: &Vec<Vec<String>>| lists.iter().any(|list| list.iter().any(|one| one == name));
    users.retain(|(_, lists)| names_it(lists));
    Ok(users)
}
