//! Many streams of lines as one, by time. Of each stream few lines are in memory, and of a line not more than [`LONGEST`].

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt as _};
use k8s_openapi::jiff::Timestamp;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, timeout_at};

use super::files::MOST_BYTES;
use super::line::{Level, level, timed};
use super::sources::{Source, Times};
use super::time::written;
use crate::snapshot::ask::Asker;

/// What is longer is cut off.
const LONGEST: usize = 64 << 10;
/// Lines of a stream that wait to be taken.
const WAITING: usize = 16;
/// Who follows waits so long for lines that are older than those that came.
const WINDOW: Duration = Duration::from_millis(500);
/// And for not more lines than this.
const MOST_IN_WINDOW: usize = 4096;

/// A line, and whose it is, by its place among the sources.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Line {
    pub(crate) time: Timestamp,
    pub(crate) source: usize,
    /// Of lines of one time and source the first one.
    number: u64,
    pub(crate) text: String,
}

/// What comes of a stream: lines, or why there are none.
type Told = Result<Line, (usize, String)>;

/// Reads a line without its end; none at the end. What is longer than [`LONGEST`] is read and left out.
async fn line(
    reader: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> std::io::Result<bool> {
    line.clear();
    let mut is_any = false;
    loop {
        let read = reader.fill_buf().await?;
        if read.is_empty() {
            return Ok(is_any);
        }
        is_any = true;
        let end = read.iter().position(|byte| *byte == b'\n');
        let part = read.get(..end.unwrap_or(read.len())).unwrap_or_default();
        let room = LONGEST.saturating_sub(line.len());
        line.extend_from_slice(part.get(..part.len().min(room)).unwrap_or_default());
        let used = end.map_or(read.len(), |end| end + 1);
        reader.consume_unpin(used);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// Sends the lines of a stream that are as grave as that; those without a level are as the one before.
async fn send(
    reader: impl AsyncBufRead + Unpin,
    (source, times): (usize, &Times),
    least: Option<Level>,
    lines: &Sender<Told>,
) -> std::io::Result<()> {
    let (mut reader, mut bytes, mut last) = (reader, Vec::new(), VecDeque::new());
    let (mut before, mut is_shown, mut number) = (times.first(), true, 0);
    while line(&mut reader, &mut bytes).await? {
        let whole = String::from_utf8_lossy(&bytes);
        let (time, text) = times.of(whole.trim_end_matches('\r'), before);
        before = time;
        if let (Some(least), Some(level)) = (least, level(text)) {
            is_shown = level >= least;
        }
        if !is_shown || times.is_too_old(time) {
            continue;
        }
        number += 1;
        let line = Line { time, source, number, text: text.to_owned() };
        let Some(tail) = times.tail() else {
            // Nobody reads any more.
            if lines.send(Ok(line)).await.is_err() {
                return Ok(());
            }
            continue;
        };
        last.push_back(line);
        if last.len() > tail {
            last.pop_front();
        }
    }
    for line in last {
        if lines.send(Ok(line)).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

impl Times {
    /// The time of a line, and its text.
    fn of<'a>(&self, line: &'a str, before: Timestamp) -> (Timestamp, &'a str) {
        match self {
            Self::Given => timed(line, before),
            Self::Written { behind_utc, .. } => {
                let time = written(line).and_then(|time| time.checked_add(*behind_utc).ok());
                (time.unwrap_or(before), line)
            }
        }
    }

    /// Of lines in front of which none has a time.
    fn first(&self) -> Timestamp {
        match self {
            Self::Given => Timestamp::UNIX_EPOCH,
            Self::Written { undated, .. } => *undated,
        }
    }

    fn is_too_old(&self, time: Timestamp) -> bool {
        matches!(self, Self::Written { since: Some(since), .. } if time < *since)
    }

    /// How many lines are kept until all were seen.
    fn tail(&self) -> Option<usize> {
        match self {
            Self::Written { tail: Some(tail), .. } => usize::try_from(*tail).ok(),
            _ => None,
        }
    }
}

/// Begins to read a log.
fn read(asker: &Asker, source: &Source, number: usize, least: Option<Level>) -> Receiver<Told> {
    let (sender, receiver) = channel(WAITING);
    let (asker, Source { path, times, .. }) = (asker.clone(), source.clone());
    tokio::spawn(async move {
        let most = matches!(times, Times::Written { .. }).then_some(MOST_BYTES);
        let wrong = match asker.lines(&path, most).await {
            Ok(reader) => {
                let read = send(Box::pin(reader), (number, &times), least, &sender).await;
                read.err().map(|error| error.to_string())
            }
            Err(why) => Some(why),
        };
        if let Some(why) = wrong {
            // Nobody reads any more.
            let _ = sender.send(Err((number, why))).await;
        }
    });
    receiver
}

/// What takes lines: false where no more are wanted.
pub(crate) type Take<'a> = &'a mut dyn FnMut(&[Line]) -> bool;

/// Gives all lines in the order of their times; why some logs could not be read.
pub(crate) async fn all(
    asker: &Asker,
    sources: &[Source],
    least: Option<Level>,
    take: Take<'_>,
) -> Vec<(usize, String)> {
    let numbered = sources.iter().enumerate();
    let streams = numbered.map(|(number, source)| read(asker, source, number, least)).collect();
    merge(streams, take).await
}

/// Lines that are written at once.
const BATCH: usize = 256;

async fn merge(mut streams: Vec<Receiver<Told>>, take: Take<'_>) -> Vec<(usize, String)> {
    let (mut heads, mut failed, mut batch) = (BinaryHeap::new(), Vec::new(), Vec::new());
    for stream in &mut streams {
        next(stream, &mut heads, &mut failed).await;
    }
    while let Some(Reverse(line)) = heads.pop() {
        if let Some(stream) = streams.get_mut(line.source) {
            next(stream, &mut heads, &mut failed).await;
        }
        batch.push(line);
        if batch.len() == BATCH && !take(&std::mem::take(&mut batch)) {
            return failed;
        }
    }
    take(&batch);
    failed
}

/// The next line of a stream among the first of all.
async fn next(
    stream: &mut Receiver<Told>,
    heads: &mut BinaryHeap<Reverse<Line>>,
    failed: &mut Vec<(usize, String)>,
) {
    while let Some(told) = stream.recv().await {
        match told {
            Ok(line) => return heads.push(Reverse(line)),
            Err(why) => failed.push(why),
        }
    }
}

/// Gives lines as they come, those that come together in the order of their times, until all logs have ended or no more
/// are wanted.
pub(crate) async fn following(
    asker: &Asker,
    sources: &[Source],
    least: Option<Level>,
    take: Take<'_>,
) -> Vec<(usize, String)> {
    let (sender, receiver) = channel(MOST_IN_WINDOW);
    for (number, source) in sources.iter().enumerate() {
        let mut stream = read(asker, source, number, least);
        let sender = sender.clone();
        tokio::spawn(async move {
            while let Some(told) = stream.recv().await {
                if sender.send(told).await.is_err() {
                    return;
                }
            }
        });
    }
    drop(sender);
    windows(receiver, take).await
}

async fn windows(mut lines: Receiver<Told>, take: Take<'_>) -> Vec<(usize, String)> {
    let mut failed = Vec::new();
    while let Some(first) = lines.recv().await {
        let (end, mut window) = (Instant::now() + WINDOW, Vec::new());
        let mut told = Some(first);
        loop {
            match told.take() {
                Some(Ok(line)) => window.push(line),
                Some(Err(why)) => failed.push(why),
                None => break,
            }
            if window.len() == MOST_IN_WINDOW {
                break;
            }
            told = timeout_at(end, lines.recv()).await.ok().flatten();
        }
        window.sort();
        if !window.is_empty() && !take(&window) {
            return failed;
        }
    }
    failed
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::SignedDuration;

    use super::*;

    fn stream(number: usize, text: &'static str, least: Option<Level>) -> Receiver<Told> {
        let (sender, receiver) = channel(1);
        tokio::spawn(async move {
            send(text.as_bytes(), (number, &Times::Given), least, &sender).await
        });
        receiver
    }

    #[tokio::test]
    async fn of_a_file_lines_count_by_what_was_written_in_the_zone_of_its_node() {
        let text = "half a line\n2026-11-25 13:00:00.1 [info] old\n2026-11-25 14:00:00.1 [error] a\n  of a\n2026-11-25 14:00:01.1 [info] b\n";
        let of = |since: Option<&str>, tail| {
            let times = Times::Written {
                behind_utc: SignedDuration::from_hours(-1),
                undated: Timestamp::UNIX_EPOCH,
                since: since.map(|since| since.parse().unwrap()),
                tail,
            };
            let (sender, receiver) = channel(1);
            tokio::spawn(async move { send(text.as_bytes(), (0, &times), None, &sender).await });
            merged(vec![receiver])
        };
        let texts = |taken: Vec<(usize, String)>| -> Vec<String> {
            taken.into_iter().map(|(_, text)| text).collect()
        };
        let recent = texts(of(Some("2026-11-25T12:30:00Z"), None).await);
        let expected =
            ["2026-11-25 14:00:00.1 [error] a", "  of a", "2026-11-25 14:00:01.1 [info] b"];
        assert_eq!(recent, expected);
        assert_eq!(texts(of(None, Some(2)).await), expected[1..]);
        assert_eq!(texts(of(None, None).await).len(), 5);
    }

    async fn merged(streams: Vec<Receiver<Told>>) -> Vec<(usize, String)> {
        let mut taken = Vec::new();
        let mut take = |lines: &[Line]| {
            taken.extend(lines.iter().map(|line| (line.source, line.text.clone())));
            true
        };
        assert_eq!(merge(streams, &mut take).await, []);
        taken
    }

    #[tokio::test]
    async fn lines_of_all_logs_are_in_the_order_of_their_times() {
        let first = "2026-11-25T00:00:01Z a\n2026-11-25T00:00:03Z b\n2026-11-25T00:00:03Z c\n";
        let second = "2026-11-25T00:00:02.5Z d\n2026-11-25T00:00:04Z e";
        let taken = merged(vec![stream(0, first, None), stream(1, second, None)]).await;
        let texts: Vec<&str> = taken.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["a", "d", "b", "c", "e"]);
    }

    #[tokio::test]
    async fn a_level_leaves_out_what_is_less_and_keeps_what_belongs_to_a_line() {
        let text = "2026-11-25T00:00:01Z INFO a\n2026-11-25T00:00:02Z  of a\n2026-11-25T00:00:03Z ERROR b\n2026-11-25T00:00:04Z  of b\n";
        let taken = merged(vec![stream(0, text, Some(Level::Warning))]).await;
        assert_eq!(taken, [(0, "ERROR b".to_owned()), (0, " of b".to_owned())]);
    }

    #[tokio::test]
    async fn of_a_line_without_an_end_not_more_is_kept_than_of_any() {
        let endless = "x".repeat(LONGEST * 3);
        let text = format!("{endless}\nnext\n");
        let (mut reader, mut bytes) = (text.as_bytes(), Vec::new());
        assert!(line(&mut reader, &mut bytes).await.unwrap());
        assert_eq!(bytes.len(), LONGEST);
        assert!(line(&mut reader, &mut bytes).await.unwrap());
        assert_eq!(bytes, b"next");
        assert!(!line(&mut reader, &mut bytes).await.unwrap());
    }
}
