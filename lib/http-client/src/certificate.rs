//! The certificate of a server, as it shows it to anyone. Nothing is asked of the server, and nobody is trusted by it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::{Error, Trust};

/// The certificate of a server in DER, read without a check: what it is for is what is to be found out.
///
/// # Errors
/// The server is not reached within the limit, or does not speak TLS.
pub async fn certificate_of(server: SocketAddr, limit: Duration) -> Result<Vec<u8>, Error> {
    let host = server.to_string();
    let broken = |source| Error::NoTls { host: host.clone(), source };
    let connector = TlsConnector::from(Arc::new(Trust::unverified().tls()?));
    let shown = async {
        let tcp = TcpStream::connect(server).await?;
        let tls = connector.connect(ServerName::from(server.ip()), tcp).await?;
        let (_, session) = tls.get_ref();
        let first = session.peer_certificates().and_then(|all| all.first());
        Ok(first.map(|certificate| certificate.to_vec()).unwrap_or_default())
    };
    match tokio::time::timeout(limit, shown).await {
        Ok(shown) => shown.map_err(broken),
        Err(_) => Err(Error::TimedOut { host, limit }),
    }
}
