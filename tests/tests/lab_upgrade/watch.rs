//! The pods of the services, as they were seen while an upgrade was at work.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::services::NODES;
use crate::lab_quorum::world::{Service, entry};

/// What was seen.
pub(crate) struct Watch {
    version: &'static str,
    /// The pods that have been ready once. One that is not ready for a moment after that was not taken away.
    been_ready: BTreeSet<String>,
    most_missing: BTreeMap<&'static str, usize>,
    /// Those that had an image of the version.
    new: BTreeMap<&'static str, BTreeSet<String>>,
}

impl Watch {
    /// Nothing was seen yet.
    pub(crate) fn of(version: &'static str) -> Self {
        Self {
            version,
            been_ready: BTreeSet::new(),
            most_missing: BTreeMap::new(),
            new: BTreeMap::new(),
        }
    }

    /// One look at the pods of a service.
    pub(crate) fn look(&mut self, service: &Service, pods: &[Value]) {
        let mut serving = 0;
        for pod in pods {
            let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
            if entry(pod, "Ready")[0] == "True" {
                self.been_ready.insert(uid.to_owned());
            }
            if has_version(pod, self.version) {
                self.new.entry(service.word).or_default().insert(uid.to_owned());
            }
            let is_going = !pod["metadata"]["deletionTimestamp"].is_null();
            serving += usize::from(!is_going && self.been_ready.contains(uid));
        }
        let missing = NODES.len().saturating_sub(serving);
        let most = self.most_missing.entry(service.word).or_default();
        *most = missing.max(*most);
    }

    /// Whether a pod of any service has an image of the version.
    pub(crate) fn has_new(&self) -> bool {
        !self.new.is_empty()
    }

    pub(crate) fn only_one_of_each_was_missing(&self) {
        let has_more = self.most_missing.values().any(|most| *most > 1);
        assert!(!has_more, "missing at once: {:?}", self.most_missing);
    }

    pub(crate) fn at_most_one_of_each_was_new(&self) {
        self.new.keys().for_each(|service| self.at_most_one_was_new(service));
    }

    pub(crate) fn at_most_one_was_new(&self, service: &str) {
        let new = self.new.get(service).map_or(0, BTreeSet::len);
        assert!(new <= 1, "with images of {}: {:?}", self.version, self.new);
    }
}

/// Whether one of its containers has an image with that tag.
pub(crate) fn has_version(pod: &Value, version: &str) -> bool {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let mut images = containers.filter_map(|one| one["image"].as_str());
    images.any(|image| image.rsplit(':').next() == Some(version))
}
