//! The members of a JSON object as they are written in a text that the scan has read already, and
//! read strictly. Nothing is kept of values, so what a sender makes of them costs no memory. What
//! is no JSON gives wrong members here, never a panic.

/// The members of an object, in the order of the text: the key without its quotes and with its
/// escapes, and the text of the value. None of what is no object.
#[derive(Clone, Debug)]
pub(super) struct Members<'t> {
    rest: &'t str,
}

impl<'t> Members<'t> {
    pub(super) fn of(object: &'t str) -> Self {
        Self { rest: object.trim_start_matches(BLANKS).strip_prefix('{').unwrap_or_default() }
    }
}

impl<'t> Iterator for Members<'t> {
    type Item = (&'t str, &'t str);

    fn next(&mut self) -> Option<Self::Item> {
        let member = self.rest.trim_start_matches(BLANKS).trim_start_matches(',');
        let member = member.trim_start_matches(BLANKS);
        let end = string(member.as_bytes())?;
        let key = member.get(1..end - 1)?;
        let colon = member.get(end..)?.trim_start_matches(BLANKS);
        let rest = colon.strip_prefix(':')?.trim_start_matches(BLANKS);
        let end = value(rest.as_bytes())?;
        self.rest = rest.get(end..)?;
        Some((key, rest.get(..end)?))
    }
}

/// The value of the member of that name, which has no escapes.
pub(super) fn member<'t>(object: &'t str, name: &str) -> Option<&'t str> {
    Members::of(object).find(|(key, _)| *key == name).map(|(_, value)| value)
}

const BLANKS: [char; 4] = [' ', '\n', '\r', '\t'];

/// How long the string at the beginning is, with its quotes.
fn string(bytes: &[u8]) -> Option<usize> {
    if bytes.first() != Some(&b'"') {
        return None;
    }
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// How long the value at the beginning is.
fn value(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0_usize, 0_usize);
    loop {
        match bytes.get(at)? {
            b'"' => at += string(bytes.get(at..)?)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            // The end of a number or a word: what follows it is the enclosing object's.
            b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t' if depth == 0 => return Some(at),
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Members;

    fn members(text: &str) -> Vec<(&str, &str)> {
        Members::of(text).collect()
    }

    #[test]
    fn values_are_found_as_they_are_written() {
        let text = r#" { "a" : 1 , "b":"x,}\"y", "c":{"d":["}",{}], "e": {}} ,"f":[ [ ] ],
            "g":-1.5e3,"h":null , "\u0069":true} "#;
        let expected = [
            ("a", "1"),
            ("b", r#""x,}\"y""#),
            ("c", r#"{"d":["}",{}], "e": {}}"#),
            ("f", "[ [ ] ]"),
            ("g", "-1.5e3"),
            ("h", "null"),
            (r"\u0069", "true"),
        ];
        assert_eq!(members(text), expected);
    }

    #[test]
    fn what_is_no_object_has_none() {
        for text in ["", "null", "[{\"a\":1}]", "{}", " { } ", "\"{\"", "{\"a\"", "{\"a\":[", "7"] {
            assert_eq!(members(text), [], "{text}");
        }
    }
}
