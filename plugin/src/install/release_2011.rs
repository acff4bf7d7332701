//! What a tf-operator of release 2011 made is not taken over: its Manager has other fields, and a Cassandra that is alone has its
//! data in another folder, so that ours would begin with an empty one.

use serde_json::Value;

use super::object::ObjectKey;
use crate::exit::{Exit, Failure};
use crate::snapshot::tf_operator::component_of;
use crate::snapshot::{list, namespace, text, title};

/// The folder of a Cassandra that is alone, or that of analytics; and that of the other.
const DATABASE: &str = "/var/lib/contrail/database";
const CONFIG_DATABASE: &str = "/var/lib/contrail/config-database";

/// What was made by a tf-operator of release 2011: other fields, and a Cassandra that is alone has its data elsewhere.
pub(super) fn refuse(managers: &[Value], workloads: &[Value]) -> Result<(), Failure> {
    let refused = |what: String| {
        let hint = "ours takes over what tf-operator of release 21.3 and later runs: let that upgrade it first (contrib/ziu-2011-to-21.4-hack \
            in its sources); for a new cluster: kubectl opensdn convert";
        Err(Failure::new(Exit::Refused, "release-2011", what, hint))
    };
    for manager in managers {
        for list in ["zookeepers", "kubemanagers"] {
            if manager.pointer(&format!("/spec/services/{list}")).is_some_and(|one| !one.is_null())
            {
                return refused(format!(
                    "Manager {} is of release 2011: it has spec.services.{list}",
                    title(manager)
                ));
            }
        }
    }
    for workload in workloads {
        let Some(owner) = component_of(workload).filter(|one| text(one, "/kind") == "Cassandra")
        else {
            continue;
        };
        let of_namespace = workloads.iter().filter(|other| {
            namespace(other) == namespace(workload)
                && component_of(other).is_some_and(|one| text(one, "/kind") == "Cassandra")
        });
        // As `operator/src/components/cassandra/settings.rs` places it.
        let is_database =
            of_namespace.count() == 1 || text(owner, "/name").starts_with("analyticsdb");
        let wanted = if is_database { DATABASE } else { CONFIG_DATABASE };
        let other = if is_database { CONFIG_DATABASE } else { DATABASE };
        let has = |folder: &str| {
            let mut volumes = list(workload, "/spec/template/spec/volumes");
            volumes.any(|volume| text(volume, "/hostPath/path") == folder)
        };
        if has(other) && !has(wanted) {
            return refused(format!(
                "{} has its data in {other}, where release 2011 had them; ours would look for them in {wanted}",
                ObjectKey::of(workload)
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manager() -> Value {
        json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager",
            "metadata": {"name": "cluster1", "namespace": "tf"}})
    }

    #[test]
    fn what_is_of_release_2011_is_refused() {
        let cassandra = |name: &str, folder: &str| {
            let owner =
                json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Cassandra", "name": name});
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
                "metadata": {"name": name, "namespace": "tf", "ownerReferences": [owner]},
                "spec": {"template": {"spec": {"volumes": [{"hostPath": {"path": folder}}]}}}})
        };
        let check = |managers: Vec<Value>, workloads: Vec<Value>| {
            refuse(&managers, &workloads).err().map(|failure| failure.message)
        };
        let plain = || vec![manager()];
        for list in ["zookeepers", "kubemanagers"] {
            let mut old = manager();
            old["spec"]["services"][list] = json!([{}]);
            assert!(check(vec![old], vec![]).unwrap().contains(list));
        }
        let both =
            || vec![cassandra("configdb1", CONFIG_DATABASE), cassandra("analyticsdb1", DATABASE)];
        assert_eq!(check(plain(), both()), None);
        assert_eq!(check(plain(), vec![cassandra("configdb1", DATABASE)]), None);
        let moved = check(plain(), vec![cassandra("configdb1", CONFIG_DATABASE)]).unwrap();
        assert!(moved.contains("has its data in /var/lib/contrail/config-database"), "{moved}");
    }
}
