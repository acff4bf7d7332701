//! One policy: compiled or taken from the cache, checked against the contract, described, and then
//! evaluated, each time in a fresh instance.

use std::{collections::HashSet, error::Error, io, path::Path, sync::Arc, time::Duration};

use rustix::io::Errno;
use tokio::time::Instant;
use wasmtime::component::{Component, HasSelf, Linker};

use crate::{
    cache::{Cache, CacheError, Staged},
    contract::{Index, Message, Metadata, PolicyPre, wire},
    description::{self, DescriptionError, SettingsSchema},
    digest::Digest,
    engine::{Engine, Limits},
    instance::{self, State},
    lookup::{Lookup, NoLookup},
    slots::SlotClass,
    verdict::FailureReason,
};

/// All that a policy may import.
pub const ALLOWED_IMPORTS: [&str; 2] =
    ["opensdn:policy/cluster@1.0.0", "opensdn:policy/types@1.0.0"];

/// How long a policy may take to describe itself, and how much memory.
const DESCRIBE_LIMITS: Limits =
    Limits { memory: 64 << 20, time: Duration::from_secs(1), reply: 1 << 20 };
/// How long it may take where the processor works for others too.
const DESCRIBE_PATIENCE: Duration = Duration::from_secs(20);

/// Why a module is not used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The bytes are not those that were pinned.
    #[error("the module's digest is {found}, but {expected} is pinned")]
    Digest {
        /// What was pinned.
        expected: Digest,
        /// What the bytes have.
        found: Digest,
    },
    /// Not a component.
    #[error(
        "the module is not a WebAssembly component that can be compiled; build it with `kubectl opensdn policy build`"
    )]
    Compile(#[source] wasmtime::Error),
    /// It wants something from the host that no policy gets.
    #[error(
        "the module imports {0:?}; a policy may import nothing but opensdn:policy/cluster@1.0.0"
    )]
    Import(String),
    /// It is not a policy.
    #[error("the module does not fit the world opensdn:policy/policy@1.0.0")]
    World(#[source] wasmtime::Error),
    /// It fails when asked what it is.
    #[error("the module cannot describe itself: {0}")]
    Describe(FailureReason),
    /// What it says of itself cannot be.
    #[error("the module describes itself wrongly")]
    Metadata(#[source] DescriptionError),
}

impl LoadError {
    /// Whether the system gave no memory for it: then it says nothing of the module, whatever its text.
    /// By the types of its causes, since their texts may be the module's own words.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        let causes =
            std::iter::successors(Some(self as &(dyn Error + 'static)), |&one| one.source());
        causes.into_iter().any(|cause| {
            let of_system = cause.downcast_ref::<io::Error>().map(io::Error::kind);
            of_system == Some(io::ErrorKind::OutOfMemory)
                || cause.downcast_ref::<Errno>() == Some(&Errno::NOMEM)
                || cause.is::<wasmtime::OutOfMemory>()
        })
    }
}

/// Why a module is not in the cache afterwards.
#[derive(Debug, thiserror::Error)]
pub enum PrecompileError {
    /// It is no policy that can be used.
    #[error(transparent)]
    Module(LoadError),
    /// No place for it.
    #[error(transparent)]
    Cache(CacheError),
}

/// A policy that is ready to run.
#[derive(Clone)]
pub struct Policy {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    ready: PolicyPre<State>,
    digest: Digest,
    metadata: Metadata,
    indexes: Arc<[Index]>,
    codes: HashSet<String>,
    settings: SettingsSchema,
    code_size: usize,
    from_cache: bool,
}

impl std::fmt::Debug for Policy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Policy").field(&self.metadata().name).field(&self.digest()).finish()
    }
}

impl Policy {
    /// Compiles the component, or takes what the cache has of it, checks that it is a policy and
    /// asks it what it is. Takes tenths of a second when it compiles: not for a request's path.
    ///
    /// # Errors
    /// The bytes are not what was pinned, not a component, not a policy, or import something.
    pub async fn load(
        engine: &Engine,
        bytes: &[u8],
        pinned: Option<Digest>,
        cache: Option<&Cache>,
    ) -> Result<Self, LoadError> {
        let digest = Digest::of(bytes);
        if let Some(expected) = pinned.filter(|pinned| *pinned != digest) {
            return Err(LoadError::Digest { expected, found: digest });
        }
        if let Some(component) = cached(engine, digest, cache) {
            return Self::from_component(engine, component, digest, true).await;
        }
        let component = compile(engine, bytes, digest, cache)?;
        Self::from_component(engine, component, digest, false).await
    }

    /// What the cache has of the component with this digest, without compiling anything.
    ///
    /// # Errors
    /// It is not a policy, or imports something.
    pub async fn load_compiled(
        engine: &Engine,
        digest: Digest,
        cache: &Cache,
    ) -> Result<Option<Self>, LoadError> {
        match cached(engine, digest, Some(cache)) {
            Some(component) => {
                Self::from_component(engine, component, digest, true).await.map(Some)
            }
            None => Ok(None),
        }
    }

    /// Compiles the component, asks it what it is, and puts it into the cache if that can be: what
    /// is in the cache has been loaded once. For a process that may die of it.
    ///
    /// # Errors
    /// The bytes are no policy, or the cache cannot be written.
    pub async fn precompile(
        engine: &Engine,
        bytes: Vec<u8>,
        cache: &Cache,
    ) -> Result<(), PrecompileError> {
        let digest = Digest::of(&bytes);
        let staged = {
            let compiled = engine.inner().precompile_component(&bytes);
            drop(bytes);
            let code = compiled.map_err(LoadError::Compile).map_err(PrecompileError::Module)?;
            cache.stage(engine, digest, &code).map_err(PrecompileError::Cache)?
        };
        Self::try_out(engine, digest, &staged).await.map_err(PrecompileError::Module)?;
        staged.keep().map_err(PrecompileError::Cache)?;
        Ok(())
    }

    async fn try_out(engine: &Engine, digest: Digest, staged: &Staged) -> Result<(), LoadError> {
        let component = deserialize(engine, staged.path()).map_err(LoadError::Compile)?;
        Self::from_component(engine, component, digest, false).await.map(|_| ())
    }

    async fn from_component(
        engine: &Engine,
        component: Component,
        digest: Digest,
        from_cache: bool,
    ) -> Result<Self, LoadError> {
        let ready = link(engine, &component)?;
        let metadata = describe(engine, &ready).await?;
        let settings = SettingsSchema::new(&metadata.settings_schema)
            .map_err(|error| LoadError::Metadata(error.into()))?;
        let codes = metadata.messages.iter().map(|message| message.code.clone()).collect();
        let indexes = metadata.indexes.clone().into();
        let image = component.image_range();
        let inner = Inner {
            engine: engine.clone(),
            ready,
            digest,
            metadata,
            indexes,
            codes,
            settings,
            code_size: image.end.addr().saturating_sub(image.start.addr()),
            from_cache,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What it says of itself.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.inner.metadata
    }

    /// The message with this code.
    #[must_use]
    pub fn message(&self, code: &str) -> Option<&Message> {
        self.inner.metadata.messages.iter().find(|message| message.code == code)
    }

    /// The digest of its bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.inner.digest
    }

    /// Whether it did not have to be compiled.
    #[must_use]
    pub fn is_from_cache(&self) -> bool {
        self.inner.from_cache
    }

    /// What is wrong with the settings by the policy's own schema, in bounded time and words; empty
    /// if nothing.
    #[must_use]
    pub fn check_settings(&self, settings: &serde_json::Value) -> Vec<String> {
        self.inner.settings.check(settings)
    }

    /// Bytes of its compiled code.
    #[must_use]
    pub fn code_size(&self) -> usize {
        self.inner.code_size
    }

    pub(crate) async fn validate(
        &self,
        call: Call,
        request: wire::Request<'_>,
        settings: &str,
    ) -> Result<wire::Verdict, FailureReason> {
        let limits = call.limits;
        let verdict = self
            .with_instance(call, async |store, policy| {
                policy.call_validate(store, request, settings).await
            })
            .await?
            .map_err(FailureReason::Inconclusive)?;
        self.check_verdict(&verdict, limits)?;
        Ok(verdict)
    }

    pub(crate) async fn mutate(
        &self,
        call: Call,
        request: wire::Request<'_>,
        settings: &str,
    ) -> Result<Vec<wire::PatchOperation>, FailureReason> {
        self.with_instance(call, async |store, policy| {
            policy.call_mutate(store, request, settings).await
        })
        .await?
        .map_err(FailureReason::Inconclusive)
    }

    async fn with_instance<T>(
        &self,
        call: Call,
        run: impl AsyncFnOnce(
            &mut wasmtime::Store<State>,
            crate::contract::generated::Policy,
        ) -> wasmtime::Result<T>,
    ) -> Result<T, FailureReason> {
        let Inner { engine, ready, .. } = &*self.inner;
        let indexes = Arc::clone(&self.inner.indexes);
        let state = State::new(call.limits, call.deadline, indexes, call.lookup);
        instance::run(engine, ready, call.class, state, run).await
    }

    /// A finding must be one that the policy declared, else its code could not be explained.
    fn check_verdict(&self, verdict: &wire::Verdict, limits: Limits) -> Result<(), FailureReason> {
        let text =
            verdict.findings.iter().map(|finding| finding.message.len() + finding.hint.len());
        if text.sum::<usize>() > limits.reply {
            return Err(FailureReason::ReplyTooLarge(limits.reply));
        }
        let findings = verdict.findings.iter().map(|finding| &finding.code);
        let mut codes = findings.chain(verdict.claims.iter().map(|claim| &claim.code));
        if let Some(code) = codes.find(|code| !self.inner.codes.contains(*code)) {
            let text = format!("the code {code:?} is not among its messages");
            return Err(FailureReason::BadReply(text));
        }
        if !verdict.claims.is_empty() && !self.inner.metadata.claims {
            return Err(FailureReason::BadReply("it claims, but did not declare so".to_owned()));
        }
        Ok(())
    }
}

/// What one evaluation may use.
pub(crate) struct Call {
    pub(crate) limits: Limits,
    /// Which slots it may take.
    pub(crate) class: SlotClass,
    pub(crate) deadline: Instant,
    pub(crate) lookup: Arc<dyn Lookup>,
}

fn cached(engine: &Engine, digest: Digest, cache: Option<&Cache>) -> Option<Component> {
    let file = cache?.find(engine, digest)?;
    map(engine, digest, &file)
}

fn compile(
    engine: &Engine,
    bytes: &[u8],
    digest: Digest,
    cache: Option<&Cache>,
) -> Result<Component, LoadError> {
    let component = Component::new(engine.inner(), bytes).map_err(LoadError::Compile)?;
    let Some(cache) = cache else { return Ok(component) };
    let code = component.serialize().map_err(LoadError::Compile)?;
    match cache.write(engine, digest, &code) {
        // What is mapped costs less memory than what was just made.
        Ok(file) => Ok(map(engine, digest, &file).unwrap_or(component)),
        Err(error) => {
            // Without its cache entry a policy only starts more slowly the next time.
            tracing::warn!(%digest, %error, "failed to cache a compiled policy");
            Ok(component)
        }
    }
}

/// The component in a file of the cache. One that cannot be used is compiled again and overwritten.
fn map(engine: &Engine, digest: Digest, file: &Path) -> Option<Component> {
    deserialize(engine, file)
        .inspect_err(|error| tracing::warn!(%digest, %error, "failed to load a cached policy"))
        .ok()
}

fn deserialize(engine: &Engine, file: &Path) -> wasmtime::Result<Component> {
    // SAFETY: the cache only names files with what this program wrote for this engine, in a folder
    // where no other user can write, and it never changes one that is there.
    #[allow(unsafe_code, reason = "the only way to load our own precompiled artefact")]
    unsafe {
        Component::deserialize_file(engine.inner(), file)
    }
}

fn link(engine: &Engine, component: &Component) -> Result<PolicyPre<State>, LoadError> {
    for (name, _) in component.component_type().imports(engine.inner()) {
        if !ALLOWED_IMPORTS.contains(&name) {
            return Err(LoadError::Import(name.to_owned()));
        }
    }
    let mut linker = Linker::new(engine.inner());
    crate::contract::generated::Policy::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)
        .map_err(LoadError::World)?;
    linker.instantiate_pre(component).and_then(PolicyPre::new).map_err(LoadError::World)
}

async fn describe(engine: &Engine, ready: &PolicyPre<State>) -> Result<Metadata, LoadError> {
    let deadline = Instant::now() + DESCRIBE_PATIENCE;
    let state = State::new(DESCRIBE_LIMITS, deadline, Arc::new([]), Arc::new(NoLookup));
    let metadata = instance::run(engine, ready, SlotClass::Kept, state, async |store, policy| {
        policy.call_describe(store).await
    })
    .await
    .map_err(|reason| LoadError::Describe(reason.shortened()))?;
    description::read(metadata).map_err(LoadError::Metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_memory_ran_out_is_known_by_the_cause_and_not_by_words_of_the_module() {
        let compile = |error: wasmtime::Error| LoadError::Compile(error.context("make code"));
        assert!(compile(wasmtime::Error::new(Errno::NOMEM)).is_out_of_memory());
        let of_system = io::Error::from(io::ErrorKind::OutOfMemory);
        assert!(compile(wasmtime::Error::new(of_system)).is_out_of_memory());
        let words = wasmtime::Error::msg("unknown import Cannot allocate memory (os error 12)");
        assert!(!compile(words).is_out_of_memory());
        assert!(!compile(wasmtime::Error::new(Errno::INVAL)).is_out_of_memory());
    }
}
