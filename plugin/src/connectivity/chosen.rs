//! Which tests are meant: by their names, and by patterns of these (pure).

use regex::Regex;

use super::Scenario;

/// A pattern of names of tests: `pod-to-.*`, or with `!` in front those that it does not match.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    leaves_out: bool,
}

/// Reads one.
///
/// # Errors
/// It is no regular expression.
pub(crate) fn pattern(text: &str) -> Result<Pattern, String> {
    let (leaves_out, text) = match text.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let regex = Regex::new(text).map_err(|_| format!("{text:?} is no regular expression"))?;
    Ok(Pattern { regex, leaves_out })
}

/// Those that are named or match, and are not left out; all, where nothing is named.
pub(crate) fn chosen(
    all: &[Scenario],
    only: &[Scenario],
    skip: &[Scenario],
    patterns: &[Pattern],
) -> Vec<Scenario> {
    let of = |leaves_out: bool, one: &Scenario| {
        let mut these = patterns.iter().filter(|pattern| pattern.leaves_out == leaves_out);
        these.any(|pattern| pattern.regex.is_match(one.id()))
    };
    let names_any = !only.is_empty() || patterns.iter().any(|pattern| !pattern.leaves_out);
    let is_meant = |one: &Scenario| !names_any || only.contains(one) || of(false, one);
    let is_left_out = |one: &Scenario| skip.contains(one) || of(true, one);
    all.iter().copied().filter(|one| is_meant(one) && !is_left_out(one)).collect()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    fn ids(only: &[Scenario], skip: &[Scenario], patterns: &[&str]) -> Vec<&'static str> {
        let patterns: Vec<Pattern> = patterns.iter().map(|text| pattern(text).unwrap()).collect();
        let chosen = chosen(Scenario::value_variants(), only, skip, &patterns);
        chosen.into_iter().map(Scenario::id).collect()
    }

    #[test]
    fn a_pattern_adds_to_what_is_named_and_one_with_an_exclamation_mark_takes_away() {
        assert_eq!(ids(&[], &[], &[]).len(), Scenario::value_variants().len());
        assert_eq!(ids(&[], &[], &["^pod-to-pod"]), ["pod-to-pod-on-node", "pod-to-pod"]);
        assert_eq!(ids(&[], &[], &["^pod-to-pod", "!node$"]), ["pod-to-pod"]);
        assert_eq!(ids(&[Scenario::Dns], &[], &["^outside$"]), ["dns", "outside"]);
        assert_eq!(ids(&[], &[Scenario::Dns], &["dns|outside"]), ["outside"]);
        let all_but = ids(&[], &[], &["!pod"]);
        assert_eq!(all_but, ["node-to-api", "dns", "outside"]);
        assert!(pattern("(").unwrap_err().contains("no regular expression"));
    }
}
