//! How each link-local service of a plan stands in the cloud at present: whether it has drifted from what is wanted, and
//! how. Fabric SNAT is one of them. Deliberately not here: who puts it right, and how often.

use std::fmt;

use crate::catalogue::Code;
use crate::finding::{Finding, Subject};
use crate::plan::{Part, Plan, PoolsAction, SnatAction};
use crate::rows::{Change, Fate, PlannedRow};

macro_rules! states {
    ($($name:ident = $word:literal, $code:expr, $title:literal;)+) => {
        /// How something stands.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum State {
            $(#[doc = $title] $name,)+
        }

        impl State {
            /// Every state.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// In a status.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)+ }
            }

            /// By what it is known, where it is not as wanted.
            #[must_use]
            pub fn code(self) -> Option<&'static str> {
                match self { $(Self::$name => $code,)+ }
            }

            /// Whether nothing has to be done about it.
            #[must_use]
            pub fn is_served(self) -> bool {
                matches!(self, Self::InPlace | Self::Renamed | Self::Leaving)
            }

            /// What is so, in one line.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)+ }
            }
        }
    };
}

states! {
    InPlace = "InPlace", None, "as wanted";
    Missing = "Missing", Some("OSDN3090"), "wanted, and not there";
    Changed = "Changed", Some("OSDN3091"), "ours, and leads elsewhere";
    Shadowed = "Shadowed", Some("OSDN3092"), "there, and an earlier one with its address and port wins";
    Renamed = "Renamed", Some("OSDN3093"), "as wanted, under another name";
    Orphan = "Orphan", Some("OSDN3094"), "ours, and not wanted any more";
    Leaving = "Leaving", Some("OSDN3094"), "ours, not wanted any more, and there until it is pruned";
    Taken = "Taken", Some("OSDN3095"), "not ours, and has an address and port that are wanted";
}

/// What stands so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Its name.
    pub name: String,
    /// Its address and port, or the network.
    pub service: String,
    /// Where it is to lead.
    pub target: String,
    /// How it stands.
    pub state: State,
    /// What is there instead.
    pub found: Option<String>,
}

impl fmt::Display for Drift {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, service, target, state, found } = self;
        write!(to, "{} ({service} -> {target}): {}", name.escape_debug(), state.title())?;
        match found {
            Some(found) => write!(to, ": {found}"),
            None => Ok(()),
        }
    }
}

/// Each service of the plan in its order, then those of our record that are to go, fabric SNAT, and port pools that are
/// missing. Where the rows of
/// the cloud were not read, there is none.
#[must_use]
pub fn drift(plan: &Plan) -> Vec<Drift> {
    let is_unread = plan.unread.iter().any(|part| matches!(part, Part::Rows | Part::Records));
    let planned = plan.rows.iter().filter(|_| !is_unread).map(|row| Drift::of(plan, row));
    let orphans = plan.removed.iter().filter_map(|row| {
        let state = match row.fate {
            Fate::Deleted => State::Orphan,
            Fate::Kept => State::Leaving,
            Fate::Shared | Fate::Adopted | Fate::Gone => return None,
        };
        let (service, target) = (row.service.clone(), row.target.clone());
        Some(Drift { name: String::new(), service, target, state, found: None })
    });
    let snat = match plan.snat {
        SnatAction::Enable { .. } => Some(State::Missing),
        SnatAction::AlreadyOn => Some(State::InPlace),
        SnatAction::Leave | SnatAction::Unknown => None,
    };
    let snat = snat.map(|state| Drift {
        name: "fabric SNAT".to_owned(),
        service: plan.network.joined(),
        target: "the fabric".to_owned(),
        state,
        found: None,
    });
    let pools = matches!(plan.pools, PoolsAction::Add(_)).then(|| Drift {
        name: "port translation pools".to_owned(),
        service: "TCP and UDP".to_owned(),
        target: "the fabric".to_owned(),
        state: State::Missing,
        found: None,
    });
    planned.chain(orphans).chain(snat).chain(pools).collect()
}

impl Drift {
    /// A row of the plan.
    #[must_use]
    pub fn of(plan: &Plan, row: &PlannedRow) -> Self {
        let about = Subject::Row(row.title());
        let found = plan.findings.iter().find(|one| is_of_row(one) && one.about == about);
        let (state, found) = match (row.change, found) {
            (Change::None, _) => match &row.usual_name {
                Some(usual) => (State::Renamed, Some(format!("a new one would be {usual}"))),
                None => (State::InPlace, None),
            },
            (Change::Add, _) => (State::Missing, None),
            (Change::Replace, Some(one)) if one.code == Code::Shadowed => {
                (State::Shadowed, Some(one.message.clone()))
            }
            (Change::Replace, Some(one)) => (State::Taken, Some(one.message.clone())),
            (Change::Replace, None) => (State::Changed, None),
        };
        let (service, target) = (row.service.to_string(), row.target.to_string());
        Self { name: row.name.clone(), service, target, state, found }
    }
}

/// Whether a finding is said by the state of a row.
#[must_use]
pub fn is_of_row(finding: &Finding) -> bool {
    matches!(finding.code, Code::KeyTaken | Code::Shadowed)
}

#[cfg(test)]
mod tests;
