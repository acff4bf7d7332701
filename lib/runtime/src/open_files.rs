//! The limit of open files. Each connection is one, and the usual soft limit of 1,024 exists for
//! programs that use select(2).

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit to the hard one. A process for which that fails works with fewer
/// connections.
pub fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "failed to raise the limit of open files");
    }
}
