//! Tokens and roles: a token that has expired, a user who may not write, and texts without secrets.

use std::time::Duration;

use http::Method;
use opensdn_config_api::ConfigApi;
use opensdn_config_api::link_local::Row;
use opensdn_error_chain::error_chain;
use opensdn_nested::Code;
use opensdn_testing::config_api::{Disturbance, Mode, Roles, Service, Settings, Times, User};

use crate::cloud::{Cloud, LIMIT, cluster, row, set_up, timing};
use crate::example::{Example, OPTIONS, worked_example};
use opensdn_nested_cloud::{remove, survey};

const PASSWORD: &str = "secret-of-admin";

fn settings(mode: Mode) -> Settings {
    let users = vec![
        User::new("admin", PASSWORD, &["admin"]),
        User::new("bob", "secret-of-bob", &["member"]),
    ];
    Settings { mode, users, ..Settings::default() }
}

fn ours() -> [Row; 1] {
    [row("a", [0, 1], 8082, 100)]
}

fn tokens(cloud: &Cloud) -> usize {
    cloud.faults().count(&Method::POST, "/v3/auth/tokens")
}

#[tokio::test]
async fn a_token_that_has_expired_is_replaced_once() {
    let cloud = Cloud::fake(settings(Mode::CloudAdmin));
    let (api, id) = (cloud.api_of("admin", PASSWORD), cluster("a"));
    set_up(&api, &id, &ours(), &timing()).await.unwrap();
    assert_eq!(tokens(&cloud), 1);
    cloud.faults().expire_tokens();
    set_up(&api, &id, &[], &timing()).await.unwrap();
    assert_eq!((tokens(&cloud), cloud.faults().entries().as_array().unwrap().len()), (2, 0));
}

#[tokio::test]
async fn a_token_that_is_never_taken_is_asked_for_twice_and_then_is_an_error() {
    let short = Settings { token_life: Duration::ZERO, ..settings(Mode::CloudAdmin) };
    let cloud = Cloud::fake(short);
    let api = cloud.api_of("admin", PASSWORD);
    let error = set_up(&api, &cluster("a"), &ours(), &timing()).await.unwrap_err();
    assert!(error.to_string().contains("401: it does not take the token"), "{error}");
    assert_eq!(tokens(&cloud), 2);
}

#[tokio::test]
async fn without_a_login_the_error_asks_for_one() {
    let cloud = Cloud::fake(settings(Mode::CloudAdmin));
    let error = set_up(&cloud.api(), &cluster("a"), &ours(), &timing()).await.unwrap_err();
    assert!(error.to_string().contains("401: it wants a token"), "{error}");
}

#[tokio::test]
async fn a_403_without_its_body_names_the_role_that_is_needed() {
    let cloud = Cloud::fake(settings(Mode::CloudAdmin));
    let api = cloud.api_of("bob", "secret-of-bob");
    let error = set_up(&api, &cluster("a"), &ours(), &timing()).await.unwrap_err();
    assert!(error.to_string().contains("needs the role admin"), "{error}");
    let example = Example::new("a", OPTIONS[1]);
    let error = survey(&api, &example.asked()).await.unwrap_err();
    assert!(error.to_string().contains("needs the role admin"), "{error}");
}

#[tokio::test]
async fn a_403_of_rbac_says_who_may_not_do_what() {
    let cloud = Cloud::fake(settings(Mode::Rbac));
    let api = cloud.api_of("bob", "secret-of-bob");
    let error = set_up(&api, &cluster("a"), &ours(), &timing()).await.unwrap_err();
    assert!(error.to_string().contains("Permission Denied"), "{error}");
}

#[tokio::test]
async fn a_login_that_may_only_read_is_told_apart_before_anything_is_written() {
    let users = vec![
        User::new("admin", PASSWORD, &["admin"]),
        User::new("reader", "secret-of-reader", &["auditor"]),
    ];
    let roles = Roles { global_read_only: Some("auditor".to_owned()), ..Roles::default() };
    let settings = Settings { mode: Mode::Rbac, users, roles, ..Settings::default() };
    let cloud = worked_example(settings);
    for option in OPTIONS {
        let example = Example::new("a", option);
        let refused = async |api: &ConfigApi| {
            let plan = example.plan(api).await;
            let found = plan.findings.iter().filter(|one| one.code == Code::MayNotWrite);
            found.map(|one| one.about.to_string()).collect::<Vec<_>>()
        };
        // The network is of the project that it logs in to.
        assert_eq!(refused(&cloud.api_of("reader", "secret-of-reader")).await, ["cloud"]);
        assert_eq!(refused(&cloud.api_of("admin", PASSWORD)).await, [""; 0]);
    }
}

/// What all that can fail says, in each way that it can be shown.
async fn texts(api: &ConfigApi) -> Vec<String> {
    let (id, example) = (cluster("a"), Example::new("a", OPTIONS[0]));
    let mut texts = Vec::new();
    let mut add = |error: &(dyn std::error::Error + 'static)| {
        texts.push(format!("{} {error:?}", error_chain(error)));
    };
    if let Err(error) = set_up(api, &id, &ours(), &timing()).await {
        add(&error);
    }
    if let Err(error) = remove(api, &id, &timing(), crate::cloud::save).await {
        add(&error);
    }
    match survey(api, &example.asked()).await {
        Ok(live) => texts.push(format!("{live:?}")),
        Err(error) => add(&error),
    }
    texts
}

#[tokio::test]
async fn no_password_and_no_token_is_in_what_is_said() {
    let disturbances = [
        (Service::ConfigApi, Disturbance::Cut),
        (Service::ConfigApi, Disturbance::Unavailable),
        (Service::Keystone, Disturbance::Cut),
        (Service::Keystone, Disturbance::Unavailable),
    ];
    let mut all = Vec::new();
    for mode in [Mode::CloudAdmin, Mode::Rbac] {
        for (user, password) in [("admin", PASSWORD), ("bob", "secret-of-bob"), ("eve", PASSWORD)] {
            for disturbance in disturbances.into_iter().map(Some).chain([None]) {
                let cloud = Cloud::fake(settings(mode));
                // Shorter than the first wait: what is disturbed for good fails at once.
                let limit = disturbance.map_or(LIMIT, |_| Duration::from_millis(90));
                let api = cloud.limited_api_of(user, password, limit);
                // So that there is a token already where Keystone does not answer.
                let _ = api.aaa_mode().await;
                if let Some((service, disturbance)) = disturbance {
                    cloud.faults().disturb(service, disturbance, Times::Always);
                }
                let mut texts = texts(&api).await;
                assert!(!texts.is_empty());
                for token in cloud.faults().tokens() {
                    assert!(texts.iter().all(|text| !text.contains(&token)), "{texts:#?}");
                }
                all.append(&mut texts);
            }
        }
    }
    assert!(all.iter().any(|text| text.contains("refuses the login of the user eve")));
    let leak = all.iter().find(|text| text.contains("secret-of"));
    assert_eq!(leak, None);
}
