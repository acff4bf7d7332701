//! Quotes and brackets: where what they open is closed.

/// How far a quote or a bracket may go; what is open until there is taken out until there.
const FAR: usize = 16 * 1024;

/// A quote that opens a value: its letter, and how often it is escaped, as in JSON within JSON.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quote {
    letter: char,
    escapes: usize,
    /// `"""` of TOML and Python.
    pub(super) is_triple: bool,
}

/// The quote at the start of the text, and how long it is.
pub(super) fn opening(text: &str) -> Option<(Quote, usize)> {
    let escapes = text.len() - text.trim_start_matches('\\').len();
    let behind = text.get(escapes..)?;
    let letter = behind.chars().next().filter(|letter| ['"', '\'', '`'].contains(letter))?;
    let triple: String = [letter; 3].iter().collect();
    let is_triple = escapes == 0 && behind.starts_with(&triple);
    Some((Quote { letter, escapes, is_triple }, escapes + if is_triple { 3 } else { 1 }))
}

/// The length of what is in the quotes; `text` begins behind the one that opens.
pub(super) fn inside(text: &str, quote: Quote) -> usize {
    if quote.is_triple {
        let triple: String = [quote.letter; 3].iter().collect();
        return text.find(&triple).unwrap_or(text.len());
    }
    let far = near(text, FAR);
    let mut run = 0;
    for (at, letter) in far.char_indices() {
        if letter == quote.letter && closes(run, quote) {
            return at - run.min(quote.escapes);
        }
        run = if letter == '\\' { run + 1 } else { 0 };
    }
    // It is not closed: until the end of the line.
    let line = text.get(..text.find('\n').unwrap_or(text.len())).unwrap_or_default();
    line.strip_suffix('\r').unwrap_or(line).len()
}

/// With an escape before the opening quote there is one before the closing quote, and three are a quote in the text.
fn closes(run: usize, quote: Quote) -> bool {
    let round = 2 * (quote.escapes + 1);
    run < quote.escapes || run % round == quote.escapes
}

/// The length of `[…]`, `{…}` or `(…)` with its brackets, whatever is quoted in it.
pub(super) fn bracketed(text: &str) -> usize {
    let far = near(text, FAR);
    let mut depth = 0_usize;
    let mut quoted = None;
    let mut run = 0;
    for (at, letter) in far.char_indices() {
        match (quoted, letter) {
            (Some(open), letter) if letter == open && run % 2 == 0 => quoted = None,
            (None, '"') => quoted = Some('"'),
            (None, '[' | '{' | '(') => depth += 1,
            (None, ']' | '}' | ')') => {
                depth -= 1;
                if depth == 0 {
                    return at + letter.len_utf8();
                }
            }
            _ => {}
        }
        // In JSON within JSON every quote has a backslash: it opens and closes all the same.
        run =
            if letter == '\\' && quoted.is_some() && !far.starts_with("{\\") { run + 1 } else { 0 };
    }
    far.len()
}

/// The beginning of the text, at most so long.
pub(super) fn near(text: &str, most: usize) -> &str {
    let most = most.min(text.len());
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    text.get(..end).unwrap_or_default()
}
