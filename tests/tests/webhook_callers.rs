//! Who may have something reviewed: API servers, which use a path that no other caller knows. A real API
//! server, and a stranger who reaches the webhook's port.

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Config};
use opensdn_crds::link_local_service::LinkLocalService;
use opensdn_crds::unique_claim::UniqueClaim;
use opensdn_deploy::names::{NAMESPACE, webhook};
use opensdn_testing::eventually::eventually;
use opensdn_testing::link_local::service;
use opensdn_testing::product::{Installation, Product};
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

/// As in the webhook.
const ROTATE: &str = "opensdn.io/rotate-paths";

struct World {
    sandbox: Sandbox,
    product: Product,
    client: Client,
    /// Reaches the port of a replica, and has no rights.
    stranger: Client,
}

impl World {
    async fn start() -> Result<Self, Failed> {
        let sandbox = Sandbox::builder().only_api_server().with_crds().await?;
        let product = Installation::built()?.replicas(2).install(&sandbox).await?;
        let backend = product.backends().first().ok_or("a replica")?;
        let mut config = Config::new(format!("https://{}", backend.serve).parse()?);
        config.accept_invalid_certs = true;
        config.proxy_url = None;
        let (client, stranger) = (sandbox.client()?, Client::try_from(config)?);
        Ok(Self { sandbox, product, client, stranger })
    }

    /// The status and body that the stranger gets for a review of a LinkLocalService.
    async fn forge(&self, path: &str, name: &str, ip: &str) -> Result<(u16, String), Failed> {
        let review = review(name, ip)?.to_string().into_bytes();
        let request = http::Request::post(path).header("content-type", "application/json");
        let answer = self.stranger.request_text(request.body(review)?).await;
        match answer {
            Ok(body) => Ok((200, body)),
            Err(kube::Error::Api(status)) => Ok((status.code, status.message.clone())),
            Err(error) => Err(error.into()),
        }
    }

    async fn claims(&self) -> Result<usize, Failed> {
        let claims: Api<UniqueClaim> = Api::all(self.client.clone());
        Ok(claims.list(&Default::default()).await?.items.len())
    }

    async fn create(&self, name: &str, ip: &str) -> kube::Result<LinkLocalService> {
        let services: Api<LinkLocalService> = Api::namespaced(self.client.clone(), "default");
        let service = service(&json!({"name": name}), ip).map_err(kube::Error::SerdeError)?;
        services.create(&PostParams::default(), &service).await
    }

    /// The path that the API server uses.
    async fn told(&self) -> Result<String, Failed> {
        let api: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        let entries = api.get(webhook::NAME).await?.webhooks.unwrap_or_default();
        let mut paths = entries.into_iter().filter_map(|entry| {
            let url = entry.client_config.url?;
            Some(format!("/validate/{}", url.rsplit_once('/')?.1))
        });
        let first = paths.next().ok_or("the webhook is called by no path")?;
        assert!(paths.all(|path| path == first), "two paths in one configuration");
        Ok(first)
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Asks for other tokens, and waits until the API server uses another path than `before`.
    async fn replace_paths(&self, before: &str) -> Result<String, Failed> {
        let ask = json!({"metadata": {"annotations": {ROTATE: "it was seen"}}});
        let ask = Patch::Merge(ask);
        self.secrets().patch(webhook::PATH_SECRET, &PatchParams::default(), &ask).await?;
        eventually("the API server is told another path", async || {
            self.told().await.is_ok_and(|path| path != before)
        })
        .await;
        self.told().await
    }
}

fn review(name: &str, ip: &str) -> Result<Value, Failed> {
    let object =
        serde_json::to_value(service(&json!({"name": name, "namespace": "default"}), ip)?)?;
    let kind = json!({"group": "opensdn.io", "version": "v1alpha1", "kind": "LinkLocalService"});
    let resource =
        json!({"group": "opensdn.io", "version": "v1alpha1", "resource": "linklocalservices"});
    Ok(json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "5a9a3a4c-6e0c-4d3e-9b55-0f7c8e0f3b11",
            "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
            "name": name, "namespace": "default", "operation": "CREATE",
            "userInfo": {"username": "somebody"}, "object": object, "oldObject": null,
            "dryRun": false, "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_know_the_path_makes_the_webhook_store_nothing() -> Outcome {
    let world = World::start().await?;
    for path in ["/validate", "/validate/", "/validate/0123456789012345678901234567890123456789012"]
    {
        let (code, message) = world.forge(path, "squatter", "169.254.7.1").await?;
        assert_eq!(code, 404, "{message}");
    }
    assert_eq!(world.claims().await?, 0);
    // The same review by the path is judged: only the path kept the stranger out.
    let path = world.product.validate_path(&world.sandbox).await?;
    assert_eq!(path, world.told().await?);
    let (code, body) = world.forge(&path, "squatter", "169.254.7.1").await?;
    assert_eq!(code, 200, "{body}");
    assert!(body.contains(r#""allowed":true"#), "{body}");
    assert!(world.claims().await? > 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_are_replaced_while_objects_are_created_and_no_create_fails() -> Outcome {
    let world = World::start().await?;
    let first = world.told().await?;
    let creating = async {
        for number in 1..=100 {
            world.create(&format!("created-{number}"), &format!("169.254.8.{number}")).await?;
        }
        Ok::<(), kube::Error>(())
    };
    let replacing = async {
        let second = world.replace_paths(&first).await?;
        let (code, _) = world.forge(&first, "late", "169.254.7.2").await?;
        assert_eq!(code, 200, "the path before is accepted a while longer");
        let third = world.replace_paths(&second).await?;
        assert_ne!(third, first);
        Outcome::Ok(())
    };
    let (created, replaced) = tokio::join!(creating, replacing);
    created?;
    replaced?;
    eventually("the first path is not accepted any more", async || {
        world.forge(&first, "later", "169.254.7.3").await.is_ok_and(|(code, _)| code == 404)
    })
    .await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_secret_of_paths_is_restored_and_the_path_stays() -> Outcome {
    let world = World::start().await?;
    let before = world.told().await?;
    world.secrets().delete(webhook::PATH_SECRET, &Default::default()).await?;
    eventually("the Secret is restored", async || {
        world.secrets().get_opt(webhook::PATH_SECRET).await.is_ok_and(|found| found.is_some())
    })
    .await;
    assert_eq!(world.product.validate_path(&world.sandbox).await?, before);
    world.create("afterwards", "169.254.7.4").await?;
    Ok(())
}

/// Why paths are replaced by themselves: the API server shows them to its users.
#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_shows_the_path_to_a_user_whose_call_failed() -> Outcome {
    let world = World::start().await?;
    let path = world.told().await?;
    for replica in 0..2 {
        world.product.kill_replica(replica);
    }
    let error = world.create("unlucky", "169.254.7.5").await.err().ok_or("nobody reviewed it")?;
    assert!(error.to_string().contains(&path), "{error}");
    Ok(())
}
