//! Findings as a person reads them: one mistake at many places is one thing to fix. Machines get
//! the findings themselves. Pure; how a place is written is the caller's business.

use std::collections::HashMap;

use crate::{
    contract::Severity,
    verdict::{Finding, Mode},
};

/// Findings that differ only in where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group<'f> {
    /// The first of them.
    pub first: &'f Finding,
    /// The JSON Pointers of all, sorted, none twice: which are shown does not depend on who found what
    /// first.
    pub pointers: Vec<&'f str>,
    /// What is wrong; without the name of the component where there are several.
    pub message: &'f str,
}

/// What findings of one group have in common.
type Key<'f> = (&'f str, Mode, Severity, &'f str, &'f str);

/// The findings in groups, the most severe first, else in the order of their first.
pub fn group<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> Vec<Group<'f>> {
    let mut groups: Vec<Group<'f>> = Vec::new();
    let mut known: HashMap<Key<'f>, usize> = HashMap::new();
    let mut places: HashMap<(usize, &'f str), &'f str> = HashMap::new();
    for finding in findings {
        let Finding { code, mode, severity, message, hint, pointer, .. } = finding;
        let gist = gist(message);
        let number = *known.entry((code, *mode, *severity, gist, hint)).or_insert(groups.len());
        let own = || Group { first: finding, pointers: vec![pointer.as_str()], message };
        match (places.get(&(number, pointer.as_str())), groups.get_mut(number)) {
            (Some(same), _) if same == message => {}
            // Two subjects at one place: without their names the second would be lost.
            (Some(_), _) | (None, None) => groups.push(own()),
            (None, Some(group)) => {
                group.pointers.push(pointer);
                if group.message != message {
                    group.message = gist;
                }
            }
        }
        places.entry((number, pointer)).or_insert(message);
    }
    for group in &mut groups {
        group.pointers.sort_unstable();
    }
    groups.sort_by_key(|group| match group.first.severity {
        Severity::Deny => 0,
        Severity::Warn => 1,
    });
    groups
}

/// A message without the component that it begins with: `Redis redis1: no node has …`.
#[must_use]
pub fn gist(message: &str) -> &str {
    let names_a_component = |subject: &str| {
        let Some((kind, name)) = subject.split_once(' ') else { return false };
        let is_of_name = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || [b'-', b'.'].contains(&byte)
        };
        kind.starts_with(|letter: char| letter.is_ascii_uppercase())
            && kind.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && !name.is_empty()
            && name.bytes().all(is_of_name)
    };
    match message.split_once(": ") {
        Some((subject, gist)) if names_a_component(subject) => gist,
        _ => message,
    }
}

#[cfg(test)]
mod tests {
    use super::{gist, group};
    use crate::{Finding, Mode, Severity};

    fn finding(code: &str, severity: Severity, pointer: &str, message: &str) -> Finding {
        Finding {
            policy: "p".to_owned(),
            mode: Mode::Enforce,
            code: code.to_owned(),
            severity,
            pointer: pointer.to_owned(),
            message: message.to_owned(),
            hint: "change it".to_owned(),
        }
    }

    #[test]
    fn two_subjects_at_one_place_are_both_named() {
        let findings = ["Secret a: not found", "Secret b: not found"]
            .map(|message| finding("A", Severity::Deny, "/spec", message));
        let groups = group(&findings);
        let said: Vec<_> = groups.iter().map(|group| group.message).collect();
        assert_eq!(said, ["Secret a: not found", "Secret b: not found"]);
    }

    #[test]
    fn places_are_sorted() {
        let at = |pointer| finding("A", Severity::Warn, pointer, "no tag");
        let findings = [at("/z"), at("/a"), at("/m")];
        assert_eq!(group(&findings)[0].pointers, ["/a", "/m", "/z"]);
    }

    #[test]
    fn one_mistake_at_many_places_is_one_group_and_denials_come_first() {
        let findings = [
            finding("A", Severity::Warn, "/a", "Redis redis1: no tag"),
            finding("A", Severity::Warn, "/b", "Config config1: no tag"),
            finding("B", Severity::Deny, "/c", "Config config1: no port"),
            finding("A", Severity::Warn, "/b", "Config config1: no tag"),
            finding("A", Severity::Deny, "/d", "Webui webui1: no tag"),
            finding("A", Severity::Warn, "/e", "Webui webui1: no image"),
        ];
        let groups = group(&findings);
        let said: Vec<_> =
            groups.iter().map(|group| (group.message, group.pointers.as_slice())).collect();
        let expected: [(&str, &[&str]); 4] = [
            ("Config config1: no port", &["/c"]),
            ("Webui webui1: no tag", &["/d"]),
            ("no tag", &["/a", "/b"]),
            ("Webui webui1: no image", &["/e"]),
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn what_two_bindings_report_of_one_field_is_said_once() {
        let one = finding("A", Severity::Warn, "/a", "Redis redis1: no tag");
        let other = Finding { policy: "q".to_owned(), ..one.clone() };
        let findings = [one, other];
        let groups = group(&findings);
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].pointers, ["/a"]);
        assert_eq!(groups[0].message, "Redis redis1: no tag");
    }

    #[test]
    fn only_a_component_is_taken_off_a_message() {
        for (message, expected) in [
            ("Redis redis1: no tag", "no tag"),
            ("Analytics analytics-1.a: x: y", "x: y"),
            ("container api: the command", "container api: the command"),
            ("AGENT_MODE=x: no such mode", "AGENT_MODE=x: no such mode"),
            ("Config: no tag", "Config: no tag"),
            ("No image here: x", "No image here: x"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(gist(message), expected);
        }
    }
}
