//! What may be held at once, from what the process may take in all: a stranger, a caller and a policy
//! together must not get the container killed.
//!
//! | share | of |
//! |---|---|
//! | an eighth | connections, of 48 KiB each at most |
//! | an eighth | bodies of reviews |
//! | an eighth | evaluations, each of what one may take |
//! | the rest | the process itself, lookup caches, and the one compilation beside it |

/// What one connection takes at most: buffers of the socket, of TLS and of a head.
/// `a_crowd_of_half_sent_heads_stays_within_its_share` measures it.
pub(crate) const CONNECTION_BYTES: u64 = 48 << 10;
const SHARE: u64 = 8;

/// One eighth of the memory. Below the lower bounds one API server is not served; above the upper ones
/// more is of no use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share(u64);

impl Share {
    /// Of `limit` bytes in all; none means no limit.
    pub(crate) fn of(limit: Option<u64>) -> Self {
        Self(limit.unwrap_or(u64::MAX) / SHARE)
    }

    pub(crate) fn connections(self) -> u64 {
        (self.0 / CONNECTION_BYTES).clamp(256, 10_000)
    }

    pub(crate) fn bodies_mib(self) -> u64 {
        (self.0 >> 20).clamp(16, 256)
    }

    /// Each of which takes so much at most.
    pub(crate) fn evaluations(self, evaluation_mib: u64) -> u64 {
        ((self.0 >> 20) / evaluation_mib.max(1)).clamp(2, 64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Connections, MiB of bodies, evaluations of 16 MiB.
    fn shares(limit: Option<u64>) -> (u64, u64, u64) {
        let share = Share::of(limit);
        (share.connections(), share.bodies_mib(), share.evaluations(16))
    }

    #[test]
    fn the_shares_of_a_pod_fit_its_limit_and_leave_half_of_it() {
        let (connections, bodies_mib, evaluations) = shares(Some(512 << 20));
        assert_eq!((connections, bodies_mib, evaluations), (1_365, 64, 4));
        let connections_mib = (connections * CONNECTION_BYTES) >> 20;
        assert!(connections_mib + bodies_mib + evaluations * 16 <= 256);
    }

    #[test]
    fn much_memory_gives_no_more_than_is_useful_and_little_no_less_than_works() {
        assert_eq!(shares(None), (10_000, 256, 64));
        assert_eq!(shares(Some(1 << 40)), (10_000, 256, 64));
        assert_eq!(shares(Some(1 << 20)), (256, 16, 2));
    }
}
