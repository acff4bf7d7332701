//! Times as they stand in a status.

use ::time::OffsetDateTime;
use ::time::format_description::well_known::Rfc3339;

/// RFC 3339, with milliseconds at most, so that a time is the same after it was read.
pub(crate) fn text(time: OffsetDateTime) -> String {
    let time = time.replace_millisecond(time.millisecond()).unwrap_or(time);
    time.format(&Rfc3339).unwrap_or_default()
}

pub(crate) fn parse(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok()
}
