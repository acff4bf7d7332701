//! Global allocator of the static (musl) program. Elsewhere it is the system's.

/// As in the webhook, and for the same reason: musl's own is several times slower at reading and writing objects.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
