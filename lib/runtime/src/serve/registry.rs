//! The open connections: what each one is waiting for and since when, how many there may be, and
//! which has to go when one too many comes. No I/O happens here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::ConnectionLimits;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// TLS is being negotiated.
    Handshake,
    /// Between requests.
    Idle,
    /// Some bytes of a request's head have come, not all.
    Head,
    /// A request is being read, reviewed or answered; its own deadline bounds it.
    Busy,
}

/// One connection's stage, shared by the task that drives it and the [`Registry`].
#[derive(Debug)]
pub(super) struct Activity {
    epoch: Instant,
    /// Stage in the two lowest bits, above them the milliseconds from `epoch` to its beginning:
    /// one word, so that stage and time always belong together.
    state: AtomicU64,
    served: AtomicBool,
    evicted: AtomicBool,
    /// The caller is still sending what will not be read (see `connection::Watched`).
    pub(super) lingers: AtomicBool,
    pub(super) evict: Notify,
}

impl Activity {
    fn new(epoch: Instant) -> Self {
        let activity = Self {
            epoch,
            state: AtomicU64::new(0),
            served: AtomicBool::new(false),
            evicted: AtomicBool::new(false),
            lingers: AtomicBool::new(false),
            evict: Notify::new(),
        };
        activity.enter(Stage::Handshake);
        activity
    }

    pub(super) fn enter(&self, stage: Stage) {
        self.enter_at(stage, u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(0));
    }

    fn enter_at(&self, stage: Stage, since: u64) {
        let tag = match stage {
            Stage::Handshake => 0,
            Stage::Idle => 1,
            Stage::Head => 2,
            Stage::Busy => 3,
        };
        self.state.store(since << 2 | tag, Ordering::Relaxed);
        if stage == Stage::Busy {
            self.served.store(true, Ordering::Relaxed);
        }
    }

    /// Bytes have come: between requests that is the beginning of the next head.
    pub(super) fn received(&self) {
        if self.stage() == Stage::Idle {
            self.enter(Stage::Head);
        }
    }

    pub(super) fn stage(&self) -> Stage {
        match self.state.load(Ordering::Relaxed) & 3 {
            0 => Stage::Handshake,
            1 => Stage::Idle,
            2 => Stage::Head,
            _ => Stage::Busy,
        }
    }

    /// When the connection has waited long enough in its stage.
    pub(super) fn expires(&self, limits: &ConnectionLimits) -> Instant {
        let timeout = match self.stage() {
            Stage::Handshake => limits.handshake,
            Stage::Idle => limits.idle,
            Stage::Head => limits.head,
            // Bounded by the request's deadline; looked at again now and then.
            Stage::Busy => limits.idle.max(Duration::from_secs(60)),
        };
        self.epoch + Duration::from_millis(self.since()) + timeout
    }

    fn since(&self) -> u64 {
        self.state.load(Ordering::Relaxed) >> 2
    }

    /// Order in which connections are closed: first those that only linger, then those that never carried
    /// a request, then the others, of each the one that has waited longest; newcomers last. None for a connection with a request in flight.
    fn expendable(&self) -> Option<(u8, u64)> {
        let spared = self.stage() == Stage::Busy || self.evicted.load(Ordering::Relaxed);
        let age = self.epoch.elapsed().saturating_sub(Duration::from_millis(self.since()));
        let class = match self.served.load(Ordering::Relaxed) {
            _ if self.lingers.load(Ordering::Relaxed) => 0,
            false if age >= NEWCOMER => 1,
            true => 2,
            false => 3,
        };
        (!spared).then(|| (class, self.since()))
    }
}

/// So long a connection that has not carried a request yet is the last one to go: else who connects again
/// and again would always take the place of the caller who came just before.
const NEWCOMER: Duration = Duration::from_secs(1);

/// All open connections.
#[derive(Debug)]
pub(super) struct Registry {
    epoch: Instant,
    capacity: usize,
    open: Mutex<Open>,
    gauge: Gauge,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    connections: HashMap<u64, Arc<Activity>>,
    evicted: usize,
}

/// A slot in the [`Registry`]; free again when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    registry: Arc<Registry>,
    id: u64,
    pub(super) activity: Arc<Activity>,
}

impl Registry {
    pub(super) fn new(capacity: usize, gauge: Gauge) -> Arc<Self> {
        let open = Mutex::new(Open::default());
        Arc::new(Self { epoch: Instant::now(), capacity, open, gauge })
    }

    /// A slot for a new connection. When all are taken, the most expendable connection is asked to
    /// close: rejecting the new one instead would let any client that opens enough idle
    /// connections shut the API server out. None if every connection has a request in flight.
    pub(super) fn admit(self: &Arc<Self>) -> Option<Slot> {
        let mut open = self.lock();
        if open.staying() >= self.capacity && !open.evict() {
            return None;
        }
        let id = open.next;
        open.next += 1;
        let activity = Arc::new(Activity::new(self.epoch));
        open.connections.insert(id, activity.clone());
        self.gauge.inc();
        Some(Slot { registry: self.clone(), id, activity })
    }

    /// Closes the most expendable connection, if there is one.
    pub(super) fn evict(&self) {
        self.lock().evict();
    }

    /// How many are asked to close.
    #[cfg(test)]
    pub(super) fn evicted(&self) -> usize {
        self.lock().evicted
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // Nothing between lock and unlock can leave the map half changed.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// How many there are besides those that are asked to close.
    fn staying(&self) -> usize {
        self.connections.len().saturating_sub(self.evicted)
    }

    fn evict(&mut self) -> bool {
        let candidates = self.connections.values().filter_map(|a| a.expendable().map(|o| (o, a)));
        let Some((_, activity)) = candidates.min_by_key(|(order, _)| *order) else {
            return false;
        };
        activity.evicted.store(true, Ordering::Relaxed);
        activity.evict.notify_one();
        self.evicted += 1;
        true
    }
}

impl Slot {
    /// The connection was chosen to be closed, and has a request in flight now, which is never cut off:
    /// it stays and counts again, and another one goes for it.
    pub(super) fn stay(&self) {
        let mut open = self.registry.lock();
        if !self.activity.evicted.swap(false, Ordering::Relaxed) {
            return;
        }
        open.evicted -= 1;
        if open.staying() > self.registry.capacity {
            open.evict();
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self.registry.lock();
        open.connections.remove(&self.id);
        if self.activity.evicted.load(Ordering::Relaxed) {
            open.evicted -= 1;
        }
        self.registry.gauge.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(capacity: usize) -> Arc<Registry> {
        // What enters a stage at 0 has been there for a minute.
        let epoch = Instant::now() - Duration::from_secs(60);
        Arc::new(Registry { epoch, capacity, open: Mutex::default(), gauge: Gauge::default() })
    }

    fn is_evicted(slot: &Slot) -> bool {
        slot.activity.evicted.load(Ordering::Relaxed)
    }

    #[test]
    fn closes_an_unused_connection_before_a_used_one_and_the_oldest_first() {
        let registry = registry(3);
        let used = registry.admit().unwrap();
        used.activity.enter_at(Stage::Busy, 0);
        used.activity.enter_at(Stage::Idle, 1);
        let youngest = registry.admit().unwrap();
        youngest.activity.enter_at(Stage::Idle, 3);
        let oldest = registry.admit().unwrap();
        oldest.activity.enter_at(Stage::Idle, 2);
        let newcomer = registry.admit().unwrap();
        assert!(is_evicted(&oldest));
        assert!(!is_evicted(&used) && !is_evicted(&youngest) && !is_evicted(&newcomer));
    }

    #[test]
    fn a_newcomer_does_not_give_way_to_the_next_one() {
        let registry = registry(2);
        let served = registry.admit().unwrap();
        served.activity.enter_at(Stage::Busy, 0);
        served.activity.enter_at(Stage::Idle, 1);
        let probe = registry.admit().unwrap();
        probe.activity.enter(Stage::Idle);
        let stranger = registry.admit().unwrap();
        assert!(is_evicted(&served));
        assert!(!is_evicted(&probe) && !is_evicted(&stranger));
    }

    #[test]
    fn rejects_only_when_every_connection_has_a_request_in_flight() {
        let registry = registry(2);
        let slots = [registry.admit().unwrap(), registry.admit().unwrap()];
        for slot in &slots {
            slot.activity.enter(Stage::Busy);
        }
        assert!(registry.admit().is_none());
        drop(slots);
        assert!(registry.admit().is_some());
    }

    #[test]
    fn one_that_has_a_request_when_it_is_to_close_stays_and_another_goes_for_it() {
        let registry = registry(2);
        let chosen = registry.admit().unwrap();
        chosen.activity.enter_at(Stage::Idle, 1);
        let other = registry.admit().unwrap();
        other.activity.enter_at(Stage::Idle, 2);
        let newcomer = registry.admit().unwrap();
        newcomer.activity.enter(Stage::Busy);
        assert!(is_evicted(&chosen));
        chosen.activity.enter(Stage::Busy);
        chosen.stay();
        assert!(!is_evicted(&chosen) && is_evicted(&other));
        drop(other);
        assert!(registry.admit().is_none(), "there are two, as many as may be");
        drop(newcomer);
        chosen.activity.enter_at(Stage::Idle, 3);
        let slots = [registry.admit().unwrap(), registry.admit().unwrap()];
        assert!(is_evicted(&chosen), "it can be chosen again");
        drop((slots, chosen));
        assert_eq!(registry.evicted(), 0);
    }
}
