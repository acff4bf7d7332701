//! A replica that stops loses no call.

use std::time::Duration;

use opensdn_runtime::shutdown::Phase;
use opensdn_webhook::server::Limits;

use crate::stage::{Connection, MUTATE, Stage, VALIDATE, client, connection_limits, request};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draining_under_load_fails_no_call() {
    let stage = Stage::start(Limits::default()).await;
    let loads: Vec<_> = (0..8)
        .map(|_| {
            let (address, config) = (stage.address, client(&stage.ca, None));
            let mut drain = stage.drain.clone();
            tokio::spawn(async move {
                let (mut served, mut asked_to_close) = (0, 0);
                let mut connection = None;
                // New connections stop when the endpoint is gone, which is before the closing.
                loop {
                    let mut open: Connection = match connection.take() {
                        Some(open) => open,
                        None if drain.phase() == Phase::Serving || served < 50 => {
                            Connection::open(address, config.clone()).await.unwrap()
                        }
                        None => break,
                    };
                    let answer = open
                        .review("/validate/a-token-for-tests-only?timeout=5s", b"{}")
                        .await
                        .unwrap();
                    assert_eq!(answer.status, 200);
                    served += 1;
                    if answer.closes() {
                        asked_to_close += 1;
                    } else {
                        connection = Some(open);
                    }
                }
                drain.reached(Phase::Draining).await;
                (served, asked_to_close)
            })
        })
        .collect();
    let reviews = r#"opensdn_webhook_review_duration_seconds_count{step="validate"}"#;
    crate::stage::until(|| stage.metric(reviews) > 500.0).await;
    stage.shutdown.announce(Phase::Draining);
    for load in loads {
        let (served, asked_to_close) = load.await.unwrap();
        assert!(served >= 50 && asked_to_close >= 1, "{served} {asked_to_close}");
    }
    stage.shutdown.announce(Phase::Closing);
    tokio::time::timeout(Duration::from_secs(5), stage.task).await.unwrap().unwrap();
}

#[tokio::test]
async fn closing_finishes_what_is_in_flight_and_ends_idle_connections() {
    let stage = Stage::start(Limits::default()).await;
    stage.hold();
    let mut idle = stage.connect().await;
    let mut busy = stage.connect().await;
    busy.send(&request("POST", "/validate/a-token-for-tests-only?timeout=30s", "", b"{}"))
        .await
        .unwrap();
    stage.until_waiting(1).await;
    // A request of which half the head has come is in flight too.
    let mut half = stage.connect().await;
    let bytes = request("POST", MUTATE, "", b"{}");
    half.send(&bytes[..20]).await.unwrap();
    let mut late_body = stage.connect().await;
    late_body.send(&bytes[..bytes.len() - 1]).await.unwrap();

    stage.shutdown.announce(Phase::Draining);
    stage.shutdown.announce(Phase::Closing);
    assert!(idle.is_closed().await);
    half.send(&bytes[20..]).await.unwrap();
    late_body.send(&bytes[bytes.len() - 1..]).await.unwrap();
    stage.until_waiting(3).await;
    assert!(!stage.task.is_finished());
    stage.release();
    for connection in [&mut busy, &mut half, &mut late_body] {
        let answer = connection.answer().await.unwrap();
        assert_eq!(answer.status, 200);
        assert!(answer.closes());
        assert!(connection.is_closed().await);
    }
    tokio::time::timeout(Duration::from_secs(5), stage.task).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_never_ends_is_given_up_after_the_grace_time() {
    let limits = connection_limits(|limits| limits.grace = Duration::from_millis(100));
    let stage = Stage::start(limits).await;
    stage.hold();
    let mut busy = stage.connect().await;
    busy.send(&request("POST", "/validate/a-token-for-tests-only?timeout=30s", "", b"{}"))
        .await
        .unwrap();
    stage.until_waiting(1).await;
    stage.shutdown.announce(Phase::Closing);
    tokio::time::timeout(Duration::from_secs(5), stage.task).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_draining_server_still_takes_new_connections() {
    let stage = Stage::start(Limits::default()).await;
    stage.shutdown.announce(Phase::Draining);
    let mut connection = stage.connect().await;
    let answer = connection.review(VALIDATE, b"{}").await.unwrap();
    assert_eq!(answer.status, 200);
    assert!(answer.closes());
}
