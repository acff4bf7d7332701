//! Which releases of OpenSDN images are of (pure). What a daemon is called, where it lies and which keys it reads
//! changed with R25.1; a table of it is in `docs/src/operator.md`.

use opensdn_pki::{KeyKind, RsaBits};
use opensdn_upgrade::images;

/// A group of releases that are configured alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// Up to R21.4: daemons in Python 2, which reach the config database by Thrift alone.
    UpToR21,
    /// R24.1: images `contrail-…` as before; Python 3, for which Thrift's library is not there.
    UpToR24,
    /// From R25.1: images `opensdn-…`.
    #[default]
    FromR25,
}

impl Release {
    /// The keys of certificates. Up to R24.1 the images have OpenSSL 1.0.2, with which daemons in C++ set no curve, and
    /// their Node.js knows none: with ECDSA they serve clients of the same age only, with RSA all that still exchange keys
    /// by it. `bits` is the Manager's `certKeyLength`.
    #[must_use]
    pub fn key(self, bits: Option<i64>) -> KeyKind {
        match self {
            Self::UpToR21 | Self::UpToR24 => KeyKind::Rsa(RsaBits::at_least(bits.unwrap_or(0))),
            Self::FromR25 => KeyKind::default(),
        }
    }
}

/// What is known of the release of images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The release, which is the newest where it is not known.
    pub release: Release,
    /// Why it is not known.
    pub doubt: Option<String>,
}

/// The annotation of a component or Manager that says it, where tags do not: `R24.1`.
pub const ANNOTATION: &str = "opensdn.io/release";

impl Known {
    /// By the annotation, else by the first image whose tag or name tells it.
    #[must_use]
    pub fn of<'a>(annotation: Option<&str>, images: impl IntoIterator<Item = &'a str>) -> Self {
        if let Some(said) = annotation {
            return match Release::of_tag(said) {
                Some(release) => Self { release, doubt: None },
                None => {
                    let why = format!(
                        "the annotation {ANNOTATION} has {said:?}, which is no release such as R24.1"
                    );
                    Self { release: Release::default(), doubt: Some(why) }
                }
            };
        }
        let mut first = None;
        for image in images {
            if let Some(release) = Release::of_image(image) {
                return Self { release, doubt: None };
            }
            first.get_or_insert(image);
        }
        let doubt = first.map(|image| {
            format!(
                "neither tag nor name of the image {image} says of which release it is; it is configured as R25.1. Say it \
                 by the annotation {ANNOTATION}, as R24.1"
            )
        });
        Self { release: Release::default(), doubt }
    }
}

impl Release {
    /// By the tag, else by the name.
    #[must_use]
    pub fn of_image(image: &str) -> Option<Self> {
        let (_, name, tag) = images::parts(image);
        Self::of_tag(tag.unwrap_or_default()).or_else(|| {
            let begins = |prefix| name.starts_with(prefix);
            if begins("opensdn-") {
                Some(Self::FromR25)
            } else if begins("contrail-") {
                Some(Self::UpToR24)
            } else {
                None
            }
        })
    }

    /// Of a tag as OpenSDN's: `R24.1`, `R21.4.1`, `2011`, `21.4.0-77`, `R25.1-rc1`.
    fn of_tag(tag: &str) -> Option<Self> {
        let tag = tag.trim_start_matches(['R', 'r', 'v']);
        let digits: String = tag.chars().take_while(char::is_ascii_digit).collect();
        let year: u32 = match (digits.len(), tag.get(digits.len()..)?.chars().next()) {
            // With a month: 2011.
            (4, _) => digits.get(..2)?.parse().ok()?,
            (2, Some('.')) => digits.parse().ok()?,
            _ => return None,
        };
        match year {
            19..=21 => Some(Self::UpToR21),
            22..=24 => Some(Self::UpToR24),
            25..=99 => Some(Self::FromR25),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_tells_the_release_and_without_one_the_name_does() {
        for (image, expected) in [
            (
                "registry.example.com:5000/tungstenfabric/contrail-nodemgr:R24.1",
                Some(Release::UpToR24),
            ),
            ("contrail-nodemgr:R21.4.1-centos", Some(Release::UpToR21)),
            ("contrail-nodemgr:2011.L5.1", Some(Release::UpToR21)),
            ("mirror/contrail-nodemgr:R25.1", Some(Release::FromR25)),
            ("opensdn-nodemgr:26.2.0", Some(Release::FromR25)),
            ("opensdn-nodemgr:latest", Some(Release::FromR25)),
            ("opensdn-nodemgr@sha256:0123", Some(Release::FromR25)),
            ("contrail-nodemgr", Some(Release::UpToR24)),
            ("mirror/nodemgr:latest", None),
            ("mirror/nodemgr:3.11", None),
            ("mirror/nodemgr:7.0.15", None),
            ("localhost:5000/nodemgr", None),
        ] {
            assert_eq!(Release::of_image(image), expected, "{image}");
        }
    }

    #[test]
    fn what_nothing_says_is_the_newest_and_the_doubt_is_told() {
        let known = Known::of(None, ["a:1", "b@sha256:2"]);
        assert_eq!(known.release, Release::FromR25);
        let doubt = known.doubt.unwrap();
        assert!(doubt.contains("image a:1") && doubt.contains("opensdn.io/release"), "{doubt}");
        let one_says = Known::of(None, ["a:1", "b:R21.4"]);
        assert_eq!(one_says, Known { release: Release::UpToR21, doubt: None });
        assert_eq!(Known::of(Some("R24.1"), ["a:1"]).release, Release::UpToR24);
        assert!(Known::of(Some("new"), ["b:R21.4"]).doubt.is_some());
    }
}
