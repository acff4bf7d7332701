//! The rows that are in the cloud, as vrouter agents see them: of rows with one key the first wins, and what has
//! `metadata` in its name is Nova's metadata service, whatever it leads to.

use std::collections::BTreeMap;

use opensdn_config_api::link_local::{Key, Row, Target};

/// A row as an agent sees it.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) row: &'a Row,
    /// Where it is in the list, from 1.
    pub(crate) number: usize,
    pub(crate) key: Key,
    pub(crate) target: Target,
}

/// The list, with an index.
#[derive(Debug, Default)]
pub(crate) struct List<'a> {
    pub(crate) rows: Vec<Seen<'a>>,
    by_key: BTreeMap<Key, Vec<usize>>,
}

/// What the list has under a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// No row.
    Absent,
    /// The row that wins leads there.
    Served,
    /// The row that wins leads elsewhere.
    Elsewhere,
}

impl Seen<'_> {
    /// Agents take it for the metadata service.
    pub(crate) fn is_metadata(&self) -> bool {
        self.row.is_metadata()
    }

    pub(crate) fn leads_to(&self, target: &Target) -> bool {
        self.target.is_same(target) && !self.is_metadata()
    }

    /// How it is named to people.
    pub(crate) fn title(&self) -> String {
        format!("{} ({:?}, {})", self.number, shortened(self.row.name()), self.key)
    }
}

/// The beginning of a name of another owner, which can be as long as the list may be.
pub(crate) fn shortened(name: &str) -> &str {
    const LONGEST: usize = 80;
    name.get(..name.floor_char_boundary(LONGEST)).unwrap_or_default()
}

impl<'a> List<'a> {
    pub(crate) fn new(rows: &'a [Row]) -> Self {
        let mut list = Self::default();
        for (at, row) in rows.iter().enumerate() {
            let seen = Seen { row, number: at + 1, key: row.key(), target: row.target() };
            list.by_key.entry(seen.key).or_default().push(at);
            list.rows.push(seen);
        }
        list
    }

    /// Every row of the key, the one that wins first.
    pub(crate) fn at(&self, key: Key) -> impl Iterator<Item = &Seen<'a>> {
        let places = self.by_key.get(&key).into_iter().flatten();
        places.filter_map(|at| self.rows.get(*at))
    }

    /// The row of the key that wins.
    pub(crate) fn first(&self, key: Key) -> Option<&Seen<'a>> {
        self.at(key).next()
    }

    pub(crate) fn standing(&self, key: Key, target: &Target) -> Standing {
        match self.first(key) {
            None => Standing::Absent,
            Some(first) if first.leads_to(target) => Standing::Served,
            Some(_) => Standing::Elsewhere,
        }
    }

    /// The rows that win and lead there.
    pub(crate) fn serving(&self, target: &Target) -> impl Iterator<Item = &Seen<'a>> {
        let wins = |seen: &&Seen<'a>| {
            self.first(seen.key).is_some_and(|first| first.number == seen.number)
        };
        self.rows.iter().filter(move |seen| seen.leads_to(target)).filter(wins)
    }

    /// The keys that more than one row has.
    pub(crate) fn duplicates(&self) -> impl Iterator<Item = Key> {
        self.by_key.iter().filter(|(_, places)| places.len() > 1).map(|(key, _)| *key)
    }
}
