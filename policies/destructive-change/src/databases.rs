//! A second database, or no second one any more: the first moves to another folder.

use opensdn_policy_components::{ComponentView, is_analytics_database};
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};

use crate::{
    confirmation::{Losses, item},
    interruption::Spec,
    is_same,
};

pub(crate) const MOVED: Message = Message {
    code: "OSDN1505",
    severity: Severity::Deny,
    title: "the config database would open another folder",
    explanation: "One Cassandra alone keeps its data in /var/lib/contrail/database, beside another \
        one in /var/lib/contrail/config-database. Where a second one comes or goes, the first opens \
        the other folder, which is empty or has another database's data, and the second may open \
        the first one's: the configuration of the network is gone until the data is moved.",
    hint: "leave it at one Cassandra, or at more; else stop both and back them up, move away what is \
        in the folder that the config database opens next, move its own there, on each node, and \
        confirm it by the annotation opensdn.io/confirm-loss",
};

/// The databases whose folder is another after the change.
pub(crate) fn moved<'a, 'b>(
    before: &[ComponentView<'_, Spec>],
    after: &'a [ComponentView<'b, Spec>],
) -> Vec<&'a ComponentView<'b, Spec>> {
    let is_alone = |all: &[ComponentView<'_, Spec>]| all.iter().filter(is_database).count() == 1;
    if is_alone(before) == is_alone(after) {
        return Vec::new();
    }
    let moves = |database: &&ComponentView<'_, Spec>| {
        is_database(database)
            && !is_analytics_database(database.name)
            && before.iter().any(|old| is_same(old, database))
    };
    after.iter().filter(moves).collect()
}

pub(crate) fn judge(
    database: &ComponentView<'_, Spec>,
    losses: &Losses<'_>,
    verdict: &mut Verdict,
) {
    if losses.are_meant(&item(database.kind, database.name)) {
        return;
    }
    let text = format!(
        "{} would not find its data: its folder is another with a second Cassandra than without",
        database.title(),
    );
    let hint = format!(
        "leave it at one Cassandra, or at more; else stop both and back them up, move away what is \
         in the folder that it opens next, move its own there, on each node, and confirm it in the \
         change: {}",
        losses.how_to_confirm()
    );
    verdict.add(MOVED.at(Pointer::from("/spec/services/cassandras")).says(text).hint(hint));
}

fn is_database(component: &&ComponentView<'_, Spec>) -> bool {
    component.kind == "Cassandra"
}
