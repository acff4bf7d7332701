//! kube-manager and the CNI agent, whatever tool made them: ours, upstream's DaemonSets, also under their older names.

use serde_json::Value;

use super::code::Code;
use super::{Part, Verified};
use crate::checks::report::Verdict;
use crate::snapshot::{Read, label, list, match_labels, name, namespace, number, text, title};

/// How names and containers of OpenSDN begin, and began.
const PREFIXES: [&str; 2] = ["opensdn-", "contrail-"];

/// What is in the namespace of the workloads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workloads {
    /// The namespace.
    pub(crate) namespace: String,
    /// Its Deployments.
    pub(crate) deployments: Read<Vec<Value>>,
    /// Its DaemonSets.
    pub(crate) daemon_sets: Read<Vec<Value>>,
    /// Its pods.
    pub(crate) pods: Read<Vec<Value>>,
}

/// One of the two workloads.
pub(crate) struct Workload {
    title: &'static str,
    /// Its name without the prefix.
    name: &'static str,
    /// Its container's, which stays where the object has another name.
    container: &'static str,
}

/// kube-manager.
pub(crate) const KUBE_MANAGER: Workload =
    Workload { title: "kube-manager", name: "kube-manager", container: "kube-manager" };
/// The CNI agent.
pub(crate) const CNI_AGENT: Workload =
    Workload { title: "CNI agent", name: "kubernetes-cni-agent", container: "kubernetes-cni-init" };

impl Workload {
    /// Whether an object runs it.
    pub(crate) fn is(&self, object: &Value) -> bool {
        let is_named = |text: &str, name: &str| {
            PREFIXES.iter().any(|prefix| text.strip_prefix(prefix) == Some(name))
        };
        let mut containers = list(object, "/spec/template/spec/containers");
        is_named(name(object), self.name)
            || containers.any(|one| is_named(text(one, "/name"), self.container))
    }
}

impl Workloads {
    fn all<'a>(&'a self, workload: &'a Workload) -> impl Iterator<Item = &'a Value> {
        let all = self.deployments.items().iter().chain(self.daemon_sets.items());
        all.filter(|object| workload.is(object))
    }

    /// What the pod of kube-manager is to be, where there is one.
    pub(super) fn kube_manager_pod(&self) -> Option<&Value> {
        self.all(&KUBE_MANAGER).next()?.pointer("/spec/template/spec")
    }
}

/// Both.
pub(super) fn judge(workloads: &Workloads) -> Vec<Verified> {
    [KUBE_MANAGER, CNI_AGENT]
        .map(|one| {
            let verdict = of_workload(workloads, &one);
            Verified::of(Part::Workloads, Code::NotReady, one.title, verdict)
        })
        .into()
}

fn of_workload(workloads: &Workloads, workload: &Workload) -> Verdict {
    let found: Vec<&Value> = workloads.all(workload).collect();
    let place = &workloads.namespace;
    let Some(first) = found.first() else {
        let unread = [&workloads.deployments, &workloads.daemon_sets];
        if let Some(why) = unread.iter().find_map(|read| read.why_unknown()) {
            return Verdict::uncertain(format!("workloads of {place} may not be read: {why}"));
        }
        return Verdict::fail(format!("{place} has none (--target-namespace)"))
            .fix("kubectl opensdn nested manifest ... | kubectl apply --server-side -f -");
    };
    let is_alone = workload.title == KUBE_MANAGER.title;
    let mut ready = 0;
    for object in &found {
        match counted(object) {
            Err(verdict) => return verdict,
            Ok((some, all)) if some < all => {
                let why = why(workloads, object);
                let message = format!("{} of {all} ready: {}{why}", some.max(0), title(object));
                return Verdict::fail(message).fix(look(object));
            }
            Ok((some, _)) => ready += some,
        }
    }
    if is_alone && ready > 1 {
        let message =
            format!("{ready} of them run, and two hand out the same VLAN: {}", title(first));
        return Verdict::warn(message)
            .fix("leave one alone: kubectl scale, or one node with its label");
    }
    Verdict::ok(format!("{ready} of {ready} ready: {}", title(first)))
}

/// How many pods are ready, and how many are to be.
fn counted(object: &Value) -> Result<(i64, i64), Verdict> {
    let of = |pointer: &str| number(object, pointer);
    if of("/status/observedGeneration").unwrap_or_default()
        < of("/metadata/generation").unwrap_or_default()
    {
        let message = format!("its controller has not seen the last change yet: {}", title(object));
        return Err(Verdict::uncertain(message));
    }
    if object.pointer("/spec/replicas").is_some() || object.pointer("/status/replicas").is_some() {
        let wanted = of("/spec/replicas").unwrap_or(1);
        if wanted == 0 {
            return Err(Verdict::fail(format!("it is scaled to none: {}", title(object))));
        }
        return Ok((of("/status/readyReplicas").unwrap_or_default(), wanted));
    }
    let wanted = of("/status/desiredNumberScheduled").unwrap_or_default();
    if wanted == 0 {
        let message = format!("no node is for it, by its labels and taints: {}", title(object));
        return Err(Verdict::fail(message).fix(look(object)));
    }
    Ok((of("/status/numberReady").unwrap_or_default(), wanted))
}

/// What the first pod that is not ready waits for.
fn why(workloads: &Workloads, object: &Value) -> String {
    let selector = object.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    let is_its = |pod: &&Value| {
        selector.is_some_and(|labels| {
            labels.iter().all(|(key, value)| label(pod, key) == value.as_str())
        })
    };
    let pods = workloads.pods.items().iter().filter(is_its);
    let mut statuses = pods.flat_map(|pod| {
        list(pod, "/status/containerStatuses").chain(list(pod, "/status/initContainerStatuses"))
    });
    let found = statuses.find_map(|status| {
        let ended = text(status, "/lastState/terminated/message");
        let reason = text(status, "/state/waiting/reason");
        let said = if ended.is_empty() { text(status, "/state/waiting/message") } else { ended };
        (!reason.is_empty()).then(|| format!("; {reason}: {}", said.trim()))
    });
    found.unwrap_or_default()
}

fn look(object: &Value) -> String {
    let labels = match_labels(object);
    format!(
        "kubectl -n {0} describe pods -l {labels}; kubectl -n {0} logs -l {labels}",
        namespace(object)
    )
}
