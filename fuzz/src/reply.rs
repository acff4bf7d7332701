//! The host's reading of what a policy returns. The input is the guest's memory from the address
//! 2000 on, where the result of `validate` and of `mutate` begins; so it holds the pointers and
//! lengths of everything else. Whatever the bytes, the evaluation ends as a value, in time, and
//! the host has copied no more than it may.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use opensdn_policy_build::component_of;
use opensdn_policy_host::{
    Binding, Cache, Context, Limits, Mode, Mutation, Operation, Policy, PolicySet, Ratcheting,
    Request, Scope, Verdict, apply, lookup::NoLookup, scan,
};
use serde_json::Value;
use tokio::{runtime::Runtime, time::Instant};

use crate::{SetUpError, Signature, Target, Violation, host, require};

const OBJECT: &str = r#"{"spec":{"a":[1,{"b":2}]}}"#;
/// Above this the guest's own arguments begin.
const LONGEST: usize = 6000;
const LIMITS: Limits = Limits { memory: 1 << 20, time: Duration::from_secs(1), reply: 64 << 10 };
/// What a busy machine may add to the time limit before we call it broken.
const GRACE: Duration = Duration::from_secs(10);

/// A policy that answers with the input.
pub struct Reply {
    runtime: Runtime,
    policy: Policy,
}

impl Reply {
    /// Makes and loads the guest.
    ///
    /// # Errors
    /// The runtime or the engine does not start, or the guest does not load.
    pub fn new() -> Result<Self, SetUpError> {
        let (runtime, engine) = host(Self::NAME)?;
        let bytes = guest().map_err(SetUpError::at(Self::NAME, "build the guest"))?;
        let cache = Cache::of_user().map_err(SetUpError::at(Self::NAME, "open the cache"))?;
        let policy = runtime
            .block_on(Policy::load(&engine, &bytes, None, cache.as_ref()))
            .map_err(SetUpError::at(Self::NAME, "load the guest"))?;
        Ok(Self { runtime, policy })
    }

    fn answers(&self, input: &[u8]) -> Result<(Verdict, Mutation), Violation> {
        let binding = Binding {
            name: "echo".to_owned(),
            policy: self.policy.clone(),
            settings: hexadecimal(input),
            mode: Mode::Enforce,
            failure_mode: None,
            ratcheting: Ratcheting::Enabled,
            scope: Scope::default(),
            limits: LIMITS,
        };
        let set = PolicySet::new(vec![binding], vec![String::new()]);
        let mut paths = scan::Paths::new();
        let mount = paths.mount("", set.paths());
        let found = scan::scan(OBJECT.as_bytes(), &paths)
            .map_err(|error| Violation(format!("the object of the request: {error}")))?;
        let request = Request {
            operation: Operation::Create,
            group: "",
            version: "v1",
            kind: "Thing",
            subresource: "",
            name: "x",
            namespace: "n",
            namespace_labels: None,
            user: "jane",
            groups: &[],
            dry_run: false,
            object: found.document(&mount),
            old_object: None,
        };
        Ok(self.runtime.block_on(async {
            let deadline = Instant::now() + 2 * LIMITS.time;
            let context = Context { lookup: Arc::new(NoLookup), deadline, is_background: false };
            (set.evaluate(&request, &context).await, set.mutate(&request, &context).await)
        }))
    }
}

impl Target for Reply {
    const NAME: &'static str = "reply";

    fn check(&self, input: &[u8]) -> Result<Signature, Violation> {
        let started = Instant::now();
        let (verdict, mutation) = self.answers(input.get(..LONGEST).unwrap_or(input))?;
        let took = started.elapsed();
        require(took < 2 * LIMITS.time + GRACE, || format!("an answer after {took:?}"))?;
        Ok(format!("{} | {}", of_verdict(&verdict)?, of_mutation(&mutation)?))
    }
}

fn of_verdict(verdict: &Verdict) -> Result<Signature, Violation> {
    require(verdict.evaluations.len() == 1, || format!("not one evaluation: {verdict:?}"))?;
    let Verdict { findings, claims, failures, .. } = verdict;
    if let Some(failure) = failures.first() {
        require(verdict.denies(), || format!("a failure that passes: {failure:?}"))?;
        let silent = findings.is_empty() && claims.is_empty();
        require(silent, || format!("a failure that speaks: {verdict:?}"))?;
        return Ok(signature(failure.reason.category(), &failure.reason.to_string()));
    }
    let found = findings
        .iter()
        .map(|one| one.code.len() + one.pointer.len() + one.message.len() + one.hint.len());
    let claimed = claims
        .iter()
        .map(|one| one.scope.len() + one.key.len() + one.pointer.len() + one.code.len());
    let size = found.chain(claimed).sum::<usize>();
    require(size <= LIMITS.reply, || format!("{size} bytes were copied"))?;
    let mut codes = findings.iter().map(|one| &one.code).chain(claims.iter().map(|one| &one.code));
    require(codes.all(|code| code == "X1"), || format!("an unknown code: {verdict:?}"))?;
    Ok(format!("{} {} {}", findings.len().min(3), claims.len().min(3), verdict.denies()))
}

fn of_mutation(mutation: &Mutation) -> Result<Signature, Violation> {
    require(mutation.evaluations.len() == 1, || format!("not one evaluation: {mutation:?}"))?;
    if let Some(failure) = mutation.failures.first() {
        require(mutation.denies(), || format!("a failure that passes: {failure:?}"))?;
        require(mutation.patch.0.is_empty(), || format!("a failure that patches: {mutation:?}"))?;
        return Ok(signature(failure.reason.category(), &failure.reason.to_string()));
    }
    let size = serde_json::to_string(&mutation.patch).map(|text| text.len());
    let size = size.map_err(|error| Violation(format!("the patch cannot be written: {error}")))?;
    // JSON may write one byte as six (`\u0000`), and adds the names of the fields.
    let most = 6 * LIMITS.reply + 64 * mutation.patch.0.len();
    require(size <= most, || format!("a patch of {size} bytes"))?;
    let mut object: Value = serde_json::from_str(OBJECT)
        .map_err(|error| Violation(format!("the object of the request: {error}")))?;
    apply(&mut object, &mutation.patch)
        .map_err(|error| Violation(format!("an accepted patch does not fit: {error}")))?;
    Ok(format!("{}", mutation.patch.0.len().min(3)))
}

/// Numbers and quoted texts come from the input and do not identify the path.
fn signature(category: &str, text: &str) -> Signature {
    let text: String = text.chars().filter(|c| !c.is_ascii_hexdigit()).take(160).collect();
    let unquoted: String = text.split('"').step_by(2).collect();
    format!("{category} {unquoted}")
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String does not fail.
        let _written = write!(text, "{byte:02x}");
        text
    })
}

fn guest() -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
    Ok(component_of(&wat::parse_str(include_str!("reply/guest.wat"))?)?)
}
