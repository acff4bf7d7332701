//! The namespaces that a program runs in: its owner's, or those of a machine of the lab.
//! Deliberately not here: which machines there are (`lab`).

use std::fs;
use std::path::Path;
use std::process::Command;

/// Where a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Surroundings {
    /// Beside its owner.
    Ours,
    /// In the network of that process; files and process ids are its owner's.
    NetworkOf(u32),
    /// In all namespaces of that process.
    MachineOf(u32),
    /// As the first process of namespaces of its own. When it ends, so do they, and with them
    /// every process, mount, interface and firewall rule in them.
    New,
}

impl Surroundings {
    /// The command that runs the program there; its arguments are still to be added.
    pub(super) fn command(self, program: &Path) -> Command {
        let (launcher, arguments) = match self {
            Self::Ours => return Command::new(program),
            // Not `ip netns exec`: it mounts another /sys, and a kubelet finds no cgroups then.
            Self::NetworkOf(id) => ("nsenter", vec![format!("--net=/proc/{id}/ns/net")]),
            Self::MachineOf(id) => ("nsenter", enter(id)),
            Self::New => ("unshare", leave()),
        };
        let mut command = Command::new(launcher);
        command.args(arguments).arg("--").arg(program);
        command
    }

    /// Whether another process, which only waits, is between the owner and the program: who
    /// enters a process namespace can only have its children there.
    pub(super) fn has_go_between(self) -> bool {
        matches!(self, Self::MachineOf(_) | Self::New)
    }

    /// The program's own process, given the one that its owner started.
    pub(super) fn main_process(self, started: u32) -> Option<u32> {
        if !self.has_go_between() {
            return Some(started);
        }
        let children = fs::read_to_string(format!("/proc/{started}/task/{started}/children"));
        children.ok()?.split_whitespace().next()?.parse().ok()
    }
}

fn enter(id: u32) -> Vec<String> {
    let target = format!("--target={id}");
    [target.as_str(), "--net", "--mount", "--pid", "--uts", "--ipc"].map(String::from).to_vec()
}

fn leave() -> Vec<String> {
    [
        "--net",
        "--mount",
        "--pid",
        "--uts",
        "--ipc",
        "--propagation=private",
        "--fork",
        // It ends with the go-between, which ends with its owner.
        "--kill-child=KILL",
    ]
    .map(String::from)
    .to_vec()
}
