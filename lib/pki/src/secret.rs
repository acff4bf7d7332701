//! The CAs in a Secret: what it means, and what is written into it, on condition that nothing has changed
//! since it was read. Deliberately not here: when it is written.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use opensdn_runtime::apply::{Context, WriteOutcome, read, write_as_read};
use opensdn_runtime::call::CallError;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::authority::{Authority, AuthorityError, read_certificate};
use crate::rotation::{Authorities, Published, Request, Rotation, SecretState, advance};

/// Any value of this annotation asks for a new CA; it is removed when the rotation has started.
pub const ROTATE: &str = "opensdn.io/rotate-ca";

const CURRENT: (&str, &str) = ("ca.crt", "ca.key");
const NEXT: (&str, &str) = ("next.crt", "next.key");
const PREVIOUS: &str = "previous.crt";
const SINCE: &str = "since";
/// For people and other programs; not read.
const BUNDLE: &str = "ca-bundle.crt";
/// For one call to the API server.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// So many times another replica may be faster before something else must be wrong.
const ATTEMPTS: usize = 10;

/// Why the Secret could not be read or written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SecretError {
    #[error("obtain the CA")]
    Call(#[source] Box<CallError>),
    #[error("write Secret {name}: other writers changed it {ATTEMPTS} times in a row")]
    Contended { name: String },
    #[error("make a CA")]
    Make(#[source] AuthorityError),
}

impl From<CallError> for SecretError {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}

/// Which Secret holds the CAs, and how it is written.
#[derive(Clone, Debug)]
pub struct SecretSpec {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Labels that it gets when it is created.
    pub labels: BTreeMap<String, String>,
    /// The name under which its fields are written.
    pub field_manager: String,
}

/// The Secret that holds the CAs.
#[derive(Clone)]
pub struct CaSecret {
    client: Client,
    ctx: Context,
    spec: SecretSpec,
    rotation: Rotation,
}

/// The Secret as it was read.
pub struct Snapshot {
    /// What it means.
    pub state: SecretState,
    secret: Option<Secret>,
}

impl CaSecret {
    /// The Secret of `spec`, with CAs made and rotated by `rotation`.
    #[must_use]
    pub fn new(client: Client, spec: SecretSpec, rotation: Rotation) -> Self {
        let ctx = Context::new(client.clone(), &spec.field_manager).timeout(CALL_TIMEOUT);
        Self { client, ctx, spec, rotation }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// The client by which it is read.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Its namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.spec.namespace
    }

    /// What should be stored instead of `snapshot`, if anything: [`advance`].
    ///
    /// # Errors
    /// A CA cannot be made.
    pub fn advance(
        &self,
        snapshot: &Snapshot,
        published: Option<&Published>,
        now: OffsetDateTime,
    ) -> Result<Option<Authorities>, SecretError> {
        advance(&snapshot.state, published, now, &self.rotation).map_err(SecretError::Make)
    }

    /// The CAs; made if there are none, or none that can sign. However many replicas do this at
    /// once, all get the same.
    ///
    /// # Errors
    /// A call fails, or a CA cannot be made.
    pub async fn obtain(&self) -> Result<Authorities, SecretError> {
        for _ in 0..ATTEMPTS {
            let now = OffsetDateTime::now_utc();
            let snapshot = self.read().await?;
            if let SecretState::Complete { authorities, .. } = snapshot.state {
                return Ok(authorities);
            }
            if let Some(made) = self.advance(&snapshot, None, now)?
                && self.write(&snapshot, &made, now).await? == WriteOutcome::Stored
            {
                return Ok(made);
            }
        }
        Err(SecretError::Contended { name: self.spec.name.clone() })
    }

    /// Reads the Secret.
    ///
    /// # Errors
    /// The call fails.
    pub async fn read(&self) -> Result<Snapshot, SecretError> {
        let secret: Option<Secret> =
            read(&self.ctx, Some(&self.spec.namespace), &self.spec.name).await?;
        let state = secret.as_ref().map_or(SecretState::Missing, parse);
        Ok(Snapshot { state, secret })
    }

    /// Stores `authorities` if the Secret is still as it was read.
    ///
    /// # Errors
    /// The call fails for another reason than a conflict.
    pub async fn write(
        &self,
        snapshot: &Snapshot,
        authorities: &Authorities,
        now: OffsetDateTime,
    ) -> Result<WriteOutcome, SecretError> {
        let mut secret = snapshot.secret.clone().unwrap_or_default();
        secret.metadata.name = Some(self.spec.name.clone());
        secret.metadata.namespace = Some(self.spec.namespace.clone());
        if snapshot.secret.is_none() && !self.spec.labels.is_empty() {
            secret.metadata.labels = Some(self.spec.labels.clone());
        }
        if let Some(annotations) = &mut secret.metadata.annotations {
            annotations.remove(ROTATE);
        }
        secret.data = Some(render(authorities, now));
        Ok(write_as_read(&self.ctx, &secret).await?)
    }
}

/// What a Secret means.
#[must_use]
pub fn parse(secret: &Secret) -> SecretState {
    let text = |key: &str| {
        let bytes = &secret.data.as_ref()?.get(key)?.0;
        String::from_utf8(bytes.clone()).ok()
    };
    let authority = |(certificate, key): (&str, &str)| {
        Authority::from_pem(&text(certificate)?, &text(key)?).ok()
    };
    let certificate = |key| text(key).filter(|pem| read_certificate(pem).is_ok());
    let Some(current) = authority(CURRENT) else {
        return SecretState::Damaged { trusted: certificate(CURRENT.0) };
    };
    // A `since` that cannot be read makes an old phase look new, which only prolongs it.
    let since = text(SINCE).and_then(|text| OffsetDateTime::parse(&text, &Rfc3339).ok());
    let annotations = secret.metadata.annotations.as_ref();
    let requested = annotations.is_some_and(|all| all.contains_key(ROTATE));
    SecretState::Complete {
        authorities: Authorities {
            current,
            next: authority(NEXT),
            previous: certificate(PREVIOUS),
        },
        since: since.unwrap_or_else(OffsetDateTime::now_utc),
        request: if requested { Request::Rotate } else { Request::None },
    }
}

fn render(authorities: &Authorities, now: OffsetDateTime) -> BTreeMap<String, ByteString> {
    let Authorities { current, next, previous } = authorities;
    let mut data = BTreeMap::new();
    let mut put = |key: &str, text: &str| {
        data.insert(key.to_owned(), ByteString(text.as_bytes().to_vec()));
    };
    put(CURRENT.0, current.certificate());
    put(CURRENT.1, current.key());
    if let Some(next) = next {
        put(NEXT.0, next.certificate());
        put(NEXT.1, next.key());
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
    use crate::profile::CaProfile;

    fn secret(authorities: &Authorities, now: OffsetDateTime) -> Secret {
        Secret { data: Some(render(authorities, now)), ..Secret::default() }
    }

    fn ca() -> CaProfile {
        CaProfile::new("test CA")
    }

    fn now() -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
    }

    #[test]
    fn reads_back_what_it_wrote_in_every_phase() {
        let settled = Authorities::first(&ca(), now()).unwrap();
        let next = Some(Authority::create(&ca(), now()).unwrap());
        let previous = Some(Authority::create(&ca(), now()).unwrap().certificate().to_owned());
        for authorities in [
            settled.clone(),
            Authorities { next, ..settled.clone() },
            Authorities { previous, ..settled.clone() },
        ] {
            let SecretState::Complete { authorities: read, since, request } =
                parse(&secret(&authorities, now()))
            else {
                panic!("not complete");
            };
            assert_eq!((read, since, request), (authorities, now(), Request::None));
        }
    }

    #[test]
    fn sees_that_a_rotation_is_requested() {
        let mut secret = secret(&Authorities::first(&ca(), now()).unwrap(), now());
        secret.metadata.annotations = Some([(ROTATE.to_owned(), String::new())].into());
        assert!(matches!(parse(&secret), SecretState::Complete { request: Request::Rotate, .. }));
    }

    #[test]
    fn a_secret_without_a_usable_key_is_damaged_and_what_is_left_is_kept() {
        let authorities = Authorities::first(&ca(), now()).unwrap();
        let mut secret = secret(&authorities, now());
        let data = secret.data.as_mut().unwrap();
        data.insert("ca.key".into(), ByteString(b"no key".to_vec()));
        let SecretState::Damaged { trusted } = parse(&secret) else { panic!("not damaged") };
        assert_eq!(trusted.as_deref(), Some(authorities.current.certificate()));
        assert!(matches!(parse(&Secret::default()), SecretState::Damaged { trusted: None }));
    }
}
