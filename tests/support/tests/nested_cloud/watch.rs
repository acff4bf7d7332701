//! Changes of global-vrouter-config as a watch reports them: by streams of a server that works and of one that does not,
//! and without any.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use opensdn_config_api::ConfigApi;
use opensdn_config_api::watch::{Change, Timing, Watch};
use opensdn_testing::config_api::{
    Disturbance, FakeConfigApi, Mode, Service, Settings, Times, WatchApi, WatchEnd, WatchFault,
};
use opensdn_testing::eventually::eventually;
use serde_json::json;
use tokio::time::timeout;

use crate::cloud::{Cloud, LIMIT, cluster, http, row, set_up, timing as timing_of_writes};

const OBJECT: &str = "/global-vrouter-config";
const AT_ONCE: Duration = Duration::from_millis(1);

/// Of the two ways only the stream reports within the time of a test.
fn by_stream() -> Timing {
    let (pause, gather) = (AT_ONCE, AT_ONCE);
    Timing { poll: LIMIT, retry: LIMIT, silence: LIMIT, resync: LIMIT, pause, gather }
}

/// Of the two ways polls are quick.
fn by_polls() -> Timing {
    Timing { poll: Duration::from_millis(10), ..by_stream() }
}

fn watch(cloud: &Cloud, timing: Timing) -> Watch {
    Watch::new(Arc::new(cloud.api()), timing)
}

async fn assert_changed(watch: &mut Watch, what: &str) {
    let change = timeout(LIMIT, watch.changed()).await;
    assert!(matches!(change, Ok(Change::Changed)), "{what}: {change:?}");
}

/// Waits for what the watch brings about, and fails where it reports something.
async fn assert_quiet_until(watch: &mut Watch, what: &str, is: impl Fn() -> bool) {
    tokio::select! {
        change = watch.changed() => panic!("until {what}: {change:?}"),
        () = eventually(what, async || is()) => {}
    }
}

/// Changes the object as another client does.
fn change(fake: &FakeConfigApi) {
    let rate = json!({"flow_export_rate": fake.calls().len()});
    fake.update(&fake.global_vrouter_config(), rate).unwrap();
}

/// How many versions have been asked for that were still the newest.
fn unchanged(fake: &FakeConfigApi) -> usize {
    let is_it = |status: Option<StatusCode>| status == Some(StatusCode::NOT_MODIFIED);
    fake.calls().iter().filter(|call| is_it(call.status)).count()
}

#[tokio::test]
async fn a_change_by_another_client_is_reported() {
    Cloud::any(async |cloud| {
        let timing = Timing { poll: Duration::from_millis(100), ..by_stream() };
        let mut watch = watch(cloud, timing);
        assert_changed(&mut watch, "the first time").await;
        let rows = [row("watched", [1, 1], 8082, 100)];
        set_up(&cloud.api(), &cluster("watched"), &rows, &timing_of_writes()).await.unwrap();
        assert_changed(&mut watch, "a row").await;
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_works_costs_no_polls() {
    let cloud = Cloud::fake(Settings::default());
    let mut watch = watch(&cloud, by_stream());
    assert_changed(&mut watch, "the first time").await;
    for _ in 0..3 {
        change(cloud.faults());
        assert_changed(&mut watch, "a change").await;
    }
    let paths: Vec<String> = cloud.faults().calls().into_iter().map(|call| call.path).collect();
    assert_eq!(paths, ["/", "/watch"]);
}

#[tokio::test]
async fn changes_that_come_together_are_one() {
    let cloud = Cloud::fake(Settings::default());
    let gather = Duration::from_millis(50);
    let mut watch = watch(&cloud, Timing { gather, ..by_stream() });
    assert_changed(&mut watch, "the first time").await;
    let fake = cloud.faults();
    for _ in 0..100 {
        change(fake);
    }
    assert_changed(&mut watch, "all").await;
    // A slow machine may have more than one; when the stream has been opened again, all of the first was read.
    fake.end_watches(WatchEnd::Stop);
    let mut count = 0;
    while fake.count(&Method::GET, "/watch") < 2 {
        tokio::select! {
            _ = watch.changed() => count += 1,
            () = eventually("it is opened again", async || fake.watches() == 1) => {}
        }
    }
    assert!(count < 20, "{count} reports");
}

#[tokio::test]
async fn a_stream_that_ends_is_opened_again_and_what_came_in_between_is_reported() {
    for end in [WatchEnd::Stop, WatchEnd::Cut, WatchEnd::CutInEvent] {
        let cloud = Cloud::fake(Settings::default());
        let fake = cloud.faults();
        let mut watch = watch(&cloud, by_stream());
        assert_changed(&mut watch, "the first time").await;
        fake.end_watches(end);
        assert_quiet_until(&mut watch, "it is opened again", || fake.watches() == 1).await;
        fake.end_watches(end);
        change(fake);
        assert_changed(&mut watch, &format!("a change after {end:?}")).await;
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_again_and_again_is_opened_after_longer_and_longer_pauses() {
    let cloud = Cloud::fake(Settings::default());
    let fake = cloud.faults();
    let pause = Duration::from_millis(10);
    let mut watch = watch(&cloud, Timing { pause, poll: pause * 16, ..by_stream() });
    assert_changed(&mut watch, "the first time").await;
    let start = std::time::Instant::now();
    for count in 2..8 {
        fake.end_watches(WatchEnd::Cut);
        let is_open = || fake.watches() == 1 && fake.count(&Method::GET, "/watch") == count;
        assert_quiet_until(&mut watch, "it is opened again", is_open).await;
    }
    // Half of 10, 20, 40, 80, 160 and 160 ms.
    assert!(start.elapsed() >= pause * 47 / 2, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_stream_that_is_silent_is_given_up() {
    for fault in [WatchFault::Silent, WatchFault::Mute] {
        let cloud = Cloud::fake(Settings::default());
        let fake = cloud.faults();
        fake.disturb_watch(fault, Times::Next(1));
        let silence = Duration::from_millis(50);
        let timing = Timing { silence, retry: AT_ONCE, ..by_polls() };
        let mut watch = watch(&cloud, timing);
        assert_changed(&mut watch, "the first time").await;
        assert_quiet_until(&mut watch, "the next", || fake.count(&Method::GET, "/watch") > 1).await;
        change(fake);
        assert_changed(&mut watch, &format!("a change after {fault:?}")).await;
    }
}

#[tokio::test]
async fn a_quiet_stream_is_kept_while_it_says_that_it_is_there() {
    let keep_alive = Duration::from_millis(50);
    let cloud = Cloud::fake(Settings { keep_alive, ..Settings::default() });
    let fake = cloud.faults();
    let mut watch = watch(&cloud, Timing { silence: keep_alive * 40, ..by_stream() });
    assert_changed(&mut watch, "the first time").await;
    let sent = fake.keep_alives();
    assert_quiet_until(&mut watch, "it was quiet", || fake.keep_alives() > sent + 60).await;
    assert_eq!(fake.count(&Method::GET, "/watch"), 1);
}

#[tokio::test]
async fn a_change_that_a_stream_does_not_report_is_found_by_asking_now_and_then() {
    let cloud = Cloud::fake(Settings::default());
    cloud.faults().disturb_watch(WatchFault::Silent, Times::Always);
    let resync = Duration::from_millis(10);
    let mut watch = watch(&cloud, Timing { resync, ..by_stream() });
    assert_changed(&mut watch, "the first time").await;
    let is_asked = || unchanged(cloud.faults()) > 3;
    assert_quiet_until(&mut watch, "it is asked", is_asked).await;
    change(cloud.faults());
    assert_changed(&mut watch, "a change").await;
    assert_eq!(cloud.count(&Method::GET, "/watch"), 1);
}

#[tokio::test]
async fn a_server_without_a_stream_is_polled_by_version() {
    let statuses = [401, 403, 404, 500, 501, 503];
    let refused = statuses.map(|status| Some(StatusCode::from_u16(status).unwrap()));
    for status in refused.into_iter().chain([None]) {
        let cloud = Cloud::fake(Settings::default());
        let fake = cloud.faults();
        match status {
            Some(status) => fake.disturb_watch(WatchFault::Refused(status), Times::Always),
            None => fake.set_watch(WatchApi::Absent),
        }
        let mut watch = watch(&cloud, by_polls());
        assert_changed(&mut watch, "the first time").await;
        assert_quiet_until(&mut watch, "it is polled", || unchanged(fake) > 3).await;
        change(fake);
        assert_changed(&mut watch, &format!("a change with {status:?}")).await;
        let tries = usize::from(status.is_some());
        assert_eq!(fake.count(&Method::GET, "/watch"), tries, "{status:?}");
        // Its name is looked for once, and each poll is one call.
        assert_eq!(fake.count(&Method::POST, "/fqname-to-id"), 1);
    }
}

#[tokio::test]
async fn the_stream_is_used_as_soon_as_there_is_one_and_polls_when_it_is_gone() {
    let cloud = Cloud::fake(Settings { watch: WatchApi::Absent, ..Settings::default() });
    let fake = cloud.faults();
    let mut watch = watch(&cloud, Timing { retry: AT_ONCE, ..by_polls() });
    assert_changed(&mut watch, "the first time").await;
    fake.set_watch(WatchApi::Offered);
    assert_quiet_until(&mut watch, "there is a stream", || fake.watches() == 1).await;
    let polls = fake.count(&Method::GET, OBJECT);
    change(fake);
    assert_changed(&mut watch, "a change by the stream").await;
    assert_eq!(fake.count(&Method::GET, OBJECT), polls);
    fake.set_watch(WatchApi::Absent);
    fake.end_watches(WatchEnd::Cut);
    let is_polled = || fake.count(&Method::GET, OBJECT) > polls;
    assert_quiet_until(&mut watch, "it is polled", is_polled).await;
    change(fake);
    assert_changed(&mut watch, "a change by polls").await;
}

#[tokio::test]
async fn a_token_that_expires_is_replaced_by_streams_and_by_polls() {
    for offered in [WatchApi::Offered, WatchApi::Absent] {
        let (mode, watch) = (Mode::CloudAdmin, offered);
        let cloud = Cloud::fake(Settings { mode, watch, ..Settings::default() });
        let fake = cloud.faults();
        let api = Arc::new(cloud.api_of("admin", "contrail123"));
        let mut watch = Watch::new(api, by_polls());
        assert_changed(&mut watch, "the first time").await;
        fake.expire_tokens();
        fake.end_watches(WatchEnd::Cut);
        let is_back = || fake.tokens().len() == 1;
        assert_quiet_until(&mut watch, "there is a new token", is_back).await;
        change(fake);
        assert_changed(&mut watch, &format!("{offered:?}")).await;
    }
}

#[tokio::test]
async fn a_server_that_is_away_is_reported_and_its_return_is_a_change() {
    let cloud = Cloud::fake(Settings::default());
    let fake = cloud.faults();
    let (url, limit) = (fake.url().to_owned(), Duration::from_millis(20));
    let api = ConfigApi::new(http(), &[url], None, limit).unwrap();
    let mut watch = Watch::new(Arc::new(api), Timing { retry: AT_ONCE, ..by_polls() });
    fake.disturb(Service::ConfigApi, Disturbance::Unavailable, Times::Always);
    for _ in 0..3 {
        let change = watch.changed().await;
        assert!(matches!(&change, Change::Unreachable(error) if error.is_passing()), "{change:?}");
    }
    fake.disturb(Service::ConfigApi, Disturbance::Unavailable, Times::Never);
    // The limit is short, so that an attempt may fail all the same.
    while !matches!(timeout(LIMIT, watch.changed()).await.unwrap(), Change::Changed) {}
}

#[tokio::test]
async fn a_watch_gets_over_any_call_that_fails_once() {
    for disturbance in [Disturbance::Cut, Disturbance::Unanswered, Disturbance::Unavailable] {
        for offered in [WatchApi::Offered, WatchApi::Absent] {
            for after in 0..6 {
                let cloud = Cloud::fake(Settings { watch: offered, ..Settings::default() });
                let fake = cloud.faults();
                fake.disturb(Service::ConfigApi, disturbance, Times::Once { after });
                let mut watch = watch(&cloud, by_polls());
                let what = format!("{disturbance:?} {offered:?} at {after}");
                assert_changed(&mut watch, &what).await;
                change(fake);
                assert_changed(&mut watch, &what).await;
            }
        }
    }
}

#[tokio::test]
async fn a_future_that_is_dropped_loses_nothing() {
    let cloud = Cloud::fake(Settings::default());
    let fake = cloud.faults();
    let slow = Disturbance::Slow(Duration::from_millis(50));
    fake.disturb(Service::ConfigApi, slow, Times::Always);
    let mut watch = watch(&cloud, by_stream());
    for what in ["the first time", "a change"] {
        let next = loop {
            if let Ok(next) = timeout(Duration::from_millis(2), watch.changed()).await {
                break next;
            }
        };
        assert!(matches!(next, Change::Changed), "{what}: {next:?}");
        change(fake);
    }
    // Each call was sent once, although it took longer than any of the futures lived.
    assert_eq!(fake.calls().len(), 2);
}

#[tokio::test]
async fn a_change_between_two_futures_is_reported_by_the_second() {
    let cloud = Cloud::fake(Settings::default());
    let mut watch = watch(&cloud, by_stream());
    assert_changed(&mut watch, "the first time").await;
    change(cloud.faults());
    assert_changed(&mut watch, "what nothing was waiting for").await;
}

#[tokio::test]
async fn another_server_is_watched_where_one_is_gone() {
    let start = || FakeConfigApi::start(Settings::default()).unwrap();
    let (one, other) = (start(), start());
    let urls = [one.url().to_owned(), other.url().to_owned()];
    let api = Arc::new(ConfigApi::new(http(), &urls, None, LIMIT).unwrap());
    let mut watch = Watch::new(api, by_stream());
    assert_changed(&mut watch, "the first time").await;
    assert_eq!((one.watches(), other.watches()), (1, 0));
    drop(one);
    assert_changed(&mut watch, "the object of the other").await;
    assert_eq!(other.watches(), 1);
    change(&other);
    assert_changed(&mut watch, "a change there").await;
}
