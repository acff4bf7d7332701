//! The certificates of many addresses are in several Secrets: the API server takes none of more than 1 MiB, and the four files of an
//! address have 5 KB with RSA keys of 2,048 bits (measured here). Where an address was it stays, so that no file is missing in a pod
//! while one Secret is written and the other not yet; who comes is put into the first with room. So a small cluster has one
//! Secret, that of tf-operator.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use kube::api::DynamicObject;

use super::{Data, SIDES, Stored, Subject, keys, since_key};
use crate::kind::Workload;

/// A pod of a DaemonSet has so many of them in its volume, whether they are there or not: another template would have all pods
/// recreated. Enough for 1,700 nodes with keys of 2,048 bits, and for 900 with 4,096.
pub(in crate::build) const MOST: usize = 10;

/// What the API server takes, without what it adds of its own.
const MOST_BYTES: usize = 900 << 10;

/// The name of a part, by that of the first.
#[must_use]
pub(in crate::build) fn name(first: &str, number: usize) -> String {
    match number {
        0 => first.to_owned(),
        number => format!("{first}-{}", number + 1),
    }
}

/// Whether a Secret of that name is one with certificates of pods, `suffix` being the end of the name of the first.
pub(crate) fn is_of(name: &str, suffix: &str) -> bool {
    let is_number = |text: &str| text.parse::<usize>().is_ok();
    let first = match name.rsplit_once('-') {
        Some((first, number)) if is_number(number) => first,
        _ => name,
    };
    first.ends_with(suffix) || name.ends_with(suffix)
}

/// The names of those that pods of that workload mount.
pub(crate) fn names(first: &str, workload: Workload) -> impl Iterator<Item = String> {
    let number = match workload {
        Workload::StatefulSet => 1,
        Workload::DaemonSet => MOST,
    };
    (0..number).map(move |number| name(first, number))
}

/// Those that are there, up to the last.
pub(crate) fn stored<'a>(all: impl Iterator<Item = Option<&'a DynamicObject>>) -> Vec<Stored> {
    let all: Vec<_> = all.collect();
    let number = all.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    all.into_iter().take(number).map(|one| one.map(Stored::of).unwrap_or_default()).collect()
}

/// Whether an address has nothing in any of them.
pub(crate) fn lacks(stored: &[Stored], subjects: &[Subject]) -> bool {
    subjects.iter().any(|subject| !stored.iter().any(|part| part.has(subject)))
}

/// Puts what each address has into the Secrets. `before` is what they have now. None, if it does not fit.
pub(crate) fn split<'a>(
    addresses: impl Iterator<Item = &'a str>,
    mut all: Data,
    before: &[Stored],
) -> Option<Vec<Data>> {
    let mut parts = vec![Data::new(); before.len().max(1)];
    let mut sizes = vec![0; parts.len()];
    let mut homeless = Vec::new();
    let mut own: BTreeMap<&str, Vec<(String, ByteString)>> = BTreeMap::new();
    for address in addresses {
        let keys = SIDES.iter().flat_map(|(side, _)| {
            let (certificate, key) = keys(side, address);
            [certificate, key, since_key(side, address)]
        });
        own.insert(address, keys.filter_map(|key| all.remove_entry(&key)).collect());
    }
    let put = |parts: &mut [Data], sizes: &mut [usize], number: usize, files: Vec<_>| {
        if let Some((part, size)) = parts.get_mut(number).zip(sizes.get_mut(number)) {
            *size += bytes(&files);
            part.extend(files);
        }
    };
    for files in own.into_values() {
        let was_in =
            before.iter().position(|part| files.iter().any(|(key, _)| part.data.contains_key(key)));
        match was_in {
            Some(number)
                if sizes.get(number).is_some_and(|size| size + bytes(&files) <= MOST_BYTES) =>
            {
                put(&mut parts, &mut sizes, number, files);
            }
            _ => homeless.push(files),
        }
    }
    for files in homeless {
        let free = sizes.iter().position(|size| size + bytes(&files) <= MOST_BYTES);
        let number = free.unwrap_or(parts.len());
        if number == parts.len() {
            parts.push(Data::new());
            sizes.push(0);
        }
        put(&mut parts, &mut sizes, number, files);
    }
    (parts.len() <= MOST).then_some(parts)
}

fn bytes(files: &[(String, ByteString)]) -> usize {
    files.iter().map(|(_, value)| value.0.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: usize = 1300;

    fn addresses(number: usize) -> Vec<String> {
        (0..number).map(|one| format!("192.0.{}.{}", one / 250, one % 250)).collect()
    }

    fn data(addresses: &[String]) -> Data {
        let files = addresses.iter().flat_map(|address| {
            SIDES.iter().flat_map(|(side, _)| <[String; 2]>::from(keys(side, address)))
        });
        files.map(|key| (key, ByteString(vec![0; FILE]))).collect()
    }

    fn split_of(addresses: &[String], before: &[Data]) -> Option<Vec<Data>> {
        let before: Vec<Stored> =
            before.iter().map(|data| Stored { data: data.clone(), asked: None }).collect();
        split(addresses.iter().map(String::as_str), data(addresses), &before)
    }

    #[test]
    fn a_thousand_nodes_have_secrets_that_the_api_server_takes() {
        let nodes = addresses(1000);
        let parts = split_of(&nodes, &[]).unwrap();
        assert!(parts.len() > 1 && parts.len() <= MOST, "{}", parts.len());
        for part in &parts {
            let size: usize = part.values().map(|value| value.0.len()).sum();
            assert!(size <= MOST_BYTES && part.len() % 4 == 0, "{size}");
        }
        assert_eq!(parts.iter().map(Data::len).sum::<usize>(), 4 * nodes.len());
        assert!(split_of(&addresses(3), &[]).unwrap().len() == 1, "few are in one");
        assert!(split_of(&addresses(2000), &[]).is_none(), "and too many are no half of them");
    }

    #[test]
    fn who_has_a_place_keeps_it_and_who_comes_gets_what_is_free() {
        let nodes = addresses(500);
        let before = split_of(&nodes, &[]).unwrap();
        let fewer: Vec<String> =
            nodes.iter().filter(|one| !one.starts_with("192.0.0.")).cloned().collect();
        let after = split_of(&fewer, &before).unwrap();
        assert_eq!(after.len(), before.len(), "one that is empty is written as such");
        for (after, before) in after.iter().zip(&before) {
            assert!(after.keys().all(|key| before.contains_key(key)));
        }
        let again = split_of(&nodes, &after).unwrap();
        assert_eq!(again.len(), before.len());
        assert!(fewer.iter().all(|address| {
            let key = keys("server", address).0;
            again.iter().position(|part| part.contains_key(&key))
                == after.iter().position(|part| part.contains_key(&key))
        }));
    }

    #[test]
    fn names_of_parts_are_known_as_such() {
        let suffix = "-secret-certificates";
        assert_eq!(
            (name("a-secret-certificates", 0), name("a-secret-certificates", 9)),
            ("a-secret-certificates".to_owned(), "a-secret-certificates-10".to_owned())
        );
        for (name, is) in [
            ("a-secret-certificates", true),
            ("a-secret-certificates-2", true),
            ("a-secret-certificates-x", false),
            ("a-secret-2", false),
            ("contrail-ca-certificate", false),
        ] {
            assert_eq!(is_of(name, suffix), is, "{name}");
        }
    }
}
