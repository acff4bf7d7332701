//! The certificates of the pods of a component: what there is of them, what is to be made now, and by whom; since when they are there.
//! Which those are is in [`crate::build::certificates`]. Deliberately not here: how a signer of Kubernetes is asked (`signer`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_pki::{Authorities, AuthorityError, KeyKind, RsaBits};
use opensdn_runtime::apply::read_as;
use opensdn_runtime::call::CallError;
use opensdn_runtime::error_chain;
use time::OffsetDateTime;
use tokio::sync::Semaphore;

use super::fetch::Fetched;
use super::{Context, Error, LONGEST_PAUSE, authorities, signer};
use crate::build::Valid;
use crate::build::certificates::{
    Certificates, Data, Stored, Subject, Wanted, certificates, parts,
};
use crate::component::ComponentKind;
use crate::kind::Kind;
use crate::names;
use crate::object::{controller_of, is_controlled_by};

/// So far the clocks of a cluster that works may be apart.
const CLOCKS_ARE_APART: time::Duration = time::Duration::minutes(1);

/// Of so many addresses the certificates are looked at in some milliseconds.
const MOST_IN_PLACE: usize = 200;

/// With less left than this a CA of a signer is said to need a successor, and with a quarter of it to be wrong.
const SUCCESSOR: time::Duration = time::Duration::days(30);

/// So many a signer is asked for at once: their keys are in one Secret.
const MOST_ASKED: usize = 200;

/// So many are issued in one pass: some seconds with RSA keys, and less than one with others.
pub(super) fn most_in_a_pass(key: KeyKind) -> usize {
    match key {
        KeyKind::Rsa(RsaBits::Bits2048) => 32,
        KeyKind::Rsa(RsaBits::Bits3072) => 8,
        KeyKind::Rsa(RsaBits::Bits4096) => 4,
        _ => 200,
    }
}

/// Who makes keys that take long: one at a time, as the process has other things to do.
static MAKES_KEYS: Semaphore = Semaphore::const_new(1);

/// Does what may take seconds. All passes are in one task: none of them would get on where it is done in place.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AuthorityError> + Send + 'static,
) -> Result<T, Error> {
    let made = tokio::task::spawn_blocking(work).await.map_err(|_| Error::Panicked)?;
    made.map_err(Error::Certificates)
}

/// The same with keys of that kind: where these take long, when no other makes some.
pub(super) async fn make_keys<T: Send + 'static>(
    kind: KeyKind,
    work: impl FnOnce() -> Result<T, AuthorityError> + Send + 'static,
) -> Result<T, Error> {
    // It is never closed.
    let _turn = match kind {
        KeyKind::Rsa(_) => MAKES_KEYS.acquire().await.ok(),
        _ => None,
    };
    aside(work).await
}

/// The CAs of a pass.
pub(super) struct Cas<'a> {
    /// Those of the namespace.
    pub(super) ours: &'a Authorities,
    /// All that pods trust, each in PEM.
    pub(super) trusted: Vec<String>,
}

/// The certificates of the pods of a component.
pub(super) struct Made {
    pub(super) certificates: Certificates,
    /// What of them each Secret has.
    pub(super) parts: Vec<Data>,
    /// How long until a signer is asked again for what it has not issued yet.
    pub(super) poll: Option<Duration>,
}

/// What certificates of the namespace's CA are made of.
struct Inputs {
    stored: Vec<Stored>,
    subjects: Vec<Subject>,
    key: KeyKind,
    trusted: Vec<String>,
    ours: Authorities,
    are_ready: bool,
    now: OffsetDateTime,
}

impl Inputs {
    fn make(&self, most: usize) -> Result<Certificates, AuthorityError> {
        let Self { stored, subjects, key, trusted, ours, are_ready, now } = self;
        let wanted = Wanted { subjects, key: *key, most, trusted, signer: None };
        certificates(stored, &wanted, ours, *now, *are_ready)
    }
}

/// Those of the namespace's CA. Only where one is to be issued does the pass wait for its turn.
async fn by_own_ca(inputs: Inputs) -> Result<(Certificates, Inputs), Error> {
    let inputs = Arc::new(inputs);
    let made = match inputs.subjects.len() {
        ..=MOST_IN_PLACE => inputs.make(0).map_err(Error::Certificates)?,
        _ => {
            let inputs = Arc::clone(&inputs);
            aside(move || inputs.make(0)).await?
        }
    };
    let made = if made.left == 0 {
        made
    } else {
        let inputs = Arc::clone(&inputs);
        let (key, most) = (inputs.key, most_in_a_pass(inputs.key));
        make_keys(key, move || inputs.make(most)).await?
    };
    Arc::into_inner(inputs).map(|inputs| (made, inputs)).ok_or(Error::Panicked)
}

/// Makes the certificates of its pods. Of very many a part is issued in one pass, and its pods wait for the rest.
pub(super) async fn issue(
    ctx: &Context,
    component: &dyn ComponentKind,
    fetched: &Fetched,
    valid: &mut Valid,
    cas: &Cas<'_>,
    now: OffsetDateTime,
) -> Result<Made, Error> {
    let subjects = subjects(fetched, valid);
    let stored = stored_certificates(ctx, fetched, valid, &subjects).await?;
    let are_ready = fetched.pods_can_spare_one(valid, component.reads_certificates_once(), now);
    let signer = signer::Signer::of(&ctx.cache, fetched, now);
    let inputs = Inputs {
        stored,
        subjects,
        key: valid.key,
        trusted: cas.trusted.clone(),
        ours: cas.ours.clone(),
        are_ready,
        now,
    };
    let (inputs, mut certificates, waits) = match &signer {
        None => {
            if !signer::is_used_in(&ctx.cache, &fetched.namespace()) {
                ctx.metrics.certificates(&fetched.namespace(), names::GIVEN_CA_SECRET, None);
            }
            let (certificates, inputs) = by_own_ca(inputs).await?;
            (inputs, certificates, None)
        }
        Some(signer) => {
            ctx.metrics.certificates(&fetched.namespace(), names::GIVEN_CA_SECRET, signer.end());
            let (certificates, waits) = by_signer(ctx, fetched, valid, &inputs, signer).await?;
            (inputs, certificates, waits)
        }
    };
    let Inputs { stored, subjects, .. } = &inputs;
    if certificates.asked.is_empty() {
        // Without a signer none is awaited.
        let awaited: &[Subject] = if signer.is_some() { subjects } else { &[] };
        if let Err(error) = signer::forget(ctx, fetched, valid, stored, awaited).await {
            let (namespace, name, error) =
                (fetched.namespace(), fetched.name(), error_chain(&error));
            tracing::warn!(
                namespace,
                name,
                error,
                "failed to forget keys of requests; will try again"
            );
        }
    }
    let (why, poll) = waits.map(|(why, poll)| (Some(why), Some(poll))).unwrap_or_default();
    let is_started = fetched.keepers(valid.workload).next().is_some();
    say_what_is_missing(valid, &certificates, is_started, why);
    let addresses = subjects.iter().map(|subject| subject.address.as_str());
    let parts = parts::split(addresses, std::mem::take(&mut certificates.data), stored);
    let parts = parts.ok_or(Error::TooManyCertificates(subjects.len()))?;
    Ok(Made { certificates, parts, poll })
}

/// Those of a signer that is asked, and what is waited for, until when it is asked again.
async fn by_signer(
    ctx: &Context,
    fetched: &Fetched,
    valid: &Valid,
    inputs: &Inputs,
    signer: &signer::Signer,
) -> Result<(Certificates, Option<(String, Duration)>), Error> {
    let Inputs { stored, subjects, key, trusted, ours, are_ready, now } = inputs;
    let nothing = BTreeMap::new();
    let most = MOST_ASKED;
    let wanted = Wanted { subjects, key: *key, most, trusted, signer: Some(signer.with(&nothing)) };
    let make = |wanted: &Wanted<'_>| {
        certificates(stored, wanted, ours, *now, *are_ready).map_err(Error::Certificates)
    };
    let mut certificates = make(&wanted)?;
    let mut waits = None;
    if !certificates.asked.is_empty() {
        let answers =
            signer.answers(ctx, fetched, valid, &wanted, (stored, &certificates.asked)).await?;
        let answered = Wanted { signer: Some(signer.with(&answers.issued)), ..wanted };
        certificates = make(&answered)?;
        let is_asked = !certificates.asked.is_empty();
        let makes_keys = || "keys are made for the others".to_owned();
        waits = is_asked.then(|| (answers.why.unwrap_or_else(makes_keys), answers.poll));
    }
    if certificates.is_held && waits.is_none() {
        waits = signer.is_not_asked().map(|why| (why, signer::LONGEST_PAUSE));
    }
    if waits.is_none()
        && let Some(end) = certificates.expires_at
        && let left = end - *now
        && left < SUCCESSOR
        && let Some(why) = signer.ends(end)
    {
        certificates.is_urgent |= left < SUCCESSOR / 4;
        waits = Some((why, LONGEST_PAUSE));
    }
    Ok((certificates, waits))
}

/// The first pods wait for what is missing; those that come later wait each for its own. What a signer has not replaced yet is wrong
/// when it ends soon.
fn say_what_is_missing(valid: &mut Valid, made: &Certificates, runs: bool, why: Option<String>) {
    let all = 2 * valid.addresses.len();
    if made.missing > 0 {
        let because = why.map(|why| format!("; {why}")).unwrap_or_default();
        let issued = all - made.missing;
        let waits = format!("{issued} of {all} certificates are issued{because}");
        match runs {
            true => valid.lacks_certificates = Some(waits),
            false => valid.waits_for = Some(waits),
        }
    } else if let Some(why) = why {
        match made.expires_at.filter(|_| made.is_urgent) {
            Some(end) => {
                let end = end.date();
                valid.refused_ca =
                    Some(format!("a certificate ends on {end}, and has no successor: {why}"));
            }
            None => valid.renewal = Some(why),
        }
    }
}

/// What the Secrets of its certificates have. Where an address has none, those are read that are not known: watches report only what
/// has our label, and daemons are running with what is in one whose label was taken off.
async fn stored_certificates(
    ctx: &Context,
    fetched: &Fetched,
    valid: &Valid,
    subjects: &[Subject],
) -> Result<Vec<Stored>, CallError> {
    let names: Vec<String> = parts::names(&valid.instance.certificates(), valid.workload).collect();
    let known = |name: &String| fetched.owned.get(&(Kind::Secret, name.clone())).cloned();
    let mut all: Vec<Option<Arc<DynamicObject>>> = names.iter().map(known).collect();
    let stored = parts::stored(all.iter().map(Option::as_deref));
    if !parts::lacks(&stored, subjects) {
        return Ok(stored);
    }
    let (resource, namespace) = (Kind::Secret.resource(), fetched.object.namespace());
    let uid = fetched.object.uid().unwrap_or_default();
    // One that has lost its owner as well is as good: each certificate is looked at.
    let is_own =
        |there: &DynamicObject| controller_of(there).is_none() || is_controlled_by(there, &uid);
    for (name, one) in names.iter().zip(&mut all).filter(|(_, one)| one.is_none()) {
        let there: Option<DynamicObject> =
            read_as(&ctx.writer, &resource, namespace.as_deref(), name).await?;
        *one = there.filter(&is_own).map(Arc::new);
    }
    Ok(parts::stored(all.iter().map(Option::as_deref)))
}

/// Since when the members at these addresses have what they read only when they start: their certificates, and the CAs
/// that they trust. A pod is made when its certificate is there, and the clock of who says when may be a little behind.
pub(super) fn since(
    fetched: &Fetched,
    issued_at: &BTreeMap<String, OffsetDateTime>,
) -> BTreeMap<String, OffsetDateTime> {
    let trusted = fetched.trust.as_deref().and_then(authorities::published_since);
    let latest = |at: OffsetDateTime| trusted.map_or(at, |trusted| trusted.max(at));
    issued_at
        .iter()
        .map(|(address, at)| (address.clone(), latest(*at - CLOCKS_ARE_APART)))
        .collect()
}

/// Whom certificates are for: each address, with the name of its node.
fn subjects(fetched: &Fetched, valid: &Valid) -> Vec<Subject> {
    let host_of = |address: &String| {
        let is = |other: &Option<String>| other.as_ref() == Some(address);
        let node = valid.nodes.iter().find(|node| is(&node.address)).map(|node| node.name.clone());
        node.or_else(|| {
            fetched.pods.iter().find(|pod| is(&pod.address)).map(|pod| pod.node.clone())
        })
    };
    let addresses = valid.addresses.iter();
    addresses.map(|address| Subject { address: address.clone(), host: host_of(address) }).collect()
}

#[cfg(test)]
mod tests {
    use opensdn_pki::CaProfile;

    use super::*;

    #[tokio::test]
    async fn what_takes_long_keeps_no_other_pass_waiting_and_is_done_one_at_a_time() {
        let (start, wait) = std::sync::mpsc::channel::<()>();
        let rsa = KeyKind::Rsa(RsaBits::Bits4096);
        let long = make_keys(rsa, move || {
            // It ends only when the other pass, in the same task, has gone on.
            wait.recv().map_err(|_| AuthorityError::Mismatch)
        });
        let second = make_keys(rsa, || Ok(MAKES_KEYS.available_permits()));
        let other = async move { start.send(()) };
        let (long, second, other) = tokio::join!(long, second, other);
        assert!(long.is_ok() && other.is_ok());
        assert_eq!(second.unwrap(), 0, "it has the only turn");
    }

    #[tokio::test]
    async fn who_needs_no_key_does_not_wait_while_others_make_some() {
        let now = OffsetDateTime::now_utc();
        let inputs = || Inputs {
            stored: Vec::new(),
            subjects: Vec::new(),
            key: KeyKind::Rsa(RsaBits::Bits2048),
            trusted: Vec::new(),
            ours: Authorities::first(&CaProfile::new("test CA"), now).unwrap(),
            are_ready: true,
            now,
        };
        let turn = MAKES_KEYS.acquire().await.unwrap();
        let (made, _) = by_own_ca(inputs()).await.unwrap();
        assert_eq!((made.left, made.issued), (0, 0));
        drop(turn);
        let subjects = vec![Subject { address: "192.0.2.1".to_owned(), host: None }];
        let (made, inputs) = by_own_ca(Inputs { subjects, ..inputs() }).await.unwrap();
        assert_eq!((made.issued, inputs.subjects.len()), (2, 1));
    }
}
