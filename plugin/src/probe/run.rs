//! A run: leftovers of others are removed, a namespace made, pods asked in it, once or several times, and all of it
//! removed, whatever happened in between. What keeps a node from answering is said of that node, and the others are
//! waited for.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use tokio::time::{Instant, sleep, timeout};

use super::answer::{self, Unread};
use super::objects::{daemon_set, is_left_over, is_of, namespace, namespace_name, service};
use super::requests::{Left, Requests};
use super::waiting::{Stage, node_of, stage};
use super::{Answer, Answers, Asked, Network};
use crate::exit::{Exit, Failure};
use crate::signals::Signals;
use crate::snapshot::{Read, name, text};
use crate::ui::Ui;

/// How long until pods are read again.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// So long a namespace is waited for until it is gone.
pub(super) const REMOVAL: Duration = Duration::from_secs(60);
/// So long a Service of ours may be without an address behind it.
const ENDPOINTS: Duration = Duration::from_secs(15);
/// So many logs are followed at once, where nothing else is said.
pub(crate) const AT_ONCE: u16 = 32;

/// Three questions, one after the other, have to end before the next run takes them for left over.
pub(crate) const LONGEST_OF_THREE: Duration = Duration::from_secs(4 * 60);

/// Reads how long there is for an answer.
pub(crate) fn up_to(longest: Duration) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| {
        let timeout = opensdn_duration::parse(text).map_err(|error| error.to_string())?;
        if timeout.is_zero() || timeout > longest {
            let minutes = longest.as_secs() / 60;
            return Err(format!("must be more than nothing and at most {minutes}m"));
        }
        Ok(timeout)
    }
}

/// By which pods are asked, and for how long.
pub(crate) struct Run {
    /// The image whose program answers.
    pub(crate) image: String,
    /// How long each has to answer a question.
    pub(crate) timeout: Duration,
    /// The clock of the API server, by which leftovers are old.
    pub(crate) now: Timestamp,
    /// What cannot be done without rights, in words of the command line.
    pub(crate) needed_by: &'static str,
    /// So many pods are read at once.
    pub(crate) at_once: u16,
}

/// A namespace in which pods can be asked.
pub(crate) struct Asking<'a> {
    run: &'a Run,
    requests: &'a Requests,
    namespace: &'a str,
    uid: &'a str,
}

impl Run {
    /// Asks one question, in a namespace that is not there afterwards.
    ///
    /// # Errors
    /// The user interrupts it; the objects are removed all the same.
    pub(crate) async fn ask(
        &self,
        client: &Client,
        asked: &Asked,
        ui: &mut Ui,
    ) -> Result<Answers, Failure> {
        let answers = self.within(client, ui, async |asking, ui| asking.ask(asked, ui).await);
        Ok(answers.await?.unwrap_or_else(|why| asked.none(&why)))
    }

    /// Does the work in a namespace that is not there afterwards; else why it cannot be made.
    ///
    /// # Errors
    /// The user interrupts it; the objects are removed all the same.
    pub(crate) async fn within<T>(
        &self,
        client: &Client,
        ui: &mut Ui,
        work: impl AsyncFnOnce(&Asking<'_>, &mut Ui) -> T,
    ) -> Result<Result<T, String>, Failure> {
        let requests = Requests::new(client);
        let name = namespace_name();
        if let Some(why) = requests.missing_right(&name, self.needed_by).await {
            return Ok(Err(why));
        }
        let mut signals = Signals::install().map_err(|error| {
            let message = "signals cannot be caught, and nothing is left behind by chance";
            let hint = format!("try again without {}", self.needed_by);
            Failure::new(Exit::Unreachable, "no-signals", message, hint).because(&error)
        })?;
        self.remove_leftovers(&requests, ui).await;
        let object = namespace(&name, self.now.as_second());
        // Not to be interrupted: what was not answered may have been made.
        let made = requests.create_namespace(&object).await;
        let done = match made {
            Err(why) => Ok(Err(why)),
            Ok(uid) => {
                let asking = Asking { run: self, requests: &requests, namespace: &name, uid: &uid };
                tokio::select! {
                    biased;
                    exit = signals.next() => Err(exit),
                    done = work(&asking, ui) => Ok(Ok(done)),
                }
            }
        };
        ui.progress("removing what the probe needed");
        let left = tokio::select! {
            biased;
            _ = signals.next() => Some("a second signal came".to_owned()),
            left = remove(&requests, &name) => left,
        };
        if let Some(why) = &left {
            ui.warn(&format!("namespace {name} is still there: {why}"));
            ui.hint(&format!("kubectl delete namespace {name}"));
        }
        done.map_err(|exit| {
            let message = match left {
                None => "interrupted: the pods on nodes are removed",
                Some(_) => "interrupted",
            };
            Failure::new(exit, "interrupted", message, "the same command starts again")
        })
    }

    /// What an earlier run has left that was killed.
    async fn remove_leftovers(&self, requests: &Requests, ui: &mut Ui) {
        // Who may not list namespaces may still make one.
        let Read::Known(namespaces) = requests.namespaces().await else { return };
        for one in namespaces.iter().filter(|one| is_left_over(one, self.now.as_second())) {
            match requests.delete_namespace(name(one)).await {
                Ok(()) => ui.note(&format!("removed {}, which a killed run has left", name(one))),
                Err(why) => ui.warn(&why),
            }
        }
    }
}

impl Asking<'_> {
    /// Of what line peers know the pods of this run: no other has it.
    pub(crate) fn mark(&self) -> &str {
        self.namespace
    }

    /// The namespace, for who looks into it while the pods are there.
    pub(crate) fn namespace(&self) -> &str {
        self.namespace
    }

    /// Its UID, by which what belongs to it goes away with it.
    pub(super) fn uid(&self) -> &str {
        self.uid
    }

    pub(super) fn requests(&self) -> &Requests {
        self.requests
    }

    /// Makes a Service in front of the pods of a question, and waits until it leads to so many of them; its address.
    pub(crate) async fn service(
        &self,
        daemon_set: &str,
        port: u16,
        pods: usize,
    ) -> Result<SocketAddr, String> {
        let (requests, namespace) = (self.requests, self.namespace);
        let made =
            requests.create_service(namespace, &service(namespace, daemon_set, port)).await?;
        let address = text(&made, "/spec/clusterIP");
        let address: IpAddr = address
            .parse()
            .map_err(|_| format!("the API server has given the Service the address {address:?}"))?;
        let end = Instant::now() + ENDPOINTS;
        // Where that cannot be seen, they are tried after the time.
        while requests.endpoints(namespace, daemon_set).await.is_ok_and(|count| count < pods)
            && Instant::now() < end
        {
            sleep(POLL_INTERVAL).await;
        }
        Ok((address, port).into())
    }

    /// Has a pod on each of the nodes answer.
    pub(crate) async fn ask(&self, asked: &Asked, ui: &mut Ui) -> Answers {
        self.ask_within(self.run.timeout, asked, ui).await
    }

    /// The same in another time.
    pub(crate) async fn ask_within(
        &self,
        timeout: Duration,
        asked: &Asked,
        ui: &mut Ui,
    ) -> Answers {
        let mut answers = Answers::new();
        for (node, why) in &asked.nodes {
            if let Some(why) = why {
                answers.insert(node.clone(), Err(why.clone()));
            }
        }
        let able = asked.nodes.iter().filter(|(_, why)| why.is_none());
        let able: Vec<String> = able.map(|(node, _)| node.clone()).collect();
        if able.is_empty() {
            return answers;
        }
        let (requests, namespace) = (self.requests, self.namespace);
        let object = daemon_set(namespace, &self.run.image, asked, &able);
        if let Err(why) = requests.create_daemon_set(namespace, &object).await {
            return asked.none(&why);
        }
        ui.detail(&format!("created daemonset/{} -n {namespace}", asked.name));
        let left = able.into_iter().collect();
        let said = String::new();
        let at_once = usize::from(self.run.at_once).max(1);
        let waiting = Waiting { timeout, at_once, asked, requests, namespace, left, answers, said };
        waiting.answers(ui).await
    }
}

/// The nodes that have not answered.
struct Waiting<'a> {
    timeout: Duration,
    at_once: usize,
    asked: &'a Asked,
    requests: &'a Requests,
    namespace: &'a str,
    left: BTreeSet<String>,
    answers: Answers,
    said: String,
}

impl Waiting<'_> {
    async fn answers(mut self, ui: &mut Ui) -> Answers {
        let end = Instant::now() + self.timeout;
        loop {
            let why = self.round(end, ui).await;
            if self.left.is_empty() {
                return self.answers;
            }
            if Instant::now() >= end {
                let seconds = self.timeout.as_secs();
                for node in std::mem::take(&mut self.left) {
                    let what = why.get(&node).map_or("no answer", String::as_str);
                    let why = format!("no answer in {seconds} s: {what}");
                    self.answers.insert(node, Err(why));
                }
                return self.answers;
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Looks at all pods once, and reads those that run. What the others wait for.
    async fn round(&mut self, end: Instant, ui: &mut Ui) -> BTreeMap<String, String> {
        let mut why = BTreeMap::new();
        let pods = match self.requests.pods(self.namespace).await {
            Ok(pods) => pods,
            Err(error) => {
                return self.left.iter().map(|node| (node.clone(), error.clone())).collect();
            }
        };
        let mine = |pod: &&serde_json::Value| is_of(pod, &self.asked.name);
        let of_node = |node: &String| pods.iter().filter(mine).find(|pod| node_of(pod) == node);
        let events = self.events(self.left.iter().all(|node| of_node(node).is_some())).await;
        let mut running = Vec::new();
        for node in self.left.clone() {
            match stage(of_node(&node), &events) {
                Stage::Runs { pod } => running.push((node, pod)),
                Stage::Waits(text) => {
                    why.insert(node, text);
                }
                Stage::Hopeless(text) => {
                    self.left.remove(&node);
                    self.answers.insert(node, Err(text));
                }
            }
        }
        self.show(&why, ui);
        for (node, answer) in self.read(running, end).await {
            let answer = match answer {
                Ok(answer) => Ok(answer),
                Err(Unread::Forever(text)) => Err(text),
                // A kubelet that is busy is asked again.
                Err(Unread::Now(text)) => {
                    why.insert(node, text);
                    continue;
                }
            };
            self.left.remove(&node);
            self.answers.insert(node, answer);
        }
        why
    }

    /// Why pods are not made, or not started: without a network of pods that is said nowhere else.
    async fn events(&self, all_made: bool) -> Vec<serde_json::Value> {
        if all_made && self.asked.network != Network::Pods {
            return Vec::new();
        }
        let mut events = self.requests.events(self.namespace).await;
        // A pod's name begins with that of its DaemonSet.
        events.retain(|event| text(event, "/involvedObject/name").starts_with(&self.asked.name));
        events
    }

    async fn read(
        &self,
        running: Vec<(String, String)>,
        end: Instant,
    ) -> Vec<(String, Result<Answer, Unread>)> {
        let (requests, namespace) = (self.requests, self.namespace);
        let one = move |(node, pod): (String, String)| async move {
            let limit = end.saturating_duration_since(Instant::now()).max(POLL_INTERVAL);
            let answer = timeout(limit, answer::read(requests.client(), namespace, &pod)).await;
            let late = || Err(Unread::Now("its pod runs, and its log has no answer".to_owned()));
            (node, answer.unwrap_or_else(|_| late()))
        };
        let mut read = Vec::new();
        for some in running.chunks(self.at_once) {
            let mut reading: FuturesUnordered<_> = some.iter().cloned().map(one).collect();
            while let Some(answer) = reading.next().await {
                read.push(answer);
            }
        }
        read
    }

    fn show(&mut self, why: &BTreeMap<String, String>, ui: &mut Ui) {
        let (all, done) = (self.asked.nodes.len(), self.answers.len());
        let what = match self.asked.network {
            Network::Node | Network::NodeAlone => "asking nodes",
            Network::Pods => "asking pods",
        };
        let text = match why.iter().next() {
            Some((node, why)) => format!("{what}: {done} of {all}; {node}: {why}"),
            None => format!("{what}: {done} of {all}"),
        };
        if text != self.said {
            ui.progress(&text);
            self.said = text;
        }
    }
}

/// Deletes it and waits until it is gone; why it is still there, if it takes too long.
async fn remove(requests: &Requests, namespace: &str) -> Option<String> {
    remove_until(requests, namespace, Instant::now() + REMOVAL).await
}

/// Whether it says that this user may not: to ask again changes nothing.
pub(crate) fn is_right_missing(why: &str) -> bool {
    why.contains(" is forbidden: User ")
}

/// The same, and no longer than until then.
pub(super) async fn remove_until(
    requests: &Requests,
    namespace: &str,
    end: Instant,
) -> Option<String> {
    let mut is_deleted = false;
    loop {
        let step = if is_deleted {
            requests.left(namespace).await
        } else {
            requests.delete_namespace(namespace).await.map(|()| Left::Namespace)
        };
        is_deleted |= step.is_ok();
        match step {
            Ok(Left::Nothing) => return None,
            // It may go away after us; what runs in it does not look at anything any more.
            Ok(Left::Namespace) if Instant::now() >= end => {
                return Some("it takes longer than a minute to be removed".to_owned());
            }
            Err(why) if is_right_missing(&why) => return Some(why),
            // An API server that is away for a moment is asked again.
            Err(why) if Instant::now() >= end => return Some(why),
            Ok(Left::Namespace) | Err(_) => sleep(POLL_INTERVAL).await,
        }
    }
}
