//! The link-local services of a cloud as they were before a write, in a ConfigMap beside the object that had them
//! written. It outlives the object. Of several the oldest go.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{DynamicObject, ObjectMeta};
use opensdn_runtime::apply::{apply, read};
use opensdn_runtime::call::CallError;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::names;
use crate::reconcile::Context;

/// So many are kept.
const MOST: usize = 5;
/// The API server takes no ConfigMap of more than a MiB, and some of it is used by others.
const LONGEST: usize = 700 << 10;

/// As the API server takes it.
const LONGEST_NAME: usize = 253;

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The cluster cannot be asked.
    #[error(transparent)]
    Call(Box<CallError>),
    /// It does not fit.
    #[error(
        "the link-local services of the cloud are {0} bytes, which no ConfigMap holds: use kubectl opensdn nested apply, \
         which saves them in a file"
    )]
    TooLong(usize),
    /// It is another's.
    #[error("the ConfigMap {0} was there before: delete it, or give the object another name")]
    NotOurs(String),
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}

/// Saves them, and says where.
pub(super) async fn save(
    ctx: &Context,
    kind: &str,
    object: &DynamicObject,
    rows: &Value,
) -> Result<String, Error> {
    let (namespace, name) = (object.namespace(), name_of(kind, object));
    let title = format!("{}/{name}", namespace.as_deref().unwrap_or_default());
    let text = rows.to_string();
    if text.len() > LONGEST {
        return Err(Error::TooLong(text.len()));
    }
    let stored: Option<ConfigMap> = read(&ctx.writer, namespace.as_deref(), &name).await?;
    let is_ours = |one: &ConfigMap| {
        one.labels().get(names::MANAGED_BY).is_some_and(|by| by == names::OPERATOR)
    };
    if stored.as_ref().is_some_and(|stored| !is_ours(stored)) {
        return Err(Error::NotOurs(title));
    }
    let earlier = stored.and_then(|stored| stored.data).unwrap_or_default();
    let data = with(earlier, text, OffsetDateTime::now_utc());
    let wanted = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name),
            namespace,
            labels: Some(names::managed(BTreeMap::new())),
            ..ObjectMeta::default()
        },
        data: Some(data),
        ..ConfigMap::default()
    };
    apply(&ctx.writer, &wanted).await?;
    Ok(format!("ConfigMap {title}"))
}

/// `NAME-nestedcluster-backup`; what is too long for a name has the UID in place of its end.
fn name_of(kind: &str, object: &DynamicObject) -> String {
    let (name, end) = (object.name_any(), format!("-{}-backup", kind.to_lowercase()));
    if name.len() + end.len() <= LONGEST_NAME {
        return format!("{name}{end}");
    }
    let uid = object.uid().unwrap_or_default();
    let most = LONGEST_NAME.saturating_sub(end.len() + uid.len() + 1);
    let begin = name.get(..name.floor_char_boundary(most)).unwrap_or_default();
    format!("{}-{uid}{end}", begin.trim_end_matches(['.', '-']))
}

/// With one more, unless the last says the same.
fn with(
    mut all: BTreeMap<String, String>,
    text: String,
    now: OffsetDateTime,
) -> BTreeMap<String, String> {
    if all.values().next_back() == Some(&text) {
        return all;
    }
    let now = now.replace_nanosecond(0).unwrap_or(now).format(&Rfc3339).unwrap_or_default();
    // A key has no colons.
    all.insert(format!("{}.json", now.replace(':', "")), text);
    let length = |all: &BTreeMap<String, String>| all.values().map(String::len).sum::<usize>();
    while all.len() > MOST || (all.len() > 1 && length(&all) > LONGEST) {
        all.pop_first();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_has_a_backup_of_its_own_however_long_its_name_is() {
        let named = |name: &str| {
            let mut object = DynamicObject::new(name, &crate::kind::Kind::NestedCluster.resource());
            object.metadata.uid = Some("5f3a0000-0000-0000-0000-000000000001".to_owned());
            name_of("NestedCluster", &object)
        };
        assert_eq!(named("a"), "a-nestedcluster-backup");
        let long = named(&"x".repeat(253));
        assert!(long.len() <= LONGEST_NAME && long.contains("-5f3a0000-"), "{long}");
    }

    #[test]
    fn the_latest_few_are_kept_and_what_is_said_already_is_not_said_twice() {
        let at = |second: i64| OffsetDateTime::from_unix_timestamp(1_767_225_600 + second).unwrap();
        let mut all = BTreeMap::new();
        for second in 0..8_i64 {
            all = with(all, format!("{}", second / 2), at(second));
        }
        let texts: Vec<_> = all.values().map(String::as_str).collect();
        assert_eq!(texts, ["0", "1", "2", "3"]);
        for second in 8..12 {
            all = with(all, format!("{second}"), at(second));
        }
        assert_eq!(all.len(), MOST);
        assert_eq!(all.first_key_value().unwrap().0, "2026-01-01T000006Z.json");
        let long = with(all, "x".repeat(LONGEST), at(20));
        assert_eq!(long.len(), 1);
    }
}
