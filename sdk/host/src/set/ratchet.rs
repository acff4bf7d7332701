//! Ratcheting: an update is not refused for what the stored object has wrong already. Rules come
//! later than objects do; a user who changes one field is not made to put right all others first.
//!
//! A finding becomes a warning if the stored object, judged as if no particular user created it, has
//! the same one: same policy, code, field and message, and the field has the same value. What the
//! update itself does wrong is no finding about the stored object, so it is refused all the same.
//! Deliberately not here: the verdict, which is `PolicySet::evaluate`'s; this only makes it milder.

use std::{collections::HashSet, slice};

use super::{Context, PolicySet, findings};
use crate::{
    binding::{Binding, Ratcheting},
    contract::{Metadata, Operation, Severity, Step},
    request::Request,
    scan::{Paths, scan},
    text::MAX_TEXT_BYTES,
    verdict::{Finding, Verdict},
};

/// Where a policy names the codes that refuse an update also for what is stored already: a keyword
/// at the root of its settings schema, with a list of codes.
pub const NEVER_RATCHETS: &str = "x-opensdn-never-ratchets";

/// So many findings are compared; an object with more of them is refused for the rest.
const MOST: usize = 256;

const HINT: &str = "not refused now, because the stored object has it too";

impl PolicySet {
    /// Makes warnings of what the verdict on an update refuses although the stored object has it
    /// too. The stored object is judged only if something was refused. Where that is inconclusive,
    /// the verdict stays as it is.
    pub async fn ratchet(&self, verdict: &mut Verdict, request: &Request<'_>, context: &Context) {
        let (Some(object), Some(old)) = (request.object, request.old_object) else { return };
        if request.operation != Operation::Update {
            return;
        }
        // As if no particular user created it: a rule about who may change what, or about what must not
        // change at all, says nothing of what is stored.
        let stored = Request {
            operation: Operation::Create,
            object: Some(old),
            old_object: None,
            user: "",
            groups: &[],
            ..request.clone()
        };
        let mut before = Vec::new();
        for matched in self.matches(Step::Validate, &stored) {
            let binding = &matched.entry.binding;
            if !verdict.findings.iter().any(|finding| may_ratchet(binding, finding)) {
                continue;
            }
            let parts = matched.parts(&stored);
            let wire = matched.request(&stored, &parts);
            let call = self.call(binding, request, context);
            // Not counted as an evaluation: in metrics it would be a second verdict on one request.
            if let Ok(said) = binding.policy.validate(call, wire, &binding.settings).await {
                let said = findings(binding, said.findings);
                before.extend(said.filter(|finding| may_ratchet(binding, finding)));
            }
        }
        ratchet(&mut verdict.findings, &before, object.text(), old.text());
    }
}

fn may_ratchet(binding: &Binding, finding: &Finding) -> bool {
    binding.ratcheting == Ratcheting::Enabled
        && finding.policy == binding.name
        && finding.denies()
        && !never_ratchets(binding.policy.metadata()).any(|code| code == finding.code)
}

/// Where a policy names the codes that say that an object is not there: a keyword at the root of its
/// settings schema, with an object of codes and the kinds that are looked up, one or a list of them.
pub const TELLS_ABSENCE: &str = "x-opensdn-tells-absence";

/// The kinds of one of which a finding with this code says that it is not there.
pub fn absent_kinds<'a>(metadata: &'a Metadata, code: &str) -> impl Iterator<Item = &'a str> {
    let kinds = metadata.settings_schema.get(TELLS_ABSENCE).and_then(|codes| codes.get(code));
    let kinds = kinds.map(|kinds| kinds.as_array().map_or(slice::from_ref(kinds), Vec::as_slice));
    kinds.into_iter().flatten().filter_map(|kind| kind.as_str())
}

fn never_ratchets(metadata: &Metadata) -> impl Iterator<Item = &str> {
    let codes = metadata.settings_schema.get(NEVER_RATCHETS).and_then(|codes| codes.as_array());
    codes.into_iter().flatten().filter_map(|code| code.as_str())
}

/// Makes warnings of those findings about an object that the stored one has too, `stored` among
/// them, if the field has the same value in both. `object` and `old` are their JSON texts.
pub fn ratchet(findings: &mut [Finding], stored: &[Finding], object: &str, old: &str) {
    let known: HashSet<_> = stored.iter().map(identity).collect();
    // Of two texts that were cut it cannot be said that they are the same.
    let is_whole =
        |finding: &Finding| finding.pointer.len().max(finding.message.len()) <= MAX_TEXT_BYTES;
    let same = |finding: &&mut Finding| {
        finding.denies() && is_whole(finding) && known.contains(&identity(finding))
    };
    let mut paths = Paths::new();
    let metadata = paths.want("/metadata");
    let candidates: Vec<_> = findings
        .iter_mut()
        .filter(same)
        .take(MOST)
        .map(|finding| (paths.want(&finding.pointer), finding))
        .collect();
    if candidates.is_empty() {
        return;
    }
    let (Ok(new), Ok(old)) = (scan(object.as_bytes(), &paths), scan(old.as_bytes(), &paths)) else {
        return;
    };
    for (slot, finding) in candidates {
        let unchanged = match finding.pointer.as_str() {
            "" => around(new.get(slot), new.get(metadata))
                .is_some_and(|new| around(old.get(slot), old.get(metadata)) == Some(new)),
            _ => new.get(slot) == old.get(slot),
        };
        if unchanged {
            finding.severity = Severity::Warn;
            let hint = std::mem::take(&mut finding.hint);
            finding.hint =
                if hint.is_empty() { HINT.to_owned() } else { format!("{hint} ({HINT})") };
        }
    }
}

fn identity(finding: &Finding) -> (&str, &str, &str, &str) {
    (&finding.policy, &finding.code, &finding.pointer, &finding.message)
}

/// What an object says before and after its metadata, which change with every write.
fn around<'t>(whole: Option<&'t str>, metadata: Option<&str>) -> Option<(&'t str, &'t str)> {
    let (whole, metadata) = (whole?, metadata?);
    let start = metadata.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    Some((whole.get(..start)?, whole.get(start + metadata.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::{HINT, ratchet};
    use crate::{
        contract::Severity,
        verdict::{Finding, Mode},
    };

    fn finding(pointer: &str, message: &str) -> Finding {
        Finding {
            policy: "p".to_owned(),
            mode: Mode::Enforce,
            code: "C1".to_owned(),
            severity: Severity::Deny,
            pointer: pointer.to_owned(),
            message: message.to_owned(),
            hint: String::new(),
        }
    }

    /// Whether the finding of the new object still refuses it.
    fn refuses(finding: Finding, stored: &[Finding], object: &str, old: &str) -> bool {
        let mut findings = vec![finding];
        ratchet(&mut findings, stored, object, old);
        assert_eq!(findings[0].hint == HINT, !findings[0].denies());
        findings[0].denies()
    }

    const OLD: &str = r#"{"metadata":{"a":1},"spec":{"x":7,"y":1}}"#;

    #[test]
    fn what_is_stored_already_is_a_warning_and_nothing_else_is() {
        let x = || finding("/spec/x", "x is 7");
        let other = r#"{"metadata":{"a":2},"spec":{"x":7,"y":2}}"#;
        assert!(!refuses(x(), &[x()], other, OLD));
        assert!(refuses(x(), &[], other, OLD), "the stored object has no finding");
        assert!(refuses(x(), &[finding("/spec/x", "x is 8")], other, OLD), "another message");
        assert!(refuses(x(), &[finding("/spec/y", "x is 7")], other, OLD), "another field");
        let changed = r#"{"metadata":{"a":1},"spec":{"x":9,"y":1}}"#;
        assert!(refuses(x(), &[x()], changed, OLD), "the same words about another value");
        let long = || finding("/spec/x", &format!("{}… (501 bytes)", "x".repeat(500)));
        assert!(refuses(long(), &[long()], other, OLD), "it was cut");
        let absent = || finding("/spec/z", "z is missing");
        assert!(!refuses(absent(), &[absent()], other, OLD));
    }

    #[test]
    fn a_finding_about_the_whole_object_stays_unless_only_metadata_change() {
        let whole = || finding("", "all wrong");
        let relabelled = r#"{"metadata":{"a":2,"b":3},"spec":{"x":7,"y":1}}"#;
        assert!(!refuses(whole(), &[whole()], relabelled, OLD));
        let changed = r#"{"metadata":{"a":1},"spec":{"x":7,"y":2}}"#;
        assert!(refuses(whole(), &[whole()], changed, OLD));
        let bare = r#"{"spec":{}}"#;
        assert!(refuses(whole(), &[whole()], bare, r#"{"spec":{"a":1}}"#));
    }
}
