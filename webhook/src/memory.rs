//! What may be held at once, from what the process may take in all: a stranger, a caller and a policy
//! together must not get the container killed.
//!
//! | share | of |
//! |---|---|
//! | an eighth | connections, of 48 KiB each at most |
//! | an eighth | bodies of reviews |
//! | an eighth | evaluations, each of what one may take |
//! | the rest | the process itself, lookup caches, and one compilation beside it |

/// What one connection takes at most: buffers of the socket, of TLS and of a head.
/// `a_crowd_of_half_sent_heads_stays_within_its_share` measures it.
pub(crate) const CONNECTION_BYTES: u64 = 48 << 10;
const SHARE: u64 = 8;
/// What is enough for any API server where memory is no limit.
const MOST: Shares = Shares { connections: 10_000, bodies_mib: 256, evaluations: 64 };
/// Less than this does not serve one API server.
const LEAST: Shares = Shares { connections: 256, bodies_mib: 16, evaluations: 2 };

/// How much of what may be held at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    pub(crate) connections: u64,
    pub(crate) bodies_mib: u64,
    pub(crate) evaluations: u64,
}

impl Shares {
    /// Of `limit` bytes in all, none meaning no limit; one evaluation takes `evaluation_mib` at most.
    pub(crate) fn of(limit: Option<u64>, evaluation_mib: u64) -> Self {
        let Some(limit) = limit else { return MOST };
        let share = limit / SHARE;
        let share_mib = share >> 20;
        Self {
            connections: (share / CONNECTION_BYTES).clamp(LEAST.connections, MOST.connections),
            bodies_mib: share_mib.clamp(LEAST.bodies_mib, MOST.bodies_mib),
            evaluations: (share_mib / evaluation_mib.max(1))
                .clamp(LEAST.evaluations, MOST.evaluations),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_a_pod_fit_its_limit_and_leave_half_of_it() {
        let shares = Shares::of(Some(512 << 20), 16);
        assert_eq!(shares, Shares { connections: 1_365, bodies_mib: 64, evaluations: 4 });
        let connections = (shares.connections * CONNECTION_BYTES) >> 20;
        assert!(connections + shares.bodies_mib + shares.evaluations * 16 <= 256);
    }

    #[test]
    fn much_memory_gives_no_more_than_is_useful_and_little_no_less_than_works() {
        assert_eq!(Shares::of(None, 16), MOST);
        assert_eq!(Shares::of(Some(1 << 40), 16), MOST);
        assert_eq!(Shares::of(Some(1 << 20), 16), LEAST);
    }
}
