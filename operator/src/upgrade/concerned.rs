//! Which Upgrades of a namespace are looked at when something changes there: those at work, and for each Manager the first
//! of those that wait. The others wait for these and are looked at every minute: by the thousand they would keep an Upgrade
//! at work waiting for minutes.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::DynamicObject;
use opensdn_crds::upgrade::Phase;

use crate::cache::is_over;
use crate::object::text;

/// Those of one namespace.
pub(crate) fn concerned(all: &[Arc<DynamicObject>]) -> Vec<&Arc<DynamicObject>> {
    let mut first: BTreeMap<(&str, &str), &Arc<DynamicObject>> = BTreeMap::new();
    let mut found = Vec::new();
    for upgrade in all {
        let phase = text(&upgrade.data, "/status/phase");
        let is = |one: Phase| phase == one.as_str();
        if phase.is_empty() || is(Phase::Pending) || is(Phase::Refused) {
            // Nothing of one that is refused is done, so it is in the way of none that waits.
            let kind = if is(Phase::Refused) { phase } else { "" };
            let one = first.entry((text(&upgrade.data, "/spec/manager"), kind)).or_insert(upgrade);
            if age(upgrade) < age(one) {
                *one = upgrade;
            }
            continue;
        }
        found.extend((!is_over(upgrade)).then_some(upgrade));
    }
    found.extend(first.into_values());
    found
}

/// As the older comes first.
fn age(upgrade: &DynamicObject) -> impl PartialOrd + use<'_> {
    (&upgrade.metadata.creation_timestamp, &upgrade.metadata.uid)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn upgrade(name: &str, hour: u32, phase: Option<&str>) -> Arc<DynamicObject> {
        let created = format!("2026-01-01T{hour:02}:00:00Z");
        let object = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
            "metadata": {"name": name, "namespace": "tf", "uid": name, "creationTimestamp": created},
            "spec": {"manager": "m"}, "status": {"phase": phase}});
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn names(all: &[Arc<DynamicObject>]) -> Vec<String> {
        let mut names: Vec<String> =
            concerned(all).iter().filter_map(|one| one.metadata.name.clone()).collect();
        names.sort();
        names
    }

    #[test]
    fn thousands_that_wait_are_not_looked_at_for_each_change() {
        let mut all: Vec<_> =
            (2..12).map(|hour| upgrade(&format!("w{hour}"), hour, None)).collect();
        all.push(upgrade("work", 1, Some("Running")));
        assert_eq!(names(&all), ["w2", "work"]);
        all.push(upgrade("refused", 0, Some("Refused")));
        all.push(upgrade("done", 0, Some("Succeeded")));
        all.push(upgrade("back", 0, Some("RolledBack")));
        all.push(upgrade("stopped", 0, Some("Stopped")));
        assert_eq!(names(&all), ["refused", "stopped", "w2", "work"]);
        // Also where it is over, one that is to go back waits for others.
        let mut back = upgrade("back-again", 0, Some("Succeeded"));
        Arc::get_mut(&mut back).unwrap().data["spec"]["goal"] = json!("RollBack");
        assert_eq!(names(&[back]), ["back-again"]);
    }

    #[test]
    fn of_each_manager_the_first_is() {
        let mut other = upgrade("other", 9, Some("Pending"));
        Arc::get_mut(&mut other).unwrap().data["spec"]["manager"] = json!("n");
        assert_eq!(names(&[upgrade("a", 1, None), upgrade("b", 2, None), other]), ["a", "other"]);
    }
}
