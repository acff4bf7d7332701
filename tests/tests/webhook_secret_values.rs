//! Whatever a policy says of Secrets, no value of one comes out of the webhook, and none of its own
//! secrets does: marked values are put wherever a Secret can have them, a policy that says all that it
//! is given judges and looks up, and all that anybody can read of it is searched.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use opensdn_policy_build::Build;
use opensdn_policy_host::Digest;
use opensdn_testing::admin_port;
use opensdn_testing::eventually::eventually;
use opensdn_testing::kubectl::{kubectl, read, send};
use opensdn_testing::product::{Installation, Product};
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

const NAMESPACE: &str = "tenant";
/// Part of each value, and of nothing else.
const MARK: &str = "MARKED-9f2c61";
/// The code of the policy's one message.
const CODE: &str = "TEST0002";

/// What a user can read, by what it is.
type Outputs = BTreeMap<String, String>;

fn indiscreet() -> Result<Vec<u8>, Failed> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests");
    let packages = ["indiscreet".to_owned()];
    let cargo = Path::new(env!("CARGO"));
    let build = Build { workspace: &workspace, cargo, target: &target, packages: &packages };
    Ok(build.run()?.remove(0).bytes)
}

struct World {
    sandbox: Sandbox,
    product: Product,
    outputs: Outputs,
}

impl World {
    async fn start(folder: &Path) -> Result<Self, Failed> {
        let module = indiscreet()?;
        fs::write(folder.join("indiscreet.wasm"), &module)?;
        let sandbox = Sandbox::builder().only_api_server().start().await?;
        let product = Installation::built()?
            .argument(format!("--policy-folder={}", folder.display()))
            .argument("--log=debug")
            .argument("--audit-delay=0")
            .argument("--audit-interval=1")
            .install(&sandbox)
            .await?;
        let module = json!({"folder": {"path": "indiscreet.wasm"},
            "digest": Digest::of(&module).to_string()});
        let policy = json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "AdmissionPolicy",
            "metadata": {"name": "indiscreet"},
            "spec": {"module": module, "allowedLookups": [{"kind": "Secret"}]}});
        send(&sandbox, &["create"], &policy).await?.success();
        kubectl(&sandbox, &["create", "namespace", NAMESPACE]).await?.success();
        let world = Self { sandbox, product, outputs: Outputs::new() };
        let probe = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "probe", "namespace": NAMESPACE}});
        let judged = async || {
            let said = send(&world.sandbox, &["create", "--dry-run=server"], &probe).await;
            said.is_ok_and(|said| said.err.contains(CODE))
        };
        eventually("the policy judges Secrets", judged).await;
        Ok(world)
    }

    /// Keeps what kubectl said, and returns it.
    async fn say(&mut self, arguments: &[&str], object: Option<&Value>) -> Result<String, Failed> {
        let said = match object {
            Some(object) => send(&self.sandbox, arguments, object).await?,
            None => kubectl(&self.sandbox, arguments).await?,
        };
        let text = format!("{}{}", said.out, said.err);
        let name = object.map_or("", |object| object["metadata"]["name"].as_str().unwrap_or(""));
        self.outputs.insert(format!("kubectl {} {name}", arguments.join(" ")), text.clone());
        Ok(text)
    }

    async fn keep(&mut self, what: &str, arguments: &[&str]) -> Outcome {
        let text = read(&self.sandbox, arguments).await?.to_string();
        self.outputs.insert(what.to_owned(), text);
        Ok(())
    }

    fn log(&self) -> String {
        let log = self.sandbox.data_folder().join("logs/webhook-0.log");
        fs::read_to_string(log).unwrap_or_default()
    }
}

/// A Secret with marked values in everything that may have some; `wish` is what the policy does.
fn secret(wish: &str) -> Value {
    let value = |what: &str| format!("{MARK}-{wish}-{what}");
    let mut secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("secret-{wish}"), "namespace": NAMESPACE,
            "labels": {"wish": wish}, "annotations": {"note": value("annotation")}},
        "data": {"password": STANDARD.encode(value("data"))},
        "stringData": {"token": value("string")}});
    if wish == "tls" {
        secret["type"] = "kubernetes.io/tls".into();
        secret["data"] = json!({"tls.crt": STANDARD.encode(value("certificate")),
            "tls.key": STANDARD.encode(value("key"))});
    }
    if wish == "pull" {
        let registry = json!({"auths": {"registry.example.com": {"auth": value("auth")}}});
        secret["type"] = "kubernetes.io/dockerconfigjson".into();
        secret["data"] = json!({".dockerconfigjson": STANDARD.encode(registry.to_string())});
    }
    secret
}

/// Creates, applies, changes, has refused, and deletes Secrets, and has them looked up.
async fn use_secrets(world: &mut World) -> Outcome {
    for wish in ["plain", "tls", "pull", "refuse", "claim", "fail", "patch"] {
        let secret = secret(wish);
        let said = world.say(&["create"], Some(&secret)).await?;
        // The policy has its say of each: a search of its silence would find nothing.
        let told = if wish == "fail" { "indiscreet" } else { CODE };
        assert!(said.contains(told), "{wish}: {said}");
        assert_eq!(said.contains("denied the request"), wish == "refuse", "{said}");
    }
    // As `kubectl apply` does it, which writes the whole object into an annotation.
    world.say(&["apply"], Some(&secret("plain"))).await?;
    let change = format!(r#"{{"stringData":{{"token":"{MARK}-changed"}}}}"#);
    let patch = ["-n", NAMESPACE, "patch", "secret", "secret-plain", "-p", &change];
    let said = kubectl(&world.sandbox, &patch).await?;
    world.outputs.insert("a changed Secret".to_owned(), format!("{}{}", said.out, said.err));
    // Read by a lookup: the names of the keys are all that comes of them.
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "map", "namespace": NAMESPACE}, "data": {"a": "b"}});
    let looked_up = async || {
        let said = send(&world.sandbox, &["create", "--dry-run=server"], &map).await;
        said.is_ok_and(|said| said.err.contains("secret-plain") && said.err.contains("password"))
    };
    eventually("Secrets are looked up", looked_up).await;
    world.say(&["create"], Some(&map)).await?;
    let vrouter = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Vrouter",
        "metadata": {"name": "v", "namespace": NAMESPACE},
        "spec": {"commonConfiguration": {"imagePullSecrets": ["secret-plain", "secret-pull"]},
            "serviceConfiguration": {}}});
    let said = world.say(&["create"], Some(&vrouter)).await?;
    assert!(said.contains("Secret secret-plain in namespace"), "{said}");
    world.say(&["-n", NAMESPACE, "delete", "secret", "secret-tls"], None).await?;
    Ok(())
}

/// Has the webhook write all that it writes by itself.
async fn use_its_own(world: &mut World) -> Outcome {
    for (secret, ask) in [("ca", "rotate-ca"), ("paths", "rotate-paths")] {
        let (name, ask) = (format!("opensdn-webhook-{secret}"), format!("opensdn.io/{ask}=now"));
        let said = ["-n", "opensdn-system", "annotate", "secret", &name, &ask];
        kubectl(&world.sandbox, &said).await?.success();
    }
    let condition = r#"[{"op":"add","path":"/webhooks/0/matchConditions",
        "value":[{"name":"off","expression":"false"}]}]"#;
    let kind = "validatingwebhookconfiguration";
    let tamper = ["patch", kind, "opensdn-webhook", "--type=json", "-p", condition];
    kubectl(&world.sandbox, &tamper).await?.success();
    let sandbox = &world.sandbox;
    let events = async || read(sandbox, &["events.events.k8s.io", "-A"]).await;
    eventually("there is an Event", async || {
        events().await.is_ok_and(|events| events.to_string().contains("ConfigurationTampered"))
    })
    .await;
    let audit = ["-n", "opensdn-system", "configmap", "opensdn-webhook-audit"];
    eventually("the audit has said what it found", async || {
        read(sandbox, &audit).await.is_ok_and(|found| found.to_string().contains(CODE))
    })
    .await;
    Ok(())
}

/// Everything that a user can read of the webhook.
async fn gather(world: &mut World) -> Outcome {
    world.keep("Events", &["events.events.k8s.io", "-A"]).await?;
    let ours = ["-A", "admissionpolicies,uniqueclaims,vrouters.tf.tungsten.io"];
    world.keep("what is stored of ours", &ours).await?;
    let report = ["-n", "opensdn-system", "configmap", "opensdn-webhook-audit"];
    world.keep("report of the background audit", &report).await?;
    let log = world.log();
    assert!(log.contains("DEBUG"), "it does not log all that it can");
    world.outputs.insert("log".to_owned(), log);
    let admin = world.product.backends().first().ok_or("a replica")?.admin;
    for path in ["/metrics", "/ready"] {
        let text = admin_port::get(admin, path).await?;
        world.outputs.insert(path.to_owned(), text);
    }
    let patched = read(&world.sandbox, &["-n", NAMESPACE, "secret", "secret-patch"]).await?;
    let patch = patched["metadata"]["annotations"]["indiscreet"].as_str();
    world.outputs.insert("a patch".to_owned(), patch.ok_or("it was not patched")?.to_owned());
    let audit = annotations(&world.sandbox)?;
    assert!(audit.contains(CODE), "no finding is in the API server's audit log");
    world.outputs.insert("audit annotations".to_owned(), audit);
    Ok(())
}

/// Of each line of the API server's audit log, without the objects that were sent and answered.
fn annotations(sandbox: &Sandbox) -> Result<String, Failed> {
    let mut all = String::new();
    for line in fs::read_to_string(sandbox.audit_log())?.lines() {
        // The API server may be writing the last one.
        let Ok(mut event) = serde_json::from_str::<Value>(line) else { continue };
        for field in ["requestObject", "responseObject"] {
            event.as_object_mut().map(|event| event.remove(field));
        }
        all.push_str(&event.to_string());
        all.push('\n');
    }
    Ok(all)
}

/// What must be nowhere, by what it is: the marks, and the values of Secrets as they are stored; the
/// webhook's own keys, tokens of paths and the token by which it calls the API server.
async fn forbidden(world: &World) -> Result<BTreeMap<String, String>, Failed> {
    let mut all = BTreeMap::from([("a marked value".to_owned(), MARK.to_owned())]);
    for namespace in [NAMESPACE, "opensdn-system"] {
        let secrets = read(&world.sandbox, &["-n", namespace, "secrets"]).await?;
        for secret in secrets["items"].as_array().into_iter().flatten() {
            let name = secret["metadata"]["name"].as_str().unwrap_or_default();
            for (key, value) in secret["data"].as_object().into_iter().flatten() {
                values_of(name, key, value.as_str().unwrap_or_default(), &mut all)?;
            }
        }
    }
    all.insert("the bearer token".to_owned(), bearer_token(&world.product)?);
    Ok(all)
}

/// As it is stored and as it is, except what is no secret: certificates, and times.
fn values_of(
    secret: &str,
    key: &str,
    encoded: &str,
    all: &mut BTreeMap<String, String>,
) -> Outcome {
    let text = String::from_utf8(STANDARD.decode(encoded)?)?;
    if text.starts_with("-----BEGIN CERTIFICATE") || text.len() < 16 || text.ends_with('Z') {
        return Ok(());
    }
    all.insert(format!("{key} of {secret}, as it is stored"), encoded.to_owned());
    let lines = text.lines().filter(|line| line.len() >= 16 && !line.starts_with("-----"));
    for (number, line) in lines.enumerate() {
        all.insert(format!("line {number} of {key} of {secret}"), line.to_owned());
    }
    Ok(())
}

/// From the file that the process was given.
fn bearer_token(product: &Product) -> Result<String, Failed> {
    let id = product.process_id(0).ok_or("it does not run")?;
    let environment = fs::read_to_string(format!("/proc/{id}/environ"))?;
    let path = environment.split('\0').find_map(|one| one.strip_prefix("KUBECONFIG="));
    let text = fs::read_to_string(path.ok_or("it has no kubeconfig")?)?;
    let (_, behind) = text.split_once("token").ok_or("it has no token")?;
    let token = behind.trim_start_matches(['"', ':', ' ']);
    let token: String = token.chars().take_while(|one| !"\"\n ,}".contains(*one)).collect();
    assert!(token.len() > 100, "{} characters are no token", token.len());
    Ok(token)
}

/// Where something is that must not be: never the thing itself, for this is printed.
fn found(outputs: &Outputs, forbidden: &BTreeMap<String, String>) -> Vec<String> {
    let in_one = |(output, text): (&String, &String)| {
        let there = forbidden.iter().filter(|(_, value)| text.contains(value.as_str()));
        there.map(|(what, _)| format!("{what} is in: {output}")).collect::<Vec<_>>()
    };
    outputs.iter().flat_map(in_one).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_value_of_a_secret_and_no_secret_of_its_own_comes_out_of_the_webhook() -> Outcome {
    let folder = tempfile::tempdir()?;
    let mut world = World::start(folder.path()).await?;
    let mut forbidden = self::forbidden(&world).await?;
    use_secrets(&mut world).await?;
    use_its_own(&mut world).await?;
    gather(&mut world).await?;
    // Its own have been replaced meanwhile.
    forbidden.extend(self::forbidden(&world).await?);
    for own in ["current of opensdn-webhook-paths", "opensdn-webhook-ca"] {
        assert!(forbidden.keys().any(|what| what.contains(own)), "{own} is not looked for");
    }
    assert_eq!(found(&world.outputs, &forbidden), Vec::<String>::new());

    // The search finds what is there: the API server shows values to whom may read Secrets.
    world.keep("Secrets", &["-n", NAMESPACE, "secrets"]).await?;
    let secrets = found(&world.outputs, &forbidden);
    let value = "password of secret-plain, as it is stored is in: Secrets";
    for wanted in ["a marked value is in: Secrets", value] {
        assert!(secrets.iter().any(|one| one == wanted), "{wanted}: {secrets:?}");
    }
    Ok(())
}
