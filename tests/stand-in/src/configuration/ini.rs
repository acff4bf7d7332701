//! INI as OpenSDN's daemons read it: keys are case-sensitive, `=` is the only separator, comments
//! are on lines of their own. A line that is neither section, setting nor comment is refused.

use configparser::ini::Ini;

use super::{Setting, Stopped};

pub(super) fn settings(text: &str) -> Result<Vec<Setting>, Stopped> {
    let mut parser = Ini::new_cs();
    parser.set_default_section("");
    let mut rules = parser.defaults();
    rules.delimiters = vec!['='];
    rules.enable_inline_comments = false;
    parser.load_defaults(rules);
    let sections = parser.read(text.to_owned()).map_err(|said| stopped(&said))?;
    let mut settings = Vec::new();
    for (section, keys) in sections {
        for (key, value) in keys {
            let Some(value) = value else {
                return Err(Stopped::at(line_of(text, &key), "neither a section nor key=value"));
            };
            settings.push(Setting { section: section.clone(), key, value });
        }
    }
    Ok(settings)
}

/// The parser's messages begin with `line N`.
fn stopped(said: &str) -> Stopped {
    let number = said.trim_start_matches("line ").split(':').next().unwrap_or_default();
    let what = said.rsplit(": ").next().unwrap_or(said);
    Stopped::at(number.parse().unwrap_or(1), what.to_lowercase())
}

fn line_of(text: &str, wanted: &str) -> usize {
    text.lines().position(|line| line.trim() == wanted).map_or(1, |at| at + 1)
}
