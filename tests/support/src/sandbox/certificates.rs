//! The sandbox's own certificate authority: who gets which certificate, and the files that
//! the programs read it from. Deliberately not here: certificates of our webhook, which the
//! product makes itself, as it does on any cluster.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use time::{Duration, OffsetDateTime};

/// Longer than any sandbox lives, short enough that a leaked key is soon worthless.
const VALIDITY: Duration = Duration::days(365);

/// What can go wrong while certificates are made.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The library refused the parameters or the key.
    #[error("make the certificate of {subject}")]
    Make {
        /// Common name of the certificate.
        subject: String,
        /// What the library said.
        #[source]
        source: rcgen::Error,
    },
    /// A file of the data folder could not be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        #[source]
        source: io::Error,
    },
    /// A file of the data folder could not be written.
    #[error("write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        #[source]
        source: io::Error,
    },
}

/// A certificate and its key, both as PEM.
#[derive(Clone)]
pub(super) struct Identity {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// The authority that the API server, etcd and every client of the sandbox trust.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
}

impl Authority {
    pub(super) fn new() -> Result<Self, CertificateError> {
        let subject = "opensdn-sandbox";
        let mut params = parameters(subject, None, &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let failed = |source| CertificateError::Make { subject: subject.into(), source };
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?;
        let (pem, certificate) = (certificate.pem(), certificate.der().clone());
        Ok(Self { issuer: Issuer::new(params, key), certificate, pem })
    }

    /// The authority of a running sandbox, from the folder of its keys.
    pub(super) fn read(folder: &Path) -> Result<Self, CertificateError> {
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(|source| CertificateError::Read { path, source })
        };
        let (pem, key) = (read("ca.crt")?, read("ca.key")?);
        let parsed = KeyPair::from_pem(&key).and_then(|key| Issuer::from_ca_cert_pem(&pem, key));
        let failed = |source| CertificateError::Make { subject: "opensdn-sandbox".into(), source };
        let issuer = parsed.map_err(failed)?;
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| failed(rcgen::Error::CouldNotParseCertificate))?;
        Ok(Self { issuer, certificate, pem })
    }

    /// The authority's certificate.
    pub(super) fn pem(&self) -> String {
        self.pem.clone()
    }

    /// The same, as a client library wants it.
    pub(super) fn der(&self) -> Vec<u8> {
        self.certificate.to_vec()
    }

    /// A certificate by which a client is `name` in `group` to Kubernetes. One group at most:
    /// Kubernetes reads each organisation of the subject as a group, and a distinguished
    /// name of rcgen holds only one.
    pub(super) fn client(
        &self,
        name: &str,
        group: Option<&str>,
    ) -> Result<Identity, CertificateError> {
        let mut params = parameters(name, group, &[])?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(name, params)
    }

    /// A certificate for a server with those names and addresses.
    pub(super) fn server(
        &self,
        name: &str,
        host_names: &[&str],
    ) -> Result<Identity, CertificateError> {
        let mut params = parameters(name, None, host_names)?;
        // etcd's own gateway calls etcd with the server certificate.
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(name, params)
    }

    fn sign(&self, name: &str, params: CertificateParams) -> Result<Identity, CertificateError> {
        KeyPair::generate()
            .and_then(|key| {
                let certificate = params.signed_by(&key, &self.issuer)?.pem();
                Ok(Identity { certificate, key: key.serialize_pem() })
            })
            .map_err(|source| CertificateError::Make { subject: name.into(), source })
    }
}

fn parameters(
    name: &str,
    group: Option<&str>,
    host_names: &[&str],
) -> Result<CertificateParams, CertificateError> {
    let host_names: Vec<String> = host_names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(host_names)
        .map_err(|source| CertificateError::Make { subject: name.into(), source })?;
    let now = OffsetDateTime::now_utc();
    params.not_before = now - Duration::hours(1);
    params.not_after = now + VALIDITY;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    Ok(params)
}

/// Where the programs find certificates and keys.
pub(super) struct KeyFiles {
    pub(super) authority: PathBuf,
    pub(super) authority_key: PathBuf,
    pub(super) api_server: Pair,
    /// By which the API server proves to kubelets who it is.
    pub(super) kubelet_client: Pair,
    /// What service account tokens are signed with and checked by.
    pub(super) token_key: PathBuf,
    pub(super) token_public_key: PathBuf,
}

/// The files of one identity.
pub(super) struct Pair {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

impl KeyFiles {
    /// Makes what the control plane needs and writes it to `folder`.
    /// The API server is reached at the given addresses too.
    pub(super) fn write(
        authority: &Authority,
        folder: &Path,
        addresses: &[String],
    ) -> Result<Self, CertificateError> {
        let local = ["localhost", "127.0.0.1"];
        let in_cluster = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let addresses = addresses.iter().map(String::as_str);
        let api_server_names: Vec<&str> =
            local.into_iter().chain(in_cluster).chain(addresses).collect();
        let key = KeyPair::generate().map_err(|source| CertificateError::Make {
            subject: "service account tokens".into(),
            source,
        })?;
        let token_key = folder.join("tokens.key");
        write_private(&token_key, &key.serialize_pem())?;
        let token_public_key = folder.join("tokens.pub");
        write_private(&token_public_key, &key.public_key_pem())?;

        let authority_file = folder.join("ca.crt");
        write_private(&authority_file, &authority.pem())?;
        let authority_key = folder.join("ca.key");
        write_private(&authority_key, &authority.issuer.key().serialize_pem())?;
        let kubelet_client =
            authority.client("kube-apiserver-kubelet-client", Some("system:masters"))?;
        Ok(Self {
            authority: authority_file,
            authority_key,
            api_server: write_pair(
                folder,
                "kube-apiserver",
                &authority.server("kube-apiserver", &api_server_names)?,
            )?,
            kubelet_client: write_pair(folder, "kubelet-client", &kubelet_client)?,
            token_key,
            token_public_key,
        })
    }
}

fn write_pair(folder: &Path, name: &str, identity: &Identity) -> Result<Pair, CertificateError> {
    let pair = Pair {
        certificate: folder.join(format!("{name}.crt")),
        key: folder.join(format!("{name}.key")),
    };
    write_private(&pair.certificate, &identity.certificate)?;
    write_private(&pair.key, &identity.key)?;
    Ok(pair)
}

/// Writes a file that only the sandbox's owner may read.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), CertificateError> {
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|source| CertificateError::Write { path: path.to_owned(), source })
}
