//! Names and values of `params.env`, which root's bash sources on every node, and of the
//! environment files of the provisioners, which bash sources too.

use std::borrow::Cow;

use opensdn_policy_components::{
    UNUSED_OF_VROUTER,
    characters::{found, shown},
};
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};

use crate::texts::Texts;

pub(crate) const BAD_NAME: Message = Message {
    code: "OSDN1810",
    severity: Severity::Deny,
    title: "this name cannot be given to an environment variable of the vrouter",
    explanation: "A name that the shell does not accept ends the script that reads params.env, \
        and the DaemonSet is refused. A name that the operator gives to the container itself takes \
        effect in one place and not in the other. Some names change what the shell does.",
    hint: "use letters, digits and _, not a digit first, and no name that the operator sets",
};

pub(crate) const BREAKS_THE_FILE: Message = Message {
    code: "OSDN1811",
    severity: Severity::Deny,
    title: "the value does not survive the way into params.env",
    explanation: "tf-operator's files of parameters are read line by line, so a line break cuts the value; in the \
        environment of a provisioner the rest becomes a command. The name of a subcluster is a word of the provisioner's commands: \
        white space cuts it, and *, ? and [ may be replaced by names of files.",
    hint: "remove the characters that the message names",
};

pub(crate) const RUNS_CODE: Message = Message {
    code: "OSDN1812",
    severity: Severity::Deny,
    title: "the value runs code on every node",
    explanation: "params.env is sourced by root's bash in a privileged container on the host's \
        network. Within double quotes, $ and backticks are still substituted, and after a backslash at \
        the end the rest of the file is code: the value is a program, and anyone who may write it owns \
        every node. Only the paths of certificates and keys \
        may have ${POD_IP}, as tf-operator's own do. So it is with tf-operator; our operator quotes values, and that \
        this is refused there too is a second line of defence. Four variables images of before November 2025 write within \
        double quotes into a script that root's bash runs on the node when it brings vhost0 up: these run code with either \
        operator. VrouterProfiles our operator alone reads: of them only these are refused.",
    hint: "remove the characters that the message names; write the value out that was meant",
};

pub(crate) const UNPAIRED: Message = Message {
    code: "OSDN1813",
    severity: Severity::Deny,
    title: "a priority group has no bandwidth or no scheduling",
    explanation: "Each priority group takes its bandwidth and scheduling from the same place of \
        the other two lists. tf-operator's process ends with a panic where one is shorter, and \
        with it the management of the whole cluster.",
    hint: "give PRIORITY_BANDWIDTH and PRIORITY_SCHEDULING an item for each of PRIORITY_ID, separated \
        by commas",
};

/// In the environment of the container. What is in params.env only may be set again: the user's
/// variables stand at its end (tf-operator, `pkg/apis/tf/v1alpha1/templates/vrouter_config.go:172`).
const SET_BY_THE_OPERATOR: &[&str] = &["NODE_TYPE", "POD_IP"];

/// What the operator gives itself changes nothing.
const OWN_TYPE: (&str, &str) = ("NODE_TYPE", "vrouter");

/// With these, any user who may set a variable runs code, even where every value is quoted.
const READ_BY_THE_SHELL: &[&str] = &[
    "BASHOPTS",
    "BASH_ENV",
    "ENV",
    "IFS",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PATH",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
];

/// Judges the names of variables; `variables` are pointers relative to `at`, with values. `interface` is the
/// field physicalInterface, which a variable goes before; `None` in a profile, which is laid over others, so that the
/// lists are not judged there.
pub(crate) fn judge_names<'a>(
    variables: impl Iterator<Item = (&'a str, &'a str)>,
    interface: Option<&'a str>,
    at: &Pointer,
    verdict: &mut Verdict,
) {
    // What is absent is one empty item.
    let mut lists = [1; 3];
    let is_profile = interface.is_none();
    let mut interface = interface.unwrap_or_default();
    let mut dpdk = false;
    for (path, value) in variables {
        let name = Pointer::from(path).segments().next().unwrap_or_default();
        let why = if !is_name(&name) {
            "is no name of an environment variable"
        } else if SET_BY_THE_OPERATOR.contains(&name.as_str()) && (&*name, value) != OWN_TYPE {
            "is set by the operator"
        } else if READ_BY_THE_SHELL.contains(&name.as_str()) {
            "changes what the shell or the loader does"
        } else {
            ""
        };
        if !why.is_empty() {
            verdict.add(BAD_NAME.at(at.join(path)).says(format!("{name:?} {why}")));
        }
        let names = ["PRIORITY_ID", "PRIORITY_BANDWIDTH", "PRIORITY_SCHEDULING"];
        for (list, _) in lists.iter_mut().zip(names).filter(|(_, known)| *known == name) {
            *list = value.split(',').count();
        }
        dpdk |= name == "AGENT_MODE" && value == "dpdk";
        if name == "PHYSICAL_INTERFACE" {
            interface = value;
        }
    }
    // The block is left out then.
    if !is_profile && !dpdk && !is_vlan(interface) {
        judge_lists(lists, at, verdict);
    }
}

/// Whether the name is one that distributions give VLAN interfaces, such as bond0.100 and vlan100. Of several the
/// first one decides (tf-container-builder, `containers/vrouter/base/actions.sh:117`).
fn is_vlan(interfaces: &str) -> bool {
    let interface = interfaces.split(',').next().unwrap_or_default().trim();
    let number = interface.rsplit_once('.').filter(|(parent, _)| !parent.is_empty());
    let number = number.map(|(_, number)| number).or_else(|| interface.strip_prefix("vlan"));
    let is_one = !interface.contains([' ', ',', '/']);
    is_one
        && number.is_some_and(|number| {
            (1..=4).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
        })
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn judge_lists([ids, bandwidths, schedulings]: [usize; 3], at: &Pointer, verdict: &mut Verdict) {
    if bandwidths < ids || schedulings < ids {
        verdict.add(UNPAIRED.at(at.key("PRIORITY_ID")).says(format!(
            "PRIORITY_ID has {ids} items, PRIORITY_BANDWIDTH {bandwidths}, PRIORITY_SCHEDULING \
             {schedulings}"
        )));
    }
}

const ADDRESS: &str = "${POD_IP}";

/// The value without what tf-operator's own paths have (`vrouter_types.go:492-495`).
fn without_own_address<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    // Hardly any value has one, and all are looked at.
    if !value.contains(ADDRESS) {
        return value.into();
    }
    let name = name.to_ascii_lowercase();
    let is_path = name.ends_with("certfile") || name.ends_with("keyfile");
    if is_path { value.replace(ADDRESS, "").into() } else { value.into() }
}

/// What bash obeys outside of quotes, besides $ and backticks. A name of an interface has none of it; = is among
/// it, as behind a space it would set another variable.
const SHELL: &[char] = &[
    ';', '|', '&', '(', ')', '<', '>', '"', '\'', '\\', '*', '?', '[', ']', '{', '}', '~', '#',
    '!', '=',
];

/// Whether a file that bash sources has the value of the field without quotes (tf-operator,
/// `pkg/apis/tf/v1alpha1/templates/provisioner_config.go:36-38`). The others there are networks, addresses
/// and numbers by their schemas.
fn without_quotes(name: &str) -> bool {
    name == "physicalInterface"
}

/// Whether the quote that closes the value would belong to it: no template escapes a backslash.
fn opens_the_next_line(value: &str) -> bool {
    let backslashes = value.bytes().rev().take_while(|byte| *byte == b'\\').count();
    !backslashes.is_multiple_of(2)
}

/// What cuts or replaces a word of a shell's command that stands without quotes.
const NO_WORD: &[char] = &[' ', '\t', '\n', '\r', '*', '?', '['];

/// Judges the value at `path`, which a script of the provisioner has in a command without quotes
/// (tf-container-builder, `containers/provisioner/provision.sh:138-149`).
pub(crate) fn judge_word(path: &str, texts: &Texts, at: &Pointer, verdict: &mut Verdict) {
    let value = texts.get(path).unwrap_or_default();
    if let Some(what) = found(value, NO_WORD) {
        let (_, name) = path.rsplit_once('/').unwrap_or(("", path));
        let text = format!(
            "{name} contains {what}, and is a word of the provisioner's command{}",
            shown(name, value)
        );
        verdict.add(BREAKS_THE_FILE.at(at.join(path)).says(text));
    }
}

/// Whether the field is one that has no effect: in params.env it stands in a comment, which bash does not read.
fn is_a_comment(path: &str) -> bool {
    path.strip_prefix('/').is_some_and(|field| UNUSED_OF_VROUTER.contains(&field))
}

/// Variables that images of before November 2025 write into a script of the node, `network-functions-vrouter-kernel-env`,
/// whoever gives them (tf-container-builder before a3a3ddc, `containers/vrouter/kernel-init/entrypoint.sh`, by
/// `containers/vrouter/base/agent-functions.sh:45-48` and `containers/vrouter/base/ifup-vhost:36`).
const RUN_ON_THE_NODE: &[&str] = &[
    "CONTRAIL_VROUTER_AGENT_CONTAINER_NAME",
    "L3MH_CIDR",
    "VROUTER_GATEWAY",
    "VROUTER_MODULE_OPTIONS",
];

/// Judges the values of a VrouterProfile, which tf-operator does not know and our operator writes as they stand; `at` is
/// what the pointers of `texts` are relative to.
pub(crate) fn judge_profile<'a>(
    texts: impl Iterator<Item = (&'a str, &'a str)>,
    at: &Pointer,
    verdict: &mut Verdict,
) {
    for (path, value) in texts {
        let name = Pointer::from(path).segments().last().unwrap_or_default();
        if RUN_ON_THE_NODE.contains(&name.as_str()) {
            judge_for_the_node(&name, value, &at.join(path), verdict);
        } else if let Some(what) = found(&value.replace(ADDRESS, ""), &['$', '`']) {
            let text = format!(
                "{name} contains {what}, which our operator replaces in {ADDRESS} alone: the vrouter has the value as it stands{}",
                shown(&name, value)
            );
            verdict.add(RUNS_CODE.at(at.join(path)).says(text).severity(Severity::Warn));
        }
    }
}

/// In the script the value stands as `"${NAME:-value}"`: what opens a substitution there runs code, and so does what
/// stands behind an end of both.
fn judge_for_the_node(name: &str, value: &str, at: &Pointer, verdict: &mut Verdict) {
    let ends_it = value.split_once('}').is_some_and(|(_, rest)| rest.contains('"'));
    let quotes = value.bytes().filter(|byte| *byte == b'"').count();
    let what = match found(value, &['$', '`']) {
        Some(what) => what,
        None if ends_it => "} and \" behind it".into(),
        None if !quotes.is_multiple_of(2) => "a double quote without another".into(),
        None if opens_the_next_line(value) => "a backslash at its end".into(),
        None => return,
    };
    let text = format!(
        "{name} contains {what}, which root's bash obeys on the node: images of before November 2025 write the value into \
         the script that brings vhost0 up{}",
        shown(name, value)
    );
    verdict.add(RUNS_CODE.at(at.clone()).says(text));
}

/// Judges every value; `at` is what the pointers of `texts` are relative to.
pub(crate) fn judge_values<'a>(
    texts: impl Iterator<Item = (&'a str, &'a str)>,
    at: &Pointer,
    verdict: &mut Verdict,
) {
    for (path, value) in texts {
        let name = Pointer::from(path).segments().last().unwrap_or_default();
        if is_a_comment(path) {
            // Nothing but its end is looked for.
        } else if let Some(what) = found(&without_own_address(&name, value), &['$', '`']) {
            let text = format!(
                "{name} contains {what}, which bash runs with tf-operator{}",
                shown(&name, value)
            );
            verdict.add(RUNS_CODE.at(at.join(path)).says(text));
        } else if let Some(what) = without_quotes(&name).then(|| found(value, SHELL)).flatten() {
            let text = format!(
                "{name} contains {what}, which bash obeys where the file of tf-operator's provisioner has it without quotes{}",
                shown(&name, value)
            );
            verdict.add(RUNS_CODE.at(at.join(path)).says(text));
        } else if opens_the_next_line(value) {
            let text = format!(
                "{name} ends in a backslash, by which bash reads what follows in the file as code{}",
                shown(&name, value)
            );
            verdict.add(RUNS_CODE.at(at.join(path)).says(text));
        }
        if let Some(what) = found(value, &['\n', '\r']) {
            let text =
                format!("{name} contains {what}, where the value ends{}", shown(&name, value));
            verdict.add(BREAKS_THE_FILE.at(at.join(path)).says(text));
        }
    }
}
