//! Reads the answer of a node from the log of its pod, and compares its clock with ours.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, LogParams};
use opensdn_node_probe::{FORMAT, KIND, NodeFindings, Seen, Tick};
use tokio::time::timeout;

use super::Answer;
use super::objects::CONTAINER;
use crate::clients::unanswered;

/// So long lines are waited for after the answer, by which clocks are compared.
const CLOCK: Duration = Duration::from_millis(2200);
/// A line that comes so long after the one before was written at that moment, and did not wait to be read.
const LIVE: Duration = Duration::from_millis(200);

/// Why there is no answer, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It may come.
    Now(String),
    /// It is there and is of no use.
    Forever(String),
}

/// Follows the log of the pod until it has the answer.
///
/// # Errors
/// There is none.
pub(super) async fn read(client: Client, namespace: &str, pod: &str) -> Result<Answer, Unread> {
    let api: Api<Pod> = Api::namespaced(client, namespace);
    let params =
        LogParams { container: Some(CONTAINER.to_owned()), follow: true, ..LogParams::default() };
    let log = api.log_stream(pod, &params).await.map_err(|error| {
        let failure = unanswered("read the log of its pod", &error);
        let why = format!("{}: {}", failure.message, failure.causes.join(": "));
        // The pod is removed, and its name would make one reason of many nodes many.
        Unread::Now(why.replace(pod, "POD"))
    })?;
    // A node that is not ours any more may write without an end.
    of_log(Box::pin(log).take(MOST)).await
}

/// So much of what else a pod wrote is shown, in letters.
const SHOWN: usize = 200;
/// The most of a log that is read: an answer of a node with many interfaces has some hundred KiB.
const MOST: u64 = 16 << 20;

async fn of_log(log: impl AsyncBufRead + Unpin) -> Result<Answer, Unread> {
    let mut lines = log.lines();
    let mut last = String::new();
    let findings = loop {
        match lines.next().await {
            Some(Ok(line)) => {
                if let Some(findings) = answer(&line).map_err(Unread::Forever)? {
                    break findings;
                }
                last = line.chars().take(SHOWN).collect();
            }
            Some(Err(error)) => {
                return Err(Unread::Now(format!("the log of its pod broke off: {error}")));
            }
            None if last.is_empty() => {
                return Err(Unread::Now("its pod wrote no answer".to_owned()));
            }
            None => return Err(Unread::Now(format!("its pod wrote no answer, but: {last}"))),
        }
    };
    let mut ahead: Option<i64> = None;
    let mut before = Instant::now();
    let ticks = async {
        while let Some(Ok(line)) = lines.next().await {
            let is_live = before.elapsed() >= LIVE;
            before = Instant::now();
            let Ok(tick) = serde_json::from_str::<Tick>(&line) else { continue };
            if is_live {
                // The way of a line only makes it look behind.
                let one = tick.clock - now();
                ahead = Some(ahead.map_or(one, |most| most.max(one)));
            }
        }
    };
    // Whether it ends by itself or by the time is the same.
    let _ = timeout(CLOCK, ticks).await;
    let why = "its log was not followed in time".to_owned();
    Ok(Answer { findings, ahead: ahead.map_or(Seen::Unknown(why), Seen::Is) })
}

/// The answer, if the line is it: other lines may be a log's.
fn answer(line: &str) -> Result<Option<NodeFindings>, String> {
    #[derive(serde::Deserialize)]
    struct Head {
        kind: String,
        format: u32,
    }
    match serde_json::from_str::<Head>(line) {
        Ok(head) if head.kind == KIND && head.format != FORMAT => Err(format!(
            "its pod answers in format {}, and this plugin knows format {FORMAT}: take the image of this release with \
             --probe-image",
            head.format
        )),
        Ok(head) if head.kind == KIND => serde_json::from_str(line)
            .map(Some)
            .map_err(|error| format!("its pod's answer cannot be read: {error}")),
        _ => Ok(None),
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_log_without_an_answer_says_what_is_in_it() {
        let log = futures::io::Cursor::new("error: unrecognized subcommand 'probe'\n");
        let why = of_log(log).await.unwrap_err();
        let said = "its pod wrote no answer, but: error: unrecognized subcommand 'probe'";
        assert_eq!(why, Unread::Now(said.to_owned()));
        let why = of_log(futures::io::Cursor::new("")).await.unwrap_err();
        assert_eq!(why, Unread::Now("its pod wrote no answer".to_owned()));
    }

    #[tokio::test]
    async fn a_log_without_an_end_is_given_up() {
        let log = futures::io::BufReader::new(futures::io::repeat(b'x')).take(MOST);
        let Unread::Now(why) = of_log(log).await.unwrap_err() else { panic!("it is no answer") };
        assert!(why.starts_with("its pod wrote no answer, but: xxx") && why.len() < 300, "{why}");
    }

    #[test]
    fn an_answer_of_another_format_is_not_read() {
        let why = answer(r#"{"kind": "NodeFindings", "format": 2}"#).unwrap_err();
        assert!(why.contains("--probe-image"), "{why}");
        assert_eq!(answer(r#"{"level": "INFO"}"#), Ok(None));
        assert!(answer(r#"{"kind": "NodeFindings", "format": 1}"#).is_err(), "it is not whole");
    }
}
