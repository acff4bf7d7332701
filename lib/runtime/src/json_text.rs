//! What a JSON text is made of, without a tree of it: a tree may be fifty times as large.

/// The bytes that are in none of its strings.
pub(crate) fn outside_strings(text: &[u8]) -> impl Iterator<Item = u8> {
    let (mut in_string, mut is_escaped) = (false, false);
    text.iter().copied().filter(move |byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ => return !in_string,
        }
        false
    })
}
