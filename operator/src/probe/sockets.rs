//! Sockets of the node, as /proc/net shows them, and which process has one.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use opensdn_node_probe::{Holder, Transport, WantedPort};

use super::host::Host;

/// The state of a socket of TCP that waits for connections.
const LISTENS: &str = "0A";

/// A socket that has a port.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Socket {
    address: IpAddr,
    port: WantedPort,
    inode: u64,
}

/// The sockets of a node, and whose they are.
pub(super) struct Sockets {
    sockets: Vec<Socket>,
    /// Why some are missing.
    missing: Option<String>,
}

impl Sockets {
    pub(super) fn of(host: &Host) -> Self {
        let mut all = Self { sockets: Vec::new(), missing: None };
        let tables = [
            ("tcp", Transport::Tcp),
            ("tcp6", Transport::Tcp),
            ("udp", Transport::Udp),
            ("udp6", Transport::Udp),
        ];
        for (name, transport) in tables {
            match host.text(&format!("/proc/net/{name}")) {
                Ok(Some(table)) => {
                    all.sockets
                        .extend(table.lines().skip(1).filter_map(|line| socket(line, transport)));
                }
                // Without IPv6 there is no table of it.
                Ok(None) => {}
                Err(why) => all.missing = Some(why),
            }
        }
        all
    }

    /// Who has the port on the address.
    pub(super) fn holder(&self, host: &Host, port: WantedPort, address: IpAddr) -> Holder {
        let has = |socket: &&Socket| {
            let is_there = socket.address == address || socket.address.is_unspecified();
            socket.port == port && is_there
        };
        let Some(socket) = self.sockets.iter().find(has) else {
            let why = self.missing.clone();
            return Holder::Hidden(
                why.unwrap_or_else(|| "/proc/net shows no socket with it".to_owned()),
            );
        };
        if socket.inode == 0 {
            return Holder::Kernel;
        }
        process(host, socket.inode)
    }
}

/// A line of such a table: `0: 0100007F:0035 00000000:0000 0A … inode`.
fn socket(line: &str, transport: Transport) -> Option<Socket> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    if transport == Transport::Tcp && *fields.get(3)? != LISTENS {
        return None;
    }
    let (address, port) = fields.get(1)?.split_once(':')?;
    let number = u16::from_str_radix(port, 16).ok()?;
    Some(Socket {
        address: address_of(address)?,
        port: WantedPort { number, transport },
        inode: fields.get(9)?.parse().ok()?,
    })
}

/// Each four bytes as one number of this machine.
fn address_of(hex: &str) -> Option<IpAddr> {
    let words: Option<Vec<u32>> = (0..hex.len() / 8)
        .map(|at| hex.get(at * 8..at * 8 + 8).and_then(|word| u32::from_str_radix(word, 16).ok()))
        .collect();
    let bytes: Vec<u8> = words?.into_iter().flat_map(u32::to_ne_bytes).collect();
    if let Ok(four) = <[u8; 4]>::try_from(bytes.as_slice()) {
        return Some(Ipv4Addr::from(four).into());
    }
    let sixteen = <[u8; 16]>::try_from(bytes.as_slice()).ok()?;
    // A socket of IPv6 that has an address of IPv4 is on that.
    Some(Ipv6Addr::from(sixteen).to_canonical())
}

/// The process that has the socket open.
fn process(host: &Host, inode: u64) -> Holder {
    let wanted = format!("socket:[{inode}]");
    let processes = match host.names("/proc") {
        Ok(names) => names.unwrap_or_default(),
        Err(why) => return Holder::Hidden(why),
    };
    let mut hidden = 0;
    for pid in processes.iter().filter_map(|name| name.parse::<u32>().ok()) {
        let Ok(open) = fs::read_dir(host.path(&format!("/proc/{pid}/fd"))) else {
            hidden += 1;
            continue;
        };
        let mut links =
            open.filter_map(Result::ok).filter_map(|one| fs::read_link(one.path()).ok());
        if links.any(|link| link.as_os_str() == wanted.as_str()) {
            let text = |name: &str| {
                host.text(&format!("/proc/{pid}/{name}")).ok().flatten().unwrap_or_default()
            };
            let program = text("comm").trim().to_owned();
            return Holder::Process { program, pid, pod: pod_of(&text("cgroup")) };
        }
    }
    Holder::Hidden(if hidden > 0 {
        format!("what {hidden} processes have open may not be seen")
    } else {
        "no process has its socket open".to_owned()
    })
}

/// The UID of the pod in whose cgroup a process is: `…/kubepods-burstable-pod0a1b_….slice/…`, with `-` or `_` in it.
fn pod_of(cgroup: &str) -> Option<String> {
    const LENGTH: usize = 36;
    cgroup.match_indices("pod").find_map(|(at, word)| {
        let start = at + word.len();
        let uid = cgroup.get(start..start + LENGTH)?.replace('_', "-");
        let is_uid = uid.char_indices().all(|(at, one)| match at {
            8 | 13 | 18 | 23 => one == '-',
            _ => one.is_ascii_hexdigit(),
        });
        is_uid.then_some(uid)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::node;
    use super::*;

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 0100007F:2383 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0\n   1: 0100007F:0016 0100007F:9000 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 100 0 0 10 0\n";
    const TCP6: &str = "  sl\n   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0 100 0 0 10 0\n";
    const UDP: &str = "  sl\n   0: 00000000:12B5 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 0 2 0 0\n";

    fn tcp(number: u16) -> WantedPort {
        WantedPort { number, transport: Transport::Tcp }
    }

    #[test]
    fn a_socket_is_found_with_its_process_and_its_pod() {
        let cgroup = "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b2c3d_0a1b_0a1b_0a1b_0a1b2c3d4e5f.slice/cri-containerd-1.scope\n";
        let (folder, host) = node(&[
            ("proc/net/tcp", TCP),
            ("proc/net/tcp6", TCP6),
            ("proc/net/udp", UDP),
            ("proc/77/comm", "calico-node\n"),
            ("proc/77/cgroup", cgroup),
            ("proc/77/fd/x", ""),
        ]);
        std::os::unix::fs::symlink("socket:[4711]", folder.path().join("proc/77/fd/3")).unwrap();
        let sockets = Sockets::of(&host);
        let local: IpAddr = "127.0.0.1".parse().unwrap();
        let pod = Some("0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f".to_owned());
        let held = Holder::Process { program: "calico-node".to_owned(), pid: 77, pod };
        assert_eq!(sockets.holder(&host, tcp(9091), local), held);
        let of_all = sockets.holder(&host, tcp(8080), local);
        assert_eq!(of_all, Holder::Hidden("no process has its socket open".to_owned()));
        let vxlan = WantedPort { number: 4789, transport: Transport::Udp };
        assert_eq!(sockets.holder(&host, vxlan, local), Holder::Kernel);
        // Connections have ports too, and are no reason that nothing can listen.
        let ssh = sockets.holder(&host, tcp(22), local);
        assert_eq!(ssh, Holder::Hidden("/proc/net shows no socket with it".to_owned()));
    }

    #[test]
    fn a_process_outside_of_pods_has_none() {
        assert_eq!(pod_of("0::/system.slice/podman.service\n"), None);
        let dashes = "/kubepods/besteffort/pod0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f/abc";
        assert_eq!(pod_of(dashes).as_deref(), Some("0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"));
    }
}
