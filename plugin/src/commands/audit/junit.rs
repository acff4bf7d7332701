//! What an audit found, as JUnit's XML: a suite a policy, a case a finding. A policy that found nothing is one case that
//! has passed, and what was not judged is left out with its reason.

use std::collections::BTreeMap;
use std::io::{self, Write};

use opensdn_validate::junit::{Case, Outcome, Problem, Suite, write_suites};
use opensdn_validate::report::{Severity, printable};

use super::found::{AuditFinding, AuditFindings};

impl AuditFindings {
    /// Writes it; what is as bad as this or worse has failed.
    pub(super) fn write_junit(&self, fail_on: Severity, out: &mut dyn Write) -> io::Result<()> {
        let mut suites: BTreeMap<&str, Vec<Case>> =
            self.policies.iter().map(|policy| (policy.name.as_str(), Vec::new())).collect();
        for finding in &self.findings {
            suites.entry(&finding.policy).or_default().push(finding.case(fail_on));
        }
        let suite = |(name, cases): (&str, Vec<Case>)| {
            let nothing = || vec![case(name, "nothing found", Outcome::Passed)];
            let cases = if cases.is_empty() { nothing() } else { cases };
            Suite { name: printable(name), cases }
        };
        let mut suites: Vec<Suite> = suites.into_iter().map(suite).collect();
        let left_out = self.not_checked.iter().map(|one| {
            case(
                "audit",
                &format!("not checked: {}", one.what),
                Outcome::Skipped(printable(&one.why)),
            )
        });
        let mut left_out: Vec<Case> = left_out.collect();
        if let Some(hint) = self.hint() {
            left_out.push(case("audit", "there is more", Outcome::Skipped(hint)));
        }
        if !left_out.is_empty() {
            suites.push(Suite { name: "audit".to_owned(), cases: left_out });
        }
        write_suites("kubectl opensdn audit", &suites, out)
    }
}

impl AuditFinding {
    fn case(&self, fail_on: Severity) -> Case {
        let places = self.places.join(" ");
        let parts = [self.message.as_str(), &places, &self.hint];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let text = printable(&parts.join("\n"));
        let outcome = if self.severity.severity() >= fail_on {
            Outcome::Failed(Problem {
                kind: Some(self.severity.text().to_owned()),
                message: printable(&self.message),
                text,
            })
        } else {
            Outcome::Output(text)
        };
        let name = format!("{} {}", self.code, self.object);
        case(&self.policy, name.trim_start(), outcome)
    }
}

fn case(class: &str, name: &str, outcome: Outcome) -> Case {
    Case { class: printable(class), name: printable(name), place: None, seconds: None, outcome }
}

#[cfg(test)]
mod tests {
    use opensdn_validate::report::NotChecked;

    use super::super::found::{PolicyCounts, Word};
    use super::*;

    fn finding(severity: Word, code: &str) -> AuditFinding {
        AuditFinding {
            severity,
            policy: "plaintext".to_owned(),
            code: code.to_owned(),
            object: "Redis tf/redis1".to_owned(),
            places: vec!["/spec/a".to_owned()],
            message: "is <bad>".to_owned(),
            hint: "mend it".to_owned(),
            since: None,
        }
    }

    fn written(fail_on: Severity) -> String {
        let policy = |name: &str| PolicyCounts { name: name.to_owned(), ..PolicyCounts::default() };
        let found = AuditFindings {
            policies: vec![policy("plaintext"), policy("even-quorum")],
            findings: vec![finding(Word::Deny, "OSDN1"), finding(Word::Warn, "OSDN2")],
            not_checked: vec![NotChecked {
                what: "Webuis".to_owned(),
                why: "forbidden".to_owned(),
            }],
            ..AuditFindings::default()
        };
        let mut out = Vec::new();
        found.write_junit(fail_on, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_finding_is_a_case_and_what_found_nothing_has_passed() {
        let text = written(Severity::Error);
        for part in [
            r#"<testsuites name="kubectl opensdn audit" tests="4" failures="1" errors="0" skipped="1">"#,
            r#"<testcase classname="even-quorum" name="nothing found"/>"#,
            r#"<testcase classname="plaintext" name="OSDN1 Redis tf/redis1">"#,
            r#"<failure type="deny" message="is &lt;bad&gt;">is &lt;bad&gt;&#10;/spec/a&#10;mend it</failure>"#,
            r#"<system-out>is &lt;bad&gt;&#10;/spec/a&#10;mend it</system-out>"#,
            r#"<skipped message="forbidden"/>"#,
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn what_fails_a_build_is_what_the_exit_code_is_for() {
        assert!(written(Severity::Warning).contains(r#"failures="2""#));
    }
}
