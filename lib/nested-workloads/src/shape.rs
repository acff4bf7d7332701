//! The shapes that values may have. Each is narrower than what Kubernetes takes where a value goes into a
//! file that upstream's entrypoints write: those have no escapes.

use std::net::Ipv4Addr;

/// What a value must be.
pub(crate) struct Shape {
    holds: fn(&str) -> bool,
    pub(crate) rule: &'static str,
}

impl Shape {
    pub(crate) fn holds(&self, value: &str) -> bool {
        (self.holds)(value)
    }
}

pub(crate) const LABEL: Shape = Shape {
    holds: is_label,
    rule: "must be lower-case letters, digits and -, at most 63, such as k8s-a",
};
pub(crate) const NAME: Shape = Shape {
    holds: is_name,
    rule: "must be a name of Kubernetes: lower-case letters, digits, - and dots, at most 253",
};
pub(crate) const PREFIX: Shape = Shape {
    holds: |value| value.len() <= 30 && is_label(&format!("{value}x")),
    rule: "must be lower-case letters, digits and -, at most 30, such as opensdn-",
};
pub(crate) const LABEL_VALUE: Shape = Shape {
    holds: |value| value.len() <= 63 && is_word(value, b"-._"),
    rule: "must be letters, digits, -, _ and dots, at most 63",
};
pub(crate) const LABEL_KEY: Shape = Shape {
    holds: is_label_key,
    rule: "must be the key of a label, such as node-role.kubernetes.io/control-plane",
};
pub(crate) const SECRET_KEY: Shape = Shape {
    holds: |value| {
        !value.is_empty()
            && value.len() <= 253
            && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    },
    rule: "must be a key of a Secret: letters, digits, -, _ and dots",
};
pub(crate) const PLAIN: Shape = Shape {
    holds: is_plain,
    rule: "must be a name without blanks at its ends, and without quotes, colons, braces, \
           backslashes and any of $ % `",
};
pub(crate) const IMAGE: Shape = Shape {
    holds: is_image,
    rule: "must be the full name of an image, such as registry.example/opensdn/name:tag",
};
pub(crate) const HOST: Shape = Shape {
    holds: |value| is_unicast(value) || (is_name(value) && !is_numeric(value)),
    rule: "must be an IPv4 address of another machine, or a name in lower case",
};
pub(crate) const UNICAST: Shape = Shape {
    holds: is_unicast,
    rule: "must be an IPv4 address of another machine: not in 0.0.0.0/8 or 127.0.0.0/8, and below \
           224.0.0.0",
};
pub(crate) const SUBNET: Shape =
    Shape { holds: is_subnet, rule: "must be a network in IPv4, such as 10.32.0.0/12" };
pub(crate) const INTERFACE: Shape = Shape {
    holds: |value| value.len() <= 15 && is_word(value, b"-._"),
    rule: "must be the name of a network interface, such as eth0",
};
pub(crate) const DIGEST: Shape = Shape {
    holds: |value| value.len() <= 253 && is_word(value, b":-_+/="),
    rule: "must be a digest: letters and digits",
};
pub(crate) const ADDRESS: Shape = Shape {
    holds: |value| value.parse::<std::net::IpAddr>().is_ok(),
    rule: "must be an IP address",
};

fn is_label(value: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    value.len() <= 63
        && !value.starts_with('-')
        && !value.ends_with('-')
        && !value.is_empty()
        && value.bytes().all(is_inside)
}

pub(crate) fn is_name(value: &str) -> bool {
    value.len() <= 253 && value.split('.').all(is_label)
}

/// Letters and digits, and between them also others.
fn is_word(value: &str, others: &[u8]) -> bool {
    let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || others.contains(&byte);
    is_end(value.bytes().next()) && is_end(value.bytes().last()) && value.bytes().all(is_inside)
}

fn is_label_key(value: &str) -> bool {
    match value.split_once('/') {
        Some((domain, name)) => is_name(domain) && LABEL_VALUE.holds(name),
        None => LABEL_VALUE.holds(value),
    }
}

/// `%` would be interpolated by Python's reader of INI files, `$(` by kubelet; quotes and braces end the
/// literal that a name becomes a part of.
fn is_plain(value: &str) -> bool {
    let is_refused = |letter: char| letter.is_control() || "\"'`\\{}$%:".contains(letter);
    !value.is_empty()
        && value.len() <= 253
        && value.trim() == value
        && !value.chars().any(is_refused)
}

fn is_image(value: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/:@".contains(&byte);
    let end = value.rsplit('/').next().unwrap_or_default();
    value.len() <= 512
        && value
            .split('/')
            .all(|part| part.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric()))
        && value.ends_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_')
        && end.matches(':').count() <= 2
        && value.bytes().all(is_inside)
}

/// Such as 10.0.0.256, which is no address and must not pass as a name.
fn is_numeric(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

fn is_unicast(value: &str) -> bool {
    value.parse::<Ipv4Addr>().is_ok_and(|address| {
        let [first, ..] = address.octets();
        first != 0 && first != 127 && first < 224
    })
}

fn is_subnet(value: &str) -> bool {
    let Some((address, bits)) = value.split_once('/') else { return false };
    let is_length = !bits.is_empty()
        && bits.len() <= 2
        && bits.bytes().all(|byte| byte.is_ascii_digit())
        && bits.parse::<u8>().is_ok_and(|bits| (1..=32).contains(&bits));
    address.parse::<Ipv4Addr>().is_ok() && is_length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(shape: &Shape, right: &[&str], wrong: &[&str]) {
        for value in right {
            assert!(shape.holds(value), "{value:?} is refused");
        }
        for value in wrong.iter().chain(&["", "a\nb", "a b\"", "$(id)", "{{ x }}", " a", "a'"]) {
            assert!(!shape.holds(value), "{value:?} is taken");
        }
    }

    #[test]
    fn what_ends_a_text_in_a_shell_a_template_or_a_file_is_in_no_shape() {
        check(&LABEL, &["k8s", "k8s-a", "0"], &["K8s", "-a", "a-", "a.b", "a_b"]);
        check(&NAME, &["a", "a.b-c"], &["a..b", ".a", "A"]);
        check(&LABEL_VALUE, &["kubectl-opensdn", "A_b.c"], &["-a", "a-"]);
        check(&LABEL_KEY, &["a", "a.b/c-d"], &["a/", "/a", "a/b/c"]);
        check(&SECRET_KEY, &["password", ".dockerconfigjson", "a_B-1"], &["a/b", "a%"]);
        check(&PLAIN, &["default-domain", "__public__", "my net", "Büro"], &["a:b", "50%", "a$b"]);
        check(
            &IMAGE,
            &["r:5000/o/i:t", "i", "r/i@sha256:00", "r/i:t@sha256:00"],
            &["r//i", "r/i:", "/i", "r/i:a:b:c"],
        );
        check(&HOST, &["10.0.0.1", "keystone.example.com", "k"], &["10.0.0.256", "fd00::1", "::1"]);
        check(&UNICAST, &["10.0.0.1"], &["127.0.0.1", "0.1.2.3", "224.0.0.1", "10.0.0", "a"]);
        check(
            &SUBNET,
            &["10.32.0.0/12"],
            &["10.32.0.0", "10.0.0.0/33", "10.0.0.0/+8", "fd00::/64"],
        );
        check(&INTERFACE, &["eth0", "bond0.100"], &["a/b", "abcdefghijklmnop"]);
        check(&DIGEST, &["sha256:0f", "0f"], &["a;b"]);
    }

    #[test]
    fn what_names_begin_with_may_end_in_a_hyphen_and_be_empty() {
        for value in ["", "opensdn-", "a"] {
            assert!(PREFIX.holds(value), "{value:?} is refused");
        }
        for value in ["-a", "A", "a b", "a\n", "{{a}}", "abcdefghijklmnopqrstuvwxyz-0123456789"] {
            assert!(!PREFIX.holds(value), "{value:?} is taken");
        }
    }
}
