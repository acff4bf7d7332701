//! Whether an interface computes checksums of what is sent: what `ethtool -k` calls tx-checksumming. Asked of the kernel
//! for the network that this process is on, which anyone may.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd as _;

/// `ETHTOOL_GTXCSUM` of `linux/ethtool.h`: it reads, and changes nothing.
const GET_TX_CHECKSUMS: u32 = 0x16;

/// `struct ethtool_value` of `linux/ethtool.h`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

#[allow(unsafe_code, reason = "a system call that std and rustix lack")]
pub(super) fn are_computed(interface: &str) -> Result<bool, String> {
    let failed = |error: &dyn std::fmt::Display| format!("failed to ask the kernel: {error}");
    // Any socket will do: the kernel finds the interface by its name.
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| failed(&error))?;
    let mut value = Value { command: GET_TX_CHECKSUMS, data: 0 };
    // SAFETY: the structure is plain numbers and a pointer, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero: the name ends there.
    let room = request.ifr_name.len() - 1;
    if interface.is_empty() || interface.len() > room {
        return Err(format!("{interface:?} is no name of an interface"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request, and the value that it points to, are ours for the time of the call; the kernel writes no more
    // than `struct ethtool_value` for this command.
    let returned =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if returned < 0 {
        return Err(failed(&std::io::Error::last_os_error()));
    }
    Ok(value.data != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_computes_none_that_can_be_wrong_and_what_is_not_there_is_not_known() {
        // The kernel says that loopback does; it never sends to a wire.
        assert_eq!(are_computed("lo"), Ok(true));
        assert!(are_computed("no-such-one").is_err());
        assert!(are_computed("a-name-that-is-too-long").is_err() && are_computed("").is_err());
    }
}
