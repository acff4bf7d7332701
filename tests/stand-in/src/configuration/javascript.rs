//! The web UI's configuration: a JavaScript file of only assignments of literals to members
//! of one object, which is all that is read here; everything else is refused, a string that ends
//! too early first of all. `config.cnfg.server_ip = ['a', 'b'];` is the key `server_ip` of the
//! section `config.cnfg` with the value `a b`.

use std::iter::Peekable;
use std::str::Chars;

use super::{Setting, Stopped};

pub(super) fn settings(text: &str) -> Result<Vec<Setting>, Stopped> {
    let mut reader = Reader { rest: text.chars().peekable(), line: 1 };
    let (mut settings, mut object) = (Vec::new(), None);
    loop {
        reader.skip_space()?;
        if reader.rest.peek().is_none() {
            return Ok(settings);
        }
        let mut path = reader.path()?;
        if path == ["var"] {
            path = reader.path()?;
            object = path.first().cloned();
        }
        reader.expect('=')?;
        let is_export = path == ["module", "exports"];
        let value = if is_export { reader.path()?.join(".") } else { reader.value()? };
        reader.skip_space()?;
        // A line's end ends a statement too; the next one then begins with a name.
        reader.rest.next_if_eq(&';');
        let known = is_export || path.first() == object.as_ref();
        if !known {
            return Err(reader.stopped("an assignment to something that is not declared"));
        }
        if let Some((key, section)) = path.split_last()
            && !is_export
            && !section.is_empty()
        {
            settings.push(Setting::new(&section.join("."), key, &value));
        }
    }
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
}

impl Reader<'_> {
    fn stopped(&self, what: impl Into<String>) -> Stopped {
        Stopped::at(self.line, what)
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    /// Spaces and comments.
    fn skip_space(&mut self) -> Result<(), Stopped> {
        loop {
            while self.rest.peek().is_some_and(|c| c.is_whitespace()) {
                self.next();
            }
            if self.rest.next_if_eq(&'/').is_none() {
                return Ok(());
            }
            match self.next() {
                Some('/') => while self.rest.next_if(|c| *c != '\n').is_some() {},
                Some('*') => self.skip_comment()?,
                _ => return Err(self.stopped("a / that begins no comment")),
            }
        }
    }

    fn skip_comment(&mut self) -> Result<(), Stopped> {
        let mut before = ' ';
        while let Some(c) = self.next() {
            if (before, c) == ('*', '/') {
                return Ok(());
            }
            before = c;
        }
        Err(self.stopped("a comment has no end"))
    }

    fn expect(&mut self, wanted: char) -> Result<(), Stopped> {
        self.skip_space()?;
        match self.rest.next_if_eq(&wanted) {
            Some(_) => Ok(()),
            None => Err(self.stopped(format!("no {wanted} where one has to be"))),
        }
    }

    fn name(&mut self) -> Result<String, Stopped> {
        self.skip_space()?;
        let mut name = String::new();
        let part = |c: &char| c.is_alphanumeric() || *c == '_' || *c == '$';
        while let Some(c) = self.rest.next_if(part) {
            name.push(c);
        }
        if name.is_empty() { Err(self.stopped("no name where one has to be")) } else { Ok(name) }
    }

    /// `config.cnfg.server_ip`, `config.staticAuth[0].password`.
    fn path(&mut self) -> Result<Vec<String>, Stopped> {
        let mut path = vec![self.name()?];
        loop {
            if self.rest.next_if_eq(&'.').is_some() {
                path.push(self.name()?);
            } else if self.rest.next_if_eq(&'[').is_some() {
                path.push(self.name()?);
                self.expect(']')?;
            } else {
                return Ok(path);
            }
        }
    }

    /// A literal as text, a list with spaces between.
    fn value(&mut self) -> Result<String, Stopped> {
        self.skip_space()?;
        match self.rest.peek() {
            Some('\'' | '"') => self.string(),
            Some('[') => self.list(),
            Some('{') => {
                self.expect('{')?;
                self.expect('}')?;
                Ok(String::new())
            }
            _ => {
                let word = self.name()?;
                let is_literal = word.parse::<u64>().is_ok()
                    || ["true", "false", "null", "undefined"].contains(&word.as_str());
                if is_literal {
                    Ok(word)
                } else {
                    Err(self.stopped("something else than a literal"))
                }
            }
        }
    }

    fn string(&mut self) -> Result<String, Stopped> {
        let (quote, mut text) = (self.next(), String::new());
        loop {
            match self.rest.next_if(|c| *c != '\n') {
                None => return Err(self.stopped("a string has no end")),
                Some('\\') => text.extend(self.rest.next_if(|c| *c != '\n')),
                c if c == quote => return Ok(text),
                Some(c) => text.push(c),
            }
        }
    }

    fn list(&mut self) -> Result<String, Stopped> {
        self.expect('[')?;
        let mut values = Vec::new();
        loop {
            self.skip_space()?;
            if self.rest.next_if_eq(&']').is_some() {
                return Ok(values.join(" "));
            }
            if !values.is_empty() {
                self.expect(',')?;
            }
            values.push(self.value()?);
        }
    }
}
