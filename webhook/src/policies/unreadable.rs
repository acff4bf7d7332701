//! An AdmissionPolicy that cannot be read as a whole, as one written past the schema or by a newer release
//! is: what of it can be. It is a policy that should judge and cannot, so what is not known of it counts as
//! what is strictest: it enforces, about all that it may be about, and exempts nobody.

use kube::api::ObjectMeta;
use opensdn_admission_policy::{Fault, Problem};
use opensdn_crds::admission_policy::{AdmissionPolicy, AdmissionPolicySpec};
use opensdn_policy_host::quoted;
use opensdn_runtime::levels;
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The object, and what is wrong with it if that is not all of it.
pub(super) fn read(name: &str, object: &Value) -> (AdmissionPolicy, Option<Problem>) {
    let read = match AdmissionPolicy::deserialize(object) {
        // Its settings may not be those that are stored.
        Ok(read) => levels::check(object).map(|()| read).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match read {
        Ok(object) => (object, None),
        Err(error) => {
            let message = format!("it cannot be read: {}", quoted(&error));
            let hint = "apply it again as `kubectl explain admissionpolicy.spec` has it, or, where a newer \
                        release wrote it, update the webhook";
            (partly(name, object), Some(Problem::new(Fault::Unreadable, "/spec", message, hint)))
        }
    }
}

fn partly(name: &str, object: &Value) -> AdmissionPolicy {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let spec = AdmissionPolicySpec {
        module: field(spec, "module").unwrap_or_default(),
        kinds: field(spec, "kinds"),
        mode: field(spec, "mode").unwrap_or_default(),
        failure_mode: field(spec, "failureMode"),
        namespace_selector: field(spec, "namespaceSelector"),
        object_selector: field(spec, "objectSelector"),
        exemptions: field(spec, "exemptions"),
        // The rest is of no use to what does not run.
        ..AdmissionPolicySpec::default()
    };
    let metadata = field(object, "metadata");
    let metadata = metadata
        .unwrap_or_else(|| ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() });
    AdmissionPolicy { metadata, spec, status: field(object, "status") }
}

fn field<T: DeserializeOwned>(object: &Value, name: &str) -> Option<T> {
    object.get(name).and_then(|value| T::deserialize(value).ok())
}

#[cfg(test)]
mod tests {
    use opensdn_crds::admission_policy::{FailureMode, Mode};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_read_counts_as_what_is_strictest_and_the_rest_as_it_is() {
        let object = |spec: Value| {
            json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy",
                "metadata": {"name": "p", "generation": 3}, "spec": spec,
                "status": {"judges": [{"group": "g", "kind": "Thing"}]}})
        };
        let good = object(json!({"module": {"builtIn": "x"}}));
        assert_eq!(read("p", &good).1, None);

        let (policy, problem) = read(
            "p",
            &object(json!({"module": 7, "mode": "refuse",
            "kinds": [{"kind": "Pod", "operations": ["PATCH"]}], "exemptions": "jane"})),
        );
        assert_eq!(policy.spec, AdmissionPolicySpec::default());
        assert_eq!(policy.spec.mode, Mode::Enforce);
        assert_eq!(policy.metadata.generation, Some(3));
        assert!(policy.status.unwrap().judges.is_some());
        let problem = problem.unwrap().text();
        assert!(
            problem.starts_with("OSDN4013: /spec: it cannot be read: invalid type"),
            "{problem}"
        );

        let (policy, problem) = read(
            "p",
            &object(json!({"module": {"builtIn": "x"},
            "mode": "warn", "failureMode": "ignore", "kinds": [{"kind": "Pod"}], "limits": 7})),
        );
        assert!(problem.is_some());
        assert_eq!(
            (policy.spec.mode, policy.spec.failure_mode),
            (Mode::Warn, Some(FailureMode::Ignore))
        );
        assert_eq!(policy.spec.kinds.unwrap()[0].kind, "Pod");

        let deep = format!(r#"{}1{}"#, r#"{"a":"#.repeat(200), "}".repeat(200));
        let text = good
            .to_string()
            .replace(r#""x"}"#, &format!(r#""x"}},"mode":"warn","settings":{deep}"#));
        let (policy, problem) =
            read("p", &serde_json::from_str::<levels::Whole>(&text).unwrap().into());
        assert!(problem.unwrap().text().contains("nested more than 120 levels"));
        assert_eq!((policy.spec.mode, policy.spec.settings), (Mode::Warn, None));

        let (policy, problem) = read("p", &json!({"metadata": {"name": "p", "labels": 7}}));
        assert!(problem.is_some());
        assert_eq!(policy.metadata.name.as_deref(), Some("p"));
    }
}
