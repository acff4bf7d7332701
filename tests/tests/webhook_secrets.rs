//! Secrets that weigh more than the webhook may: it has to know which there are, of which type, and
//! no more of them comes to it.

use std::fs;
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use opensdn_runtime::declared::Declared;
use opensdn_runtime::watch::{Event, Parts, WatchSpec, watch_parts};
use opensdn_testing::eventually::eventually;
use opensdn_testing::product::Installation;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};
use std::time::Duration;

const SECRETS: usize = 300;
/// All together: 300 MB.
const WEIGHT: usize = 1_000_000;
/// What the webhook may take at most, with everything else that it does, as a debug build. The API
/// server's text of all Secrets alone would be twice as much.
const PEAK_MIB: u64 = 150;
/// Said of every Vrouter here, so that what is not said besides was looked for.
const JUDGED: &str = "OSDN1304";
const NAMESPACE: &str = "tenant";

async fn store(client: &Client) -> Outcome {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
    namespaces.create(&PostParams::default(), &namespace).await?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let create = async |number: usize| {
        let secret =
            serde_json::from_value(json!({"metadata": {"name": format!("heavy-{number}")}}));
        let mut secret: Secret = secret.map_err(kube::Error::SerdeError)?;
        let value = ByteString(vec![b'x'; WEIGHT]);
        secret.data = Some([("release".to_owned(), value)].into());
        secrets.create(&PostParams::default(), &secret).await.map(|_| ())
    };
    stream::iter((0..SECRETS).map(create)).buffer_unordered(8).try_collect::<()>().await?;
    Ok(())
}

fn vrouter(secret: &str) -> String {
    json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter",
        "metadata": {"name": "v", "namespace": NAMESPACE},
        "spec": {"commonConfiguration": {"imagePullSecrets": [secret]},
            "serviceConfiguration": {}}})
    .to_string()
}

/// What a user gets to know of a Vrouter that pulls images by this Secret.
async fn said_of(sandbox: &Sandbox, secret: &str) -> Result<String, Failed> {
    let create = ["create", "--dry-run=server", "-f", "-"];
    let output = sandbox.kubectl_with_input(&create, &vrouter(secret)).await?;
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The most that the process ever held, in MiB.
fn peak(process: u32) -> Result<u64, Failed> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no peak")?;
    let number = line.split_whitespace().next().ok_or("no number")?;
    Ok(number.parse::<u64>()? / 1024)
}

#[tokio::test(flavor = "multi_thread")]
async fn of_secrets_only_names_and_types_come_to_the_webhook_whatever_they_weigh() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
    let client = sandbox.client()?;
    store(&client).await?;
    let product = Installation::built()?.install(&sandbox).await?;
    let of_type = |said: &str, name: &str| said.contains(&format!("Secret {name} in namespace"));
    let told = async |name: &str, as_of_wrong_type: bool, as_absent: bool| {
        let said = said_of(&sandbox, name).await.unwrap_or_default();
        let absent = said.contains(&format!("there is no Secret {name:?}"));
        said.contains(JUDGED) && of_type(&said, name) == as_of_wrong_type && absent == as_absent
    };
    eventually("the type of a heavy one is known", async || told("heavy-299", true, false).await)
        .await;
    eventually("one that is not there is missed", async || told("pull", false, true).await).await;

    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let pull = json!({"metadata": {"name": "pull"}, "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": "{\"auths\":{}}"}});
    secrets.create(&PostParams::default(), &serde_json::from_value(pull)?).await?;
    eventually("a new one is known with its type", async || told("pull", false, false).await).await;
    secrets.delete("pull", &DeleteParams::default()).await?;
    eventually("it is missed again", async || told("pull", false, true).await).await;

    let peak = peak(product.process_id(0).ok_or("it does not run")?)?;
    assert!(peak < PEAK_MIB, "{peak} MiB");
    names_of_keys_come_without_values(client).await
}

async fn names_of_keys_come_without_values(client: Client) -> Outcome {
    let spec = WatchSpec {
        path: "/api/v1/secrets".to_owned(),
        name: None,
        label_selector: String::new(),
        metadata_only: false,
        heartbeat: Duration::from_secs(10),
    };
    let parts = Parts::SecretKeys(Arc::new(Declared::new(["/data"], [])));
    let mut events = watch_parts(client, spec, parts);
    let mut heavy = 0;
    while let Some(event) = events.recv().await {
        match event {
            Event::InitApply(object) => {
                let data = object.get("data").and_then(Value::as_object);
                let mut values = data.into_iter().flat_map(|data| data.values());
                assert!(values.all(Value::is_null), "a value of {:?}", object.get("metadata"));
                heavy += usize::from(object.get("data") == Some(&json!({"release": null})));
            }
            Event::InitDone(_) => break,
            Event::Disconnected { why, .. } => return Err(why.into()),
            _ => {}
        }
    }
    assert_eq!(heavy, SECRETS);
    Ok(())
}
