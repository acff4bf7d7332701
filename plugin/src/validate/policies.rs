//! Which policies are in force: those that a cluster gets by default, with what the user adds or
//! puts in their place. AdmissionPolicies are read as the webhook reads them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use opensdn_admission_policy::{
    CLOSED_GROUPS, Fault, Problem, Source, bind, built_in_bytes, parse,
};
use opensdn_crds::admission_policy::AdmissionPolicy;
use opensdn_manifests::Source as Text;
use opensdn_policy_host::{Binding, Finding, Limits, Mode, Policy, PolicySet, Scope};
use serde_json::{Map, Value};

use super::inputs::{explain, shown};
use crate::exit::{Exit, Failure};
use crate::report::PolicyId;
use crate::runtime::Runtime;

/// What a cluster gets, so that the defaults here are those there.
const DEFAULT: &str = include_str!("../../../deploy/webhook/policies.yaml");
const DEFAULT_NAME: &str = "deploy/webhook/policies.yaml";

/// What the user says about policies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    /// Modules (`.wasm`) and AdmissionPolicies (`.yaml`), which add or replace.
    pub(crate) policies: Vec<PathBuf>,
    /// Settings by the name of the policy.
    pub(crate) settings: Option<PathBuf>,
}

/// Where modules lie that are not built in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Modules {
    /// The folder that stands for the webhook's.
    folder: Option<PathBuf>,
    /// `binaryData` by namespace and name of the ConfigMap.
    config_maps: BTreeMap<(String, String), Map<String, Value>>,
}

/// The policies in force.
pub(crate) struct InForce {
    /// To evaluate.
    pub(crate) set: PolicySet,
    /// Who they are, by the names of their bindings.
    pub(crate) ids: BTreeMap<String, PolicyId>,
}

/// Puts the policies in force.
///
/// # Errors
/// A file cannot be read, or what it asks for cannot be put in force.
pub(crate) fn assemble(runtime: &Runtime, choice: &Choice) -> Result<InForce, Failure> {
    let mut wanted = Wanted::default();
    wanted.add_text(runtime, &Text::new(DEFAULT_NAME, DEFAULT), None)?;
    for path in &choice.policies {
        wanted.add_file(runtime, path)?;
    }
    if let Some(path) = &choice.settings {
        wanted.take_settings(path)?;
    }
    let mut bindings = Vec::new();
    let mut ids = BTreeMap::new();
    for (name, one) in wanted.policies {
        let binding = one.bind(runtime, &name)?;
        let metadata = binding.policy.metadata();
        let (version, digest) = (metadata.version.clone(), binding.policy.digest().to_string());
        ids.insert(name.clone(), PolicyId { name, version, digest });
        bindings.push(binding);
    }
    let closed = CLOSED_GROUPS.map(str::to_owned).to_vec();
    Ok(InForce { set: PolicySet::new(bindings, closed), ids })
}

/// Everything that is wrong with an AdmissionPolicy among the documents, as the webhook says it at
/// `kubectl apply`; `Err` names what of it cannot be told here.
pub(crate) fn check(
    runtime: &Runtime,
    object: &Value,
    modules: &Modules,
) -> Result<Result<Vec<Finding>, String>, Failure> {
    let policy: AdmissionPolicy = match serde_json::from_value(object.clone()) {
        Ok(policy) => policy,
        // What does not fit the type does not fit the schema either, which says it better.
        Err(_) => return Ok(Ok(Vec::new())),
    };
    let name = policy.metadata.name.clone().unwrap_or_default();
    let problems = match load(runtime, &policy, modules)? {
        Ok((source, module)) => {
            bind(&name, &policy.spec, &source, module, limits()).err().unwrap_or_default()
        }
        Err(problems) => problems,
    };
    // Whether a module can be read is a question to the cluster.
    if let Some(one) = problems.iter().find(|one| one.fault == Fault::SourceUnreachable) {
        return Ok(Err(one.message.clone()));
    }
    Ok(Ok(problems.into_iter().map(Problem::finding).collect()))
}

type Loaded = Result<(Source, Policy), Vec<Problem>>;

fn load(runtime: &Runtime, policy: &AdmissionPolicy, modules: &Modules) -> Result<Loaded, Failure> {
    let (source, pinned) = match parse(&policy.spec.module) {
        Ok(parsed) => parsed,
        Err(problems) => return Ok(Err(problems)),
    };
    let bytes = match modules.read(&source) {
        Ok(bytes) => bytes,
        Err(why) => {
            let hint = "give the module with --policy FILE.wasm";
            let problem = Problem::new(Fault::SourceUnreachable, "/spec/module", why, hint);
            return Ok(Err(vec![problem]));
        }
    };
    let loaded = runtime.load(&bytes, pinned)?;
    Ok(loaded.map(|module| (source, module)).map_err(|error| vec![Problem::from(&error)]))
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
                fs::read(&file).map_err(|error| explain(&shown(&file), &error).0)
            }
        }
    }
}

/// What is to be put in force under one name.
struct One {
    what: What,
    /// Settings that take the place of its own.
    settings: Option<Value>,
    /// Where it stands, for people.
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
    fn add_file(&mut self, runtime: &Runtime, path: &Path) -> Result<(), Failure> {
        let name = shown(path);
        let bytes = fs::read(path).map_err(|error| unreadable(&name, &error))?;
        if bytes.starts_with(b"\0asm") {
            return self.add_module(runtime, name, &bytes);
        }
        let folder = path.parent().map(Path::to_owned);
        self.add_text(runtime, &Text::from_bytes(name, bytes), folder)
    }

    fn add_module(
        &mut self,
        runtime: &Runtime,
        place: String,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let policy = runtime.load(bytes, None)?.map_err(|error| {
            let hint = "build it with `kubectl opensdn policy build`";
            Failure::new(Exit::Usage, "unusable-policy", format!("{place} is no policy"), hint)
                .because(&error)
        })?;
        let name = policy.metadata().name.clone();
        self.policies.insert(name, One { what: What::Module(policy), settings: None, place });
        Ok(())
    }

    /// The AdmissionPolicies of a text; ConfigMaps in it may hold their modules.
    fn add_text(
        &mut self,
        _runtime: &Runtime,
        text: &Text,
        folder: Option<PathBuf>,
    ) -> Result<(), Failure> {
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

    fn take_settings(&mut self, path: &Path) -> Result<(), Failure> {
        let name = shown(path);
        let bytes = fs::read(path).map_err(|error| unreadable(&name, &error))?;
        let text = Text::from_bytes(name, bytes);
        for document in read_documents(&text)? {
            for (name, settings) in document.as_object().into_iter().flatten() {
                let Some(one) = self.policies.get_mut(name) else {
                    let names: Vec<&str> = self.policies.keys().map(String::as_str).collect();
                    let message = format!("{}: there is no policy {name}", text.name());
                    let hint = format!("the policies are {}", names.join(", "));
                    return Err(Failure::new(Exit::Usage, "unknown-policy", message, hint));
                };
                one.settings = Some(settings.clone());
                one.place = text.name().to_owned();
            }
        }
        Ok(())
    }
}

impl One {
    fn bind(self, runtime: &Runtime, name: &str) -> Result<Binding, Failure> {
        let Self { what, settings, place } = self;
        let refused = |problems: &[String]| {
            let message = format!("the policy {name} of {place} cannot be put in force");
            let mut failure = Failure::new(Exit::Usage, "unusable-policy", message, "");
            failure.causes = problems.to_vec();
            failure
        };
        match what {
            What::Object { mut policy, modules } => {
                if let Some(settings) = settings {
                    let map = settings.as_object().cloned();
                    let map = map.ok_or_else(|| refused(&["settings are a mapping".to_owned()]))?;
                    policy.spec.settings = Some(map);
                }
                let bound = load(runtime, &policy, &modules)?.and_then(|(source, module)| {
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
                    scope: Scope::default(),
                    limits: limits(),
                })
            }
        }
    }
}

/// Nobody waits at an API server, and a busy laptop must not turn a verdict into a failure.
fn limits() -> Limits {
    let default = Limits::default();
    Limits { time: default.time * 20, ..default }
}

fn read_documents(text: &Text) -> Result<Vec<Value>, Failure> {
    let parsed = opensdn_manifests::read(text);
    if let Some(problem) = parsed.problems.first() {
        let line = problem.span.map(|span| text.position(span.start).line);
        let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        return Err(malformed(text, &format!("{line}{}", problem.message)));
    }
    Ok(parsed.documents.into_iter().map(|document| document.value).collect())
}

fn malformed(text: &Text, why: &str) -> Failure {
    let message = format!("{} cannot be used: {why}", text.name());
    Failure::new(Exit::Usage, "unreadable-file", message, "")
}

fn unreadable(name: &str, error: &std::io::Error) -> Failure {
    let (message, hint) = explain(name, error);
    Failure::new(Exit::Usage, "unreadable-file", message, hint)
}
