//! All that is behind the mutex, and what stays as it was set at the start.

use std::sync::{Mutex, MutexGuard, PoisonError};

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::access::{Access, Mode};
use super::faults::{Faults, Service};
use super::keystone::{Directory, Tokens};
use super::schema::{GLOBAL_VROUTER_CONFIG, Kind};
use super::store::{Refusal, Store};
use super::watch::Watchers;
use super::{Addresses, Settings, WatchApi};

/// A call that came, disturbed or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// To which of the two services.
    pub service: Service,
    /// `PUT`.
    pub method: Method,
    /// Without the query.
    pub path: String,
    /// The answer; none, if there was none.
    pub status: Option<StatusCode>,
}

pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) addresses: Addresses,
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) store: Store,
    pub(super) faults: Faults,
    pub(super) tokens: Tokens,
    pub(super) watchers: Watchers,
    pub(super) calls: Vec<Call>,
    pub(super) mode: Mode,
    pub(super) watch_api: WatchApi,
}

impl Shared {
    /// With the objects that a new cloud has, and a project for each user.
    ///
    /// # Errors
    /// Two users have different projects of one name.
    pub(super) fn new(settings: Settings, addresses: Addresses) -> Result<Self, Refusal> {
        let mut store = Store::with_singletons()?;
        if let Some(kind) = Kind::find("project") {
            for user in &settings.users {
                let fq_name = ["default-domain".to_owned(), user.project.clone()];
                if store.by_name(kind, &fq_name).is_none() {
                    let mut body = Map::new();
                    body.insert("fq_name".to_owned(), json!(fq_name));
                    body.insert("parent_type".to_owned(), json!("domain"));
                    store.create(kind, body)?;
                }
            }
        }
        store.take_changes();
        let state = State {
            store,
            mode: settings.mode,
            watch_api: settings.watch,
            faults: Faults::default(),
            tokens: Tokens::default(),
            watchers: Watchers::default(),
            calls: Vec::new(),
        };
        Ok(Self { settings, addresses, state: Mutex::new(state) })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn access<'a>(&'a self, state: &'a State) -> Access<'a> {
        Access {
            mode: state.mode,
            roles: &self.settings.roles,
            tokens: &state.tokens,
            keystone: &self.addresses.keystone,
        }
    }

    /// Keystone's answer.
    pub(super) fn keystone(&self, asked: &super::request::Asked) -> super::answer::Answer {
        let mut state = self.state();
        let State { store, tokens, .. } = &mut *state;
        let project_id = |name: &str| {
            let fq_name = ["default-domain".to_owned(), name.to_owned()];
            let kind = Kind::find("project");
            let project = kind.and_then(|kind| store.by_name(kind, &fq_name));
            project.map_or_else(String::new, |project| project.uuid.replace('-', ""))
        };
        let (users, life) = (&self.settings.users[..], self.settings.token_life);
        let directory = Directory { users, life, project_id: &project_id };
        super::keystone::respond(asked, &directory, tokens)
    }
}

impl State {
    /// Reports to watchers what has been written.
    pub(super) fn report(&mut self) {
        let changes = self.store.take_changes();
        self.watchers.report(&self.store, &changes);
    }

    /// A `PUT`, with what other writers do to it.
    ///
    /// # Errors
    /// What the API server answers.
    pub(super) fn update(
        &mut self,
        kind: &'static Kind,
        uuid: &str,
        body: Map<String, Value>,
    ) -> Result<(), Refusal> {
        const LIST: &str = "linklocal_services";
        let is_list = kind.name == GLOBAL_VROUTER_CONFIG && body.contains_key(LIST);
        let before = self.store.by_uuid(uuid).and_then(|object| object.fields().remove(LIST));
        let after = self.faults.after_write(|property| body.contains_key(property));
        self.store.update(kind, uuid, body)?;
        if let Some(written) = after {
            self.report();
            self.store.update(kind, uuid, Map::from_iter([written]))?;
        }
        if is_list && self.faults.stale_writer.happens() {
            self.report();
            let old = self.faults.stale_list.clone().or(before).unwrap_or(Value::Null);
            let old = Map::from_iter([(LIST.to_owned(), old)]);
            self.store.update(kind, uuid, old)?;
        }
        Ok(())
    }
}
