//! Names in the paths of calls. kube puts them there as they are, but an object of RBAC, for one, may be
//! called `system:x y`: what is no URL would never be sent. Deliberately not here: which names there
//! can be.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A name as one segment of a path, with everything escaped that has a meaning in a URL.
#[must_use]
pub fn segment(name: &str) -> Cow<'_, str> {
    if name.bytes().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let mut escaped = String::with_capacity(name.len() * 3);
    for byte in name.bytes() {
        if is_plain(byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    Cow::Owned(escaped)
}

/// What a path may have between two slashes, unescaped.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::segment;

    #[test]
    fn every_name_becomes_one_segment_of_a_url() {
        for plain in ["a-b.c", "system:node", "A@b"] {
            assert_eq!(segment(plain), plain);
        }
        for (name, escaped) in
            [("x y", "x%20y"), ("a/b?c#d", "a%2Fb%3Fc%23d"), ("ü%", "%C3%BC%25"), ("\n", "%0A")]
        {
            assert_eq!(segment(name), escaped);
            assert!(format!("/apis/g/v1/things/{escaped}").parse::<http::Uri>().is_ok());
        }
    }
}
