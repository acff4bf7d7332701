//! Which CustomResourceDefinitions are stored, from a watch of their metadata. Their names,
//! `<plural>.<group>`, say enough; the definitions themselves are large.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::watch::Event;

/// Plural names of the defined kinds, by group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Definitions(BTreeMap<String, BTreeSet<String>>);

impl Definitions {
    /// The plural names of a group's defined kinds.
    pub(super) fn of_group(&self, group: &str) -> impl Iterator<Item = &str> {
        self.0.get(group).into_iter().flatten().map(String::as_str)
    }

    /// Whether a definition of that resource is stored.
    pub(super) fn has(&self, group: &str, plural: &str) -> bool {
        self.0.get(group).is_some_and(|plurals| plurals.contains(plural))
    }

    fn put(&mut self, object: &Value) {
        if let Some((plural, group)) = name(object) {
            self.0.entry(group.to_owned()).or_default().insert(plural.to_owned());
        }
    }

    fn remove(&mut self, object: &Value) {
        if let Some((plural, group)) = name(object)
            && let Some(plurals) = self.0.get_mut(group)
        {
            plurals.remove(plural);
        }
    }

    #[cfg(test)]
    pub(super) fn of(names: &[&str]) -> Self {
        let mut definitions = Self::default();
        for name in names {
            definitions.put(&serde_json::json!({"metadata": {"name": name}}));
        }
        definitions
    }
}

fn name(object: &Value) -> Option<(&str, &str)> {
    object.pointer("/metadata/name").and_then(Value::as_str)?.split_once('.')
}

/// What the watch has reported so far.
#[derive(Default)]
pub(super) struct Following {
    known: Option<Definitions>,
    listing: Definitions,
}

impl Following {
    /// What is stored, once it was listed.
    pub(super) fn known(&self) -> Option<&Definitions> {
        self.known.as_ref()
    }

    /// Takes in a change; says whether the served kinds may be others now.
    pub(super) fn apply(&mut self, change: &Event) -> bool {
        match change {
            Event::Init => self.listing = Definitions::default(),
            Event::InitApply(object) => self.listing.put(object),
            Event::InitDone(_) => self.known = Some(std::mem::take(&mut self.listing)),
            Event::Apply(object) => self.known.get_or_insert_default().put(object),
            Event::Delete(object) => self.known.get_or_insert_default().remove(object),
            Event::Heartbeat | Event::Disconnected { .. } => {}
        }
        matches!(change, Event::InitDone(_) | Event::Apply(_) | Event::Delete(_))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::watch::Listed;

    #[test]
    fn a_list_replaces_what_was_known_and_changes_are_followed() {
        let named = |name: &str| json!({"metadata": {"name": name}});
        let mut following = Following::default();
        assert!(!following.apply(&Event::Init));
        assert!(!following.apply(&Event::InitApply(named("things.g.example"))));
        assert_eq!(following.known(), None, "half a list is no answer");
        assert!(following.apply(&Event::InitDone(Listed::default())));
        assert_eq!(following.known(), Some(&Definitions::of(&["things.g.example"])));
        assert!(following.apply(&Event::Apply(named("others.g.example"))));
        assert!(following.apply(&Event::Delete(named("things.g.example"))));
        let known = following.known().unwrap();
        assert_eq!(known.of_group("g.example").collect::<Vec<_>>(), ["others"]);
        assert!(!known.has("g.example", "things"));
        for change in [Event::Init, Event::InitDone(Listed::default())] {
            following.apply(&change);
        }
        assert_eq!(following.known(), Some(&Definitions::default()));
    }
}
