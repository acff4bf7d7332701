//! What goes wrong when a test wants it to, and how often.

use std::collections::BTreeMap;
use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

/// How often a fault happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Times {
    /// It is switched off.
    #[default]
    Never,
    /// The next so many times.
    Next(usize),
    /// Once, after so many times without it.
    Once {
        /// How many.
        after: usize,
    },
    /// Until it is switched off, after so many times without it.
    From(usize),
    /// Until it is switched off.
    Always,
}

/// One of the two services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// The Config API.
    ConfigApi,
    /// Keystone.
    Keystone,
}

/// What becomes of a call, whatever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// 503, as when ZooKeeper is away; it is not done.
    Unavailable,
    /// The connection ends without an answer; it is not done.
    Cut,
    /// The connection ends without an answer; it is done.
    Unanswered,
    /// It is done after this time.
    Slow(Duration),
}

/// What becomes of a watch that is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchFault {
    /// It is refused: 401, or 404 as by a server that has none, or 503.
    Refused(StatusCode),
    /// After the list nothing comes, not even that the watch is there; the connection stays.
    Silent,
    /// Not even the list comes.
    Mute,
}

/// A writer that replaces a property after each that replaces it.
#[derive(Debug)]
pub(super) struct Overwriter {
    pub(super) property: String,
    pub(super) value: Value,
    pub(super) times: Times,
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    disturbances: BTreeMap<Service, (Disturbance, Times)>,
    pub(super) stale_writer: Times,
    /// What it writes, where that is not what was there before.
    pub(super) stale_list: Option<Value>,
    pub(super) lost_puts: Times,
    pub(super) lost_deletes: Times,
    pub(super) overwriter: Option<Overwriter>,
    watch: Option<(WatchFault, Times)>,
    pub(super) torn_reads: Times,
}

impl Times {
    /// Whether it happens now.
    pub(super) fn happens(&mut self) -> bool {
        match self {
            Self::Never | Self::Next(0) => false,
            Self::Next(left) => {
                *left -= 1;
                true
            }
            Self::Once { after: 0 } => {
                *self = Self::Never;
                true
            }
            Self::Once { after: left } | Self::From(left @ 1..) => {
                *left -= 1;
                false
            }
            Self::From(0) | Self::Always => true,
        }
    }

    /// Whether it will not happen any more.
    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Never | Self::Next(0))
    }
}

impl Faults {
    pub(super) fn disturb(&mut self, service: Service, disturbance: Disturbance, times: Times) {
        self.disturbances.insert(service, (disturbance, times));
    }

    pub(super) fn disturb_watch(&mut self, fault: WatchFault, times: Times) {
        self.watch = Some((fault, times));
    }

    /// What happens to the watch that is opened.
    pub(super) fn of_watch(&mut self) -> Option<WatchFault> {
        let (fault, times) = self.watch.as_mut()?;
        times.happens().then_some(*fault)
    }

    /// What another writes after a property has been written.
    pub(super) fn after_write(&mut self, has: impl Fn(&str) -> bool) -> Option<(String, Value)> {
        let Overwriter { property, value, times } = self.overwriter.as_mut()?;
        (has(property) && times.happens()).then(|| (property.clone(), value.clone()))
    }

    /// What happens to the call that has come.
    pub(super) fn of_call(&mut self, service: Service) -> Option<Disturbance> {
        let (disturbance, times) = self.disturbances.get_mut(&service)?;
        times.happens().then_some(*disturbance)
    }
}
