//! Names of images, as container runtimes read them: `redis:6` is `docker.io/library/redis:6`.

use std::fmt;
use std::str::FromStr;

use super::digest::Digest;

/// Where images without a registry's name come from.
const HUB: &str = "docker.io";

/// An image in a registry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    /// The registry, with its port.
    pub(crate) host: String,
    /// The name below it, with folders.
    pub(crate) repository: String,
    /// One of both is there.
    pub(crate) tag: Option<String>,
    pub(crate) digest: Option<Digest>,
}

/// A registry, with the folders below which images are put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    host: String,
    folders: String,
}

impl Reference {
    /// What a registry is asked for: the digest where there is one.
    pub(crate) fn wanted(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, tag) => tag.clone().unwrap_or_else(|| "latest".to_owned()),
        }
    }

    /// What a container runtime looks for: of an image that is pinned by its digest the tag says nothing to it
    /// (distribution/reference `ParseDockerRef`, which CRI uses).
    pub(crate) fn of_runtime(&self) -> Self {
        let tag = self.tag.clone().filter(|_| self.digest.is_none());
        Self { tag, ..self.clone() }
    }

    /// The same image in another place: the last part of its name, as `registry` of the values has it.
    pub(crate) fn at(&self, place: &Place) -> Self {
        let name = self.repository.rsplit('/').next().unwrap_or_default();
        let folders = &place.folders;
        let repository =
            if folders.is_empty() { name.to_owned() } else { format!("{folders}/{name}") };
        Self { host: place.host.clone(), repository, ..self.clone() }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.host, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(formatter, ":{tag}")?;
        }
        self.digest.iter().try_for_each(|digest| write!(formatter, "@{digest}"))
    }
}

/// Of a repository, as registries and container runtimes have it (distribution/reference, `RepositoryNameTotalLengthMax`).
const LONGEST: usize = 255;

impl FromStr for Reference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let shown: String = text.chars().take(LONGEST).collect();
        let wrong = |why: &str| format!("{shown:?} is no image: {why}");
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest.parse().map_err(wrong)?)),
            None => (text, None),
        };
        let (host, path) = match name.split_once('/') {
            Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => {
                (first, rest)
            }
            _ => (HUB, name),
        };
        let (repository, tag) = match path.rsplit_once(':') {
            Some((repository, tag)) => (repository, Some(tag.to_owned())),
            None => (path, None),
        };
        let repository = match repository.contains('/') || host != HUB {
            true => repository.to_owned(),
            false => format!("library/{repository}"),
        };
        if !is_host(host) {
            return Err(wrong("before the first slash must be a registry, without https://"));
        }
        if repository.len() > LONGEST {
            return Err(wrong("registries take names of up to 255 characters"));
        }
        if !repository.split('/').all(is_part) {
            return Err(wrong("its name must be of lower case letters, digits, and . _ - between"));
        }
        if !tag.as_deref().is_none_or(is_tag) {
            return Err(wrong("the tag must be of letters, digits and . _ -"));
        }
        let tag = tag.or_else(|| digest.is_none().then(|| "latest".to_owned()));
        Ok(Self { host: host.to_owned(), repository, tag, digest })
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim_end_matches('/');
        let (host, folders) = text.split_once('/').unwrap_or((text, ""));
        if is_host(host) && (folders.is_empty() || folders.split('/').all(is_part)) {
            return Ok(Self { host: host.to_owned(), folders: folders.to_owned() });
        }
        Err("must be a registry with folders, as in registry.example.com:5000/opensdn, without https://".to_owned())
    }
}

/// A name or an address, and maybe a port.
pub(crate) fn is_host(text: &str) -> bool {
    let is_of_host = |letter: char| letter.is_ascii_alphanumeric() || ".:-[]".contains(letter);
    let uri = format!("https://{text}/");
    !text.is_empty()
        && text.chars().all(is_of_host)
        && uri
            .parse::<::http::Uri>()
            .is_ok_and(|uri| uri.authority().is_some_and(|one| one.as_str() == text))
}

fn is_part(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [text.bytes().next(), text.bytes().last()];
    ends.iter().all(|end| end.is_some_and(is_letter))
        && text.bytes().all(|byte| is_letter(byte) || b"._-".contains(&byte))
        && text.split(|letter: char| letter.is_ascii_alphanumeric()).all(is_separator)
}

/// Between letters, as registries and runtimes have it (distribution/reference, `separator`); nothing is one, too.
fn is_separator(text: &str) -> bool {
    ["", ".", "_", "__"].contains(&text) || text.bytes().all(|byte| byte == b'-')
}

fn is_tag(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=128).contains(&text.len()) && text.bytes().all(is_letter) && !text.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_runtimes_read_them() {
        let digest = Digest::of(b"");
        let pinned = format!("r.example:5000/a/b:1@{digest}");
        for (given, expected) in [
            ("redis", "docker.io/library/redis:latest"),
            ("opensdn/redis:6", "docker.io/opensdn/redis:6"),
            ("localhost/a", "localhost/a:latest"),
            ("127.0.0.1:5000/a/b__c-d.e:R24.1", "127.0.0.1:5000/a/b__c-d.e:R24.1"),
            ("[::1]:5000/a:1", "[::1]:5000/a:1"),
            (pinned.as_str(), pinned.as_str()),
        ] {
            assert_eq!(
                given.parse::<Reference>().map(|one| one.to_string()),
                Ok(expected.to_owned())
            );
        }
        for bad in [
            "",
            "https://r.example/a",
            "r.example/A:1",
            "r.example/../a",
            "r.example/a:",
            "r.example/a@sha256:1",
            "user@r.example/a",
            "r.example/a?b:1",
            "r.example/a b",
        ] {
            assert!(bad.parse::<Reference>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_that_no_registry_takes_is_refused_and_not_shown_whole() {
        for name in ["a._b", "a.-b", "a___b", "a..b", "a-_b"] {
            assert!(name.parse::<Reference>().is_err(), "{name}");
        }
        for name in ["a.b", "a_b", "a__b", "a---b", "a-b.c"] {
            assert!(name.parse::<Reference>().is_ok(), "{name}");
        }
        assert!("a/".repeat(127).parse::<Reference>().is_err(), "a part is empty");
        let of = |length: usize| {
            format!("registry.example.com/{}:1", "a".repeat(length)).parse::<Reference>()
        };
        assert!(of(255).is_ok());
        let said = of(5_000).unwrap_err();
        assert!(said.contains("255 characters") && said.len() < 400, "{said}");
    }

    #[test]
    fn an_image_keeps_its_name_and_loses_its_folders_in_another_place() {
        let image: Reference = "quay.io/a/b/opensdn-webhook:1".parse().unwrap();
        let place: Place = "registry.local:5000/x/y".parse().unwrap();
        assert_eq!(image.at(&place).to_string(), "registry.local:5000/x/y/opensdn-webhook:1");
        let place: Place = "registry/".parse().unwrap();
        assert_eq!(image.at(&place).to_string(), "registry/opensdn-webhook:1");
        for bad in ["", "https://a", "a/B", "a/../b", "u:p@a"] {
            assert!(bad.parse::<Place>().is_err(), "{bad}");
        }
    }
}
