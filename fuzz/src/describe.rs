//! The host's reading of what a module says of itself. The input is the guest's memory from the
//! address 1000 on, where the metadata begin; so it holds the pointers and lengths of everything in
//! them. Whatever the bytes, the module is refused or within every bound, in time, and what it
//! declared can be put in force.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use opensdn_policy_build::component_of;
use opensdn_policy_host::{
    Binding, Digest, Engine, Limits, LoadError, MAX_INDEXES, MAX_INTERESTS, MAX_MESSAGES,
    MAX_NAME_BYTES, MAX_POINTER_BYTES, MAX_POINTER_SEGMENTS, MAX_READS, MAX_SCHEMA_BYTES, Metadata,
    Mode, Policy, PolicySet, Ratcheting, Scope, scan,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{SetUpError, Signature, Target, Violation, host, require};

/// Above this nothing of the guest stands.
const LONGEST: usize = 5000;
/// A byte that stands so often nowhere else in the component.
const MARK: u8 = 0xA5;
/// To describe itself and be checked, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A policy that says of itself what the input says.
pub struct Describe {
    runtime: Runtime,
    engine: Engine,
    component: Vec<u8>,
    /// Where the input is in it.
    at: usize,
}

impl Describe {
    /// Makes the guest.
    ///
    /// # Errors
    /// The runtime or the engine does not start, or the guest cannot be built.
    pub fn new() -> Result<Self, SetUpError> {
        let (runtime, engine) = host(Self::NAME)?;
        let component = guest().map_err(SetUpError::at(Self::NAME, "build the guest"))?;
        let at = component
            .windows(LONGEST)
            .position(|window| window.iter().all(|byte| *byte == MARK))
            .ok_or("its place is not in the component")
            .map_err(SetUpError::at(Self::NAME, "find the place of the input"))?;
        Ok(Self { runtime, engine, component, at })
    }

    fn load(&self, input: &[u8]) -> Result<Policy, LoadError> {
        let input = input.get(..LONGEST).unwrap_or(input);
        let padding = std::iter::repeat_n(0, LONGEST - input.len());
        let mut component = self.component.clone();
        component.splice(self.at..self.at + LONGEST, input.iter().copied().chain(padding));
        let pinned = Some(Digest::of(&component));
        self.runtime.block_on(Policy::load(&self.engine, &component, pinned, None))
    }
}

impl Target for Describe {
    const NAME: &'static str = "describe";

    fn check(&self, input: &[u8]) -> Result<Signature, Violation> {
        let started = Instant::now();
        let loaded = self.load(input);
        let signature = match &loaded {
            Ok(policy) => {
                within_bounds(policy.metadata())?;
                format!("loaded {} {}", settings(policy)?, put_in_force(policy)?)
            }
            Err(error) => refusal(error)?,
        };
        let took = started.elapsed();
        require(took < TIMEOUT, || format!("an answer after {took:?}"))?;
        Ok(signature)
    }
}

fn within_bounds(metadata: &Metadata) -> Result<(), Violation> {
    let Metadata { name, version, interests, indexes, messages, .. } = metadata;
    let reads = interests.iter().flat_map(|one| &one.reads);
    let reads: Vec<&String> = reads.chain(indexes.iter().flat_map(|index| &index.reads)).collect();
    let schema = metadata.settings_schema.to_string();
    // Written again it may be longer by its escapes.
    let schema_fits = schema.len() <= 6 * MAX_SCHEMA_BYTES;
    let few = interests.len() <= MAX_INTERESTS
        && indexes.len() <= MAX_INDEXES
        && messages.len() <= MAX_MESSAGES
        && reads.len() <= MAX_READS;
    require(few && schema_fits, || format!("too much: {metadata:?}"))?;
    let keys = indexes.iter().map(|index| &index.key);
    for pointer in reads.into_iter().chain(keys) {
        let fits = pointer.len() <= MAX_POINTER_BYTES
            && pointer.matches('/').count() <= MAX_POINTER_SEGMENTS
            && (pointer.is_empty() || pointer.starts_with('/'));
        require(fits, || format!("a pointer {pointer:?}"))?;
    }
    let codes = messages.iter().map(|message| &message.code);
    let about = interests.iter().flat_map(|one| [&one.group, &one.kind]);
    let looked_up = indexes.iter().flat_map(|one| [&one.name, &one.group, &one.kind]);
    for text in codes.chain(about).chain(looked_up).chain([name, version]) {
        require(text.len() <= MAX_NAME_BYTES, || format!("a name {text:?}"))?;
    }
    Ok(())
}

/// How many of these its schema takes.
fn settings(policy: &Policy) -> Result<usize, Violation> {
    let deep = (0..100).fold(json!(1), |inner, _| json!({ "a": [inner] }));
    let samples: [Value; 4] = [json!({}), json!({"a": 1, "b": ["x", null]}), deep, json!("x")];
    let mut taken = 0;
    for sample in samples {
        let said = policy.check_settings(&sample);
        require(said.iter().map(String::len).sum::<usize>() < 64 << 10, || {
            format!("too many words: {said:?}")
        })?;
        taken += usize::from(said.is_empty());
    }
    Ok(taken)
}

fn put_in_force(policy: &Policy) -> Result<usize, Violation> {
    let binding = |name: &str| Binding {
        name: name.to_owned(),
        policy: policy.clone(),
        settings: "{}".to_owned(),
        mode: Mode::Enforce,
        failure_mode: None,
        scope: Scope::default(),
        limits: Limits::default(),
        ratcheting: Ratcheting::Enabled,
    };
    let set = PolicySet::new(vec![binding("one"), binding("other")], vec![String::new()]);
    let mut paths = scan::Paths::new();
    let mount = paths.mount("/object", set.paths());
    let review = br#"{"object":{"spec":{"a":[1,{"b":2}]}}}"#;
    let found = scan::scan(review, &paths)
        .map_err(|error| Violation(format!("the object of the request: {error}")))?;
    require(found.document(&mount).is_some(), || "the object is not found".to_owned())?;
    Ok(set.bindings().count())
}

/// Numbers and quoted texts come from the input and do not identify the path.
fn refusal(error: &LoadError) -> Result<Signature, Violation> {
    let mut text = String::new();
    let mut cause: Option<&dyn Error> = Some(error);
    while let Some(one) = cause {
        text.push_str(&format!("{one}: "));
        cause = one.source();
    }
    require(!matches!(error, LoadError::Digest { .. } | LoadError::Compile(_)), || {
        format!("the guest itself is broken: {text}")
    })?;
    // A message of wasmtime or of the validator is not ours to bound; what we quote is.
    require(text.len() < 4 << 10, || format!("{} bytes of reason", text.len()))?;
    let text: String = text.chars().filter(|one| !one.is_ascii_digit()).take(200).collect();
    Ok(text.split('"').step_by(2).collect())
}

fn guest() -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
    let marks = format!("\\{MARK:02x}").repeat(LONGEST);
    let text = include_str!("describe/guest.wat").replace("INPUT", &marks);
    Ok(component_of(&wat::parse_str(text)?)?)
}
