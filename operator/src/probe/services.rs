//! Services of others: whether there is a connection to them from here, and what they answer. Certificates are not
//! checked, as nothing secret is sent and nothing is done with an answer but to look at it.

use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::iter;
use http::Request;
use opensdn_http_client::{HttpClient, Trust, no_body, read_whole};
use opensdn_node_probe::{By, Question, Reached, Reply, ServiceFinding, WantedService};
use opensdn_runtime::error_chain;
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// For a connection, and for an answer: a service that is well has both in milliseconds.
const LIMIT: Duration = Duration::from_secs(5);
/// So many at once: what is not reached shall not add up.
const AT_ONCE: usize = 32;
/// The homepage of the Config API has a link for each of hundreds of kinds.
const LONGEST: u64 = 1 << 20;
/// What of an answer is handed on.
const KEYS: usize = 16;
const BEGINS: usize = 120;
/// What servers answer who wanted TLS; also an answer of others, so that TLS is only tried.
const BAD_REQUEST: u16 = 400;

/// Asks all; in their order.
pub(super) async fn ask(wanted: &[WantedService]) -> Vec<ServiceFinding> {
    let finding = |wanted: WantedService| async move {
        let reached = reached(&wanted).await;
        ServiceFinding { wanted, reached }
    };
    iter(wanted.to_vec()).map(finding).buffered(AT_ONCE).collect().await
}

async fn reached(wanted: &WantedService) -> Reached {
    let stream = match timeout(LIMIT, TcpStream::connect(wanted.at)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Reached::No(error.to_string()),
        Err(_) => return Reached::No(format!("no answer within {} s", LIMIT.as_secs())),
    };
    match &wanted.question {
        Question::Connect => Reached::Connected,
        Question::Line => line(stream).await,
        Question::Get(path) => {
            drop(stream);
            get(wanted.at, path).await
        }
    }
}

async fn line(mut stream: TcpStream) -> Reached {
    let mut bytes = [0; BEGINS];
    let mut length = 0;
    let reading = async {
        while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
            match stream.read(rest).await {
                Ok(0) => break,
                Ok(more) => length += more,
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    };
    match timeout(LIMIT, reading).await {
        Ok(Err(why)) => return Reached::Silent(why),
        Err(_) => return Reached::Silent(format!("no line within {} s", LIMIT.as_secs())),
        Ok(Ok(())) => {}
    }
    let begins = String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).into_owned();
    let begins = begins.lines().next().unwrap_or_default().to_owned();
    Reached::Answered(Reply { by: By::Plain, status: None, keys: Vec::new(), begins })
}

/// Without TLS first, and with it where that is not understood.
async fn get(at: SocketAddr, path: &str) -> Reached {
    let plain = reply(at, path, By::Plain).await;
    if let Ok(reply) = &plain
        && reply.status != Some(BAD_REQUEST)
    {
        return Reached::Answered(reply.clone());
    }
    match (reply(at, path, By::UnverifiedTls).await, plain) {
        (Ok(reply), _) | (Err(_), Ok(reply)) => Reached::Answered(reply),
        (Err(_), Err(why)) => Reached::Silent(why),
    }
}

async fn reply(at: SocketAddr, path: &str, by: By) -> Result<Reply, String> {
    let words = |error: opensdn_http_client::Error| error_chain(&error);
    let client = HttpClient::new(Trust::unverified(), LIMIT).map_err(words)?;
    let scheme = match by {
        By::Plain => "http",
        By::UnverifiedTls => "https",
    };
    let uri = format!("{scheme}://{at}{path}");
    let request = Request::get(uri)
        .header(http::header::HOST, at.to_string())
        .header(http::header::ACCEPT, "application/json")
        .body(no_body())
        .map_err(|error| error.to_string())?;
    let response = client.send(request, LIMIT).await.map_err(words)?;
    let status = response.status().as_u16();
    let bytes = read_whole(response.into_body(), LONGEST, LIMIT).await.map_err(words)?;
    Ok(Reply {
        by,
        status: Some(status),
        keys: keys(&bytes),
        begins: String::from_utf8_lossy(&bytes).chars().take(BEGINS).collect(),
    })
}

fn keys(bytes: &[u8]) -> Vec<String> {
    let Ok(Value::Object(object)) = serde_json::from_slice(bytes) else { return Vec::new() };
    let short = |key: &String| key.chars().take(BEGINS).collect();
    object.keys().take(KEYS).map(short).collect()
}

#[cfg(test)]
mod tests {
    use opensdn_node_probe::Listen;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;

    async fn one(at: SocketAddr, question: Question) -> Reached {
        let found = ask(&[WantedService { at, question }]).await;
        let [found] = &*found else { panic!("{found:?}") };
        found.reached.clone()
    }

    /// A server that writes these bytes to each that connects and has sent something, if that is waited for.
    async fn server(answer: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let _ = stream.read(&mut [0; 1024]).await;
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        at
    }

    #[tokio::test]
    async fn what_the_agent_answers_is_handed_on_and_its_status_is_no_failure() {
        let at = server(
            "HTTP/1.1 404 OK\r\nContent-Type: application/json\r\nContent-Length: 27\r\n\r\n{\"error\":\"Unknown Request\"}",
        )
        .await;
        let expected = Reply {
            by: By::Plain,
            status: Some(404),
            keys: vec!["error".to_owned()],
            begins: r#"{"error":"Unknown Request"}"#.to_owned(),
        };
        assert_eq!(one(at, Question::Get("/".to_owned())).await, Reached::Answered(expected));
        assert_eq!(one(at, Question::Connect).await, Reached::Connected);
    }

    #[tokio::test]
    async fn what_speaks_no_http_is_connected_and_silent_and_a_closed_port_is_not_reached() {
        let at = server("AMQP\0\0\u{9}\u{1}").await;
        let silent = one(at, Question::Get("/".to_owned())).await;
        assert!(matches!(silent, Reached::Silent(_)), "{silent:?}");
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let closed = one(closed, Question::Connect).await;
        assert!(matches!(closed, Reached::No(_)), "{closed:?}");
    }

    #[tokio::test]
    async fn a_peer_that_listens_is_known_by_its_line() {
        let wanted = Listen { port: 0, line: "opensdn-probe-1".to_owned() };
        let port = super::super::listen::start(&wanted).await.unwrap();
        let Reached::Answered(reply) = one(([127, 0, 0, 1], port).into(), Question::Line).await
        else {
            panic!("it listens")
        };
        assert_eq!((reply.status, reply.begins.as_str()), (None, "opensdn-probe-1"));
    }
}
