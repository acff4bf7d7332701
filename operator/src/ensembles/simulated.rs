//! A service that counts its members where no container runs, as on simulated nodes: no member can be asked there. A
//! pod that is ready serves, the first of them leads, and a change of its members is made at once. The list of members
//! is in this process alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};

use crate::ensemble::{
    Access, Answer, Answers, Change, ChangeError, Ensemble, Joins, Leaves, Member, View,
};

/// The members of all such services, by the UIDs of their objects.
#[derive(Clone, Debug, Default)]
pub struct Simulated(Arc<Mutex<HashMap<String, List>>>);

/// What such a service would know itself.
#[derive(Clone, Debug, Default)]
struct List {
    version: i64,
    members: Vec<Member>,
    /// Those that have left and run on.
    left: BTreeSet<String>,
}

/// What is known of its pods, by their addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pods {
    /// The members, where this process does not know them yet.
    pub(crate) first: Vec<String>,
    /// Those that are ready.
    pub(crate) ready: BTreeSet<String>,
    /// The numbers that they are given.
    pub(crate) ids: BTreeMap<String, u32>,
}

impl Simulated {
    /// In the place of a service that could be asked: its members come and go as there.
    pub(crate) fn of(&self, uid: &str, real: &dyn Ensemble, pods: Pods) -> Arc<dyn Ensemble> {
        let service = Service {
            all: self.clone(),
            uid: uid.to_owned(),
            joins: real.joins(),
            leaves: real.leaves(),
            ready: pods.ready.clone(),
        };
        let mut all = self.lock();
        let list = all.entry(uid.to_owned()).or_default();
        let member = |host: &String| Some(Member { id: *pods.ids.get(host)?, host: host.clone() });
        if list.members.is_empty() {
            list.members = pods.first.iter().filter_map(member).collect();
        }
        list.left.retain(|address| pods.ready.contains(address));
        let waits_for_all = service.joins == Joins::ByStreaming
            && !list.members.iter().all(|member| pods.ready.contains(&member.host));
        if service.joins != Joins::WhenAdded && !waits_for_all {
            for address in pods.ready.difference(&list.left.clone()) {
                let is_new = list.members.iter().all(|member| member.host != *address);
                if let Some(member) = member(address).filter(|_| is_new) {
                    list.members.push(member);
                    list.version += 1;
                }
            }
        }
        Arc::new(service)
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, List>> {
        // Of a list that is half changed the next look makes what it makes of any.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One such service.
#[derive(Debug)]
struct Service {
    all: Simulated,
    uid: String,
    joins: Joins,
    leaves: Leaves,
    ready: BTreeSet<String>,
}

impl Ensemble for Service {
    fn joins(&self) -> Joins {
        self.joins
    }

    fn leaves(&self) -> Leaves {
        self.leaves
    }

    fn look<'a>(&'a self, _: &'a Access, addresses: &'a [String]) -> BoxFuture<'a, Answers> {
        ready(self.answers(addresses)).boxed()
    }

    fn make<'a>(
        &'a self,
        _: &'a Access,
        view: &'a View,
        change: &'a Change,
    ) -> BoxFuture<'a, Result<(), ChangeError>> {
        ready(self.change(view, change)).boxed()
    }

    fn has_left<'a>(
        &'a self,
        _: &'a Access,
        address: &'a str,
    ) -> BoxFuture<'a, Result<bool, ChangeError>> {
        ready(Ok(self.left(address))).boxed()
    }
}

impl Service {
    fn answers(&self, addresses: &[String]) -> Answers {
        let list = self.all.lock().get(&self.uid).cloned().unwrap_or_default();
        let mut serving = list.members.iter().filter(|one| self.ready.contains(&one.host));
        let leader = serving.next().map(|member| member.host.clone());
        let answer = |address: &String| {
            let said = if self.ready.contains(address) {
                let is_leader = leader.as_ref() == Some(address);
                let members = list.members.clone();
                Ok(Answer { version: list.version, members, is_leader, ..Answer::default() })
            } else {
                Err("its pod is not ready".to_owned())
            };
            (address.clone(), said)
        };
        addresses.iter().map(answer).collect()
    }

    /// Whether it does not come again by itself, though it runs.
    fn left(&self, address: &str) -> bool {
        let all = self.all.lock();
        let has_left = |list: &List| list.left.contains(address);
        self.joins != Joins::WhenAdded && all.get(&self.uid).is_some_and(has_left)
    }

    fn change(&self, view: &View, change: &Change) -> Result<(), ChangeError> {
        let mut all = self.all.lock();
        let list = all.entry(self.uid.clone()).or_default();
        if list.version != view.version {
            return Err(ChangeError("the members have changed since".to_owned()));
        }
        list.version += 1;
        match change {
            Change::Add(member) => list.members.push(member.clone()),
            Change::Remove(member) => {
                list.members.retain(|other| other.host != member.host);
                // Of one whose pod has ended nothing runs on.
                if self.ready.contains(&member.host) {
                    list.left.insert(member.host.clone());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A service whose members come in that way.
    #[derive(Debug)]
    struct Real(Joins);

    impl Ensemble for Real {
        fn joins(&self) -> Joins {
            self.0
        }

        fn look<'a>(&'a self, _: &'a Access, _: &'a [String]) -> BoxFuture<'a, Answers> {
            panic!("nobody is asked")
        }

        fn make<'a>(
            &'a self,
            _: &'a Access,
            _: &'a View,
            _: &'a Change,
        ) -> BoxFuture<'a, Result<(), ChangeError>> {
            panic!("nobody is told")
        }
    }

    const ALL: [&str; 4] = ["a", "b", "c", "d"];

    fn service(simulated: &Simulated, joins: Joins, ready: &[&str]) -> Service {
        let text = |all: &[&str]| -> Vec<String> { all.iter().map(ToString::to_string).collect() };
        let ids = text(&ALL).into_iter().zip(1..).collect();
        let ready: BTreeSet<String> = text(ready).into_iter().collect();
        let pods = Pods { first: text(&["a", "b", "c"]), ready: ready.clone(), ids };
        let leaves = simulated.of("u", &Real(joins), pods).leaves();
        Service { all: simulated.clone(), uid: "u".into(), joins, leaves, ready }
    }

    fn view(service: &Service) -> Result<View, String> {
        let answers = service.answers(&ALL.map(str::to_owned));
        View::of(&answers, str::to_owned, |_| false).map_err(|why| why.0)
    }

    fn hosts(view: &View) -> Vec<&str> {
        view.members.iter().map(|member| member.host.as_str()).collect()
    }

    #[test]
    fn ready_pods_serve_the_first_leads_and_without_most_of_them_nothing_is_decided() {
        let simulated = Simulated::default();
        let seen = view(&service(&simulated, Joins::WhenAdded, &["b", "c", "d"])).unwrap();
        assert_eq!((hosts(&seen), seen.leader.as_str()), (vec!["a", "b", "c"], "b"));
        assert!(seen.serving.contains("d") && !seen.has("d") && !seen.serving.contains("a"));
        let few = view(&service(&simulated, Joins::WhenAdded, &["c", "d"]));
        assert_eq!(few, Err("1 of 3 members answer".to_owned()));
    }

    #[test]
    fn a_change_is_made_at_once_and_a_view_from_before_changes_nothing() {
        let simulated = Simulated::default();
        let seen = service(&simulated, Joins::WhenAdded, &ALL);
        let before = view(&seen).unwrap();
        let joins = Change::Add(Member { id: 4, host: "d".to_owned() });
        seen.change(&before, &joins).unwrap();
        assert!(seen.change(&before, &joins).is_err());
        let after = view(&seen).unwrap();
        assert_eq!(hosts(&after), ["a", "b", "c", "d"]);
        seen.change(&after, &Change::Remove(Member { id: 1, host: "a".to_owned() })).unwrap();
        let after = view(&service(&simulated, Joins::WhenAdded, &ALL)).unwrap();
        assert_eq!(hosts(&after), ["b", "c", "d"], "it runs on and is none");
        simulated.forget("u");
        assert_eq!(view(&service(&simulated, Joins::WhenAdded, &ALL)).unwrap().version, 0);
    }

    #[test]
    fn one_that_joins_by_itself_does_so_when_its_pod_is_ready_and_not_when_it_has_just_left() {
        let simulated = Simulated::default();
        let seen = service(&simulated, Joins::ByItself, &ALL);
        let before = view(&seen).unwrap();
        assert_eq!(hosts(&before), ["a", "b", "c", "d"]);
        seen.change(&before, &Change::Remove(Member { id: 4, host: "d".to_owned() })).unwrap();
        let seen = view(&service(&simulated, Joins::ByItself, &ALL)).unwrap();
        assert_eq!(hosts(&seen), ["a", "b", "c"]);
        service(&simulated, Joins::ByItself, &["a", "b", "c"]);
        let seen = view(&service(&simulated, Joins::ByItself, &ALL)).unwrap();
        assert_eq!(hosts(&seen), ["a", "b", "c", "d"], "its pod has been made again");
    }
}
