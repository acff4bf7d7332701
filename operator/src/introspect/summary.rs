//! What the answers of the daemons of one service come to (pure), in the words of contrail-status.

use std::collections::BTreeSet;

use opensdn_crds::status::{DaemonState, DaemonWord, IntrospectStatus, SessionCounts};

use super::page::{Process, Sessions};

/// As many as are listed.
const MOST: usize = 10;
/// Longest text of one, in bytes.
const MOST_TEXT: usize = 256;

/// What came of asking one daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// It answered.
    Answered(Process),
    /// No answer came in time.
    Silent,
    /// Nothing listens there.
    Refused,
    /// It answered something else, and what.
    Unreadable(String),
}

/// A daemon, and what came of asking it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) pod: String,
    pub(super) node: String,
    pub(super) container: &'static str,
    pub(super) is_elected: bool,
    pub(super) is_agent: bool,
    pub(super) said: Said,
    pub(super) bgp: Option<Sessions>,
}

impl Heard {
    /// `answering` are the containers of which one has answered, wherever it runs.
    fn word(&self, answering: &BTreeSet<&str>) -> (DaemonWord, String) {
        match &self.said {
            Said::Answered(process) if process.is_functional => (DaemonWord::Active, String::new()),
            Said::Answered(process) => (DaemonWord::Initializing, process.description.clone()),
            Said::Silent => (DaemonWord::Timeout, "does not answer".to_owned()),
            Said::Refused if self.is_elected && answering.contains(self.container) => {
                (DaemonWord::Backup, String::new())
            }
            Said::Refused if self.is_elected => (
                DaemonWord::Initializing,
                "waits to be elected, and no other of its kind works".to_owned(),
            ),
            Said::Refused => {
                (DaemonWord::Initializing, "does not listen for introspect yet".to_owned())
            }
            Said::Unreadable(why) => (DaemonWord::Unknown, why.clone()),
        }
    }

    /// The sessions of an agent with control nodes.
    fn sessions(&self) -> impl Iterator<Item = bool> {
        let said = match &self.said {
            Said::Answered(process) => &process.control_nodes[..],
            _ => &[],
        };
        said.iter().copied()
    }

    /// Whether the agent speaks with a control node: one is enough.
    fn is_connected(&self) -> bool {
        self.sessions().any(|is_up| is_up)
    }
}

/// The status of the service. Nothing where none was asked.
pub(super) fn summary(mut heard: Vec<Heard>) -> Option<IntrospectStatus> {
    if heard.is_empty() {
        return None;
    }
    heard.sort_by(|one, other| {
        (&one.node, &one.pod, one.container).cmp(&(&other.node, &other.pod, other.container))
    });
    let count = |number: usize| Some(i32::try_from(number).unwrap_or(i32::MAX));
    let answered = heard.iter().filter(|one| matches!(one.said, Said::Answered(_)));
    let answering: BTreeSet<&str> = answered.map(|one| one.container).collect();
    let words: Vec<_> = heard.iter().map(|one| (one, one.word(&answering))).collect();
    let is_fine = |word: DaemonWord| matches!(word, DaemonWord::Active | DaemonWord::Backup);
    let (backups, wrong): (Vec<_>, Vec<_>) = words
        .iter()
        .filter(|(_, (word, _))| *word != DaemonWord::Active)
        .partition(|(_, (word, _))| is_fine(*word));
    let listed =
        wrong.iter().chain(&backups).take(MOST).map(|(one, (word, message))| DaemonState {
            pod: one.pod.clone(),
            node: one.node.clone(),
            container: one.container.to_owned(),
            state: *word,
            message: Some(shortened(message)).filter(|message| !message.is_empty()),
        });
    let listed: Vec<DaemonState> = listed.collect();
    let agents: Vec<&Heard> = heard.iter().filter(|one| one.is_agent).collect();
    let xmpp = (!agents.is_empty()).then(|| SessionCounts {
        up: count(agents.iter().filter(|one| one.is_connected()).count()),
        all: count(agents.len()),
    });
    let sessions = || agents.iter().flat_map(|one| one.sessions());
    let xmpp_sessions = (!agents.is_empty()).then(|| SessionCounts {
        up: count(sessions().filter(|is_up| *is_up).count()),
        all: count(sessions().count()),
    });
    let bgp = heard.iter().filter_map(|one| one.bgp).reduce(|one, other| Sessions {
        up: one.up.saturating_add(other.up),
        all: one.all.saturating_add(other.all),
    });
    Some(IntrospectStatus {
        functional: count(words.iter().filter(|(_, (word, _))| is_fine(*word)).count()),
        daemons: count(words.len()),
        unknown: Some(words.iter().filter(|(_, (word, _))| *word == DaemonWord::Unknown).count())
            .filter(|unknown| *unknown > 0)
            .and_then(count),
        not_active: Some(listed).filter(|listed| !listed.is_empty()),
        xmpp,
        xmpp_sessions,
        bgp: bgp.map(|sessions| SessionCounts {
            up: count(sessions.up as usize),
            all: count(sessions.all as usize),
        }),
    })
}

/// What another has written, no larger than what is written here.
pub(crate) fn bounded(mut status: IntrospectStatus) -> IntrospectStatus {
    for listed in status.not_active.iter_mut() {
        listed.truncate(MOST);
        for one in listed {
            for text in [&mut one.pod, &mut one.node, &mut one.container] {
                *text = shortened(text);
            }
            one.message = one.message.as_deref().map(shortened);
        }
    }
    status
}

/// Of what a daemon writes only what a line has room for. Theirs is ASCII; what else there is may be unseen, or turn the rest
/// of a line around.
fn shortened(message: &str) -> String {
    let shown = |one: char| match one {
        one if one.is_ascii_graphic() || one == ' ' => one,
        one if one.is_whitespace() => ' ',
        _ => '?',
    };
    message.chars().take(MOST_TEXT).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(is_functional: bool, description: &str, control_nodes: &[bool]) -> Said {
        Said::Answered(Process {
            is_functional,
            description: description.to_owned(),
            control_nodes: control_nodes.to_vec(),
        })
    }

    fn heard(node: &str, container: &'static str, said: Said) -> Heard {
        Heard {
            pod: format!("{container}-{node}"),
            node: node.to_owned(),
            container,
            is_elected: container == "schematransformer",
            is_agent: container == "vrouteragent",
            said,
            bgp: None,
        }
    }

    fn words(status: &IntrospectStatus) -> Vec<(&str, DaemonWord, &str)> {
        let all = status.not_active.iter().flatten();
        all.map(|one| (one.node.as_str(), one.state, one.message.as_deref().unwrap_or_default()))
            .collect()
    }

    #[test]
    fn who_works_is_counted_and_who_does_not_is_named_with_what_it_says() {
        let status = summary(vec![
            heard("m2", "api", process(false, "Database:RabbitMQ[] connection down", &[])),
            heard("m1", "api", process(true, "", &[])),
            heard("m3", "api", Said::Silent),
            heard("m1", "schematransformer", process(true, "", &[])),
            heard("m2", "schematransformer", Said::Refused),
            heard("m4", "api", Said::Refused),
            heard("m5", "api", Said::Unreadable("answered 404".to_owned())),
        ])
        .unwrap();
        assert_eq!(
            (status.functional, status.daemons),
            (Some(3), Some(7)),
            "a backup is as it should be"
        );
        assert_eq!(
            words(&status),
            [
                ("m2", DaemonWord::Initializing, "Database:RabbitMQ[] connection down"),
                ("m3", DaemonWord::Timeout, "does not answer"),
                ("m4", DaemonWord::Initializing, "does not listen for introspect yet"),
                ("m5", DaemonWord::Unknown, "answered 404"),
                ("m2", DaemonWord::Backup, ""),
            ]
        );
        assert_eq!((status.xmpp, status.bgp), (None, None));
        assert_eq!(status.unknown, Some(1));
    }

    #[test]
    fn where_none_of_a_kind_works_none_is_a_backup() {
        let waiting = ["m1", "m2"].map(|node| heard(node, "schematransformer", Said::Refused));
        let status = summary(waiting.to_vec()).unwrap();
        assert_eq!((status.functional, status.daemons), (Some(0), Some(2)));
        assert!(words(&status).iter().all(|(_, word, _)| *word == DaemonWord::Initializing));
    }

    #[test]
    fn sessions_are_counted_over_all_nodes() {
        let mut control = vec![
            heard("m1", "control", process(true, "", &[])),
            heard("m2", "control", process(true, "", &[])),
            heard("m3", "control", Said::Silent),
        ];
        control[0].bgp = Some(Sessions { up: 2, all: 3 });
        control[1].bgp = Some(Sessions { up: 1, all: 3 });
        let counts = |up, all| Some(SessionCounts { up: Some(up), all: Some(all) });
        assert_eq!(summary(control).unwrap().bgp, counts(3, 6));

        let agents = vec![
            heard("w1", "vrouteragent", process(true, "", &[false, true])),
            heard("w2", "vrouteragent", process(false, "", &[false, false])),
            heard("w3", "vrouteragent", Said::Silent),
        ];
        assert_eq!(summary(agents).unwrap().xmpp, counts(1, 3));
        assert_eq!(summary(Vec::new()), None, "of no daemon nothing is said");
    }

    #[test]
    fn of_more_than_are_listed_it_is_counted_who_cannot_be_told() {
        let many = (0..12)
            .map(|number| heard(&format!("n{number}"), "api", Said::Unreadable("?".to_owned())));
        let status = summary(many.collect()).unwrap();
        assert_eq!(
            (status.functional, status.daemons, status.unknown),
            (Some(0), Some(12), Some(12))
        );
    }

    #[test]
    fn a_status_stays_small_whatever_daemons_write() {
        let text = "ä\n".repeat(10_000);
        let many = (0..1000)
            .map(|number| heard(&format!("n{number:04}"), "api", process(false, &text, &[])));
        let status = summary(many.collect()).unwrap();
        let listed = status.not_active.unwrap();
        assert_eq!(listed.len(), MOST);
        let message = listed[0].message.as_deref().unwrap();
        assert!(message.len() == MOST_TEXT && message.starts_with("? ? "), "{message:?}");
        assert_eq!(status.daemons, Some(1000));

        let state = || DaemonState {
            pod: text.clone(),
            node: text.clone(),
            container: text.clone(),
            state: DaemonWord::Timeout,
            message: Some(text.clone()),
        };
        let written = IntrospectStatus {
            not_active: Some((0..1000).map(|_| state()).collect()),
            ..IntrospectStatus::default()
        };
        let listed = bounded(written).not_active.unwrap();
        assert_eq!(listed.len(), MOST);
        assert!([&listed[0].pod, &listed[0].node].iter().all(|text| text.len() <= MOST_TEXT));
    }
}
