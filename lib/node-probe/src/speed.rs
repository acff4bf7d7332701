//! How fast a network is between two probes: one takes what the other sends, and sends back what it shall.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// So many seconds are sent at most.
pub const MOST_SECONDS: u8 = 30;
/// By so many connections at once at most.
pub const MOST_STREAMS: u8 = 16;

/// What a probe does for one that measures: a port on which it takes bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sink {
    /// The port; 0 is one that is free.
    pub port: u16,
    /// The line by which a connection has to begin: others get nothing there.
    pub mark: String,
}

/// What is measured: round trips first, while nothing else is sent, and then how much arrives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WantedSpeed {
    /// Where a [`Sink`] is.
    pub at: SocketAddr,
    /// Its mark.
    pub mark: String,
    /// So long bytes are sent, up to [`MOST_SECONDS`].
    pub seconds: u8,
    /// By so many connections at once, up to [`MOST_STREAMS`].
    pub streams: u8,
}

/// How fast it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Speed {
    /// Bytes that arrived, by all connections.
    pub bytes: u64,
    /// Microseconds until the last of them had.
    pub micros: u64,
    /// Bytes of TCP there and back, one at a time.
    pub round_trips: RoundTrips,
}

/// How long one byte takes there and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoundTrips {
    /// How many there were.
    pub count: u32,
    /// Microseconds of the median.
    pub median: u32,
    /// Microseconds of the 99th percentile.
    pub p99: u32,
}

impl Speed {
    /// Megabits a second; nothing of no time.
    #[must_use]
    pub fn megabits_per_second(&self) -> u64 {
        // A bit a microsecond is a megabit a second.
        self.bytes.saturating_mul(8).checked_div(self.micros).unwrap_or_default()
    }
}
