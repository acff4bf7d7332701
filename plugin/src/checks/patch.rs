//! Commands that change a service where it is written: in its Manager.

use serde_json::{Map, Value, json};

use super::planned::is_planned;
use super::world::Service;
use crate::snapshot::{name, namespace};

/// The command that sets a field of the service; the way to it in its item, such as `spec`, `serviceConfiguration`,
/// `cniMTU`.
pub(super) fn set_field(service: &Service<'_>, way: &[&str], value: Value) -> String {
    let (place, manager) = (namespace(service.manager), name(service.manager));
    let start = format!("kubectl patch managers.tf.tungsten.io {manager} -n {place}");
    let at = service.at.as_deref().unwrap_or(service.facts.key);
    if is_planned(service.manager) {
        return in_file(
            place,
            manager,
            &format!("spec.services.{}.{}", at.replace('/', "."), way.join(".")),
            &value,
        );
    }
    // A merge would replace a list of services with one entry. To add sets what is there too, and makes no parents.
    let (there, missing) = split(service, way);
    let value = missing
        .iter()
        .rev()
        .fold(value, |value, key| Value::Object(Map::from_iter([((*key).to_owned(), value)])));
    let path = there.iter().fold(format!("/spec/services/{at}"), |path, key| {
        format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
    });
    let patch = json!([{"op": "add", "path": path, "value": value}]);
    format!("{start} --type=json -p '{patch}'")
}

/// The same of a Manager of a file: the one of the cluster may be another, or not be there.
pub(super) fn in_file(place: &str, manager: &str, field: &str, value: &Value) -> String {
    format!("in the file, for Manager {place}/{manager}: {field}: {value}")
}

/// The way to what is to be set, whose parents are there, and what has to be made in it.
fn split<'a>(service: &Service<'_>, way: &'a [&'a str]) -> (&'a [&'a str], &'a [&'a str]) {
    let mut count = 0;
    // The spec is that of the item itself.
    let mut at = Some(service.spec).filter(|spec| spec.is_object());
    while at.is_some() && count + 1 < way.len() {
        count += 1;
        let next = way.get(count).and_then(|key| at?.get(key));
        at = next.filter(|value| value.is_object());
    }
    way.split_at((count + 1).min(way.len()))
}
