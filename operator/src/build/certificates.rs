//! The Secrets with the certificates of the pods: for each address one for its server and one for its
//! clients, with their keys, as tf-operator names them. What is good is kept. What is missing or cannot be used is
//! issued at once; what is due, or of a CA that is to go, in turn: who reads a new certificate starts again, and not all
//! at once.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_pki::leaf::{self, LeafError};
use opensdn_pki::{
    Authorities, Authority, AuthorityError, CLOCK_SKEW, KeyKind, Leaf, LeafProfile, Usage, bundle,
};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use super::Owner;
use crate::names;

pub(crate) mod parts;

/// The keys of the Secret.
pub type Data = BTreeMap<String, ByteString>;

/// Renewed at two thirds.
pub(crate) const LIFETIME: Duration = Duration::days(365);
/// Between two turns: until a daemon has the new certificate and serves again.
const PAUSE: Duration = Duration::minutes(3);
/// With less left than this it is renewed whether or not all pods are ready.
const URGENT: Duration = Duration::days(30);
/// Of so many addresses one has its turn at a time.
const IN_TURN: usize = opensdn_deploy::names::operator::RENEWED_IN_TURNS;
/// For so many turns to come a signer is asked beforehand: a user can approve them together. What it has answered Kubernetes keeps
/// for an hour (kube-controller-manager, `cleaner.go`).
const ASKED_FOR_TURNS: usize = 10;
/// Until it is looked at again whether all pods are ready.
const POLL_INTERVAL: Duration = Duration::minutes(1);

const SIDES: [(&str, Usage); 2] = [("server", Usage::ServerAndClient), ("client", Usage::Client)];

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
    /// CAs beside those of the namespace that pods trust as long as there are certificates of theirs, each in PEM.
    pub trusted: &'a [String],
    /// Who issues them, if not the CA of the namespace.
    pub signer: Option<Signer<'a>>,
}

/// A signer that is asked for each certificate.
#[derive(Clone, Copy, Debug)]
pub struct Signer<'a> {
    /// The certificates of its CAs, each in PEM.
    pub authorities: &'a [String],
    /// What it has issued by now.
    pub issued: &'a BTreeMap<Asked, Issued>,
    /// Whether all pods trust its CAs.
    pub is_trusted: bool,
}

/// A certificate that a signer is asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// For whom.
    pub address: String,
    /// `server` or `client`.
    pub side: &'static str,
}

/// A certificate that a signer has issued, with its key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    /// The certificate, and those between it and the CA.
    pub certificate: String,
    /// Its key.
    pub key: String,
    /// When it is due and ends.
    pub times: leaf::Times,
}

/// The key is left out.
impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issued").field("times", &self.times).finish_non_exhaustive()
    }
}

impl Asked {
    fn of(subject: &Subject, side: &'static str) -> Self {
        Self { address: subject.address.clone(), side }
    }

    /// Both of an address.
    pub fn both(subject: &Subject) -> impl Iterator<Item = Self> {
        SIDES.iter().map(|(side, _)| Self::of(subject, side))
    }

    /// The file of its key, in the Secret with those of the certificates.
    #[must_use]
    pub fn key_file(&self) -> String {
        keys(self.side, &self.address).1
    }

    /// What is asked for: as the CA of the namespace would issue it.
    #[must_use]
    pub fn profile(&self, wanted: &Wanted<'_>) -> Option<LeafProfile> {
        let subject = wanted.subjects.iter().find(|subject| subject.address == self.address)?;
        let (_, usage) = SIDES.iter().find(|(side, _)| *side == self.side)?;
        Some(profile(subject, *usage, wanted.key))
    }
}

/// The certificates of all pods.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// What the Secrets shall hold.
    pub data: Data,
    /// When it is to be looked at again.
    pub renew_at: OffsetDateTime,
    /// When the first expires, if there is one.
    pub expires_at: Option<OffsetDateTime>,
    /// How many are new.
    pub issued: usize,
    /// How many are still missing, as no more were to be issued.
    pub missing: usize,
    /// How many were to be made now, and are left to the next pass, as no more were to be issued.
    pub left: usize,
    /// Whether one ends soon that is due.
    pub is_urgent: bool,
    /// Whether some are due of which a signer is not asked, as not all pods trust its CAs.
    pub is_held: bool,
    /// When the newest of an address was put into place.
    pub issued_at: BTreeMap<String, OffsetDateTime>,
    /// What the signer is to be asked for, where there is one.
    pub asked: Vec<Asked>,
    /// How many of these are of addresses that have nothing.
    asked_first: usize,
}

/// When a certificate was put into place, is due, and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    issued: OffsetDateTime,
    due: OffsetDateTime,
    until: OffsetDateTime,
}

impl Signer<'_> {
    /// Not all signers have what they issue end with their CA, but OpenSSL does. Another would end then, too, unless the CA has a
    /// successor.
    fn bounded(&self, times: Times, ca: &str) -> Times {
        let ends = |ca: &str| bundle::end(ca).unwrap_or(times.until);
        let end = ends(ca);
        if times.until < end {
            return times;
        }
        let has_successor = self.authorities.iter().any(|other| ends(other) > end);
        let due = if has_successor { times.due.min(end - URGENT) } else { end };
        Times { due, until: end, ..times }
    }
}

impl Times {
    /// Whether it is to be replaced whatever else is: also one that lasts for a few days.
    fn is_urgent(&self, now: OffsetDateTime) -> bool {
        self.until - now < URGENT.min((self.until - self.due) / 2)
    }
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
    let place_of =
        |subject: &Subject| stored.iter().find(|part| part.has(subject)).unwrap_or(&nothing);
    let find = |subject: &Subject, side| {
        let place = place_of(subject);
        let found = find(&place.data, subject, side, wanted, authorities, now);
        // Of a time that is yet to come what is issued now would be due at once.
        match (found, place.asked.filter(|asked| *asked <= now)) {
            (Found::Good(times), Some(asked)) if times.issued < asked => Found::Due(times),
            (found, _) => found,
        }
    };
    let subjects = wanted.subjects;
    let found: Vec<[Found; 2]> =
        subjects.iter().map(|subject| SIDES.map(|(side, _)| find(subject, side))).collect();
    let signer = wanted.signer;
    let has_answer = |number: usize, side: &'static str| {
        let asked = subjects.get(number).map(|subject| Asked::of(subject, side));
        signer.is_none_or(|one| asked.is_some_and(|asked| one.issued.contains_key(&asked)))
    };
    let (turn, next_turn) = turn(&found, now, are_ready, has_answer);
    let to_ask = signer.map(|one| to_ask(&found, one.is_trusted, now)).unwrap_or_default();
    let is_due = |one: &Found| matches!(one, Found::Due(_));
    let mut all = Certificates {
        data: Data::new(),
        renew_at: next_turn.unwrap_or(now + LIFETIME),
        expires_at: None,
        issued: 0,
        missing: 0,
        left: 0,
        is_urgent: found.iter().flatten().any(|one| one.is_urgent(now)),
        is_held: signer.is_some_and(|one| !one.is_trusted) && found.iter().flatten().any(is_due),
        issued_at: BTreeMap::new(),
        asked: Vec::new(),
        asked_first: 0,
    };
    for (number, (subject, found)) in subjects.iter().zip(&found).enumerate() {
        let mut place = Place {
            subject,
            stored: &place_of(subject).data,
            key: None,
            is_its_turn: turn.contains(&number),
            may_ask: to_ask.contains(&number),
        };
        for ((side, usage), found) in SIDES.iter().zip(found) {
            all.make(&mut place, (side, *usage), *found, wanted, &authorities.current, now)?;
        }
    }
    Ok(all)
}

/// An address, while its certificates are made.
struct Place<'a> {
    subject: &'a Subject,
    /// What there is of it.
    stored: &'a Data,
    /// Whether what is due is replaced now.
    is_its_turn: bool,
    /// Whether a signer is asked for what is due.
    may_ask: bool,
    /// What was made for one side, which the other then has too: the same pod has both.
    key: Option<String>,
}

/// What is stored of one of the Secrets.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// Its keys.
    pub data: Data,
    /// What was issued before this is to be issued again.
    pub(crate) asked: Option<OffsetDateTime>,
}

impl Stored {
    /// Whether a certificate of the address is in it.
    fn has(&self, subject: &Subject) -> bool {
        let mut files = SIDES.iter().map(|(side, _)| keys(side, &subject.address).0);
        files.any(|file| self.data.contains_key(&file))
    }

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

impl Found {
    fn is_urgent(&self, now: OffsetDateTime) -> bool {
        matches!(self, Self::Due(times) if times.is_urgent(now))
    }
}

/// Who has one that is due, by their places.
fn due(found: &[[Found; 2]]) -> impl Iterator<Item = (usize, &[Found; 2])> {
    let is_due = |sides: &[Found; 2]| sides.iter().any(|one| matches!(one, Found::Due(_)));
    found.iter().enumerate().filter(move |(_, sides)| is_due(sides))
}

/// How many have their turn at a time.
fn in_turn(all: usize) -> usize {
    (all / IN_TURN).max(1)
}

/// For whom a signer is asked of those that have one that is due: for the next, once all pods trust the signer, and for those whose
/// end is near in any case.
fn to_ask(found: &[[Found; 2]], is_trusted: bool, now: OffsetDateTime) -> Vec<usize> {
    let may = |(_, sides): &(usize, &[Found; 2])| {
        is_trusted || sides.iter().any(|one| one.is_urgent(now))
    };
    let most = ASKED_FOR_TURNS * in_turn(found.len());
    due(found).filter(may).map(|(number, _)| number).take(most).collect()
}

/// Whose turn it is, by their places, and when the next is, if somebody waits for one. Who waits for the answer of a signer has none
/// until it is there.
fn turn(
    found: &[[Found; 2]],
    now: OffsetDateTime,
    are_ready: bool,
    has_answer: impl Fn(usize, &'static str) -> bool,
) -> (Vec<usize>, Option<OffsetDateTime>) {
    let is_answered = |(number, sides): &(usize, &[Found; 2])| {
        let mut sides = SIDES.iter().zip(*sides);
        sides.all(|((side, _), one)| matches!(one, Found::Good(_)) || has_answer(*number, side))
    };
    let due: Vec<usize> = due(found).filter(is_answered).map(|(number, _)| number).collect();
    if due.is_empty() {
        return (due, None);
    }
    let all = || found.iter().flatten();
    let is_urgent = all().any(|one| one.is_urgent(now));
    let newest = all().filter_map(|one| match one {
        Found::Good(times) | Found::Due(times) => Some(times.issued),
        Found::Nothing => None,
    });
    let not_before = newest.max().map_or(now, |newest| newest + PAUSE);
    let starts_anew = all().any(|one| *one == Found::Nothing);
    if not_before <= now && (is_urgent || (are_ready && !starts_anew)) {
        let count = in_turn(found.len());
        let next = (due.len() > count).then(|| now + PAUSE);
        return (due.into_iter().take(count).collect(), next);
    }
    (Vec::new(), Some(not_before.max(now + POLL_INTERVAL)))
}

fn keys(side: &str, address: &str) -> (String, String) {
    (format!("{side}-{address}.crt"), format!("{side}-key-{address}.pem"))
}

/// When that of a signer was put into place: what a signer writes into a certificate says another time.
fn since_key(side: &str, address: &str) -> String {
    format!("{side}-since-{address}")
}

fn since(stored: &Data, subject: &Subject, side: &str) -> Option<OffsetDateTime> {
    let text = std::str::from_utf8(&stored.get(&since_key(side, &subject.address))?.0).ok()?;
    OffsetDateTime::parse(text, &Rfc3339).ok()
}

fn find(
    stored: &Data,
    subject: &Subject,
    side: &str,
    wanted: &Wanted<'_>,
    authorities: &Authorities,
    now: OffsetDateTime,
) -> Found {
    let keys = keys(side, &subject.address);
    let text = |key: &str| std::str::from_utf8(&stored.get(key)?.0).ok();
    let Some((certificate, key)) = text(&keys.0).zip(text(&keys.1)) else { return Found::Nothing };
    let names = subject.names();
    let since = since(stored, subject, side).filter(|since| *since <= now);
    let of = |ca: &str, skew: Duration| {
        let leaf::Times { from, due, until } = leaf::times(certificate, key, ca, &names)?;
        Ok(Times { issued: since.unwrap_or(from + skew), due, until })
    };
    let current = &authorities.current;
    let of_ours = || of(current.certificate(), CLOCK_SKEW);
    // All trust these until no pod has such a one any more.
    let of_others = || {
        let previous = authorities.previous.iter().find_map(|ca| of(ca, CLOCK_SKEW).ok());
        let others = || wanted.trusted.iter().find_map(|ca| of(ca, Duration::ZERO).ok());
        let times = previous.or_else(others).filter(|times| times.until > now);
        times.map_or(Found::Nothing, Found::Due)
    };
    let is_good = |times: &Times| times.due > now && suits(certificate, wanted.key);
    if let Some(signer) = wanted.signer {
        let by = |ca: &String| of(ca, Duration::ZERO).ok().map(|times| signer.bounded(times, ca));
        let times = signer.authorities.iter().find_map(by);
        return match times.map_or_else(of_ours, Ok) {
            Ok(times) if times.until <= now => Found::Nothing,
            Ok(one) if times.is_some() && is_good(&one) => Found::Good(one),
            Ok(times) => Found::Due(times),
            Err(_) => of_others(),
        };
    }
    match of_ours() {
        Ok(times) if times.until <= now => Found::Nothing,
        Ok(times) if is_good(&times) => Found::Good(times),
        // Another would end with its CA too, which a user gave and has to replace.
        Ok(times) if times.until >= current.not_after() && suits(certificate, wanted.key) => {
            Found::Good(Times { due: times.until, ..times })
        }
        Ok(times) => Found::Due(times),
        Err(LeafError::Issuer) => of_others(),
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
    fn make(
        &mut self,
        place: &mut Place<'_>,
        (side, usage): (&'static str, Usage),
        found: Found,
        wanted: &Wanted<'_>,
        authority: &Authority,
        now: OffsetDateTime,
    ) -> Result<(), AuthorityError> {
        let Place { subject, stored, .. } = *place;
        let asked = Asked::of(subject, side);
        let answer = wanted.signer.and_then(|one| one.issued.get(&asked));
        // What is due and open may wait for long, and keeps who has nothing from none.
        let is_room = self.issued + self.asked_first < wanted.most;
        let is_wanted =
            found == Found::Nothing || matches!(found, Found::Due(_)) && place.is_its_turn;
        if is_wanted && answer.is_none() && !is_room {
            self.left += 1;
        }
        match (found, answer) {
            (Found::Good(times), _) => self.keep(stored, subject, side, times, Some(times.due)),
            (Found::Due(times), _) if !place.is_its_turn || (answer.is_none() && !is_room) => {
                self.keep(stored, subject, side, times, None);
                if answer.is_none() && place.may_ask {
                    self.asked.push(asked);
                }
            }
            (_, Some(answer)) => self.put_answer(subject, side, answer, now),
            (_, None) if is_room && wanted.signer.is_none() => {
                let profile = profile(subject, usage, wanted.key);
                let leaf = match &place.key {
                    Some(key) => authority.issue_for(key, &profile, now)?,
                    None => authority.issue(&profile, now)?,
                };
                place.key = Some(leaf.key().to_owned());
                self.put_leaf(subject, side, &leaf, now);
            }
            (_, None) => {
                self.missing += 1;
                // What is there is no good, but a daemon may run with it, and end with it.
                self.keep_files(stored, subject, side);
                let there = stored.get(&keys(side, &subject.address).0);
                let there = there.and_then(|pem| bundle::end(std::str::from_utf8(&pem.0).ok()?));
                self.expires_by(there);
                if is_room && wanted.signer.is_some() {
                    self.asked.push(asked);
                    self.asked_first += 1;
                }
            }
        }
        Ok(())
    }

    fn keep(
        &mut self,
        stored: &Data,
        subject: &Subject,
        side: &str,
        times: Times,
        due: Option<OffsetDateTime>,
    ) {
        self.keep_files(stored, subject, side);
        self.renew_at = due.map_or(self.renew_at, |due| self.renew_at.min(due));
        self.expires_by(Some(times.until));
        self.made(&subject.address, times.issued);
    }

    fn keep_files(&mut self, stored: &Data, subject: &Subject, side: &str) {
        let keys = keys(side, &subject.address);
        for key in [keys.0, keys.1, since_key(side, &subject.address)] {
            if let Some(value) = stored.get(&key) {
                self.data.insert(key, value.clone());
            }
        }
    }

    /// What the CA of the namespace has issued.
    fn put_leaf(&mut self, subject: &Subject, side: &str, leaf: &Leaf, now: OffsetDateTime) {
        let end = bundle::end(leaf.certificate());
        self.put(subject, side, [leaf.certificate(), leaf.key()], (leaf.renew_at, end), now);
    }

    /// What a signer has issued.
    fn put_answer(&mut self, subject: &Subject, side: &str, issued: &Issued, now: OffsetDateTime) {
        let leaf::Times { due, until, .. } = issued.times;
        let pem = [&*issued.certificate, &*issued.key];
        self.put(subject, side, pem, (due, Some(until)), now);
        let since = now.format(&Rfc3339).unwrap_or_default();
        self.data.insert(since_key(side, &subject.address), ByteString(since.into_bytes()));
    }

    /// A certificate and its key, in PEM; when it is due, and when it ends.
    fn put(
        &mut self,
        subject: &Subject,
        side: &str,
        [certificate, key]: [&str; 2],
        (due, end): (OffsetDateTime, Option<OffsetDateTime>),
        now: OffsetDateTime,
    ) {
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        let keys = keys(side, &subject.address);
        self.data.insert(keys.0, bytes(certificate));
        self.data.insert(keys.1, bytes(key));
        self.renew_at = self.renew_at.min(due);
        self.expires_by(end);
        self.issued += 1;
        self.made(&subject.address, now);
    }

    /// One ends then.
    fn expires_by(&mut self, end: Option<OffsetDateTime>) {
        self.expires_at = [self.expires_at, end].into_iter().flatten().min();
    }

    fn made(&mut self, address: &str, at: OffsetDateTime) {
        let newest = self.issued_at.entry(address.to_owned()).or_insert(at);
        *newest = (*newest).max(at);
    }
}

/// One Secret for each part, the last first: what moves from one that is full is in another before it is gone.
pub(super) fn build(owner: &Owner<'_>, parts: Vec<Data>) -> impl Iterator<Item = Secret> {
    let parts = parts.into_iter().enumerate().rev();
    // Pods run with what is in one that was lost: with an empty one in its place their kubelets would take it away.
    let waits = owner.valid.lacks_certificates.is_some();
    parts.filter(move |(_, data)| !waits || !data.is_empty()).map(|(number, data)| Secret {
        metadata: owner.metadata(parts::name(&owner.valid.instance.certificates(), number)),
        data: Some(data),
        ..Secret::default()
    })
}

#[cfg(test)]
mod tests;
