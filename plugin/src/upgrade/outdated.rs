//! Which releases the services of Managers run, and the next that each can have: what `install` says of them, as it
//! touches no service. Pure.

use opensdn_upgrade::images;
use opensdn_upgrade::version::{RELEASES, Version};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::next_command::NextCommand;
use super::table::{self, Row};
use crate::snapshot::{annotation, name, namespace};
use crate::ui::Layout;
use crate::upgrade::world::RELEASE;

/// A Manager, and what its services run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ManagerRelease {
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// The releases that its services run.
    pub(crate) from: String,
    /// The next release; none where it runs the newest that is known, or what it runs is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// The command that shows what an upgrade to it would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// Of these Managers.
pub(crate) fn releases(managers: &[Value]) -> Vec<ManagerRelease> {
    let several =
        |of: &Value| managers.iter().filter(|one| namespace(one) == namespace(of)).nth(1).is_some();
    managers.iter().map(|manager| of(manager, several(manager))).collect()
}

fn of(manager: &Value, one_of_several: bool) -> ManagerRelease {
    let services = images::services(manager.get("spec").unwrap_or(&Value::Null));
    let all = services.iter().flat_map(|service| &service.images);
    let from = images::release(all.map(|entry| entry.image.as_str()));
    // What the annotation says wins over tags.
    let said = annotation(manager, RELEASE).unwrap_or(&from);
    let oldest = said.split(',').filter_map(Version::of_tag).min();
    let next = oldest.and_then(|version| RELEASES.get(version.place()));
    let to = next.map(|&(year, number)| Version { year, number, patch: 0 }.to_string());
    let (place, name) = (namespace(manager).to_owned(), name(manager).to_owned());
    let command = to.as_deref().map(|to| {
        let mut words = vec!["plan", to];
        if one_of_several {
            words.extend(["--manager", &name]);
        }
        NextCommand::new(Some(place.clone())).of(&words)
    });
    ManagerRelease { namespace: place, name, from, to, next: command }
}

/// What an installation leaves as it is, and what upgrades it; no line where there is no Manager.
pub(crate) fn lines(managers: &[ManagerRelease], layout: Layout) -> Vec<String> {
    if managers.is_empty() {
        return Vec::new();
    }
    let rows: Vec<Row> = managers.iter().map(row).collect();
    let mut out = Vec::new();
    // Writing to memory cannot fail.
    let _ = table::write(&["MANAGER", "FROM", "TO", "UPGRADE"], &rows, layout, &mut out);
    let table = String::from_utf8_lossy(&out).into_owned();
    let head = "services keep their images: install brings the operator and the webhook, and upgrade the services";
    std::iter::once(head).chain(table.lines()).map(str::to_owned).collect()
}

fn row(one: &ManagerRelease) -> Row {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let from = Some(one.from.clone()).filter(|from| !from.is_empty());
    let title = format!("{}/{}", one.namespace, one.name);
    let cells = vec![title, or_none(&from), or_none(&one.to), or_none(&one.next)];
    Row { cells, ..Row::default() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manager(name: &str, tags: &[&str]) -> Value {
        let images = tags
            .iter()
            .map(|tag| json!({"name": format!("c{tag}"), "image": format!("x/contrail-a:{tag}")}));
        let containers: Vec<Value> = images.collect();
        json!({"metadata": {"name": name, "namespace": "tf"}, "spec": {"services": {"config": {
            "metadata": {"name": "config1"},
            "spec": {"serviceConfiguration": {"containers": containers}}}}}})
    }

    fn next(tags: &[&str]) -> Option<String> {
        releases(&[manager("a", tags)]).remove(0).to
    }

    #[test]
    fn the_next_release_is_named_and_none_where_there_is_none() {
        assert_eq!(next(&["R21.4.1"]).as_deref(), Some("R24.1"), "no release is skipped");
        assert_eq!(next(&["2011"]).as_deref(), Some("R21.3"));
        assert_eq!(next(&["R25.1", "R24.1"]).as_deref(), Some("R25.1"), "of the oldest");
        assert_eq!(next(&["R25.1"]), None);
        assert_eq!(next(&["latest"]), None);
        let mut said = manager("a", &["latest"]);
        said["metadata"]["annotations"] = json!({"opensdn.io/release": "R24.1"});
        assert_eq!(releases(&[said])[0].to.as_deref(), Some("R25.1"), "the annotation wins");
    }

    #[test]
    fn each_manager_is_a_line_with_the_command_that_shows_its_upgrade() {
        let all = releases(&[manager("a", &["R24.1"]), manager("b", &["R25.1"])]);
        let layout = Layout { width: 100, unicode: false };
        let expected = [
            "MANAGER  FROM   TO     UPGRADE",
            "tf/a     R24.1  R25.1  kubectl opensdn upgrade plan R25.1 --manager a -n tf",
            "tf/b     R25.1  -      -",
        ];
        assert_eq!(lines(&all, layout).split_off(1), expected);
        assert!(lines(&[], layout).is_empty());
    }
}
