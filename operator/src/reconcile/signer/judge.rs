//! Whether what a signer has issued is what it was asked for (no I/O): signed by the key of a CA that it was said to have, with exactly
//! the names, for both sides of a connection, valid, and such as OpenSSL, Java and Erlang read it.

use opensdn_pki::{Usage, bundle, given, leaf};
use opensdn_runtime::error_chain;
use time::{Duration, OffsetDateTime};

use crate::build::certificates::Issued;
use crate::names;

/// OpenSSL takes no handshake of more than 100 KB, and no CA that is in use has more above it.
const LONGEST_CHAIN: usize = 10;

/// A certificate is renewed at two thirds of its life, and each time daemons start again.
const SHORTEST_LIFE: Duration = Duration::days(1);

/// What a certificate is to be, and by whom.
pub(super) struct Wants<'a> {
    /// The name of the signer.
    pub(super) signer: &'a str,
    /// The certificates of its CAs, each in PEM.
    pub(super) authorities: &'a [String],
    /// All names that it has, and no others.
    pub(super) names: &'a [String],
    /// On which sides of a connection it is shown.
    pub(super) usage: Usage,
}

impl Wants<'_> {
    /// What was issued (PEM), with its key, if it is good; else why not.
    pub(super) fn judge(
        &self,
        certificate: &str,
        key: &str,
        now: OffsetDateTime,
    ) -> Result<Issued, String> {
        let chain = self.chain(certificate)?;
        let times = self.times(&chain, key)?;
        self.is_for_what_it_should(&chain)?;
        self.lasts(times, now)?;
        Ok(Issued { certificate: chain, key: key.to_owned(), times })
    }

    /// Its certificates without what else may be between.
    fn chain(&self, certificate: &str) -> Result<String, String> {
        let all = bundle::certificates(certificate);
        if all.len() > LONGEST_CHAIN || certificate.len() > given::MOST_BYTES {
            return Err(format!(
                "what {} has issued has {} certificates, more than {LONGEST_CHAIN} or 64 KiB",
                self.signer,
                all.len()
            ));
        }
        if !all.iter().all(|one| bundle::is_readable(one)) {
            return Err(format!(
                "what {} has issued is not written in DER as OpenSSL reads it",
                self.signer
            ));
        }
        Ok(all.concat())
    }

    fn times(&self, chain: &str, key: &str) -> Result<leaf::Times, String> {
        let by = |ca: &String| {
            let times = leaf::times(chain, key, ca, self.names)?;
            match leaf::is_signed_by(chain, ca)? {
                true => Ok(times),
                false => Err(leaf::LeafError::Issuer),
            }
        };
        let all: Vec<_> = self.authorities.iter().map(by).collect();
        let times = all.iter().find_map(|times| times.as_ref().ok().copied());
        times.ok_or_else(|| {
            // Another CA of several is no reason.
            let errors = all.iter().filter_map(|times| times.as_ref().err());
            let why = errors.max_by_key(|error| !matches!(error, leaf::LeafError::Issuer));
            format!(
                "what {} has issued cannot be used: {}; the CA that signs has to be in Secret {}, and the names those that were asked for",
                self.signer,
                why.map(|why| error_chain(why)).unwrap_or_default(),
                names::GIVEN_CA_SECRET
            )
        })
    }

    fn is_for_what_it_should(&self, chain: &str) -> Result<(), String> {
        if !leaf::serves_as(chain, self.usage).is_ok_and(|is| is) {
            let whom = match self.usage {
                Usage::Client => "clients",
                _ => "servers and clients both",
            };
            return Err(format!(
                "what {} has issued is not for {whom}, as it was asked: take another signer",
                self.signer
            ));
        }
        if !leaf::is_of_end_entity(chain).is_ok_and(|is| is) {
            return Err(format!(
                "what {} has issued is one of a CA, or its key may not sign (digitalSignature)",
                self.signer
            ));
        }
        Ok(())
    }

    fn lasts(&self, times: leaf::Times, now: OffsetDateTime) -> Result<(), String> {
        if times.from > now {
            return Err(format!("what was issued is not valid before {}", times.from));
        }
        if times.until <= now {
            return Err("what was issued is over already".to_owned());
        }
        // It would be asked for again at once.
        if times.due <= now {
            return Err(format!(
                "what was issued is past two thirds of its life, which ends on {}",
                times.until
            ));
        }
        if times.until - now < SHORTEST_LIFE {
            return Err(format!(
                "what {} has issued lasts until {} only, and daemons would start again all the time: have it issue for a day at least, \
                 better for a year, as it was asked",
                self.signer, times.until
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use opensdn_pki::{Authority, CaProfile, LeafProfile};
    use time::Duration as Time;

    use super::*;

    fn now() -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
    }

    fn ca() -> Authority {
        Authority::create(&CaProfile::new("test CA"), now()).unwrap()
    }

    #[test]
    fn only_what_was_asked_for_is_taken_and_only_from_who_was_asked() {
        let names = ["host-1", "192.0.2.1"].map(str::to_owned);
        let (ca, twin, other) = (ca(), ca(), ca());
        let authorities = [&other, &ca].map(|ca| ca.certificate().to_owned());
        let both = Wants {
            signer: "example.com/opensdn",
            authorities: &authorities,
            names: &names,
            usage: Usage::ServerAndClient,
        };
        let profile = LeafProfile {
            usage: Usage::ServerAndClient,
            ..LeafProfile::server("192.0.2.1", names.to_vec())
        };
        let judge = |wants: &Wants<'_>, ca: &Authority, profile: &LeafProfile, at| {
            let leaf = ca.issue(profile, now()).unwrap();
            wants.judge(&format!("# ours\r\n{}", leaf.certificate()), leaf.key(), at)
        };
        let issued = judge(&both, &ca, &profile, now()).unwrap();
        assert!(issued.certificate.starts_with("-----BEGIN"), "nothing else is in it");
        let refused = |wants: &Wants<'_>, ca: &Authority, profile: &LeafProfile, at| {
            judge(wants, ca, profile, at).unwrap_err()
        };
        // It has the name of the CA that was given, and another key.
        assert!(refused(&both, &twin, &profile, now()).contains("issued by another CA"));
        let fewer = LeafProfile { names: names[..1].to_vec(), ..profile.clone() };
        assert!(refused(&both, &ca, &fewer, now()).contains("it has other names"));
        let one_side = LeafProfile { usage: Usage::Server, ..profile.clone() };
        assert!(refused(&both, &ca, &one_side, now()).contains("servers and clients both"));
        let late = now() + profile.lifetime + Time::hours(1);
        assert!(refused(&both, &ca, &profile, late).contains("over already"));
        let short = LeafProfile { lifetime: Time::hours(2), ..profile.clone() };
        assert!(refused(&both, &ca, &short, now()).contains("for a day at least"));
        // Past two thirds it would be asked for again at once, and before its begin it is refused by others.
        let due = now() + profile.lifetime * 3 / 4;
        assert!(refused(&both, &ca, &profile, due).contains("two thirds"));
        assert!(refused(&both, &ca, &profile, now() - Time::hours(2)).contains("not valid before"));
        let leaf = ca.issue(&profile, now()).unwrap();
        let long = leaf.certificate().repeat(LONGEST_CHAIN + 1);
        assert!(both.judge(&long, leaf.key(), now()).unwrap_err().contains("more than 10"));
        let (certificate, key) = (leaf.certificate(), ca.issue(&profile, now()).unwrap());
        assert!(both.judge(certificate, key.key(), now()).is_err(), "of another key");
        assert!(both.judge("none", key.key(), now()).is_err());
    }
}
