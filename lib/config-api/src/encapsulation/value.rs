//! The order of tunnels: the one that is wanted, and what is stored, read as an agent reads it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const LIST: &str = "encapsulation";
const MOST_SHOWN: usize = 100;

/// A kind of tunnel, by its name in the Config API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encapsulation {
    /// MPLS over GRE.
    #[serde(rename = "MPLSoGRE")]
    MplsOverGre,
    /// MPLS over UDP.
    #[serde(rename = "MPLSoUDP")]
    MplsOverUdp,
    /// VXLAN.
    #[serde(rename = "VXLAN")]
    Vxlan,
}

impl Encapsulation {
    const ALL: [Self; 3] = [Self::MplsOverGre, Self::MplsOverUdp, Self::Vxlan];

    /// As the Config API writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MplsOverGre => "MPLSoGRE",
            Self::MplsOverUdp => "MPLSoUDP",
            Self::Vxlan => "VXLAN",
        }
    }

    fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// An order of tunnels, the first of which is preferred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Encapsulation>", into = "Vec<Encapsulation>")]
pub struct Priorities(Vec<Encapsulation>);

/// What is no order of tunnels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPriorities {
    /// Without any an agent takes what it likes.
    #[error("there is no encapsulation: name at least one of MPLSoUDP, MPLSoGRE and VXLAN")]
    Empty,
    /// One is there more than once.
    #[error("{} is there more than once", .0.name())]
    Twice(Encapsulation),
    /// A name that no agent knows.
    #[error("{0:?} is no encapsulation: use MPLSoUDP, MPLSoGRE or VXLAN, in these letters")]
    Unknown(String),
}

impl Priorities {
    /// Each kind once.
    ///
    /// # Errors
    /// There is none, or one is there twice.
    pub fn new(order: impl IntoIterator<Item = Encapsulation>) -> Result<Self, NotPriorities> {
        let mut all = Vec::new();
        for one in order {
            if all.contains(&one) {
                return Err(NotPriorities::Twice(one));
            }
            all.push(one);
        }
        if all.is_empty() { Err(NotPriorities::Empty) } else { Ok(Self(all)) }
    }

    /// The property as it is written.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({ LIST: self.0 })
    }
}

impl TryFrom<Vec<Encapsulation>> for Priorities {
    type Error = NotPriorities;

    fn try_from(order: Vec<Encapsulation>) -> Result<Self, NotPriorities> {
        Self::new(order)
    }
}

impl From<Priorities> for Vec<Encapsulation> {
    fn from(priorities: Priorities) -> Self {
        priorities.0
    }
}

impl FromStr for Priorities {
    type Err = NotPriorities;

    /// With commas, as in `ENCAP_PRIORITY`.
    fn from_str(text: &str) -> Result<Self, NotPriorities> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let known = names.map(|name| {
            Encapsulation::of(name).ok_or_else(|| NotPriorities::Unknown(name.to_owned()))
        });
        Self::new(known.collect::<Result<Vec<_>, _>>()?)
    }
}

impl fmt::Display for Priorities {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&joined(&self.0))
    }
}

/// The property as it is stored, with what an agent makes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    raw: Value,
    seen: Vec<Encapsulation>,
}

impl Stored {
    /// Reads the property where it is there. Agents skip names that they do not know, and the second of two equal ones
    /// has no effect.
    #[must_use]
    pub fn read(property: Option<&Value>) -> Self {
        let raw = property.cloned().unwrap_or_default();
        let list = raw.get(LIST).unwrap_or(&raw);
        let names: Vec<&str> = match list {
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            Value::String(one) => vec![one],
            _ => Vec::new(),
        };
        let mut seen = Vec::new();
        for one in names.into_iter().filter_map(Encapsulation::of) {
            if !seen.contains(&one) {
                seen.push(one);
            }
        }
        Self { raw, seen }
    }

    /// The order as agents see it; nothing where they choose by themselves.
    #[must_use]
    pub fn seen(&self) -> &[Encapsulation] {
        &self.seen
    }

    /// Whether agents do the same by it.
    #[must_use]
    pub fn is(&self, wanted: &Priorities) -> bool {
        self.seen == wanted.0
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = self.raw.get(LIST).unwrap_or(&self.raw);
        let is_nothing = match list {
            Value::Array(all) => all.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::String(text) => text.is_empty(),
            other => other.is_null(),
        };
        if is_nothing {
            return to.write_str("not set");
        }
        if *list == json!(self.seen) {
            return to.write_str(&joined(&self.seen));
        }
        let mut text = list.to_string();
        text.truncate(text.floor_char_boundary(MOST_SHOWN));
        to.write_str(&text)
    }
}

fn joined(all: &[Encapsulation]) -> String {
    all.iter().map(|one| one.name()).collect::<Vec<&str>>().join(",")
}
