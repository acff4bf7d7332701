//! The functions that rules of CEL may call, set up once a thread: kube-cel's, with `matches` made
//! so that a pattern is compiled once and not for every object. Also the values that texts of
//! certain formats are in CEL.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::KubeCelExt;
use kube_cel::cel::extractors::This;
use kube_cel::cel::parser::{Expression, Parser};
use kube_cel::cel::{Context, ExecutionError, Value as Cel};
use regex::Regex;

/// Patterns that are kept. The schemas have far fewer; a rule that makes patterns of what objects
/// hold must not fill the memory.
const PATTERNS: usize = 256;

/// Formats of texts that are something else in CEL, and how they become it.
const CONVERSIONS: [(&str, &str); 4] = [
    ("date-time", "timestamp(text)"),
    ("date", "timestamp(text + 'T00:00:00Z')"),
    ("duration", "duration(text)"),
    ("byte", "base64.decode(text)"),
];

thread_local! {
    // A context is not for several threads.
    static LIBRARY: Library = Library::new();
    static COMPILED: RefCell<HashMap<String, Regex>> = RefCell::default();
}

/// What every rule is evaluated with.
pub(crate) struct Library {
    /// All functions.
    pub(crate) functions: Context<'static>,
    /// `optional.none()`, if the library has it.
    pub(crate) none: Option<Cel>,
    conversions: Vec<(&'static str, Expression)>,
}

impl Library {
    fn new() -> Self {
        let mut functions = Context::default().with_all();
        functions.add_function("matches", matches);
        let parse = |text: &str| Parser::default().parse(text).ok();
        let none = parse("optional.none()").and_then(|none| Cel::resolve(&none, &functions).ok());
        let conversions = CONVERSIONS
            .into_iter()
            .filter_map(|(format, text)| Some((format, parse(text)?)))
            .collect();
        Self { functions, none, conversions }
    }

    /// Hands over this thread's library.
    pub(crate) fn with<T>(ask: impl FnOnce(&Self) -> T) -> T {
        LIBRARY.with(ask)
    }

    /// What a text of the format is in CEL; nothing where it stays a text.
    pub(crate) fn convert(&self, format: &str, text: &str) -> Option<Cel> {
        let (_, expression) = self.conversions.iter().find(|(name, _)| *name == format)?;
        let mut scope = self.functions.new_inner_scope();
        scope.add_variable_from_value("text", Cel::String(Arc::new(text.to_owned())));
        Cel::resolve(expression, &scope).ok()
    }
}

/// `<string>.matches(<string>) -> <bool>`
fn matches(
    This(this): This<Arc<String>>,
    pattern: Arc<String>,
) -> std::result::Result<bool, ExecutionError> {
    COMPILED.with_borrow_mut(|compiled| {
        if let Some(regex) = compiled.get(pattern.as_str()) {
            return Ok(regex.is_match(&this));
        }
        let regex = Regex::new(&pattern).map_err(|error| {
            ExecutionError::function_error("matches", format!("invalid regex: {error}"))
        })?;
        let matched = regex.is_match(&this);
        if compiled.len() >= PATTERNS {
            compiled.clear();
        }
        compiled.insert(pattern.to_string(), regex);
        Ok(matched)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluated(text: &str) -> Result<Cel, ExecutionError> {
        let expression = Parser::default().parse(text).unwrap();
        Library::with(|library| Cel::resolve(&expression, &library.functions))
    }

    #[test]
    fn a_pattern_is_compiled_once_and_matches_as_before() {
        for _ in 0..2 {
            assert_eq!(evaluated("'abc'.matches('^a.c$')"), Ok(Cel::Bool(true)));
            assert_eq!(evaluated("'abd'.matches('^a.c$')"), Ok(Cel::Bool(false)));
        }
        assert!(COMPILED.with_borrow(|compiled| compiled.contains_key("^a.c$")));
        assert!(evaluated("'a'.matches('(')").is_err());
    }

    #[test]
    fn patterns_that_objects_make_do_not_fill_the_memory() {
        for number in 0..PATTERNS * 2 {
            assert!(evaluated(&format!("'a'.matches('a{{{number}}}')")).is_ok());
        }
        assert!(COMPILED.with_borrow(|compiled| compiled.len() <= PATTERNS));
    }

    #[test]
    fn texts_of_formats_become_what_they_are() {
        let converted = |format: &str, text: &str| {
            Library::with(|library| library.convert(format, text).is_some())
        };
        assert!(converted("date", "2026-01-01") && converted("duration", "1h"));
        assert!(!converted("date", "yesterday") && !converted("email", "a@b"));
    }
}
