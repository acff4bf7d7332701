//! What is applied for an object, given what is around it.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use k8s_openapi::ByteString;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_crds::component::Component;
use opensdn_operator::build::{Intent, Secrets, build};
use opensdn_operator::cache::{Cache, Feed};
use opensdn_operator::component::{ComponentKind, word};
use opensdn_operator::components::{of_kind, profiles, templates};
use opensdn_operator::kind::{Kind, Source};
use opensdn_operator::names::Instance;
use opensdn_operator::reconcile::fetch::Fetched;
use opensdn_operator::reconcile::nested::secrets::{Stored, own};
use opensdn_operator::reconcile::nested::{self, Described};
use opensdn_operator::reconcile::status::{Outcome, status};
use opensdn_operator::reconcile::validate::validate;
use opensdn_operator::template::Templates;
use opensdn_runtime::watch::Event;
use serde_json::Value;

/// What comes of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    /// All that is applied.
    Built(Vec<Value>),
    /// What is said of it.
    Refused(String),
}

/// An object, and what is around it.
pub(crate) struct ClusterState {
    pub(crate) object: Value,
    pub(crate) others: Vec<Value>,
}

static TEMPLATES: LazyLock<Templates> = LazyLock::new(|| Templates::new(templates()).unwrap());

impl ClusterState {
    /// The documents of a file, of which the first is the object.
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        Self::of(documents)
    }

    pub(crate) fn of(documents: Vec<Value>) -> Self {
        let mut documents = documents.into_iter();
        let object = documents.next().unwrap();
        Self { object, others: documents.collect() }
    }

    /// The same with one node, where all are alike.
    #[allow(dead_code, reason = "each test has the part of this file that it needs")]
    pub(crate) fn on_one_node(mut self) -> Self {
        let mut nodes = 0;
        self.others.retain(|document| {
            nodes += usize::from(document["kind"] == "Node");
            document["kind"] != "Node" || nodes == 1
        });
        self
    }

    /// What is applied for it, as it is compared, or why nothing is.
    #[allow(dead_code, reason = "each test has the part of this file that it needs")]
    pub(crate) fn built(&self, object: &Value) -> Ended {
        match self.intents(object) {
            Ok(intents) => Ended::Built(
                intents.iter().map(|one| serde_json::to_value(&one.object).unwrap()).collect(),
            ),
            Err(message) => Ended::Refused(message),
        }
    }

    /// What its status says when it is applied, or why nothing is.
    #[allow(dead_code, reason = "each test has the part of this file that it needs")]
    pub(crate) fn status(&self, object: &Value) -> Result<Value, String> {
        self.made(object).map(|(_, status)| status)
    }

    /// One more object is around.
    #[allow(dead_code, reason = "each test has the part of this file that it needs")]
    pub(crate) fn with(mut self, other: Value) -> Self {
        self.others.push(other);
        self
    }

    /// The object with what is around it.
    fn fetched(&self, object: &Value) -> (DynamicObject, Fetched, &'static dyn ComponentKind) {
        let cache = Cache::default();
        for document in self.others.iter().chain([object]) {
            let kind = document["kind"].as_str().unwrap();
            let text = |key: &str| document["metadata"][key].as_str().unwrap_or_default();
            let fact = Source::of(kind, text("namespace"), text("name")).map(Kind::Fact);
            let component = || Component::of_kind(kind).map(|facts| Kind::Component(facts.kind));
            let profile = || profiles().find(|one| one.kind == kind).map(Kind::Profile);
            let manager = || (kind == Kind::Manager.name()).then_some(Kind::Manager);
            let known = fact.or_else(|| Kind::named(kind)).or_else(component);
            let kind = known.or_else(profile).or_else(manager).unwrap();
            Feed::new(kind, "").take(&cache, Event::Apply(document.clone()));
        }
        let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        let kind = &object.types.as_ref().unwrap().kind;
        let component = of_kind(kind).unwrap();
        let instance = Instance { word: word(component.facts()), name: object.name_any() };
        let fetched = Fetched::read(&cache, Arc::new(object.clone()), &instance);
        (object, fetched, component)
    }

    /// What is applied for it in a nested cluster, with the Secrets that are around it.
    fn nested(&self, object: &DynamicObject, nested: &Described) -> Result<Vec<Intent>, String> {
        let secrets = self.others.iter().filter(|one| one["kind"] == "Secret");
        let secrets = secrets.map(|one| serde_json::from_value(one.clone()).unwrap());
        let own = own(nested, &Stored::of(secrets));
        let built = own.and_then(|own| nested::objects::build(object, nested, &own, None));
        let built = built.map_err(|error| opensdn_runtime::error_chain(&error))?;
        Ok(built.settings.into_iter().chain([built.cni_agent, built.kube_manager]).collect())
    }

    /// What is applied for it, or why nothing is.
    pub(crate) fn intents(&self, object: &Value) -> Result<Vec<Intent>, String> {
        self.made(object).map(|(intents, _)| intents)
    }

    /// What is applied for it, and what its status says then, or why nothing is.
    pub(crate) fn made(&self, object: &Value) -> Result<(Vec<Intent>, Value), String> {
        let now = "2026-11-24T00:00:00Z";
        let (object, fetched, component) = self.fetched(object);
        let nested = nested::described(component, &fetched).map_err(|invalid| invalid.message)?;
        if let Some(nested) = nested {
            let intents = self.nested(&object, &nested)?;
            let ended = nested::status::Ended::Applied;
            let status = nested::status::status(&fetched, &nested, ended, now);
            return Ok((intents, serde_json::to_value(status).unwrap()));
        }
        let valid = validate(component, &fetched).map_err(|invalid| invalid.message)?;
        let keys = valid.addresses.iter().flat_map(|address| {
            [
                format!("client-{address}.crt"),
                format!("client-key-{address}.pem"),
                format!("server-{address}.crt"),
                format!("server-key-{address}.pem"),
            ]
        });
        let certificates = vec![keys.map(|key| (key, ByteString(Vec::new()))).collect()];
        // What is given is known; what is random is not compared.
        let passwords = valid.description.passwords.iter().map(|one| {
            let given = one.given.clone().unwrap_or_default();
            (one.key.to_owned(), ByteString(given.into_bytes()))
        });
        let secrets = Secrets { certificates, passwords: passwords.collect() };
        let built = build(&TEMPLATES, &object, &valid, secrets);
        let intents = built.map_err(|error| opensdn_runtime::error_chain(&error))?;
        let status = status(&fetched, Outcome::Applied(&valid), now);
        Ok((intents, serde_json::to_value(status).unwrap()))
    }
}
