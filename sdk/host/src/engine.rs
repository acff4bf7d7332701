//! The one wasmtime engine of a process: its configuration, its limits, and the clock that makes
//! the time limit hold. Switch and mechanism are both here.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use sha2::{Digest as _, Sha256};
use wasmtime::{Config, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::clock::Clock;
use crate::metering::{Meter, Metering};
use crate::slots::Slots;

/// The most memory that any evaluation may be given.
pub const MAX_MEMORY: usize = 256 << 20;

/// Bytes of all objects that the lookups of one evaluation find. They are copied before the policy's
/// memory can say no.
pub const MAX_LOOKUP_BYTES: usize = 4 << 20;

/// Core instances of one component: the policy's own, and small ones that wire it up. A program in
/// Python is linked at run time and has about forty.
const INSTANCES: u32 = 64;

/// Tables of one component.
const TABLES: u32 = 3;

const WASM_STACK: usize = 512 << 10;
const FIBER_STACK: usize = 1 << 20;

/// The limits of one evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Linear memory in bytes.
    pub memory: usize,
    /// Processor time; waiting for lookups may take as long again.
    pub time: Duration,
    /// Bytes that the host copies out of the evaluation.
    pub reply: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory: 16 << 20, time: Duration::from_millis(50), reply: 1 << 20 }
    }
}

/// The engine cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// wasmtime refuses the configuration, or the machine the address space for the pool.
    #[error("start the WebAssembly engine; if the address space is limited, raise `ulimit -v`")]
    Start(#[source] wasmtime::Error),
    /// No thread for the clock.
    #[error("start the clock of the WebAssembly engine")]
    Clock(#[source] std::io::Error),
}

/// The engine that all policies of a process share.
#[derive(Clone)]
pub struct Engine {
    inner: wasmtime::Engine,
    clock: Arc<Clock>,
    slots: Arc<Slots>,
    slot_memory: usize,
    fingerprint: Arc<str>,
    metering: Metering,
    meter: Meter,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Engine").field("fingerprint", &self.fingerprint).finish()
    }
}

impl Engine {
    /// Starts an engine that runs at most `concurrent` evaluations at once.
    ///
    /// # Errors
    /// The machine does not give the address space or the thread it needs.
    pub fn start(concurrent: u32) -> Result<Self, EngineError> {
        Self::start_metered(concurrent, Metering::Off)
    }

    /// The same, for development: an engine that counts what evaluations cost.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub fn start_metered(concurrent: u32, metering: Metering) -> Result<Self, EngineError> {
        let mut config = config(concurrent);
        config.consume_fuel(metering == Metering::Fuel);
        let inner = wasmtime::Engine::new(&config).map_err(EngineError::Start)?;
        let clock = clock_of(&inner)?;
        let fingerprint = fingerprint(&inner).into();
        let slots = Arc::new(Slots::new(concurrent));
        let slot_memory = Limits::default().memory;
        let meter = Meter::default();
        Ok(Self { inner, clock, slots, slot_memory, fingerprint, metering, meter })
    }

    /// The same with so many bytes of memory for each of the evaluations that run at once: one that may take more
    /// counts as several.
    #[must_use]
    pub fn with_slot_memory(mut self, bytes: usize) -> Self {
        self.slot_memory = bytes.max(1);
        self
    }

    /// Where the costs of this engine's evaluations are found; stays empty if it counts nothing.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// What it counts.
    #[must_use]
    pub fn metering(&self) -> Metering {
        self.metering
    }

    pub(crate) fn inner(&self) -> &wasmtime::Engine {
        &self.inner
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn slots(&self) -> &Slots {
        &self.slots
    }

    /// How many slots an evaluation of so much memory takes.
    pub(crate) fn slots_for(&self, memory: usize) -> u32 {
        u32::try_from(memory.div_ceil(self.slot_memory)).unwrap_or(u32::MAX)
    }

    /// What a precompiled policy depends on besides its bytes: wasmtime's version, its
    /// configuration, the processor.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

fn config(concurrent: u32) -> Config {
    let instances = concurrent.saturating_mul(INSTANCES);
    let tables = concurrent.saturating_mul(TABLES);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(concurrent)
        .total_core_instances(instances)
        .total_memories(concurrent)
        .total_tables(tables)
        // What one takes beyond its share would be missing for the others. One memory, too,
        // because the limit of an evaluation holds for each.
        .max_core_instances_per_component(INSTANCES)
        .max_memories_per_component(1)
        .max_tables_per_component(TABLES)
        .total_stacks(concurrent)
        .max_unused_warm_slots(concurrent)
        .max_memory_size(MAX_MEMORY)
        .linear_memory_keep_resident(256 << 10)
        .table_keep_resident(64 << 10)
        .async_stack_keep_resident(64 << 10);
    let mut config = Config::new();
    config
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool))
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(FIBER_STACK)
        .wasm_component_model(true)
        .memory_init_cow(true);
    config
}

/// The clock ends with the last handle of the engine.
fn clock_of(engine: &wasmtime::Engine) -> Result<Arc<Clock>, EngineError> {
    let engine = engine.weak();
    let tick = move || engine.upgrade().map(|engine| engine.increment_epoch()).is_some();
    Clock::start(tick).map_err(EngineError::Clock)
}

fn fingerprint(engine: &wasmtime::Engine) -> String {
    /// Feeds a `Hash` into SHA-256, which is stable over processes, unlike the default hasher.
    struct Feed(Sha256);
    impl Hasher for Feed {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut feed = Feed(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut feed);
    crate::digest::hexadecimal(&feed.0.finalize())
}
