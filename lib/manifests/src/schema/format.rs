//! Formats of texts, as the API server checks them. It ignores formats that it does not know, those
//! of numbers among them, and so does this.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::version::KubernetesVersion;

/// The result of checking a text that should have a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It has it, or the API server does not know the format.
    Fine,
    /// It has it not.
    Wrong,
    /// The API server knows the format, and there is no check for it here.
    Unchecked,
}

/// Formats that the API server knows and this does not.
const UNCHECKED: [&str; 11] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
];

/// Whether the API server knows the format.
pub(crate) fn is_known(format: &str, version: KubernetesVersion) -> bool {
    // No text has a known format and a zero byte at once, but for the one that takes any.
    format == "password" || judge(format, "\0", version) != Verdict::Fine
}

/// Judges a text by the name of a format, in the version of the API server.
pub(crate) fn judge(format: &str, text: &str, version: KubernetesVersion) -> Verdict {
    let name = format.replace('-', "");
    // Introduced with 1.34, enforced one version later, so that a downgrade stays possible.
    let names = version.at_least(35);
    let fine = match name.as_str() {
        "datetime" => is_date_time(text),
        "date" => is_date(text),
        "duration" => is_duration(text),
        "byte" => is_base64(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => is_uuid(text, name.strip_prefix("uuid")),
        "k8sshortname" if names => is_short_name(text),
        "k8slongname" if names => text.len() <= 253 && text.split('.').all(is_name_part),
        name if UNCHECKED.contains(&name) => return Verdict::Unchecked,
        _ => true,
    };
    if fine { Verdict::Fine } else { Verdict::Wrong }
}

/// Whether all characters are digits of the wanted number.
fn digits(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())
}

pub(crate) fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    if !(digits(year, 4) && digits(month, 2) && digits(day, 2)) {
        return false;
    }
    let number = |text: &str| text.parse::<u32>().unwrap_or_default();
    let leap = |year: u32| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let days = match number(month) {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap(number(year)) => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&number(day))
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let Some((date, time)) = lower.split_once('t') else { return false };
    let clock = time.get(..8).unwrap_or_default();
    let parts: Vec<&str> = clock.split(':').collect();
    let [hours, minutes, seconds] = parts.as_slice() else { return false };
    let within = |text: &str, most: &str| digits(text, 2) && text <= most;
    let rest = time.get(8..).unwrap_or_default();
    let zone_at = rest.find(['z', '+', '-']).unwrap_or(rest.len());
    let (fraction, zone) = rest.split_at(zone_at);
    // Any character may be before the fraction, as in the API server's pattern.
    let fraction_fine = fraction.is_empty()
        || fraction.chars().count() > 1 && fraction.chars().skip(1).all(|c| c.is_ascii_digit());
    let offset = zone.strip_prefix(['+', '-']).and_then(|zone| zone.split_once(':'));
    let zone_fine = zone == "z"
        || offset.is_some_and(|(hours, minutes)| digits(hours, 2) && digits(minutes, 2));
    is_date(date)
        && within(hours, "23")
        && within(minutes, "59")
        && within(seconds, "59")
        && fraction_fine
        && zone_fine
}

/// A number and a unit, as often as wanted: `1h30m`, `22 ns`, `3 days`.
fn is_duration(text: &str) -> bool {
    let bare = text.trim_start_matches(['+', '-']);
    if bare == "0" {
        return true;
    }
    let mut rest = bare.trim();
    let mut any = false;
    while !rest.is_empty() {
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let unit_end = after.trim_start();
        let next = unit_end.trim_start_matches(|c: char| c.is_alphabetic());
        let unit = unit_end.get(..unit_end.len() - next.len()).unwrap_or_default();
        if after.len() == rest.len() || !is_unit(unit) {
            return false;
        }
        any = true;
        rest = next.trim_start();
    }
    any
}

fn is_unit(unit: &str) -> bool {
    let single = unit.strip_suffix('s').unwrap_or(unit);
    matches!(unit, "ns" | "us" | "µs" | "ms" | "s" | "m" | "h" | "d" | "w")
        || matches!(
            single,
            "nano"
                | "nanosecond"
                | "micro"
                | "microsecond"
                | "milli"
                | "millisecond"
                | "sec"
                | "second"
                | "min"
                | "minute"
                | "hr"
                | "hour"
                | "day"
                | "week"
                | "wk"
        )
}

fn is_base64(text: &str) -> bool {
    let body = text.strip_suffix("==").or(text.strip_suffix('=')).unwrap_or(text);
    text.len().is_multiple_of(4)
        && !text.is_empty()
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let most = match (address.parse::<Ipv4Addr>(), address.parse::<Ipv6Addr>()) {
        (Ok(_), _) => 32,
        (_, Ok(_)) => 128,
        _ => return false,
    };
    let plain = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    plain && length.parse::<u16>().is_ok_and(|length| length <= most)
}

fn is_mac(text: &str) -> bool {
    let separated = |separator: char, width: usize, counts: &[usize]| {
        let parts: Vec<&str> = text.split(separator).collect();
        counts.contains(&parts.len())
            && parts.iter().all(|part| {
                part.len() == width && part.bytes().all(|byte| byte.is_ascii_hexdigit())
            })
    };
    separated(':', 2, &[6, 8, 20])
        || separated('-', 2, &[6, 8, 20])
        || separated('.', 4, &[3, 4, 10])
}

fn is_uuid(text: &str, version: Option<&str>) -> bool {
    let bare = text.replace('-', "").to_lowercase();
    let version = version.filter(|version| !version.is_empty());
    let parts: Vec<&str> = text.split('-').collect();
    let widths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let grouped = parts.len() == 1 || widths == [8, 4, 4, 4, 12];
    grouped
        && bare.len() == 32
        && bare.bytes().all(|byte| byte.is_ascii_hexdigit())
        && version.is_none_or(|version| bare.get(12..13) == Some(version))
        && (!matches!(version, Some("4" | "5"))
            || bare.get(16..17).is_some_and(|variant| "89ab".contains(variant)))
}

fn is_name_part(text: &str) -> bool {
    let inside = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.as_bytes().first().is_some_and(inside)
        && text.as_bytes().last().is_some_and(inside)
        && text.bytes().all(|byte| inside(&byte) || byte == b'-')
}

fn is_short_name(text: &str) -> bool {
    text.len() <= 63 && is_name_part(text)
}

#[cfg(test)]
mod tests {
    use super::{Verdict, judge};
    use crate::version::KubernetesVersion;

    fn fine(format: &str, text: &str) -> bool {
        judge(format, text, KubernetesVersion::NEWEST) == Verdict::Fine
    }

    #[test]
    fn formats_are_judged_as_by_the_api_server() {
        let good = [
            ("date-time", "2014-12-15T19:30:20.000Z"),
            ("date-time", "2014-12-15t19:30:20+01:00"),
            ("date", "2024-02-29"),
            ("duration", "1h30m"),
            ("duration", "22 ns"),
            ("byte", "aGk="),
            ("ipv4", "10.0.0.1"),
            ("ipv6", "::1"),
            ("cidr", "10.0.0.0/8"),
            ("cidr", "fd00::/8"),
            ("mac", "00:11:22:aa:bb:cc"),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000"),
            ("int32", "any"),
            ("k8s-short-name", "a-1"),
            ("password", ""),
        ];
        for (format, text) in good {
            assert!(fine(format, text), "{format} {text}");
        }
        let bad = [
            ("date-time", "2014-12-15 19:30:20Z"),
            ("date-time", "2014-12-15T24:30:20Z"),
            ("date", "2023-02-29"),
            ("date", "2023-1-1"),
            ("duration", "1 fortnight"),
            ("byte", "a"),
            ("ipv4", "10.0.0.01"),
            ("ipv4", "::1"),
            ("ipv6", "10.0.0.1"),
            ("cidr", "10.0.0.0/33"),
            ("mac", "00:11:22"),
            ("uuid4", "123e4567-e89b-12d3-a456-426614174000"),
            ("k8s-short-name", "A"),
        ];
        for (format, text) in bad {
            assert!(!fine(format, text), "{format} {text}");
        }
    }

    #[test]
    fn formats_count_from_the_version_that_enforces_them() {
        let old = "1.34".parse().unwrap();
        assert_eq!(judge("k8s-short-name", "A", old), Verdict::Fine);
        assert_eq!(judge("email", "a", old), Verdict::Unchecked);
    }
}
