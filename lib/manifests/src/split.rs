//! Where one document ends and the next begins, by lines, as kubectl does it. So an error in one
//! document leaves the others readable, and a stream of any length is read piece by piece.

/// Whether a line, with or without its end, separates documents.
pub(crate) fn is_separator(line: &[u8]) -> bool {
    line.starts_with(b"---")
}

/// What is behind the marker on a line that separates documents, if it is more than a comment.
pub(crate) fn behind_separator(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("---")?.trim();
    (!rest.is_empty() && !rest.starts_with('#')).then_some(rest)
}

/// The pieces of a text with their offsets, each with at most one document of YAML: a new one
/// begins with each separator.
pub(crate) fn pieces(text: &str) -> Vec<(usize, &str)> {
    let mut starts = vec![0];
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if offset > 0 && is_separator(line.as_bytes()) {
            starts.push(offset);
        }
        offset += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts
        .iter()
        .zip(ends)
        .filter_map(|(start, end)| Some((*start, text.get(*start..end)?)))
        .collect()
}

/// The documents of a piece that is a stream of JSON objects, with their offsets; the last may be
/// broken. None where the piece does not begin with an object in JSON: YAML has braces too.
pub(crate) fn json_stream(piece: &str) -> Option<Vec<(usize, &str)>> {
    if !piece.trim_start().starts_with('{') {
        return None;
    }
    let mut found = Vec::new();
    let mut start = 0;
    while let Some(rest) = piece.get(start..).filter(|rest| !rest.trim().is_empty()) {
        let mut values =
            serde_json::Deserializer::from_str(rest).into_iter::<serde::de::IgnoredAny>();
        let whole = matches!(values.next(), Some(Ok(_)));
        let end = if whole { start + values.byte_offset() } else { piece.len() };
        found.push((start, piece.get(start..end)?));
        if !whole && found.len() == 1 {
            return None;
        }
        start = end;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::{behind_separator, json_stream, pieces};

    #[test]
    fn each_separator_begins_a_piece() {
        let starts = |text| pieces(text).into_iter().map(|(start, _)| start).collect::<Vec<_>>();
        assert_eq!(starts("a: 1\n---\nb: 2\n--- # c\nd: 3"), [0, 5, 14]);
        assert_eq!(starts("---\na: |\n  ---\n"), [0]);
        assert_eq!(starts(""), [0]);
    }

    #[test]
    fn only_comments_may_stand_behind_a_separator() {
        assert_eq!(behind_separator("--- # text\r\n"), None);
        assert_eq!(behind_separator("--- {a: 1}"), Some("{a: 1}"));
        assert_eq!(behind_separator("---a"), Some("a"));
    }

    #[test]
    fn objects_of_json_follow_each_other_without_a_separator() {
        let texts = |piece| {
            let found = json_stream(piece)?;
            Some(found.into_iter().map(|(_, text)| text.trim()).collect::<Vec<_>>())
        };
        assert_eq!(texts("{\"a\":1}{\"b\":2}\n{\"c\":3}\n").map(|all| all.len()), Some(3));
        assert_eq!(texts("{\"a\":1} {\"b\":"), Some(vec!["{\"a\":1}", "{\"b\":"]));
        assert_eq!(texts("{a: 1}"), None);
        assert_eq!(texts("a: {}"), None);
    }
}
