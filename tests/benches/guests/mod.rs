//! Policies of `tests/guests`, built as the built-in policies are built.

use std::path::Path;

use opensdn_policy_build::Build;
use opensdn_testing::Failed;

/// The module of the guest.
pub(crate) fn build(name: &str) -> Result<Vec<u8>, Failed> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = workspace.join("target/guests");
    let packages = [name.to_owned()];
    let cargo = Path::new(env!("CARGO"));
    let build = Build { workspace: &workspace, cargo, target: &target, packages: &packages };
    let component = build.run()?.pop().ok_or("one package is one component")?;
    Ok(component.bytes)
}

/// A Pod of two containers, with what the API server adds.
pub(crate) fn pod() -> serde_json::Value {
    let container = |name: &str| {
        serde_json::json!({
            "name": name, "image": format!("registry.example.com/team/{name}:1.2.3"),
            "ports": [{"containerPort": 8080, "protocol": "TCP"}],
            "env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "REGION", "value": "north"}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
            "volumeMounts": [{
                "name": "token", "readOnly": true,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            }],
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "imagePullPolicy": "IfNotPresent",
            "securityContext": {"privileged": false, "allowPrivilegeEscalation": false},
        })
    };
    serde_json::json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web-7d9c5b8f6-x2x9z", "namespace": "tf",
            "labels": {"app": "web", "pod-template-hash": "7d9c5b8f6"},
        },
        "spec": {
            "containers": [container("web"), container("proxy")],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst", "serviceAccountName": "default", "schedulerName":
            "default-scheduler", "enableServiceLinks": true, "preemptionPolicy":
            "PreemptLowerPriority", "priority": 0,
        },
    })
}
