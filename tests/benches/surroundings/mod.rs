//! What the samples of Manager and Vrouter refer to.

use opensdn_testing::Failed;
use opensdn_testing::kubectl::kubectl;
use opensdn_testing::sandbox::Sandbox;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/samples");

const OBJECTS: &str = r#"
{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keystone-admin", "namespace": "tf"}}
---
{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "rabbitmq1-secret", "namespace": "tf"}}
---
{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "registry", "namespace": "tf"},
 "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": "{\"auths\":{}}"}}
---
{"apiVersion": "v1", "kind": "Node",
 "metadata": {"name": "node-0", "labels": {"node-role.kubernetes.io/control-plane": ""}}}
"#;

/// Creates it, in namespace `tf`, which is made.
pub(crate) async fn create(sandbox: &Sandbox) -> Result<(), Failed> {
    kubectl(sandbox, &["create", "namespace", "tf"]).await?.success();
    let output = sandbox.kubectl_with_input(&["apply", "-f", "-"], OBJECTS).await?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    for file in ["control.yaml", "vrouter-profile.yaml"] {
        kubectl(sandbox, &["apply", "-f", &format!("{SAMPLES}/{file}")]).await?.success();
    }
    Ok(())
}
