//! The webhook's reading of an AdmissionReview. Whatever the body is, the answer is a review that
//! the API server takes, and nothing is allowed that another parser could read differently.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use opensdn_policy_host::{
    Binding, Cache, Claim, Finding, Limits, MAX_QUOTED_BYTES, Mode, Policy, PolicySet, Ratcheting,
    Scope, Step,
    lookup::{Documents, Lookup},
    scan::{Paths, scan},
};
use opensdn_webhook::{
    active::ActivePolicies,
    admission::{Admission, Claimed, Labels, Purpose, ReviewBackend},
    claims::Holder,
    metrics::Metrics,
    server::{Call, Reviewer as _},
};
use serde_json::Value;
use tokio::{runtime::Runtime, time::Instant};

use crate::{SetUpError, Signature, Target, Violation, host, require};

/// Where the scan is held against `serde_json`.
const POINTERS: &[&str] = &[
    "",
    "/a",
    "/a/0",
    "/a/1/b",
    "/request",
    "/request/uid",
    "/request/object",
    "/request/object/metadata/name",
    "/request/object/spec/serviceConfiguration",
    "/request/oldObject",
    "/request/userInfo/groups/0",
];

/// The webhook's review, with one policy that validates and one that mutates in force.
pub struct Review {
    runtime: Runtime,
    admission: Admission<Quiet>,
}

/// A cluster in which nothing is and every claim is free.
struct Quiet;

impl ReviewBackend for Quiet {
    async fn claim(
        &self,
        _: Holder,
        _: Vec<Claim>,
        _: Vec<Claim>,
        _: Purpose,
        _: Instant,
    ) -> Claimed {
        Claimed::default()
    }

    async fn check_policy(&self, _: &str) -> Vec<Finding> {
        Vec::new()
    }

    fn namespace_labels(&self, _: &str) -> Option<Arc<Labels>> {
        None
    }

    fn lookup(&self) -> Arc<dyn Lookup> {
        Arc::new(Documents::default())
    }
}

impl Review {
    /// Loads the policies.
    ///
    /// # Errors
    /// The runtime or the engine does not start, or a built-in policy does not load.
    pub fn new() -> Result<Self, SetUpError> {
        let (runtime, engine) = host(Self::NAME)?;
        let cache = Cache::of_user().map_err(SetUpError::at(Self::NAME, "open the cache"))?;
        let mut bindings = Vec::new();
        for built_in in opensdn_policies::ALL
            .iter()
            .filter(|one| ["plaintext", "explicit-defaults"].contains(&one.name))
        {
            let policy = runtime
                .block_on(Policy::load(&engine, built_in.bytes, None, cache.as_ref()))
                .map_err(SetUpError::at(Self::NAME, "load a policy"))?;
            bindings.push(Binding {
                name: built_in.name.to_owned(),
                policy,
                settings: "{}".to_owned(),
                mode: Mode::Enforce,
                failure_mode: None,
                ratcheting: Ratcheting::Enabled,
                scope: Scope::default(),
                limits: Limits { time: Duration::from_secs(2), ..Limits::default() },
            });
        }
        let metrics = Metrics::new();
        let serving = Arc::new(ActivePolicies::new(metrics.clone()));
        serving.swap(PolicySet::new(bindings, vec!["tf.tungsten.io".to_owned()]));
        Ok(Self { runtime, admission: Admission::new(serving, Quiet, metrics) })
    }

    fn answer(&self, step: Step, input: &[u8]) -> Result<Answer, Violation> {
        let deadline = Instant::now() + Duration::from_secs(10);
        let call = Call { step, body: input.to_vec().into(), deadline };
        let bytes = self.runtime.block_on(self.admission.review(call));
        Answer::read(&bytes, step)
    }
}

impl Target for Review {
    const NAME: &'static str = "review";

    fn check(&self, input: &[u8]) -> Result<Signature, Violation> {
        let parsed = serde_json::from_slice::<Value>(input);
        let accepted = agrees(input, &parsed)?;
        let validated = self.answer(Step::Validate, input)?;
        validated.fits(accepted, &parsed)?;
        if !accepted {
            return Ok(validated.signature());
        }
        let mutated = self.answer(Step::Mutate, input)?;
        mutated.fits(accepted, &parsed)?;
        Ok(format!("{} | {}", validated.signature(), mutated.signature()))
    }
}

/// Whether the scan takes the text. If so, `serde_json` takes it and has the same parts.
fn agrees(input: &[u8], parsed: &serde_json::Result<Value>) -> Result<bool, Violation> {
    let mut paths = Paths::new();
    let slots: Vec<_> = POINTERS.iter().map(|pointer| paths.want(pointer)).collect();
    let Ok(found) = scan(input, &paths) else { return Ok(false) };
    let whole = match parsed {
        Ok(whole) => whole,
        // Its limit of 128 levels is not JSON's; ours is higher.
        Err(error) if error.to_string().starts_with("recursion limit") => return Ok(true),
        Err(error) => {
            return Err(Violation(format!("the scan takes what serde_json refuses: {error}")));
        }
    };
    for (pointer, slot) in POINTERS.iter().zip(slots) {
        let ours = found.get(slot).map(serde_json::from_str::<Value>).transpose();
        let ours = ours.map_err(|error| Violation(format!("the part {pointer:?}: {error}")))?;
        require(ours.as_ref() == whole.pointer(pointer), || {
            format!("the part {pointer:?}: {ours:?} and {:?}", whole.pointer(pointer))
        })?;
    }
    Ok(true)
}

/// A well-formed answer.
struct Answer {
    uid: String,
    allowed: bool,
    patched: bool,
    message: String,
}

impl Answer {
    fn read(bytes: &[u8], step: Step) -> Result<Self, Violation> {
        let answer: Value = serde_json::from_slice(bytes)
            .map_err(|error| Violation(format!("the answer is not JSON: {error}")))?;
        let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str);
        let wrong = || Violation(format!("the answer is no review: {answer}"));
        let envelope = (text("/apiVersion"), text("/kind"));
        require(envelope == (Some("admission.k8s.io/v1"), Some("AdmissionReview")), || wrong().0)?;
        let allowed = answer.pointer("/response/allowed").and_then(Value::as_bool);
        let allowed = allowed.ok_or_else(wrong)?;
        let uid = text("/response/uid").ok_or_else(wrong)?.to_owned();
        let message = text("/response/status/message").unwrap_or_default().to_owned();
        require(allowed || !message.is_empty(), || format!("no reason for a denial: {answer}"))?;
        let code = answer.pointer("/response/status/code").and_then(Value::as_u64);
        let known = matches!(code, Some(400 | 403 | 413 | 500));
        require(allowed || known, || format!("no status code for a denial: {answer}"))?;
        let patch = answer.pointer("/response/patch");
        if let Some(patch) = patch {
            require(step == Step::Mutate && allowed, || format!("a patch here: {answer}"))?;
            require(text("/response/patchType") == Some("JSONPatch"), || wrong().0)?;
            require(is_patch(patch), || format!("a patch that is none: {answer}"))?;
        }
        Ok(Self { uid, allowed, patched: patch.is_some(), message })
    }

    fn fits(&self, accepted: bool, parsed: &serde_json::Result<Value>) -> Result<(), Violation> {
        require(accepted || !self.allowed, || "unreadable, and allowed".to_owned())?;
        let uid = parsed.as_ref().ok().and_then(|body| body.pointer("/request/uid")?.as_str());
        match uid {
            // No API server makes a longer one, and no more of a text is repeated.
            Some(uid) if accepted && uid.len() <= MAX_QUOTED_BYTES => {
                require(self.uid == uid, || format!("uid {:?} for {uid:?}", self.uid))
            }
            _ => Ok(()),
        }
    }

    /// Numbers and quoted texts come from the input and do not identify the path.
    fn signature(&self) -> Signature {
        let text: String = self.message.chars().filter(|c| !c.is_ascii_digit()).take(120).collect();
        let unquoted: String = text.split('"').step_by(2).collect();
        format!("{} {} {unquoted}", self.allowed, self.patched)
    }
}

fn is_patch(encoded: &Value) -> bool {
    let bytes = encoded.as_str().and_then(|text| STANDARD.decode(text).ok());
    bytes.is_some_and(|bytes| serde_json::from_slice::<json_patch::Patch>(&bytes).is_ok())
}
