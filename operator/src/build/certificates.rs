//! The Secrets with the certificates of the pods: for each address one for its server and one for its
//! clients, with their keys, as tf-operator names them. What is good is kept. What is missing or cannot be used is
//! issued at once; what is due, or of a CA that is to go, in turn: who reads a new certificate starts again, and not all
//! at once.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_pki::leaf::{self, LeafError, Times};
use opensdn_pki::{Authorities, Authority, AuthorityError, KeyKind, LeafProfile, Usage};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use super::Owner;
use crate::names;

pub(crate) mod parts;

/// The keys of the Secret.
pub type Data = BTreeMap<String, ByteString>;

/// Renewed at two thirds.
const LIFETIME: Duration = Duration::days(365);
/// Between two turns: until a daemon has the new certificate and serves again.
const PAUSE: Duration = Duration::minutes(3);
/// With less left than this it is renewed whether or not all pods are ready.
const URGENT: Duration = Duration::days(30);
/// Of so many addresses one has its turn at a time.
const IN_TURN: usize = opensdn_deploy::names::operator::RENEWED_IN_TURNS;
/// Until it is looked at again whether all pods are ready.
const POLL_INTERVAL: Duration = Duration::minutes(1);

const SERVER: &str = "server";
const SIDES: [(&str, Usage); 2] = [(SERVER, Usage::ServerAndClient), ("client", Usage::Client)];

/// An address that has certificates, and the names by which it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The address.
    pub address: String,
    /// The name of its node.
    pub host: Option<String>,
}

/// For whom there are to be certificates, and of what kind their keys are.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// For whom.
    pub subjects: &'a [Subject],
    /// The kind of their keys. Who has RSA keeps it until the certificate is renewed.
    pub key: KeyKind,
    /// How many are issued in one pass, at most.
    pub most: usize,
}

/// The certificates of all pods.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// What the Secrets shall hold.
    pub data: Data,
    /// When it is to be looked at again.
    pub renew_at: OffsetDateTime,
    /// When the first expires.
    pub expires_at: OffsetDateTime,
    /// How many are new.
    pub issued: usize,
    /// How many are still missing, as no more were to be issued.
    pub missing: usize,
    /// When the newest of an address was issued.
    pub issued_at: BTreeMap<String, OffsetDateTime>,
}

/// What is stored of an address, for one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Nothing that can be used.
    Nothing,
    /// It is to be replaced in turn.
    Due(Times),
    Good(Times),
}

/// Keeps the certificates of the Secret that are good, and issues the others. What is due has its turn only while
/// the pods are ready.
///
/// # Errors
/// A certificate cannot be made.
pub fn certificates(
    stored: &[Stored],
    wanted: &Wanted<'_>,
    authorities: &Authorities,
    now: OffsetDateTime,
    are_ready: bool,
) -> Result<Certificates, AuthorityError> {
    let nothing = Stored::default();
    let place_of = |subject: &Subject| {
        let key = keys(SERVER, &subject.address).0;
        stored.iter().find(|part| part.data.contains_key(&key)).unwrap_or(&nothing)
    };
    let find = |subject: &Subject, side| {
        let place = place_of(subject);
        let found = find(&place.data, subject, side, wanted.key, authorities, now);
        // Of a time that is yet to come what is issued now would be due at once.
        match (found, place.asked.filter(|asked| *asked <= now)) {
            (Found::Good(times), Some(asked)) if times.issued < asked => Found::Due(times),
            (found, _) => found,
        }
    };
    let subjects = wanted.subjects;
    let found: Vec<[Found; 2]> =
        subjects.iter().map(|subject| SIDES.map(|(side, _)| find(subject, side))).collect();
    let end = now + LIFETIME;
    let (turn, next_turn) = turn(&found, now, are_ready);
    let mut all = Certificates {
        data: Data::new(),
        renew_at: next_turn.unwrap_or(end),
        expires_at: end,
        issued: 0,
        missing: 0,
        issued_at: BTreeMap::new(),
    };
    for (number, (subject, found)) in subjects.iter().zip(&found).enumerate() {
        for ((side, usage), found) in SIDES.iter().zip(found) {
            match found {
                Found::Good(times) => {
                    all.keep(&place_of(subject).data, subject, side, *times, Some(times.due));
                }
                Found::Due(times) if !turn.contains(&number) => {
                    all.keep(&place_of(subject).data, subject, side, *times, None);
                }
                Found::Nothing if all.issued >= wanted.most => all.missing += 1,
                Found::Due(_) | Found::Nothing => {
                    let profile = profile(subject, *usage, wanted.key);
                    all.issue(subject, side, &profile, &authorities.current, now)?;
                }
            }
        }
    }
    Ok(all)
}

/// What is stored of one of the Secrets.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// Its keys.
    pub data: Data,
    /// What was issued before this is to be issued again.
    asked: Option<OffsetDateTime>,
}

impl Stored {
    /// That of a Secret; nothing of what cannot be read.
    #[must_use]
    pub fn of(secret: &DynamicObject) -> Self {
        let data = secret.data.get("data").cloned().unwrap_or_default();
        let asked = secret.annotations().get(names::RENEW);
        Self {
            data: serde_json::from_value(data).unwrap_or_default(),
            asked: asked.and_then(|asked| OffsetDateTime::parse(asked, &Rfc3339).ok()),
        }
    }
}

/// Whose turn it is, by their places, and when the next is, if somebody waits for one.
fn turn(
    found: &[[Found; 2]],
    now: OffsetDateTime,
    are_ready: bool,
) -> (Vec<usize>, Option<OffsetDateTime>) {
    let is_due = |sides: &[Found; 2]| sides.iter().any(|one| matches!(one, Found::Due(_)));
    let due: Vec<usize> = found
        .iter()
        .enumerate()
        .filter(|(_, sides)| is_due(sides))
        .map(|(number, _)| number)
        .collect();
    if due.is_empty() {
        return (due, None);
    }
    let all = || found.iter().flatten();
    let is_urgent = all().any(|one| matches!(one, Found::Due(times) if times.until - now < URGENT));
    let newest = all().filter_map(|one| match one {
        Found::Good(times) | Found::Due(times) => Some(times.issued),
        Found::Nothing => None,
    });
    let not_before = newest.max().map_or(now, |newest| newest + PAUSE);
    let starts_anew = all().any(|one| *one == Found::Nothing);
    if !starts_anew && not_before <= now && (are_ready || is_urgent) {
        let count = (found.len() / IN_TURN).max(1);
        let next = (due.len() > count).then(|| now + PAUSE);
        return (due.into_iter().take(count).collect(), next);
    }
    (Vec::new(), Some(not_before.max(now + POLL_INTERVAL)))
}

fn keys(side: &str, address: &str) -> (String, String) {
    (format!("{side}-{address}.crt"), format!("{side}-key-{address}.pem"))
}

fn find(
    stored: &Data,
    subject: &Subject,
    side: &str,
    wanted: KeyKind,
    authorities: &Authorities,
    now: OffsetDateTime,
) -> Found {
    let keys = keys(side, &subject.address);
    let text = |key: &str| std::str::from_utf8(&stored.get(key)?.0).ok();
    let Some((certificate, key)) = text(&keys.0).zip(text(&keys.1)) else { return Found::Nothing };
    let names = subject.names();
    let of = |ca: &str| leaf::times(certificate, key, ca, &names);
    match of(authorities.current.certificate()) {
        Ok(times) if times.until <= now => Found::Nothing,
        Ok(times) if times.due > now && suits(certificate, wanted) => Found::Good(times),
        // Another would end with its CA too, which a user gave and has to replace.
        Ok(times)
            if times.until >= authorities.current.not_after() && suits(certificate, wanted) =>
        {
            Found::Good(Times { due: times.until, ..times })
        }
        Ok(times) => Found::Due(times),
        // All trust it until nobody has such a one any more.
        Err(LeafError::Issuer) => {
            let before = authorities.previous.as_deref().and_then(|ca| of(ca).ok());
            before.filter(|times| times.until > now).map_or(Found::Nothing, Found::Due)
        }
        Err(_) => Found::Nothing,
    }
}

/// Nobody is in need of another key than one of RSA.
fn suits(certificate: &str, wanted: KeyKind) -> bool {
    !matches!(wanted, KeyKind::Rsa(_)) || leaf::is_rsa(certificate).is_ok_and(|is| is)
}

fn profile(subject: &Subject, usage: Usage, key: KeyKind) -> LeafProfile {
    LeafProfile {
        common_name: subject.address.clone(),
        names: subject.names(),
        lifetime: LIFETIME,
        usage,
        key,
    }
}

impl Subject {
    fn names(&self) -> Vec<String> {
        self.host.iter().chain([&self.address]).cloned().collect()
    }
}

impl Certificates {
    fn keep(
        &mut self,
        stored: &Data,
        subject: &Subject,
        side: &str,
        times: Times,
        due: Option<OffsetDateTime>,
    ) {
        let keys = keys(side, &subject.address);
        for key in [keys.0, keys.1] {
            let value = stored.get(&key).cloned().unwrap_or_default();
            self.data.insert(key, value);
        }
        self.renew_at = due.map_or(self.renew_at, |due| self.renew_at.min(due));
        self.expires_at = self.expires_at.min(times.until);
        self.made(&subject.address, times.issued);
    }

    fn issue(
        &mut self,
        subject: &Subject,
        side: &str,
        profile: &LeafProfile,
        authority: &Authority,
        now: OffsetDateTime,
    ) -> Result<(), AuthorityError> {
        let leaf = authority.issue(profile, now)?;
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        let keys = keys(side, &subject.address);
        self.data.insert(keys.0, bytes(leaf.certificate()));
        self.data.insert(keys.1, bytes(leaf.key()));
        self.renew_at = self.renew_at.min(leaf.renew_at);
        self.issued += 1;
        self.made(&subject.address, now);
        Ok(())
    }

    fn made(&mut self, address: &str, at: OffsetDateTime) {
        let newest = self.issued_at.entry(address.to_owned()).or_insert(at);
        *newest = (*newest).max(at);
    }
}

/// One Secret for each part, the last first: what moves from one that is full is in another before it is gone.
pub(super) fn build(owner: &Owner<'_>, parts: Vec<Data>) -> impl Iterator<Item = Secret> {
    parts.into_iter().enumerate().rev().map(|(number, data)| Secret {
        metadata: owner.metadata(parts::name(&owner.valid.instance.certificates(), number)),
        data: Some(data),
        ..Secret::default()
    })
}

#[cfg(test)]
mod tests;
