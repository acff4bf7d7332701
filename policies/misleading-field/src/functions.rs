//! Virtual functions of SR-IOV: numbers that are none, and networks that do not go with the interfaces.
//!
//! How many numbers there are is judged by the schema. What a profile or `sriov` has besides is not seen here.

use opensdn_policy_components::{ComponentView, number_of_virtual_functions};
use opensdn_policy_sdk::{Message, Severity, Verdict};

use crate::Spec;

pub(crate) const FUNCTIONS: Message = Message {
    code: "OSDN1815",
    severity: Severity::Warn,
    title: "the settings of SR-IOV do not fit together",
    explanation: "The agent's script writes each item of SRIOV_VF into sriov_numvfs of its interface and goes past an \
        error: of what is no number the kernel makes no virtual functions. The provisioner ends with an error where \
        there are not as many physical networks as interfaces, before it has made the node's object, and so it does \
        each time that it starts. tf-operator gives it variables alone, our operator the fields too.",
    hint: "give each interface a number of virtual functions and, if any, a physical network",
};

pub(crate) fn judge(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let given = &component.spec.service_configuration;
    if given.has("profiles") || given.has("sriov") {
        return;
    }
    judge_numbers(component, verdict);
    let interfaces = Given::of(component, "sriovPhysicalInterface", "SRIOV_PHYSICAL_INTERFACE");
    let networks = Given::of(component, "sriovPhysicalNetwork", "SRIOV_PHYSICAL_NETWORK");
    let (Some(interfaces), Some(networks)) = (interfaces, networks) else { return };
    let (number, wanted) = (items(networks.text()), items(interfaces.text()));
    if interfaces.text().is_empty() || networks.text().is_empty() || number == wanted {
        return;
    }
    let at = match networks {
        Given::Variable(_) => component.setting("/envVariablesConfig/SRIOV_PHYSICAL_NETWORK"),
        Given::Field(_) => component.setting("/sriovPhysicalNetwork"),
    };
    let text = format!(
        "{}: as many physical networks ({number}: {}) as interfaces ({wanted}: {}) are needed",
        component.title(),
        networks.text(),
        interfaces.text()
    );
    let hint = "name a physical network for each interface, in the same order";
    let finding = FUNCTIONS.at(at).says(text).hint(hint);
    verdict.add(match (interfaces, networks) {
        (Given::Variable(_), Given::Variable(_)) => finding.severity(Severity::Deny),
        // A field reaches the provisioner by our operator alone.
        _ => finding,
    });
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

fn judge_numbers(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let numbers = component.spec.service_configuration.variable("SRIOV_VF").unwrap_or_default();
    let separates = |letter: char| letter == ',' || letter.is_ascii_whitespace();
    let words = numbers.split(separates).filter(|word| !word.is_empty());
    let wrong: Vec<String> = words
        .filter(|word| number_of_virtual_functions(word).is_none())
        .map(|word| format!("{word:?}"))
        .collect();
    if !wrong.is_empty() {
        let text = format!(
            "{}: SRIOV_VF has {}, of which the kernel makes no virtual functions",
            component.title(),
            wrong.join(", ")
        );
        let at = component.setting("/envVariablesConfig/SRIOV_VF");
        verdict.add(
            FUNCTIONS.at(at).says(text).hint("write a number from 0 to 65535 for each interface"),
        );
    }
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
