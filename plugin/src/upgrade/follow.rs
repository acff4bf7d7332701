//! Watches an Upgrade until it is over, and says what happens. It changes nothing: the operator carries the Upgrade out, and
//! who watches it does not matter. It is read once a second, so that an API server that restarts ends nothing.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use opensdn_crds::upgrade::{Phase, Upgrade};
use tokio::time::{Instant, sleep};

use super::last_lines::{self, has_failed};
use super::next_command::NextCommand;
use super::progress::{Progress, short};
use super::requests::Requests;
use super::stage;
use crate::exit::{Exit, Failure};
use crate::install::waiting::{Deadline, POLL_INTERVAL, is_hiccup};
use crate::signals::Signals;
use crate::ui::{Ui, one_line};

/// After so long without a word of the operator it may not run.
const SILENCE: Duration = Duration::from_secs(30);
/// The same where two clocks are compared.
const SILENCE_OF_ANOTHER_CLOCK: Duration = Duration::from_secs(60);
const WHERE_IT_IS_SEEN: &str =
    "kubectl opensdn status shows whether it runs, kubectl opensdn logs operator what it wrote";

/// Who watches.
pub(crate) struct Follow<'a> {
    /// The cluster.
    pub(crate) requests: &'a Requests,
    /// Until when, if not without a limit.
    pub(crate) deadline: Option<Deadline>,
    /// What is suggested.
    pub(crate) next: &'a NextCommand,
}

impl Follow<'_> {
    /// Watches it until it is over; as it is then.
    ///
    /// # Errors
    /// The user ends the watch, the time is over, it was deleted, or the cluster does not answer this user.
    pub(crate) async fn run(
        &self,
        first: Upgrade,
        signals: &mut Signals,
        ui: &mut Ui,
    ) -> Result<Upgrade, Failure> {
        let name = first.name_any();
        let (mut watch, mut upgrade) = (Watch::begin(), first);
        loop {
            watch.show(&upgrade, ui);
            if stage::is_over(&upgrade) {
                return Ok(upgrade);
            }
            if self.deadline.is_some_and(|deadline| deadline.is_over()) {
                return Err(self.late(&upgrade));
            }
            let read = tokio::select! {
                biased;
                exit = signals.next() => return Err(self.detached(&upgrade, exit)),
                read = self.read(&name) => read,
            };
            if let Some(now) = watch.take(read, &upgrade, ui)? {
                let fails = has_failed(&now) && !has_failed(&upgrade);
                upgrade = now;
                if fails {
                    // Before their pods are replaced.
                    last_lines::show(self.requests, &upgrade, ui).await;
                }
            }
        }
    }

    async fn read(&self, name: &str) -> Result<Option<Upgrade>, Failure> {
        sleep(POLL_INTERVAL).await;
        self.requests.upgrade(name).await
    }

    fn detached(&self, upgrade: &Upgrade, exit: Exit) -> Failure {
        let again = self.next.of(&["status", &upgrade.name_any(), "--watch"]);
        let what = what_it_does(upgrade);
        let message = format!("detached; the upgrade {what}; re-attach with: {again}");
        Failure::new(exit, "detached", message, "")
    }

    fn late(&self, upgrade: &Upgrade) -> Failure {
        let (name, what) = (upgrade.name_any(), what_it_does(upgrade));
        let hint = format!("re-attach with: {}", self.next.of(&["status", &name, "--watch"]));
        let message = format!("the Upgrade {name} is not over within --timeout; it {what}");
        Failure::new(Exit::TimedOut, "timed-out", message, hint)
    }
}

/// What it does without a watch.
fn what_it_does(upgrade: &Upgrade) -> &'static str {
    match stage::phase(upgrade) {
        Some(Phase::Paused) => "is paused",
        _ => "continues",
    }
}

/// What was seen and said so far.
struct Watch {
    begun: Instant,
    progress: Progress,
    silence: Silence,
    /// Whether the API server did not answer last.
    is_lost: bool,
}

impl Watch {
    fn begin() -> Self {
        let (progress, silence) = (Progress::default(), Silence::default());
        Self { begun: Instant::now(), progress, silence, is_lost: false }
    }

    /// Says what has happened since the look before.
    fn show(&mut self, upgrade: &Upgrade, ui: &mut Ui) {
        for change in self.progress.look(upgrade) {
            ui.event(&change, &change.text());
        }
        let waited = self.begun.elapsed();
        if !stage::is_over(upgrade) && self.silence.is_due(upgrade, waited) {
            say_silent(&upgrade.name_any(), ui);
        }
        if ui.draws_progress() {
            ui.progress(&short(upgrade, waited));
        }
    }

    /// The Upgrade as it was read; nothing where the API server is away for a while.
    fn take(
        &mut self,
        read: Result<Option<Upgrade>, Failure>,
        before: &Upgrade,
        ui: &mut Ui,
    ) -> Result<Option<Upgrade>, Failure> {
        match read {
            Ok(Some(now)) if now.metadata.uid == before.metadata.uid => {
                if std::mem::take(&mut self.is_lost) {
                    ui.note("the API server answers again");
                }
                Ok(Some(now))
            }
            Ok(_) => Err(gone(&before.name_any())),
            Err(failure) if is_hiccup(&failure) => {
                if !std::mem::replace(&mut self.is_lost, true) {
                    let why = one_line(failure.causes.first().unwrap_or(&failure.message));
                    ui.warn(&format!("lost the API server (the upgrade continues): {why}"));
                }
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }
}

fn gone(name: &str) -> Failure {
    let message = format!(
        "the Upgrade {name} was deleted: what it has changed stays, and the rest is not done"
    );
    let hint = "what runs: kubectl opensdn status; the rest: kubectl opensdn upgrade plan";
    Failure::new(Exit::Findings, "deleted", message, hint)
}

/// What is said of an operator that says nothing.
fn say_silent(name: &str, ui: &mut Ui) {
    let seconds = SILENCE.as_secs();
    ui.warn(&format!(
        "the operator has said nothing of the Upgrade {name} for {seconds} s: it may not run"
    ));
    ui.hint(WHERE_IT_IS_SEEN);
}

/// What is said where nothing was heard of the operator for so long.
pub(crate) fn say_unheard(upgrade: &Upgrade, since: Duration, ui: &mut Ui) {
    let (name, seconds) = (upgrade.name_any(), since.as_secs());
    let what = match stage::is_seen(upgrade) {
        true => format!("the operator looked at the Upgrade {name} last {seconds} s ago"),
        false => format!(
            "the operator has not seen what was asked of the Upgrade {name} {seconds} s ago"
        ),
    };
    ui.warn(&format!("{what}, by this machine's clock: it may not run"));
    ui.hint(WHERE_IT_IS_SEEN);
}

/// Whether the operator takes up what a user wants, and looks at what is at work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Silence {
    seen_at: Duration,
    is_said: bool,
    looked_at: Option<String>,
}

impl Silence {
    /// For how long nothing was heard of the operator at this moment, where that is too long.
    pub(crate) fn by_clock(upgrade: &Upgrade, now: Timestamp) -> Option<Duration> {
        let at: Timestamp = match stage::is_seen(upgrade) {
            true => stage::looked_at(upgrade)?.parse().ok()?,
            false => stage::asked_at(upgrade)?,
        };
        let since = Duration::try_from(now.duration_since(at)).ok()?;
        Some(since).filter(|since| *since >= SILENCE_OF_ANOTHER_CLOCK)
    }

    /// Whether it is to be said that the operator is silent: once each time.
    pub(crate) fn is_due(&mut self, upgrade: &Upgrade, now: Duration) -> bool {
        let looked_at = stage::looked_at(upgrade);
        // By the clock of who watches: that of the operator may be another.
        let is_heard = looked_at.is_none() || looked_at != self.looked_at.as_deref();
        if stage::is_seen(upgrade) && is_heard {
            let looked_at = looked_at.map(str::to_owned);
            *self = Self { seen_at: now, is_said: false, looked_at };
            return false;
        }
        let is_long = now.saturating_sub(self.seen_at) >= SILENCE;
        is_long && !std::mem::replace(&mut self.is_said, true)
    }
}

#[cfg(test)]
mod tests {
    use kube::{Client, Config};
    use serde_json::{Value, json};

    use super::*;
    use crate::fake_api_server::{FakeApiServer, Reply, refusal};
    use crate::output::DocumentFormat;

    fn upgrade(phase: &str, uid: &str) -> Value {
        json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "Upgrade",
            "metadata": {"name": "a", "namespace": "tf", "uid": uid}, "spec": {"manager": "m"},
            "status": {"phase": phase}})
    }

    async fn watched(
        answer: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
    ) -> (Result<Upgrade, Failure>, usize) {
        watched_from("Running", None, answer).await
    }

    async fn watched_from(
        phase: &str,
        deadline: Option<Deadline>,
        answer: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
    ) -> (Result<Upgrade, Failure>, usize) {
        let server = FakeApiServer::start(answer);
        let mut config = Config::new(server.url().parse().unwrap());
        (config.proxy_url, config.default_retry) = (None, false);
        let requests = Requests::new(Client::try_from(config).unwrap(), "tf".to_owned());
        let follow = Follow { requests: &requests, deadline, next: &NextCommand::default() };
        let first = serde_json::from_value(upgrade(phase, "1")).unwrap();
        let mut ui = Ui::plain(anstream::ColorChoice::Never, None::<DocumentFormat>);
        let done = follow.run(first, &mut Signals::install().unwrap(), &mut ui).await;
        (done, server.seen().len())
    }

    #[tokio::test]
    async fn an_api_server_that_is_away_for_a_while_ends_no_watch() {
        let (done, reads) = watched(|_, before| match before {
            0 => refusal(500, "InternalError", "etcdserver: leader changed"),
            1 => Reply::Cut,
            2 => Reply::Text(404, "404 page not found\n"),
            _ => Reply::Document(200, "", upgrade("Succeeded", "1")),
        })
        .await;
        assert_eq!(stage::phase(&done.unwrap()), Some(Phase::Succeeded));
        assert_eq!(reads, 4);
    }

    #[tokio::test]
    async fn a_watch_that_ends_says_of_one_that_is_paused_that_it_is() {
        for (phase, what) in [("Running", "it continues"), ("Paused", "it is paused")] {
            let now = Some(Deadline::after(Duration::ZERO));
            let same = move |_: &str, _| Reply::Document(200, "", upgrade(phase, "1"));
            let (late, _) = watched_from(phase, now, same).await;
            let message = late.unwrap_err().message;
            assert!(message.ends_with(what), "{message}");
        }
    }

    #[tokio::test]
    async fn one_that_is_deleted_or_not_to_be_read_ends_it() {
        let gone = |_: &str, _| refusal(404, "NotFound", "upgrades.opensdn.io \"a\" not found");
        assert_eq!(watched(gone).await.0.unwrap_err().code, "deleted");
        let another = |_: &str, _| Reply::Document(200, "", upgrade("Running", "2"));
        assert_eq!(watched(another).await.0.unwrap_err().code, "deleted", "one of the same name");
        let forbidden = |_: &str, _| refusal(403, "Forbidden", "cannot get");
        assert_eq!(watched(forbidden).await.0.unwrap_err().code, "forbidden");
    }
}
