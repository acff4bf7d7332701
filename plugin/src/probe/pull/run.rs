//! A run that pulls images: pods in the namespaces of components, as the Secrets for registries are there, or, where these
//! namespaces are not there yet, in that of the run. They are removed whatever happens: by this run, and where it was killed
//! by the cluster, as they belong to the namespace of the run, which the next run removes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use tokio::time::{Instant, sleep};

use super::super::requests::Requests;
use super::super::run::{AT_ONCE, Asking, Run};
use super::pods::{Owner, Said, Waits, Wanted, late, pod, said, selector};
use super::{AllPulled, On, Pull, Pulled, Pulls, plan};
use crate::checks::world::World;
use crate::exit::Failure;
use crate::probe::Nodes;
use crate::snapshot::{Read, name};
use crate::ui::Ui;

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// So long removing pods is tried.
const REMOVAL: Duration = Duration::from_secs(15);
/// What is said of a try without Secrets.
const ABSENT: &str = "its namespace is not there yet, and with it no Secret for the registry";

/// How images are pulled.
pub(crate) struct Pulling {
    /// On which nodes.
    pub(crate) on: On,
    /// How long they have.
    pub(crate) timeout: Duration,
    /// The clock of the API server.
    pub(crate) now: Timestamp,
}

/// What came of a pod's images.
type Found = BTreeMap<String, Pull>;

impl Pulling {
    /// Has nodes pull the images of the components that are to run there.
    ///
    /// # Errors
    /// The user interrupts it; the pods are removed all the same.
    pub(crate) async fn run(
        &self,
        client: &Client,
        world: &World,
        nodes: &Nodes,
        ui: &mut Ui,
    ) -> Result<AllPulled, Failure> {
        let (plan, mut pulled) = plan(world, nodes, self.on);
        if plan.is_empty() {
            return Ok(pulled);
        }
        let run = Run {
            image: String::new(),
            timeout: self.timeout,
            now: self.now,
            needed_by: "--pull",
            at_once: AT_ONCE,
        };
        let (mut wanted, mut namespace) = (Vec::new(), String::new());
        let done = run
            .within(client, ui, async |asking, ui| {
                // Known to what removes them before the first of them is made.
                asking.namespace().clone_into(&mut namespace);
                wanted = pods(world, &plan, &namespace);
                self.pull(asking, &wanted, ui).await
            })
            .await;
        remove(&Requests::new(client), &wanted, &namespace, ui).await;
        let found = done?;
        for (node, pulls) in &plan {
            let of_node = pulled.entry(node.clone()).or_default();
            of_node.alike = pulls.alike;
            note(of_node, node, pulls, (&wanted, &found));
        }
        Ok(pulled)
    }

    /// What came of each of the pods.
    async fn pull(&self, asking: &Asking<'_>, wanted: &[Wanted], ui: &mut Ui) -> Vec<Found> {
        let requests = asking.requests();
        let owner = Owner { namespace: asking.namespace(), uid: asking.uid() };
        let mut pods = Vec::with_capacity(wanted.len());
        for one in wanted {
            let made = requests.create_pod(&one.namespace, &pod(one, owner, self.timeout)).await;
            pods.push(Open::new(one, made.err()));
        }
        let end = Instant::now() + self.timeout;
        let mut last = String::new();
        while pods.iter().any(Open::is_open) && Instant::now() < end {
            look(requests, &selector(owner.namespace), &mut pods).await;
            let open = pods.iter().map(|one| one.open.len()).sum::<usize>();
            let all = pods.iter().map(|one| one.wanted.images.len()).sum::<usize>();
            let text = format!("pulling images on nodes: {} of {all}", all - open);
            if text != last {
                ui.progress(&text);
                last = text;
            }
            sleep(POLL_INTERVAL).await;
        }
        pods.into_iter().map(|one| one.finish(self.timeout)).collect()
    }
}

/// A pod with images of which it is not known yet.
struct Open<'a> {
    wanted: &'a Wanted,
    /// By their numbers, what they wait for.
    open: BTreeMap<usize, Waits>,
    found: Found,
}

impl<'a> Open<'a> {
    fn new(wanted: &'a Wanted, not_made: Option<String>) -> Self {
        let mut one = Self { wanted, open: BTreeMap::new(), found: Found::new() };
        for (number, image) in wanted.images.iter().enumerate() {
            match &not_made {
                Some(why) => drop(one.found.insert(image.clone(), Pull::Unknown(why.clone()))),
                None => {
                    let waits = Waits::Else("no pod was read".to_owned());
                    drop(one.open.insert(number, waits));
                }
            }
        }
        one
    }

    fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    fn see(&mut self, pod: Option<&serde_json::Value>) {
        for (number, before) in std::mem::take(&mut self.open) {
            match said(pod, number, Some(&before)) {
                Said::Settled(pull) => self.settle(number, pull),
                Said::Waits(waits) => drop(self.open.insert(number, waits)),
            }
        }
    }

    fn settle(&mut self, number: usize, pull: Pull) {
        let Some(image) = self.wanted.images.get(number) else { return };
        let pull = match (pull, &self.wanted.without) {
            (Pull::Failed(why), Some(without)) => Pull::Unknown(format!("{without}: {why}")),
            (pull, _) => pull,
        };
        self.found.insert(image.clone(), pull);
    }

    fn finish(mut self, timeout: Duration) -> Found {
        for (number, waits) in std::mem::take(&mut self.open) {
            self.settle(number, late(waits, timeout));
        }
        self.found
    }
}

/// Looks at all pods once.
async fn look(requests: &Requests, selector: &str, pods: &mut [Open<'_>]) {
    let namespaces: BTreeSet<&str> =
        pods.iter().filter(|one| one.is_open()).map(|one| one.wanted.namespace.as_str()).collect();
    for namespace in namespaces {
        // An API server that is away for a moment is asked again.
        let Ok(listed) = requests.selected_pods(namespace, selector).await else { continue };
        for one in pods.iter_mut().filter(|one| one.wanted.namespace == namespace) {
            let wanted = one.wanted;
            one.see(listed.iter().find(|pod| wanted.is(pod)));
        }
    }
}

/// The pods of all nodes: one for each namespace and each of its sets of Secrets.
fn pods(world: &World, plan: &BTreeMap<String, Pulls>, run: &str) -> Vec<Wanted> {
    let is_there = |namespace: &str| match &world.namespaces {
        Read::Known(all) => all.iter().any(|one| name(one) == namespace),
        // Who may not list them may still make pods in them.
        Read::Absent | Read::Unknown(_) => true,
    };
    let mut pods = Vec::new();
    for (node, pulls) in plan {
        for ((namespace, secrets), images) in &pulls.needed {
            let is_there = is_there(namespace);
            let without = (!is_there && !secrets.is_empty()).then(|| ABSENT.to_owned());
            pods.push(Wanted {
                number: pods.len(),
                namespace: if is_there { namespace } else { run }.to_owned(),
                node: node.clone(),
                images: images.iter().cloned().collect(),
                secrets: secrets.iter().filter(|_| is_there).cloned().collect(),
                without,
            });
        }
    }
    pods
}

fn note(
    of_node: &mut Pulled,
    node: &str,
    pulls: &Pulls,
    (wanted, found): (&[Wanted], &Result<Vec<Found>, String>),
) {
    match found {
        Err(why) => {
            let images = pulls.needed.values().flatten();
            let unknown = images.map(|image| (image.clone(), Pull::Unknown(why.clone())));
            of_node.images.extend(unknown);
        }
        Ok(found) => {
            let own = wanted.iter().zip(found).filter(|(one, _)| one.node == node);
            for (image, pull) in own.flat_map(|(_, found)| found) {
                // With the Secrets of one service it may be had, and with those of another not: both have to.
                let before = of_node.images.get(image);
                if before.is_none_or(|before| *before == Pull::Done) {
                    of_node.images.insert(image.clone(), pull.clone());
                }
            }
        }
    }
}

/// Removes the pods; of one that is still there it is said how it is removed.
async fn remove(requests: &Requests, wanted: &[Wanted], run: &str, ui: &mut Ui) {
    let end = Instant::now() + REMOVAL;
    for one in wanted {
        let (namespace, name) = (&one.namespace, one.name(run));
        while let Err(why) = requests.delete_pod(namespace, &name).await {
            if Instant::now() >= end {
                ui.warn(&format!("pod {name} -n {namespace} may still be there: {why}"));
                ui.hint(&format!("kubectl delete pod {name} -n {namespace}"));
                break;
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests;
