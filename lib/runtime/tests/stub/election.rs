//! What a replica does that loses its Lease. The server keeps one Lease, and is down on demand.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::Client;
use opensdn_runtime::leader::{Election, Leadership, OnLoss, Timing};
use opensdn_runtime::readiness::Readiness;
use opensdn_runtime::shutdown::{self, Phase, Shutdown};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::api_server::{ApiServer, Seen, refusal};

/// Generous on a slow machine; everything here takes well below a second.
const LONG: Duration = Duration::from_secs(30);

#[derive(Clone, Default)]
struct Store {
    lease: Arc<Mutex<Option<Value>>>,
    is_away: Arc<AtomicBool>,
    hangs: Arc<AtomicBool>,
}

impl Store {
    fn answer(&self, seen: &Seen) -> Option<(u16, Value)> {
        if self.hangs.load(Ordering::Acquire) {
            return None;
        }
        if self.is_away.load(Ordering::Acquire) {
            return Some(refusal(503, "ServiceUnavailable", "away"));
        }
        let mut lease = self.lease.lock().unwrap();
        if seen.method != "GET" {
            let version = lease.as_ref().map_or(0, |_| 1) + seen.uri.len() as u64;
            let mut written = seen.body.clone();
            written["metadata"]["resourceVersion"] = json!(format!("{version}"));
            *lease = Some(written);
        }
        Some(match &*lease {
            Some(lease) => (200, lease.clone()),
            None => refusal(404, "NotFound", "none"),
        })
    }

    fn holder(&self) -> Option<String> {
        let lease = self.lease.lock().unwrap();
        let holder = lease.as_ref()?.pointer("/spec/holderIdentity")?.as_str()?;
        Some(holder.to_owned())
    }
}

fn election(on_loss: OnLoss) -> Election {
    // Who is starved for as long loses the Lease before the test has seen that it led.
    let timing = Timing {
        renew_deadline: Duration::from_secs(1),
        renew_period: Duration::from_millis(20),
        retry_period: Duration::from_millis(20),
        ..Timing::default()
    };
    Election { timing, on_loss, ..Election::new("n", "leader", "me") }
}

async fn leader(on_loss: OnLoss) -> (Store, Leadership, Shutdown) {
    let store = Store::default();
    let answers = store.clone();
    let (_, client): (_, Client) = ApiServer::start(move |seen| answers.answer(seen)).await;
    let (shutdown, drain) = shutdown::channel();
    let mut leadership = Leadership::start(client, election(on_loss), drain);
    until(&mut leadership, true).await;
    (store, leadership, shutdown)
}

async fn until(leadership: &mut Leadership, held: bool) {
    let wait = async {
        while leadership.is_held() != held {
            leadership.changed().await;
        }
    };
    timeout(LONG, wait).await.unwrap();
}

#[tokio::test]
async fn who_is_not_ready_yet_does_not_compete() {
    let store = Store::default();
    let answers = store.clone();
    let (server, client) = ApiServer::start(move |seen| answers.answer(seen)).await;
    let (_shutdown, drain) = shutdown::channel();
    let readiness = Readiness::default();
    let (one, other) = (readiness.add_check("one", "not yet"), readiness.add_check("other", "no"));
    let mut leadership =
        Leadership::start_when_ready(client, election(OnLoss::Continue), readiness, drain);
    one.pass();
    // Longer than many retry periods.
    assert!(timeout(Duration::from_millis(200), leadership.changed()).await.is_err());
    assert!(server.seen().is_empty(), "not even the Lease was read");
    other.pass();
    until(&mut leadership, true).await;
    one.fail("again");
    assert!(leadership.is_held(), "who leads goes on until the Lease is lost");
}

#[tokio::test]
async fn a_server_that_loses_the_lease_continues_and_competes_again() {
    let (store, mut leadership, _shutdown) = leader(OnLoss::Continue).await;
    store.is_away.store(true, Ordering::Release);
    until(&mut leadership, false).await;
    store.is_away.store(false, Ordering::Release);
    until(&mut leadership, true).await;
    assert!(timeout(Duration::ZERO, leadership.ended()).await.is_err());
}

#[tokio::test]
async fn a_controller_that_loses_the_lease_never_leads_again() {
    let (store, mut leadership, _shutdown) = leader(OnLoss::End).await;
    store.is_away.store(true, Ordering::Release);
    until(&mut leadership, false).await;
    timeout(LONG, leadership.ended()).await.unwrap();
    store.is_away.store(false, Ordering::Release);
    // It would take the free Lease within the retry period of 20 ms.
    *store.lease.lock().unwrap() = None;
    assert!(timeout(Duration::from_millis(300), leadership.changed()).await.is_err());
    assert_eq!(store.holder(), None);
}

#[tokio::test]
async fn a_call_that_hangs_does_not_extend_the_renew_deadline() {
    let (store, mut leadership, _shutdown) = leader(OnLoss::End).await;
    store.hangs.store(true, Ordering::Release);
    // The deadline is 1 s; the call itself would be given up after 4 s.
    let lost = timeout(Duration::from_millis(3_500), until(&mut leadership, false)).await;
    assert!(lost.is_ok(), "it led on while the call hung");
    timeout(LONG, leadership.ended()).await.unwrap();
}

#[tokio::test]
async fn a_lease_that_another_replica_took_is_lost() {
    let (store, mut leadership, _shutdown) = leader(OnLoss::End).await;
    if let Some(lease) = &mut *store.lease.lock().unwrap() {
        lease["spec"]["holderIdentity"] = json!("other");
        lease["metadata"]["resourceVersion"] = json!("other");
    }
    until(&mut leadership, false).await;
    timeout(LONG, leadership.ended()).await.unwrap();
    assert_eq!(store.holder().as_deref(), Some("other"));
}

#[tokio::test]
async fn who_was_stopped_until_after_the_deadline_may_not_write_though_nothing_was_noticed() {
    let (store, leadership, _shutdown) = leader(OnLoss::End).await;
    assert!(leadership.may_write());
    store.hangs.store(true, Ordering::Release);
    // As a process that is stopped: the one thread of this test does nothing else meanwhile.
    std::thread::sleep(Duration::from_millis(1_100));
    assert!(leadership.is_held(), "it has not been noticed");
    assert!(!leadership.may_write());
    timeout(LONG, leadership.ended()).await.unwrap();
    assert!(!leadership.may_write());
}

async fn is_released(store: &Store) {
    let released = async {
        while store.holder().is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, released).await.unwrap();
}

#[tokio::test]
async fn a_server_releases_the_lease_as_soon_as_it_stops() {
    let (store, mut leadership, shutdown) = leader(OnLoss::Continue).await;
    shutdown.announce(Phase::Draining);
    until(&mut leadership, false).await;
    is_released(&store).await;
    assert!(timeout(Duration::ZERO, leadership.ended()).await.is_err(), "a shutdown is no loss");
}

#[tokio::test]
async fn a_controller_keeps_the_lease_until_its_work_is_over() {
    let (store, mut leadership, shutdown) = leader(OnLoss::End).await;
    shutdown.announce(Phase::Draining);
    let version =
        || store.lease.lock().unwrap().as_ref().map(|lease| lease["spec"]["renewTime"].clone());
    let before = version();
    // Longer than the renew deadline: it is renewed all the time.
    assert!(timeout(Duration::from_millis(1_500), leadership.changed()).await.is_err());
    assert!(leadership.is_held() && version() != before);
    leadership.finish();
    until(&mut leadership, false).await;
    is_released(&store).await;
    assert!(timeout(Duration::ZERO, leadership.ended()).await.is_err(), "a shutdown is no loss");
}
