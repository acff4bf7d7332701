//! A second database, or no second one any more: the first moves to another folder.

use opensdn_policy_components::ComponentView;
use opensdn_policy_sdk::{Message, Pointer, Severity, Verdict};

use crate::{
    confirmation::{Confirmed, in_manifest, item},
    interruption::Spec,
    is_same,
};

pub(crate) const MOVED: Message = Message {
    code: "OSDN1505",
    severity: Severity::Deny,
    title: "the config database would start empty",
    explanation: "One Cassandra alone keeps its data in /var/lib/contrail/database, beside another \
        one in /var/lib/contrail/config-database. Where a second one comes or goes, the first \
        finds its new folder empty: the configuration of the network is gone until the data is \
        moved.",
    hint: "leave the number of Cassandras as it is; else back up the database, move its folder on \
        each node while it is stopped, and confirm it by the annotation opensdn.io/confirm-loss",
};

pub(crate) fn judge(
    before: &[ComponentView<'_, Spec>],
    after: &[ComponentView<'_, Spec>],
    confirmed: &Confirmed,
    verdict: &mut Verdict,
) {
    let (old, new) = (databases(before), databases(after));
    if !matches!((old.len(), new.len()), (1, 2) | (2, 1)) {
        return;
    }
    for database in new.iter().filter(|database| !database.name.starts_with("analyticsdb")) {
        let item = item(database.kind, database.name);
        if confirmed.has(&item) || !old.iter().any(|old| is_same(old, database)) {
            continue;
        }
        let text = format!(
            "{} would start empty: with {} instead of {} its folder is another",
            database.title(),
            count(new.len()),
            count(old.len()),
        );
        let hint = format!(
            "leave the number of Cassandras as it is; else back up the database, move its folder \
             on each node while it is stopped, and confirm it in the change: {}",
            in_manifest(&[item])
        );
        verdict.add(MOVED.at(Pointer::from("/spec/services/cassandras")).says(text).hint(hint));
    }
}

fn databases<'a, 'b>(
    components: &'a [ComponentView<'b, Spec>],
) -> Vec<&'a ComponentView<'b, Spec>> {
    components.iter().filter(|component| component.kind == "Cassandra").collect()
}

fn count(databases: usize) -> &'static str {
    if databases == 1 { "one Cassandra" } else { "two Cassandras" }
}
