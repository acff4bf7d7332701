//! The keys of certificates that a signer is asked for, in a Secret that no pod mounts: stored before the signer hears of one, as else
//! a request that is approved would be lost with the operator, and kept until the certificate is in place.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, ObjectMeta};
use opensdn_pki::{KeyKind, new_key, request};

use super::super::certificates::{make_keys, most_in_a_pass};
use super::super::fetch::Fetched;
use super::super::{Context, Error, apply};
use crate::build::certificates::{Asked, Data, Stored, Subject};
use crate::build::{Valid, intent, owner};
use crate::kind::Kind;
use crate::names;

/// The keys of what is asked for: those that are stored, and new ones for what has none that can be used, which are stored then.
/// Where these take long the next pass makes the rest.
///
/// # Errors
/// The Secret cannot be written, or a key cannot be made.
pub(super) async fn keys(
    ctx: &Context,
    fetched: &Fetched,
    valid: &Valid,
    (stored, subjects): (&[Stored], &[Subject]),
    asked: &[Asked],
) -> Result<BTreeMap<Asked, String>, Error> {
    let mut all = awaited(&stored_keys(fetched, valid), stored, subjects);
    let mut keys = BTreeMap::new();
    let mut left = most_in_a_pass(valid.key);
    for one in asked {
        let file = one.key_file();
        let key = match all.get(&file).and_then(|key| usable(key, valid.key)) {
            Some(key) => key,
            None if left == 0 => continue,
            None => {
                left -= 1;
                let kind = valid.key;
                make_keys(kind, move || new_key(kind)).await?
            }
        };
        all.insert(file, ByteString(key.clone().into_bytes()));
        keys.insert(one.clone(), key);
    }
    store(ctx, fetched, valid, all).await?;
    Ok(keys)
}

/// Forgets the keys that are not awaited any more. The Secret stays, empty: the operator may delete none.
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
    if secret(fetched, valid).is_none() {
        return Ok(());
    }
    store(ctx, fetched, valid, awaited(&stored_keys(fetched, valid), stored, subjects)).await
}

/// Forgets the keys of requests whose names others have taken: the next have other keys, and names that cannot be known before.
///
/// # Errors
/// The call fails.
pub(super) async fn forget_taken(
    ctx: &Context,
    fetched: &Fetched,
    valid: &Valid,
    (stored, subjects): (&[Stored], &[Subject]),
    taken: &[Asked],
) -> Result<(), Error> {
    let live = ctx.cache.get(Kind::Secret, &fetched.namespace(), &valid.instance.requests());
    let data = live.and_then(|secret| secret.data.get("data").cloned());
    let keys: Data = data.and_then(|data| serde_json::from_value(data).ok()).unwrap_or_default();
    let mut keys = awaited(&keys, stored, subjects);
    keys.retain(|file, _| taken.iter().all(|one| one.key_file() != *file));
    store(ctx, fetched, valid, keys).await
}

/// Writes the Secret, unless it is so: what another has put into it stays.
async fn store(ctx: &Context, fetched: &Fetched, valid: &Valid, keys: Data) -> Result<(), Error> {
    let wanted = Secret {
        metadata: ObjectMeta {
            name: Some(valid.instance.requests()),
            namespace: fetched.object.metadata.namespace.clone(),
            labels: Some(names::managed(valid.instance.labels())),
            owner_references: Some(vec![owner(&fetched.object)]),
            ..ObjectMeta::default()
        },
        data: Some(keys),
        ..Secret::default()
    };
    let intent = intent(Kind::Secret, &wanted)?;
    let live = secret(fetched, valid);
    if live.is_some_and(|live| apply::is_so(&intent.object, live)) {
        return Ok(());
    }
    Ok(apply::apply_one(&ctx.writer, &ctx.cache, fetched, &intent).await?)
}

fn secret<'a>(fetched: &'a Fetched, valid: &Valid) -> Option<&'a DynamicObject> {
    fetched.owned.get(&(Kind::Secret, valid.instance.requests())).map(|secret| &**secret)
}

fn stored_keys(fetched: &Fetched, valid: &Valid) -> Data {
    let data = secret(fetched, valid).and_then(|secret| secret.data.get("data").cloned());
    data.and_then(|data| serde_json::from_value(data).ok()).unwrap_or_default()
}

/// Those of addresses that there are, but for those whose certificate is in place.
fn awaited(keys: &Data, stored: &[Stored], subjects: &[Subject]) -> Data {
    let is_in_place =
        |file: &str, key: &ByteString| stored.iter().any(|part| part.data.get(file) == Some(key));
    let files = subjects.iter().flat_map(Asked::both).map(|asked| asked.key_file());
    let keys = files.filter_map(|file| keys.get_key_value(&file));
    let keys = keys.filter(|(file, key)| !is_in_place(file, key));
    keys.map(|(file, key)| (file.clone(), key.clone())).collect()
}

/// What is stored may be of the kind that images of another release need, or no key at all.
fn usable(key: &ByteString, kind: KeyKind) -> Option<String> {
    let key = String::from_utf8(key.0.clone()).ok()?;
    request::is_key(&key, kind).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(files: &[(&str, &str)]) -> Data {
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        files.iter().map(|(file, text)| ((*file).to_owned(), bytes(text))).collect()
    }

    #[test]
    fn a_key_is_awaited_until_its_certificate_is_in_place_or_its_address_is_gone() {
        let subject = |address: &str| Subject { address: address.to_owned(), host: None };
        let (both, one) = (["a", "b"].map(subject), ["b"].map(subject));
        let keys = data(&[
            ("server-key-a.pem", "1"),
            ("client-key-a.pem", "2"),
            ("server-key-b.pem", "3"),
            ("of-others", "4"),
        ]);
        let place =
            |files| vec![Stored { data: data(files), ..Stored::default() }, Stored::default()];
        let names = |stored: &[Stored], subjects: &[Subject]| -> Vec<String> {
            awaited(&keys, stored, subjects).into_keys().collect()
        };
        let all = ["client-key-a.pem", "server-key-a.pem", "server-key-b.pem"];
        assert_eq!(names(&[], &both), all);
        // It has the key of the certificate of before.
        assert_eq!(names(&place(&[("server-key-a.pem", "0")]), &both), all);
        let in_place = place(&[("server-key-a.pem", "1")]);
        assert_eq!(names(&in_place, &both), ["client-key-a.pem", "server-key-b.pem"]);
        assert_eq!(names(&in_place, &one), ["server-key-b.pem"]);
        assert_eq!(names(&in_place, &[]), [""; 0]);
    }

    #[test]
    fn a_stored_key_that_will_not_do_is_made_anew() {
        let bytes = |text: String| ByteString(text.into_bytes());
        let rsa = KeyKind::Rsa(opensdn_pki::RsaBits::Bits2048);
        let key = new_key(KeyKind::EcdsaP256).unwrap();
        assert_eq!(usable(&bytes(key.clone()), KeyKind::EcdsaP256), Some(key.clone()));
        assert_eq!(usable(&bytes(key), rsa), None);
        assert_eq!(usable(&ByteString(vec![0xFF]), rsa), None);
        assert_eq!(usable(&bytes("no key".to_owned()), KeyKind::EcdsaP256), None);
    }
}
