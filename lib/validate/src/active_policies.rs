//! The active policies: those that a cluster gets by default, with what the user adds or puts in
//! their place. AdmissionPolicies are read as the webhook reads them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use opensdn_admission_policy::{
    CLOSED_GROUPS, Fault, Problem, Source, bind, built_in_bytes, parse,
};
use opensdn_crds::admission_policy::AdmissionPolicy;
use opensdn_manifests::{Source as Text, read_limited};
use opensdn_policy_host::{Binding, Finding, Limits, Mode, Policy, PolicySet, Ratcheting, Scope};
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::inputs::{explain, shown};
use crate::loader::Loader;
use crate::report::PolicyId;

/// What a cluster gets, so that the defaults here are those there.
const DEFAULT: &str = include_str!("../../../deploy/webhook/policies.yaml");
const DEFAULT_NAME: &str = "deploy/webhook/policies.yaml";
/// What a cluster gets in addition in which tf-operator runs.
const TF_OPERATOR: &str = include_str!("../../../deploy/webhook/tf-operator.yaml");
const TF_OPERATOR_NAME: &str = "deploy/webhook/tf-operator.yaml";
/// What a cluster gets only where each Secret may be read whole, which the documents here are anyway.
const SECRET_KEYS: &str = include_str!("../../../deploy/webhook/secret-keys.yaml");
const SECRET_KEYS_NAME: &str = "deploy/webhook/secret-keys.yaml";
const MISSING_SECRET_KEY: &str = "missing-secret-key";

/// Who makes a running cluster of the manifests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operator {
    /// Ours.
    #[default]
    Opensdn,
    /// Upstream's, whose limits are judged too.
    TfOperator,
}

/// What the user says about policies.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyOptions {
    /// Modules (`.wasm`) and AdmissionPolicies (`.yaml`), which add or replace.
    pub(crate) policies: Vec<PathBuf>,
    /// Settings by the name of the policy.
    pub(crate) settings: Option<PathBuf>,
    /// Whose limits count.
    pub(crate) operator: Operator,
}

/// Where modules lie that are not built in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Modules {
    /// The folder used in place of the webhook's.
    folder: Option<PathBuf>,
    /// `binaryData` by namespace and name of the ConfigMap.
    config_maps: BTreeMap<(String, String), Map<String, Value>>,
}

/// The policies that judge.
pub(crate) struct ActivePolicies {
    /// To evaluate.
    pub(crate) set: PolicySet,
    /// Who they are, by the names of their bindings.
    pub(crate) ids: BTreeMap<String, PolicyId>,
}

/// Loads and binds the policies.
///
/// # Errors
/// A file cannot be read, or what it asks for cannot be bound.
pub(crate) async fn assemble(
    loader: Loader<'_>,
    options: &PolicyOptions,
) -> Result<ActivePolicies, Error> {
    let mut wanted = Wanted::default();
    wanted.add_text(&Text::new(DEFAULT_NAME, DEFAULT), None)?;
    if options.operator == Operator::TfOperator {
        wanted.add_tf_operator()?;
    }
    wanted.add_options(loader, options).await?;
    wanted.bind(loader, |binding| binding).await
}

/// The same of the user's policies alone, each as if it enforced.
///
/// # Errors
/// As [`assemble`].
pub(crate) async fn enforcing(
    loader: Loader<'_>,
    options: &PolicyOptions,
) -> Result<ActivePolicies, Error> {
    let mut wanted = Wanted::default();
    wanted.add_options(loader, options).await?;
    wanted.bind(loader, |binding| Binding { mode: Mode::Enforce, ..binding }).await
}

/// Everything that is wrong with an AdmissionPolicy among the documents, as the webhook says it at
/// `kubectl apply`; `Err` names what of it cannot be checked here.
pub(crate) async fn check(
    loader: Loader<'_>,
    object: &Value,
    modules: &Modules,
) -> Result<Vec<Finding>, String> {
    let policy: AdmissionPolicy = match serde_json::from_value(object.clone()) {
        Ok(policy) => policy,
        // What does not fit the type does not fit the schema either, which says it better.
        Err(_) => return Ok(Vec::new()),
    };
    let name = policy.metadata.name.clone().unwrap_or_default();
    let problems = match load(loader, &policy, modules).await {
        Ok((source, module)) => {
            bind(&name, &policy.spec, &source, module, limits()).err().unwrap_or_default()
        }
        Err(problems) => problems,
    };
    // Whether a module can be read is a question to the cluster.
    if let Some(one) = problems.iter().find(|one| one.fault.is_of_place()) {
        return Err(one.message.clone());
    }
    Ok(problems.into_iter().map(Problem::finding).collect())
}

async fn load(
    loader: Loader<'_>,
    policy: &AdmissionPolicy,
    modules: &Modules,
) -> Result<(Source, Policy), Vec<Problem>> {
    let (source, pinned) = parse(&policy.spec.module)?;
    let bytes = modules.read(&source).map_err(|why| {
        let hint = "give the module with --policy FILE.wasm";
        vec![Problem::new(Fault::SourceUnreachable, "/spec/module", why, hint)]
    })?;
    let loaded = loader.load(&bytes, pinned).await;
    loaded.map(|module| (source, module)).map_err(|error| vec![Problem::from(&error)])
}

impl Modules {
    /// Takes note of a ConfigMap that may hold modules.
    pub(crate) fn offer(&mut self, object: &Value) {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let data = object.get("binaryData").and_then(Value::as_object);
        if let Some(data) =
            data.filter(|_| text("/apiVersion") == "v1" && text("/kind") == "ConfigMap")
        {
            let place = (text("/metadata/namespace").to_owned(), text("/metadata/name").to_owned());
            self.config_maps.insert(place, data.clone());
        }
    }

    fn read(&self, source: &Source) -> Result<Vec<u8>, String> {
        match source {
            Source::BuiltIn(name) => {
                let bytes = built_in_bytes(name);
                bytes.map(<[u8]>::to_vec).ok_or_else(|| format!("{name} is not built in"))
            }
            Source::ConfigMap { namespace, name, key } => {
                let place = (namespace.clone(), name.clone());
                let text = self.config_maps.get(&place).and_then(|data| data.get(key)?.as_str());
                let text = text.ok_or_else(|| {
                    format!("its module is in {key:?} of the ConfigMap {namespace}/{name}, which is not among the documents")
                })?;
                let decoded = base64::engine::general_purpose::STANDARD.decode(text);
                decoded.map_err(|error| {
                    format!("{key:?} of the ConfigMap {namespace}/{name} is not base64: {error}")
                })
            }
            Source::Folder(path) => {
                let folder = self.folder.as_deref().ok_or_else(|| {
                    format!("its module {path} is a file of the webhook's container")
                })?;
                let file = folder.join(path);
                read_file(&file).map_err(|error| explain(&shown(&file), &error).0)
            }
        }
    }
}

/// The most of a file with a policy, a module or settings.
const LARGEST: u64 = 64 << 20;

/// What a policy names may be a pipe or a device, which has no end.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() || metadata.len() > LARGEST {
        return Err(io::Error::other("it is no ordinary file of at most 64 MiB"));
    }
    fs::read(path)
}

/// What is to be active under one name.
struct One {
    what: What,
    /// Settings that take the place of its own.
    settings: Option<Value>,
    /// Where it is written, for people.
    place: String,
}

enum What {
    Object { policy: Box<AdmissionPolicy>, modules: Modules },
    Module(Policy),
}

#[derive(Default)]
struct Wanted {
    policies: BTreeMap<String, One>,
}

impl Wanted {
    /// Its limits, and the key of RabbitMQ's Secret that it alone reads: of `salted_password` it makes the user.
    fn add_tf_operator(&mut self) -> Result<(), Error> {
        self.add_text(&Text::new(TF_OPERATOR_NAME, TF_OPERATOR), None)?;
        self.add_text(&Text::new(SECRET_KEYS_NAME, SECRET_KEYS), None)?;
        if let Some(one) = self.policies.get_mut(MISSING_SECRET_KEY) {
            one.settings = Some(json!({"saltedPassword": true}));
        }
        Ok(())
    }

    async fn add_options(
        &mut self,
        loader: Loader<'_>,
        options: &PolicyOptions,
    ) -> Result<(), Error> {
        for path in &options.policies {
            self.add_file(loader, path).await?;
        }
        match &options.settings {
            Some(path) => self.take_settings(path),
            None => Ok(()),
        }
    }

    async fn bind(
        self,
        loader: Loader<'_>,
        change: impl Fn(Binding) -> Binding,
    ) -> Result<ActivePolicies, Error> {
        let mut bindings = Vec::new();
        let mut ids = BTreeMap::new();
        for (name, one) in self.policies {
            let binding = change(one.bind(loader, &name).await?);
            let metadata = binding.policy.metadata();
            let (version, digest) = (metadata.version.clone(), binding.policy.digest().to_string());
            ids.insert(name.clone(), PolicyId { name, version, digest });
            bindings.push(binding);
        }
        let closed = CLOSED_GROUPS.map(str::to_owned).to_vec();
        Ok(ActivePolicies { set: PolicySet::new(bindings, closed), ids })
    }

    async fn add_file(&mut self, loader: Loader<'_>, path: &Path) -> Result<(), Error> {
        let name = shown(path);
        let bytes = read_limited(path, LARGEST).map_err(|error| unreadable(&name, &error))?;
        if bytes.starts_with(b"\0asm") {
            return self.add_module(loader, name, &bytes).await;
        }
        let folder = path.parent().map(Path::to_owned);
        self.add_text(&Text::from_bytes(name, bytes), folder)
    }

    async fn add_module(
        &mut self,
        loader: Loader<'_>,
        place: String,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let policy = loader.load(bytes, None).await.map_err(|error| {
            let hint = error.hint().unwrap_or("build it with `kubectl opensdn policy build`");
            Error::input("unusable-policy", format!("{place} is no policy"), hint).because(&error)
        })?;
        let name = policy.metadata().name.clone();
        self.policies.insert(name, One { what: What::Module(policy), settings: None, place });
        Ok(())
    }

    /// The AdmissionPolicies of a text; ConfigMaps in it may hold their modules.
    fn add_text(&mut self, text: &Text, folder: Option<PathBuf>) -> Result<(), Error> {
        let documents = read_documents(text)?;
        let mut modules = Modules { folder, ..Modules::default() };
        documents.iter().for_each(|document| modules.offer(document));
        let mut found = false;
        for document in documents {
            if document.get("kind").and_then(Value::as_str) != Some("AdmissionPolicy") {
                continue;
            }
            found = true;
            let policy: AdmissionPolicy = serde_json::from_value(document)
                .map_err(|error| malformed(text, &format!("an AdmissionPolicy: {error}")))?;
            let name = policy.metadata.name.clone().unwrap_or_default();
            let what = What::Object { policy: Box::new(policy), modules: modules.clone() };
            let place = text.name().to_owned();
            self.policies.insert(name, One { what, settings: None, place });
        }
        if found { Ok(()) } else { Err(malformed(text, "no AdmissionPolicy in it")) }
    }

    fn take_settings(&mut self, path: &Path) -> Result<(), Error> {
        let name = shown(path);
        let bytes = read_limited(path, LARGEST).map_err(|error| unreadable(&name, &error))?;
        let text = Text::from_bytes(name, bytes);
        for document in read_documents(&text)? {
            for (name, settings) in document.as_object().into_iter().flatten() {
                let Some(one) = self.policies.get_mut(name) else {
                    let names: Vec<&str> = self.policies.keys().map(String::as_str).collect();
                    let message = format!("{}: there is no policy {name}", text.name());
                    let hint = format!("the policies are {}", names.join(", "));
                    return Err(Error::input("unknown-policy", message, hint));
                };
                one.settings = Some(settings.clone());
                one.place = text.name().to_owned();
            }
        }
        Ok(())
    }
}

impl One {
    async fn bind(self, loader: Loader<'_>, name: &str) -> Result<Binding, Error> {
        let Self { what, settings, place } = self;
        let refused = |problems: &[String]| {
            let message = format!("the policy {name} of {place} cannot be used");
            let mut error = Error::input("unusable-policy", message, "");
            error.causes = problems.to_vec();
            error
        };
        match what {
            What::Object { mut policy, modules } => {
                if let Some(settings) = settings {
                    let map = settings.as_object().cloned();
                    let map = map.ok_or_else(|| refused(&["settings are a mapping".to_owned()]))?;
                    policy.spec.settings = Some(map);
                }
                let loaded = load(loader, &policy, &modules).await;
                let bound = loaded.and_then(|(source, module)| {
                    bind(name, &policy.spec, &source, module, limits())
                });
                bound.map_err(|problems| {
                    refused(&problems.iter().map(Problem::text).collect::<Vec<_>>())
                })
            }
            What::Module(policy) => {
                let settings = settings.unwrap_or_else(|| Value::Object(Map::new()));
                let problems = policy.check_settings(&settings);
                if !problems.is_empty() {
                    return Err(refused(&problems));
                }
                Ok(Binding {
                    name: name.to_owned(),
                    policy,
                    settings: settings.to_string(),
                    mode: Mode::Enforce,
                    failure_mode: None,
                    ratcheting: Ratcheting::Enabled,
                    scope: Scope::default(),
                    limits: limits(),
                })
            }
        }
    }
}

/// No API server is waiting, and a busy laptop must not turn a verdict into a failure.
fn limits() -> Limits {
    let default = Limits::default();
    Limits { time: default.time * 20, ..default }
}

fn read_documents(text: &Text) -> Result<Vec<Value>, Error> {
    let parsed = opensdn_manifests::read(text);
    if let Some(problem) = parsed.problems.first() {
        let line = problem.span.map(|span| text.position(span.start).line);
        let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        return Err(malformed(text, &format!("{line}{}", problem.message)));
    }
    Ok(parsed.documents.into_iter().map(|document| document.value).collect())
}

fn malformed(text: &Text, why: &str) -> Error {
    let message = format!("{} cannot be used: {why}", text.name());
    Error::input("unreadable-file", message, "")
}

fn unreadable(name: &str, error: &std::io::Error) -> Error {
    let (message, hint) = explain(name, error);
    Error::input("unreadable-file", message, hint)
}
