//! What a group of vrouters is given, as the operator renders it: its own fields over those of its VrouterProfiles, and
//! variables of the environment over both. Only what checks of nodes need of it: DPDK, huge pages, virtual
//! functions, encapsulations.

use std::collections::BTreeSet;

use opensdn_config_api::encapsulation::{Encapsulation, Priorities};
use opensdn_crds::virtual_functions::number_of_virtual_functions;
use opensdn_crds::vrouter_profile::merged;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::report::Verdict;
use super::roles;
use super::world::{Service, World};
use crate::snapshot::{Read, list, name, namespace, text};

/// What upstream's images take where nothing is said (`containers/base/common.sh`).
const DEFAULT_DRIVER: &str = "uio_pci_generic";

/// A Vrouter of a Manager, and its settings or why they are not known.
pub(super) struct Group<'a> {
    pub(super) service: Service<'a>,
    pub(super) settings: Result<Settings, String>,
}

/// What a group of vrouters is given.
#[derive(Debug, Default)]
pub(super) struct Settings {
    fields: Value,
    profiles: Value,
    variables: Map<String, Value>,
}

/// Virtual functions that are asked for: of an interface so many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WantedFunctions {
    pub(super) interface: String,
    pub(super) count: u32,
}

/// Huge pages that are asked for, by their sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WantedPages {
    pub(super) of_2_mib: u64,
    pub(super) of_1_gib: u64,
}

impl WantedPages {
    pub(super) fn is_any(self) -> bool {
        self.of_2_mib > 0 || self.of_1_gib > 0
    }
}

/// What is said where there is no vrouter to look for, or that is not known.
pub(super) fn no_vrouter(world: &World) -> Option<Verdict> {
    if let Some(why) = world.managers.why_unknown() {
        return Some(Verdict::uncertain(format!("Managers may not be read: {why}")));
    }
    let is_there = world.services().iter().any(|service| service.facts.kind == "Vrouter");
    (!is_there).then(|| Verdict::skipped("no Manager here has vrouters"))
}

/// The encapsulations that vrouters on the node are told to use; nothing where it is left to the network, or not known.
pub(crate) fn encapsulations(world: &World, node: &Value) -> Option<BTreeSet<String>> {
    let groups = groups(world);
    let mut all = BTreeSet::new();
    for one in groups.iter().filter(|one| roles::is_selected(&one.service, node)) {
        let stated = one.settings.as_ref().ok()?.of("/encapsulationPriorities")?;
        all.extend(list(stated, "").filter_map(Value::as_str).map(str::to_owned));
    }
    (!all.is_empty()).then_some(all)
}

/// The order of encapsulations of a Manager's network: all groups that name one name the same. Nothing where none does,
/// or where it is not known.
pub(super) fn priorities(groups: &[Group<'_>], manager: &Value) -> Option<Vec<Encapsulation>> {
    let own = groups.iter().filter(|one| std::ptr::eq(one.service.manager, manager));
    let settings: Vec<&Settings> =
        own.map(|one| one.settings.as_ref().ok()).collect::<Option<_>>()?;
    let mut stated = settings.iter().filter_map(|one| one.of("/encapsulationPriorities"));
    let first = stated.next()?;
    // The operator writes nothing where they differ.
    let order = stated.all(|other| other == first).then(|| Priorities::deserialize(first).ok());
    order.flatten().map(Vec::from)
}

/// The groups of all Managers.
pub(super) fn groups(world: &World) -> Vec<Group<'_>> {
    let vrouters = world.services().into_iter().filter(|one| one.facts.kind == "Vrouter");
    vrouters.map(|service| Group { settings: settings(world, &service), service }).collect()
}

fn settings(world: &World, vrouter: &Service<'_>) -> Result<Settings, String> {
    let fields = vrouter.spec.pointer("/serviceConfiguration").cloned().unwrap_or_default();
    let names = list(&fields, "/profiles").filter_map(Value::as_str);
    let profiles = names.filter_map(|name| profile(world, vrouter, name).transpose());
    let profiles = merged(profiles.collect::<Result<Vec<_>, _>>()?);
    let object = |value: Option<&Value>| value.and_then(Value::as_object).cloned();
    let mut variables = object(fields.get("envVariablesConfig")).unwrap_or_default();
    variables.extend(object(profiles.get("moreConfig")).unwrap_or_default());
    Ok(Settings { fields, profiles, variables })
}

/// The profile of that name, unless it is for other nodes.
fn profile<'a>(
    world: &'a World,
    vrouter: &Service<'_>,
    of: &str,
) -> Result<Option<&'a Value>, String> {
    if let Some(why) = world.profiles.why_unknown() {
        return Err(format!("VrouterProfiles may not be read: {why}"));
    }
    let place = namespace(vrouter.manager);
    let mut all = world.profiles.items().iter();
    let found = all.find(|one| name(one) == of && namespace(one) == place);
    let found = found.ok_or_else(|| format!("there is no VrouterProfile {place}/{of}"))?;
    let Some(spec) = found.get("spec") else { return Ok(None) };
    let labels = spec.get("nodeSelector").and_then(Value::as_object);
    let Some(labels) = labels.filter(|labels| !labels.is_empty()) else { return Ok(Some(spec)) };
    let Read::Known(nodes) = &world.nodes else {
        return Err(format!("for which nodes VrouterProfile {of} is: nodes may not be read"));
    };
    let has = |node: &&Value| {
        labels.iter().all(|(key, value)| crate::snapshot::label(node, key) == value.as_str())
    };
    let own: Vec<&Value> = nodes.iter().filter(|node| roles::is_selected(vrouter, node)).collect();
    match own.iter().copied().filter(has).count() {
        0 => Ok(None),
        count if count == own.len() => Ok(Some(spec)),
        // The operator refuses it, and nothing is rendered.
        count => Err(format!("VrouterProfile {of} is for {count} of the {} nodes only", own.len())),
    }
}

impl Settings {
    /// Its own value at a pointer, else that of its profiles.
    fn of(&self, pointer: &str) -> Option<&Value> {
        let own = self.fields.pointer(pointer).filter(|value| !value.is_null());
        own.or_else(|| self.profiles.pointer(pointer)).filter(|value| !value.is_null())
    }

    /// The first of the texts that is said at all.
    fn first(&self, pointers: &[&str]) -> &str {
        let mut said = pointers.iter().filter_map(|one| self.of(one)?.as_str());
        said.next().unwrap_or_default()
    }

    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).and_then(Value::as_str)
    }

    /// Its own numbers, else those of `dpdk`.
    pub(super) fn huge_pages(&self) -> WantedPages {
        let is_own = ["/hugePages2M", "/hugePages1G"].iter().any(|own| self.of(own).is_some());
        let of = |field: &str| {
            let at = if is_own { format!("/{field}") } else { format!("/dpdk/{field}") };
            self.of(&at).and_then(Value::as_u64).unwrap_or_default()
        };
        WantedPages { of_2_mib: of("hugePages2M"), of_1_gib: of("hugePages1G") }
    }

    /// The driver that has the interface; nothing where the data plane is the kernel's. An empty one is said to be none.
    pub(super) fn dpdk_driver(&self) -> Option<&str> {
        let is_dpdk = match self.variable("AGENT_MODE") {
            Some(mode) => mode == "dpdk",
            None => self.of("/dpdk").is_some(),
        };
        let stated = self.first(&["/dpdkUioDriver", "/dpdk/uioDriver"]);
        let stated = if stated.is_empty() { DEFAULT_DRIVER } else { stated };
        is_dpdk.then(|| self.variable("DPDK_UIO_DRIVER").unwrap_or(stated))
    }

    /// Nothing where none are asked for.
    ///
    /// # Errors
    /// Upstream's script refuses what is said, and why.
    pub(super) fn functions(&self) -> Result<Vec<WantedFunctions>, String> {
        let stated = self.first(&["/sriovPhysicalInterface", "/sriov/physicalInterface"]);
        let interfaces = self.variable("SRIOV_PHYSICAL_INTERFACE").unwrap_or(stated);
        let count = self.of("/sriov/numberOfVfs").and_then(Value::as_i64);
        let count = count.map(|count| count.to_string()).unwrap_or_default();
        let counts = self.variable("SRIOV_VF").unwrap_or(&count);
        // Commas are spaces to the script, and of spaces several are one.
        let words = |text: &str| -> Vec<String> {
            let words = text.split([',', ' ']).filter(|word| !word.is_empty());
            words.map(str::to_owned).collect()
        };
        let (interfaces, counts) = (words(interfaces), words(counts));
        if interfaces.len() != counts.len() {
            return Err(format!(
                "{} are named, and {} of virtual functions: the agent ends where these differ",
                super::number_of(interfaces.len(), "interface"),
                super::number_of(counts.len(), "number"),
            ));
        }
        let both = interfaces.into_iter().zip(counts);
        both.map(|(interface, count)| match number_of_virtual_functions(&count) {
            Some(count) => Ok(WantedFunctions { interface, count: count.into() }),
            None => Err(format!("{count:?} is no number of virtual functions")),
        })
        .collect()
    }

    /// The interfaces that it names for the overlay.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = &str> {
        let named = text(&self.fields, "/physicalInterface");
        named.split(',').map(str::trim).filter(|name| !name.is_empty())
    }
}

#[cfg(test)]
mod tests;
