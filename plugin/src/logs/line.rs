//! A line of a log: its time, and how grave it is (pure). Daemons of OpenSDN and of others write levels in ways of their own.

use k8s_openapi::jiff::Timestamp;

/// How grave a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Level {
    Debug,
    Info,
    Warning,
    Error,
}

/// Behind these words no more is looked for a level.
const HEAD: usize = 16;

/// The words by which a level is known, in lower case.
fn of_word(word: &str) -> Option<Level> {
    match word {
        "error" | "err" | "fatal" | "critical" | "crit" | "emerg" | "alert" | "panic"
        | "severe" | "sys_err" | "sys_crit" | "sys_alert" | "sys_emerg" => Some(Level::Error),
        "warn" | "warning" | "sys_warn" | "sys_warning" => Some(Level::Warning),
        "info" | "notice" | "sys_info" | "sys_notice" => Some(Level::Info),
        "debug" | "trace" | "sys_debug" => Some(Level::Debug),
        _ => None,
    }
}

/// The level of a text; none where it says none, as of the lines of a stack.
pub(crate) fn level(text: &str) -> Option<Level> {
    of_klog(text).or_else(|| {
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let words = words.filter(|word| !word.is_empty()).take(HEAD);
        words.filter(|word| word.len() <= 11).find_map(|word| of_word(&word.to_ascii_lowercase()))
    })
}

/// `E1125 00:00:00.000000`, as programs of Kubernetes write it.
fn of_klog(text: &str) -> Option<Level> {
    let (first, rest) = (text.chars().next()?, text.get(1..5)?);
    if !rest.bytes().all(|byte| byte.is_ascii_digit()) || text.as_bytes().get(5) != Some(&b' ') {
        return None;
    }
    match first {
        'E' | 'F' => Some(Level::Error),
        'W' => Some(Level::Warning),
        'I' => Some(Level::Info),
        _ => None,
    }
}

/// A line, as the API server gives it: its time, a blank, and the text. Of one that is not so the time is that of the one
/// before.
pub(crate) fn timed(line: &str, before: Timestamp) -> (Timestamp, &str) {
    let parsed = line.split_once(' ').and_then(|(time, text)| Some((time.parse().ok()?, text)));
    parsed.unwrap_or((before, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_known_as_each_daemon_writes_them() {
        for (text, expected) in [
            ("11/25/2026 00:00:00.1 7fa [contrail-control, Error] BGP peer", Some(Level::Error)),
            (
                "11/25/2026 12:00:00 AM [contrail-api] [SYS_NOTICE]: __default__ x",
                Some(Level::Info),
            ),
            ("2026-11-25 SYS_ERR cassandra is gone", Some(Level::Error)),
            (
                r#"{"timestamp":"2026-11-25T00:00:00Z","level":"WARN","fields":{}}"#,
                Some(Level::Warning),
            ),
            ("WARN  [main] 2026-11-25 Gossiper.java:1 - no error", Some(Level::Warning)),
            ("2026-11-25 00:00:00.000 [debug] <0.1.0> rabbit", Some(Level::Debug)),
            ("E1125 00:00:00.000000 1 leader.go:1] lost", Some(Level::Error)),
            ("I1125 00:00:00.000000 1 leader.go:1] an error", Some(Level::Info)),
            ("  at java.base/java.lang.Thread.run", None),
            ("Exited", None),
        ] {
            assert_eq!(level(text), expected, "{text}");
        }
    }

    #[test]
    fn a_line_without_a_time_has_that_of_the_one_before() {
        let before: Timestamp = "2026-11-25T00:00:00Z".parse().unwrap();
        let (time, text) = timed("2026-11-25T00:00:01.5+00:00 a b", before);
        assert_eq!((time.to_string().as_str(), text), ("2026-11-25T00:00:01.5Z", "a b"));
        assert_eq!(timed("broken off", before), (before, "broken off"));
    }
}
