//! The clock of the node, and whether the kernel says that it is synchronised, which chrony, ntpd and systemd-timesyncd tell
//! it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Asks the kernel, and changes nothing.
#[allow(unsafe_code, reason = "a system call that std and rustix lack")]
pub(super) fn is_synchronised() -> Result<bool, String> {
    // SAFETY: the structure is plain numbers, for which zero is a value; `modes` of zero only reads.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a structure of ours for the time of the call.
    let returned = unsafe { libc::adjtimex(&raw mut state) };
    if returned < 0 {
        return Err(format!("failed to ask the kernel: {}", std::io::Error::last_os_error()));
    }
    Ok(state.status & libc::STA_UNSYNC == 0)
}
