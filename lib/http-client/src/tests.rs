//! Requests to real servers on this machine: which certificates are accepted, and what ends an answer that does not
//! end by itself.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls_pki_types::pem::PemObject as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(50);

/// Reads the head of a request, says `answer`, and keeps the connection.
async fn say(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &str) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let _ = stream.write_all(answer.as_bytes()).await;
    std::future::pending::<()>().await;
}

/// A server without TLS that says so to every request.
async fn plain(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(say(stream, answer));
        }
    });
    address
}

/// One with TLS, and its certificate, which is its own CA.
async fn encrypted() -> (String, String) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls_pki_types::PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
                }
            });
        }
    });
    (address, cert.pem())
}

async fn get(trust: Trust, address: &str, most: u64, piece: Duration) -> Result<Vec<u8>, Error> {
    let client = HttpClient::new(trust, LONG)?;
    let response = client.send(Request::get(address).body(no_body()).unwrap(), LONG).await?;
    read_whole(response.into_body(), most, piece).await
}

#[tokio::test]
async fn only_a_certificate_of_a_ca_that_was_given_is_accepted() {
    let (address, pem) = encrypted().await;
    let refused = get(Trust::of_machine(), &address, 10, LONG).await;
    assert!(matches!(refused, Err(ref error @ Error::Connect { .. }) if error.is_unsent()));
    let given = Trust::of_machine().with_pem("the Secret", pem.as_bytes()).unwrap();
    assert_eq!(get(given, &address, 10, LONG).await.unwrap(), b"ok");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &pem).unwrap();
    let given = Trust::of_machine().with_file(file.path()).unwrap();
    assert_eq!(get(given, &address, 10, LONG).await.unwrap(), b"ok");
    assert_eq!(get(Trust::unverified(), &address, 10, LONG).await.unwrap(), b"ok");
    let by_number = address.replace("localhost", "127.0.0.1");
    assert_eq!(get(Trust::unverified(), &by_number, 10, LONG).await.unwrap(), b"ok");
}

#[tokio::test]
async fn the_certificate_of_a_server_is_read_without_trusting_it() {
    let (address, pem) = encrypted().await;
    let port = address.trim_end_matches('/').rsplit(':').next().unwrap();
    let server = format!("127.0.0.1:{port}").parse().unwrap();
    let shown = certificate_of(server, LONG).await.unwrap();
    let expected = rustls_pki_types::CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    assert_eq!(shown, expected.to_vec());
    let plain = plain("HTTP/1.1 400 x\r\n\r\n").await;
    let plain = plain.trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
    let refused = certificate_of(plain, Duration::from_millis(300)).await;
    assert!(matches!(refused, Err(Error::NoTls { .. } | Error::TimedOut { .. })), "{refused:?}");
}

#[test]
fn a_file_of_certificates_that_never_ends_is_refused() {
    let wrong = Trust::of_machine().with_file("/dev/zero".as_ref()).unwrap_err();
    assert!(wrong.to_string().contains("larger than 16 MiB"), "{wrong}");
}

#[test]
fn what_has_no_certificate_is_named() {
    let wrong = Trust::of_machine().with_pem("the Secret", b"no certificate").unwrap_err();
    assert!(wrong.to_string().starts_with("the Secret has no certificates"), "{wrong}");
    let wrong = Trust::of_machine().with_file("/not/there".as_ref()).unwrap_err();
    assert!(wrong.to_string().contains("/not/there"), "{wrong}");
    assert!(Trust::unverified().with_pem("the Secret", b"").is_err(), "though none is verified");
}

#[tokio::test]
async fn an_answer_is_not_read_beyond_its_limit() {
    let address = plain("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n1234").await;
    assert_eq!(get(Trust::unverified(), &address, 4, LONG).await.unwrap(), b"1234");
    let longer = get(Trust::unverified(), &address, 3, LONG).await;
    assert!(matches!(longer, Err(Error::TooLong { most: 3 })));
}

#[tokio::test]
async fn an_answer_that_stops_ends_at_the_limit() {
    let address = plain("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n12").await;
    let client = HttpClient::new(Trust::unverified(), LONG).unwrap();
    let request = Request::post(&address).body(whole_body(Bytes::new())).unwrap();
    let mut body = client.send(request, LONG).await.unwrap().into_body();
    assert_eq!(next_piece(&mut body, LONG).await.unwrap().unwrap(), "12");
    assert!(matches!(next_piece(&mut body, SHORT).await, Err(Error::BrokeOff(_))));
}

#[tokio::test]
async fn no_answer_and_no_server_are_different_errors() {
    let client = HttpClient::new(Trust::unverified(), LONG).unwrap();
    let request = |address: &str| Request::get(address).body(no_body()).unwrap();
    let silent = client.send(request(&plain("").await), SHORT).await.unwrap_err();
    assert!(matches!(silent, Error::TimedOut { .. }) && !silent.is_unsent(), "{silent}");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let absent = client.send(request(&format!("http://{free}/")), LONG).await.unwrap_err();
    assert!(absent.is_unsent() && absent.to_string().contains(&free.to_string()), "{absent}");
}
