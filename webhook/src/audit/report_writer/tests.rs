//! Which failure of one report ends all of them.

use kube::core::Status;
use kube::core::response::StatusSummary;

use super::*;

fn writer() -> ReportWriter {
    // Nothing listens there, and nothing is sent.
    let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    let mut writer = ReportWriter::new(&Client::try_from(config).unwrap(), Verified::new());
    writer.target = Some(Target { group: &API_GROUPS[0], version: "v1".to_owned() });
    writer
}

async fn refused(code: u16, message: &str) -> CallError {
    let status = Status {
        status: Some(StatusSummary::Failure),
        code,
        message: message.to_owned(),
        ..Status::default()
    };
    let answer = async { Err::<(), _>(kube::Error::Api(Box::new(status))) };
    Call::new(Verb::Patch, "reports").run(answer).await.unwrap_err()
}

const SHORT: Duration = Duration::from_millis(10);

#[tokio::test]
async fn a_report_that_the_api_server_does_not_take_ends_no_other() {
    for (code, said) in [
        (500, "etcdserver: request is too large"),
        (413, "limit is 3145728"),
        (422, "admission has refused it"),
        (409, "it was changed"),
        (403, "exceeded quota: reports"),
    ] {
        let mut writer = writer();
        for about in ["first", "second"] {
            writer.failed(about, &refused(code, said).await, SHORT);
        }
        assert!(writer.target.is_some(), "{code}");
        assert_eq!(writer.outcome.failed, 2);
        let failure = &writer.outcome.failure;
        assert!(failure.starts_with("first: ") && failure.contains(said), "{failure}");
    }
}

#[tokio::test]
async fn where_the_next_report_would_fare_alike_no_more_are_tried() {
    const FORBIDDEN: &str = "reports.openreports.io is forbidden: User \"a\" cannot patch resource \"reports\" in \
                             API group \"openreports.io\" in the namespace \"n\"";
    for (code, said) in [(403, FORBIDDEN), (429, "slow down"), (502, ""), (503, ""), (504, "")] {
        let mut writer = writer();
        writer.failed("first", &refused(code, said).await, SHORT);
        assert!(writer.target.is_none(), "{code}");
    }
    let mut writer = writer();
    let no_answer = Call::new(Verb::Patch, "reports").timed_out();
    writer.failed("first", &no_answer, SHORT);
    assert!(writer.target.is_none());
}

#[tokio::test]
async fn reports_that_fail_for_a_minute_are_given_up() {
    let mut writer = writer();
    let error = refused(500, "etcdserver: mvcc: database space exceeded").await;
    for _ in 0..6 {
        writer.failed("one", &error, LONGEST_FAILING / 6);
        assert!(writer.target.is_some());
    }
    writer.failed("last", &error, SHORT);
    assert!(writer.target.is_none());
    assert_eq!(writer.outcome.failed, 7);
}
