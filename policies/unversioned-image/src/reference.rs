//! The name of an image, taken apart.

/// A registry with the path to the image, the image's tag, its digest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reference<'a> {
    path: &'a str,
    tag: Option<&'a str>,
    digest: Option<&'a str>,
}

impl<'a> Reference<'a> {
    /// Takes the name apart; `None` for what a container runtime does not accept.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        // A colon before the last slash is of the registry's port.
        let (path, tag) = match rest.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
            _ => (rest, None),
        };
        let accepted = path.split('/').enumerate().all(|(number, part)| is_part(number, part))
            && tag.is_none_or(is_tag)
            && digest.is_none_or(is_digest);
        accepted.then_some(Self { path, tag, digest })
    }

    /// Whether two pulls give the same image.
    pub(crate) fn is_versioned(&self) -> bool {
        self.digest.is_some() || self.tag.is_some_and(|tag| tag != "latest")
    }

    /// Registry and folder of the image.
    pub(crate) fn registry(&self) -> Option<&'a str> {
        Some(self.path.rsplit_once('/').map_or("docker.io", |(registry, _)| registry))
    }

    /// The tag; none for an image that a digest names.
    pub(crate) fn tag(&self) -> Option<&'a str> {
        if self.digest.is_some() { None } else { Some(self.tag.unwrap_or("latest")) }
    }
}

/// A part between slashes. The first may be a host with a port, which may have upper-case letters.
fn is_part(number: usize, part: &str) -> bool {
    let separator = |byte: u8| matches!(byte, b'.' | b'_' | b'-');
    let of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || separator(byte);
    let of_host = |byte: u8| of_name(byte) || byte.is_ascii_uppercase() || byte == b':';
    let ends = [part.bytes().next(), part.bytes().next_back()];
    ends.into_iter().all(|end| end.is_some_and(|end| end.is_ascii_alphanumeric()))
        && part.bytes().all(|byte| of_name(byte) || (number == 0 && of_host(byte)))
}

fn is_tag(tag: &str) -> bool {
    let first = tag.bytes().next();
    first.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && tag.len() <= 128
        && tag
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

fn is_digest(digest: &str) -> bool {
    // Else `user:password@registry/image:TAG` would be one, with the password as tag.
    let is_algorithm = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+')
    };
    digest.split_once(':').is_some_and(|(algorithm, sum)| {
        is_algorithm(algorithm)
            && sum.len() >= 32
            && sum.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::Reference;

    #[test]
    fn a_registrys_port_is_no_tag() {
        let reference = Reference::parse("r:5000/a/b:R24.1").unwrap();
        assert_eq!((reference.registry(), reference.tag()), (Some("r:5000/a"), Some("R24.1")));
        let reference = Reference::parse("r:5000/a/b").unwrap();
        assert!(!reference.is_versioned());
        assert_eq!(reference.tag(), Some("latest"));
    }

    #[test]
    fn a_digest_is_a_version() {
        let image = format!("a@sha256:{}", "0".repeat(64));
        let reference = Reference::parse(&image).unwrap();
        assert!(reference.is_versioned());
        assert_eq!((reference.registry(), reference.tag()), (Some("docker.io"), None));
        assert!(!Reference::parse("a:latest").unwrap().is_versioned());
    }

    #[test]
    fn what_is_no_name_of_an_image_is_reported() {
        for text in
            ["", " ", "a b", "a:", ":R1", "a//b", "a/b:", "A/B/C", "a@sha256:", "a:b c", "/a"]
        {
            assert_eq!(Reference::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_login_before_the_registry_is_part_of_no_name() {
        let image = format!("robot:hunter2@registry/a:{}", "0".repeat(32));
        assert_eq!(Reference::parse(&image), None);
    }
}
