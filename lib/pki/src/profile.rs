//! What certificates are made like: the choices of a program, without a key and without I/O.

use rcgen::{ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, SignatureAlgorithm};
use time::Duration;

/// The kind of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyKind {
    /// ECDSA on P-256, which every TLS library of the last ten years verifies.
    #[default]
    EcdsaP256,
    /// ECDSA on P-384.
    EcdsaP384,
    /// Ed25519. Older libraries, Java's before 15 among them, do not know it.
    Ed25519,
    /// RSA, for servers that set no curve for OpenSSL 1.0.2. Slower in every handshake, and to make: some tenths
    /// of a second with 2,048 bits, about one with 4,096. Signed by a CA with another key, as ours: Erlang's OTP before
    /// 21.2 refuses that (erlang/otp#3968), which is older than the images of R2011.
    #[cfg(feature = "rsa")]
    Rsa(RsaBits),
}

/// How long an RSA key is.
#[cfg(feature = "rsa")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum RsaBits {
    #[default]
    Bits2048,
    Bits3072,
    Bits4096,
}

#[cfg(feature = "rsa")]
impl RsaBits {
    /// The shortest with at least so many bits, else the longest.
    #[must_use]
    pub fn at_least(bits: i64) -> Self {
        match bits {
            ..=2048 => Self::Bits2048,
            2049..=3072 => Self::Bits3072,
            3073.. => Self::Bits4096,
        }
    }

    /// ring, with which everything else is made, cannot make one.
    fn generate(self) -> Result<KeyPair, rcgen::Error> {
        use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
        use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
        let size = match self {
            Self::Bits2048 => KeySize::Rsa2048,
            Self::Bits3072 => KeySize::Rsa3072,
            Self::Bits4096 => KeySize::Rsa4096,
        };
        let made = RsaKeyPair::generate(size).map_err(|_| rcgen::Error::RingUnspecified)?;
        let der = AsDer::<Pkcs8V1Der<'_>>::as_der(&made);
        let der = der.map_err(|_| rcgen::Error::RingUnspecified)?;
        KeyPair::try_from(der.as_ref())
    }
}

impl KeyKind {
    pub(crate) fn generate(self) -> Result<KeyPair, rcgen::Error> {
        match self {
            #[cfg(feature = "rsa")]
            Self::Rsa(bits) => bits.generate(),
            _ => KeyPair::generate_for(self.algorithm()),
        }
    }

    fn algorithm(self) -> &'static SignatureAlgorithm {
        match self {
            Self::EcdsaP256 => &rcgen::PKCS_ECDSA_P256_SHA256,
            Self::EcdsaP384 => &rcgen::PKCS_ECDSA_P384_SHA384,
            Self::Ed25519 => &rcgen::PKCS_ED25519,
            #[cfg(feature = "rsa")]
            Self::Rsa(_) => &rcgen::PKCS_RSA_SHA256,
        }
    }

    /// Whether the key is of that kind, of RSA of any length.
    pub(crate) fn is_of(self, key: &KeyPair) -> bool {
        key.is_compatible(self.algorithm())
    }

    /// What a leaf's key may be used for.
    pub(crate) fn usages(self) -> Vec<KeyUsagePurpose> {
        use KeyUsagePurpose::{DigitalSignature, KeyAgreement};
        match self {
            // OpenSSL 1.0.2 serves with such a key by static ECDH alone, unless a program sets a curve, and asks for
            // the right to it (ssl_lib.c, `ssl_set_cert_masks`).
            Self::EcdsaP256 | Self::EcdsaP384 | Self::Ed25519 => {
                vec![DigitalSignature, KeyAgreement]
            }
            #[cfg(feature = "rsa")]
            Self::Rsa(_) => vec![DigitalSignature, KeyUsagePurpose::KeyEncipherment],
        }
    }
}

/// On which side of a connection a certificate is presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// The server's.
    Server,
    /// The client's.
    Client,
    /// Either: members of a cluster that connect to each other.
    ServerAndClient,
}

impl Usage {
    pub(crate) fn purposes(self) -> Vec<ExtendedKeyUsagePurpose> {
        use ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
        match self {
            Self::Server => vec![ServerAuth],
            Self::Client => vec![ClientAuth],
            Self::ServerAndClient => vec![ServerAuth, ClientAuth],
        }
    }
}

/// What a CA is made like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaProfile {
    /// Beginning of the common name; the time of creation follows, so that two CAs in one bundle
    /// have different names and a verifier need not try both.
    pub common_name: String,
    /// How long it is valid.
    pub lifetime: Duration,
    /// The kind of its key.
    pub key: KeyKind,
}

impl CaProfile {
    /// Valid for ten years, with a P-256 key.
    #[must_use]
    pub fn new(common_name: impl Into<String>) -> Self {
        let lifetime = Duration::days(3650);
        Self { common_name: common_name.into(), lifetime, key: KeyKind::default() }
    }
}

/// What a certificate that a CA issues is made like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafProfile {
    /// The common name.
    pub common_name: String,
    /// DNS names and IP addresses.
    pub names: Vec<String>,
    /// How long it is valid, unless its CA expires before; it is renewed at two thirds of that.
    pub lifetime: Duration,
    /// What it may be used for.
    pub usage: Usage,
    /// The kind of its key.
    pub key: KeyKind,
}

impl LeafProfile {
    /// A server's certificate, valid for 30 days, with a P-256 key.
    #[must_use]
    pub fn server(common_name: impl Into<String>, names: Vec<String>) -> Self {
        Self {
            common_name: common_name.into(),
            names,
            lifetime: Duration::days(30),
            usage: Usage::Server,
            key: KeyKind::default(),
        }
    }
}

/// The names by which a Service is reached: first the one that the API server uses for webhooks,
/// then the longer and shorter ones.
#[must_use]
pub fn service_dns_names(service: &str, namespace: &str) -> Vec<String> {
    vec![
        format!("{service}.{namespace}.svc"),
        format!("{service}.{namespace}.svc.cluster.local"),
        format!("{service}.{namespace}"),
        service.to_owned(),
    ]
}
