//! What a caller that means harm, or is broken, can and cannot do.

use std::time::Duration;

use opensdn_webhook::server::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stage::{Stage, VALIDATE, connection_limits, request, until};

/// Impatient, so that the tests are not slow.
fn impatient() -> Limits {
    let short = Duration::from_millis(200);
    let limits = connection_limits(|limits| limits.head = short);
    Limits { receive: short, discard: short, ..limits }
}

#[tokio::test]
async fn a_head_that_dribbles_is_cut_off_and_the_others_are_served() {
    let stage = Stage::start(impatient()).await;
    let mut slow = stage.connect().await;
    // A connection that was used before is no exception.
    assert_eq!(slow.review(VALIDATE, b"{}").await.unwrap().status, 200);
    let dribble = async {
        let start = b"POST /validate/a-token-for-tests-only HTTP/1.1\r\n";
        for byte in start.iter().chain(b"x: y\r\n".iter().cycle()) {
            if slow.send(&[*byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let mut other = stage.connect().await;
    let serving = async {
        loop {
            assert_eq!(other.review(VALIDATE, b"{}").await.unwrap().status, 200);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        ended = tokio::time::timeout(Duration::from_secs(60), dribble) => ended.unwrap(),
        () = serving => unreachable!(),
    }
}

#[tokio::test]
async fn a_body_that_dribbles_is_answered_408_and_cut_off() {
    let stage = Stage::start(impatient()).await;
    let mut slow = stage.connect().await;
    slow.send(b"POST /validate/a-token-for-tests-only HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{")
        .await
        .unwrap();
    let answer = slow.answer().await.unwrap();
    assert_eq!(answer.status, 408);
    assert!(answer.closes());
    assert!(slow.is_closed().await);
}

#[tokio::test]
async fn a_caller_that_never_speaks_tls_is_cut_off() {
    let limits = connection_limits(|limits| limits.handshake = Duration::from_millis(200));
    let stage = Stage::start(limits).await;
    let mut silent = stage.connect_raw().await;
    let mut plain = stage.connect_raw().await;
    plain
        .write_all(b"GET /validate/a-token-for-tests-only HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    for stream in [&mut silent, &mut plain] {
        let mut rest = Vec::new();
        let end = stream.read_to_end(&mut rest);
        let ended = tokio::time::timeout(Duration::from_secs(60), end).await.unwrap();
        assert!(ended.is_err() || rest.len() < 16, "{rest:?}");
    }
    until(|| stage.metric("opensdn_webhook_connections") == 0.0).await;
}

#[tokio::test]
async fn an_idle_connection_is_kept_long_but_not_for_ever() {
    let idle = Duration::from_secs(3);
    let mut limits = impatient();
    limits.connection.idle = idle;
    let stage = Stage::start(limits).await;
    let mut connection = stage.connect().await;
    assert_eq!(connection.review(VALIDATE, b"{}").await.unwrap().status, 200);
    // Longer than a head may take, shorter than a connection may be idle.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let began = std::time::Instant::now();
    assert_eq!(connection.review(VALIDATE, b"{}").await.unwrap().status, 200);
    assert!(connection.is_closed().await);
    assert!(began.elapsed() >= idle, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_thousand_idle_connections_disturb_nobody() {
    let stage = Stage::start(Limits::default()).await;
    let mut idle = Vec::new();
    for _ in 0..1_000 {
        idle.push(stage.connect().await);
    }
    assert_eq!(stage.metric("opensdn_webhook_connections"), 1000.0);
    let mut connection = stage.connect().await;
    for _ in 0..100 {
        assert_eq!(connection.review(VALIDATE, b"{}").await.unwrap().status, 200);
    }
    for connection in &mut idle {
        assert_eq!(connection.review(VALIDATE, b"{}").await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn one_connection_too_many_costs_the_idle_one_and_never_a_request_in_flight() {
    let stage = Stage::start(connection_limits(|limits| limits.connections = 3)).await;
    stage.hold();
    let mut busy = stage.connect().await;
    busy.send(&request("POST", "/validate/a-token-for-tests-only?timeout=30s", "", b"{}"))
        .await
        .unwrap();
    stage.until_waiting(1).await;
    let mut idle = stage.connect().await;
    let mut crowd = Vec::new();
    for _ in 0..10 {
        crowd.push(stage.connect().await);
    }
    assert!(idle.is_closed().await);
    stage.release();
    assert_eq!(busy.answer().await.unwrap().status, 200);
    let mut newest = crowd.pop().unwrap();
    assert_eq!(newest.review(VALIDATE, b"{}").await.unwrap().status, 200);
    until(|| stage.metric("opensdn_webhook_connections") <= 3.0).await;
}

#[tokio::test]
async fn an_endless_body_is_cut_off_at_the_limit_with_flat_memory() {
    let stage = Stage::start(Limits::default()).await;
    let mut connection = stage.connect().await;
    let before = resident_mebibytes();
    let head = "POST /validate/a-token-for-tests-only HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    connection.send(head.as_bytes()).await.unwrap();
    let mut chunk = b"10000\r\n{'uid':'0123456'".to_vec();
    chunk.resize(7 + 0x10000, b'x');
    chunk.extend_from_slice(b"\r\n");
    let (mut reader, mut writer) = tokio::io::split(connection.stream);
    let sending = tokio::spawn(async move {
        let mut sent = 0_usize;
        while sent < 1 << 30 && writer.write_all(&chunk).await.is_ok() {
            sent += chunk.len();
        }
        sent
    });
    let mut answer = Vec::new();
    // The end of the stream may be a reset, as the caller is still sending; the answer is there.
    let _ = reader.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    assert!(answer.ends_with(r#"{"too_large":"{'uid':'0123456'"}"#), "{answer}");
    let sent = sending.await.unwrap() >> 20;
    assert!(sent < 200, "{sent} MiB were taken");
    // The limit is 8 MiB; buffers of both ends of the connection are in this process, too.
    let grown = resident_mebibytes().saturating_sub(before);
    assert!(grown < 32, "{grown} MiB");
}

fn resident_mebibytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[tokio::test]
async fn what_is_not_http_ends_that_connection_only() {
    let stage = Stage::start(impatient()).await;
    for garbage in [
        b"\0\0\0\0\r\n\r\n".as_slice(),
        b"POST /validate/a-token-for-tests-only HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /validate/a-token-for-tests-only HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST /validate/a-token-for-tests-only HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"POST /validate/a-token-for-tests-only HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nnot a length\r\n",
    ] {
        let mut connection = stage.connect().await;
        connection.send(garbage).await.unwrap();
        let answer = connection.answer().await;
        let refused = answer.as_ref().map_or(true, |answer| (400..500).contains(&answer.status));
        assert!(refused, "{answer:?}");
        assert!(connection.is_closed().await, "{}", String::from_utf8_lossy(garbage));
    }
    let mut head = b"POST /validate/a-token-for-tests-only HTTP/1.1\r\nx: ".to_vec();
    head.resize(1 << 20, b'x');
    let mut connection = stage.connect().await;
    // The server may have gone before all is sent.
    let _ = connection.send(&head).await;
    let answer = connection.answer().await;
    assert!(answer.as_ref().map_or(true, |answer| answer.status == 431), "{answer:?}");
    let mut good = stage.connect().await;
    assert_eq!(good.review(VALIDATE, b"{}").await.unwrap().status, 200);
}

/// The share of the memory is reckoned with 48 KiB (`webhook/src/memory.rs`).
#[tokio::test]
async fn a_crowd_of_half_sent_heads_stays_within_its_share() {
    const CROWD: usize = 400;
    let stage = Stage::start(Limits::default()).await;
    // The client's side of a connection is in this process, too: measured alone, and taken off.
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        crowd.push(stage.connect().await);
    }
    let before = resident_mebibytes();
    let mut head = b"POST /validate/a-token-for-tests-only HTTP/1.1\r\nx: ".to_vec();
    head.resize(15 << 10, b'x');
    for connection in &mut crowd {
        connection.send(&head).await.unwrap();
    }
    let mut most = 0;
    for _ in 0..20 {
        // Nothing shows that the last head has arrived: what they take is the most of one second.
        tokio::time::sleep(Duration::from_millis(50)).await;
        most = most.max(resident_mebibytes().saturating_sub(before) * 1024 / CROWD as u64);
    }
    assert!(most >= 8, "the heads were not read: {most} KiB each");
    assert!(most <= 48, "{most} KiB each");
}
