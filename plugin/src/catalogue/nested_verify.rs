//! What `nested verify` finds of a nested cluster, explained: codes and texts are those of `crate::nested::verify`.

use super::{Finder, Meaning, Severity};
use crate::nested::verify::code::Code;

/// `(code, meaning)` of each.
pub(super) fn meanings() -> impl Iterator<Item = (&'static str, Meaning)> {
    // What a plan finds, too, is explained there.
    let own = Code::ALL.iter().filter(|code| **code != Code::Unauthorized);
    own.map(|code| {
        let meaning = Meaning {
            found_by: Finder::NestedVerify,
            policy: None,
            severity: match code {
                Code::RowRenamed => Severity::Info,
                Code::RowOrphaned => Severity::Warn,
                // Verification fails by it.
                _ => Severity::Deny,
            },
            title: code.title().to_owned(),
            why: code.why().to_owned(),
            remedy: code.remedy().to_owned(),
            rules: Vec::new(),
            sources: Vec::new(),
        };
        (code.as_str(), meaning)
    })
}
