//! A fake Config API with its Keystone, in this process, over real HTTP: objects in memory, upstream's answers to what is
//! odd, upstream's rights, and the faults that a client has to stand. Two of its kind share nothing.
//!
//! Deliberately not here: what a change means to the cloud (schema transformer, agents), quotas, pages of lists, filters,
//! `ref-update`, the admin port.

mod access;
mod answer;
pub mod command_line;
mod faults;
mod keystone;
mod python;
mod render;
mod request;
mod resources;
mod routes;
mod schema;
mod server;
mod state;
mod store;
mod tls;
mod validate;
mod watch;
mod worked_example;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Map, Value, json};

use crate::Failed;

pub use access::{Mode, Roles};
pub use faults::{Disturbance, Service, Times, WatchFault};
pub use keystone::User;
pub use state::Call;
pub use store::Refusal;
pub use tls::Tls;
pub use watch::WatchEnd;
pub use worked_example::WorkedExample;

use faults::Overwriter;
use render::Fields;
use schema::{GLOBAL_VROUTER_CONFIG, Kind};
use server::{Port, Server};
use state::Shared;
use store::names;
use store::write::{unknown_id, unknown_kind};

/// Whether `/watch` is there, and its link on the homepage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchApi {
    /// As since 5.1.
    #[default]
    Offered,
    /// As before.
    Absent,
}

/// How it is to be.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the Config API listens; a free port of this machine.
    pub listen: SocketAddr,
    /// Where Keystone listens; the same.
    pub keystone_listen: SocketAddr,
    /// Who is let in.
    pub mode: Mode,
    /// Which roles mean something.
    pub roles: Roles,
    /// Who gets a token; `admin` with the password `contrail123`.
    pub users: Vec<User>,
    /// How long a token is valid.
    pub token_life: Duration,
    /// Whether there is a watch.
    pub watch: WatchApi,
    /// How often a watch says that it is there.
    pub keep_alive: Duration,
    /// Both services with TLS.
    pub tls: Option<Tls>,
}

impl Default for Settings {
    fn default() -> Self {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            listen: free,
            keystone_listen: free,
            mode: Mode::default(),
            roles: Roles::default(),
            users: vec![User::new("admin", "contrail123", &["admin"])],
            token_life: Duration::from_secs(3600),
            watch: WatchApi::default(),
            keep_alive: Duration::from_secs(60),
            tls: None,
        }
    }
}

/// Where the two services are.
#[derive(Clone, Debug)]
struct Addresses {
    config_api: String,
    keystone: String,
}

/// Both services, until it is dropped.
pub struct FakeConfigApi {
    shared: Arc<Shared>,
    server: Server,
}

impl FakeConfigApi {
    /// Starts both; they answer when this returns.
    ///
    /// # Errors
    /// There is no port, or the certificate is none.
    pub fn start(settings: Settings) -> Result<Self, Failed> {
        let acceptor = settings.tls.as_ref().map(Tls::acceptor).transpose()?;
        let config_api = Port::open(Service::ConfigApi, settings.listen)?;
        let keystone = Port::open(Service::Keystone, settings.keystone_listen)?;
        let scheme = if acceptor.is_some() { "https" } else { "http" };
        let addresses = Addresses {
            config_api: format!("{scheme}://{}", config_api.address()?),
            keystone: format!("{scheme}://{}", keystone.address()?),
        };
        let shared = Arc::new(Shared::new(settings, addresses)?);
        let server = Server::start(shared.clone(), [config_api, keystone], acceptor)?;
        Ok(Self { shared, server })
    }

    /// `http://127.0.0.1:PORT` of the Config API.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.shared.addresses.config_api
    }

    /// The same of Keystone, before `/v3`.
    #[must_use]
    pub fn keystone_url(&self) -> &str {
        &self.shared.addresses.keystone
    }

    /// The uuid of the object with the link-local services; empty, when a test has deleted it.
    #[must_use]
    pub fn global_vrouter_config(&self) -> String {
        let fq_name = ["default-global-system-config", "default-global-vrouter-config"];
        let object = self.read(GLOBAL_VROUTER_CONFIG, &fq_name).unwrap_or_default();
        object.get("uuid").and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// An object by its name as it is stored, with all its links and without addresses; not counted as a call.
    #[must_use]
    pub fn read(&self, kind: &str, fq_name: &[&str]) -> Option<Value> {
        let state = self.shared.state();
        let fq_name = names(&json!(fq_name))?;
        let object = state.store.by_name(Kind::find(kind)?, &fq_name)?;
        Some(render::object(&state.store, object, &Fields::EVERYTHING, None))
    }

    /// Creates an object as another client would; its uuid.
    ///
    /// # Errors
    /// What the API server answers.
    pub fn create(&self, kind: &str, object: Value) -> Result<String, Refusal> {
        let kind = Kind::find(kind).ok_or_else(|| unknown_kind(kind))?;
        let mut state = self.shared.state();
        let uuid = state.store.create(kind, fields(object)?)?;
        state.report();
        Ok(uuid)
    }

    /// Changes an object as another client would; no fault happens to it.
    ///
    /// # Errors
    /// What the API server answers.
    pub fn update(&self, uuid: &str, properties: Value) -> Result<(), Refusal> {
        let mut state = self.shared.state();
        let kind = state.store.by_uuid(uuid).ok_or_else(|| unknown_id(uuid))?.kind;
        state.store.update(kind, uuid, fields(properties)?)?;
        state.report();
        Ok(())
    }

    /// A reference no longer keeps what it refers to from being deleted, as another client says it.
    ///
    /// # Errors
    /// What the API server answers.
    pub fn relax(&self, from: &str, to: &str) -> Result<(), Refusal> {
        let body = json!({"uuid": from, "ref-uuid": to});
        self.shared.state().store.relax(&body).map(|_| ())
    }

    /// The list of link-local services, as it is stored.
    #[must_use]
    pub fn entries(&self) -> Value {
        let fq_name = ["default-global-system-config", "default-global-vrouter-config"];
        let object = self.read(GLOBAL_VROUTER_CONFIG, &fq_name).unwrap_or_default();
        object.pointer("/linklocal_services/linklocal_service_entry").cloned().unwrap_or_default()
    }

    /// Writes the list of link-local services as another client would.
    ///
    /// # Errors
    /// What the API server answers.
    pub fn write_entries(&self, entries: Value) -> Result<(), Refusal> {
        let list = json!({"linklocal_services": {"linklocal_service_entry": entries}});
        self.update(&self.global_vrouter_config(), list)
    }

    /// All calls since the start or the last [`Self::forget_calls`], in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.shared.state().calls.clone()
    }

    /// How many there were of a method to a path or to what is below it: `/global-vrouter-config`.
    #[must_use]
    pub fn count(&self, method: &Method, path: &str) -> usize {
        let is_below = |call: &&Call| {
            let rest = call.path.strip_prefix(path);
            call.method == method
                && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.shared.state().calls.iter().filter(is_below).count()
    }

    /// Counts from nothing again.
    pub fn forget_calls(&self) {
        self.shared.state().calls.clear();
    }

    /// After a `PUT` of the list and before anyone reads it, another client writes the list that was there before.
    pub fn stale_writer(&self, times: Times) {
        let mut state = self.shared.state();
        (state.faults.stale_writer, state.faults.stale_list) = (times, None);
    }

    /// The same, with a list that it has read at another time.
    pub fn stale_writer_of(&self, entries: Value, times: Times) {
        let mut state = self.shared.state();
        let list = json!({"linklocal_service_entry": entries});
        (state.faults.stale_writer, state.faults.stale_list) = (times, Some(list));
    }

    /// A `PUT` is answered with 200 and is not done, as when clocks of API servers differ.
    pub fn lose_puts(&self, times: Times) {
        self.shared.state().faults.lost_puts = times;
    }

    /// A `DELETE` is answered with 200 and is not done.
    pub fn lose_deletes(&self, times: Times) {
        self.shared.state().faults.lost_deletes = times;
    }

    /// After a `PUT` of a property and before anyone reads it, another client writes this.
    pub fn overwriter_of(&self, property: &str, value: Value, times: Times) {
        let property = property.to_owned();
        self.shared.state().faults.overwriter = Some(Overwriter { property, value, times });
    }

    /// Port pools and annotations are missing from a read of the object, as in the middle of another's `PUT` of them. When
    /// the last of these reads is over, so is the `PUT`.
    pub fn tear_reads(&self, times: Times) {
        self.shared.state().faults.torn_reads = times;
    }

    /// Calls to a service are disturbed, whatever they are; they are counted all the same.
    pub fn disturb(&self, service: Service, disturbance: Disturbance, times: Times) {
        self.shared.state().faults.disturb(service, disturbance, times);
    }

    /// A service ends: its port refuses connections from now on.
    pub fn stop(&self, service: Service) {
        self.server.stop(service);
    }

    /// No token that was given is valid any more.
    pub fn expire_tokens(&self) {
        self.shared.state().tokens.expire();
    }

    /// The tokens that are valid now.
    #[must_use]
    pub fn tokens(&self) -> Vec<String> {
        self.shared.state().tokens.ids()
    }

    /// Something goes wrong with watches that are opened from now on.
    pub fn disturb_watch(&self, fault: WatchFault, times: Times) {
        self.shared.state().faults.disturb_watch(fault, times);
    }

    /// The server is replaced by one that offers a watch, or by one that does not.
    pub fn set_watch(&self, watch: WatchApi) {
        self.shared.state().watch_api = watch;
    }

    /// Ends the watches that are open.
    pub fn end_watches(&self, how: WatchEnd) {
        self.shared.state().watchers.end(how);
    }

    /// How often the open watches have been sent that the server is there.
    #[must_use]
    pub fn keep_alives(&self) -> usize {
        self.shared.state().watchers.kept_alive()
    }

    /// How many watches are open.
    #[must_use]
    pub fn watches(&self) -> usize {
        self.shared.state().watchers.count()
    }
}

fn fields(value: Value) -> Result<Map<String, Value>, Refusal> {
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(Refusal::internal()),
    }
}
