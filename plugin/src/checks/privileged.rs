//! Whether pods as components are may run in their namespaces: by what the API server said of one that was created by
//! dry run, else by the labels that the namespaces have, or will get.

use std::collections::BTreeSet;

use serde_json::Value;

use super::few;
use super::report::Verdict;
use super::world::World;
use crate::snapshot::{Read, condition_is, label, list, name, namespace, text};

const ENFORCE: &str = "pod-security.kubernetes.io/enforce";

/// What came of a pod with the network, a folder and all rights of its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LetIn {
    /// It would be created.
    Yes,
    /// It would not, for a reason that one without these would not be refused for.
    No(String),
    /// That is not known, and why.
    Unknown(String),
}

/// What is known of each namespace.
#[derive(Default)]
struct Found<'a> {
    good: Vec<String>,
    /// By a label, with its level.
    forbidden: Vec<(&'a str, &'a str)>,
    /// By a label, although a pod would be created.
    exempt: Vec<(&'a str, &'a str)>,
    /// By what the API server said.
    refused: Vec<(&'a str, &'a str)>,
    unlabelled: Vec<&'a str>,
}

impl<'a> Found<'a> {
    fn of(world: &'a World, namespaces: &'a [Value], wanted: &'a BTreeSet<String>) -> Self {
        let operator = world.places.operator.as_str();
        let watched = world.places.watched.iter().map(String::as_str);
        let brought: BTreeSet<&str> = watched.chain([operator]).collect();
        let mut found = Self::default();
        for one in wanted {
            let stored = namespaces.iter().find(|namespace| name(namespace) == one);
            let tried = world.let_in.get(one);
            match (stored.map(|namespace| label(namespace, ENFORCE)), tried) {
                (Some(Some("privileged") | None), Some(LetIn::No(why))) => {
                    found.refused.push((one, why));
                }
                (Some(Some("privileged")), _) => found.good.push(one.clone()),
                (Some(Some(level)), Some(LetIn::Yes)) => found.exempt.push((one, level)),
                (Some(Some(level)), _) => found.forbidden.push((one, level)),
                (Some(None), Some(LetIn::Yes)) => found.good.push(one.clone()),
                (Some(None), _) if runs_privileged(world, one) => found.good.push(one.clone()),
                // It does not exist yet: the manifests bring the label of these with them.
                (None, _) if brought.contains(one.as_str()) => {}
                (Some(None) | None, _) => found.unlabelled.push(one),
            }
        }
        found
    }
}

pub(super) fn pod_security(world: &World) -> Verdict {
    let Read::Known(namespaces) = &world.namespaces else {
        return Verdict::uncertain(format!(
            "namespaces may not be read: {}",
            world.namespaces.why_unknown().unwrap_or("the API server has none")
        ));
    };
    let mut wanted = world.component_namespaces();
    wanted.insert(world.places.operator.clone());
    let found = Found::of(world, namespaces, &wanted);
    if let Some((namespace, level)) = found.forbidden.first() {
        return Verdict::fail(format!(
            "namespace {namespace} enforces Pod Security {level:?}; components need privileged"
        ))
        .fix(label_of(namespace));
    }
    if let Some((namespace, why)) = found.refused.first() {
        let message =
            format!("in namespace {namespace} the API server refuses a privileged pod: {why}");
        return Verdict::fail(message).fix(against(namespace, why));
    }
    if let Some((namespace, level)) = found.exempt.first() {
        let message = format!(
            "namespace {namespace} enforces Pod Security {level:?}, and a pod of yours would be created: whether you are exempt, \
             or the namespace is, the API server does not show"
        );
        return Verdict::uncertain(message).fix(label_of(namespace));
    }
    if let Some(first) = found.unlabelled.first() {
        let names: Vec<String> = found.unlabelled.iter().map(|one| (*one).to_owned()).collect();
        let why = untried(world, first).unwrap_or_default();
        let what = "the API server does not show what it enforces without the label";
        return Verdict::uncertain(format!("{}: no label {ENFORCE}, and {what}{why}", few(&names)))
            .fix(label_of(first));
    }
    of_openshift(world, &found.good).unwrap_or_else(|| allowed(world, &found.good))
}

/// OpenShift asks its SecurityContextConstraints too, of the user as of the account of the pod: only a pod of an account that
/// was let in shows what they say.
fn of_openshift(world: &World, good: &[String]) -> Option<Verdict> {
    let first = good.iter().find(|place| !runs_privileged(world, place))?;
    has_constraints(world).then(|| {
        let message = format!(
            "whether the SecurityContextConstraints of OpenShift let privileged pods run in {first} is not known"
        );
        Verdict::uncertain(message).fix(CONSTRAINTS)
    })
}

fn allowed(world: &World, good: &[String]) -> Verdict {
    if good.is_empty() {
        return Verdict::ok("an installation brings the namespaces with their label");
    }
    let why = good.iter().find_map(|one| untried(world, one)).unwrap_or_default();
    let by = if why.is_empty() { "" } else { ", by their labels or what runs there" };
    Verdict::ok(format!("privileged pods may run in {}{by}{why}", few(good)))
}

/// Why no pod was tried in the namespace.
fn untried(world: &World, namespace: &str) -> Option<String> {
    match world.let_in.get(namespace)? {
        LetIn::Unknown(why) => Some(format!("; none was tried: {why}")),
        LetIn::Yes | LetIn::No(_) => None,
    }
}

fn label_of(namespace: &str) -> String {
    format!("kubectl label namespace {namespace} {ENFORCE}=privileged --overwrite")
}

/// It binds constraints that are narrower than `privileged`, to the accounts of components alone.
const CONSTRAINTS: &str = "kubectl opensdn install --set platform=openshift";

/// What to do, by who refuses it.
fn against(namespace: &str, why: &str) -> String {
    if why.contains("PodSecurity") {
        label_of(namespace)
    } else if why.contains("security context constraint") {
        CONSTRAINTS.to_owned()
    } else {
        "kubectl get validatingwebhookconfigurations,validatingadmissionpolicies".to_owned()
    }
}

/// Whether it is OpenShift, by an API that only it serves.
fn has_constraints(world: &World) -> bool {
    let groups = world.groups.known();
    groups.is_some_and(|groups| {
        list(groups, "/groups").any(|group| text(group, "/name") == "security.openshift.io")
    })
}

/// Whether a pod on the network of its node runs there: it was let in.
fn runs_privileged(world: &World, place: &str) -> bool {
    world.pods.items().iter().any(|pod| {
        namespace(pod) == place
            && pod.pointer("/spec/hostNetwork").and_then(Value::as_bool) == Some(true)
            && condition_is(pod, "Ready", "True")
    })
}
