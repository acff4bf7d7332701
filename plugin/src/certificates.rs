//! The certificates of OpenSDN in a cluster: whose they are, who issued them, and how long they last (pure). How the
//! cluster is asked is in `certificates/ask.rs`, how it is written in `certificates/text.rs`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::pem::Pem;

use crate::output::Answer;
use crate::snapshot::{Read, list, name, namespace, text};

pub(crate) mod ask;
pub(crate) mod renew;
mod text;

const DAY: i64 = 86_400;
/// With less left than this it needs somebody's care: what is renewed by itself has been renewed long before.
const URGENT_DAYS: i64 = 14;
/// With less left than this it should have been renewed.
const LATE_DAYS: i64 = 60;

/// What was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    /// Secrets of the operator, and those of CAs.
    pub(crate) secrets: Vec<Value>,
    /// ConfigMaps with what the pods of a namespace trust.
    pub(crate) trust: Vec<Value>,
    /// What may not be read, and why.
    pub(crate) not_read: Vec<NotRead>,
}

/// What may not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct NotRead {
    /// What.
    pub(crate) what: String,
    /// Why.
    pub(crate) why: String,
}

/// How a certificate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// It is over.
    Expired,
    /// None of the CAs issued it that the pods of its namespace trust.
    Untrusted,
    /// It cannot be read.
    Unreadable,
    /// It lasts less than two weeks.
    Urgent,
    /// It lasts less than sixty days.
    Late,
    /// It is good.
    Ok,
}

/// A certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CertificateStatus {
    /// How it is.
    pub(crate) state: State,
    /// The namespace of its Secret.
    pub(crate) namespace: String,
    /// Its Secret.
    pub(crate) secret: String,
    /// The key in it.
    pub(crate) key: String,
    /// What has it: `Cassandra configdb`, or `CA`.
    pub(crate) used_by: String,
    /// The common name.
    pub(crate) subject: String,
    /// The common name of who issued it.
    pub(crate) issuer: String,
    /// When it ends, in seconds since 1970; none where it cannot be read.
    pub(crate) not_after: Option<i64>,
    /// Whole days until then, negative once it is over.
    pub(crate) days: Option<i64>,
}

/// What `certs status` answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CertificatesReport {
    /// Each, the worst first.
    pub(crate) certificates: Vec<CertificateStatus>,
    /// What may not be read, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_read: Vec<NotRead>,
}

impl Answer for CertificatesReport {
    const KIND: &'static str = "CertificatesReport";
}

impl CertificatesReport {
    /// Whether one of them needs care.
    pub(crate) fn is_bad(&self) -> bool {
        self.certificates.iter().any(|one| one.state <= State::Urgent)
    }
}

/// Judges what was read.
pub(crate) fn assess(world: &World, now: Timestamp) -> CertificatesReport {
    let trusted: BTreeMap<&str, Vec<Pem>> = world
        .trust
        .iter()
        .map(|map| {
            let data = map.pointer("/data").and_then(Value::as_object);
            let bundles = data.into_iter().flat_map(|data| data.values()).filter_map(Value::as_str);
            (namespace(map), bundles.flat_map(|bundle| pems(bundle.as_bytes())).collect())
        })
        .collect();
    let mut certificates: Vec<CertificateStatus> = world
        .secrets
        .iter()
        .flat_map(|secret| of_secret(secret, trusted.get(namespace(secret)), now))
        .collect();
    certificates.sort_by(|one, other| {
        let place = |one: &CertificateStatus| {
            (one.state, one.days, one.namespace.clone(), one.secret.clone(), one.key.clone())
        };
        place(one).cmp(&place(other))
    });
    CertificatesReport { certificates, not_read: world.not_read.clone() }
}

fn of_secret(secret: &Value, trusted: Option<&Vec<Pem>>, now: Timestamp) -> Vec<CertificateStatus> {
    let data = secret.pointer("/data").and_then(Value::as_object).into_iter().flatten();
    data.filter(|(key, _)| key.ends_with(".crt"))
        // A bundle is what others are trusted by.
        .filter(|(key, _)| !key.ends_with("bundle.crt"))
        .map(|(key, value)| {
            let pem = value.as_str().and_then(|text| BASE64_STANDARD.decode(text).ok());
            let pems = pems(&pem.unwrap_or_default());
            let first = pems.first().and_then(|pem| pem.parse_x509().ok());
            one(secret, key, first.as_ref(), trusted, now)
        })
        .collect()
}

fn one(
    secret: &Value,
    key: &str,
    certificate: Option<&X509Certificate<'_>>,
    trusted: Option<&Vec<Pem>>,
    now: Timestamp,
) -> CertificateStatus {
    let end = certificate.map(|one| one.validity().not_after.timestamp());
    let days = end.map(|end| (end - now.as_second()).div_euclid(DAY));
    let is_ca = certificate.is_some_and(|one| one.is_ca());
    let is_trusted = is_ca
        || trusted.is_none_or(|trusted| {
            trusted.iter().any(|pem| is_issued_by(certificate, pem.parse_x509().ok().as_ref()))
        });
    let state = match days {
        None => State::Unreadable,
        Some(..0) => State::Expired,
        Some(_) if !is_trusted => State::Untrusted,
        Some(..URGENT_DAYS) => State::Urgent,
        Some(..LATE_DAYS) => State::Late,
        Some(_) => State::Ok,
    };
    let common_name = |name: Option<&x509_parser::x509::X509Name<'_>>| {
        let name = name.and_then(|name| name.iter_common_name().next());
        name.and_then(|name| name.as_str().ok()).unwrap_or_default().to_owned()
    };
    CertificateStatus {
        state,
        namespace: namespace(secret).to_owned(),
        secret: name(secret).to_owned(),
        key: key.to_owned(),
        used_by: if is_ca { "CA".to_owned() } else { owner(secret) },
        subject: common_name(certificate.map(|one| one.subject())),
        issuer: common_name(certificate.map(|one| one.issuer())),
        not_after: end,
        days,
    }
}

/// The component whose Secret it is.
fn owner(secret: &Value) -> String {
    let owner = list(secret, "/metadata/ownerReferences").next();
    owner.map_or_else(String::new, |owner| {
        format!("{} {}", text(owner, "/kind"), text(owner, "/name"))
    })
}

/// Whether it is the Secret of a CA.
fn is_ca_secret(secret: &Value) -> bool {
    secret
        .pointer("/data")
        .and_then(Value::as_object)
        .is_some_and(|data| data.contains_key("ca.crt"))
}

/// By the names, and by the keys where both say which: CAs of one name differ by these.
fn is_issued_by(leaf: Option<&X509Certificate<'_>>, ca: Option<&X509Certificate<'_>>) -> bool {
    let (Some(leaf), Some(ca)) = (leaf, ca) else { return false };
    let signer = leaf.extensions().iter().find_map(|one| match one.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(found) => Some(found.key_identifier.as_ref()?.0),
        _ => None,
    });
    let own = ca.extensions().iter().find_map(|one| match one.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(found) => Some(found.0),
        _ => None,
    });
    leaf.issuer().as_raw() == ca.subject().as_raw()
        && (signer.is_none() || own.is_none() || signer == own)
}

fn pems(bytes: &[u8]) -> Vec<Pem> {
    Pem::iter_from_buffer(bytes).filter_map(Result::ok).collect()
}

/// A part of the world, or a line about why it is missing.
fn part(read: Read<Vec<Value>>, what: &str, not_read: &mut Vec<NotRead>) -> Vec<Value> {
    match read {
        Read::Known(items) => items,
        Read::Absent => Vec::new(),
        Read::Unknown(why) => {
            not_read.push(NotRead { what: what.to_owned(), why });
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests;
