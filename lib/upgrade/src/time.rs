//! Times as they stand in a status.

use ::time::OffsetDateTime;
use ::time::format_description::well_known::Rfc3339;

/// RFC 3339, with milliseconds at most, so that a time is the same after it was read.
pub(crate) fn text(time: OffsetDateTime) -> String {
    let time = time.replace_millisecond(time.millisecond()).unwrap_or(time);
    time.format(&Rfc3339).unwrap_or_default()
}

/// The years of which a time can be. Others write statuses, too, and to the last one that there is nothing can be added.
const YEARS: std::ops::RangeInclusive<i32> = 1970..=9000;

pub(crate) fn parse(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok().filter(|time| YEARS.contains(&time.year()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_which_nothing_can_be_added_is_none() {
        assert_eq!(parse("9999-12-31T23:59:59Z"), None);
        assert_eq!(parse("-9999-01-01T00:00:00Z"), None);
        assert!(parse("2026-11-29T00:00:00Z").is_some());
    }
}
