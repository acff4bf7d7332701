//! The cloud of a test, a fake or a real one, as another client sees it, and our client of it.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use http::{Method, Request, header};
use opensdn_config_api::ConfigApi;
use opensdn_config_api::apply::{self, Error, Outcome, Timing};
use opensdn_config_api::edit::{Foreign, Unwanted};
use opensdn_config_api::keystone::{Credentials, Keystone, Password};
use opensdn_config_api::link_local::{Key, Row, Target};
use opensdn_config_api::lock;
use opensdn_config_api::ownership::ClusterId;
use opensdn_http_client::{HttpClient, Trust, read_whole, whole_body};
use opensdn_testing::config_api::{FakeConfigApi, Settings, Times};
use serde_json::{Value, json};

/// What a slow machine may need.
pub(crate) const LIMIT: Duration = Duration::from_secs(600);
/// What the ids of our clusters begin with.
const OURS: &str = "nested-cloud-test-";
const FIELD: &str = "linklocal_service_entry";
const POOLS: &str = "port_translation_pools";
pub(crate) const LOCK: [&str; 2] = ["default-domain", "kubectl-opensdn-link-local-services"];

/// A cloud as other clients have it.
pub(crate) struct Cloud {
    fake: Option<FakeConfigApi>,
    url: String,
    http: HttpClient,
}

/// Without the waits that a cloud needs whose writers are slow.
pub(crate) fn timing() -> Timing {
    let instant = Duration::from_millis(1);
    Timing {
        settle: vec![Duration::ZERO, instant],
        attempts: 10,
        pause: instant,
        confirm: Duration::ZERO,
        lock: lock::Timing { wait: LIMIT, poll: instant, hold: LIMIT },
    }
}

/// Where the rows are saved.
pub(crate) async fn save(_: Value) -> Result<String, Infallible> {
    Ok("backup-1.json".to_owned())
}

pub(crate) fn cluster(name: &str) -> ClusterId {
    ClusterId::new(&format!("{OURS}{name}")).unwrap()
}

/// A row that leads to a node of the fabric.
pub(crate) fn row(name: &str, service: [u8; 2], port: u16, node: u8) -> Row {
    let service = Ipv4Addr::new(198, 18, service[0], service[1]);
    let target = Target::new([Ipv4Addr::new(192, 168, 1, node)], port);
    Row::new(&format!("{OURS}{name}"), Key::new(service, port), &target)
}

pub(crate) fn http() -> HttpClient {
    HttpClient::new(Trust::unverified(), LIMIT).unwrap()
}

/// Sets these rows up.
pub(crate) async fn set_up(
    api: &ConfigApi,
    cluster: &ClusterId,
    rows: &[Row],
    timing: &Timing,
) -> Result<Outcome, Error> {
    let (foreign, unwanted) = (Foreign::Respect, Unwanted::Remove);
    let request = apply::Request { cluster, rows, foreign, unwanted };
    apply::apply(api, &request, timing, save).await
}

impl Cloud {
    /// A fake of its own.
    pub(crate) fn fake(settings: Settings) -> Self {
        let fake = FakeConfigApi::start(settings).unwrap();
        Self { url: fake.url().to_owned(), fake: Some(fake), http: http() }
    }

    /// Runs a test that needs no fault.
    pub(crate) async fn any(test: impl AsyncFnOnce(&Self)) {
        // One at a time: they look at the version of an object that they share.
        static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
        let Ok(url) = std::env::var("OPENSDN_CONFIG_API") else {
            return test(&Self::fake(Settings::default())).await;
        };
        let _turn = TURN.lock().await;
        let cloud = Self { fake: None, url, http: http() };
        let (_, before) = cloud.object().await;
        let ended = AssertUnwindSafe(test(&cloud)).catch_unwind().await;
        cloud.clean_up(&before[POOLS]).await;
        if let Err(panic) = ended {
            resume_unwind(panic);
        }
    }

    pub(crate) fn faults(&self) -> &FakeConfigApi {
        self.fake.as_ref().unwrap()
    }

    /// How many requests the fake has got of a method to a path; none on a real one, which does not say.
    pub(crate) fn count(&self, method: &Method, path: &str) -> usize {
        self.fake.as_ref().map_or(0, |fake| fake.count(method, path))
    }

    pub(crate) fn api(&self) -> ConfigApi {
        ConfigApi::new(http(), std::slice::from_ref(&self.url), None, LIMIT).unwrap()
    }

    /// Our client with the login of a user.
    pub(crate) fn api_of(&self, user: &str, password: &str) -> ConfigApi {
        self.limited_api_of(user, password, LIMIT)
    }

    pub(crate) fn limited_api_of(&self, user: &str, password: &str, limit: Duration) -> ConfigApi {
        let credentials = Credentials {
            auth_url: self.faults().keystone_url().to_owned(),
            user: user.to_owned(),
            password: Password::new(password.to_owned()),
            project: "admin".to_owned(),
            user_domain: "Default".to_owned(),
            project_domain: "Default".to_owned(),
        };
        let keystone = Keystone::new(http(), credentials).unwrap();
        ConfigApi::new(http(), std::slice::from_ref(&self.url), Some(keystone), limit).unwrap()
    }

    async fn ask(&self, method: Method, path: &str, body: &Value) -> (String, Value) {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url.trim_end_matches('/')))
            .header(header::CONTENT_TYPE, "application/json")
            .body(whole_body(body.to_string().into()))
            .unwrap();
        let answer = self.http.send(request, LIMIT).await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        let etag = answer.headers().get(header::ETAG).map(|etag| etag.to_str().unwrap().to_owned());
        let bytes = read_whole(answer.into_body(), 32 << 20, LIMIT).await.unwrap();
        (etag.unwrap_or_default(), serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// The object with the rows, and its version.
    pub(crate) async fn object(&self) -> (String, Value) {
        let fq_name = ["default-global-system-config", "default-global-vrouter-config"];
        let named = json!({"type": "global-vrouter-config", "fq_name": fq_name});
        let (_, named) = self.ask(Method::POST, "/fqname-to-id", &named).await;
        let path = format!("/global-vrouter-config/{}", named["uuid"].as_str().unwrap());
        let (etag, mut object) = self.ask(Method::GET, &path, &Value::Null).await;
        (etag, object["global-vrouter-config"].take())
    }

    pub(crate) async fn etag(&self) -> String {
        self.object().await.0
    }

    /// All rows, as they are stored.
    pub(crate) async fn rows(&self) -> Vec<Value> {
        let (_, object) = self.object().await;
        object["linklocal_services"][FIELD].as_array().cloned().unwrap_or_default()
    }

    /// Writes all rows.
    pub(crate) async fn write(&self, rows: &[Value]) {
        self.write_property("linklocal_services", json!({ FIELD: rows })).await;
    }

    pub(crate) async fn write_property(&self, name: &str, property: Value) {
        let (_, object) = self.object().await;
        let path = format!("/global-vrouter-config/{}", object["uuid"].as_str().unwrap());
        let body = json!({"global-vrouter-config": { name: property }});
        self.ask(Method::PUT, &path, &body).await;
    }

    /// Adds rows of others at the end.
    pub(crate) async fn add(&self, rows: &[Value]) {
        let all = [self.rows().await, rows.to_vec()].concat();
        self.write(&all).await;
    }

    /// The texts of our records by the clusters' names.
    pub(crate) async fn records(&self) -> Vec<(String, String)> {
        let (_, object) = self.object().await;
        let pairs = object["annotations"]["key_value_pair"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let all = pairs.iter().map(|pair| (text(&pair["key"]), text(&pair["value"])));
        let prefix = format!("kubectl-opensdn/{OURS}");
        let ours = all.filter_map(|(key, value)| {
            key.strip_prefix(&prefix).map(|name| (name.to_owned(), value))
        });
        let mut ours: Vec<(String, String)> = ours.collect();
        ours.sort();
        ours
    }

    /// Whether all these rows are there as they are wanted.
    pub(crate) async fn has(&self, rows: &[Row]) -> bool {
        let stored: Vec<Row> = self.rows().await.into_iter().map(Row::from).collect();
        rows.iter().all(|row| stored.contains(row))
    }

    /// Makes a network of its own in the cloud, and removes it after the test.
    pub(crate) async fn with_network(&self, snat: Value, test: impl AsyncFnOnce(&str, &str)) {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{OURS}{}-{number}", std::process::id());
        let network = json!({"virtual-network": {"parent_type": "project", "fabric_snat": snat,
            "fq_name": ["default-domain", "default-project", name]}});
        let (_, made) = self.ask(Method::POST, "/virtual-networks", &network).await;
        let uuid = made["virtual-network"]["uuid"].as_str().unwrap();
        let ended = AssertUnwindSafe(test(&name, uuid)).catch_unwind().await;
        self.ask(Method::DELETE, &format!("/virtual-network/{uuid}"), &Value::Null).await;
        if let Err(panic) = ended {
            resume_unwind(panic);
        }
    }

    pub(crate) async fn network(&self, uuid: &str) -> (String, Value) {
        let path = format!("/virtual-network/{uuid}");
        let (etag, mut object) = self.ask(Method::GET, &path, &Value::Null).await;
        (etag, object["virtual-network"].take())
    }

    async fn clean_up(&self, pools: &Value) {
        let (_, object) = self.object().await;
        if object[POOLS] != *pools {
            let none = json!({"port_translation_pool": []});
            self.write_property(POOLS, if pools.is_null() { none } else { pools.clone() }).await;
        }
        for (name, _) in self.records().await {
            let position = cluster(&name).annotation();
            let update =
                json!({"field": "annotations", "operation": "delete", "position": position});
            let body = json!({"uuid": object["uuid"], "updates": [update]});
            self.ask(Method::POST, "/prop-collection-update", &body).await;
        }
        let mut rows = self.rows().await;
        let count = rows.len();
        rows.retain(|row| {
            let address = row["linklocal_service_ip"].as_str().unwrap_or_default();
            let name = row["linklocal_service_name"].as_str().unwrap_or_default();
            !address.starts_with("198.18.") && !name.starts_with(OURS)
        });
        if rows.len() < count {
            self.write(&rows).await;
        }
    }
}

/// A fault that happens once to the list.
pub(crate) const ONCE: Times = Times::Next(1);
