//! From the `?timeout=` of a call to the time in which it has to be answered.

use std::time::Duration;

/// What is assumed of a call without `?timeout=`: the API's default of `timeoutSeconds`.
const DEFAULT: Duration = Duration::from_secs(10);
/// The API allows no more; a larger number is not the API server's.
const LONGEST: Duration = Duration::from_secs(30);
/// The least a review is given, however short the caller's timeout is.
const SHORTEST: Duration = Duration::from_millis(300);
/// The API server rounds the number *up* to whole seconds, so the caller may be gone one second
/// earlier than it says; a tenth more is for the way back.
const MARGIN: Duration = Duration::from_millis(1100);

/// The time from the arrival of a call to its answer: the caller's timeout less [`MARGIN`], never
/// less than 300 ms. `?timeout=1` is a remainder of anything up to a second, so it gets the least.
pub(super) fn budget(query: Option<&str>) -> Duration {
    let asked = query.and_then(timeout).unwrap_or(DEFAULT).min(LONGEST);
    asked.saturating_sub(MARGIN).max(SHORTEST)
}

fn timeout(query: &str) -> Option<Duration> {
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix("timeout="))
        .and_then(|text| opensdn_duration::parse(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_the_caller_more_than_the_second_it_rounded_up() {
        for (query, milliseconds) in [
            (Some("timeout=10s"), 8900),
            (Some("timeout=5s"), 3900),
            (Some("timeout=5"), 3900),
            (Some("timeout=2s"), 900),
            (Some("timeout=1s"), 300),
            (Some("dryRun=All&timeout=3s"), 1900),
            (Some("timeout=30s"), 28_900),
        ] {
            assert_eq!(budget(query).as_millis(), milliseconds, "{query:?}");
        }
    }

    #[test]
    fn takes_the_default_where_the_number_is_absent_or_unreadable() {
        let huge = "timeout=99999999999999999999h";
        for query in ["", "timeout=", "timeout=soon", "timeout=-5s", huge] {
            assert_eq!(budget(Some(query)).as_millis(), 8900, "{query:?}");
        }
        assert_eq!(budget(None).as_millis(), 8900);
    }

    #[test]
    fn never_waits_longer_than_the_api_allows() {
        assert_eq!(budget(Some("timeout=1h0m0s")).as_millis(), 28_900);
        assert_eq!(budget(Some("timeout=4294967295")).as_millis(), 28_900);
    }
}
