//! Which requests are disturbed, and how.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::watch;

use super::request::Asked;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not reach the API server, and no answer comes.
    LoseRequest,
    /// It is made, and no answer says so.
    LoseAnswer,
    /// It does not reach the API server, and this is the answer.
    Answer(u16),
    /// The same, with the header that says in how many seconds it may be tried again.
    RetryAfter(u16, u32),
    /// It does not reach the API server, and the connection is reset.
    Reset,
    /// It waits here, and reaches the API server when it is released.
    Hold,
    /// The answer begins, and neither comes to an end nor says anything: a list of which no byte comes, a watch that
    /// is silent.
    Silent,
    /// The answer ends in the middle of its first part, and the connection with it.
    Cut,
    /// Of a watch: it begins, and its first event is the error 410.
    Expire,
}

/// Which requests are disturbed: the first of all of these, unless it is said otherwise. Those by which a Lease is held
/// are not among them.
#[derive(Clone, Debug)]
pub struct Which {
    kind: Kind,
    resource: Option<String>,
    name: Option<String>,
    after: usize,
    times: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Writes,
    Reads,
    Lists,
    Watches,
}

impl Which {
    /// All that change something.
    #[must_use]
    pub fn writes() -> Self {
        Self::of_kind(Kind::Writes)
    }

    /// All that read one object, or a list of them.
    #[must_use]
    pub fn reads() -> Self {
        Self::of_kind(Kind::Reads)
    }

    /// Only those of lists.
    #[must_use]
    pub fn lists() -> Self {
        Self::of_kind(Kind::Lists)
    }

    /// All watches.
    #[must_use]
    pub fn watches() -> Self {
        Self::of_kind(Kind::Watches)
    }

    fn of_kind(kind: Kind) -> Self {
        Self { kind, resource: None, name: None, after: 0, times: 1 }
    }

    /// Only those of that resource, by its plural, with a slash and its subresource: `redis/status`.
    #[must_use]
    pub fn of(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Only those of the object of that name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// The first so many are left alone.
    #[must_use]
    pub fn after(mut self, number: usize) -> Self {
        self.after = number;
        self
    }

    /// So many, and not one.
    #[must_use]
    pub fn times(mut self, number: usize) -> Self {
        self.times = number;
        self
    }

    /// All, until the disturbance is ended.
    #[must_use]
    pub fn always(self) -> Self {
        self.times(usize::MAX)
    }

    fn includes(&self, asked: &Asked) -> bool {
        let is_of_kind = match self.kind {
            Kind::Writes => !asked.is_read(),
            Kind::Reads => asked.is_read() && !asked.is_watch(),
            Kind::Lists => asked.is_list(),
            Kind::Watches => asked.is_watch(),
        };
        let resource = match asked.subresource.as_str() {
            "" => asked.resource.clone(),
            subresource => format!("{}/{subresource}", asked.resource),
        };
        is_of_kind
            && !asked.is_of_lease()
            && self.resource.as_ref().is_none_or(|wanted| *wanted == resource)
            && self.name.as_ref().is_none_or(|wanted| *wanted == asked.name)
    }
}

/// Requests that are being disturbed. It lasts until it is ended, also when this is dropped.
#[derive(Clone, Debug)]
pub struct Disturbance(Arc<Rule>);

#[derive(Debug)]
struct Rule {
    which: Which,
    fault: Fault,
    seen: AtomicUsize,
    happened: watch::Sender<usize>,
    released: watch::Sender<bool>,
    ended: AtomicBool,
}

impl Disturbance {
    pub(super) fn new(which: Which, fault: Fault) -> Self {
        Self(Arc::new(Rule {
            which,
            fault,
            seen: AtomicUsize::new(0),
            happened: watch::Sender::new(0),
            released: watch::Sender::new(false),
            ended: AtomicBool::new(false),
        }))
    }

    /// How often it has taken place.
    #[must_use]
    pub fn times(&self) -> usize {
        *self.0.happened.borrow()
    }

    /// Waits until it has taken place so often.
    pub async fn happened(&self, times: usize) {
        // The sender lives as long as this.
        let _ = self.0.happened.subscribe().wait_for(|number| *number >= times).await;
    }

    /// No further request is disturbed, and those that are held reach the API server.
    pub fn end(&self) {
        self.0.ended.store(true, Ordering::Release);
        self.0.released.send_replace(true);
    }

    /// What becomes of a request, which counts.
    pub(super) fn fault_of(&self, asked: &Asked) -> Option<Fault> {
        let Rule { which, fault, seen, ended, .. } = &*self.0;
        if ended.load(Ordering::Acquire) || !which.includes(asked) {
            return None;
        }
        let number = seen.fetch_add(1, Ordering::AcqRel);
        let is_it = number >= which.after && number - which.after < which.times;
        is_it.then_some(*fault)
    }

    pub(super) fn takes_place(&self) {
        self.0.happened.send_modify(|number| *number += 1);
    }

    pub(super) async fn released(&self) {
        let _ = self.0.released.subscribe().wait_for(|released| *released).await;
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn asked(method: &Method, uri: &str) -> Asked {
        Asked::new(method, &uri.parse().unwrap())
    }

    #[test]
    fn the_requests_of_one_resource_are_counted_and_some_of_them_disturbed() {
        let which = Which::writes().of("pods").after(1).times(2);
        let disturbance = Disturbance::new(which, Fault::Reset);
        let of = |uri: &str| disturbance.fault_of(&asked(&Method::DELETE, uri));
        let pod = "/api/v1/namespaces/tf/pods/a";
        assert_eq!((of(pod), of("/api/v1/nodes/a")), (None, None));
        assert_eq!(of("/api/v1/namespaces/tf/pods/a/status"), None, "another resource");
        assert_eq!((of(pod), of(pod), of(pod)), (Some(Fault::Reset), Some(Fault::Reset), None));
        let read = asked(&Method::GET, pod);
        assert_eq!(Disturbance::new(Which::writes(), Fault::Cut).fault_of(&read), None);
        let lease = asked(&Method::PUT, "/apis/coordination.k8s.io/v1/namespaces/tf/leases/a");
        assert_eq!(Disturbance::new(Which::writes(), Fault::Cut).fault_of(&lease), None);
    }

    #[test]
    fn what_has_ended_disturbs_nothing() {
        let disturbance = Disturbance::new(Which::reads().always(), Fault::Silent);
        let read = asked(&Method::GET, "/api/v1/nodes");
        assert_eq!(disturbance.fault_of(&read), Some(Fault::Silent));
        disturbance.end();
        assert_eq!(disturbance.fault_of(&read), None);
    }
}
