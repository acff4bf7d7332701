//! Certificates of a signer of Kubernetes (`certificates.k8s.io`), for which a Manager's `certSigner` asks: cert-manager's for example.
//! Each certificate has a CertificateSigningRequest (`request`), and until the signer has answered its key is kept apart (`keys`). The
//! CAs of the signer are the certificates in the Secret in which a user gives a CA. What is due is asked for when all pods trust these,
//! so that what was issued can be put into place at once; what is missing, or ends soon, in any case.

mod judge;
mod keys;
mod request;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_pki::{GivenError, LeafProfile, Usage, bundle};
use opensdn_runtime::call::CallError;
use opensdn_runtime::error_chain;
use time::OffsetDateTime;
use tokio::sync::OnceCell;

use super::fetch::Fetched;
use super::{Context, Error, authorities};
use crate::build::Valid;
use crate::build::certificates::{self, Asked, Issued, Stored, Subject, Wanted};
use crate::cache::Cache;
use crate::names;
use crate::services::is_asked;
use judge::Wants;
use request::{Answer, Requests, Sought, approve, labelled, made_at, own_user};

/// How long until a request that is not answered yet is looked at again: the longer, the older it is.
const SHORTEST_PAUSE: Duration = Duration::from_secs(5);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long until it is tried again to approve a request.
const AFTER_A_REFUSAL: Duration = Duration::from_secs(60);

/// How long until it is tried again what the API server has refused or not answered.
const AFTER_AN_ERROR: Duration = Duration::from_secs(15);

/// How long until the keys are made that were too many for one pass.
const UNTIL_THE_OTHER_KEYS: Duration = Duration::from_secs(1);

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

    /// What is to be done where the first certificate to expire does so with the CA that has issued it, and not by itself.
    pub(super) fn ends(&self, first: OffsetDateTime) -> Option<String> {
        let mut ends = self.authorities.iter().filter_map(|ca| bundle::end(ca));
        let end = ends.find(|end| *end == first)?;
        Some(format!(
            "a CA of signer {} ends on {}, and with it what it has issued: append the certificates of its successor to Secret {}",
            self.name,
            end.date(),
            names::GIVEN_CA_SECRET
        ))
    }

    /// Why it is not asked for what is due.
    pub(super) fn is_not_asked(&self) -> Option<String> {
        let distrusts = || {
            let who = self.distrusts.as_ref()?;
            Some(format!("signer {} is asked when all pods trust its CAs: {who}", self.name))
        };
        self.refused().or_else(distrusts)
    }

    fn wants<'a>(&'a self, profile: &'a LeafProfile) -> Wants<'a> {
        let (signer, authorities) = (&*self.name, &*self.authorities);
        Wants { signer, authorities, names: &profile.names, usage: profile.usage }
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
    /// A request cannot be written.
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
        let keys = match keys::keys(ctx, fetched, valid, (stored, wanted.subjects), asked).await {
            Ok(keys) => keys,
            Err(error) => {
                let why = Some(error_chain(&error));
                return Ok(Answers { why, poll: AFTER_AN_ERROR, ..answers });
            }
        };
        if keys.len() < asked.len() {
            answers.poll = UNTIL_THE_OTHER_KEYS;
        }
        let uid = fetched.object.uid().unwrap_or_default();
        let mut asking = match Asking::start(ctx, &uid).await {
            Ok(asking) => asking,
            Err(why) => return Ok(Answers { why: Some(why), poll: AFTER_AN_ERROR, ..answers }),
        };
        let prefix = format!("{}-{}-{}", names::OPERATOR, fetched.namespace(), fetched.name());
        let mut taken = Vec::new();
        for (one, key) in keys {
            let Some(profile) = one.profile(wanted) else { continue };
            let request = opensdn_pki::request(&profile, &key).map_err(Error::Certificates)?;
            let is_server = profile.usage == Usage::ServerAndClient;
            let sought =
                Sought { signer: &self.name, uid: &uid, prefix: &prefix, is_server, request };
            let wants = self.wants(&profile);
            let judge = |certificate: String| {
                let issued = wants.judge(&certificate, &key, OffsetDateTime::now_utc());
                issued.map_err(|why| {
                    let name = sought.name();
                    format!("CertificateSigningRequest {name}: {why}; with `kubectl delete csr {name}` the operator asks again")
                })
            };
            let answer = asking.answer(ctx, &sought, &mut answers.poll).await;
            if matches!(answer, Answer::Taken(_)) {
                tracing::warn!(
                    name = sought.name(),
                    "another client has the name of a request; asks with another key"
                );
                taken.push(one.clone());
            }
            answers.take(one, answer, judge);
        }
        if !taken.is_empty() {
            answers.poll = SHORTEST_PAUSE;
            let subjects = (stored, wanted.subjects);
            if let Err(error) = keys::forget_taken(ctx, fetched, valid, subjects, &taken).await {
                answers.why = Some(error_chain(&error));
            }
        }
        Ok(answers)
    }
}

/// The name by which the API server knows the operator: only what this one has asked for is its own.
async fn own_name(ctx: &Context) -> Result<String, CallError> {
    static NAME: OnceCell<String> = OnceCell::const_new();
    let name = NAME.get_or_try_init(|| own_user(&ctx.client)).await?;
    Ok(name.clone())
}

/// When the operator was refused to approve a request: one try a minute, of all components.
static REFUSED: Mutex<Option<Instant>> = Mutex::new(None);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A time cannot be left half written.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The requests of one pass.
struct Asking {
    there: Requests,
    /// Who the operator is.
    own: String,
    /// Whether the operator was not refused to approve one yet.
    may_approve: bool,
    /// Why a call has failed: the others would, too.
    failed: Option<String>,
}

impl Asking {
    /// What there is by now, or why that is not known.
    async fn start(ctx: &Context, uid: &str) -> Result<Self, String> {
        let there = labelled(&ctx.client, uid).await.map_err(|error| error_chain(&error))?;
        let own = own_name(ctx).await.map_err(|error| error_chain(&error))?;
        if own.is_empty() {
            return Err("the API server does not say who the operator is".to_owned());
        }
        let may_approve = lock(&REFUSED).is_none_or(|at| at.elapsed() > AFTER_A_REFUSAL);
        Ok(Self { there, own, may_approve, failed: None })
    }

    /// What became of a request. It is made if it is not there, and approved where the operator may.
    async fn answer(&mut self, ctx: &Context, sought: &Sought<'_>, poll: &mut Duration) -> Answer {
        let name = sought.name();
        if let (Some(why), false) = (&self.failed, self.there.contains_key(&name)) {
            return Answer::Waits(why.clone());
        }
        let (there, is_new) = match self.there.remove(&name) {
            Some(there) => (there, false),
            None => match sought.read_or_make(&ctx.writer).await {
                Ok(made) => made,
                Err(error) => return self.fail(error_chain(&error)),
            },
        };
        *poll = pause(made_at(&there), OffsetDateTime::now_utc()).min(*poll);
        match sought.answer(&there, &self.own) {
            Answer::New => {}
            // What it has just asked for itself: with another key it would be the same again.
            Answer::Taken(why) if is_new => return Answer::Wrong(why),
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
                    *lock(&REFUSED) = Some(Instant::now());
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
    /// Whether a person has to put that right.
    is_wrong: bool,
    /// How long until it is asked again.
    pub(super) poll: Duration,
}

impl Answers {
    fn take(
        &mut self,
        asked: Asked,
        answer: Answer,
        judge: impl FnOnce(String) -> Result<Issued, String>,
    ) {
        let (why, is_wrong) = match answer {
            Answer::Issued(certificate) => match judge(certificate) {
                Ok(issued) => {
                    self.issued.insert(asked, issued);
                    return;
                }
                Err(why) => (why, true),
            },
            Answer::Wrong(why) => (why, true),
            Answer::Waits(why) | Answer::Taken(why) => (why, false),
            Answer::New => return,
        };
        // Of the first, and of what is wrong before what is only awaited.
        if self.why.is_none() || (is_wrong && !self.is_wrong) {
            self.why = Some(why);
            self.is_wrong = is_wrong;
        }
    }
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
    use opensdn_pki::{Authority, CaProfile};

    use super::*;

    fn now() -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
    }

    #[test]
    fn a_ca_is_said_to_end_only_where_what_is_in_place_ends_with_it() {
        let profile =
            |days| CaProfile { lifetime: time::Duration::days(days), ..CaProfile::new("CA") };
        let cas = [20, 4_000].map(|days| Authority::create(&profile(days), now()).unwrap());
        let signer = Signer {
            name: "example.com/opensdn".to_owned(),
            authorities: cas.iter().map(|ca| ca.certificate().to_owned()).collect(),
            refused: None,
            distrusts: None,
        };
        let end = cas[0].not_after();
        assert!(signer.ends(end).unwrap().contains(&end.date().to_string()));
        assert_eq!(
            signer.ends(end - time::Duration::days(9)),
            None,
            "one that lasts for a few days"
        );
        assert_eq!(signer.end(), Some(end));
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
