//! The Cassandras of one cluster: their names decide which data they keep, and where.

use opensdn_policy_components::{ComponentView, is_analytics_database};
use opensdn_policy_sdk::{Message, Severity, Verdict};

use crate::Spec;

pub(crate) const WRONG_NAME: Message = Message {
    code: "OSDN1504",
    severity: Severity::Deny,
    title: "two Cassandras would share one folder",
    explanation: "Where there are two databases, the beginning of the name decides which data a \
        Cassandra keeps and in which folder of the node. All whose names do not begin with \
        analyticsdb write into /var/lib/contrail/config-database: two in one folder destroy each \
        other's data.",
    hint: "name the second one analyticsdb1",
};

pub(crate) const TOO_MANY: Message = Message {
    code: "OSDN1506",
    severity: Severity::Warn,
    title: "there are more than two Cassandras",
    explanation: "One keeps the configuration, one the analytics data. A third runs idle.",
    hint: "leave configdb1 and analyticsdb1 in cassandras",
};

pub(crate) fn judge(components: &[ComponentView<'_, Spec>], verdict: &mut Verdict) {
    let databases: Vec<_> =
        components.iter().filter(|component| component.kind == "Cassandra").collect();
    let mut first = None;
    for database in databases.iter().filter(|database| !is_analytics_database(database.name)) {
        match first {
            None => first = Some(database.name),
            // The same name twice the schema refuses.
            Some(first) if first != database.name => {
                let text = format!(
                    "Cassandra {}: its folder would be that of Cassandra {first}",
                    database.name
                );
                let hint = format!(
                    "name it analyticsdb1 if it is for analytics, else remove it: {first} is the \
                     config database"
                );
                verdict.add(WRONG_NAME.at(&database.at).says(text).hint(hint));
            }
            Some(_) => {}
        }
    }
    if let Some(third) = databases.get(2) {
        let text = format!("{} Cassandras: nothing uses more than two", databases.len());
        verdict.add(TOO_MANY.at(&third.at).says(text));
    }
}
