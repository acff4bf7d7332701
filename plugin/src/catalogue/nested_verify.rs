//! What `nested verify` finds of a nested cluster, explained: codes and texts are those of `crate::nested::verify`.

use super::{Finder, Meaning, Severity};
use crate::nested::verify::code::Code;

/// `(code, meaning)` of each.
pub(super) fn meanings() -> impl Iterator<Item = (&'static str, Meaning)> {
    Code::ALL.iter().map(|code| {
        let meaning = Meaning {
            found_by: Finder::NestedVerify,
            policy: None,
            // No request is refused by it.
            severity: match code {
                Code::RowRenamed => Severity::Info,
                _ => Severity::Warn,
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
