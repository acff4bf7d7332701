//! What a well-behaved caller is answered.

use std::sync::atomic::Ordering;
use std::time::Duration;

use opensdn_webhook::path_tokens::PathToken;
use opensdn_webhook::server::Limits;

use crate::stage::{MUTATE, NAME, Stage, TOKEN, VALIDATE, VALIDATE_OTHERS, request};

#[tokio::test]
async fn answers_both_steps_in_json_with_status_200() {
    let stage = Stage::start(Limits::default()).await;
    let mut connection = stage.connect().await;
    for (path, body) in [
        (VALIDATE, r#"{"reviewed":"validate","bytes":2}"#),
        (MUTATE, r#"{"reviewed":"mutate","bytes":2}"#),
        ("/validate/a-token-for-tests-only?timeout=5s", r#"{"reviewed":"validate","bytes":2}"#),
    ] {
        let answer = connection.review(path, b"{}").await.unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (200, body));
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert!(!answer.closes());
    }
    assert_eq!(
        stage.metric(r#"opensdn_webhook_review_duration_seconds_count{step="validate"}"#),
        2.0
    );
}

#[tokio::test]
async fn speaks_http_1_1_also_to_a_caller_that_would_rather_speak_http_2() {
    let stage = Stage::start(Limits::default()).await;
    let connection = stage.connect().await;
    let protocol = connection.stream.get_ref().1.alpn_protocol();
    assert_eq!(protocol, Some(b"http/1.1".as_slice()));
}

#[tokio::test]
async fn a_path_without_an_accepted_token_is_answered_404_before_its_body_is_read() {
    let stage = Stage::start(Limits::default()).await;
    stage.hold();
    for path in [
        "/",
        "/validate",
        "/validate/",
        "/mutate",
        "/validate/a-token-for-tests-onlY",
        "/validate/a-token-for-tests-only/",
        "/validate/a-token-for-tests-only-longer",
        "/audit/a-token-for-tests-only",
        "//validate/a-token-for-tests-only",
    ] {
        let mut connection = stage.connect().await;
        // Its body is announced and never sent.
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {NAME}\r\ncontent-type: application/json\r\n\
             content-length: 1000000\r\n\r\n"
        );
        connection.send(head.as_bytes()).await.unwrap();
        let answer = connection.answer().await.unwrap();
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.closes(), "{path}");
        assert!(answer.body.contains(r#""kind":"Status""#), "{}", answer.body);
    }
    assert_eq!(stage.waiting.load(Ordering::SeqCst), 0, "nothing was reviewed");
    assert_eq!(stage.metric("opensdn_webhook_unknown_paths_total"), 9.0);
}

#[tokio::test]
async fn while_tokens_are_replaced_the_one_before_and_the_new_one_are_both_accepted() {
    let stage = Stage::start(Limits::default()).await;
    let [second, third] = [(); 2].map(|()| PathToken::random().unwrap());
    let path = |token: &PathToken| format!("/mutate/{}", token.as_str());
    let first = PathToken::parse(TOKEN).unwrap();
    let mut connection = stage.connect().await;
    stage.path_tokens.replace(second.clone(), [first.clone()]);
    for token in [&first, &second] {
        let answer = connection.review(&path(token), b"{}").await.unwrap();
        assert_eq!(answer.status, 200);
    }
    stage.path_tokens.replace(third, [second.clone()]);
    assert_eq!(connection.review(&path(&second), b"{}").await.unwrap().status, 200);
    assert_eq!(connection.review(&path(&first), b"{}").await.unwrap().status, 404);
}

#[tokio::test]
async fn refuses_other_methods_and_media_types_and_keeps_the_connection() {
    let stage = Stage::start(Limits::default()).await;
    let mut connection = stage.connect().await;
    let large = vec![b' '; 3 << 20];
    for body in [b"".as_slice(), b"{}", &large] {
        for (method, path, headers, status) in [
            ("GET", VALIDATE, "", 405),
            ("PUT", MUTATE, "content-type: application/json\r\n", 405),
            ("POST", VALIDATE, "content-type: application/yaml\r\n", 415),
            ("POST", VALIDATE, "content-type: ;;;\r\n", 415),
            ("POST", MUTATE, "content-encoding: gzip\r\n", 415),
        ] {
            connection.send(&request(method, path, headers, body)).await.unwrap();
            let answer = connection.answer().await.unwrap();
            assert_eq!(answer.status, status, "{method} {path} {headers}");
            assert_eq!(answer.header("allow"), (status == 405).then_some("POST"));
            assert_eq!(answer.header("content-type"), Some("application/json"));
            assert!(answer.body.contains(r#""kind":"Status""#), "{}", answer.body);
            assert!(!answer.closes());
        }
    }
    assert_eq!(connection.review(VALIDATE, b"{}").await.unwrap().status, 200);
}

#[tokio::test]
async fn takes_a_missing_content_type_for_json_and_needs_no_user_agent() {
    let stage = Stage::start(Limits::default()).await;
    let mut connection = stage.connect().await;
    connection.send(&request("POST", VALIDATE, "", b"{}")).await.unwrap();
    assert_eq!(connection.answer().await.unwrap().status, 200);
}

#[tokio::test]
async fn answers_pipelined_requests_in_their_order() {
    let stage = Stage::start(Limits::default()).await;
    let mut connection = stage.connect().await;
    let all: Vec<u8> =
        (0..50).flat_map(|n| request("POST", VALIDATE, "", &vec![b'x'; n * 100])).collect();
    connection.send(&all).await.unwrap();
    for n in 0..50 {
        let answer = connection.answer().await.unwrap();
        assert_eq!(answer.body, format!(r#"{{"reviewed":"validate","bytes":{}}}"#, n * 100));
    }
}

#[tokio::test]
async fn takes_bodies_up_to_the_limit_whole_and_refuses_one_byte_more_in_review_form() {
    let stage = Stage::start(Limits::default()).await;
    let mut connection = stage.connect().await;
    for bytes in [3 << 20, 69 * (1 << 20) / 10, 8 << 20] {
        let answer = connection.review(VALIDATE, &vec![b'x'; bytes]).await.unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(answer.body, format!(r#"{{"reviewed":"validate","bytes":{bytes}}}"#));
    }
    let mut body = vec![b' '; (8 << 20) + 1];
    body[..16].copy_from_slice(b"{'uid':'0123456'");
    let answer = connection.review(VALIDATE, &body).await.unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body, r#"{"too_large":"{'uid':'0123456'"}"#);
    assert!(!answer.closes());
    assert_eq!(connection.review(VALIDATE, b"{}").await.unwrap().status, 200);
}

#[tokio::test]
async fn takes_chunked_bodies() {
    let stage = Stage::start(Limits::default()).await;
    let mut connection = stage.connect().await;
    let head = "POST /validate/a-token-for-tests-only HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    for chunks in [0, 1, 2, 300] {
        connection.send(head.as_bytes()).await.unwrap();
        for _ in 0..chunks {
            connection.send(b"a\r\n0123456789\r\n").await.unwrap();
        }
        connection.send(b"0\r\n\r\n").await.unwrap();
        let answer = connection.answer().await.unwrap();
        assert_eq!(answer.status, 200);
        assert!(answer.body.ends_with(&format!(":{}}}", chunks * 10)), "{}", answer.body);
    }
}

#[tokio::test]
async fn answers_a_call_with_one_second_left_before_it_is_over() {
    let stage = Stage::start(Limits::default()).await;
    stage.hold();
    let mut connection = stage.connect().await;
    let began = std::time::Instant::now();
    let answer =
        connection.review("/validate/a-token-for-tests-only?timeout=1s", b"{}").await.unwrap();
    assert!(answer.body.contains("deadline"), "{}", answer.body);
    // Without the caller's word it would be ten seconds; the rest is for a busy machine.
    let bounds = Duration::from_millis(250)..Duration::from_secs(3);
    assert!(bounds.contains(&began.elapsed()), "{:?}", began.elapsed());
}

#[tokio::test]
async fn sheds_what_is_too_much_with_429_and_a_whole_second_to_wait() {
    let stage = Stage::start(Limits { reviews: 2, ..Limits::default() }).await;
    stage.hold();
    let mut waiting = [stage.connect().await, stage.connect().await];
    for connection in &mut waiting {
        connection.send(&request("POST", VALIDATE, "", b"{}")).await.unwrap();
    }
    stage.until_waiting(2).await;
    let mut third = stage.connect().await;
    for _ in 0..3 {
        let answer = third.review(VALIDATE, &[b'x'; 100_000]).await.unwrap();
        assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")));
        assert!(!answer.closes());
    }
    assert_eq!(stage.metric("opensdn_webhook_requests_shed_total"), 3.0);
    stage.release();
    for connection in &mut waiting {
        assert_eq!(connection.answer().await.unwrap().status, 200);
    }
    assert_eq!(third.review(VALIDATE, b"{}").await.unwrap().status, 200);
}

#[tokio::test]
async fn sheds_when_all_bodies_together_are_too_much() {
    let stage = Stage::start(Limits { buffered: 1 << 20, ..Limits::default() }).await;
    stage.hold();
    let mut first = stage.connect().await;
    first.send(&request("POST", VALIDATE, "", &vec![b'x'; 900_000])).await.unwrap();
    stage.until_waiting(1).await;
    let mut second = stage.connect().await;
    let answer = second.review(VALIDATE, &vec![b'x'; 900_000]).await.unwrap();
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")));
    stage.release();
    assert_eq!(first.answer().await.unwrap().status, 200);
    assert_eq!(second.review(VALIDATE, &vec![b'x'; 900_000]).await.unwrap().status, 200);
}

#[tokio::test]
async fn reviews_of_other_kinds_leave_a_quarter_of_all_to_those_of_ours() {
    let stage = Stage::start(Limits { reviews: 4, buffered: 1 << 20, ..Limits::default() }).await;
    stage.hold();
    let mut waiting = Vec::new();
    for number in 1..=3 {
        let mut other = stage.connect().await;
        other.send(&request("POST", VALIDATE_OTHERS, "", &vec![b'x'; 200_000])).await.unwrap();
        stage.until_waiting(number).await;
        waiting.push(other);
    }
    let mut one_more = stage.connect().await;
    assert_eq!(one_more.review(VALIDATE_OTHERS, b"{}").await.unwrap().status, 429, "reviews");
    let mut ours = stage.connect().await;
    ours.send(&request("POST", VALIDATE, "", &vec![b'x'; 400_000])).await.unwrap();
    stage.until_waiting(4).await;
    waiting.push(ours);
    stage.release();
    for connection in &mut waiting {
        assert_eq!(connection.answer().await.unwrap().status, 200);
    }
    let large = one_more.review(VALIDATE_OTHERS, &vec![b'x'; 800_000]).await.unwrap();
    assert_eq!(large.status, 429, "bytes");
    assert_eq!(one_more.review(VALIDATE, &vec![b'x'; 800_000]).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_caller_that_goes_away_gives_its_place_back() {
    let stage = Stage::start(Limits { reviews: 1, ..Limits::default() }).await;
    stage.hold();
    let mut gone = stage.connect().await;
    gone.send(&request("POST", "/validate/a-token-for-tests-only?timeout=30s", "", b"{}"))
        .await
        .unwrap();
    stage.until_waiting(1).await;
    drop(gone);
    stage.until_waiting(0).await;
    stage.release();
    let mut next = stage.connect().await;
    assert_eq!(next.review(VALIDATE, b"{}").await.unwrap().status, 200);
}
