//! A bundle of certificates in PEM, one by one (no I/O).

use pem::{EncodeConfig, LineEnding, Pem};
use time::OffsetDateTime;

use crate::authority::read_certificate;
use crate::der;

pub(crate) const CERTIFICATE: &str = "CERTIFICATE";

/// Its certificates, each in PEM and written alike, whatever their lines were like. What is no certificate is left out.
#[must_use]
pub fn certificates(bundle: &str) -> Vec<String> {
    let all = pem::parse_many(bundle).unwrap_or_default();
    let all = all.into_iter().filter(|one| one.tag() == CERTIFICATE);
    all.map(|one| in_pem(CERTIFICATE, one.contents())).collect()
}

/// PEM as all of ours is written.
pub(crate) fn in_pem(tag: &str, der: &[u8]) -> String {
    let lines = EncodeConfig::new().set_line_ending(LineEnding::LF);
    pem::encode_config(&Pem::new(tag, der), lines)
}

/// Whether a certificate (PEM) is one that OpenSSL reads.
#[must_use]
pub fn is_readable(certificate: &str) -> bool {
    end(certificate).is_some()
        && pem::parse(certificate).is_ok_and(|one| der::is_canonical(one.contents()))
}

/// When the first certificate in it ends; none, if it cannot be read.
#[must_use]
pub fn end(pem: &str) -> Option<OffsetDateTime> {
    read_certificate(pem).ok().map(|(end, _)| end)
}

/// Whether the bundle has all certificates of the other.
#[must_use]
pub fn has_all(bundle: &str, other: &str) -> bool {
    let there = certificates(bundle);
    certificates(other).iter().all(|one| there.contains(one))
}

/// The bundle, and behind it those of the others that it has not.
#[must_use]
pub fn with<'a>(bundle: &str, others: impl IntoIterator<Item = &'a String>) -> String {
    let mut all = bundle.to_owned();
    let mut there = certificates(bundle);
    for other in others {
        if !there.contains(other) {
            there.push(other.clone());
            if !all.is_empty() && !all.ends_with('\n') {
                all.push('\n');
            }
            all.push_str(other);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::Authority;
    use crate::profile::CaProfile;

    fn ca() -> String {
        let now = OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap();
        Authority::create(&CaProfile::new("test CA"), now).unwrap().certificate().to_owned()
    }

    #[test]
    fn a_bundle_is_compared_by_its_certificates_and_not_by_its_lines() {
        let (one, other) = (ca(), ca());
        let windows = format!("# mine\r\n{}", one.replace('\n', "\r\n"));
        assert!(has_all(&windows, &one) && has_all(&one, &windows));
        assert!(!has_all(&one, &format!("{one}{other}")));
        assert!(has_all(&one, ""), "nothing is in everything");
        let both = with(&windows, &certificates(&format!("{one}\n{other}")));
        assert_eq!(certificates(&both), [certificates(&one), certificates(&other)].concat());
        assert!(both.starts_with(&windows), "what was there is left as it is");
        assert_eq!(certificates("no PEM"), Vec::<String>::new());
    }
}
