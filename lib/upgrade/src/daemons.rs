//! What the daemons of a service say of themselves, compared with what they said when the upgrade was planned. A pod is ready
//! as soon as its port is open: an agent that finds no control node, or a daemon without its database, is seen only here.

use std::time::Duration;

use opensdn_crds::status::{DaemonState, DaemonWord, IntrospectStatus, SessionCounts};
use opensdn_crds::upgrade::{ImageChange, ServiceHealth};
use time::OffsetDateTime;

use crate::health::{Service, Side};

/// What the daemons of a service have said last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Daemons {
    /// In the words of its status.
    pub said: IntrospectStatus,
    /// When they began to be asked for it. Unset: not since this operator leads.
    pub asked_at: Option<OffsetDateTime>,
}

impl Daemons {
    /// How many are functional, of how many.
    #[must_use]
    pub fn functional(&self) -> SessionCounts {
        SessionCounts { up: self.said.functional, all: self.said.daemons }
    }

    /// Whether they were asked since then.
    #[must_use]
    pub fn are_asked_since(&self, since: OffsetDateTime) -> bool {
        self.asked_at.is_some_and(|asked_at| asked_at >= since)
    }

    /// Whether anything is known of them.
    #[must_use]
    pub fn have_said(&self) -> bool {
        self.said != IntrospectStatus::default()
    }

    /// The first that is not functional, and what it says.
    fn wrong(&self) -> Option<String> {
        self.said.not_active.as_ref()?.first().map(in_words)
    }
}

fn in_words(one: &DaemonState) -> String {
    let said = one.message.as_deref().map_or_else(String::new, |said| format!(": {said}"));
    format!("{} on {}{said}", one.container, one.node)
}

/// A comparison of what was with what is.
struct Compared {
    /// How many were up.
    before: i32,
    /// How many are, of how many.
    now: SessionCounts,
    /// So many fewer are not blamed on the upgrade: they went with pods, of a node that was lost for one.
    gone: i64,
    /// Whether it is well that fewer are to be.
    may_be_fewer: bool,
}

/// So many control nodes an agent has a session with.
const SESSIONS: i64 = 2;
/// Of so many one may be missing: of a thousand agents some come and go, whatever is done.
const SLACK: i64 = 100;
/// A control node counts its sessions every minute (tf-controller, `src/control-node/main.cc:405`): a count is of now when it
/// has been well for longer.
const COUNTED: Duration = Duration::from_secs(90);

impl Compared {
    fn is_worse(&self) -> bool {
        let (up, before) = (i64::from(self.now.up.unwrap_or_default()), i64::from(self.before));
        // Of fewer that are to be none is missed.
        let is_all = self.may_be_fewer && self.now.all.is_some_and(|all| up >= i64::from(all));
        !is_all && up < before - self.gone - before / SLACK
    }

    fn in_words(&self, what: &str) -> String {
        let Self { before, now, .. } = self;
        let (up, all) = (now.up.unwrap_or_default(), now.all.unwrap_or_default());
        format!("{up} of {all} {what}, {before} before")
    }
}

/// What came of comparing one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Name of the check.
    pub(crate) check: &'static str,
    /// Whether it is worse than before.
    pub(crate) is_worse: bool,
    /// The service, what is and what was.
    pub(crate) text: String,
}

/// What is known of a service now as before, compared.
pub(crate) fn compare(before: &ServiceHealth, service: &Service) -> Vec<Finding> {
    let Some(now) = &service.daemons else { return Vec::new() };
    let gone = (before.pods - service.ready_pods()).max(0);
    let mut found = Vec::new();
    let mut add = |check, before: Option<SessionCounts>, now, gone, what: &str, why: &str| {
        let Some(before) = before.and_then(|before| before.up) else { return };
        // A control node that has not counted yet is not among them.
        let may_be_fewer = check != BGP;
        let compared = Compared { before, now, gone, may_be_fewer };
        let is_worse = compared.is_worse();
        let why = if is_worse { why } else { "" };
        let text = format!("{}: {}{why}", service.id, compared.in_words(what));
        found.push(Finding { check, is_worse, text });
    };
    let of_a_pod = before.daemons.and_then(|all| all.all).map_or(0, i64::from);
    let of_a_pod = of_a_pod / before.pods.max(1) + 1;
    let wrong = now.wrong().map_or_else(String::new, |wrong| format!("; {wrong}"));
    let functional = now.functional();
    add(FUNCTIONAL, before.daemons, functional, gone * of_a_pod, "daemons functional", &wrong);
    if let Some(xmpp) = now.said.xmpp {
        add(XMPP, before.xmpp, xmpp, gone, "agents with a control node", "");
    }
    // One between two nodes is counted at either end: with a pod away it is not known how many are missed.
    if let Some(bgp) = now.said.bgp.filter(|_| gone == 0) {
        add(BGP, before.bgp, bgp, 0, "BGP sessions up", "");
    }
    found
}

/// Pods with the new images are worse if more of their daemons do not work than did not of the whole service before. What was
/// heard before a pod was ready is not of it.
pub(crate) fn new_are_worse(
    before: &ServiceHealth,
    service: &Service,
    images: &[ImageChange],
) -> Option<String> {
    let now = service.daemons.as_ref()?;
    let (all, up) = before.daemons.map(|counts| (counts.all, counts.up))?;
    let wrong_before = all.unwrap_or_default().saturating_sub(up.unwrap_or_default());
    let is_new = |name: &str| {
        service.pods.iter().any(|pod| {
            let is_heard = pod.ready_since.zip(now.asked_at).is_none_or(|(ready, at)| at >= ready);
            pod.name == name && pod.is_ready && pod.has(images, Side::New) && is_heard
        })
    };
    let listed = now.said.not_active.iter().flatten();
    let mut wrong = listed.filter(|one| one.state != DaemonWord::Backup && is_new(&one.pod));
    let first = wrong.next()?;
    let count = i32::try_from(wrong.count()).unwrap_or(i32::MAX).saturating_add(1);
    (count > wrong_before)
        .then(|| format!("{}: with its new images {}", service.id, in_words(first)))
}

/// Whether agents have fewer sessions with control nodes than before, or were not asked for that since then.
pub(crate) fn lack_sessions<'a>(
    before: impl IntoIterator<Item = &'a ServiceHealth>,
    services: &[Service],
    since: OffsetDateTime,
) -> Option<String> {
    before.into_iter().filter(|before| any(before.xmpp_sessions)).find_map(|before| {
        let service = services.iter().find(|one| one.id == before.service)?;
        let now = service.daemons.as_ref()?;
        if !now.are_asked_since(since) {
            return Some(format!("agents of {} are asked for their sessions", service.id));
        }
        let gone = (before.pods - service.ready_pods()).max(0);
        let compared = Compared {
            before: before.xmpp_sessions.and_then(|one| one.up)?,
            now: now.said.xmpp_sessions.unwrap_or_default(),
            gone: gone * SESSIONS,
            may_be_fewer: false,
        };
        let what = "sessions of agents with control nodes up";
        compared.is_worse().then(|| format!("{}: {}", service.id, compared.in_words(what)))
    })
}

/// In which respect a service is worse than before.
pub(crate) fn worse(before: &ServiceHealth, service: &Service) -> Option<String> {
    let mut found = compare(before, service).into_iter();
    found.rfind(|one| one.is_worse).map(|one| one.text)
}

/// Whether the daemons of a service, of which some worked before, have not been asked since that time.
pub(crate) fn are_unheard(
    before: &ServiceHealth,
    service: &Service,
    since: OffsetDateTime,
) -> bool {
    let Some(now) = service.daemons.as_ref().filter(|_| !service.pods.is_empty()) else {
        return false;
    };
    let since = if any(before.bgp) { since + COUNTED } else { since };
    worked(before) && !now.are_asked_since(since)
}

/// Whether one of the daemons of a service worked then.
pub(crate) fn worked(before: &ServiceHealth) -> bool {
    any(before.daemons)
}

fn any(counts: Option<SessionCounts>) -> bool {
    counts.and_then(|one| one.up).unwrap_or_default() > 0
}

/// Names of checks.
pub(crate) const FUNCTIONAL: &str = "daemons-functional";
pub(crate) const XMPP: &str = "xmpp-as-before";
pub(crate) const BGP: &str = "bgp-as-before";

#[cfg(test)]
mod tests;
