//! What the objects of a component are built from.

use std::collections::BTreeMap;

use opensdn_crds::pod::{LogLevel, PodConfiguration};
use opensdn_pki::KeyKind;
use time::OffsetDateTime;

use crate::canary::Pace;
use crate::component::Description;
use crate::ensemble::record::Record;
use crate::kind::{Kind, Workload};
use crate::names::{self, Instance};
use crate::node::Node;
use crate::pod::Pod;

/// What a component's objects are built from.
#[derive(Clone, Debug)]
pub struct Valid {
    /// What it is called.
    pub instance: Instance,
    /// What keeps its pods.
    pub workload: Workload,
    /// What its pods are made of.
    pub description: Description,
    /// Where its pods run.
    pub common: PodConfiguration,
    /// The images by the names of containers, with commands that replace ours.
    pub images: BTreeMap<&'static str, Image>,
    /// The nodes on which its pods run, by name.
    pub nodes: Vec<Node>,
    /// The addresses for which there are files and certificates, in order.
    pub addresses: Vec<String>,
    /// Why no pod is to run.
    pub stopped: Option<String>,
    /// What has to be there before its pods are started for the first time.
    pub waits_for: Option<String>,
    /// What pods wait for that come later.
    pub lacks_certificates: Option<String>,
    /// What the renewal of certificates waits for, while those in use are good.
    pub renewal: Option<String>,
    /// Of a service that counts its members.
    pub members: Option<Members>,
    /// Where its pods are, if each node has a volume.
    pub homes: Option<Vec<Home>>,
    /// Since when pods at an address have to be, of a component that reads certificates only when it starts.
    pub certificates_since: BTreeMap<String, OffsetDateTime>,
    /// When the first of its certificates expires, as far as that was looked at.
    pub certificates_expire: Option<OffsetDateTime>,
    /// Of what kind the keys of its certificates are.
    pub key: KeyKind,
    /// Why it is not known of which release the images are.
    pub doubt: Option<String>,
    /// Why the CA that a user gives is not used, where the one before it is instead.
    pub refused_ca: Option<String>,
    /// Why volumes are not as the settings say, while all else is.
    pub refused_volume: Option<String>,
    /// Why tolerations are not as the settings say, and its DaemonSet stays as it is.
    pub refused_tolerations: Option<String>,
    /// How an Upgrade has its pods replaced.
    pub pace: Pace,
    /// Whether its pods stay as tf-operator has made them.
    pub as_before: bool,
}

/// What is known of the members of a service that counts them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// Numbers, and how many there are to be.
    pub record: Record,
    /// Whether that has been written before.
    pub is_recorded: bool,
    /// Whether they have had a quorum: from then on nobody starts the service anew.
    pub had_quorum: bool,
    /// What of them is not as it shall be: reason and message.
    pub waits: Option<(&'static str, String)>,
}

/// A node with a volume, and the one pod there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The node.
    pub node: String,
    /// The StatefulSet of the pod.
    pub stateful_set: String,
    /// The volume.
    pub claim: Claim,
    /// Whether its pod ends, and comes back no more.
    pub ends: bool,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its name.
    pub name: String,
    /// The StorageClass, if it is not left to the cluster.
    pub class: Option<String>,
    /// The size, as the API server writes it.
    pub size: String,
}

/// What a container runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The image.
    pub image: String,
    /// What runs in the place of the operator's script.
    pub command: Option<Vec<String>>,
}

impl Valid {
    /// The Secret with its passwords.
    #[must_use]
    pub fn own_secret(&self) -> String {
        names::own_secret(&self.instance.name, self.description.own_secret)
    }

    /// What keeps its pods, by kind and name.
    #[must_use]
    pub fn keeper(&self) -> (Kind, String) {
        self.instance.keeper(self.workload)
    }

    /// How many pods there are to be.
    #[must_use]
    pub fn replicas(&self) -> i32 {
        if self.stopped.is_some() {
            return 0;
        }
        i32::try_from(self.nodes.len()).unwrap_or(i32::MAX)
    }

    /// How many pods there are to be now: of a service that counts its members no more than are to be started yet.
    #[must_use]
    pub fn replicas_now(&self) -> i32 {
        match &self.members {
            Some(members) if self.stopped.is_none() => members.record.replicas,
            _ => self.replicas(),
        }
    }

    /// How many members there are now.
    #[must_use]
    pub fn members_now(&self) -> i32 {
        match &self.members {
            Some(members) if self.stopped.is_none() => members.record.members,
            _ => self.replicas(),
        }
    }

    /// How many may be missing so that the service still works.
    #[must_use]
    pub fn spare(&self) -> i32 {
        let said = self.members.as_ref().and_then(|members| members.record.spare);
        match said.filter(|_| self.stopped.is_none()) {
            Some(said) => said.clamp(0, (self.members_now() - 1).max(0)),
            None => self.usually_spare(),
        }
    }

    /// The same by their number alone: also while what is stored is not yet kept as often as it is to be.
    #[must_use]
    pub fn usually_spare(&self) -> i32 {
        let members = self.members_now();
        members - self.description.quorum.of(members)
    }

    /// Of a service whose members have had a quorum: how many more of them may fail; below zero it has none.
    #[must_use]
    pub fn margin(&self, pods: &[Pod]) -> Option<i32> {
        let members = self.members.as_ref().filter(|one| one.had_quorum && self.stopped.is_none());
        let all = members?.record.members;
        let ready = pods.iter().filter(|pod| pod.is_ready).count();
        // One that comes is ready before it counts.
        let ready = i32::try_from(ready).unwrap_or(i32::MAX).min(all);
        Some(self.spare() - (all - ready))
    }

    /// The node with that address; the address itself where there is none any more.
    #[must_use]
    pub fn host_of<'a>(&'a self, address: &'a str) -> &'a str {
        let is = |node: &&Node| node.address.as_deref() == Some(address);
        self.nodes.iter().find(is).map_or(address, |node| &node.name)
    }

    /// Whether it runs where it is not to run: the node has lost its labels. A StatefulSet takes the last away
    /// when it shrinks, wherever that is.
    #[must_use]
    pub fn is_misplaced(&self, pod: &Pod) -> bool {
        // A DaemonSet takes away itself what is where it is not to run.
        self.workload == Workload::StatefulSet
            && !pod.node.is_empty()
            && !self.nodes.is_empty()
            && self.nodes.iter().all(|node| node.name != pod.node)
    }

    /// The pod that is to move next: one at a time, when there are no more pods than nodes and nothing else is
    /// missing.
    #[must_use]
    pub fn to_be_moved<'a>(&self, pods: &'a [Pod]) -> Option<&'a Pod> {
        let is_settled = i32::try_from(pods.len()) == Ok(self.replicas())
            && pods.iter().all(|pod| !pod.is_going);
        let mut misplaced = pods.iter().filter(|pod| self.is_misplaced(pod));
        let others_are_ready =
            pods.iter().filter(|pod| !self.is_misplaced(pod)).all(|pod| pod.is_ready);
        misplaced.next().filter(|_| is_settled && others_are_ready)
    }

    /// The level of the log, as daemons of OpenSDN spell it.
    #[must_use]
    pub fn log_level(&self) -> &'static str {
        match self.common.log_level {
            Some(LogLevel::Debug) => "SYS_DEBUG",
            Some(LogLevel::Warning) => "SYS_WARN",
            Some(LogLevel::Error) => "SYS_ERR",
            Some(LogLevel::Critical) => "SYS_CRIT",
            Some(LogLevel::None) => "none",
            Some(LogLevel::Info) | None => "SYS_INFO",
        }
    }

    /// The same, as programs in Java spell it.
    #[must_use]
    pub fn log_level_name(&self) -> &'static str {
        match self.common.log_level {
            Some(LogLevel::Debug) => "DEBUG",
            Some(LogLevel::Warning) => "WARN",
            Some(LogLevel::Error) => "ERROR",
            Some(LogLevel::Critical) => "FATAL",
            Some(LogLevel::None) => "OFF",
            Some(LogLevel::Info) | None => "INFO",
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;
    use crate::component::Given;
    use crate::component::Quorum;
    use crate::components::COMPONENTS;
    use crate::peers::Peers;

    /// On nodes `a` and `b`.
    pub(crate) fn valid() -> Valid {
        let given = Given {
            name: "n",
            settings: &json!({}),
            common: &PodConfiguration::default(),
            peers: &Peers::default(),
            cluster: &crate::cluster::Cluster::default(),
            release: crate::release::Release::default(),
            profiles: &[],
        };
        let description = COMPONENTS.first().unwrap().describe(&given).unwrap();
        let node = |name: &str| Node {
            name: name.into(),
            labels: BTreeMap::new(),
            address: None,
            others: Vec::new(),
            drained_for: None,
            is_lost: false,
            taints: Vec::new(),
        };
        Valid {
            instance: Instance { word: "w".into(), name: "n".into() },
            workload: Workload::StatefulSet,
            description,
            common: PodConfiguration::default(),
            images: BTreeMap::new(),
            nodes: vec![node("a"), node("b")],
            addresses: Vec::new(),
            stopped: None,
            waits_for: None,
            lacks_certificates: None,
            renewal: None,
            members: None,
            homes: None,
            certificates_since: BTreeMap::new(),
            certificates_expire: None,
            key: KeyKind::default(),
            doubt: None,
            refused_ca: None,
            refused_volume: None,
            refused_tolerations: None,
            as_before: false,
            pace: Pace::default(),
        }
    }

    fn pod(name: &str, node: &str) -> Pod {
        let (name, node) = (name.to_owned(), node.to_owned());
        Pod {
            name,
            images: BTreeMap::new(),
            node,
            keeper: None,
            address: None,
            is_ready: true,
            trouble: None,
            is_going: false,
            generation: None,
            revision: None,
            has_lost_data: false,
            created: None,
        }
    }

    #[test]
    fn the_margin_is_how_many_more_members_may_fail() {
        let members = |members, had_quorum| {
            let record = Record { members, replicas: 5, ..Record::default() };
            Some(Members { record, is_recorded: true, had_quorum, waits: None })
        };
        let ready = |count: usize| vec![pod("0", "a"); count];
        let three = Valid { members: members(3, true), ..valid() };
        let margins: Vec<_> = (0..=4).map(|count| three.margin(&ready(count))).collect();
        assert_eq!(margins, [Some(-2), Some(-1), Some(0), Some(1), Some(1)]);
        assert_eq!(valid().margin(&ready(3)), None, "it counts no members");
        let new = Valid { members: members(3, false), ..valid() };
        assert_eq!(new.margin(&ready(3)), None, "nothing is stored yet");
        let stopped = Valid { stopped: Some("why".into()), ..three.clone() };
        assert_eq!(stopped.margin(&ready(0)), None);
        let mut copies = Valid { members: members(5, true), ..valid() };
        copies.description.quorum = Quorum::MostCopies(3);
        assert_eq!((copies.margin(&ready(5)), copies.margin(&ready(3))), (Some(1), Some(-1)));
        let mut said = |spare: i32| {
            if let Some(members) = &mut copies.members {
                members.record.spare = Some(spare);
            }
            [5, 4, 3].map(|count| copies.margin(&ready(count)).unwrap())
        };
        assert_eq!(said(2), [2, 1, 0], "made with five, each row is kept five times");
        assert_eq!(said(0), [0, -1, -2], "a copy is still to be made");
        assert_eq!(said(7), [4, 3, 2], "one is needed");
    }

    fn moved(valid: &Valid, pods: &[Pod]) -> Option<String> {
        valid.to_be_moved(pods).map(|pod| pod.name.clone())
    }

    #[test]
    fn a_pod_moves_that_is_left_where_it_is_not_to_run() {
        let pods = [pod("0", "a"), pod("1", "gone")];
        assert_eq!(moved(&valid(), &pods), Some("1".into()));
        assert_eq!(moved(&valid(), &[pod("0", "a"), pod("1", "b")]), None);
        assert_eq!(moved(&valid(), &[pod("0", "a"), pod("1", "")]), None, "not scheduled yet");
    }

    #[test]
    fn one_moves_at_a_time_and_only_while_nothing_else_is_missing() {
        let all = [pod("0", "x"), pod("1", "y")];
        assert_eq!(moved(&valid(), &all), Some("0".into()), "the second is for later");
        let shrinking = [pod("0", "a"), pod("1", "x"), pod("2", "b")];
        assert_eq!(moved(&valid(), &shrinking), None, "the StatefulSet takes one away first");
        let going = [Pod { is_going: true, ..pod("0", "a") }, pod("1", "x")];
        assert_eq!(moved(&valid(), &going), None);
        let sick = [Pod { is_ready: false, ..pod("0", "a") }, pod("1", "x")];
        assert_eq!(moved(&valid(), &sick), None);
        let itself = [pod("0", "a"), Pod { is_ready: false, ..pod("1", "x") }];
        assert_eq!(moved(&valid(), &itself), Some("1".into()));
    }

    #[test]
    fn without_a_node_nothing_moves() {
        let nowhere = Valid { nodes: Vec::new(), ..valid() };
        assert_eq!(moved(&nowhere, &[pod("0", "a")]), None);
    }
}
