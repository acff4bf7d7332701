//! What need not be read again yet: an object is looked at whenever something in its namespace changes, and that is no
//! reason to ask its cloud. Between two whole readings it is asked whether the object with the rows has changed, which
//! is one call.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use opensdn_config_api::virtual_network::{self, Snat};
use opensdn_config_api::{ConfigApi, vrouter_config};

/// After that everything is read, also if nothing seems to have changed.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// How each object was found last, by its UID.
#[derive(Default)]
pub(super) struct Settled(Mutex<State>);

#[derive(Default)]
struct State {
    found: HashMap<String, Found>,
    /// Objects of which the cloud has reported a change that no pass has begun after.
    due: HashSet<String>,
}

/// How an object and its cloud were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// What was wanted.
    wanted: String,
    /// The UUID and the version of the object with the rows, from before it was read whole: what others change while that
    /// is done makes another version.
    rows: (String, String),
    /// The network on which SNAT was found on.
    network: Option<String>,
    /// When all was read.
    read: Instant,
    /// When it was asked last.
    asked: Instant,
    /// Where it could not be made as it is wanted, when that is tried again.
    retry_after: Option<Duration>,
}

impl Found {
    /// Whether neither the rows nor SNAT have changed since.
    pub(super) async fn is_so(&self, api: &ConfigApi) -> bool {
        let (uuid, version) = &self.rows;
        if !vrouter_config::is_current(api, uuid, version).await.unwrap_or_default() {
            return false;
        }
        match &self.network {
            None => true,
            Some(network) => virtual_network::fabric_snat(api, network)
                .await
                .is_ok_and(|snat| snat == Some(Snat::On)),
        }
    }
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing until then.
    Rest(Duration),
    /// To ask whether it is as it was found.
    Ask(Found),
    /// To read everything.
    Read,
}

impl Settled {
    /// What is to be done about the object, which wants this. How it was found is taken out when it is to be asked: a pass
    /// that ends before [`Settled::asked`] knows nothing of it any more.
    pub(super) fn next(&self, uid: &str, wanted: &str, interval: Duration, now: Instant) -> Next {
        let State { found: all, due } = &mut *self.lock();
        let is_due = due.remove(uid);
        let Some(found) = all.get(uid) else { return Next::Read };
        if found.wanted != wanted || now.duration_since(found.read) >= LONGEST {
            return Next::Read;
        }
        let rest = found.retry_after.unwrap_or(interval);
        match rest.checked_sub(now.duration_since(found.asked)) {
            Some(left) if !left.is_zero() && !is_due => Next::Rest(left),
            _ if found.retry_after.is_some() => Next::Read,
            _ => all.remove(uid).map_or(Next::Read, Next::Ask),
        }
    }

    /// Everything was read, and is as the object wants it.
    pub(super) fn read(
        &self,
        uid: &str,
        wanted: &str,
        rows: (String, String),
        network: Option<String>,
        now: Instant,
    ) {
        let found = Found {
            wanted: wanted.to_owned(),
            rows,
            network,
            read: now,
            asked: now,
            retry_after: None,
        };
        self.lock().found.insert(uid.to_owned(), found);
    }

    /// It could not be made so: what changes beside it is no reason to try it again sooner.
    pub(super) fn failed(&self, uid: &str, wanted: &str, retry_after: Duration, now: Instant) {
        let found = Found {
            wanted: wanted.to_owned(),
            rows: (String::new(), String::new()),
            network: None,
            read: now,
            asked: now,
            retry_after: Some(retry_after),
        };
        let State { found: all, due } = &mut *self.lock();
        all.insert(uid.to_owned(), found);
        due.remove(uid);
    }

    /// It is to be asked by the next pass, however short ago that was done, and also where one is under way.
    pub(super) fn ask(&self, uid: &str) {
        self.lock().due.insert(uid.to_owned());
    }

    /// It is as it was found.
    pub(super) fn asked(&self, uid: &str, found: Found, now: Instant) {
        self.lock().found.insert(uid.to_owned(), Found { asked: now, ..found });
    }

    pub(super) fn forget(&self, uid: &str) {
        let State { found, due } = &mut *self.lock();
        found.remove(uid);
        due.remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Maps of whole entries cannot be left half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// As one that was read now.
    fn read(settled: &Settled, now: Instant) {
        settled.read("u", "1", ("uuid".to_owned(), "1".to_owned()), None, now);
    }

    /// How it was found, if it is to be asked.
    fn asks(settled: &Settled, now: Instant) -> Option<Found> {
        match settled.next("u", "1", MINUTE, now) {
            Next::Ask(found) => Some(found),
            Next::Rest(_) | Next::Read => None,
        }
    }

    #[test]
    fn a_cloud_is_asked_by_interval_and_read_whole_after_a_while() {
        let (settled, start) = (Settled::default(), Instant::now());
        let next = |now| settled.next("u", "1", MINUTE, now);
        assert_eq!(next(start), Next::Read);
        read(&settled, start);
        assert_eq!(next(start + MINUTE / 4), Next::Rest(MINUTE * 3 / 4));
        let found = asks(&settled, start + MINUTE).unwrap();
        settled.asked("u", found, start + MINUTE);
        assert_eq!(next(start + MINUTE), Next::Rest(MINUTE));
        settled.ask("u");
        let found = asks(&settled, start + MINUTE).expect("at once");
        settled.asked("u", found, start + MINUTE);
        assert_eq!(next(start + MINUTE), Next::Rest(MINUTE));
        assert_eq!(next(start + LONGEST), Next::Read);
        assert_eq!(settled.next("u", "2", MINUTE, start), Next::Read);
        settled.failed("u", "1", MINUTE / 6, start);
        assert_eq!(next(start), Next::Rest(MINUTE / 6), "not at each event");
        assert_eq!(next(start + MINUTE / 6), Next::Read);
        settled.forget("u");
        assert_eq!(next(start), Next::Read);
    }

    #[test]
    fn a_change_that_is_reported_while_a_pass_is_under_way_is_looked_at_after_it() {
        let (settled, start) = (Settled::default(), Instant::now());
        assert_eq!(settled.next("u", "1", MINUTE, start), Next::Read);
        settled.ask("u");
        read(&settled, start);
        let found = asks(&settled, start).expect("after one that has read all");
        settled.ask("u");
        settled.asked("u", found, start);
        assert!(asks(&settled, start).is_some(), "after one that has asked");
        // That one has ended in between.
        assert_eq!(settled.next("u", "1", MINUTE, start), Next::Read);
    }
}
