//! Durations as Go's `time.ParseDuration` and client-go read them, for `--request-timeout` of the
//! plugin and `?timeout=` of the webhook. kube's own reader (`kube::core::Duration`) panics on what
//! is too long for a [`Duration`], and both texts come from outside.

use std::time::Duration;

/// Longest unit first, so that `ms` is not read as minutes. The micro sign and the Greek letter look
/// the same; Go takes both.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("\u{b5}s", 1e-6),
    ("\u{3bc}s", 1e-6),
    ("ms", 1e-3),
    ("h", 3600.0),
    ("m", 60.0),
    ("s", 1.0),
];

/// A text that is no duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a time such as 30s, 5m or 1m30s, or a number of seconds")]
pub struct InvalidDuration;

/// Reads a duration: `30s`, `1m30s`, `500ms`, `1.5h`; a bare number is seconds, as in client-go's
/// `ParseTimeout`. None is negative.
///
/// # Errors
/// The text is no duration, or one that is too long for [`Duration`].
pub fn parse(text: &str) -> Result<Duration, InvalidDuration> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    if text.is_empty() {
        return Err(InvalidDuration);
    }
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(InvalidDuration)?;
        let (number, after) = rest.split_at(end);
        let number: f64 = number.parse().map_err(|_| InvalidDuration)?;
        let (left, factor) = UNITS
            .iter()
            .find_map(|(unit, factor)| Some((after.strip_prefix(unit)?, factor)))
            .ok_or(InvalidDuration)?;
        seconds += number * factor;
        rest = left;
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| InvalidDuration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_and_kubectl_write() {
        let cases = [
            ("0", 0),
            ("30", 30_000_000_000),
            ("1s", 1_000_000_000),
            ("1m30s", 90_000_000_000),
            ("2h0m0s", 7_200_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("1.5s", 1_500_000_000),
            ("250ms", 250_000_000),
            ("1s500ms", 1_500_000_000),
            ("7us", 7000),
            ("7\u{b5}s", 7000),
            ("7\u{3bc}s", 7000),
            ("7ns", 7),
        ];
        for (text, nanoseconds) in cases {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_time() {
        let long = "99999999999999999999999h";
        for text in
            ["", "s", "-1s", "-5", "1x", "1d", "5 s", "1..2s", "1s2", "\u{e9}", "1.s.", long]
        {
            assert_eq!(parse(text), Err(InvalidDuration), "{text}");
        }
    }
}
