//! What every test here needs: certificates, a running server, and a client that shows each byte.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use opensdn_pki::Identity;
use opensdn_policy_host::Step;
use opensdn_runtime::metrics::encode;
use opensdn_runtime::readiness::Readiness;
use opensdn_runtime::serve::ConnectionLimits;
use opensdn_runtime::shutdown::{self, Drain, Shutdown};
use opensdn_webhook::metrics::Metrics;
use opensdn_webhook::path_tokens::{PathToken, PathTokens};
use opensdn_webhook::server::{self, Call, Limits, Reviewer};
use opensdn_webhook::tls::{Settings, Tls};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(crate) const NAME: &str = "opensdn-webhook.opensdn.svc";
/// The path token that the server of a [`Stage`] accepts.
pub(crate) const TOKEN: &str = "a-token-for-tests-only";
pub(crate) const VALIDATE: &str = "/validate/a-token-for-tests-only";
pub(crate) const VALIDATE_OTHERS: &str = "/validate-others/a-token-for-tests-only";
pub(crate) const MUTATE: &str = "/mutate/a-token-for-tests-only";

/// The default limits, but those of connections changed.
pub(crate) fn connection_limits(change: impl FnOnce(&mut ConnectionLimits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits.connection);
    limits
}

/// A CA that signs what a test needs.
pub(crate) struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
    pub(crate) der: CertificateDer<'static>,
}

/// A chain and its key in PEM.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) chain: String,
    pub(crate) key: String,
    pub(crate) serial: Vec<u8>,
}

impl Ca {
    pub(crate) fn new(name: &str) -> Self {
        let (params, key) = Self::params(name);
        let certificate = params.self_signed(&key).unwrap();
        let (pem, der) = (certificate.pem(), certificate.der().clone());
        Self { issuer: Issuer::new(params, key), pem, der }
    }

    fn params(name: &str) -> (CertificateParams, KeyPair) {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        (params, KeyPair::generate().unwrap())
    }

    /// A CA below this one.
    pub(crate) fn intermediate(&self, name: &str) -> Self {
        let (params, key) = Self::params(name);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let (pem, der) = (certificate.pem(), certificate.der().clone());
        Self { issuer: Issuer::new(params, key), pem, der }
    }

    pub(crate) fn sign(&self, name: &str) -> Pair {
        self.sign_until(name, time::OffsetDateTime::now_utc() + time::Duration::days(1))
    }

    pub(crate) fn sign_until(&self, name: &str, not_after: time::OffsetDateTime) -> Pair {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = not_after - time::Duration::days(2);
        params.not_after = not_after;
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate.der()).unwrap();
        let serial = parsed.raw_serial().to_vec();
        Pair { chain: certificate.pem(), key: key.serialize_pem(), serial }
    }
}

/// Answers with what it was asked, once it may: tests take the permits away to hold reviews back.
pub(crate) struct Echo {
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) waiting: Arc<AtomicUsize>,
}

impl Reviewer for Echo {
    async fn review(&self, call: Call) -> Bytes {
        struct Leave(Arc<AtomicUsize>);
        impl Drop for Leave {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _leave = Leave(self.waiting.clone());
        let permit = tokio::time::timeout_at(call.deadline, self.permits.acquire()).await;
        let outcome = if permit.is_ok() { "reviewed" } else { "deadline" };
        let step = match call.step {
            Step::Mutate => "mutate",
            Step::Validate => "validate",
        };
        format!(r#"{{"{outcome}":"{step}","bytes":{}}}"#, call.body.len()).into()
    }

    fn too_large(&self, prefix: &[u8]) -> Bytes {
        format!(r#"{{"too_large":"{}"}}"#, String::from_utf8_lossy(&prefix[..16])).into()
    }
}

/// A running server.
pub(crate) struct Stage {
    pub(crate) address: SocketAddr,
    pub(crate) ca: Ca,
    pub(crate) tls: Tls,
    pub(crate) path_tokens: PathTokens,
    pub(crate) metrics: Metrics,
    pub(crate) readiness: Readiness,
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) waiting: Arc<AtomicUsize>,
    pub(crate) shutdown: Shutdown,
    pub(crate) drain: Drain,
    pub(crate) task: JoinHandle<()>,
}

impl Stage {
    pub(crate) async fn start(limits: Limits) -> Self {
        Self::with(limits, Settings::default(), None).await
    }

    pub(crate) async fn with(limits: Limits, settings: Settings, client_ca: Option<&Ca>) -> Self {
        let ca = Ca::new("server CA");
        let pair = ca.sign(NAME);
        Self::serving(limits, settings, client_ca, ca, &pair).await
    }

    pub(crate) async fn serving(
        limits: Limits,
        settings: Settings,
        client_ca: Option<&Ca>,
        ca: Ca,
        pair: &Pair,
    ) -> Self {
        let (metrics, readiness) = (Metrics::new(), Readiness::default());
        let identity = Identity::from_pem(pair.chain.as_bytes(), pair.key.as_bytes()).unwrap();
        let client_ca = client_ca.map(|ca| ca.pem.as_bytes());
        let condition = readiness.add_check("certificate", "none yet");
        let tls =
            Tls::new(settings, identity, client_ca, metrics.certificate(), condition).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (shutdown, drain) = shutdown::channel();
        let permits = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        let waiting = Arc::new(AtomicUsize::new(0));
        let echo = Echo { permits: permits.clone(), waiting: waiting.clone() };
        let path_tokens = PathTokens::new(PathToken::parse(TOKEN).unwrap(), []);
        let (counts, tokens) = (metrics.server(), path_tokens.clone());
        let task = tokio::spawn(server::serve(
            listener,
            tls.clone(),
            tokens,
            echo,
            limits,
            counts,
            drain.clone(),
        ));
        Self {
            address,
            ca,
            tls,
            path_tokens,
            metrics,
            readiness,
            permits,
            waiting,
            shutdown,
            drain,
            task,
        }
    }

    /// A connection that trusts the server's CA and shows no certificate.
    pub(crate) async fn connect(&self) -> Connection {
        Connection::open(self.address, client(&self.ca, None)).await.unwrap()
    }

    /// A connection without TLS.
    pub(crate) async fn connect_raw(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Holds every review back until [`Stage::release`].
    pub(crate) fn hold(&self) {
        self.permits.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub(crate) fn release(&self) {
        self.permits.add_permits(1 << 20);
    }

    /// Waits until as many reviews are held back.
    pub(crate) async fn until_waiting(&self, reviews: usize) {
        until(|| self.waiting.load(Ordering::SeqCst) == reviews).await;
    }

    /// The value of a metric, by its name with labels as it is exposed.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        metric(&encode(&self.metrics.registry()).unwrap(), name)
    }
}

pub(crate) fn metric(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().unwrap()
}

/// Polls until it is so, at most a minute.
pub(crate) async fn until(mut so: impl FnMut() -> bool) {
    let waiting = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("it never came to be");
}

pub(crate) fn client(ca: &Ca, certificate: Option<&Pair>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(ca.der.clone()).unwrap();
    client_with(roots, certificate, rustls::DEFAULT_VERSIONS)
}

pub(crate) fn client_with(
    roots: RootCertStore,
    certificate: Option<&Pair>,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> Arc<ClientConfig> {
    use rustls_pki_types::pem::PemObject;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match certificate {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let chain = CertificateDer::pem_slice_iter(pair.chain.as_bytes());
            let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
            let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Arc::new(config)
}

/// A client's connection.
pub(crate) struct Connection {
    pub(crate) stream: TlsStream<TcpStream>,
    unread: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (header, value) = line.split_once(':')?;
            header.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(crate) fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr, config: Arc<ClientConfig>) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(NAME).unwrap();
        let stream = TlsConnector::from(config).connect(name, stream).await?;
        Ok(Self { stream, unread: Vec::new() })
    }

    /// The serial number of the certificate that the server showed.
    pub(crate) fn serial(&self) -> Vec<u8> {
        let certificates = self.stream.get_ref().1.peer_certificates().unwrap();
        let (_, parsed) = x509_parser::parse_x509_certificate(&certificates[0]).unwrap();
        parsed.raw_serial().to_vec()
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// One answer; an error if the connection ends before it is whole.
    pub(crate) async fn answer(&mut self) -> io::Result<Answer> {
        let head = loop {
            if let Some(end) = self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                let head: Vec<u8> = self.unread.drain(..end + 4).collect();
                break String::from_utf8(head).unwrap();
            }
            self.more().await?;
        };
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer { status, head, body: String::new() };
        let length = answer.header("content-length").unwrap_or("0").parse().unwrap();
        while self.unread.len() < length {
            self.more().await?;
        }
        answer.body = String::from_utf8(self.unread.drain(..length).collect()).unwrap();
        Ok(answer)
    }

    async fn more(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            n => {
                self.unread.extend_from_slice(&buffer[..n]);
                Ok(())
            }
        }
    }

    /// Sends a whole review and takes its answer.
    pub(crate) async fn review(&mut self, path: &str, body: &[u8]) -> io::Result<Answer> {
        self.send(&request("POST", path, "content-type: application/json\r\n", body)).await?;
        self.answer().await
    }

    /// Whether the server has ended the connection, without an answer.
    pub(crate) async fn is_closed(&mut self) -> bool {
        let mut buffer = [0; 1];
        matches!(self.stream.read(&mut buffer).await, Ok(0) | Err(_))
    }
}

pub(crate) fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {NAME}\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}
