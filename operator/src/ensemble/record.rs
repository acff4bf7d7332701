//! What has to outlast the operator of an ensemble's members: their numbers, with whom it was first started,
//! and how many pods it was given last. It is an annotation of the StatefulSet, or, where each node has one, of the
//! ConfigMap, so it is there before the first pod is.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde::{Deserialize, Serialize};

use super::View;

/// The annotation.
pub const ANNOTATION: &str = "opensdn.io/ensemble";

/// What is kept of an ensemble.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Record {
    /// Numbers by address.
    pub ids: BTreeMap<String, u32>,
    /// The addresses of those that start together, the first time and never again. Were it another list for
    /// some of them, they could become two ensembles.
    pub first: Vec<String>,
    /// How many pods there are to be.
    pub replicas: i32,
    /// How many of them are members.
    pub members: i32,
    /// How many of them may be away, by how often what is stored is kept. Until the service has said it, their number says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare: Option<i32>,
    /// Where each node has a volume: the nodes that have a pod, by address. Kubernetes chooses none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homes: Option<BTreeMap<String, String>>,
}

impl Record {
    /// What the object has of it.
    #[must_use]
    pub fn read(object: Option<&DynamicObject>) -> Option<Self> {
        serde_json::from_str(object?.annotations().get(ANNOTATION)?).ok()
    }

    /// That of one that is started on these addresses.
    #[must_use]
    pub fn first(addresses: &[String]) -> Self {
        let count = i32::try_from(addresses.len()).unwrap_or(i32::MAX);
        let first = addresses.to_vec();
        let ids = BTreeMap::new();
        Self { ids, first, replicas: count, members: count, ..Self::default() }.with(addresses)
    }

    /// With a pod on exactly these nodes, which are by their addresses.
    #[must_use]
    pub fn at_home(self, homes: BTreeMap<String, String>) -> Self {
        let replicas = i32::try_from(homes.len()).unwrap_or(i32::MAX);
        Self { replicas, homes: Some(homes), ..self }
    }

    /// With a number for each of these addresses, and for no others but those that start together. A number
    /// that is given stays.
    #[must_use]
    pub fn with(mut self, addresses: &[String]) -> Self {
        self.ids.retain(|address, _| addresses.contains(address) || self.first.contains(address));
        for address in addresses {
            if !self.ids.contains_key(address) {
                let is_free = |id: &u32| self.ids.values().all(|other| other != id);
                let id = (1..=u32::MAX).find(is_free).unwrap_or_default();
                self.ids.insert(address.clone(), id);
            }
        }
        self
    }

    /// With the numbers that the service itself has for its members: those count.
    #[must_use]
    pub fn as_seen(mut self, view: &View) -> Self {
        let ids: BTreeMap<_, _> =
            view.members.iter().map(|member| (member.host.clone(), member.id)).collect();
        self.ids.retain(|address, id| {
            !ids.contains_key(address) && !ids.values().any(|other| other == id)
        });
        let before = self.members;
        self.members = i32::try_from(ids.len()).unwrap_or(i32::MAX);
        if self.members != before {
            // Until it has said it of so many.
            let most = (self.members - 1).max(0) / 2;
            self.spare = self.spare.map(|spare| spare.min(most));
        }
        self.ids.extend(ids);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ensemble::Member;

    fn addresses(all: &[&str]) -> Vec<String> {
        all.iter().map(|&one| one.to_owned()).collect()
    }

    #[test]
    fn a_number_that_was_given_stays_and_a_new_one_is_free() {
        let record = Record::first(&addresses(&["b", "c"]));
        assert_eq!((record.ids["b"], record.ids["c"], record.replicas), (1, 2, 2));
        let more = record.with(&addresses(&["a", "b", "c"]));
        assert_eq!((more.ids["a"], more.ids["b"], more.ids["c"]), (3, 1, 2));
        assert_eq!(more.first, ["b", "c"], "who starts together is settled once");
    }

    #[test]
    fn of_more_than_ten_each_has_a_number_of_its_own() {
        let all: Vec<String> = (1..=25).map(|one| format!("192.0.2.{one}")).collect();
        let record = Record::first(&all[..3]).with(&all[..12]).with(&all);
        let ids: std::collections::BTreeSet<u32> = record.ids.values().copied().collect();
        assert_eq!((ids.len(), ids.last()), (25, Some(&25)), "{record:?}");
    }

    #[test]
    fn what_the_service_says_of_its_members_counts() {
        let members = [(7, "a"), (1, "b")];
        let members = members.map(|(id, host)| Member { id, host: host.to_owned() });
        let view = View { members: members.into(), ..View::default() };
        let record = Record::first(&addresses(&["a", "b", "c"])).as_seen(&view);
        assert_eq!((record.ids["a"], record.ids["b"], record.members), (7, 1, 2));
        let record = record.with(&addresses(&["a", "b", "c"]));
        assert!(![1, 7].contains(&record.ids["c"]), "{record:?}");
    }

    #[test]
    fn of_fewer_members_no_more_than_fewer_than_half_may_be_away_until_the_service_says_it() {
        let view = |count: u32| View {
            members: (1..=count).map(|id| Member { id, host: id.to_string() }).collect(),
            ..View::default()
        };
        let five = Record { spare: Some(2), ..Record::default() }.as_seen(&view(5));
        assert_eq!(five.spare, Some(2));
        assert_eq!(five.clone().as_seen(&view(5)).spare, Some(2));
        assert_eq!(five.as_seen(&view(3)).spare, Some(1));
        let grown = Record { spare: Some(0), ..Record::default() }.as_seen(&view(3));
        assert_eq!(grown.spare, Some(0), "a copy is still to be made");
        assert_eq!(Record::default().as_seen(&view(3)).spare, None);
    }

    #[test]
    fn it_is_read_back_from_the_stateful_set_as_it_was() {
        let record = Record::first(&addresses(&["192.0.2.1"]));
        let text = serde_json::to_string(&record).unwrap();
        let set =
            serde_json::json!({"metadata": {"name": "a", "annotations": {(ANNOTATION): text}}});
        let set: DynamicObject = serde_json::from_value(set).unwrap();
        assert_eq!(Record::read(Some(&set)), Some(record));
        assert_eq!(Record::read(None), None);
    }
}
