//! The Cassandras of one cluster: their names decide which data they keep, and where.

use opensdn_policy_components::is_analytics_database;
use opensdn_policy_sdk::{Message, Severity, Verdict};

use crate::placement::Placed;

pub(crate) const WRONG_NAME: Message = Message {
    code: "OSDN1504",
    severity: Severity::Deny,
    title: "two Cassandras would share one folder",
    explanation: "Where there are two databases, the beginning of the name decides which data a \
        Cassandra keeps and in which folder of the node. All whose names begin with analyticsdb \
        write into /var/lib/contrail/database, all others into /var/lib/contrail/config-database: \
        two in one folder destroy each other's data.",
    hint: "name the second one analyticsdb1",
};

pub(crate) const TOO_MANY: Message = Message {
    code: "OSDN1506",
    severity: Severity::Warn,
    title: "there are more than two Cassandras",
    explanation: "One keeps the configuration, one the analytics data. A third runs idle.",
    hint: "leave configdb1 and analyticsdb1 in cassandras",
};

pub(crate) fn judge(placed: &[Placed<'_>], verdict: &mut Verdict) {
    let databases: Vec<_> =
        placed.iter().filter(|placed| placed.component.kind == "Cassandra").collect();
    for (number, second) in databases.iter().enumerate() {
        let (name, for_analytics) = (second.component.name, is_for_analytics(second));
        // The same name twice the schema refuses; databases that share no node share no folder.
        let first = databases.iter().take(number).find(|first| {
            first.component.name != name
                && is_for_analytics(first) == for_analytics
                && first.shares_nodes_with(second)
        });
        let Some(first) = first.map(|first| first.component.name) else { continue };
        let text = format!("Cassandra {name}: its folder would be that of Cassandra {first}");
        let hint = if for_analytics {
            format!("remove it: {first} is the analytics database")
        } else {
            format!(
                "name it analyticsdb1 if it is for analytics, else remove it: {first} is the config \
                 database"
            )
        };
        verdict.add(WRONG_NAME.at(&second.component.at).says(text).hint(hint));
    }
    if let Some(third) = databases.get(2) {
        let text = format!("{} Cassandras: nothing uses more than two", databases.len());
        verdict.add(TOO_MANY.at(&third.component.at).says(text));
    }
}

fn is_for_analytics(database: &Placed<'_>) -> bool {
    is_analytics_database(database.component.name)
}
