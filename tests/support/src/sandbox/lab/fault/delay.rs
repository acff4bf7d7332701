//! Delayed packets: the kernel hands each to a queue (NFQUEUE), and we release it when its time
//! has come. Deliberately not here: which packets, which the rules in `network` say.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::FaultError;
use crate::sandbox::lab::machine::Machine;
use crate::sandbox::lab::netns;

/// The queue's number, in the network of its node only.
pub(super) const QUEUE: u16 = 1;
/// More packets than a test's traffic has on the way at once.
const MOST_WAITING: u32 = 100_000;
/// How soon the end of the fault is noticed when no packet comes.
const IDLE: Duration = Duration::from_millis(20);

// Numbers of linux/netfilter/nfnetlink_queue.h.
const PACKET: u16 = 3 << 8;
const VERDICT: u16 = (3 << 8) | 1;
const CONFIGURE: u16 = (3 << 8) | 2;
const ATTRIBUTE_COMMAND: u16 = 1;
const ATTRIBUTE_PARAMETERS: u16 = 2;
const ATTRIBUTE_LENGTH: u16 = 3;
const ATTRIBUTE_VERDICT: u16 = 2;
const ATTRIBUTE_PACKET: u16 = 1;
const BIND: u8 = 1;
const COPY_NOTHING: u8 = 1;
const ACCEPT: u32 = 1;
const ERROR: u16 = 2;
const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
/// Lengths of the headers of a message and of an attribute.
const HEADER: usize = 20;
const ATTRIBUTE_HEADER: usize = 4;

/// Holds packets up until it is dropped.
pub(super) struct Delay {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Delay {
    /// Holds up each packet that comes to the queue of that machine.
    pub(super) fn start(machine: &Machine, delay: Duration) -> Result<Self, FaultError> {
        let ended = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ended);
        let thread = netns::spawn("lab-delay", machine.process(), open, move |queue| {
            hold_up(&queue, delay, &until);
        });
        match thread {
            Ok(thread) => Ok(Self { ended, thread: Some(thread) }),
            Err(source) => Err(FaultError::Delay { machine: machine.name().to_owned(), source }),
        }
    }
}

impl Drop for Delay {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has ended either way; packets pass without it.
            let _ = thread.join();
        }
    }
}

/// Takes the queue of the network that the thread is in.
fn open() -> io::Result<UnixDatagram> {
    let queue = socket()?;
    queue.set_read_timeout(Some(Duration::from_secs(5)))?;
    let command = [BIND, 0, 0, 2];
    ask(&queue, &message(CONFIGURE, ACKNOWLEDGE, &[(ATTRIBUTE_COMMAND, &command)]))?;
    let mut parameters = 0_u32.to_be_bytes().to_vec();
    parameters.push(COPY_NOTHING);
    let length = MOST_WAITING.to_be_bytes();
    let attributes: [(u16, &[u8]); 2] =
        [(ATTRIBUTE_PARAMETERS, &parameters), (ATTRIBUTE_LENGTH, &length)];
    ask(&queue, &message(CONFIGURE, ACKNOWLEDGE, &attributes))?;
    queue.set_read_timeout(Some(IDLE))?;
    Ok(queue)
}

/// A netlink socket. The type is std's for datagrams of the other family whose calls are the
/// same; without an address they go to the kernel.
#[allow(unsafe_code, reason = "std makes no netlink sockets")]
fn socket() -> io::Result<UnixDatagram> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: the call takes no pointers.
    let descriptor = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_NETFILTER) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, valid and ours alone.
    Ok(UnixDatagram::from(unsafe { OwnedFd::from_raw_fd(descriptor) }))
}

/// Sends a message and waits for the kernel's answer.
fn ask(queue: &UnixDatagram, message: &[u8]) -> io::Result<()> {
    queue.send(message)?;
    let mut buffer = [0; 512];
    let length = queue.recv(&mut buffer)?;
    match answer(buffer.get(..length).unwrap_or_default()) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Releases packets in the order in which they came, each after its time.
fn hold_up(queue: &UnixDatagram, delay: Duration, ended: &AtomicBool) {
    let mut waiting: VecDeque<(Instant, u32)> = VecDeque::new();
    let mut buffer = [0; 4096];
    while !ended.load(Ordering::Relaxed) {
        while let Some((_, packet)) = waiting.pop_front_if(|(due, _)| *due <= Instant::now()) {
            accept(queue, packet);
        }
        let next = waiting.front().map(|(due, _)| due.saturating_duration_since(Instant::now()));
        // A timeout of zero would mean none.
        let patience = next.unwrap_or(IDLE).clamp(Duration::from_micros(100), IDLE);
        let _ = queue.set_read_timeout(Some(patience));
        // Nothing has come in time, or more than the socket holds: what is lost is lost.
        let Ok(length) = queue.recv(&mut buffer) else { continue };
        if let Some(packet) = packet(buffer.get(..length).unwrap_or_default()) {
            waiting.push_back((Instant::now() + delay, packet));
        }
    }
    waiting.into_iter().for_each(|(_, packet)| accept(queue, packet));
}

fn accept(queue: &UnixDatagram, packet: u32) {
    let verdict = [ACCEPT.to_be_bytes(), packet.to_be_bytes()].concat();
    // A packet that the kernel has forgotten meanwhile needs no verdict.
    let _ = queue.send(&message(VERDICT, 0, &[(ATTRIBUTE_VERDICT, &verdict)]));
}

fn message(kind: u16, flags: u16, attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, value) in attributes {
        let length = u16::try_from(ATTRIBUTE_HEADER + value.len()).unwrap_or_default();
        body.extend(length.to_ne_bytes());
        body.extend(name.to_ne_bytes());
        body.extend(*value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    let length = u32::try_from(HEADER + body.len()).unwrap_or_default();
    let mut message = Vec::new();
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((REQUEST | flags).to_ne_bytes());
    // Sequence and sender: the kernel needs neither.
    message.extend([0; 8]);
    // Any family, version 0, the queue.
    message.extend([0, 0]);
    message.extend(QUEUE.to_be_bytes());
    message.extend(body);
    message
}

fn kind(message: &[u8]) -> Option<u16> {
    message.get(4..6)?.try_into().ok().map(u16::from_ne_bytes)
}

/// The code that the kernel answers with: 0, or an error below it.
fn answer(message: &[u8]) -> Option<i32> {
    let code = message.get(16..20)?.try_into().ok().map(i32::from_ne_bytes);
    code.filter(|_| kind(message) == Some(ERROR))
}

/// The id of a packet that the kernel hands over.
fn packet(message: &[u8]) -> Option<u32> {
    if kind(message)? != PACKET {
        return None;
    }
    let mut rest = message.get(HEADER..)?;
    loop {
        let length = usize::from(u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?));
        let name = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?);
        if name == ATTRIBUTE_PACKET {
            return rest.get(4..8)?.try_into().ok().map(u32::from_be_bytes);
        }
        rest = rest.get(length.max(ATTRIBUTE_HEADER).next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_of_a_packet_is_found_behind_other_attributes() {
        let id = [7_u32.to_be_bytes(), [8, 0, 1, 0]].concat();
        let handed = message(PACKET, 0, &[(10, &[1, 2, 3]), (ATTRIBUTE_PACKET, &id)]);
        assert_eq!(packet(&handed), Some(7));
        assert_eq!(packet(&message(VERDICT, 0, &[(ATTRIBUTE_PACKET, &id)])), None);
        assert_eq!(packet(&message(PACKET, 0, &[])), None);
    }

    #[test]
    fn message_tells_its_length_and_its_queue() {
        let verdict = message(VERDICT, 0, &[(ATTRIBUTE_VERDICT, &[0; 8])]);
        assert_eq!(verdict.len(), HEADER + ATTRIBUTE_HEADER + 8);
        assert_eq!(verdict[..4], 32_u32.to_ne_bytes());
        assert_eq!(verdict[16..20], [0, 0, 0, 1]);
    }
}
