//! Interfaces of the vrouter: several are for L3 multihoming.
//!
//! ```yaml
//! kind: Vrouter
//! spec:
//!   serviceConfiguration: {physicalInterface: "ens1,ens2"}   # and no l3mhCidr
//! ```

use opensdn_policy_components::{ComponentView, Network};
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};

use crate::Spec;

pub(crate) const INTERFACES: Message = Message {
    code: "OSDN1804",
    severity: Severity::Deny,
    title: "the vrouters have several interfaces and no L3MH network",
    explanation: "Several interfaces are for L3 multihoming, which l3mhCidr switches on. Without it the script of the \
        agent expects the name of one interface. A list with commas is no name that a node has, and the agent ends with \
        an error. Of a list with spaces it takes the first word for the interface and the second for its MAC address, \
        with which vhost0 is not made. Of a variable it is judged too whether its words can be names of interfaces.",
    hint: "set l3mhCidr to the network of the loopback addresses, or leave one interface; of several \
        links without L3MH make a bond on the node and name that",
};

/// The kernel's (linux, `include/uapi/linux/if.h:33`, less the zero at its end).
const LONGEST_INTERFACE: usize = 15;

pub(crate) const L3MH: Message = Message {
    code: "OSDN1805",
    severity: Severity::Deny,
    title: "the variable with the network for multi-homing is no network",
    explanation: "The agent's script looks for the loopback address of its node in that network: of what is none it \
        computes no address.",
    hint: "write an IPv4 network with its prefix length, such as 100.1.1.0/24",
};

pub(crate) fn judge(component: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let given = &component.spec.service_configuration;
    // Variables are written last, so they win.
    let of = |field: &str, variable: &str| {
        given.variable(variable).or(given.text(field)).unwrap_or_default().to_owned()
    };
    let list = of("physicalInterface", INTERFACES_VARIABLE);
    let names: Vec<&str> = interfaces(&list).collect();
    let variable = |name: &str| component.setting("/envVariablesConfig").key(name);
    let (at, field) = match given.variable(INTERFACES_VARIABLE) {
        Some(_) => (variable(INTERFACES_VARIABLE), INTERFACES_VARIABLE),
        None => (component.setting("/physicalInterface"), "physicalInterface"),
    };
    let variables = |name: &str| given.variable(name);
    judge_variables(&component.title().to_string(), variables, variable, None, verdict);
    if names.len() < 2 {
        return;
    }
    let mut twice: Vec<&str> = names
        .iter()
        .enumerate()
        .filter(|(number, name)| names.iter().take(*number).any(|before| before == *name))
        .map(|(_, name)| *name)
        .collect();
    twice.sort_unstable();
    twice.dedup();
    if of("l3mhCidr", L3MH_VARIABLE).is_empty() {
        let unset = match given.variable(L3MH_VARIABLE) {
            Some(_) => "L3MH_CIDR is empty, which wins over l3mhCidr",
            None => "l3mhCidr is unset",
        };
        let text = format!(
            "{}: {} interfaces ({}), and {unset}: {}",
            component.title(),
            names.len(),
            names.join(", "),
            taken_for_one(&list, &names)
        );
        let finding = INTERFACES.at(at).says(text);
        verdict.add(match given.names_profiles() {
            // With our operator they may set it.
            true => finding.severity(Severity::Warn),
            false => finding,
        });
    } else if !twice.is_empty() {
        let text =
            format!("{}: {field} names {} more than once", component.title(), twice.join(", "));
        let hint = "name each interface once; probably another one was meant";
        verdict.add(INTERFACES.at(at).severity(Severity::Warn).says(text).hint(hint));
    }
}

const INTERFACES_VARIABLE: &str = "PHYSICAL_INTERFACE";
const L3MH_VARIABLE: &str = "L3MH_CIDR";

/// What becomes of several interfaces without L3MH.
fn taken_for_one(list: &str, names: &[&str]) -> String {
    match names {
        [first, second, ..] if !list.contains(',') => {
            format!("the agent takes {second} for the MAC address of {first}")
        }
        _ => "the agent takes the list for the name of one".to_owned(),
    }
}

/// The variables of a VrouterProfile. What it leaves to others, the Vrouter or another profile may say.
pub(crate) fn judge_profile<'a>(
    title: &str,
    given: impl Fn(&str) -> Option<&'a str>,
    at: impl Fn(&str) -> Pointer,
    verdict: &mut Verdict,
) {
    if let Some(list) = given(INTERFACES_VARIABLE)
        && given(L3MH_VARIABLE).is_none_or(str::is_empty)
    {
        let names: Vec<&str> = interfaces(list).collect();
        if names.len() > 1 {
            let text = format!(
                "{title}: {} interfaces ({}), and no L3MH_CIDR beside them: where neither l3mhCidr of a Vrouter nor \
                 another of its profiles sets it, {}",
                names.len(),
                names.join(", "),
                taken_for_one(list, &names)
            );
            let hint = "set L3MH_CIDR beside it, or leave one interface";
            let finding = INTERFACES.at(at(INTERFACES_VARIABLE)).severity(Severity::Warn);
            verdict.add(finding.says(text).hint(hint));
        }
    }
    judge_variables(title, given, at, Some(Severity::Warn), verdict);
}

fn interfaces(list: &str) -> impl Iterator<Item = &str> {
    list.split([',', ' ']).filter(|name| !name.is_empty())
}

/// Of the fields the schema asks the same. `severity` is another one than the messages have.
fn judge_variables<'a>(
    title: &str,
    given: impl Fn(&str) -> Option<&'a str>,
    at: impl Fn(&str) -> Pointer,
    severity: Option<Severity>,
    verdict: &mut Verdict,
) {
    let is_none = |name: &&str| name.chars().count() > LONGEST_INTERFACE || name.contains('/');
    let list = given(INTERFACES_VARIABLE).unwrap_or_default();
    if let Some(name) = interfaces(list).find(is_none) {
        let text = format!("{title}: {name:?} is no name of an interface");
        let hint =
            "write names of 1 to 15 characters without a slash, separated by commas or spaces";
        let finding = INTERFACES.at(at(INTERFACES_VARIABLE)).says(text).hint(hint);
        verdict.add(finding.severity(severity.unwrap_or(INTERFACES.severity)));
    }
    let network = given(L3MH_VARIABLE).filter(|network| !network.is_empty());
    if let Some(network) = network.filter(|network| Network::parse(network).is_none()) {
        let text = format!("{title}: L3MH_CIDR {network:?} is no IPv4 network");
        let finding = L3MH.at(at(L3MH_VARIABLE)).says(text);
        verdict.add(finding.severity(severity.unwrap_or(L3MH.severity)));
    }
}
