//! BIND's format: statements of words, strings and blocks, each with `;` at its end. A statement
//! of a block becomes a key, the first word, with the other words outside of further blocks as its
//! value; the block's own words are the section: `key "rndc-key" { secret "x"; };` has the key
//! `secret` in the section `key rndc-key`.

use super::{Setting, Stopped};

pub(super) fn settings(text: &str) -> Result<Vec<Setting>, Stopped> {
    let mut settings = Vec::new();
    let mut tokens = tokens(text)?.into_iter();
    block(&mut tokens, "", &mut settings)?;
    Ok(settings)
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Word(String),
    Open,
    Close,
    End,
}

struct Token {
    line: usize,
    kind: Kind,
}

/// Statements until the block's end, or the file's. Those of a block's blocks are read too.
fn block(
    tokens: &mut std::vec::IntoIter<Token>,
    section: &str,
    settings: &mut Vec<Setting>,
) -> Result<(), Stopped> {
    let mut words: Vec<String> = Vec::new();
    let (mut last, mut has_block) = (1, false);
    while let Some(Token { line, kind }) = tokens.next() {
        last = line;
        match kind {
            Kind::Word(word) => words.push(word),
            Kind::Open if words.is_empty() => return Err(Stopped::at(line, "a block of nothing")),
            Kind::Open => {
                has_block = true;
                block(tokens, &words.join(" "), settings)?;
            }
            Kind::End => {
                match words.split_first() {
                    Some((key, values)) if !section.is_empty() => {
                        settings.push(Setting::new(section, key, &values.join(" ")));
                    }
                    None => return Err(Stopped::at(line, "a statement without words")),
                    Some(_) if !has_block => {
                        return Err(Stopped::at(line, "a statement outside of any block"));
                    }
                    Some(_) => {}
                }
                words.clear();
                has_block = false;
            }
            Kind::Close if words.is_empty() && !section.is_empty() => return Ok(()),
            Kind::Close => return Err(Stopped::at(line, "a } without ; or { before it")),
        }
    }
    if section.is_empty() && words.is_empty() {
        return Ok(());
    }
    Err(Stopped::at(last, "the file ends inside a statement"))
}

fn tokens(text: &str) -> Result<Vec<Token>, Stopped> {
    let (mut found, mut line) = (Vec::new(), 1);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let kind = match c {
            '\n' => {
                line += 1;
                continue;
            }
            c if c.is_whitespace() => continue,
            '#' => {
                while rest.next_if(|c| *c != '\n').is_some() {}
                continue;
            }
            '/' if rest.peek() == Some(&'/') => {
                while rest.next_if(|c| *c != '\n').is_some() {}
                continue;
            }
            '/' if rest.next_if_eq(&'*').is_some() => {
                line += comment(&mut rest).ok_or(Stopped::at(line, "a comment has no end"))?;
                continue;
            }
            '{' => Kind::Open,
            '}' => Kind::Close,
            ';' => Kind::End,
            '"' => {
                let mut word = String::new();
                while let Some(c) = rest.next_if(|c| *c != '"' && *c != '\n') {
                    word.push(c);
                }
                rest.next_if_eq(&'"').ok_or(Stopped::at(line, "a string has no end"))?;
                Kind::Word(word)
            }
            c => {
                let mut word = String::from(c);
                while let Some(c) = rest.next_if(|c| !c.is_whitespace() && !"{};\"".contains(*c)) {
                    word.push(c);
                }
                Kind::Word(word)
            }
        };
        found.push(Token { line, kind });
    }
    Ok(found)
}

/// Goes behind a comment's end, and counts its lines.
fn comment(rest: &mut impl Iterator<Item = char>) -> Option<usize> {
    let (mut lines, mut before) = (0, ' ');
    loop {
        match (before, rest.next()?) {
            ('*', '/') => return Some(lines),
            (_, c) => {
                lines += usize::from(c == '\n');
                before = c;
            }
        }
    }
}
