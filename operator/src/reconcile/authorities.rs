//! The CA of a namespace: made when there is none, published to all pods, and replaced in three steps, each of which
//! waits until every pod is ready for it: announced, then used, and the old one trusted until no pod shows a
//! certificate of it any more. The steps themselves are in `opensdn_pki::rotation`. Beside it pods trust the CAs of a signer
//! (`signer`), and those of before as long as one of them has a certificate by these.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use opensdn_crds::component::Component;
use opensdn_pki::rotation::advance;
use opensdn_pki::{
    Authorities, Authority, CaProfile, CaSecret, GivenError, Published, Rotation, SecretSpec,
    SecretState, bundle, check_trusted, leaf,
};
use opensdn_runtime::apply::WriteOutcome;
use opensdn_runtime::call::CallError;
use serde_json::json;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use super::fetch::{CLOCKS_DIFFER, Fetched};
use super::{Context, Error, apply, signer};
use crate::build::certificates::parts;
use crate::build::digest;
use crate::cache::Cache;
use crate::components;
use crate::kind::Kind;
use crate::names;
use crate::node::Node;
use crate::object::{controller_of, created};
use crate::pod::Pod;

/// Until every kubelet has brought a new bundle into its pods, and every daemon has been started again for it.
const SETTLE: Duration = Duration::minutes(10);
/// How long a CA is trusted of which no certificate is in place any more: as one of the namespace is (`Rotation::overlap`).
const LEAVES_AFTER: Duration = Duration::days(1);
/// How long a step waits before it looks again.
pub(super) const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_secs(60);

/// What is known of the CA in the cache.
fn state(cache: &Cache, namespace: &str) -> Option<SecretState> {
    let stored = cache.get(Kind::Secret, namespace, names::CA_SECRET)?;
    let secret: Secret = serde_json::to_value(&*stored).and_then(serde_json::from_value).ok()?;
    Some(opensdn_pki::parse(&secret))
}

fn rotation(given: Option<Authority>) -> Rotation {
    Rotation { settle: SETTLE, given, ..Rotation::new(CaProfile::new("OpenSDN CA")) }
}

/// The CA that a user gives for the namespace.
fn given(
    cache: &Cache,
    namespace: &str,
    current: Option<&Authority>,
    now: OffsetDateTime,
) -> Result<Option<Authority>, GivenError> {
    let Some(secret) = cache.get(Kind::GivenCa, namespace, names::GIVEN_CA_SECRET) else {
        return Ok(None);
    };
    let (certificates, key) = certificates_and_key(&secret);
    if key.is_empty() && signer::is_used_in(cache, namespace) {
        // They are those of the signer.
        return Ok(None);
    }
    // What is in use was looked at when it became so.
    match current.filter(|current| current.certificate() == certificates) {
        Some(current) if current.not_after() <= now => {
            Err(GivenError::Expired(current.not_after().date()))
        }
        Some(current) => Ok(Some(current.clone())),
        None => opensdn_pki::given(&certificates, &key, now).map(Some),
    }
}

/// What the Secret has: in the keys of tf-operator, else in those of a TLS Secret, as cert-manager writes it for a Certificate
/// with `isCA`.
fn certificates_and_key(secret: &DynamicObject) -> (String, String) {
    let text = |key: &str| {
        let value = secret.data.get("data")?.get(key)?.clone();
        let bytes: ByteString = serde_json::from_value(value).ok()?;
        String::from_utf8(bytes.0).ok()
    };
    let of_tf = (text(names::GIVEN_CA_CERTIFICATE), text(names::GIVEN_CA_KEY));
    if let (None, None) = of_tf {
        let mut chain = text(names::TLS_CERTIFICATE).unwrap_or_default();
        let root = text(names::TLS_ROOT).unwrap_or_default();
        // A root of its own is there twice.
        if !chain.contains(root.trim()) {
            if !chain.ends_with('\n') {
                chain.push('\n');
            }
            chain.push_str(&root);
        }
        return (chain, text(names::TLS_KEY).unwrap_or_default());
    }
    (of_tf.0.unwrap_or_default(), of_tf.1.unwrap_or_default())
}

/// The certificates of the CAs of signers that are asked in the namespace, each in PEM. What OpenSSL does not read would have it trust
/// none of the others, so none is taken of what is no good.
///
/// # Errors
/// What a user gives as such is none.
pub(super) fn of_signers(
    cache: &Cache,
    namespace: &str,
    now: OffsetDateTime,
) -> Result<Vec<String>, GivenError> {
    if !signer::is_used_in(cache, namespace) {
        return Ok(Vec::new());
    }
    let secret = cache.get(Kind::GivenCa, namespace, names::GIVEN_CA_SECRET);
    let text = secret.map(|secret| certificates_and_key(&secret).0).unwrap_or_default();
    if text.len() > opensdn_pki::given::MOST_BYTES {
        return Err(GivenError::TooMany);
    }
    let certificates = bundle::certificates(&text);
    let (valid, others): (Vec<_>, Vec<_>) =
        certificates.into_iter().partition(|ca| bundle::end(ca).is_none_or(|end| end > now));
    // One that has ended keeps none of the others from being used, unless these need it.
    let checked = if valid.is_empty() { &others } else { &valid };
    check_trusted(checked, now).map(|()| valid)
}

fn secret(ctx: &Context, namespace: &str, rotation: Rotation) -> CaSecret {
    let spec = SecretSpec {
        namespace: namespace.to_owned(),
        name: names::CA_SECRET.to_owned(),
        labels: names::managed(BTreeMap::new()),
        field_manager: names::OPERATOR.to_owned(),
    };
    CaSecret::new(ctx.client.clone(), spec, rotation)
}

/// The CA of the namespace: from the cache, else the one that is given, else made. It continues a rotation, if one is due
/// and the pods are ready for its next step. A CA that is given and cannot be used is returned as an error beside the one
/// that is in use: what runs is kept so, and repaired.
pub(super) async fn obtain(
    ctx: &Context,
    fetched: &Fetched,
) -> Result<(Authorities, Option<GivenError>), Error> {
    let namespace = fetched.namespace();
    let state = state(&ctx.cache, &namespace).unwrap_or(SecretState::Missing);
    let now = OffsetDateTime::now_utc();
    let current = match &state {
        SecretState::Complete { authorities, .. } => Some(&authorities.current),
        _ => None,
    };
    let (given, refused) = match given(&ctx.cache, &namespace, current, now) {
        Ok(given) => (given, None),
        Err(error) => match current.filter(|current| current.not_after() > now) {
            Some(current) => (Some(current.clone()), Some(error)),
            None => return Err(error.into()),
        },
    };
    let rotation = rotation(given);
    let secret = secret(ctx, &namespace, rotation.clone());
    let SecretState::Complete { authorities, .. } = &state else {
        return Ok((secret.obtain().await.map_err(Error::Ca)?, refused));
    };
    let trust = fetched.trust.as_deref();
    let Some(next) = next(&ctx.cache, &namespace, trust, &state, now, &rotation)? else {
        return Ok((authorities.clone(), refused));
    };
    let snapshot = secret.read().await.map_err(Error::Ca)?;
    // As it was when that was decided: no other replica or pass has taken the step.
    let is_same = matches!(&snapshot.state, SecretState::Complete { authorities: stored, .. } if stored == authorities);
    if !is_same
        || secret.write(&snapshot, &next, now).await.map_err(Error::Ca)? != WriteOutcome::Stored
    {
        return Ok((authorities.clone(), refused));
    }
    tracing::info!(
        namespace,
        announced = next.next.is_some(),
        previous_trusted = next.previous.is_some(),
        "CA rotation advanced"
    );
    Ok((next, refused))
}

/// Whether the CA in use is the one that a user gives for the namespace, tf-operator's for example.
pub(super) fn uses_given(
    cache: &Cache,
    namespace: &str,
    authorities: &Authorities,
    now: OffsetDateTime,
) -> bool {
    let current = &authorities.current;
    // Its text may differ: other ends of lines, or more than certificates.
    let given = given(cache, namespace, Some(current), now);
    given.is_ok_and(|given| given.is_some_and(|ca| ca.certificate() == current.certificate()))
}

/// Whether it has to be looked at again without any event.
pub(super) fn is_rotating(authorities: &Authorities) -> bool {
    authorities.next.is_some() || authorities.previous.is_some()
}

/// What the Secret is to hold next, if its time has come.
fn next(
    cache: &Cache,
    namespace: &str,
    trust: Option<&DynamicObject>,
    state: &SecretState,
    now: OffsetDateTime,
    rotation: &Rotation,
) -> Result<Option<Authorities>, Error> {
    let advance = |published: Option<&Published>| {
        advance(state, published, now, rotation).map_err(Error::Certificates)
    };
    let SecretState::Complete { authorities, .. } = state else { return advance(None) };
    // Only an announced CA waits for the pods: at other times they are not looked through.
    let trust = trust.filter(|_| authorities.next.is_some());
    let published = trust.and_then(|trust| published(cache, namespace, trust));
    // Other CAs may be trusted beside them.
    let published = published.map(|published| match authorities.bundle() {
        ours if bundle::has_all(&published.bundle, &ours) => {
            Published { bundle: ours, ..published }
        }
        _ => published,
    });
    let next = advance(published.as_ref())?;
    let is_last = authorities.previous.is_some()
        && next.as_ref().is_some_and(|next| next.previous.is_none() && next.next.is_none());
    // A pod would be left with what no other trusts.
    let is_free = || {
        let previous =
            authorities.previous.iter().flat_map(|ca| bundle::certificates(ca)).collect::<Vec<_>>();
        !any_is_issued_by(cache, namespace, &previous)
    };
    Ok(next.filter(|_| !is_last || is_free()))
}

/// The bundle that all pods have, since when. None, while one of them may not have it: it is not ready, or reads it only
/// when it starts and was started before.
fn published(cache: &Cache, namespace: &str, trust: &DynamicObject) -> Option<Published> {
    let bundle = trust.data.get("data")?.get(names::TRUST_KEY)?.as_str()?.to_owned();
    let since = published_since(trust)?;
    let all: Vec<_> = cache
        .list(Kind::Pod, namespace)
        .into_iter()
        .filter(|pod| is_kept_by_us(cache, namespace, pod))
        .collect();
    let has_it = |pod: &Arc<DynamicObject>| {
        Pod::of(pod).is_ready
            && (!reads_once(pod) || created(pod).is_some_and(|created| created >= since))
    };
    all.iter().all(has_it).then_some(Published { bundle, since })
}

/// Which pod may not trust the CAs (each in PEM) yet, and why: a pod has what was published before it was made; an older one, when its
/// kubelet has brought it there, unless it reads that only when it starts. None, where all do. One that ends, or is on a node that is
/// lost, is not waited for.
pub(super) fn do_not_trust(
    cache: &Cache,
    namespace: &str,
    cas: &[String],
    now: OffsetDateTime,
) -> Option<String> {
    let trust = cache.get(Kind::ConfigMap, namespace, names::TRUST);
    let has_all = |trust: &Arc<DynamicObject>| {
        let there = bundle::certificates(trusted_by_pods(trust));
        cas.iter().all(|ca| there.contains(ca))
    };
    let Some(trust) = trust.filter(has_all) else {
        return Some("they are not published yet".to_owned());
    };
    let since = published_since(&trust)?;
    let has_waited = now - since >= SETTLE;
    let is_lost = |name: &str| {
        let node = cache.get(Kind::Node, "", name);
        node.is_some_and(|node| Node::of(&node).is_lost)
    };
    let pods = cache.list(Kind::Pod, namespace);
    let pods = pods.iter().filter(|pod| is_kept_by_us(cache, namespace, pod));
    let mut late = pods.filter(|pod| {
        let is_older = created(pod).is_none_or(|created| created < since);
        let is_waited_for = || {
            let seen = Pod::of(pod);
            !seen.is_going && !is_lost(&seen.node)
        };
        is_older && (!has_waited || reads_once(pod)) && is_waited_for()
    });
    let late = late.next()?;
    Some(match reads_once(late) {
        true => format!("pod {} has to start again for it", late.name_any()),
        false => {
            format!("pods have them {} minutes after they were published", SETTLE.whole_minutes())
        }
    })
}

/// Whether what the pod runs reads certificates only when it starts.
fn reads_once(pod: &DynamicObject) -> bool {
    let word = pod.labels().get(names::TYPE);
    let component = word.and_then(|word| components::of_word(word));
    component.is_some_and(|component| component.reads_certificates_once())
}

/// What pods trust, as it is published.
fn trusted_by_pods(trust: &DynamicObject) -> &str {
    let text = trust.data.get("data").and_then(|data| data.get(names::TRUST_KEY));
    text.and_then(serde_json::Value::as_str).unwrap_or_default()
}

/// Whether what keeps the pod is the operator's. Labels anybody can set.
fn is_kept_by_us(cache: &Cache, namespace: &str, pod: &DynamicObject) -> bool {
    let Some(owner) = controller_of(pod) else { return false };
    [Kind::StatefulSet, Kind::DaemonSet].iter().any(|kind| {
        let keeper = cache.get(*kind, namespace, &owner.name);
        keeper.is_some_and(|keeper| keeper.metadata.uid.as_ref() == Some(&owner.uid))
    })
}

/// Since when the bundle is published. Of the first one it is when the API server has made the ConfigMap: by the same clock no pod is
/// older that has ever had one.
pub(super) fn published_since(trust: &DynamicObject) -> Option<OffsetDateTime> {
    let said = trust.annotations().get(names::PUBLISHED);
    let said = said.and_then(|said| OffsetDateTime::parse(said, &Rfc3339).ok());
    said.or_else(|| created(trust))
}

/// Whether a pod shows a certificate of one of these CAs (each in PEM).
fn any_is_issued_by(cache: &Cache, namespace: &str, authorities: &[String]) -> bool {
    let secrets = cache.list(Kind::Secret, namespace);
    // Anyone who may make Secrets can give them our label; these are of components that there are.
    let is_of_component = |secret: &DynamicObject| {
        let owner = controller_of(secret);
        let kind = owner.and_then(|owner| Component::of_kind(&owner.kind)).map(|facts| facts.kind);
        owner.zip(kind).is_some_and(|(owner, kind)| {
            let there = cache.get(Kind::Component(kind), namespace, &owner.name);
            there.is_some_and(|there| there.metadata.uid.as_ref() == Some(&owner.uid))
        })
    };
    let of_pods = secrets.iter().filter(|secret| {
        parts::is_of(&secret.name_any(), names::CERTIFICATES) && is_of_component(secret)
    });
    let data = of_pods.filter_map(|secret| secret.data.get("data")?.as_object());
    let mut certificates = data.flatten().filter(|(key, _)| key.ends_with(".crt"));
    certificates.any(|(_, value)| {
        let bytes: Option<ByteString> = serde_json::from_value(value.clone()).ok();
        let pem = bytes.and_then(|bytes| String::from_utf8(bytes.0).ok()).unwrap_or_default();
        authorities.iter().any(|ca| leaf::is_issued_by(&pem, ca).unwrap_or(false))
    })
}

/// What pods are to trust.
#[derive(Debug, PartialEq, Eq)]
struct Trust {
    /// In PEM.
    bundle: String,
    /// CAs among them that have issued nothing of what is in place any more, by their digests, since when.
    leaving: BTreeMap<String, OffsetDateTime>,
}

/// The CAs of the namespace, those of its signers, and those of before as long as one of these has issued what a pod shows, and a day
/// more, in which all pods have what came after: of a chain none is trusted without the others.
fn to_be_trusted(
    cache: &Cache,
    namespace: &str,
    authorities: &Authorities,
    published: Option<&DynamicObject>,
    now: OffsetDateTime,
) -> Trust {
    // What is wrong with those that are given is said where they are needed.
    let signers = of_signers(cache, namespace, now).unwrap_or_default();
    let wanted = bundle::with(&authorities.bundle(), &signers);
    if published.is_some_and(|trust| trusted_by_pods(trust) == wanted) {
        return Trust { bundle: wanted, leaving: BTreeMap::new() };
    }
    let as_published = |bundle: String| in_its_order(bundle, published.map(trusted_by_pods));
    let there = bundle::certificates(&wanted);
    let before = published.map(|trust| bundle::certificates(trusted_by_pods(trust)));
    let before = before.unwrap_or_default().into_iter();
    let mut before: Vec<String> = before
        .filter(|ca| !there.contains(ca) && bundle::is_readable(ca))
        .filter(|ca| bundle::end(ca).is_some_and(|end| end > now))
        .take(opensdn_pki::given::MOST)
        .collect();
    if before.is_empty() {
        return Trust { bundle: as_published(wanted), leaving: BTreeMap::new() };
    }
    let mut leaving = BTreeMap::new();
    if !any_is_issued_by(cache, namespace, &before) {
        let since = published.map(leaving_since).unwrap_or_default();
        let key = |ca: &String| digest([ca.as_bytes()]);
        let since = |ca: &String| since.get(&key(ca)).copied().filter(|at| *at <= now);
        before.retain(|ca| since(ca).is_none_or(|since| now - since < LEAVES_AFTER));
        leaving = before.iter().map(|ca| (key(ca), since(ca).unwrap_or(now))).collect();
    }
    Trust { bundle: as_published(bundle::with(&wanted, &before)), leaving }
}

/// The bundle as it is published, where only the order differs: for another text every daemon would be started again.
fn in_its_order(bundle: String, published: Option<&str>) -> String {
    let sorted = |text: &str| {
        let mut all = bundle::certificates(text);
        all.sort_unstable();
        all
    };
    match published {
        // Of one that has more than certificates the length differs.
        Some(there) if there.len() == bundle.len() && sorted(there) == sorted(&bundle) => {
            there.to_owned()
        }
        _ => bundle,
    }
}

/// What is written of [`Trust::leaving`]: nothing of what cannot be read.
fn leaving_since(trust: &DynamicObject) -> BTreeMap<String, OffsetDateTime> {
    let said = trust.annotations().get(names::LEAVING);
    let said = said.and_then(|said| serde_json::from_str::<BTreeMap<String, String>>(said).ok());
    let read = |at: &str| OffsetDateTime::parse(at, &Rfc3339).ok();
    let said = said.unwrap_or_default().into_iter();
    said.filter_map(|(ca, at)| Some((ca, read(&at)?))).collect()
}

/// Has all pods of the namespace trust the CAs, and returns these.
pub(super) async fn publish(
    ctx: &Context,
    fetched: &Fetched,
    authorities: &Authorities,
) -> Result<String, CallError> {
    let now = OffsetDateTime::now_utc();
    let published = fetched.trust.as_deref();
    let wanted = to_be_trusted(&ctx.cache, &fetched.namespace(), authorities, published, now);
    let since = published.and_then(published_since);
    let is_same = published.is_some_and(|trust| trusted_by_pods(trust) == wanted.bundle)
        // Of a time that is yet to come every member would have to start again, until then.
        && since.is_some_and(|since| since <= now + CLOCKS_DIFFER);
    let leaving: BTreeMap<&String, String> = wanted
        .leaving
        .iter()
        .map(|(ca, at)| (ca, at.format(&Rfc3339).unwrap_or_default()))
        .collect();
    if is_same && published.map(leaving_since).unwrap_or_default() == wanted.leaving {
        return Ok(wanted.bundle);
    }
    let mut annotations = BTreeMap::new();
    let at = match published {
        Some(trust) if is_same => trust.annotations().get(names::PUBLISHED).cloned(),
        Some(_) => Some(super::now()),
        None => None,
    };
    annotations.extend(at.map(|at| (names::PUBLISHED.to_owned(), at)));
    if !leaving.is_empty() {
        let leaving = json!(leaving).to_string();
        annotations.insert(names::LEAVING.to_owned(), leaving);
    }
    let mut trust = DynamicObject::new(names::TRUST, &ApiResource::erase::<ConfigMap>(&()));
    trust.metadata.namespace = fetched.object.namespace();
    trust.metadata.labels = Some(names::managed(BTreeMap::new()));
    trust.metadata.annotations = Some(annotations);
    trust.data = json!({"data": {(names::TRUST_KEY): wanted.bundle}});
    apply::write(&ctx.writer, &ctx.cache, Kind::ConfigMap, &trust).await?;
    Ok(wanted.bundle)
}

#[cfg(test)]
mod tests;
