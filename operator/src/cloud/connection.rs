//! The way to a Config API by what an object says, with the login of a Secret.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_config_api::client;
use opensdn_config_api::keystone::{self, Credentials, Password};
use opensdn_crds::nested_cluster;
use opensdn_http_client::Trust;
use opensdn_runtime::apply::read;
use opensdn_runtime::call::CallError;

use crate::reconcile::Context;

const CA_KEY: &str = "ca-bundle.crt";
/// To which Config API the login may be sent: who writes the object need not be the one who may read the Secret. The
/// plugin's variable, too.
const CONFIG_API: &str = "OPENSDN_CONFIG_API";
/// Which record in the cloud is continued, for the same reason.
const RECORD: &str = "OPENSDN_RECORD";

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The cluster cannot be asked.
    #[error(transparent)]
    Call(Box<CallError>),
    /// A Secret is not there.
    #[error("the Secret {0} that {1} names is not there: create it in this namespace")]
    NoSecret(String, &'static str),
    /// A key is not there.
    #[error(
        "the Secret {0} has no key {1}: it needs what an openrc file sets, and OPENSDN_CONFIG_API with the URLs that its login may be sent to"
    )]
    NoKey(String, &'static str),
    /// The login is for another Config API.
    #[error(
        "the Secret {secret} has {key} {allowed:?}, which does not have {url}: its login is sent nowhere else; add the URL \
         there, with commas between, or correct spec.configApi.urls",
        key = CONFIG_API
    )]
    OtherApi {
        /// The Secret.
        secret: String,
        /// What it allows.
        allowed: String,
        /// What the object wants.
        url: String,
    },
    /// The CA is none.
    #[error("the Config API cannot be asked")]
    Http(#[from] opensdn_http_client::Error),
    /// An address is none.
    #[error(transparent)]
    Api(#[from] client::Error),
    /// The address of Keystone is none.
    #[error(transparent)]
    Keystone(#[from] keystone::Error),
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}

/// How a Config API is reached.
pub(super) struct Way {
    /// Its URLs.
    pub(super) addresses: Vec<String>,
    /// Whose certificates are accepted.
    pub(super) trust: Trust,
    /// Whose certificates of Keystone are accepted.
    pub(super) keystone_trust: Trust,
    /// With what Keystone is asked, where it is.
    pub(super) credentials: Option<Credentials>,
    /// The id of the record in the cloud that is continued, where the login says one.
    pub(super) record: Option<String>,
    /// Whether its words may be in the status of the object.
    pub(super) texts: Texts,
    /// Another text for each other way; without secrets.
    pub(super) version: String,
}

/// Whether what a Config API says may be in a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Texts {
    /// Who gave the login has said where it may be sent, or it is the cluster's own.
    Shown,
    /// Whoever writes the object says whom to ask: what is not his to read is not shown.
    Hidden,
}

/// What a NestedCluster says.
pub(super) async fn of_spec(
    ctx: &Context,
    object: &DynamicObject,
    spec: &nested_cluster::ConfigApi,
) -> Result<Way, Error> {
    let login = match &spec.credentials_secret_name {
        Some(name) => {
            Some(secret(ctx, object, name, "spec.configApi.credentialsSecretName").await?)
        }
        None => None,
    };
    let ca = match &spec.ca_secret_name {
        Some(name) => Some(secret(ctx, object, name, "spec.configApi.caSecretName").await?),
        None => None,
    };
    let with_ca = |trust: Trust, secret: &Secret| {
        let key = secret.data.as_ref().and_then(|data| data.get(CA_KEY));
        let key = key.ok_or_else(|| Error::NoKey(secret.name_any(), CA_KEY))?;
        Ok::<_, Error>(trust.with_pem(&format!("the Secret {}", secret.name_any()), &key.0)?)
    };
    // Who is Keystone, the login alone says.
    let has_ca =
        |secret: &&Secret| secret.data.as_ref().is_some_and(|data| data.contains_key(CA_KEY));
    let keystone_trust = match login.as_ref().filter(has_ca) {
        Some(login) => with_ca(Trust::of_machine(), login)?,
        None => Trust::of_machine(),
    };
    let trust = match &ca {
        Some(ca) => with_ca(keystone_trust.clone(), ca)?,
        None => keystone_trust.clone(),
    };
    let version = |secret: &Option<Secret>| {
        secret.as_ref().map(|one| (one.metadata.uid.clone(), one.metadata.resource_version.clone()))
    };
    Ok(Way {
        addresses: spec.urls.clone(),
        keystone_trust,
        trust,
        record: login.as_ref().and_then(|login| value(login, RECORD)),
        texts: if login.is_some() { Texts::Shown } else { Texts::Hidden },
        version: format!("{:?} {:?} {:?}", spec.urls, version(&login), version(&ca)),
        credentials: match &login {
            Some(login) => {
                check_addressee(login, &spec.urls)?;
                Some(credentials(login)?)
            }
            None => None,
        },
    })
}

/// A Secret that a field names.
pub(super) async fn secret(
    ctx: &Context,
    object: &DynamicObject,
    name: &str,
    field: &'static str,
) -> Result<Secret, Error> {
    let found = read::<Secret>(&ctx.writer, object.namespace().as_deref(), name).await?;
    found.ok_or_else(|| Error::NoSecret(name.to_owned(), field))
}

/// A value that is not empty.
fn value(secret: &Secret, key: &str) -> Option<String> {
    let text = String::from_utf8(secret.data.as_ref()?.get(key)?.0.clone()).ok()?;
    // Files end with a line break.
    let text = text.trim_end_matches(['\n', '\r']).to_owned();
    (!text.is_empty()).then_some(text)
}

/// Whether the login may be sent to all of them.
fn check_addressee(secret: &Secret, urls: &[String]) -> Result<(), Error> {
    let allowed = value(secret, CONFIG_API);
    let allowed = allowed.ok_or_else(|| Error::NoKey(secret.name_any(), CONFIG_API))?;
    let plain = |url: &str| url.trim().trim_end_matches('/').to_owned();
    let all: Vec<String> = allowed.split(',').map(plain).collect();
    match urls.iter().find(|url| !all.contains(&plain(url))) {
        Some(url) => Err(Error::OtherApi { secret: secret.name_any(), allowed, url: url.clone() }),
        None => Ok(()),
    }
}

/// What an openrc file has.
fn credentials(secret: &Secret) -> Result<Credentials, Error> {
    let value = |key: &str| value(secret, key);
    let needed = |key: &'static str| value(key).ok_or_else(|| Error::NoKey(secret.name_any(), key));
    let domain = |key: &str| value(key).unwrap_or_else(|| "Default".to_owned());
    Ok(Credentials {
        auth_url: needed("OS_AUTH_URL")?,
        user: needed("OS_USERNAME")?,
        password: Password::new(needed("OS_PASSWORD")?),
        project: match value("OS_TENANT_NAME") {
            Some(tenant) => value("OS_PROJECT_NAME").unwrap_or(tenant),
            None => needed("OS_PROJECT_NAME")?,
        },
        user_domain: domain("OS_USER_DOMAIN_NAME"),
        project_domain: domain("OS_PROJECT_DOMAIN_NAME"),
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    fn secret_with(keys: &[(&str, &str)]) -> Secret {
        let data = keys
            .iter()
            .map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
        let mut secret = Secret { data: Some(data.collect()), ..Secret::default() };
        secret.metadata.name = Some("cloud".to_owned());
        secret
    }

    #[test]
    fn a_login_is_sent_only_where_its_secret_says() {
        let of = |keys: &[(&str, &str)], url: &str| {
            let checked = check_addressee(&secret_with(keys), &[url.to_owned()]);
            checked.map_err(|error| error.to_string())
        };
        let keys = [(CONFIG_API, "https://192.0.2.1:8082/, https://192.0.2.2:8082\n")];
        assert_eq!(of(&keys, "https://192.0.2.2:8082"), Ok(()));
        assert_eq!(of(&keys, "https://192.0.2.1:8082"), Ok(()));
        let other = of(&keys, "https://203.0.113.1:8082").unwrap_err();
        assert!(other.contains("the Secret cloud has OPENSDN_CONFIG_API"), "{other}");
        assert!(
            of(&[], "https://192.0.2.1:8082").unwrap_err().contains("no key OPENSDN_CONFIG_API")
        );
        assert!(of(&keys, "https://192.0.2.1:80821").is_err());
    }

    #[test]
    fn a_login_has_what_an_openrc_file_sets_and_a_missing_key_is_named() {
        let mut keys = vec![
            ("OS_AUTH_URL", "https://192.0.2.1:5000/v3\n"),
            ("OS_USERNAME", "admin"),
            ("OS_PASSWORD", "s3cret"),
        ];
        let missing = credentials(&secret_with(&keys)).map(|_| ()).unwrap_err().to_string();
        assert!(missing.contains("the Secret cloud has no key OS_PROJECT_NAME"), "{missing}");
        keys.push(("OS_TENANT_NAME", "demo"));
        let login = credentials(&secret_with(&keys)).unwrap();
        assert_eq!(
            (login.auth_url.as_str(), login.project.as_str()),
            ("https://192.0.2.1:5000/v3", "demo")
        );
        assert_eq!(login.user_domain, "Default");
        keys.push(("OS_PROJECT_NAME", "admin"));
        assert_eq!(credentials(&secret_with(&keys)).unwrap().project, "admin");
        assert!(!format!("{login:?}").contains("s3cret"));
    }
}
