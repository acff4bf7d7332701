//! What the operator has heard of daemons by introspect: a pod may be ready whose daemon does not work.

use std::collections::BTreeSet;

use opensdn_crds::status::{DaemonState, DaemonWord, IntrospectStatus, SessionCounts};
use serde_json::Value;

use super::report::{Counts, PodStatus, Role, Word};
use super::text::cell;

/// What the status at `pointer` says; nothing where it says none, or something else.
pub(super) fn of(status: &Value, pointer: &str) -> Option<IntrospectStatus> {
    serde_json::from_value(status.pointer(pointer)?.clone()).ok()
}

pub(super) fn counts(sessions: Option<SessionCounts>) -> Option<Counts> {
    let SessionCounts { up, all } = sessions?;
    let (up, all) = (up?, all?);
    // Whoever may write a status can write anything.
    (0 <= up && up <= all).then(|| Counts::new(up.into(), all.into()))
}

/// Daemons that work, of all.
pub(super) fn daemons(status: &IntrospectStatus) -> Option<Counts> {
    counts(Some(SessionCounts { up: status.functional, all: status.daemons }))
}

/// What does not work of those that no pod shows: more than are listed, or of a pod that was replaced since.
pub(super) fn others(status: &IntrospectStatus, pods: &[PodStatus]) -> Option<String> {
    let Counts { ready, wanted } = daemons(status)?;
    let shown = pods.iter().filter(|pod| pod.daemon.is_some()).count();
    let known = ready? + unknown(status) + i64::try_from(shown).ok()?;
    (known < wanted?).then(|| {
        format!("{} of {} daemons work", ready.unwrap_or_default(), wanted.unwrap_or_default())
    })
}

/// What is to be known of those of which it cannot be told whether they work: no trouble of the service, and no good word.
pub(super) fn not_asked(status: &IntrospectStatus) -> Option<String> {
    let (unknown, wanted) = (unknown(status), daemons(status)?.wanted?);
    let mut listed = status.not_active.iter().flatten();
    let why = listed.find(|one| one.state == DaemonWord::Unknown);
    let why = why.map_or(String::new(), |one| cell(one.message.as_deref().unwrap_or_default()));
    (unknown > 0).then(|| format!("{unknown} of {wanted} daemons cannot be asked: {why}"))
}

/// An operator before it was counted only lists them.
fn unknown(status: &IntrospectStatus) -> i64 {
    let listed = status.not_active.iter().flatten();
    let listed = listed.filter(|one| one.state == DaemonWord::Unknown).count();
    status.unknown.map_or(i64::try_from(listed).unwrap_or(i64::MAX), i64::from)
}

/// Adds to the pods what their daemons say. Of a pod that Kubernetes has more to say of, that counts: the daemons were
/// asked up to half a minute ago.
pub(super) fn add(status: &IntrospectStatus, pods: &mut [PodStatus]) {
    for daemon in status.not_active.iter().flatten() {
        let pod = pods.iter_mut().find(|pod| pod.name == daemon.pod && pod.state == Word::Active);
        if let Some(pod) = pod {
            add_one(daemon, pod);
        }
    }
}

/// The daemons of which one works and the others wait for it to end, in the words of contrail-status. Where more seem to
/// work, those that wait are not all listed, and nothing is said.
pub(super) fn roles(pods: &[PodStatus]) -> Vec<Role> {
    let all = || pods.iter().flat_map(|pod| &pod.containers);
    let waiting = all().filter(|one| one.state == Word::Backup).map(|one| one.name.as_str());
    let names: BTreeSet<&str> = waiting.collect();
    let roles = names.into_iter().map(|name| {
        let count = |state| all().filter(|one| one.name == name && one.state == state).count();
        Role {
            daemon: said(name).to_owned(),
            active: count(Word::Active),
            backup: count(Word::Backup),
        }
    });
    roles.filter(|role| role.active <= 1).collect()
}

/// What contrail-status calls the daemon of a container (tf-container-builder, `containers/status/contrail-status.py`).
fn said(container: &str) -> &str {
    match container {
        "schematransformer" => "schema",
        "servicemonitor" => "svc-monitor",
        "devicemanager" => "device-manager",
        "kubemanager" => "kube-manager",
        other => other,
    }
}

fn add_one(daemon: &DaemonState, pod: &mut PodStatus) {
    let message = cell(daemon.message.as_deref().unwrap_or_default());
    let state = word(daemon.state);
    let mut containers = pod.containers.iter_mut();
    let Some(container) = containers.find(|one| one.name == daemon.container) else { return };
    (container.state, container.message) = (state, message.clone());
    // A backup is as it should be, and what cannot be told is no trouble of the pod.
    if matches!(state, Word::Initializing | Word::Timeout) {
        pod.state = state;
        pod.message = match message.as_str() {
            "" => format!("{} does not work yet", daemon.container),
            message => format!("{}: {message}", daemon.container),
        };
        // It is ready since then, which says nothing of the daemon.
        pod.since = None;
        pod.daemon = Some(daemon.container.clone());
    }
}

fn word(word: DaemonWord) -> Word {
    match word {
        DaemonWord::Active => Word::Active,
        DaemonWord::Backup => Word::Backup,
        DaemonWord::Initializing => Word::Initializing,
        DaemonWord::Timeout => Word::Timeout,
        DaemonWord::Unknown => Word::Unknown,
    }
}
