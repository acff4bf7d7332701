//! Times as kubectl writes them: `30s`, `1m30s`, `500ms`, or a number of seconds.

use std::time::Duration;

/// Longest unit first, so that `ms` is not read as minutes.
const UNITS: [(&str, f64); 4] = [("ms", 0.001), ("h", 3600.0), ("m", 60.0), ("s", 1.0)];

/// Reads a time.
pub(super) fn parse(text: &str) -> Result<Duration, &'static str> {
    const WRONG: &str = "must be a time such as 30s, 5m or 1m30s, or a number of seconds";
    let whole: Option<u64> = text.parse().ok();
    if let Some(seconds) = whole {
        return Ok(Duration::from_secs(seconds));
    }
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(WRONG)?;
        let (number, after) = rest.split_at(end);
        let number: f64 = number.parse().map_err(|_| WRONG)?;
        let (left, factor) = UNITS
            .iter()
            .find_map(|(unit, factor)| Some((after.strip_prefix(unit)?, factor)))
            .ok_or(WRONG)?;
        seconds += number * factor;
        rest = left;
    }
    if text.is_empty() {
        return Err(WRONG);
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| WRONG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_kubectl_reads() {
        let cases = [("0", 0), ("30", 30_000), ("1s", 1000), ("1m30s", 90_000), ("250ms", 250)];
        for (text, milliseconds) in cases {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        assert_eq!(parse("1.5h"), Ok(Duration::from_secs(5400)));
    }

    #[test]
    fn refuses_what_is_no_time() {
        for text in ["", "s", "1", "-1s", "1x", "1..2s", "99999999999999999999999h", "1s2"] {
            assert_eq!(parse(text).is_err(), text != "1", "{text}");
        }
    }
}
