//! One evaluation in a fresh instance: its state, the limits on it, the lookups it makes, and what
//! its end means.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout_at};
use wasmtime::{ResourceLimiter, Store, Trap, UpdateDeadline};

use crate::{
    budget::Budget,
    contract::{Index, PolicyPre, cluster, generated, wire},
    engine::{Engine, Limits, MAX_LOOKUP_BYTES},
    lookup::{ALL, FoundObject, Lookup, LookupError},
    metering::{Cost, Metering},
    slots::SlotClass,
    verdict::FailureReason,
};

/// What an instance's host functions work on.
pub(crate) struct State {
    limits: Limits,
    started: Instant,
    /// Wall-clock deadline of the answer.
    deadline: Instant,
    budget: Arc<Budget>,
    out_of_memory: bool,
    memory: usize,
    /// Bytes of what its lookups have found.
    found: usize,
    indexes: Arc<[Index]>,
    lookup: Arc<dyn Lookup>,
}

impl State {
    pub(crate) fn new(
        limits: Limits,
        deadline: Instant,
        indexes: Arc<[Index]>,
        lookup: Arc<dyn Lookup>,
    ) -> Self {
        let (started, budget) = (Instant::now(), Arc::new(Budget::new(limits.time)));
        let (out_of_memory, memory, found) = (false, 0, 0);
        Self { limits, started, deadline, budget, out_of_memory, memory, found, indexes, lookup }
    }

    /// Lookups wait rather than compute, so they are limited by wall-clock time.
    fn waits_until(&self) -> Instant {
        self.deadline.min(self.started + self.limits.time)
    }

    fn index(&self, name: &str) -> Result<&Index, Stop> {
        let undeclared = || Stop::UndeclaredLookup(name.to_owned());
        self.indexes.iter().find(|index| index.name == name).ok_or_else(undeclared)
    }

    /// The objects that have the key, at most so many.
    async fn find_up_to(
        &self,
        index: &str,
        key: &str,
        most: usize,
    ) -> Result<Result<Vec<FoundObject>, LookupError>, Stop> {
        let answer = self.lookup.find(self.index(index)?, key, most);
        timeout_at(self.waits_until(), answer).await.map_err(|_| Stop::Deadline)
    }

    /// Drops the objects with which its lookups had found more than they may, and counts the others.
    fn keep_what_may_be_found(&mut self, found: &mut Vec<FoundObject>) {
        let mut size = self.found;
        let sizes = found.iter().map(|object| {
            size = size.saturating_add(object.size());
            size
        });
        let sizes: Vec<usize> = sizes.take_while(|size| *size <= MAX_LOOKUP_BYTES).collect();
        found.truncate(sizes.len());
        self.found = sizes.last().copied().unwrap_or(self.found);
    }

    /// Counts what a lookup found, before any of it is copied for the policy.
    fn count<'f>(&mut self, found: impl IntoIterator<Item = &'f FoundObject>) -> Result<(), Stop> {
        let size = found.into_iter().map(FoundObject::size).fold(self.found, usize::saturating_add);
        self.found = size;
        if size > MAX_LOOKUP_BYTES { Err(Stop::FoundTooMuch) } else { Ok(()) }
    }
}

/// Why a host function ends the evaluation.
#[derive(Debug, thiserror::Error)]
enum Stop {
    #[error("undeclared lookup {0:?}")]
    UndeclaredLookup(String),
    #[error("a lookup took longer than the evaluation may")]
    Deadline,
    #[error("the lookups found more than an evaluation may have")]
    FoundTooMuch,
}

/// Runs `run` in a fresh instance, under all limits.
pub(crate) async fn run<T>(
    engine: &Engine,
    ready: &PolicyPre<State>,
    class: SlotClass,
    state: State,
    run: impl AsyncFnOnce(&mut Store<State>, generated::Policy) -> wasmtime::Result<T>,
) -> Result<T, FailureReason> {
    let deadline = state.deadline;
    let wanted = engine.slots_for(state.limits.memory);
    let Some(_slots) = engine.slots().acquire(class, wanted, deadline).await else {
        return Err(FailureReason::Overloaded);
    };
    let (reply, budget) = (state.limits.reply, Arc::clone(&state.budget));
    let mut store = Store::new(engine.inner(), state);
    store.limiter(|state| state);
    store.set_hostcall_fuel(reply);
    let _ticks = engine.clock().run_for();
    // The first tick may come at once. Yielding to it would mean waiting for all others'
    // evaluation, although nearly all of them end within a fraction of a tick.
    store.set_epoch_deadline(2);
    store.epoch_deadline_callback(|store| {
        let state = store.data();
        let late = state.budget.is_used_up() || Instant::now() >= state.deadline;
        Ok(if late { UpdateDeadline::Interrupt } else { UpdateDeadline::Yield(1) })
    });
    if engine.metering() == Metering::Fuel {
        // Full, so that it never runs out: the deadline is what ends an evaluation.
        store.set_fuel(u64::MAX).map_err(|error| reason(&error, store.data()))?;
    }
    let (begun, mut instantiate) = (Instant::now(), Duration::ZERO);
    let result = async {
        let policy = ready.instantiate_async(&mut store).await?;
        instantiate = begun.elapsed();
        run(&mut store, policy).await
    };
    let result = budget.over(result).await;
    if engine.metering() != Metering::Off {
        let fuel = store.get_fuel().ok().map(|left| u64::MAX - left);
        let memory = store.data().memory;
        engine.meter().add(Cost { instantiate, total: begun.elapsed(), fuel, memory });
    }
    result.map_err(|error| reason(&error, store.data()))
}

fn reason(error: &wasmtime::Error, state: &State) -> FailureReason {
    let elapsed = state.started.elapsed().min(state.limits.time);
    match error.downcast_ref::<Stop>() {
        Some(Stop::UndeclaredLookup(name)) => return FailureReason::UndeclaredLookup(name.clone()),
        Some(Stop::Deadline) => return FailureReason::Deadline(elapsed),
        Some(Stop::FoundTooMuch) => return FailureReason::LookupTooLarge(MAX_LOOKUP_BYTES),
        None => {}
    }
    // A guest that is denied memory aborts, so this comes before the trap that follows from it.
    if state.out_of_memory {
        return FailureReason::Memory(state.limits.memory);
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => FailureReason::Deadline(elapsed),
        Some(Trap::StackOverflow) => FailureReason::Stack,
        Some(trap) => FailureReason::Trap(trap.to_string()),
        // wasmtime keeps the type of this error to itself.
        None if format!("{error:#}").contains("fuel allocated for hostcalls") => {
            FailureReason::ReplyTooLarge(state.limits.reply)
        }
        None => FailureReason::BadReply(format!("{error:#}")),
    }
}

impl ResourceLimiter for State {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let granted = desired <= self.limits.memory;
        self.out_of_memory |= !granted;
        if granted {
            self.memory += desired.saturating_sub(current);
        }
        Ok(granted)
    }

    fn table_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= 100_000)
    }
}

impl wire::Host for State {}

impl cluster::Host for State {
    async fn get(
        &mut self,
        index: String,
        namespace: String,
        name: String,
    ) -> wasmtime::Result<Result<Option<cluster::Found>, String>> {
        let index = self.index(&index)?;
        let answer = self.lookup.get(index, &namespace, &name);
        let answer = timeout_at(self.waits_until(), answer).await.map_err(|_| Stop::Deadline)?;
        self.count(answer.iter().flatten())?;
        Ok(answer.map(|found| found.map(into_wire)).map_err(|error| error.0))
    }

    async fn find(
        &mut self,
        index: String,
        key: String,
    ) -> wasmtime::Result<Result<Vec<cluster::Found>, String>> {
        let answer = self.find_up_to(&index, &key, ALL).await?;
        self.count(answer.iter().flatten())?;
        Ok(into_wire_list(answer))
    }

    async fn find_first(
        &mut self,
        index: String,
        key: String,
        most: u32,
    ) -> wasmtime::Result<Result<Vec<cluster::Found>, String>> {
        let most = usize::try_from(most).unwrap_or(ALL);
        let mut answer = self.find_up_to(&index, &key, most).await?;
        if let Ok(found) = &mut answer {
            self.keep_what_may_be_found(found);
        }
        Ok(into_wire_list(answer))
    }
}

fn into_wire_list(
    answer: Result<Vec<FoundObject>, LookupError>,
) -> Result<Vec<cluster::Found>, String> {
    answer
        .map(|found| found.into_iter().map(into_wire).collect())
        .map_err(|LookupError(reason)| reason)
}

fn into_wire(found: FoundObject) -> cluster::Found {
    let FoundObject { namespace, name, uid, parts } = found;
    cluster::Found { namespace, name, uid, parts }
}
