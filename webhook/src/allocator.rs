//! Global allocator of the static (musl) binary. Elsewhere it is the system's.

/// musl's own is made to be small: to read, copy and write a Manager as JSON takes six to ten times
/// as long with it as with glibc's, with one thread and with eight, and as long as with glibc's
/// with this one.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
