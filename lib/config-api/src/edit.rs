//! What becomes of the rows that were read: those of ours as they are wanted, those of others untouched and in their
//! order. Deliberately not here: how they are written, and how often.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::link_local::{Key, Row, Rows};
use crate::ownership::{Held, How};

/// What is wanted, and what is known of who has which row.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// The rows that are to be there.
    pub rows: &'a [Row],
    /// What our record has.
    pub ours: &'a BTreeMap<Key, Held>,
    /// The keys that records of other clusters have.
    pub others: &'a BTreeSet<Key>,
    /// Those of them that another cluster has written.
    pub written: &'a BTreeSet<Key>,
    /// What becomes of a row of others that has a key of ours.
    pub foreign: Foreign,
    /// What becomes of a row of ours that is not wanted any more.
    pub unwanted: Unwanted,
}

/// What becomes of a row of ours that is not wanted any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwanted {
    /// It stays, and our record has it as one that is to go: what was started with it may use it still.
    Keep,
    /// It is removed.
    Remove,
}

/// What becomes of a row of others that has a key of ours and leads elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// It is a conflict, and nothing is changed.
    Respect,
    /// It is replaced by ours.
    TakeOver,
}

/// The rows as they are to be.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The new property.
    pub rows: Rows,
    /// What differs; nothing if there is nothing to write.
    pub changes: Vec<Change>,
    /// What our record has then.
    pub held: BTreeMap<Key, Held>,
    /// Rows of ours that are no longer wanted, and stay since the record of another cluster has them.
    pub shared: Vec<Key>,
}

/// A difference.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A new row at the end.
    Added(Row),
    /// A row in the place of another.
    Replaced {
        /// What was there.
        before: Row,
        /// What is there then.
        after: Row,
    },
    /// A row that is no longer there.
    Removed(Row),
}

impl fmt::Display for Change {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(row) => write!(to, "+ {row}"),
            Self::Replaced { before, after } => write!(to, "- {before}\n+ {after}"),
            Self::Removed(row) => write!(to, "- {row}"),
        }
    }
}

/// Why a wanted row cannot be had.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// What is wanted.
    pub wanted: Row,
    /// What is in its way.
    pub found: Row,
    /// How it is in its way.
    pub kind: ConflictKind,
}

/// How a row is in the way of a wanted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictKind {
    /// It is of others and has the key.
    Foreign,
    /// It is of others and before ours, so that agents take it.
    Shadowing,
    /// It is ours, and another cluster uses it as it is.
    Shared,
    /// It is wanted as well.
    Twice,
}

impl fmt::Display for Conflict {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wanted, found, kind } = self;
        let why = match kind {
            ConflictKind::Foreign => "is there already and is not ours",
            ConflictKind::Shadowing => "is not ours and stands before ours, so that it wins",
            ConflictKind::Shared => "is used as it is by another nested cluster",
            ConflictKind::Twice => "is wanted as well",
        };
        write!(to, "{wanted}: {found} {why}")
    }
}

/// All rows that cannot be had.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("link-local services are in conflict:{}", .0.iter().map(|one| format!("\n  {one}")).collect::<String>())]
pub struct Conflicts(pub Vec<Conflict>);

/// Edits the rows that were read.
///
/// # Errors
/// Rows of others are in the way.
pub fn edit(current: &Rows, wanted: &Wanted<'_>) -> Result<Edit, Conflicts> {
    let mut draft = Draft {
        wanted,
        rows: current.rows().to_vec(),
        changes: Vec::new(),
        held: BTreeMap::new(),
        shared: Vec::new(),
        conflicts: twice(wanted.rows),
    };
    let keys: BTreeSet<Key> = wanted.rows.iter().map(Row::key).collect();
    for (key, held) in wanted.ours.iter().filter(|(key, _)| !keys.contains(key)) {
        draft.remove(*key, held);
    }
    for row in wanted.rows {
        draft.place(row);
    }
    if !draft.conflicts.is_empty() {
        return Err(Conflicts(draft.conflicts));
    }
    let Draft { rows, changes, held, shared, .. } = draft;
    Ok(Edit { rows: current.with(rows), changes, held, shared })
}

/// Rows that have their key of another one that is wanted.
fn twice(rows: &[Row]) -> Vec<Conflict> {
    let mut seen: BTreeMap<Key, &Row> = BTreeMap::new();
    let mut found = Vec::new();
    for row in rows {
        match seen.insert(row.key(), row) {
            Some(other) if !other.target().is_same(&row.target()) => found.push(Conflict {
                wanted: row.clone(),
                found: other.clone(),
                kind: ConflictKind::Twice,
            }),
            _ => {}
        }
    }
    found
}

struct Draft<'a> {
    wanted: &'a Wanted<'a>,
    rows: Vec<Row>,
    changes: Vec<Change>,
    held: BTreeMap<Key, Held>,
    shared: Vec<Key>,
    conflicts: Vec<Conflict>,
}

impl Draft<'_> {
    fn remove(&mut self, key: Key, held: &Held) {
        if self.wanted.others.contains(&key) {
            self.shared.extend(held.how.is_ours().then_some(key));
            return;
        }
        let own = self.own(key, Some(held));
        match self.wanted.unwanted {
            Unwanted::Remove => self.drop_rows(&own),
            Unwanted::Keep if own.is_empty() => {}
            Unwanted::Keep => {
                self.held.insert(key, Held { how: How::Leaving, ..held.clone() });
            }
        }
    }

    fn place(&mut self, row: &Row) {
        let key = row.key();
        let recorded = self.wanted.ours.get(&key);
        let at = self.rows.iter().position(|one| one.key() == key);
        let Some((at, found)) = at.and_then(|at| Some((at, self.rows.get(at)?.clone()))) else {
            self.rows.push(row.clone());
            self.changes.push(Change::Added(row.clone()));
            self.hold(row, How::Written);
            return;
        };
        if found.target().is_same(&row.target()) {
            // What is there already keeps its name: another may resolve it.
            let how = match recorded {
                None => How::Adopted,
                Some(held) if held.how.is_ours() => How::Written,
                Some(held) => held.how,
            };
            // The last cluster that uses it takes it away.
            let is_of_clusters = self.wanted.written.contains(&key);
            self.hold(&found, if is_of_clusters { How::Written } else { how });
            return;
        }
        let own = self.own(key, recorded);
        if (self.wanted.foreign == Foreign::Respect || found.is_metadata())
            && let Some(kind) = self.conflict(key, at, &own, row)
        {
            self.conflicts.push(Conflict { wanted: row.clone(), found, kind });
            return;
        }
        if let Some(place) = self.rows.get_mut(at) {
            *place = row.clone();
        }
        self.changes.push(Change::Replaced { before: found, after: row.clone() });
        self.drop_rows(&own.into_iter().filter(|one| *one != at).collect::<Vec<usize>>());
        self.hold(row, How::Written);
    }

    fn conflict(&self, key: Key, at: usize, own: &[usize], row: &Row) -> Option<ConflictKind> {
        if own.contains(&at) {
            return self.wanted.others.contains(&key).then_some(ConflictKind::Shared);
        }
        let same = |one: &Row| one.key() == key && one.target().is_same(&row.target());
        let is_behind = !own.is_empty() || self.rows.iter().any(same);
        Some(if is_behind { ConflictKind::Shadowing } else { ConflictKind::Foreign })
    }

    /// The rows of a key that we have written: those with our name, or else the first with our target, since others
    /// may rename it or have written the same.
    fn own(&self, key: Key, held: Option<&Held>) -> Vec<usize> {
        let Some(held) = held.filter(|held| held.how.is_ours()) else { return Vec::new() };
        // A record that has it is wrong: without the metadata service no virtual machine of the cloud starts.
        let of_key = || {
            let all = self.rows.iter().enumerate();
            all.filter(|(_, row)| row.key() == key && !row.is_metadata())
        };
        let named: Vec<usize> =
            of_key().filter(|(_, row)| row.name() == held.name).map(|(at, _)| at).collect();
        if !named.is_empty() {
            return named;
        }
        let same = of_key().find(|(_, row)| row.target().is_same(&held.target));
        same.map(|(at, _)| at).into_iter().collect()
    }

    fn drop_rows(&mut self, all: &[usize]) {
        for at in all.iter().rev() {
            self.changes.push(Change::Removed(self.rows.remove(*at)));
        }
    }

    fn hold(&mut self, row: &Row, how: How) {
        let held = Held { name: row.name().to_owned(), target: row.target(), how };
        self.held.insert(row.key(), held);
    }
}

/// A row of others that has vanished, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Lost {
    at: usize,
    /// The row.
    pub row: Row,
}

/// The rows of others that were there before and are not there now, by what they mean. One that has been changed is not
/// lost: instead of it there is another one with its key. That of a key of ours is not one of others.
#[must_use]
pub fn lost(before: &Rows, after: &Rows, ours: &BTreeSet<Key>) -> Vec<Lost> {
    let mut rest: Vec<&Row> = after.rows().iter().collect();
    let mut take = |is_it: &dyn Fn(&Row) -> bool| {
        let at = rest.iter().position(|row| is_it(row));
        at.map(|at| rest.swap_remove(at)).is_some()
    };
    let foreign = before.rows().iter().enumerate().filter(|(_, row)| !ours.contains(&row.key()));
    let mut gone: Vec<(usize, &Row)> =
        foreign.filter(|(_, row)| !take(&|other| other == *row)).collect();
    gone.retain(|(_, row)| !take(&|other| other.key() == row.key()));
    gone.into_iter().map(|(at, row)| Lost { at, row: row.clone() }).collect()
}

/// The rows with those that are lost, in their places.
#[must_use]
pub fn put_back(rows: &Rows, lost: &[Lost]) -> Rows {
    let mut all = rows.rows().to_vec();
    for one in lost {
        all.insert(one.at.min(all.len()), one.row.clone());
    }
    rows.with(all)
}

#[cfg(test)]
mod tests;
