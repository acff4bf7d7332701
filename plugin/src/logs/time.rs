//! The time at the head of a line, as daemons write it into their files (pure). It is that of the node, whose zone most of
//! them do not say: pods have its `/etc/localtime` (tf-operator, `pkg/apis/tf/v1alpha1/base_types.go:1700-1705`).

use k8s_openapi::jiff::civil::DateTime;
use k8s_openapi::jiff::tz::TimeZone;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// Behind so many bytes no more is looked for a time.
const HEAD: usize = 80;
/// Zones differ by quarters of an hour, and from UTC by not more than so many.
const QUARTER: i64 = 15 * 60;
const MOST_QUARTERS: i64 = 14 * 4;
/// A file is written a moment after a line was made.
const MOMENT: i64 = 5 * 60;

/// As if the zone were UTC.
pub(super) fn written(line: &str) -> Option<Timestamp> {
    let end = line.char_indices().map(|(at, _)| at).take_while(|at| *at <= HEAD).last()?;
    let head = line.get(..end.max(line.len().min(HEAD))).unwrap_or(line);
    let mut before = ' ';
    let mut starts = Vec::new();
    for (at, letter) in head.char_indices() {
        if letter.is_ascii_digit() && !before.is_ascii_digit() {
            starts.push(at);
        }
        before = letter;
    }
    let found = starts.into_iter().find_map(|at| {
        let rest = head.get(at..)?;
        iso(rest).or_else(|| slashes(rest)).or_else(|| year_first(rest)).or_else(|| named(rest))
    })?;
    Some(found.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// By how much a node's zone is behind UTC, from the last line of a file and the time when it was last changed.
pub(super) fn behind_utc(last: Timestamp, changed: Timestamp) -> SignedDuration {
    let seconds = changed.as_second() - last.as_second();
    let quarters = (seconds + QUARTER / 2).div_euclid(QUARTER);
    let is_zone = quarters.abs() <= MOST_QUARTERS && (seconds - quarters * QUARTER).abs() <= MOMENT;
    SignedDuration::from_secs(if is_zone { quarters * QUARTER } else { 0 })
}

/// `2026-11-25 Wed 00:00:00:123.456`, of daemons in C++; `2026-11-25 00:00:00,123` and `2026-11-25T00:00:00Z` of others.
fn iso(text: &str) -> Option<DateTime> {
    let (year, rest) = number(text, 4)?;
    let (month, rest) = number(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = number(rest.strip_prefix('-')?, 2)?;
    let rest = rest.strip_prefix([' ', 'T'])?;
    let is_weekday = rest.get(..4).is_some_and(|word| {
        word.ends_with(' ') && word.bytes().take(3).all(|one| one.is_ascii_alphabetic())
    });
    clock((year, month, day), if is_weekday { rest.get(4..)? } else { rest })
}

/// `11/25/2026 12:00:00 AM`, of daemons in Python; `11/25/2026 00:00:00.1`.
fn slashes(text: &str) -> Option<DateTime> {
    let (month, rest) = number(text, 2)?;
    let (day, rest) = number(rest.strip_prefix('/')?, 2)?;
    let (year, rest) = number(rest.strip_prefix('/')?, 4)?;
    clock((year, month, day), rest.strip_prefix(' ')?)
}

/// `2026/11/25 00:00:00` of programs in Go, as the CNI.
fn year_first(text: &str) -> Option<DateTime> {
    let (year, rest) = number(text, 4)?;
    let (month, rest) = number(rest.strip_prefix('/')?, 2)?;
    let (day, rest) = number(rest.strip_prefix('/')?, 2)?;
    clock((year, month, day), rest.strip_prefix(' ')?)
}

/// `25 Nov 2026 00:00:00.123` of Redis, `25-Nov-2026 00:00:00.123` of named.
fn named(text: &str) -> Option<DateTime> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (day, rest) = number(text, 2).or_else(|| number(text, 1))?;
    let rest = rest.strip_prefix([' ', '-'])?;
    let (word, rest) = rest.split_at_checked(3)?;
    let month = MONTHS.iter().zip(1..).find(|(name, _)| **name == word)?.1;
    let (year, rest) = number(rest.strip_prefix([' ', '-'])?, 4)?;
    clock((year, month, day), rest.strip_prefix(' ')?)
}

fn clock((year, month, day): (i16, i16, i16), text: &str) -> Option<DateTime> {
    let (hour, rest) = number(text, 2)?;
    let (minute, rest) = number(rest.strip_prefix(':')?, 2)?;
    let (second, rest) = number(rest.strip_prefix(':')?, 2)?;
    let (nanoseconds, rest) = fraction(rest);
    let hour = match rest.trim_start().get(..2) {
        Some("AM") if hour == 12 => 0,
        Some("PM") if hour < 12 => hour + 12,
        _ => hour,
    };
    let small = |number: i16| i8::try_from(number).ok();
    let (month, day) = (small(month)?, small(day)?);
    let (hour, minute, second) = (small(hour)?, small(minute)?, small(second)?);
    DateTime::new(year, month, day, hour, minute, second, nanoseconds).ok()
}

/// In nanoseconds.
fn fraction(text: &str) -> (i32, &str) {
    let Some(rest) = text.strip_prefix(['.', ',', ':']) else { return (0, text) };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count().min(9);
    let (digits, rest) = rest.split_at_checked(digits).unwrap_or_default();
    (format!("{digits:0<9}").parse().unwrap_or_default(), rest)
}

/// A number of exactly so many digits.
fn number(text: &str, digits: usize) -> Option<(i16, &str)> {
    let (number, rest) = text.split_at_checked(digits)?;
    let is_whole = number.bytes().all(|byte| byte.is_ascii_digit());
    (is_whole && !rest.starts_with(|next: char| next.is_ascii_digit()))
        .then(|| Some((number.parse().ok()?, rest)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_known_as_each_daemon_writes_them() {
        for (line, expected) in [
            ("2026-11-25 Wed 13:05:06:123.456 UTC  m1 [Thread 1, Pid 1]: x", "13:05:06.123Z"),
            ("11/25/2026 01:05:06 PM [contrail-api] [SYS_NOTICE]: x", "13:05:06Z"),
            ("11/25/2026 12:05:06 AM [contrail-api] [INFO]: x", "00:05:06Z"),
            ("11/25/2026 13:05:06.5 7fa [contrail-control, Error] x", "13:05:06.5Z"),
            ("WARN  [main] 2026-11-25 13:05:06,123 Gossiper.java:1 - x", "13:05:06.123Z"),
            ("2026-11-25 13:05:06.000 [debug] <0.1.0> x", "13:05:06Z"),
            ("1:M 25 Nov 2026 13:05:06.123 * Ready", "13:05:06.123Z"),
            ("25-Nov-2026 13:05:06.123 general: info: x", "13:05:06.123Z"),
            ("2026-11-25T13:05:06Z x", "13:05:06Z"),
            ("I : 12 : 2026/11/25 13:05:06 contrail-kube-cni.go:1: x", "13:05:06Z"),
        ] {
            let time = written(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(time.to_string(), format!("2026-11-25T{expected}"), "{line}");
        }
        for line in ["", "  at java.lang.Thread.run", "2026-13-45 00:00:00", "10.0.0.1 é", "9"] {
            assert_eq!(written(line), None, "{line}");
        }
        let late = format!("{}2026-11-25 00:00:00", "é".repeat(60));
        assert_eq!(written(&late), None, "no time of the text");
    }

    #[test]
    fn the_zone_of_a_node_is_seen_by_when_its_file_was_changed() {
        let time = |text: &str| -> Timestamp { text.parse().unwrap() };
        let behind = |last: &str, changed: &str| behind_utc(time(last), time(changed)).as_secs();
        assert_eq!(behind("2026-11-25T13:00:00Z", "2026-11-25T13:00:01Z"), 0);
        assert_eq!(behind("2026-11-25T18:30:00Z", "2026-11-25T13:00:02Z"), -19_800, "in India");
        assert_eq!(behind("2026-11-25T08:00:00Z", "2026-11-25T13:01:00Z"), 18_000, "in New York");
        assert_eq!(behind("2026-11-25T13:00:00Z", "2026-11-25T13:07:30Z"), 0, "touched later");
        assert_eq!(behind("2026-11-20T13:00:00Z", "2026-11-25T13:00:00Z"), 0, "days later");
    }
}
