//! A database whose nodes are all others after a change: its data stays on those that it leaves.

use opensdn_policy_components::{
    ComponentView,
    nodes::{Selector, selected},
};
use opensdn_policy_sdk::{Failure, Message, Severity, Verdict};

use crate::{
    confirmation::{Losses, item},
    interruption::{Common, Spec},
    is_same,
};

pub(crate) const LEFT_BEHIND: Message = Message {
    code: "OSDN1522",
    severity: Severity::Deny,
    title: "a database would leave all of its nodes",
    explanation: "Cassandra and ZooKeeper keep their data in a folder of each node. Members on other nodes start \
        empty, and without one of those that had the data there is none to copy from: the configuration \
        of the network is gone until it is brought back.",
    hint: "move one node at a time, so that members with the data stay; or stop the cluster, copy the folders below \
        /var/lib/contrail to the new nodes, and confirm it by the annotation opensdn.io/confirm-loss",
};

/// A component's own selector, else the Manager's.
fn effective<'a>(of: &'a ComponentView<'_, Spec>, common: &'a Common) -> Option<&'a Selector> {
    let own = of.spec.common_configuration.node_selector.as_ref();
    let given = |selector: &&Selector| !selector.is_empty();
    own.filter(given).or(common.node_selector.as_ref().filter(given))
}

/// The databases of which no node stays, as far as the nodes are known.
pub(crate) fn relocated<'a, 'b>(
    (before, old_common): (&[ComponentView<'_, Spec>], &Common),
    (after, common): (&'a [ComponentView<'b, Spec>], &Common),
) -> Result<Vec<&'a ComponentView<'b, Spec>>, Failure> {
    let mut relocated = Vec::new();
    for new in after.iter().filter(|one| ["Cassandra", "Zookeeper"].contains(&one.kind)) {
        let Some(old) = before.iter().find(|old| is_same(old, new)) else { continue };
        let (was, is) = (effective(old, old_common), effective(new, common));
        if was != is {
            let (was, is) = (selected(was)?, selected(is)?);
            let stays = was.iter().any(|node| is.contains(node));
            if !was.is_empty() && !is.is_empty() && !stays {
                relocated.push(new);
            }
        }
    }
    Ok(relocated)
}

pub(crate) fn judge(
    database: &ComponentView<'_, Spec>,
    losses: &Losses<'_>,
    verdict: &mut Verdict,
) {
    if losses.are_meant(&item(database.kind, database.name)) {
        return;
    }
    let text = format!("{} would start empty: none of its nodes stays", database.title());
    let hint = format!(
        "move one node at a time; or copy the folders below /var/lib/contrail to the new nodes and confirm it in \
         the change: {}",
        losses.how_to_confirm()
    );
    verdict.add(LEFT_BEHIND.at(database.shared("/nodeSelector")).says(text).hint(hint));
}

/// The same of an object of its own, which has no annotation for it.
pub(crate) fn warn(database: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let text = format!("{} will start empty: none of its nodes stays", database.title());
    let finding = LEFT_BEHIND.at(database.shared("/nodeSelector")).severity(Severity::Warn);
    verdict.add(finding.says(text));
}
