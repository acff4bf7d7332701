//! Findings as a person reads them.

use std::collections::BTreeSet;

use opensdn_policy_host::{
    EvalFailure, FailureMode, Finding, Group, Mode, Severity, UnappliedPatch, group,
};

/// The API server cuts all warnings short once they pass 4,096 characters together.
const WARNINGS: usize = 3_900;
/// So many places of one mistake are written into a warning.
const PLACES: usize = 3;
/// So many are written into a refusal. No object of our kinds has more lists and maps of the most items
/// than a person reads; a forged review may name any number.
const REFUSED_PLACES: usize = 100;
/// Bytes of all lines of a refusal, but for the one that passes them.
const REFUSAL: usize = 128 << 10;
/// Codes that are written into one line of the log, and entries into one annotation of the audit log.
const CODES: usize = 20;

/// `/spec/services/vrouters/0/spec` as `spec.services.vrouters[0].spec`.
pub(super) fn field(pointer: &str) -> String {
    let mut path = String::new();
    for segment in pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        if !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str(&format!("[{segment}]"));
        } else if segment.contains(['.', '/']) {
            path.push_str(&format!("[{segment:?}]"));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&segment);
        }
    }
    path
}

/// What is wrong, in one line without its place.
pub(super) fn problem(finding: &Finding) -> String {
    one_line(&format!("{}{}", finding.message, hint(finding)))
}

fn hint(finding: &Finding) -> String {
    if finding.hint.is_empty() { String::new() } else { format!(" -> {}", finding.hint) }
}

/// One mistake in one line: code, fields, what is wrong, what to do.
fn line(group: &Group<'_>, most: usize) -> String {
    let Group { first, message, .. } = group;
    one_line(&format!("[{}]{}: {message}{}", first.code, places(group, most), hint(first)))
}

/// ` spec.a, spec.b and 3 more places`; nothing for the object as a whole.
fn places(group: &Group<'_>, most: usize) -> String {
    let all = group.pointers.iter().map(|pointer| field(pointer));
    let all: Vec<String> = all.filter(|place| !place.is_empty()).collect();
    let shown = all.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(most) {
        0 if shown.is_empty() => String::new(),
        0 => format!(" {shown}"),
        1 => format!(" {shown} and 1 more place"),
        rest => format!(" {shown} and {rest} more places"),
    }
}

/// A policy that failed, in one line.
pub(super) fn failure(failure: &EvalFailure) -> String {
    failed(&[&failure.policy], failure)
}

/// Policies that failed, those of one reason in one line: what ails the webhook ails all of them.
fn failures<'f>(failures: impl Iterator<Item = &'f EvalFailure>) -> Vec<String> {
    let mut alike: Vec<(&EvalFailure, Vec<&str>)> = Vec::new();
    for failure in failures {
        let is_alike = |other: &EvalFailure| {
            other.failure_mode == failure.failure_mode && other.reason == failure.reason
        };
        match alike.iter_mut().find(|(other, _)| is_alike(other)) {
            Some((_, policies)) => policies.push(&failure.policy),
            None => alike.push((failure, vec![&failure.policy])),
        }
    }
    alike.iter().map(|(failure, policies)| failed(policies, failure)).collect()
}

fn failed(policies: &[&str], failure: &EvalFailure) -> String {
    let consequence = match failure.failure_mode {
        FailureMode::Fail => {
            "try again; if it stays, ask your administrator to look at \
             `kubectl get admissionpolicies` and the log of the webhook"
        }
        FailureMode::Ignore => "the object was not checked by it",
    };
    let word = if policies.len() == 1 { "policy" } else { "policies" };
    one_line(&format!("{word} {}: {} -> {consequence}", policies.join(", "), failure.reason))
}

/// These texts, each once, and how many more there are.
pub(super) fn listed(texts: impl Iterator<Item = String>) -> String {
    let texts: BTreeSet<String> = texts.collect();
    let shown = texts.iter().take(CODES).map(String::as_str).collect::<Vec<_>>().join(",");
    match texts.len().saturating_sub(CODES) {
        0 => shown,
        more => format!("{shown},+{more}"),
    }
}

/// The whole refusal: every reason, one a line. There are as many as fit, and it says how many do not.
pub(super) fn refusal(subject: &str, findings: &[Finding], failures: &[EvalFailure]) -> String {
    let denials = group(findings.iter().filter(|finding| finding.denies()));
    let lines: Vec<String> = denials
        .iter()
        .map(|group| line(group, REFUSED_PLACES))
        .chain(self::failures(failures.iter().filter(|one| one.denies())))
        .collect();
    let count = match lines.len() {
        1 => "1 problem".to_owned(),
        number => format!("{number} problems"),
    };
    let mut text = format!("{count} in {}:", one_line(subject));
    for (number, line) in lines.iter().enumerate() {
        if text.len() > REFUSAL {
            let rest = lines.len() - number;
            text.push_str(&format!("\n  {rest} more; fix these and apply again to see the rest"));
            break;
        }
        text.push_str("\n  ");
        text.push_str(line);
    }
    text
}

/// What passes with a warning, the most severe first; as many as the API server returns uncut.
pub(super) fn warnings(
    findings: &[Finding],
    failures: &[EvalFailure],
    unapplied: &[UnappliedPatch],
) -> Vec<String> {
    let heard = |finding: &&Finding| {
        finding.mode == Mode::Warn
            || (finding.mode == Mode::Enforce && finding.severity == Severity::Warn)
    };
    let silent = |failure: &&EvalFailure| !failure.denies() && failure.mode != Mode::Audit;
    let lines = group(findings.iter().filter(heard));
    let lines = lines
        .iter()
        .map(|group| line(group, PLACES))
        .chain(self::failures(failures.iter().filter(silent)));
    let lines: Vec<String> = lines
        .chain(unapplied.iter().filter(|one| one.mode == Mode::Warn).map(
            |UnappliedPatch { policy, .. }| {
                format!("policy {policy} would have changed the object; its mode is warn")
            },
        ))
        .collect();
    fit(lines)
}

fn fit(lines: Vec<String>) -> Vec<String> {
    let mut used = 0;
    let total = lines.len();
    let mut kept = Vec::new();
    for line in lines {
        used += line.chars().count();
        if used > WARNINGS {
            let rest = total - kept.len();
            kept.push(format!("{rest} more warnings; fix these and apply again to see the rest"));
            break;
        }
        kept.push(line);
    }
    kept
}

/// A line break in a warning makes the API server drop it.
fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use opensdn_policy_host::FailureReason;

    use super::*;

    #[test]
    fn warnings_are_lines_and_no_more_than_the_api_server_hands_on() {
        let finding = |message: &str| Finding {
            policy: "p".to_owned(),
            mode: Mode::Warn,
            code: "C1".to_owned(),
            severity: Severity::Deny,
            pointer: "/spec/a".to_owned(),
            message: message.to_owned(),
            hint: String::new(),
        };
        let said = warnings(&[finding("one\ntwo\u{7}three\r")], &[], &[]);
        assert_eq!(said, ["[C1] spec.a: one two three "]);

        let many: Vec<Finding> =
            (0..100).map(|number| finding(&format!("{number}{}", "\u{e4}".repeat(100)))).collect();
        let said = warnings(&many, &[], &[]);
        let letters: usize = said.iter().map(|line| line.chars().count()).sum();
        assert!(letters < 4_096, "{letters}");
        let left_out = format!("{} more warnings; ", many.len() - (said.len() - 1));
        assert!(said.last().is_some_and(|last| last.starts_with(&left_out)), "{said:?}");
    }

    #[test]
    fn one_reason_of_several_policies_is_one_line() {
        let failure = |policy: &str, why: &str, failure_mode| EvalFailure {
            policy: policy.to_owned(),
            mode: Mode::Enforce,
            failure_mode,
            reason: FailureReason::Inactive(why.to_owned()),
        };
        let (fail, ignore) = (FailureMode::Fail, FailureMode::Ignore);
        let failures = [
            failure("a", "the disk is full", fail),
            failure("b", "it is gone", fail),
            failure("c", "the disk is full", fail),
            failure("d", "the disk is full", ignore),
        ];
        let said = refusal("Manager", &[], &failures);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!((lines.len(), lines[0]), (3, "2 problems in Manager:"));
        assert!(
            lines[1]
                .starts_with("  policies a, c: the policy is not active: the disk is full -> try")
        );
        assert!(lines[2].starts_with("  policy b: the policy is not active: it is gone -> try"));
        assert_eq!(
            warnings(&[], &failures, &[]),
            [
                "policy d: the policy is not active: the disk is full -> the object was not checked by it"
            ]
        );
    }

    #[test]
    fn one_mistake_at_many_places_is_one_line() {
        let finding = |name: &str, severity| Finding {
            policy: "p".to_owned(),
            mode: Mode::Enforce,
            code: "C1".to_owned(),
            severity,
            pointer: format!("/spec/services/redis/{name}"),
            message: format!("Redis redis{name}: no tag"),
            hint: "give one".to_owned(),
        };
        let names = ["0", "1", "2", "3", "4"];
        let [many, denials] = [Severity::Warn, Severity::Deny]
            .map(|severity| names.map(|name| finding(name, severity)));
        assert_eq!(
            warnings(&many, &[], &[]),
            [
                "[C1] spec.services.redis[0], spec.services.redis[1], spec.services.redis[2] and 2 more \
              places: no tag -> give one"
            ]
        );
        assert_eq!(
            warnings(&many[..4], &[], &[]),
            [
                "[C1] spec.services.redis[0], spec.services.redis[1], spec.services.redis[2] and 1 more \
              place: no tag -> give one"
            ]
        );
        let refusal = refusal("Manager", &denials, &[]);
        assert!(refusal.starts_with("1 problem in Manager:\n  [C1] spec.services.redis[0], "));
        assert!(refusal.contains("redis[4]: no tag -> give one"), "{refusal}");
    }
}
