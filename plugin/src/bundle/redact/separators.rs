//! What is between a name and its value.

use super::quotes::near;

/// How a value is tied to its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Equals,
    Colon,
    /// `<password>X</password>`
    Tag,
    /// `--password X`, `password X`
    Blank,
}

/// A separator: what it is, and where the value begins (in the text that was asked about).
#[derive(Clone, Copy, Debug)]
pub(super) struct Separator {
    pub(super) kind: Kind,
    pub(super) length: usize,
    /// There was a quote behind the name.
    pub(super) is_quoted: bool,
}

/// What comes behind a name, if it is `=`, `:`, `=>`, `" : "`, ` -> ` and their like.
pub(super) fn behind_name(text: &str) -> Option<Separator> {
    // A name has not many quotes behind it.
    let start = near(text, 64);
    let operator = start.trim_start_matches(['"', '\'', '\\', ']', ' ', '\t', '`', '*']);
    let before = start.get(..start.len() - operator.len())?;
    let is_quoted = before.contains(['"', '\'']);
    // `x->y` is a field of a program; in the text of a URL `=` is written by its number.
    let arrow = operator.starts_with("-> ") && before.ends_with(' ');
    let by_number = before.is_empty() && operator.starts_with("%3");
    if arrow || by_number && operator.get(2..3).is_some_and(|digit| "DdAa".contains(digit)) {
        let length = before.len() + 3;
        return Some(Separator { kind: Kind::Equals, length, is_quoted });
    }
    let signs = operator.len() - operator.trim_start_matches(['=', ':', '>', '?', '+']).len();
    let kind = match operator.get(..signs)? {
        "=" | "=>" | "==" | ":=" | "?=" | "+=" => Kind::Equals,
        ":" => Kind::Colon,
        ">" if before.is_empty() || before == "\"" => Kind::Tag,
        _ => return None,
    };
    let value = operator.get(signs..)?;
    if kind == Kind::Colon && value.starts_with("//") {
        return None;
    }
    let blanks = value.len() - value.trim_start_matches([' ', '\t']).len();
    Some(Separator { kind, length: before.len() + signs + blanks, is_quoted })
}

/// Behind a flag also a blank, the next element of a list in a text (`["--password", "X"]`), or its next line.
pub(super) fn behind_flag(text: &str) -> Option<Separator> {
    if let Some(separator) = behind_name(text) {
        return Some(separator);
    }
    let start = near(text, 256);
    let value = start.trim_start_matches(['"', '\'', '\\', ',', ' ', '\t', '\r', '\n']);
    let between = start.get(..start.len() - value.len())?;
    let is_list = between.contains(',') && between.contains(['"', '\'']);
    let is_line = between.contains('\n');
    let (value, counts) = match value.strip_prefix("- ") {
        Some(item) if is_line => (item.trim_start(), true),
        _ => (value, is_list || (!is_line && between.starts_with([' ', '\t']))),
    };
    let value = value.trim_start_matches('\\');
    // The quote belongs to the value.
    let length = start.len() - value.len();
    let quotes = start.get(..length)?;
    let length = match quotes.rfind(['"', '\'']) {
        Some(quote) if quote + 1 == length && quote > 0 => {
            quotes.get(..quote)?.trim_end_matches('\\').len()
        }
        _ => length,
    };
    let is_empty =
        value.is_empty() || value.starts_with("--") || value.starts_with(['|', '&', ';']);
    (counts && !is_empty).then_some(Separator { kind: Kind::Blank, length, is_quoted: false })
}

/// How the API server and the operators say that something is wrong with a field, and not what its value is.
const SAID: [&str; 10] = [
    "Required value",
    "Forbidden",
    "Not found",
    "Too long",
    "Too many",
    "Internal error",
    "must ",
    "Invalid value",
    "Unsupported value",
    "Duplicate value",
];

/// What is said about a value, if it is not the value: how long that is, and whether the value comes behind it.
pub(super) fn said(text: &str) -> Option<(usize, bool)> {
    let said = SAID.iter().find(|said| text.starts_with(**said))?;
    let is_before = said.ends_with(" value") && !said.starts_with("Required");
    let behind = text.get(said.len()..).filter(|rest| is_before && rest.starts_with(": "));
    Some((said.len() + behind.map_or(0, |_| 2), behind.is_some()))
}
