//! Certificates of a signer of Kubernetes (`certificates.k8s.io`), for which a Manager's `certSigner` asks: cert-manager's for example.
//! Each certificate has a CertificateSigningRequest (`request`), and until the signer has answered its key is kept apart (`keys`). The
//! CAs of the signer are the certificates in the Secret in which a user gives a CA. What is due is asked for when all pods trust these,
//! so that what was issued can be put into place at once; what is missing, or ends soon, in any case.

mod keys;
mod request;

use std::collections::BTreeMap;
use std::time::Duration;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_pki::{GivenError, Usage, bundle, leaf};
use opensdn_runtime::error_chain;
use time::OffsetDateTime;

use super::fetch::Fetched;
use super::{Context, Error, authorities};
use crate::build::Valid;
use crate::build::certificates::{self, Asked, Issued, Stored, Subject, Wanted};
use crate::cache::Cache;
use crate::names;
use crate::services::is_asked;
use request::{Answer, Requests, Sought, approve, labelled, made_at};

/// How long until a request that is not answered yet is looked at again: the longer, the older it is.
const SHORTEST_PAUSE: Duration = Duration::from_secs(5);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long until it is tried again what the API server has refused or not answered.
const AFTER_AN_ERROR: Duration = Duration::from_secs(15);

/// How long until the keys are made that were too many for one pass.
const UNTIL_THE_OTHER_KEYS: Duration = Duration::from_secs(1);

/// A certificate is renewed at two thirds of its life, and each time daemons start again.
const SHORTEST_LIFE: time::Duration = time::Duration::days(1);

/// The signer that a Manager has certificates issued by, if it is not the CA of the namespace.
fn of_manager(manager: &DynamicObject) -> Option<&str> {
    let signer = manager.data.pointer("/spec/commonConfiguration/certSigner")?.as_str()?;
    Some(signer).filter(|signer| is_asked(signer))
}

/// Whether a Manager of the namespace asks a signer.
pub(super) fn is_used_in(cache: &Cache, namespace: &str) -> bool {
    let managers = cache.list(crate::kind::Kind::Manager, namespace);
    managers.iter().any(|manager| of_manager(manager).is_some())
}

/// A signer that is asked.
pub(super) struct Signer {
    name: String,
    /// The certificates of its CAs, each in PEM.
    authorities: Vec<String>,
    /// Why it is not asked.
    refused: Option<GivenError>,
    /// Which pod does not trust its CAs yet.
    distrusts: Option<String>,
}

impl Signer {
    /// That of the component's Manager.
    pub(super) fn of(cache: &Cache, fetched: &Fetched, now: OffsetDateTime) -> Option<Self> {
        let name = of_manager(fetched.manager.as_deref()?)?.to_owned();
        let namespace = fetched.namespace();
        let (authorities, refused) = match authorities::of_signers(cache, &namespace, now) {
            Ok(authorities) => (authorities, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let distrusts = authorities::do_not_trust(cache, &namespace, &authorities, now);
        let distrusts = distrusts.filter(|_| refused.is_none());
        Some(Self { name, authorities, refused, distrusts })
    }

    /// With what it has issued by now.
    pub(super) fn with<'a>(
        &'a self,
        issued: &'a BTreeMap<Asked, Issued>,
    ) -> certificates::Signer<'a> {
        let is_trusted = self.refused.is_none() && self.distrusts.is_none();
        certificates::Signer { authorities: &self.authorities, issued, is_trusted }
    }

    /// When the first of its CAs ends.
    pub(super) fn end(&self) -> Option<OffsetDateTime> {
        self.authorities.iter().filter_map(|ca| bundle::end(ca)).min()
    }

    /// What is to be done when certificates end with the CA that has issued them.
    pub(super) fn ends(&self) -> String {
        let end = self.end().map(|end| format!(" on {}", end.date())).unwrap_or_default();
        format!(
            "a CA of signer {} ends{end}, and with it what it has issued: append the certificates of its successor to Secret {}",
            self.name,
            names::GIVEN_CA_SECRET
        )
    }

    /// Why it is not asked for what is due.
    pub(super) fn is_not_asked(&self) -> Option<String> {
        let distrusts = || {
            let who = self.distrusts.as_ref()?;
            Some(format!("signer {} is asked when all pods trust its CAs: {who}", self.name))
        };
        self.refused().or_else(distrusts)
    }

    /// Why it cannot be asked.
    fn refused(&self) -> Option<String> {
        let error = self.refused.as_ref()?;
        Some(format!(
            "the certificates of the CA of signer {} cannot be used: {error}; put them into Secret {}, in PEM, in the key {}",
            self.name,
            names::GIVEN_CA_SECRET,
            names::GIVEN_CA_CERTIFICATE
        ))
    }

    /// What the signer has issued of what it is asked for, and of the first that it has not, why not: of what is wrong, if anything
    /// is. Asks for what it was not asked for before. A call that fails is a reason, too: what runs is kept as it is all the same.
    ///
    /// # Errors
    /// The Secret with the keys cannot be written, or a key cannot be made.
    pub(super) async fn answers(
        &self,
        ctx: &Context,
        fetched: &Fetched,
        valid: &Valid,
        wanted: &Wanted<'_>,
        (stored, asked): (&[Stored], &[Asked]),
    ) -> Result<Answers, Error> {
        let mut answers = Answers { poll: LONGEST_PAUSE, ..Answers::default() };
        if let Some(why) = self.refused() {
            answers.why = Some(why);
            return Ok(answers);
        }
        let keys = keys::keys(ctx, fetched, valid, (stored, wanted.subjects), asked).await?;
        if keys.len() < asked.len() {
            answers.poll = UNTIL_THE_OTHER_KEYS;
        }
        let uid = fetched.object.uid().unwrap_or_default();
        let there = match labelled(&ctx.client, &uid).await {
            Ok(there) => there,
            Err(error) => {
                answers.why = Some(error_chain(&error));
                answers.poll = AFTER_AN_ERROR;
                return Ok(answers);
            }
        };
        let prefix = format!("{}-{}-{}", names::OPERATOR, fetched.namespace(), fetched.name());
        let mut asking = Asking { there, may_approve: true, failed: None };
        let mut wrong = None;
        for (one, key) in keys {
            let Some(profile) = one.profile(wanted) else { continue };
            let request = opensdn_pki::request(&profile, &key).map_err(Error::Certificates)?;
            let is_server = profile.usage == Usage::ServerAndClient;
            let sought =
                Sought { signer: &self.name, uid: &uid, prefix: &prefix, is_server, request };
            let (why, is_wrong) = match asking.answer(ctx, &sought, &mut answers.poll).await {
                Answer::Issued(certificate) => {
                    let wants = Wants { names: &profile.names, usage: profile.usage };
                    match self.judge(&wants, &certificate, &key, OffsetDateTime::now_utc()) {
                        Ok(issued) => {
                            answers.issued.insert(one, issued);
                            continue;
                        }
                        Err(why) => {
                            (format!("CertificateSigningRequest {}: {why}", sought.name()), true)
                        }
                    }
                }
                Answer::Wrong(why) => (why, true),
                Answer::Waits(why) => (why, false),
                Answer::New => {
                    (format!("CertificateSigningRequest {} is new", sought.name()), false)
                }
            };
            let first = if is_wrong { &mut wrong } else { &mut answers.why };
            first.get_or_insert(why);
        }
        answers.why = wrong.or(answers.why);
        Ok(answers)
    }

    /// What was issued, if it is what was asked for.
    fn judge(
        &self,
        wants: &Wants<'_>,
        certificate: &str,
        key: &str,
        now: OffsetDateTime,
    ) -> Result<Issued, String> {
        // As OpenSSL, Java and Erlang read it: without what else may be between.
        let chain = bundle::certificates(certificate).concat();
        let by = |ca: &String| {
            let times = leaf::times(&chain, key, ca, wants.names)?;
            match leaf::is_signed_by(&chain, ca)? {
                true => Ok(times),
                false => Err(leaf::LeafError::Issuer),
            }
        };
        let all: Vec<_> = self.authorities.iter().map(by).collect();
        let times = all.iter().find_map(|times| times.as_ref().ok().copied());
        let Some(times) = times else {
            // Another CA of several is no reason.
            let errors = all.iter().filter_map(|times| times.as_ref().err());
            let why = errors.max_by_key(|error| !matches!(error, leaf::LeafError::Issuer));
            return Err(format!(
                "what {} has issued cannot be used: {}; the CA that signs has to be in Secret {}, and the names those that were asked for",
                self.name,
                why.map(|why| error_chain(why)).unwrap_or_default(),
                names::GIVEN_CA_SECRET
            ));
        };
        if !leaf::serves_as(&chain, wants.usage).is_ok_and(|is| is) {
            let whom = match wants.usage {
                Usage::Client => "clients",
                _ => "servers and clients both",
            };
            return Err(format!(
                "what {} has issued is not for {whom}, as it was asked: take another signer",
                self.name
            ));
        }
        if !leaf::is_ca(&chain).is_ok_and(|is| !is) {
            return Err(format!("what {} has issued is a CA, and was not asked for", self.name));
        }
        if times.until <= now {
            return Err(
                "what was issued is over already: delete the request, to ask again".to_owned()
            );
        }
        if times.until - times.from < SHORTEST_LIFE {
            return Err(format!(
                "what {} has issued lasts until {} only, and daemons would start again all the time: have it issue for a day at least, \
                 better for a year, as it was asked, and delete the request",
                self.name, times.until
            ));
        }
        Ok(Issued { certificate: chain, key: key.to_owned(), times })
    }
}

/// What a certificate is to be.
struct Wants<'a> {
    names: &'a [String],
    usage: Usage,
}

/// The requests of one pass.
struct Asking {
    there: Requests,
    /// Whether the operator was not refused to approve one yet.
    may_approve: bool,
    /// Why a call has failed: the others would, too.
    failed: Option<String>,
}

impl Asking {
    /// What became of a request. It is made if it is not there, and approved where the operator may.
    async fn answer(&mut self, ctx: &Context, sought: &Sought<'_>, poll: &mut Duration) -> Answer {
        let name = sought.name();
        if let (Some(why), false) = (&self.failed, self.there.contains_key(&name)) {
            return Answer::Waits(why.clone());
        }
        let there = match self.there.remove(&name) {
            Some(there) => there,
            None => match sought.make(&ctx.writer).await {
                Ok(made) => made,
                Err(error) => return self.fail(error_chain(&error)),
            },
        };
        *poll = pause(made_at(&there), OffsetDateTime::now_utc()).min(*poll);
        match sought.answer(&there) {
            Answer::New => {}
            answer => return answer,
        }
        if let Some(why) = &self.failed {
            return Answer::Waits(why.clone());
        }
        if self.may_approve {
            match approve(&ctx.writer, &there).await {
                Ok(()) => {
                    return Answer::Waits(format!(
                        "CertificateSigningRequest {name} waits for signer {}",
                        sought.signer
                    ));
                }
                Err(error) if error.status().is_some_and(|status| status.code == 403) => {
                    self.may_approve = false;
                }
                Err(error) => return self.fail(error_chain(&error)),
            }
        }
        Answer::Waits(format!(
            "CertificateSigningRequest {name} waits to be approved: `kubectl certificate approve {name}`"
        ))
    }

    fn fail(&mut self, why: String) -> Answer {
        self.failed = Some(why.clone());
        Answer::Waits(why)
    }
}

/// Until a request is looked at again that was made then.
fn pause(made: Option<OffsetDateTime>, now: OffsetDateTime) -> Duration {
    let age = made.and_then(|made| Duration::try_from(now - made).ok()).unwrap_or_default();
    (age / 10).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

/// What a signer has said.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// What it has issued.
    pub(super) issued: BTreeMap<Asked, Issued>,
    /// Why it has not issued one of the others.
    pub(super) why: Option<String>,
    /// How long until it is asked again.
    pub(super) poll: Duration,
}

/// Forgets the keys of what is in place, or not wanted any more.
///
/// # Errors
/// The call fails.
pub(super) async fn forget(
    ctx: &Context,
    fetched: &Fetched,
    valid: &Valid,
    stored: &[Stored],
    subjects: &[Subject],
) -> Result<(), Error> {
    keys::forget(ctx, fetched, valid, stored, subjects).await
}

#[cfg(test)]
mod tests {
    use opensdn_pki::{Authority, CaProfile, LeafProfile};

    use super::*;

    fn now() -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
    }

    fn ca() -> Authority {
        Authority::create(&CaProfile::new("test CA"), now()).unwrap()
    }

    fn signer(authorities: &[&Authority]) -> Signer {
        Signer {
            name: "example.com/opensdn".to_owned(),
            authorities: authorities.iter().map(|ca| ca.certificate().to_owned()).collect(),
            refused: None,
            distrusts: None,
        }
    }

    #[test]
    fn only_what_was_asked_for_is_taken_and_only_from_who_was_asked() {
        let names = ["host-1", "192.0.2.1"].map(str::to_owned);
        let wants = Wants { names: &names, usage: Usage::ServerAndClient };
        let (ca, twin, other) = (ca(), ca(), ca());
        let both = signer(&[&other, &ca]);
        let profile = LeafProfile {
            usage: Usage::ServerAndClient,
            ..LeafProfile::server("192.0.2.1", names.to_vec())
        };
        let judge = |signer: &Signer, ca: &Authority, profile: &LeafProfile, at| {
            let leaf = ca.issue(profile, now()).unwrap();
            signer.judge(&wants, &format!("# ours\r\n{}", leaf.certificate()), leaf.key(), at)
        };
        let issued = judge(&both, &ca, &profile, now()).unwrap();
        assert!(issued.certificate.starts_with("-----BEGIN"), "nothing else is in it");
        let refused = |signer: &Signer, ca: &Authority, profile: &LeafProfile, at| {
            judge(signer, ca, profile, at).unwrap_err()
        };
        // It has the name of the CA that was given, and another key.
        assert!(refused(&both, &twin, &profile, now()).contains("issued by another CA"));
        let fewer = LeafProfile { names: names[..1].to_vec(), ..profile.clone() };
        assert!(refused(&both, &ca, &fewer, now()).contains("it has other names"));
        let one_side = LeafProfile { usage: Usage::Server, ..profile.clone() };
        assert!(refused(&both, &ca, &one_side, now()).contains("servers and clients both"));
        let late = now() + profile.lifetime + time::Duration::hours(1);
        assert!(refused(&both, &ca, &profile, late).contains("over already"));
        let short = LeafProfile { lifetime: time::Duration::hours(2), ..profile.clone() };
        assert!(refused(&both, &ca, &short, now()).contains("for a day at least"));
        let leaf = ca.issue(&profile, now()).unwrap();
        let (certificate, key) = (leaf.certificate(), ca.issue(&profile, now()).unwrap());
        assert!(both.judge(&wants, certificate, key.key(), now()).is_err(), "of another key");
        assert!(both.judge(&wants, "none", key.key(), now()).is_err());
    }

    #[test]
    fn an_older_request_is_looked_at_less_often() {
        let of = |seconds: i64| pause(Some(now() - time::Duration::seconds(seconds)), now());
        assert_eq!(of(0), SHORTEST_PAUSE);
        assert_eq!(of(-60), SHORTEST_PAUSE, "the clock of the API server is ahead");
        assert_eq!(of(200), Duration::from_secs(20));
        assert_eq!(of(3600), LONGEST_PAUSE);
        assert_eq!(pause(None, now()), SHORTEST_PAUSE);
    }
}
