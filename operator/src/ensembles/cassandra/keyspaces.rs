//! The keyspaces of OpenSDN, and how often each keeps its rows.

use super::MOST_COPIES;
use super::cql::{CqlError, Session};

/// That of the collector, which upstream's own deployer keeps twice at most (tf-container-builder,
/// `containers/analytics/collector/entrypoint.sh:44`); a third copy of all that is collected is for a person to want.
const OF_COLLECTOR: &str = "ContrailAnalyticsCql";
const MOST_OF_COLLECTOR: usize = 2;
const SIMPLE: &str = "org.apache.cassandra.locator.SimpleStrategy";
const BY_NETWORK: &str = "org.apache.cassandra.locator.NetworkTopologyStrategy";
/// That of SimpleSnitch.
const DATACENTER: &str = "datacenter1";

/// A keyspace whose rows are kept as often as it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keyspace {
    pub(super) name: String,
    pub(super) factor: u32,
    /// Class and options, with all that is not about the factor.
    replication: Vec<(String, String)>,
    /// The option that has the factor.
    option: &'static str,
}

impl Keyspace {
    fn new(name: String, replication: Vec<(String, String)>) -> Option<Self> {
        let of_cassandra = name.starts_with("system");
        let class = replication.iter().find(|(key, _)| key == "class")?.1.as_str();
        let option = match class {
            SIMPLE => "replication_factor",
            BY_NETWORK => DATACENTER,
            _ => return None,
        };
        let factor = replication.iter().find(|(key, _)| key == option)?.1.parse().ok()?;
        (!of_cassandra).then_some(Self { name, factor, replication, option })
    }

    /// How often it is kept next, with so many members: one more or one less than now, until it is right.
    pub(super) fn next(&self, members: usize) -> Option<u32> {
        let most = if self.name == OF_COLLECTOR { MOST_OF_COLLECTOR } else { MOST_COPIES };
        let least = u32::try_from(members.min(most)).unwrap_or(u32::MAX);
        if self.factor < least { Some(self.factor + 1) } else { self.fewer(members) }
    }

    /// How often next, when it is more often than there are members.
    pub(super) fn fewer(&self, members: usize) -> Option<u32> {
        let is_more = usize::try_from(self.factor).is_ok_and(|factor| factor > members.max(1));
        is_more.then(|| self.factor - 1)
    }

    /// How many members may be away so that all of it can be read and written: OpenSDN does so with most of the copies
    /// (tf-controller, `cassandra_cql.py`), the collector with any (tf-analytics, `db_handler.cc`).
    fn spare(&self) -> u32 {
        let needed = if self.name == OF_COLLECTOR { 1 } else { self.factor / 2 + 1 };
        self.factor.saturating_sub(needed)
    }

    /// The statement that has it be so.
    pub(super) fn alter(&self, factor: u32) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let options: Vec<String> = self
            .replication
            .iter()
            .map(|(key, value)| {
                let value = if key == self.option { factor.to_string() } else { value.clone() };
                format!("{}: {}", quoted(key), quoted(&value))
            })
            .collect();
        let name = self.name.replace('"', "\"\"");
        format!("ALTER KEYSPACE \"{name}\" WITH replication = {{{}}}", options.join(", "))
    }
}

/// How many members may be away so that all of these can be read and written; `None` where there are none yet.
pub(super) fn spare(all: &[Keyspace]) -> Option<i32> {
    let least = all.iter().map(Keyspace::spare).min()?;
    Some(i32::try_from(least).unwrap_or(i32::MAX))
}

/// All of OpenSDN's.
///
/// # Errors
/// They are not answered.
pub(super) async fn all(session: &mut Session) -> Result<Vec<Keyspace>, CqlError> {
    let rows = session
        .run("SELECT keyspace_name, toJson(replication) FROM system_schema.keyspaces")
        .await?;
    let keyspace = |row: Vec<Vec<u8>>| {
        let mut row = row.into_iter();
        let name = String::from_utf8(row.next()?).ok()?;
        let replication: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(&row.next()?).ok()?;
        let text =
            |(key, value): (String, serde_json::Value)| Some((key, value.as_str()?.to_owned()));
        Keyspace::new(name, replication.into_iter().map(text).collect::<Option<_>>()?)
    };
    let mut all: Vec<_> = rows.into_iter().filter_map(keyspace).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyspace(name: &str, replication: &[(&str, &str)]) -> Option<Keyspace> {
        let replication = replication.iter().map(|(key, value)| ((*key).into(), (*value).into()));
        Keyspace::new(name.into(), replication.collect())
    }

    #[test]
    fn a_row_is_kept_once_more_or_less_at_a_time() {
        let at = |factor: &str| {
            keyspace("config_db_uuid", &[("class", SIMPLE), ("replication_factor", factor)])
                .unwrap()
        };
        let all = [("1", 1, None), ("1", 3, Some(2)), ("2", 3, Some(3)), ("3", 5, None)];
        for (factor, members, next) in all {
            assert_eq!(at(factor).next(members), next, "{factor} times on {members}");
        }
        assert_eq!(at("5").next(5), None, "OpenSDN's own choice");
        assert_eq!(at("5").next(3), Some(4));
        assert_eq!((at("3").fewer(2), at("2").fewer(2), at("1").fewer(0)), (Some(2), None, None));
        let collector =
            keyspace(OF_COLLECTOR, &[("class", SIMPLE), ("replication_factor", "2")]).unwrap();
        assert_eq!((collector.next(3), collector.next(1)), (None, Some(1)));
    }

    #[test]
    fn as_many_members_may_be_away_as_the_keyspace_that_is_kept_least_allows() {
        let spared = |all: &[(&str, &str)]| {
            let of = |&(name, factor)| {
                keyspace(name, &[("class", SIMPLE), ("replication_factor", factor)]).unwrap()
            };
            spare(&all.iter().map(of).collect::<Vec<_>>())
        };
        assert_eq!(spared(&[]), None, "nothing is stored yet");
        let of_config = |factor| spared(&[("config_db_uuid", factor)]);
        assert_eq!(["1", "2", "3", "5"].map(of_config), [Some(0), Some(0), Some(1), Some(2)]);
        assert_eq!(spared(&[(OF_COLLECTOR, "2")]), Some(1), "any copy will do");
        assert_eq!(spared(&[("config_db_uuid", "5"), (OF_COLLECTOR, "1")]), Some(0));
    }

    #[test]
    fn nothing_else_of_a_keyspace_is_changed() {
        let by_network =
            keyspace("a\"b", &[("class", BY_NETWORK), (DATACENTER, "1"), ("x'y", "2")]);
        assert_eq!(
            by_network.unwrap().alter(2),
            format!(
                "ALTER KEYSPACE \"a\"\"b\" WITH replication = {{'class': '{BY_NETWORK}', 'datacenter1': '2', 'x''y': '2'}}"
            )
        );
        assert_eq!(
            keyspace("system_auth", &[("class", SIMPLE), ("replication_factor", "1")]),
            None
        );
        assert_eq!(keyspace("a", &[("class", "LocalStrategy")]), None);
        assert_eq!(keyspace("a", &[("class", SIMPLE), ("replication_factor", "3/1")]), None);
    }
}
