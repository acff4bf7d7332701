//! The CAs in a Secret: reading, and writing on condition that nothing has changed since it was
//! read, so that of two replicas that want to write one loses and takes what the other wrote.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::{Api, Client};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::timeout;

use super::rotation::{Authorities, Stored, Wish, advance};
use super::{Authority, read_certificate};

/// Any value of this annotation asks for a new CA; it is gone when the rotation has begun.
pub const ROTATE: &str = "opensdn.io/rotate-ca";

const CURRENT: (&str, &str) = ("ca.crt", "ca.key");
const NEXT: (&str, &str) = ("next.crt", "next.key");
const PREVIOUS: &str = "previous.crt";
const SINCE: &str = "since";
/// For people and other programs; not read.
const BUNDLE: &str = "ca-bundle.crt";
/// For one call to the API server.
const PATIENCE: Duration = Duration::from_secs(5);
/// So many times another replica may be faster before something else must be wrong.
const ATTEMPTS: usize = 10;

/// Why the Secret could not be read or written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error(
        "read or write Secret {name}; `get`, `watch`, `create` and `update` on it have to be granted"
    )]
    Call { name: String, source: kube::Error },
    #[error("read or write Secret {name}: the API server does not answer")]
    Silent { name: String },
    #[error("write Secret {name}: it changes again and again")]
    Contended { name: String },
    #[error("make a CA")]
    Make(#[source] super::Error),
}

/// The Secret that holds the CAs.
#[derive(Clone)]
pub struct CaSecret {
    pub(super) api: Api<Secret>,
    pub(super) name: String,
}

/// The Secret as it was found.
pub struct Found {
    /// What it means.
    pub stored: Stored,
    secret: Option<Secret>,
}

/// What became of an attempt to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is stored.
    Stored,
    /// Another replica was faster.
    Lost,
}

impl CaSecret {
    /// The Secret `name` in `namespace`.
    #[must_use]
    pub fn new(client: Client, namespace: &str, name: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), name: name.to_owned() }
    }

    /// The CAs; made if there are none, or none that can sign. However many replicas do this at
    /// once, all get the same.
    pub async fn obtain(&self) -> Result<Authorities, Error> {
        for _ in 0..ATTEMPTS {
            let now = OffsetDateTime::now_utc();
            let found = self.read().await?;
            if let Stored::Whole { authorities, .. } = found.stored {
                return Ok(authorities);
            }
            if let Some(made) = advance(&found.stored, None, now).map_err(Error::Make)?
                && self.write(&found, &made, now).await? == Written::Stored
            {
                return Ok(made);
            }
        }
        Err(Error::Contended { name: self.name.clone() })
    }

    /// Reads the Secret.
    pub async fn read(&self) -> Result<Found, Error> {
        let secret = self.call(self.api.get_opt(&self.name)).await?;
        let stored = secret.as_ref().map_or(Stored::Nothing, parse);
        Ok(Found { stored, secret })
    }

    /// Stores `authorities` if the Secret is still as it was `found`.
    pub async fn write(
        &self,
        found: &Found,
        authorities: &Authorities,
        now: OffsetDateTime,
    ) -> Result<Written, Error> {
        let mut secret = found.secret.clone().unwrap_or_default();
        secret.metadata.name = Some(self.name.clone());
        if let Some(annotations) = &mut secret.metadata.annotations {
            annotations.remove(ROTATE);
        }
        secret.data = Some(render(authorities, now));
        let params = PostParams::default();
        let done = if found.secret.is_some() {
            // It carries the resourceVersion that was read.
            self.call(self.api.replace(&self.name, &params, &secret)).await
        } else {
            self.call(self.api.create(&params, &secret)).await
        };
        match done {
            Ok(_) => Ok(Written::Stored),
            // Changed, made or deleted meanwhile.
            Err(Error::Call { source: kube::Error::Api(status), .. })
                if status.code == 409 || (status.code == 404 && found.secret.is_some()) =>
            {
                Ok(Written::Lost)
            }
            Err(error) => Err(error),
        }
    }

    async fn call<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, Error> {
        let name = || self.name.clone();
        match timeout(PATIENCE, call).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(source)) => Err(Error::Call { name: name(), source }),
            Err(_) => Err(Error::Silent { name: name() }),
        }
    }
}

/// What a Secret means.
#[must_use]
pub fn parse(secret: &Secret) -> Stored {
    let text = |key: &str| {
        let bytes = &secret.data.as_ref()?.get(key)?.0;
        String::from_utf8(bytes.clone()).ok()
    };
    let authority = |(certificate, key): (&str, &str)| {
        Authority::from_pem(&text(certificate)?, &text(key)?).ok()
    };
    let certificate = |key| text(key).filter(|pem| read_certificate(pem).is_ok());
    let Some(current) = authority(CURRENT) else {
        return Stored::Damaged { trusted: certificate(CURRENT.0) };
    };
    // A `since` that cannot be read makes an old phase look new, which only prolongs it.
    let since = text(SINCE).and_then(|text| OffsetDateTime::parse(&text, &Rfc3339).ok());
    let annotations = secret.metadata.annotations.as_ref();
    let asked = annotations.is_some_and(|all| all.contains_key(ROTATE));
    Stored::Whole {
        authorities: Authorities {
            current,
            next: authority(NEXT),
            previous: certificate(PREVIOUS),
        },
        since: since.unwrap_or_else(OffsetDateTime::now_utc),
        wish: if asked { Wish::Rotate } else { Wish::None },
    }
}

fn render(authorities: &Authorities, now: OffsetDateTime) -> BTreeMap<String, ByteString> {
    let Authorities { current, next, previous } = authorities;
    let mut data = BTreeMap::new();
    let mut put = |key: &str, text: &str| {
        data.insert(key.to_owned(), ByteString(text.as_bytes().to_vec()));
    };
    put(CURRENT.0, &current.certificate);
    put(CURRENT.1, &current.key);
    if let Some(next) = next {
        put(NEXT.0, &next.certificate);
        put(NEXT.1, &next.key);
    }
    if let Some(previous) = previous {
        put(PREVIOUS, previous);
    }
    put(SINCE, &now.format(&Rfc3339).unwrap_or_default());
    put(BUNDLE, &authorities.bundle());
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(authorities: &Authorities, now: OffsetDateTime) -> Secret {
        Secret { data: Some(render(authorities, now)), ..Secret::default() }
    }

    fn now() -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
    }

    #[test]
    fn reads_back_what_it_wrote_in_every_phase() {
        let settled = Authorities::first(now()).unwrap();
        let next = Some(Authority::create(now()).unwrap());
        let previous = Some(Authority::create(now()).unwrap().certificate().to_owned());
        for authorities in [
            settled.clone(),
            Authorities { next, ..settled.clone() },
            Authorities { previous, ..settled.clone() },
        ] {
            let Stored::Whole { authorities: read, since, wish } =
                parse(&secret(&authorities, now()))
            else {
                panic!("not whole");
            };
            assert_eq!((read, since, wish), (authorities, now(), Wish::None));
        }
    }

    #[test]
    fn sees_that_a_rotation_is_asked_for() {
        let mut secret = secret(&Authorities::first(now()).unwrap(), now());
        secret.metadata.annotations = Some([(ROTATE.to_owned(), String::new())].into());
        assert!(matches!(parse(&secret), Stored::Whole { wish: Wish::Rotate, .. }));
    }

    #[test]
    fn a_secret_without_a_usable_key_is_damaged_and_what_is_left_is_kept() {
        let authorities = Authorities::first(now()).unwrap();
        let mut secret = secret(&authorities, now());
        let data = secret.data.as_mut().unwrap();
        data.insert("ca.key".into(), ByteString(b"no key".to_vec()));
        let Stored::Damaged { trusted } = parse(&secret) else { panic!("not damaged") };
        assert_eq!(trusted.as_deref(), Some(authorities.current.certificate()));
        assert!(matches!(parse(&Secret::default()), Stored::Damaged { trusted: None }));
    }
}
