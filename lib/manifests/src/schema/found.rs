//! What a check of a schema gathers: problems by pointer, and which of them leave the rules nothing
//! sound to judge.

use std::collections::{BTreeSet, HashMap};

use crate::document::Document;
use crate::problem::{Problem, Severity, codes};

/// Problems of one object.
#[derive(Debug, Default)]
pub(crate) struct Found {
    problems: Vec<Problem>,
    /// Pointers of values that are to be shown instead of those of the problems, by their index.
    shown: HashMap<usize, String>,
    /// Pointers at which a value is so wrong that a rule about it, or about what is around it,
    /// could only say something misleading. The API server then checks no rule at all.
    blocked: BTreeSet<String>,
    unchecked: usize,
}

impl Found {
    pub(crate) fn push(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// A problem about one value that is better shown at another: a rule on a mapping that reads a
    /// single field of it.
    pub(crate) fn push_shown(&mut self, problem: Problem, pointer: String) {
        self.shown.insert(self.problems.len(), pointer);
        self.problems.push(problem);
    }

    /// A problem that blocks the rules on its pointer and around it.
    pub(crate) fn block(&mut self, problem: Problem) {
        self.blocked.extend(problem.pointer.clone());
        self.problems.push(problem);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// Whether something at the pointer or within it blocks rules.
    pub(crate) fn blocks(&self, pointer: &str) -> bool {
        let behind = self.blocked.range(pointer.to_owned()..);
        let mut within = behind.take_while(|blocked| blocked.starts_with(pointer));
        within.any(|blocked| {
            blocked
                .get(pointer.len()..)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Counts rules that are not checked.
    pub(crate) const fn skip(&mut self, rules: usize) {
        self.unchecked += rules;
    }

    /// All problems, each with its place in the document.
    pub(crate) fn finish(mut self, document: &Document) -> Vec<Problem> {
        if self.unchecked > 0 {
            let rules = match self.unchecked {
                1 => "1 rule of the schema was".to_owned(),
                count => format!("{count} rules of the schema were"),
            };
            let message = format!("{rules} not checked, for the values read are not valid");
            let problem = Problem::new(Severity::Info, codes::NOT_CHECKED, message);
            self.problems.push(problem.pointer("").hint("correct the other problems first"));
        }
        for (index, problem) in self.problems.iter_mut().enumerate() {
            let shown = self.shown.get(&index).map(String::as_str).or(problem.pointer.as_deref());
            let place = document.nearest(shown.unwrap_or_default());
            let is_key = [codes::UNKNOWN_FIELD, codes::REQUIRED].contains(&problem.code.as_str());
            problem.span = Some(place.key.filter(|_| is_key).unwrap_or(place.value));
            // Only the exact place that is wrong is fixed.
            let exact = problem.pointer.as_deref().and_then(|pointer| document.span(pointer));
            problem.fix = problem.fix.take().filter(|_| exact == Some(place));
        }
        self.problems
    }
}
