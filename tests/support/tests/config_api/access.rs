//! Tokens, and who may do what with them.

use std::time::Duration;

use http::{Method, Request};
use kube::{Client, Config};
use opensdn_testing::config_api::{Mode, Roles, Service, Settings, Tls, User};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use crate::asker::{Asker, Said, call};

fn settings(mode: Mode) -> Settings {
    let users = vec![
        User::new("admin", "contrail123", &["admin"]),
        User::new("bob", "secret-of-bob", &["member"]),
        User::new("carol", "secret-of-carol", &["operator"]),
        User::new("reader", "secret-of-reader", &["auditor"]),
    ];
    let roles = Roles { global_read_only: Some("auditor".to_owned()), ..Roles::default() };
    Settings { mode, users, roles, ..Settings::default() }
}

async fn keystone(asker: &Asker, path: &str, body: &Value) -> Said {
    let headers = [("content-type", "application/json")];
    call(asker.fake.keystone_url(), Method::POST, path, &headers, body.to_string()).await.unwrap()
}

fn v3(name: &str, password: &str) -> Value {
    let domain = json!({"name": "Default"});
    json!({"auth": {
        "identity": {"methods": ["password"],
            "password": {"user": {"name": name, "password": password, "domain": domain}}},
        "scope": {"project": {"name": "admin", "domain": domain}}}})
}

/// A fake with a client that has the token of a user; none, where there is no such user.
async fn as_user(settings: Settings, name: &str) -> Asker {
    let mut asker = Asker::with(settings);
    let password = if name == "admin" { "contrail123".into() } else { format!("secret-of-{name}") };
    let said = keystone(&asker, "/v3/auth/tokens", &v3(name, &password)).await;
    asker.token = said.headers.get("x-subject-token").map(|id| id.to_str().unwrap().to_owned());
    asker
}

fn named() -> Value {
    let fq_name = ["default-global-system-config", "default-global-vrouter-config"];
    json!({"type": "global-vrouter-config", "fq_name": fq_name})
}

/// What a read, a look for a name and a write are answered with.
async fn statuses(asker: &Asker) -> [u16; 3] {
    [
        asker.get(&asker.path()).await.status,
        asker.post("/fqname-to-id", &named()).await.status,
        asker.put_properties(json!({"flow_export_rate": 1})).await.status,
    ]
}

#[tokio::test]
async fn without_authentication_each_caller_may_do_all() {
    for name in ["unknown", "bob", "admin"] {
        let asker = as_user(settings(Mode::NoAuth), name).await;
        assert_eq!(statuses(&asker).await, [200; 3], "{name}");
    }
}

#[tokio::test]
async fn without_a_valid_token_there_is_401_that_names_keystone() {
    for mode in [Mode::CloudAdmin, Mode::Rbac] {
        let mut asker = Asker::with(settings(mode));
        for token in [None, Some("wrong".to_owned())] {
            asker.token = token;
            assert_eq!(statuses(&asker).await, [401; 3]);
        }
        let said = asker.get(&asker.path()).await;
        let error = &said.json()["error"];
        assert_eq!((&error["code"], &error["title"]), (&json!(401), &json!("Unauthorized")));
        let challenge = format!("Keystone uri=\"{}\"", asker.fake.keystone_url());
        assert_eq!(said.header("www-authenticate"), challenge);
    }
}

#[tokio::test]
async fn an_admin_may_do_all() {
    for mode in [Mode::CloudAdmin, Mode::Rbac] {
        assert_eq!(statuses(&as_user(settings(mode), "admin").await).await, [200; 3]);
    }
}

#[tokio::test]
async fn another_role_in_cloud_admin_gets_403_and_no_body() {
    for name in ["bob", "reader"] {
        let asker = as_user(settings(Mode::CloudAdmin), name).await;
        let said = asker.get(&asker.path()).await;
        assert_eq!((said.status, said.header("content-length")), (403, "21"));
        assert!(said.body.is_none(), "a body came: {}", said.text());
        assert_eq!(statuses(&asker).await, [403; 3]);
    }
}

#[tokio::test]
async fn cloud_admin_wants_the_role_admin_whatever_the_role_of_the_cloud_is_called() {
    let roles = || Roles { cloud_admin: "operator".to_owned(), ..Roles::default() };
    let of = |mode| Settings { roles: roles(), ..settings(mode) };
    assert_eq!(statuses(&as_user(of(Mode::CloudAdmin), "carol").await).await, [403; 3]);
    assert_eq!(statuses(&as_user(of(Mode::CloudAdmin), "admin").await).await, [200; 3]);
    assert_eq!(statuses(&as_user(of(Mode::Rbac), "carol").await).await, [200; 3]);
}

#[tokio::test]
async fn another_role_in_rbac_gets_403_that_says_why() {
    let asker = as_user(settings(Mode::Rbac), "bob").await;
    assert_eq!(statuses(&asker).await, [403; 3]);
    let said = asker.put_properties(json!({"flow_export_rate": 1})).await;
    let text = "Permission Denied for bob as ['member'] to U global-vrouter-config in admin";
    assert_eq!(said.text(), text);
    let said = asker.get("/global-vrouter-configs").await;
    let text = "Permission Denied for bob as ['member'] to R global-vrouter-config in admin";
    assert_eq!(said.text(), text);
}

#[tokio::test]
async fn a_global_reader_in_rbac_reads_and_does_not_write() {
    let asker = as_user(settings(Mode::Rbac), "reader").await;
    assert_eq!(statuses(&asker).await, [200, 200, 403]);
}

#[tokio::test]
async fn a_rule_lets_everyone_read_a_kind_in_rbac_and_nothing_else() {
    let roles = Roles { readable: vec!["global-vrouter-config".to_owned()], ..Roles::default() };
    let asker = as_user(Settings { roles, ..settings(Mode::Rbac) }, "bob").await;
    assert_eq!(statuses(&asker).await, [200, 200, 403]);
    assert_eq!(asker.get("/virtual-networks").await.status, 403);
    assert_eq!(asker.fake.tokens(), [asker.token.clone().unwrap()]);
    asker.fake.expire_tokens();
    assert!(asker.fake.tokens().is_empty());
}

#[tokio::test]
async fn the_homepage_is_open_in_all_modes() {
    for mode in [Mode::NoAuth, Mode::CloudAdmin, Mode::Rbac] {
        assert_eq!(Asker::with(settings(mode)).get("/").await.status, 200);
    }
}

#[tokio::test]
async fn the_mode_is_answered_by_its_name() {
    for (mode, name) in
        [(Mode::NoAuth, "no-auth"), (Mode::CloudAdmin, "cloud-admin"), (Mode::Rbac, "rbac")]
    {
        let asker = as_user(settings(mode), "admin").await;
        assert_eq!(asker.get("/aaa-mode").await.json(), json!({"aaa-mode": name}));
    }
}

#[tokio::test]
async fn permissions_of_an_admin_are_all_and_come_with_the_token() {
    let asker = as_user(settings(Mode::CloudAdmin), "admin").await;
    let said = asker.get(&format!("/obj-perms?uuid={}", asker.fake.global_vrouter_config())).await;
    let token = asker.token.clone().unwrap();
    assert!(said.json()["token_info"].to_string().contains(&token));
    assert_eq!(said.json()["permissions"], "RWX");
    assert_eq!(said.json()["is_cloud_admin_role"], true);
    assert_eq!(said.json()["is_global_read_only_role"], false);
    assert_eq!(asker.get("/obj-perms").await.json().get("permissions"), None);
}

#[tokio::test]
async fn permissions_of_a_reader_do_not_include_writing() {
    let asker = as_user(settings(Mode::Rbac), "reader").await;
    let said = asker.get(&format!("/obj-perms?uuid={}", asker.fake.global_vrouter_config())).await;
    assert_eq!(said.json()["permissions"], "");
    assert_eq!(said.json()["is_cloud_admin_role"], false);
    assert_eq!(said.json()["is_global_read_only_role"], true);
}

#[tokio::test]
async fn without_authentication_permissions_are_all_and_no_role_is_known() {
    let asker = Asker::new();
    let expected = json!({"token_info": null, "is_cloud_admin_role": false,
        "is_global_read_only_role": false, "permissions": "RWX"});
    assert_eq!(asker.get("/obj-perms").await.json(), expected);
}

#[tokio::test]
async fn keystone_gives_a_token_over_v2_in_the_body() {
    let mut asker = Asker::with(settings(Mode::CloudAdmin));
    let credentials = json!({"username": "admin", "password": "contrail123"});
    let body = json!({"auth": {"passwordCredentials": credentials, "tenantName": "admin"}});
    let said = keystone(&asker, "/v2.0/tokens", &body).await;
    assert_eq!(said.status, 200);
    let id = said.json()["access"]["token"]["id"].as_str().unwrap().to_owned();
    assert!(said.headers.get("x-subject-token").is_none());
    asker.token = Some(id);
    assert_eq!(statuses(&asker).await, [200; 3]);
}

#[tokio::test]
async fn keystone_gives_a_token_over_v3_in_a_header() {
    let asker = Asker::with(settings(Mode::CloudAdmin));
    let said = keystone(&asker, "/v3/auth/tokens", &v3("admin", "contrail123")).await;
    assert_eq!(said.status, 201);
    assert!(!said.header("x-subject-token").is_empty());
    assert_eq!(said.json()["token"]["roles"][0]["name"], "admin");
    assert_eq!(asker.fake.count(&Method::POST, "/v3/auth/tokens"), 1);
    assert_eq!(asker.fake.calls()[0].service, Service::Keystone);
}

#[tokio::test]
async fn keystone_refuses_another_password_project_or_domain() {
    let asker = Asker::with(settings(Mode::CloudAdmin));
    let mut project = v3("admin", "contrail123");
    project["auth"]["scope"]["project"]["name"] = json!("other");
    let mut domain = v3("admin", "contrail123");
    domain["auth"]["identity"]["password"]["user"]["domain"]["name"] = json!("other");
    for body in [v3("admin", "wrong"), v3("eve", "contrail123"), project, domain] {
        let said = keystone(&asker, "/v3/auth/tokens", &body).await;
        assert_eq!(said.status, 401, "{body}");
        assert_eq!(said.json()["error"]["title"], "Unauthorized");
    }
}

#[tokio::test]
async fn keystone_says_which_version_it_is() {
    let asker = Asker::new();
    let said = call(asker.fake.keystone_url(), Method::GET, "/v3", &[], "").await.unwrap();
    assert_eq!(said.json()["version"]["status"], "stable");
}

#[tokio::test]
async fn a_token_ends_after_its_life_and_when_a_test_says_so() {
    let asker = as_user(settings(Mode::CloudAdmin), "admin").await;
    assert_eq!(statuses(&asker).await, [200; 3]);
    asker.fake.expire_tokens();
    assert_eq!(statuses(&asker).await, [401; 3]);
    let short = Settings { token_life: Duration::ZERO, ..settings(Mode::CloudAdmin) };
    assert_eq!(statuses(&as_user(short, "admin").await).await, [401; 3]);
}

#[test]
fn no_password_and_no_key_is_in_what_is_printed() {
    let tls = Tls::for_names(&["localhost"]).unwrap();
    let shown = format!("{:?}", Settings { tls: Some(tls), ..settings(Mode::Rbac) });
    assert!(shown.contains("bob") && !shown.contains("secret"), "{shown}");
    assert!(!shown.contains("contrail123"), "{shown}");
    assert!(!shown.contains("PRIVATE KEY"), "{shown}");
}

#[tokio::test]
async fn both_services_speak_tls_to_those_who_trust_the_certificate() {
    let tls = Tls::for_names(&["127.0.0.1"]).unwrap();
    let settings = Settings { tls: Some(tls.clone()), ..settings(Mode::NoAuth) };
    let asker = Asker::with(settings);
    let pem = tls.certificate().as_bytes();
    let certificate = CertificateDer::from_pem_slice(pem).unwrap().to_vec();
    for (url, path) in [(asker.fake.url(), "/"), (asker.fake.keystone_url(), "/v3")] {
        let text = async |trusted: Option<Vec<Vec<u8>>>| {
            let mut config = Config::new(url.parse().unwrap());
            config.root_cert = trusted;
            let client = Client::try_from(config).unwrap();
            client.request_text(Request::get(path).body(Vec::new()).unwrap()).await
        };
        assert!(text(None).await.is_err(), "the certificate is not trusted");
        let said = text(Some(vec![certificate.clone()])).await.unwrap();
        assert!(said.contains(url), "{said}");
    }
}
