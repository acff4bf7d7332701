//! From what nodes answered to one verdict: each node has a result, and the worst is that of the check. A node that did
//! not answer is uncertain, with the reason, and keeps no other from being judged.

use opensdn_node_probe::{NodeFindings, Seen};
use serde_json::Value;

use super::report::{NodeResult, Outcome, Verdict};
use super::world::World;
use crate::snapshot::name;

/// So many different messages are in a line.
const SHOWN: usize = 5;

/// What is said of one node.
pub(crate) type Said = (Outcome, String);

/// What something has to say of a node, where it could not be seen.
pub(super) fn unseen<T>(what: &str, seen: &Seen<T>) -> Option<Said> {
    match seen {
        Seen::Is(_) => None,
        Seen::Unknown(why) => Some((Outcome::Uncertain, format!("{what} is not known: {why}"))),
    }
}

/// The worst of several, with all that are not good; `good` where none is bad.
pub(crate) fn worst(all: Vec<Said>, good: impl Into<String>) -> Said {
    let bad: Vec<Said> = all.into_iter().filter(|(outcome, _)| *outcome != Outcome::Ok).collect();
    if bad.is_empty() {
        return (Outcome::Ok, good.into());
    }
    let outcome = Outcome::worst(bad.iter().map(|(outcome, _)| *outcome));
    let texts: Vec<String> = bad.into_iter().map(|(_, text)| text).collect();
    (outcome, texts.join("; "))
}

/// Judges each node that was asked. `good` is what holds of those that are as they have to be.
pub(super) fn each(
    world: &World,
    good: &str,
    judge: impl Fn(&Value, &NodeFindings) -> Said,
) -> Verdict {
    let Some(answers) = &world.probed else {
        return Verdict::skipped("needs --probe");
    };
    let results = answers.iter().map(|(node, answer)| {
        let (result, message) = match answer {
            Ok(answer) => {
                let object = world.nodes.items().iter().find(|one| name(one) == node);
                judge(object.unwrap_or(&Value::Null), &answer.findings)
            }
            Err(why) => (Outcome::Uncertain, why.clone()),
        };
        NodeResult { name: node.clone(), result, message }
    });
    rolled(results.collect(), good)
}

/// One verdict of many nodes: `11/12 nodes …; w4: …`.
pub(crate) fn rolled(results: Vec<NodeResult>, good: &str) -> Verdict {
    if results.is_empty() {
        return Verdict::uncertain("no node was looked at");
    }
    let passed = results.iter().filter(|one| one.result == Outcome::Ok).count();
    let mut message = format!("{passed}/{} nodes: {good}", results.len());
    // Nodes of which the same is to be said are named together.
    let mut bad: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut sorted: Vec<&NodeResult> =
        results.iter().filter(|one| one.result != Outcome::Ok).collect();
    sorted.sort_by_key(|one| std::cmp::Reverse(one.result.rank()));
    for one in sorted {
        match bad.iter_mut().find(|(text, _)| *text == one.message) {
            Some((_, names)) => names.push(&one.name),
            None => bad.push((&one.message, vec![&one.name])),
        }
    }
    for (text, names) in bad.iter().take(SHOWN) {
        let shown: Vec<&str> = names.iter().take(SHOWN).copied().collect();
        let more = match names.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        message.push_str(&format!("; {}{more}: {text}", shown.join(" ")));
    }
    if bad.len() > SHOWN {
        message.push_str(&format!("; and {} more, by -o json", bad.len() - SHOWN));
    }
    let outcome = Outcome::worst(results.iter().map(|one| one.result));
    Verdict::new(outcome, message).on(results)
}
