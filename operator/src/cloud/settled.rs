//! What need not be read again yet: an object is looked at whenever something in its namespace changes, and that is no
//! reason to ask its cloud. Between two whole readings it is asked whether the object with the rows has changed, which
//! is one call.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use opensdn_config_api::virtual_network::{self, Snat};
use opensdn_config_api::{ConfigApi, vrouter_config};

/// After that everything is read, also if nothing seems to have changed.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// How each object was found last, by its UID.
#[derive(Default)]
pub(super) struct Settled(Mutex<HashMap<String, Found>>);

/// How an object and its cloud were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// What was wanted.
    wanted: String,
    /// The UUID and the version of the object with the rows.
    rows: (String, String),
    /// The network on which SNAT was found on.
    network: Option<String>,
    /// When all was read.
    read: Instant,
    /// When it was asked last.
    asked: Instant,
    /// Whether it is to be asked at once.
    is_due: bool,
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
    /// What is to be done about the object, which wants this.
    pub(super) fn next(&self, uid: &str, wanted: &str, interval: Duration, now: Instant) -> Next {
        let Some(found) = self.lock().get(uid).cloned() else { return Next::Read };
        if found.wanted != wanted || now.duration_since(found.read) >= LONGEST {
            return Next::Read;
        }
        let rest = found.retry_after.unwrap_or(interval);
        match rest.checked_sub(now.duration_since(found.asked)) {
            Some(left) if !left.is_zero() && !found.is_due => Next::Rest(left),
            _ if found.retry_after.is_some() => Next::Read,
            _ => Next::Ask(found),
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
            is_due: false,
            retry_after: None,
        };
        self.lock().insert(uid.to_owned(), found);
    }

    /// It could not be made so: what changes beside it is no reason to try it again sooner.
    pub(super) fn failed(&self, uid: &str, wanted: &str, retry_after: Duration, now: Instant) {
        let found = Found {
            wanted: wanted.to_owned(),
            rows: (String::new(), String::new()),
            network: None,
            read: now,
            asked: now,
            is_due: false,
            retry_after: Some(retry_after),
        };
        self.lock().insert(uid.to_owned(), found);
    }

    /// It is to be asked the next time, however short ago that was done.
    pub(super) fn ask(&self, uid: &str) {
        if let Some(found) = self.lock().get_mut(uid) {
            found.is_due = true;
        }
    }

    /// It is as it was found.
    pub(super) fn asked(&self, uid: &str, now: Instant) {
        if let Some(found) = self.lock().get_mut(uid) {
            (found.asked, found.is_due) = (now, false);
        }
    }

    pub(super) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Found>> {
        // A map of whole entries cannot be left half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cloud_is_asked_by_interval_and_read_whole_after_a_while() {
        let (settled, start) = (Settled::default(), Instant::now());
        let minute = Duration::from_secs(60);
        assert_eq!(settled.next("u", "1", minute, start), Next::Read);
        settled.read("u", "1", ("uuid".to_owned(), "1".to_owned()), None, start);
        assert_eq!(settled.next("u", "1", minute, start + minute / 4), Next::Rest(minute * 3 / 4));
        assert!(matches!(settled.next("u", "1", minute, start + minute), Next::Ask(_)));
        settled.asked("u", start + minute);
        assert_eq!(settled.next("u", "1", minute, start + minute), Next::Rest(minute));
        settled.ask("u");
        assert!(matches!(settled.next("u", "1", minute, start + minute), Next::Ask(_)), "at once");
        settled.asked("u", start + minute);
        assert_eq!(settled.next("u", "1", minute, start + minute), Next::Rest(minute));
        assert_eq!(settled.next("u", "1", minute, start + LONGEST), Next::Read);
        assert_eq!(settled.next("u", "2", minute, start), Next::Read);
        settled.failed("u", "1", minute / 6, start);
        let next = settled.next("u", "1", minute, start);
        assert_eq!(next, Next::Rest(minute / 6), "not at each event");
        assert_eq!(settled.next("u", "1", minute, start + minute / 6), Next::Read);
        settled.forget("u");
        assert_eq!(settled.next("u", "1", minute, start), Next::Read);
    }
}
