//! The Secret with the passwords of a component: what its settings say, else what is stored, else random letters.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::DynamicObject;

use super::Owner;
use super::certificates::Data;
use crate::component::Password;

const LETTERS: &[u8; 52] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The system gives no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("make a password: the system gives no random bytes")]
pub struct NoRandomness;

/// The keys of the Secret. `random` fills a buffer.
///
/// # Errors
/// It cannot.
pub fn passwords(
    stored: Option<&DynamicObject>,
    wanted: &[Password],
    mut random: impl FnMut(&mut [u8]) -> Result<(), NoRandomness>,
) -> Result<Data, NoRandomness> {
    let stored: Data = stored
        .and_then(|secret| secret.data.get("data"))
        .and_then(|data| serde_json::from_value(data.clone()).ok())
        .unwrap_or_default();
    let mut all = Data::new();
    for Password { key, given, letters } in wanted {
        let given = given.as_ref().filter(|given| !given.is_empty());
        let given = given.map(|given| ByteString(given.as_bytes().to_vec()));
        let stored = || stored.get(*key).filter(|value| !value.0.is_empty()).cloned();
        let value = match given.or_else(stored) {
            Some(value) => value,
            None => word(*letters, &mut random)?,
        };
        all.insert((*key).to_owned(), value);
    }
    Ok(all)
}

fn word(
    letters: usize,
    random: &mut impl FnMut(&mut [u8]) -> Result<(), NoRandomness>,
) -> Result<ByteString, NoRandomness> {
    let mut word = Vec::with_capacity(letters);
    let mut byte = [0];
    while word.len() < letters {
        random(&mut byte)?;
        // Each letter as often as any other: of 256 values the last 48 are left out.
        let [value] = byte;
        if let Some(letter) = (value < 208).then(|| LETTERS.get(usize::from(value) % 52)).flatten()
        {
            word.push(*letter);
        }
    }
    Ok(ByteString(word))
}

/// None where the component has none.
pub(super) fn build(owner: &Owner<'_>, data: Data) -> Option<Secret> {
    (!owner.valid.description.passwords.is_empty()).then(|| Secret {
        metadata: owner.metadata(owner.valid.own_secret()),
        data: Some(data),
        ..Secret::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wanted(given: Option<&str>) -> [Password; 2] {
        [
            Password { key: "user", given: given.map(str::to_owned), letters: 8 },
            Password { key: "password", given: None, letters: 32 },
        ]
    }

    fn text(data: &Data, key: &str) -> String {
        String::from_utf8(data[key].0.clone()).unwrap()
    }

    /// Counts through all values of a byte.
    fn counting() -> impl FnMut(&mut [u8]) -> Result<(), NoRandomness> {
        let mut next = 0_u8;
        move |bytes| {
            for byte in bytes {
                *byte = next;
                next = next.wrapping_add(1);
            }
            Ok(())
        }
    }

    #[test]
    fn what_is_given_wins_and_what_is_stored_stays() {
        let first = passwords(None, &wanted(None), counting()).unwrap();
        assert_eq!((text(&first, "user").len(), text(&first, "password").len()), (8, 32));
        let stored: DynamicObject =
            serde_json::from_value(json!({"metadata": {"name": "a"}, "data": first})).unwrap();
        let again = passwords(Some(&stored), &wanted(None), |_| Err(NoRandomness)).unwrap();
        assert_eq!(again, first);
        let given =
            passwords(Some(&stored), &wanted(Some("admin")), |_| Err(NoRandomness)).unwrap();
        assert_eq!(text(&given, "user"), "admin");
        assert_eq!(given["password"], first["password"]);
        let none = passwords(Some(&stored), &wanted(Some("")), |_| Err(NoRandomness)).unwrap();
        assert_eq!(none, first, "an empty value is none");
        assert!(passwords(None, &wanted(None), |_| Err(NoRandomness)).is_err());
    }

    #[test]
    fn every_letter_is_as_likely_as_every_other() {
        let one = [Password { key: "a", given: None, letters: 208 }];
        let word = text(&passwords(None, &one, counting()).unwrap(), "a");
        for letter in LETTERS {
            assert_eq!(word.bytes().filter(|one| one == letter).count(), 4);
        }
    }
}
