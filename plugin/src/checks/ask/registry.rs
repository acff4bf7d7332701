//! Asks registries whether they have the images of Managers: by HEAD, which counts as no pull, with the logins of this
//! machine. Nothing is pulled, and what takes long is not waited for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::iter;
use tokio::time::{Instant, timeout_at};

use crate::checks::registry::AtRegistry;
use crate::oci::credentials::Credentials;
use crate::oci::error::Error;
use crate::oci::http::Http;
use crate::oci::reference::Reference;
use crate::oci::registry::Registries;

/// For one image.
const IMAGE: Duration = Duration::from_secs(5);
/// For all of them.
const ALL: Duration = Duration::from_secs(20);
/// So many are asked for: a Manager with each component has about forty.
const MOST: usize = 128;
/// Registries, and images of one, that are asked at once.
const AT_ONCE: usize = 4;

/// What registries say of each image.
pub(crate) async fn registry(images: BTreeSet<String>) -> BTreeMap<String, AtRegistry> {
    let http = Http::new(None, &[]);
    let registries = http.and_then(|http| Ok(Registries::new(http, Credentials::of_user()?)));
    let registries = match registries {
        Ok(registries) => registries,
        Err(error) => {
            let why = error.to_string();
            return images.into_iter().map(|one| (one, AtRegistry::Unknown(why.clone()))).collect();
        }
    };
    by_host(&registries, images, Instant::now() + ALL).await
}

async fn by_host(
    registries: &Registries,
    images: BTreeSet<String>,
    end: Instant,
) -> BTreeMap<String, AtRegistry> {
    let mut said = BTreeMap::new();
    let mut hosts: BTreeMap<String, Vec<(String, Reference)>> = BTreeMap::new();
    for (number, image) in images.into_iter().enumerate() {
        match image.parse::<Reference>() {
            Ok(_) if number >= MOST => {
                said.insert(image, AtRegistry::Unknown(format!("only {MOST} are asked for")));
            }
            Ok(reference) => {
                hosts.entry(reference.host.clone()).or_default().push((image, reference));
            }
            Err(why) => {
                said.insert(image, AtRegistry::Unknown(why));
            }
        }
    }
    let of_hosts = iter(hosts.into_values()).map(|of_host| host(registries, of_host, end));
    let of_hosts: Vec<Vec<(String, AtRegistry)>> =
        of_hosts.buffer_unordered(AT_ONCE).collect().await;
    said.extend(of_hosts.into_iter().flatten());
    said
}

/// A registry that does not answer for the first image is not asked for the others.
async fn host(
    registries: &Registries,
    mut of_host: Vec<(String, Reference)>,
    end: Instant,
) -> Vec<(String, AtRegistry)> {
    let Some((image, reference)) = of_host.pop() else { return Vec::new() };
    let mut said = match one(registries, &reference, end).await {
        Ok(first) => vec![(image, first)],
        Err(why) => {
            let all = of_host.into_iter().map(|(image, _)| image).chain([image]);
            return all.map(|image| (image, AtRegistry::Unknown(why.clone()))).collect();
        }
    };
    let others = iter(of_host).map(async |(image, reference)| {
        let answer = one(registries, &reference, end).await;
        (image, answer.unwrap_or_else(AtRegistry::Unknown))
    });
    let others: Vec<(String, AtRegistry)> = others.buffer_unordered(AT_ONCE).collect().await;
    said.extend(others);
    said
}

/// # Errors
/// The registry does not answer, and why.
async fn one(registries: &Registries, of: &Reference, end: Instant) -> Result<AtRegistry, String> {
    let end = end.min(Instant::now() + IMAGE);
    let answer = timeout_at(end, registries.has_manifest(of)).await;
    let answer = answer.map_err(|_| format!("{} did not answer in time", of.host))?;
    match answer {
        Ok(true) => Ok(AtRegistry::Present),
        Ok(false) => Ok(AtRegistry::Absent),
        Err(
            error @ (Error::Connect { .. }
            | Error::TimedOut { .. }
            | Error::BrokeOff { .. }
            | Error::Credentials { .. }),
        ) => Err(error.to_string()),
        Err(error) => Ok(AtRegistry::Unknown(error.to_string())),
    }
}

#[cfg(test)]
mod tests;
