//! Virtual functions of SR-IOV: numbers that are none, and networks that do not go with the interfaces.
//!
//! What several profiles make together is not seen here: of each only what it says itself is judged, and of a Vrouter with
//! profiles nothing.

use std::collections::BTreeMap;

use opensdn_policy_components::{ComponentView, number_of_virtual_functions};
use opensdn_policy_sdk::{
    Message, NoSettings, Outcome, Pointer, Reads, Request, Severity, Verdict,
};
use serde_json::Value;

use crate::{Spec, interfaces};

pub(crate) const FUNCTIONS: Message = Message {
    code: "OSDN1815",
    severity: Severity::Warn,
    title: "the settings of SR-IOV do not fit together",
    explanation: "The agent's script writes each item of SRIOV_VF into sriov_numvfs of its interface and goes past an \
        error: of what is no number the kernel makes no virtual functions. Where there are not as many numbers as \
        interfaces it ends before the agent has started. The provisioner ends with an error where there are not as \
        many physical networks as interfaces, before it has made the node's object. Both do so each time that they \
        start. tf-operator gives it variables alone, our operator the fields too.",
    hint: "give each interface a number of virtual functions and, if any, a physical network",
};

const INTERFACES: &str = "SRIOV_PHYSICAL_INTERFACE";
const NETWORKS: &str = "SRIOV_PHYSICAL_NETWORK";
const NUMBERS: &str = "SRIOV_VF";
const FIELD: &str = "sriovPhysicalInterface";

pub(crate) fn judge(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let given = &component.spec.service_configuration;
    if given.has("profiles") || given.has("sriov") {
        return;
    }
    let title = component.title();
    if let Some(numbers) = given.variable(NUMBERS) {
        let at = component.setting("/envVariablesConfig").key(NUMBERS);
        judge_numbers(&title, numbers, at, verdict);
    }
    let interfaces = Given::of(component, FIELD, INTERFACES);
    judge_count(component, interfaces, verdict);
    let networks = Given::of(component, "sriovPhysicalNetwork", NETWORKS);
    let (Some(interfaces), Some(networks)) = (interfaces, networks) else { return };
    let at = match networks {
        Given::Variable(_) => component.setting("/envVariablesConfig").key(NETWORKS),
        Given::Field(_) => component.setting("/sriovPhysicalNetwork"),
    };
    let severity = match (interfaces, networks) {
        (Given::Variable(_), Given::Variable(_)) => Severity::Deny,
        // A field reaches the provisioner by our operator alone.
        _ => Severity::Warn,
    };
    judge_networks(&title, interfaces.text(), networks.text(), (at, severity), verdict);
}

/// As many numbers as interfaces. With DPDK the script does not come to them.
fn judge_count(
    component: &ComponentView<'_, Spec>,
    interfaces: Option<Given<'_>>,
    verdict: &mut Verdict,
) {
    let given = &component.spec.service_configuration;
    if given.has("dpdk") {
        return;
    }
    let numbers = given.variable(NUMBERS).unwrap_or_default();
    let names = interfaces.as_ref().map_or("", Given::text);
    let (number, wanted) = (words(numbers).count(), words(names).count());
    if number == wanted {
        return;
    }
    let variable = |name| component.setting("/envVariablesConfig").key(name);
    let at = match interfaces {
        Some(Given::Field(_)) => component.setting("/sriovPhysicalInterface"),
        Some(Given::Variable(_)) => variable(INTERFACES),
        None => variable(NUMBERS),
    };
    let text = format!(
        "{}: SRIOV_VF has {number} numbers ({numbers}) for {wanted} interfaces ({names})",
        component.title()
    );
    let hint = "set SRIOV_VF in envVariablesConfig to as many numbers as interfaces, separated by commas, or use sriov";
    verdict.add(FUNCTIONS.at(at).says(text).hint(hint).severity(Severity::Deny));
}

#[derive(Reads)]
#[reads(group = "opensdn.io", kind = "VrouterProfile")]
pub(crate) struct VrouterProfile {
    #[read("/spec/moreConfig")]
    variables: Option<BTreeMap<String, Value>>,
}

/// What another profile of the same Vrouter says may win over this one, so that nothing is refused.
pub(crate) fn profile(
    request: &Request<VrouterProfile>,
    _: &NoSettings,
    verdict: &mut Verdict,
) -> Outcome {
    let object = request.object.as_ref();
    let Some(variables) = object.and_then(|object| object.variables.as_ref()) else {
        return Ok(());
    };
    let title = format!("VrouterProfile {}", request.name);
    let at = |name: &str| Pointer::from("/spec/moreConfig").key(name);
    let given = |name: &str| variables.get(name).and_then(Value::as_str);
    interfaces::judge_profile(&title, given, at, verdict);
    if let Some(numbers) = given(NUMBERS) {
        judge_numbers(&title, numbers, at(NUMBERS), verdict);
    }
    let Some(interfaces) = given(INTERFACES) else { return Ok(()) };
    if let Some(numbers) = given(NUMBERS) {
        let (number, wanted) = (words(numbers).count(), words(interfaces).count());
        if number != wanted {
            let text = format!(
                "{title}: SRIOV_VF has {number} numbers ({numbers}) for {wanted} interfaces ({interfaces})"
            );
            let hint = "write as many numbers as interfaces, separated by commas";
            verdict.add(FUNCTIONS.at(at(NUMBERS)).says(text).hint(hint));
        }
    }
    if let Some(networks) = given(NETWORKS) {
        judge_networks(&title, interfaces, networks, (at(NETWORKS), Severity::Warn), verdict);
    }
    Ok(())
}

/// A setting that is a variable, which wins, or a field.
#[derive(Clone, Copy)]
enum Given<'a> {
    Variable(&'a str),
    Field(&'a str),
}

impl<'a> Given<'a> {
    fn of(component: &'a ComponentView<'a, Spec>, field: &str, variable: &str) -> Option<Self> {
        let given = &component.spec.service_configuration;
        let variable = given.variable(variable).map(Self::Variable);
        variable.or_else(|| given.text(field).map(Self::Field))
    }

    fn text(&self) -> &'a str {
        match self {
            Self::Variable(text) | Self::Field(text) => text,
        }
    }
}

fn judge_numbers(title: &str, numbers: &str, at: Pointer, verdict: &mut Verdict) {
    let wrong: Vec<String> = words(numbers)
        .filter(|word| number_of_virtual_functions(word).is_none())
        .map(|word| format!("{word:?}"))
        .collect();
    if !wrong.is_empty() {
        let wrong = wrong.join(", ");
        let text = format!(
            "{title}: SRIOV_VF has {wrong}, of which the kernel makes no virtual functions"
        );
        verdict.add(
            FUNCTIONS.at(at).says(text).hint("write a number from 0 to 65535 for each interface"),
        );
    }
}

fn judge_networks(
    title: &str,
    interfaces: &str,
    networks: &str,
    (at, severity): (Pointer, Severity),
    verdict: &mut Verdict,
) {
    let (number, wanted) = (items(networks), items(interfaces));
    if interfaces.is_empty() || networks.is_empty() || number == wanted {
        return;
    }
    let text = format!(
        "{title}: as many physical networks ({number}: {networks}) as interfaces ({wanted}: {interfaces}) are needed"
    );
    let hint = "name a physical network for each interface, in the same order";
    verdict.add(FUNCTIONS.at(at).says(text).hint(hint).severity(severity));
}

/// The words of a variable, as the agent's script splits it (tf-container-builder,
/// `containers/vrouter/base/agent-functions.sh:831-832`).
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ', '\t', '\n']).filter(|word| !word.is_empty())
}

/// How many items bash reads by `IFS=', ' read -a` (tf-container-builder,
/// `containers/provisioner/provision.sh:199-211`): of the first line; between two commas is one without a letter,
/// behind the last comma is none.
fn items(text: &str) -> usize {
    let line = text.lines().next().unwrap_or_default();
    let line = line.trim_matches(' ');
    let line = line.strip_suffix(',').unwrap_or(line);
    let words = |part: &str| part.split(' ').filter(|word| !word.is_empty()).count().max(1);
    line.split(',').map(words).sum()
}

#[cfg(test)]
mod tests {
    use super::items;

    #[test]
    fn items_are_counted_as_bash_reads_them() {
        let counted = [
            ("ens5", 1),
            ("ens5, ens6", 2),
            ("a ,b", 2),
            (" a b ", 2),
            ("a,,b", 3),
            ("a , , b", 3),
            ("a,", 1),
            (",a", 2),
            (",", 1),
            ("a\tb", 1),
            ("a\nb", 1),
        ];
        for (text, number) in counted {
            assert_eq!(items(text), number, "{text:?}");
        }
    }
}
