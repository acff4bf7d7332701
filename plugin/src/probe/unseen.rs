//! An answer in which nothing was looked at, from which tests make theirs.

use opensdn_node_probe::{FORMAT, KIND, Kernel, Names, NodeFindings, Seen};

/// Of a pod with this address.
pub(crate) fn unseen(address: &str) -> NodeFindings {
    fn unknown<T>() -> Seen<T> {
        Seen::Unknown("it is hidden".to_owned())
    }
    NodeFindings {
        kind: KIND.to_owned(),
        format: FORMAT,
        version: "0.1.0".to_owned(),
        addresses: vec![address.parse().unwrap()],
        ports: vec![],
        kernel: Kernel {
            release: unknown(),
            loaded: unknown(),
            files: unknown(),
            headers: unknown(),
            secure_boot: unknown(),
            only_signed: unknown(),
            lockdown: unknown(),
        },
        interfaces: unknown(),
        routes: unknown(),
        cni: unknown(),
        directories: vec![],
        huge_pages: unknown(),
        sysctls: vec![],
        swaps: unknown(),
        synchronised: unknown(),
        firewall: unknown(),
        modules: vec![],
        names: Names::default(),
        services: vec![],
        local: None,
        devices: None,
        targets: vec![],
        matrix: None,
        sink: None,
        speed: None,
        listens: None,
    }
}
