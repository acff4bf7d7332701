//! Cables pulled, packets dropped and held up. Everything is done on the machines' own networks,
//! so nothing of it can outlive them.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use super::delay::{Delay, QUEUE};
use super::{Fault, FaultError};
use crate::sandbox::control_plane::LAB_API_SERVER_PORT;
use crate::sandbox::lab::addresses::CONTROL;
use crate::sandbox::lab::machine::Machine;
use crate::sandbox::lab::{Lab, LabError};

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Party<'a> {
    /// A node with its pods, by name.
    Node(&'a str),
    /// API server, etcd and controllers.
    ControlPlane,
    /// A pod, by its address.
    Pod(Ipv4Addr),
}

/// How bad a link is, both ways.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Link {
    /// How much later each packet arrives, each way.
    pub delay: Duration,
    /// How many packets of a hundred are lost, each way.
    pub loss_percent: f32,
}

impl Lab {
    /// Pulls a node's cable: neither it nor its pods reach anyone else.
    ///
    /// # Errors
    /// When there is no such node.
    pub fn partition(&self, node: &str) -> Result<Fault, FaultError> {
        let node = self.node(node)?.name().to_owned();
        let switch = Arc::clone(&self.network.switch);
        switch.wire("pull a cable", &format!("ip link set {node} down\n"))?;
        Ok(Fault::new(format!("partition of {node}"), move || {
            Ok(switch.wire("plug a cable in", &format!("ip link set {node} up\n")).map(drop)?)
        }))
    }

    /// Drops every packet between two parties, and none else. Two pods cannot be parted.
    ///
    /// # Errors
    /// When there is no such node, or it does not run.
    pub fn partition_pair(&self, one: Party<'_>, other: Party<'_>) -> Result<Fault, FaultError> {
        let what = format!("partition between {one:?} and {other:?}");
        let (machine, addresses) = match (self.machine_of(one)?, self.machine_of(other)?) {
            (Some(machine), _) => (machine, self.addresses_of(other)?),
            (None, Some(machine)) => (machine, self.addresses_of(one)?),
            (None, None) => {
                return Err(FaultError::NoMachine(format!("{one:?}"), format!("{other:?}")));
            }
        };
        let rules: Vec<String> = addresses.iter().flat_map(|address| drop_rules(address)).collect();
        apply(machine, what, rules)
    }

    /// Keeps a node's own programs from the API server: it counts as lost, while its pods run
    /// and reach everyone.
    ///
    /// # Errors
    /// When there is no such node, or it does not run.
    pub fn cut_heartbeats(&self, node: &str) -> Result<Fault, FaultError> {
        let machine = self.require_machine(node)?;
        let rule = format!(
            "mangle OUTPUT --destination {CONTROL} --protocol tcp --dport {LAB_API_SERVER_PORT} --jump DROP"
        );
        apply(machine, format!("cut heartbeats of {node}"), vec![rule])
    }

    /// The API server reaches no pod, as where the network of the pods is broken; pods reach it still.
    ///
    /// # Errors
    /// When the control plane does not run.
    pub fn keep_api_server_from_pods(&self) -> Result<Fault, FaultError> {
        let rules = self.nodes().map(|node| {
            let pods = &node.plan().pods;
            // What it answers to pods passes.
            format!(
                "mangle POSTROUTING --destination {pods} --protocol tcp ! --sport \
                 {LAB_API_SERVER_PORT} --jump DROP"
            )
        });
        let (control, rules) = (Arc::clone(&self.network.control), rules.collect());
        apply(control, "broken network of the pods".to_owned(), rules)
    }

    /// Makes a node's link slow and lossy, for its pods too. Not by `tc netem`, which few small
    /// kernels have.
    ///
    /// # Errors
    /// When there is no such node, it does not run, or the kernel does not hand packets over.
    pub fn degrade(&self, node: &str, link: Link) -> Result<Fault, FaultError> {
        let machine = self.require_machine(node)?;
        let what = format!("{link:?} of {node}");
        let lossy = apply(Arc::clone(&machine), what.clone(), loss_rules(link.loss_percent))?;
        if link.delay.is_zero() {
            return Ok(lossy);
        }
        // In this order: while nothing reads the queue, a packet passes at once.
        let late = Delay::start(&machine, link.delay)?;
        let queued = apply(machine, what.clone(), queue_rules())?;
        Ok(Fault::new(what, move || {
            let undone = [queued.undo(), lossy.undo()];
            drop(late);
            undone.into_iter().collect()
        }))
    }

    pub(super) fn require_machine(&self, node: &str) -> Result<Arc<Machine>, FaultError> {
        Ok(Arc::clone(&self.node(node)?.running()?.machine))
    }

    fn machine_of(&self, party: Party<'_>) -> Result<Option<Arc<Machine>>, FaultError> {
        Ok(match party {
            Party::Node(name) => Some(self.require_machine(name)?),
            Party::ControlPlane => Some(Arc::clone(&self.network.control)),
            Party::Pod(_) => None,
        })
    }

    fn addresses_of(&self, party: Party<'_>) -> Result<Vec<String>, LabError> {
        Ok(match party {
            Party::Node(name) => {
                let plan = self.node(name)?.plan();
                vec![plan.address.to_string(), plan.pods.clone()]
            }
            Party::ControlPlane => vec![CONTROL.to_string()],
            Party::Pod(address) => vec![address.to_string()],
        })
    }
}

/// What comes from there is dropped before anything looks at it; what goes there, after
/// kube-proxy has turned a service's address into a pod's.
fn drop_rules(address: &str) -> [String; 2] {
    [
        format!("raw PREROUTING --source {address} --jump DROP"),
        format!("mangle POSTROUTING --destination {address} --jump DROP"),
    ]
}

fn loss_rules(percent: f32) -> Vec<String> {
    if percent <= 0.0 {
        return Vec::new();
    }
    let chance = f64::from(percent / 100.0).min(1.0);
    let random = format!("--match statistic --mode random --probability {chance:.4} --jump DROP");
    vec![
        format!("raw PREROUTING --in-interface eth0 {random}"),
        format!("mangle POSTROUTING --out-interface eth0 {random}"),
    ]
}

/// What comes in and what goes out by the cable is handed to [`Delay`].
fn queue_rules() -> Vec<String> {
    let queue = format!("--jump NFQUEUE --queue-num {QUEUE} --queue-bypass");
    vec![
        format!("raw PREROUTING --in-interface eth0 {queue}"),
        format!("mangle POSTROUTING --out-interface eth0 {queue}"),
    ]
}

/// Rules are `TABLE CHAIN MATCH…`.
pub(super) fn apply(
    machine: Arc<Machine>,
    what: String,
    rules: Vec<String>,
) -> Result<Fault, FaultError> {
    machine.run(&format!("begin {what}"), &iptables("--insert", &rules))?;
    let name = what.clone();
    Ok(Fault::new(what, move || {
        Ok(machine.run(&format!("end {name}"), &iptables("--delete", &rules)).map(drop)?)
    }))
}

fn iptables(verb: &str, rules: &[String]) -> String {
    let lines = rules.iter().filter_map(|rule| {
        let (table, rest) = rule.split_once(' ')?;
        Some(format!("iptables --wait --table {table} {verb} {rest}\n"))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inserted_is_what_is_deleted() {
        let rules = drop_rules("10.90.0.11").to_vec();
        let insert = iptables("--insert", &rules);
        assert_eq!(insert.replace("--insert", "--delete"), iptables("--delete", &rules));
        assert!(insert.starts_with("iptables --wait --table raw --insert PREROUTING --source"));
    }

    #[test]
    fn link_that_loses_nothing_needs_no_rule() {
        assert!(loss_rules(0.0).is_empty());
        assert!(loss_rules(30.0).iter().all(|rule| rule.contains("--probability 0.3000 ")));
    }
}
