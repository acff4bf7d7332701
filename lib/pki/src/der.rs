//! Whether something is written in DER as it has to be (X.690, 10 and 11): OpenSSL reads nothing of a bundle of which one certificate
//! is not, and the parser that we have reads it all the same.

/// How deep certificates are.
const DEEPEST: usize = 24;

/// Whether it is one value in DER: lengths and numbers have no byte more than they need, truth is 0xFF, and nothing follows.
#[must_use]
pub fn is_canonical(der: &[u8]) -> bool {
    value(der, 0).is_some_and(<[u8]>::is_empty)
}

/// What follows the first value; none, if that is not as it has to be.
fn value(der: &[u8], depth: usize) -> Option<&[u8]> {
    let (&tag, rest) = der.split_first()?;
    // None of those in certificates has a number above 30.
    if depth > DEEPEST || tag & 0x1F == 0x1F {
        return None;
    }
    let (length, rest) = read_length(rest)?;
    let (mut content, rest) = rest.split_at_checked(length)?;
    let is_good = match tag {
        // A context's tag may have any type in it.
        _ if tag & 0x20 != 0 => {
            while !content.is_empty() {
                content = value(content, depth + 1)?;
            }
            true
        }
        0x01 => matches!(content, [0 | 0xFF]),
        0x02 | 0x0A => is_shortest(content),
        0x03 => content.first().is_some_and(|unused| *unused < 8),
        0x05 => content.is_empty(),
        0x06 => content.last().is_some_and(|last| last & 0x80 == 0),
        _ => true,
    };
    is_good.then_some(rest)
}

fn read_length(der: &[u8]) -> Option<(usize, &[u8])> {
    let (&first, rest) = der.split_first()?;
    if first < 0x80 {
        return Some((usize::from(first), rest));
    }
    let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7F))?;
    let is_shortest = match bytes {
        [] | [0, ..] => false,
        [one] => *one >= 0x80,
        [_, _] | [_, _, _] => true,
        _ => false,
    };
    let length = bytes.iter().fold(0, |length, byte| (length << 8) | usize::from(*byte));
    is_shortest.then_some((length, rest))
}

/// Whether a number has no byte more than it needs.
fn is_shortest(number: &[u8]) -> bool {
    match number {
        [] => false,
        [0, next, ..] => next & 0x80 != 0,
        [0xFF, next, ..] => next & 0x80 == 0,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject as _;
    use time::OffsetDateTime;

    use super::*;
    use crate::authority::Authority;
    use crate::profile::CaProfile;

    #[test]
    fn certificates_that_we_make_are_canonical_and_what_follows_one_is_not() {
        let ca = Authority::create(&CaProfile::new("test CA"), OffsetDateTime::now_utc()).unwrap();
        let der = CertificateDer::from_pem_slice(ca.certificate().as_bytes()).unwrap();
        assert!(is_canonical(&der));
        assert!(!is_canonical(&[&der, &[0][..]].concat()));
        assert!(!is_canonical(&der[..der.len() - 1]) && !is_canonical(&[]));
    }

    #[test]
    fn numbers_lengths_and_truth_have_one_form() {
        for good in [&[2, 1, 0][..], &[2, 2, 0, 0x80], &[1, 1, 0xFF], &[0x30, 3, 2, 1, 5], &[5, 0]]
        {
            assert!(is_canonical(good), "{good:?}");
        }
        let long = [&[4, 0x81, 0x80][..], &[7; 0x80]].concat();
        assert!(is_canonical(&long));
        let bad: [&[u8]; 10] = [
            &[2, 2, 0, 5],
            &[2, 2, 0xFF, 0x80],
            &[2, 0],
            &[1, 1, 1],
            &[4, 0x81, 1, 7],
            &[4, 0x80, 0, 0],
            &[0x30, 4, 2, 2, 0, 5],
            &[0x30, 3, 2, 2, 5],
            &[6, 1, 0x80],
            &[3, 1, 8],
        ];
        for bad in bad {
            assert!(!is_canonical(bad), "{bad:?}");
        }
        let deep = [0x30, 0x80].repeat(40);
        assert!(!is_canonical(&deep));
    }
}
