//! How services are: what their objects say of themselves, and what their pods are.

mod of_objects;

pub use of_objects::trouble;

use std::collections::{BTreeMap, BTreeSet};

use opensdn_crds::upgrade::{ImageChange, ServiceHealth};
use time::OffsetDateTime;

use crate::daemons::Daemons;
use crate::time::text;

/// How a service is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// Kind and name: `Zookeeper/zookeeper1`.
    pub id: String,
    /// Whether it is as its object says, all of its pods included.
    pub is_ready: bool,
    /// What it waits for, where it is not.
    pub message: String,
    /// The images that its object says, by container.
    pub images: BTreeMap<String, String>,
    /// Its pods.
    pub pods: Vec<Pod>,
    /// What its daemons say of themselves, where they are asked.
    pub daemons: Option<Daemons>,
}

/// How a pod is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Where it runs.
    pub node: Option<String>,
    /// The Secrets with the logins of registries.
    pub pull_secrets: Vec<String>,
    /// The images of its containers, the init containers included.
    pub images: BTreeMap<String, String>,
    /// When it was made.
    pub created: Option<OffsetDateTime>,
    /// When it was asked to end.
    pub asked_to_end: Option<OffsetDateTime>,
    /// What it waits for before it goes.
    pub finalizers: Vec<String>,
    /// Whether it is ready.
    pub is_ready: bool,
    /// Since when it is ready, or is not.
    pub ready_since: Option<OffsetDateTime>,
    /// How often its containers were restarted.
    pub restarts: i64,
    /// The containers that run, or have run.
    pub ran: BTreeSet<String>,
    /// Why it is not ready, where something is wrong with it.
    pub trouble: Option<String>,
}

/// To which images a pod is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Those that it gets.
    New,
    /// Those that it had.
    Earlier,
}

impl Side {
    /// The one that it is not.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::New => Self::Earlier,
            Self::Earlier => Self::New,
        }
    }

    /// The image.
    #[must_use]
    pub fn of(self, change: &ImageChange) -> &str {
        match self {
            Self::New => &change.to,
            Self::Earlier => &change.from,
        }
    }
}

impl Pod {
    /// Whether it was made with one of these images. All of a pod come together.
    #[must_use]
    pub fn has(&self, images: &[ImageChange], side: Side) -> bool {
        images.iter().any(|change| {
            self.images.get(&change.container).is_some_and(|image| image == side.of(change))
        })
    }

    /// Why it is not ready.
    #[must_use]
    pub fn why(&self) -> String {
        if let Some(since) = self.asked_to_end {
            let node =
                self.node.as_ref().map(|node| format!(" on node {node}")).unwrap_or_default();
            let finalizers = match self.finalizers.as_slice() {
                [] => String::new(),
                all => format!("; its finalizers: {}", all.join(", ")),
            };
            return format!("it has been ending since {}{node}{finalizers}", text(since));
        }
        match (&self.trouble, &self.node) {
            (Some(trouble), _) => trouble.clone(),
            (None, Some(node)) => format!("it is not ready, on node {node}"),
            (None, None) => "it is not ready yet".to_owned(),
        }
    }
}

impl Service {
    /// Whether its object says these images, and it is as the object says: the operator has replaced all its pods. One whose
    /// pods are left as they are by a user says so, too.
    #[must_use]
    pub fn is_done(&self, images: &[ImageChange], side: Side) -> bool {
        let is_left = |pod: &Pod| pod.has(images, side.other()) && !pod.has(images, side);
        self.is_ready && self.says(images, side) && !self.pods.iter().any(is_left)
    }

    /// Whether its object says these images.
    #[must_use]
    pub fn says(&self, images: &[ImageChange], side: Side) -> bool {
        images.iter().all(|change| {
            self.images.get(&change.container).is_some_and(|image| image == side.of(change))
        })
    }

    /// Whether a container with one of the new images runs, or has run.
    #[must_use]
    pub fn has_run(&self, images: &[ImageChange]) -> bool {
        self.pods.iter().any(|pod| {
            images.iter().any(|change| {
                pod.ran.contains(&change.container)
                    && pod.images.get(&change.container) == Some(&change.to)
            })
        })
    }

    /// Since when the last of its pods with the images of that side is ready.
    #[must_use]
    pub fn ready_since(&self, images: &[ImageChange], side: Side) -> Option<OffsetDateTime> {
        let ready = self.pods.iter().filter(|pod| pod.is_ready && pod.has(images, side));
        ready.filter_map(|pod| pod.ready_since).max()
    }

    /// How often containers of its pods were restarted.
    #[must_use]
    pub fn restarts(&self) -> i64 {
        self.pods.iter().fold(0, |sum, pod| sum.saturating_add(pod.restarts))
    }

    /// As a snapshot has it.
    #[must_use]
    pub fn health(&self) -> ServiceHealth {
        let daemons = self.daemons.as_ref().filter(|daemons| daemons.have_said());
        ServiceHealth {
            service: self.id.clone(),
            ready: self.is_ready,
            message: (!self.is_ready).then(|| self.message.clone()),
            pods: self.ready_pods(),
            restarts: self.restarts(),
            daemons: daemons.map(Daemons::functional),
            xmpp: daemons.and_then(|daemons| daemons.said.xmpp),
            xmpp_sessions: daemons.and_then(|daemons| daemons.said.xmpp_sessions),
            bgp: daemons.and_then(|daemons| daemons.said.bgp),
        }
    }

    /// How many of its pods are ready.
    #[must_use]
    pub fn ready_pods(&self) -> i64 {
        let ready = self.pods.iter().filter(|pod| pod.is_ready).count();
        i64::try_from(ready).unwrap_or(i64::MAX)
    }

    /// What is the matter with it: of the first pod with trouble, else what the service waits for.
    #[must_use]
    pub fn trouble(&self) -> String {
        let pods = self.pods.iter();
        let first = pods
            .filter(|pod| pod.asked_to_end.is_none())
            .find_map(|pod| Some((&pod.name, pod.trouble.as_ref()?)));
        let away = self.pods.iter().find(|pod| !pod.is_ready);
        match first {
            Some((name, trouble)) => format!("pod {name}: {trouble}"),
            // Of a node that is lost Kubernetes says no more.
            None if away.is_some_and(|pod| pod.node.is_some() || pod.asked_to_end.is_some()) => {
                let away = away.map(|pod| format!("pod {}: {}", pod.name, pod.why()));
                [away.unwrap_or_default(), self.message.clone()].join("; ")
            }
            None if self.is_ready => "its pods have not all been replaced".to_owned(),
            None if self.message.is_empty() => "nothing is known of it yet".to_owned(),
            None => self.message.clone(),
        }
    }
}
