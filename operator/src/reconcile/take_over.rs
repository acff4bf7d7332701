//! Workloads that tf-operator has made become the operator's own, with all that they say. An apply adds to what another
//! field manager has written, and takes nothing of it away: volumes that no node need have would stay, and the API server
//! refuses what is left of a `rollingUpdate` beside `OnDelete`. So what was written becomes what the operator had applied, and its
//! first apply takes away what it does not want. Of Secrets all stays: pods of tf-operator run with it.

use json_patch::jsonptr::PointerBuf;
use json_patch::{Patch, PatchOperation, ReplaceOperation, TestOperation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_runtime::apply::{Context, apply_as, patch_as, read_as};
use opensdn_runtime::call::CallError;
use serde_json::{Value, json};

use super::apply::TRIES;
use crate::kind::Kind;
use crate::names::{APPLIED, MANAGED_BY, OPERATOR};

/// How the API server calls a write of a whole object, and one of what its writer wants of it.
const UPDATE: &str = "Update";
const APPLY: &str = "Apply";

/// What makes a workload that was never applied the operator's own, if others have written its spec.
pub(super) fn patch(kind: Kind, there: &DynamicObject) -> Option<Patch> {
    let metadata = &there.metadata;
    let was_applied = metadata.annotations.as_ref().is_some_and(|all| all.contains_key(APPLIED));
    if was_applied || !matches!(kind, Kind::StatefulSet | Kind::DaemonSet) {
        return None;
    }
    let fields = take_over(metadata.managed_fields.as_deref().unwrap_or_default())?;
    replace_fields(there, json!(fields))
}

/// Makes a workload the operator's whole, also what nobody is said to have written: who may change it may take that off. Whether it
/// was not so before.
///
/// # Errors
/// A call fails.
pub(super) async fn whole(
    ctx: &Context,
    kind: Kind,
    intent: &DynamicObject,
) -> Result<bool, CallError> {
    let (resource, namespace, name) = (kind.resource(), intent.namespace(), intent.name_any());
    if !matches!(kind, Kind::StatefulSet | Kind::DaemonSet) {
        return Ok(false);
    }
    for _ in 0..TRIES {
        let there = read_as(ctx, &resource, namespace.as_deref(), &name).await?;
        let there: DynamicObject = match there {
            Some(there) if !is_whole(&there) => there,
            _ => return Ok(false),
        };
        // To nothing: the API server then says of the next apply what was there before it, and that is all.
        let Some(patch) = replace_fields(&there, json!([{}])) else { return Ok(false) };
        if patch_as(ctx, &resource, &there, patch).await?.is_none() {
            continue;
        }
        let mut own = DynamicObject::new(&name, &resource);
        own.metadata.namespace = there.namespace();
        own.metadata.uid = there.uid();
        own.metadata.labels = Some([(MANAGED_BY.to_owned(), OPERATOR.to_owned())].into());
        let there: DynamicObject = apply_as(ctx, &resource, &own).await?;
        let fields = take_over(there.metadata.managed_fields.as_deref().unwrap_or_default());
        let patch = fields.and_then(|fields| replace_fields(&there, json!(fields)));
        if let Some(patch) = patch
            && patch_as(ctx, &resource, &there, patch).await?.is_some()
        {
            let kind = kind.name();
            tracing::info!(kind, namespace, name, "took over all fields that others had written");
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether what the operator has applied names all that the spec has. What is in a list is not looked at.
fn is_whole(there: &DynamicObject) -> bool {
    fn names(fields: &Value, value: &Value) -> bool {
        match (fields.as_object(), value.as_object()) {
            (Some(fields), Some(all)) if !fields.is_empty() => all.iter().all(|(key, value)| {
                fields.get(&format!("f:{key}")).is_some_and(|fields| names(fields, value))
            }),
            _ => true,
        }
    }
    let all = there.metadata.managed_fields.as_deref().unwrap_or_default();
    let own = all.iter().find(|one| is_own(one)).and_then(|own| own.fields_v1.as_ref());
    let spec = there.data.get("spec").unwrap_or(&Value::Null);
    own.and_then(|own| own.0.get("f:spec")).is_some_and(|fields| names(fields, spec))
}

fn replace_fields(there: &DynamicObject, fields: Value) -> Option<Patch> {
    let version = there.metadata.resource_version.clone()?;
    let path = |path: &str| PointerBuf::parse(path).unwrap_or_default();
    Some(Patch(vec![
        PatchOperation::Test(TestOperation {
            path: path("/metadata/resourceVersion"),
            value: version.into(),
        }),
        PatchOperation::Replace(ReplaceOperation {
            path: path("/metadata/managedFields"),
            value: fields,
        }),
    ]))
}

/// Whose each field is then.
fn take_over(before: &[ManagedFieldsEntry]) -> Option<Vec<ManagedFieldsEntry>> {
    let (taken, mut others): (Vec<_>, Vec<_>) =
        before.iter().cloned().partition(|one| is_of_spec(one) || is_own(one));
    if !is_written_by_others(&taken) {
        return None;
    }
    let mut own: Option<ManagedFieldsEntry> = None;
    for one in taken {
        match &mut own {
            None => own = Some(one),
            Some(own) => {
                if let (Some(all), Some(more)) = (&mut own.fields_v1, one.fields_v1) {
                    merge(&mut all.0, more.0);
                }
            }
        }
    }
    others.extend(own.map(|own| ManagedFieldsEntry {
        manager: Some(OPERATOR.to_owned()),
        operation: Some(APPLY.to_owned()),
        ..own
    }));
    Some(others)
}

/// Whether others have written the spec of a workload.
fn is_written_by_others(fields: &[ManagedFieldsEntry]) -> bool {
    fields.iter().any(is_of_spec)
}

/// Whether the operator has said what an object is to be.
pub(super) fn is_of_operator(fields: &[ManagedFieldsEntry]) -> bool {
    fields.iter().any(|one| is_own(one) && has_spec(one))
}

/// Whether another has: it was there before the operator, or is a user's. So does what of nobody is known, as after a restore.
pub(super) fn is_of_others(fields: &[ManagedFieldsEntry]) -> bool {
    fields.iter().any(|one| !is_own(one) && has_spec(one)) || !is_of_operator(fields)
}

fn has_spec(entry: &ManagedFieldsEntry) -> bool {
    entry.fields_v1.as_ref().is_some_and(|fields| fields.0.get("f:spec").is_some())
}

/// Whether it is a write of the spec as a whole. That of a status has nothing of it.
fn is_of_spec(entry: &ManagedFieldsEntry) -> bool {
    entry.operation.as_deref() == Some(UPDATE)
        && entry.subresource.as_deref().unwrap_or_default().is_empty()
        && has_spec(entry)
}

fn is_own(entry: &ManagedFieldsEntry) -> bool {
    entry.manager.as_deref() == Some(OPERATOR) && entry.operation.as_deref() == Some(APPLY)
}

/// A set of fields is a tree of keys.
fn merge(all: &mut Value, more: Value) {
    match (all, more) {
        (Value::Object(all), Value::Object(more)) => {
            for (key, value) in more {
                merge(all.entry(key).or_insert_with(|| json!({})), value);
            }
        }
        (all, more) => *all = more,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(by: &str, operation: &str, subresource: &str, fields: &Value) -> Value {
        json!({"manager": by, "operation": operation, "subresource": subresource, "apiVersion": "apps/v1",
            "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    fn object(annotations: &Value, fields: &[Value]) -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": "a", "resourceVersion": "7",
            "annotations": annotations, "managedFields": fields}}))
        .unwrap()
    }

    fn of_tf_operator() -> Vec<Value> {
        vec![
            written("tf-operator", UPDATE, "", &json!({"f:spec": {"f:replicas": {}}})),
            written("kubectl-edit", UPDATE, "", &json!({"f:spec": {"f:template": {"f:spec": {}}}})),
            written("kubectl-annotate", UPDATE, "", &json!({"f:metadata": {"f:annotations": {}}})),
            written("kube-controller-manager", UPDATE, "status", &json!({"f:status": {}})),
        ]
    }

    #[test]
    fn what_was_written_of_the_spec_becomes_what_the_operator_applied_and_all_else_stays() {
        let patch =
            json!(patch(Kind::StatefulSet, &object(&json!({}), &of_tf_operator())).unwrap());
        assert_eq!(patch[0]["value"], "7", "as it was read");
        let fields = patch[1]["value"].as_array().unwrap();
        let who: Vec<_> = fields.iter().map(|one| one["manager"].as_str().unwrap()).collect();
        assert_eq!(who, ["kubectl-annotate", "kube-controller-manager", OPERATOR]);
        assert_eq!(fields[2]["operation"], APPLY);
        let all = json!({"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {}}}});
        assert_eq!(fields[2]["fieldsV1"], all);
    }

    #[test]
    fn a_workload_is_the_operators_as_a_whole_when_it_has_applied_all_that_the_spec_has() {
        let own = |fields: &Value| {
            let entry = written(OPERATOR, APPLY, "", &json!({ "f:spec": fields }));
            let mut there = object(&json!({}), &[entry]);
            there.data = json!({"spec": {"replicas": 3, "updateStrategy": {"type": "OnDelete", "rollingUpdate": {}}}});
            is_whole(&there)
        };
        let part = json!({"f:replicas": {}, "f:updateStrategy": {"f:type": {}}});
        let all =
            json!({"f:replicas": {}, "f:updateStrategy": {"f:type": {}, "f:rollingUpdate": {}}});
        assert!(
            !own(&part) && own(&all) && own(&json!({"f:replicas": {}, "f:updateStrategy": {}}))
        );
        assert!(!is_whole(&object(&json!({}), &of_tf_operator())), "of others");
        assert!(!is_whole(&object(&json!({}), &[])), "of nobody");
    }

    #[test]
    fn what_the_operator_alone_has_made_is_of_no_other() {
        let entries = |all: &[Value]| -> Vec<ManagedFieldsEntry> {
            all.iter().map(|one| serde_json::from_value(one.clone()).unwrap()).collect()
        };
        let spec = json!({"f:spec": {".": {}}});
        let own = written(OPERATOR, APPLY, "", &spec);
        let labelled = written("kubectl", UPDATE, "", &json!({"f:metadata": {}}));
        let status = written("tf-operator", UPDATE, "status", &json!({"f:status": {}}));
        assert!(!is_of_others(&entries(&[own.clone(), labelled.clone(), status])));
        assert!(is_of_operator(&entries(std::slice::from_ref(&own))));
        assert!(is_of_others(&entries(&[labelled])) && !is_of_operator(&[]), "after a restore");
        for operation in [UPDATE, APPLY] {
            let others = written("tf-operator", operation, "", &spec);
            assert!(is_of_others(&entries(&[own.clone(), others])), "{operation}");
        }
    }

    #[test]
    fn what_was_applied_before_or_is_no_workload_is_left_as_it_is() {
        let fields = of_tf_operator();
        let patch =
            |kind, annotations: Value, fields: &[Value]| patch(kind, &object(&annotations, fields));
        assert!(patch(Kind::DaemonSet, json!({}), &fields).is_some());
        assert!(patch(Kind::DaemonSet, json!({(APPLIED): "digest"}), &fields).is_none());
        assert!(patch(Kind::Secret, json!({}), &fields).is_none());
        assert!(patch(Kind::StatefulSet, json!({}), &fields[2..]).is_none(), "no spec among them");
    }
}
