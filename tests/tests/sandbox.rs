//! What the sandbox promises to its tests. Its command line is in
//! `sandbox_command_line.rs`.

use std::fs;

use k8s_openapi::api::authentication::v1::{SelfSubjectReview, UserInfo};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use opensdn_testing::Outcome;
use opensdn_testing::eventually::eventually;
use opensdn_testing::sandbox::{BinariesError, Sandbox, SandboxError, User};
use opensdn_testing::shared::Shared;

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: example.invalid/web}]
";

async fn create_namespace(client: &Client, name: &str) -> Result<(), kube::Error> {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.into());
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.map(drop)
}

async fn namespace_exists(client: Client, name: &str) -> Result<bool, kube::Error> {
    Ok(Api::<Namespace>::all(client).get_opt(name).await?.is_some())
}

async fn who_am_i(client: Client) -> Result<UserInfo, kube::Error> {
    let reviews: Api<SelfSubjectReview> = Api::all(client);
    let answer = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    Ok(answer.status.and_then(|status| status.user_info).unwrap_or_default())
}

fn is_forbidden<T>(answer: &Result<T, kube::Error>) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 403)
}

#[tokio::test]
async fn admin_may_do_everything_and_others_what_rbac_says() -> Outcome {
    let sandbox = Shared::with_crds().await?;
    let namespace = sandbox.namespace().await?;
    let bob = sandbox.client_for(&User::new("bob"))?;
    let maps: Api<ConfigMap> = Api::namespaced(bob, &namespace);
    assert!(is_forbidden(&maps.list(&ListParams::default()).await));

    // A role of its own: what is in `view` is gathered by a controller, and none runs here.
    for created in [
        &["role", "reader", "--verb=list", "--resource=configmaps"][..],
        &["rolebinding", "bob", "--role=reader", "--user=bob"],
    ] {
        let created = [&["create", "-n", &namespace], created].concat();
        let output = sandbox.kubectl(&created).await?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    // The API server learns of a new binding by a watch, as all clients do.
    let lists = async || maps.list(&ListParams::default()).await.is_ok();
    eventually("bob lists what the binding lets him", lists).await;
    Ok(())
}

#[tokio::test]
async fn client_is_the_user_with_all_groups() -> Outcome {
    let sandbox = Shared::with_crds().await?;
    let one = who_am_i(sandbox.client_for(&User::new("ann").in_group("net"))?).await?;
    assert_eq!(one.username.as_deref(), Some("ann"));
    assert_eq!(one.groups.unwrap_or_default(), ["net", "system:authenticated"]);

    let user = User::new("a/b: 'c'").in_group("net").in_group("dev");
    let two = who_am_i(sandbox.client_for(&user)?).await?;
    assert_eq!(two.username.as_deref(), Some("a/b: 'c'"));
    assert_eq!(two.groups.unwrap_or_default(), ["net", "dev", "system:authenticated"]);
    Ok(())
}

#[tokio::test]
async fn client_of_a_service_account_has_a_real_token() -> Outcome {
    let sandbox = Shared::with_crds().await?;
    let admin = sandbox.client()?;
    let namespace = sandbox.namespace().await?;
    assert!(sandbox.client_for_service_account(&namespace, "robot").await.is_err());

    let mut account = ServiceAccount::default();
    account.metadata.name = Some("robot".into());
    let accounts: Api<ServiceAccount> = Api::namespaced(admin, &namespace);
    accounts.create(&PostParams::default(), &account).await?;
    let robot = who_am_i(sandbox.client_for_service_account(&namespace, "robot").await?).await?;
    assert_eq!(
        robot.username.as_deref(),
        Some(&*format!("system:serviceaccount:{namespace}:robot"))
    );
    Ok(())
}

#[tokio::test]
async fn kubectl_takes_input_and_any_users_kubeconfig() -> Outcome {
    let sandbox = Shared::with_crds().await?;
    let namespace = sandbox.namespace().await?;
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: from-input}}";
    let applied = sandbox.kubectl_with_input(&["apply", "-n", &namespace, "-f", "-"], map).await?;
    assert_eq!(String::from_utf8_lossy(&applied.stdout), "configmap/from-input created\n");

    let kubeconfig = sandbox.kubeconfig_for(&User::new("eve").in_group("a").in_group("b"))?;
    let output = sandbox.kubectl_command(&kubeconfig)?.args(["get", "configmaps"]).output().await?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("User \"eve\" cannot list resource"), "{said}");
    Ok(())
}

#[tokio::test]
async fn audit_log_has_a_request_before_it_is_answered() -> Outcome {
    let sandbox = Shared::with_crds().await?;
    let namespace = sandbox.namespace().await?;
    sandbox.kubectl(&["create", "configmap", "audited", "-n", &namespace]).await?;
    let log = fs::read_to_string(sandbox.audit_log())?;
    let events = log.lines().map(serde_json::from_str::<serde_json::Value>);
    let events = events.collect::<Result<Vec<_>, _>>()?;
    assert!(events.iter().any(|event| {
        event["verb"] == "create"
            && event["objectRef"]["name"] == "audited"
            && event["objectRef"]["namespace"] == *namespace
            && event["user"]["username"] == "kubernetes-admin"
    }));
    Ok(())
}

#[tokio::test]
async fn controllers_and_simulated_nodes_bring_pods_to_running() -> Outcome {
    let sandbox = Sandbox::builder().simulated_nodes(2).start().await?;
    let applied = sandbox.kubectl_with_input(&["apply", "-f", "-"], DEPLOYMENT).await?;
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    let rollout =
        sandbox.kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]).await?;
    assert!(rollout.status.success(), "{}", String::from_utf8_lossy(&rollout.stderr));
    let pods = sandbox
        .kubectl(&["get", "pods", "-o=jsonpath={range .items[*]}{.status.phase} {end}"])
        .await?;
    assert_eq!(String::from_utf8_lossy(&pods.stdout), "Running Running ");

    // The garbage collector and kwok take them away again.
    let deleted = sandbox
        .kubectl(&["delete", "deployment/web", "--cascade=foreground", "--timeout=60s"])
        .await?;
    assert!(deleted.status.success(), "{}", String::from_utf8_lossy(&deleted.stderr));
    Ok(())
}

#[tokio::test]
async fn two_run_side_by_side_and_leave_nothing() -> Outcome {
    let only_api = || Sandbox::builder().only_api_server().start();
    let (one, two) = tokio::try_join!(only_api(), only_api())?;
    assert_ne!(one.api_server_url(), two.api_server_url());
    create_namespace(&one.client()?, "same").await?;
    assert!(!namespace_exists(two.client()?, "same").await?);
    create_namespace(&two.client()?, "same").await?;

    let folder = one.data_folder().to_owned();
    let processes = one.process_ids();
    assert_eq!(processes.len(), 2);
    drop(one);
    assert!(!folder.exists());
    assert!(processes.iter().all(|id| !fs::exists(format!("/proc/{id}")).unwrap()));
    assert!(namespace_exists(two.client()?, "same").await?);
    Ok(())
}

#[tokio::test]
async fn data_outlives_restarts_and_kills() -> Outcome {
    let sandbox = Sandbox::builder().only_api_server().start().await?;
    let client = sandbox.client()?;
    create_namespace(&client, "kept").await?;

    sandbox.restart_api_server().await?;
    assert!(namespace_exists(client.clone(), "kept").await?);
    sandbox.restart_etcd().await?;
    assert!(namespace_exists(client.clone(), "kept").await?);

    sandbox.kill_api_server();
    assert!(namespace_exists(client.clone(), "kept").await.is_err());
    sandbox.kill_etcd();
    assert!(sandbox.process_ids().is_empty());
    let (etcd, api_server) = tokio::join!(sandbox.start_etcd(), sandbox.start_api_server());
    etcd?;
    api_server?;
    assert!(namespace_exists(client, "kept").await?);
    Ok(())
}

#[tokio::test]
async fn unknown_kubernetes_version_is_refused_with_the_known_ones() {
    // With KUBEBUILDER_ASSETS the programs are given, and no version is looked for.
    if std::env::var_os("KUBEBUILDER_ASSETS").is_some() {
        return;
    }
    let Err(error) = Sandbox::builder().kubernetes("1.12").start().await else {
        panic!("started Kubernetes 1.12");
    };
    assert!(matches!(error, SandboxError::Binaries(BinariesError::UnknownVersion { .. })));
    assert!(error.to_string().contains("1.33, 1.35, 1.36"), "{error}");
}
