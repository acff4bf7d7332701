//! Who answers in the place of the API server (an aggregated one may) and says to ask elsewhere: the
//! webhook does not go there, and so its token does not.

use std::cell::RefCell;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use opensdn_testing::Outcome;
use opensdn_testing::eventually::eventually;
use opensdn_testing::programs::program;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const TOKEN: &str = "a-token-for-tests-only";

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Answers one request with a redirect to `place`; whether it had the token.
async fn redirect(mut stream: TcpStream, place: &str) -> bool {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(read @ 1..) => request.extend_from_slice(buffer.get(..read).unwrap_or_default()),
            _ => return false,
        }
    }
    let answer = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: {place}\r\ncontent-length: 0\r\n\
         connection: close\r\n\r\n"
    );
    // Who asked may have gone.
    let _ = stream.write_all(answer.as_bytes()).await;
    String::from_utf8_lossy(&request).contains(&format!("Bearer {TOKEN}"))
}

/// Counts what arrives.
fn count(listener: TcpListener, place: Option<String>) -> Arc<AtomicUsize> {
    let count = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let counts = match &place {
                Some(place) => redirect(stream, place).await,
                None => true,
            };
            counted.fetch_add(usize::from(counts), Ordering::SeqCst);
        }
    });
    count
}

#[tokio::test]
async fn a_redirect_of_the_api_server_is_not_followed() -> Outcome {
    let (server, elsewhere) =
        (TcpListener::bind("127.0.0.1:0").await?, TcpListener::bind("127.0.0.1:0").await?);
    let (url, place) = (server.local_addr()?, elsewhere.local_addr()?);
    let asked = count(server, Some(format!("http://{place}/api")));
    let followed = count(elsewhere, None);
    let folder = tempfile::tempdir()?;
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{url}")}}],
        "users": [{"name": "c", "user": {"token": TOKEN}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]});
    let file = folder.path().join("kubeconfig");
    fs::write(&file, kubeconfig.to_string())?;
    let mut command = Command::new(program("opensdn-webhook")?);
    command.args(["--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0"]);
    command.env_clear().env("KUBECONFIG", file).stdout(Stdio::null()).stderr(Stdio::null());
    let running = RefCell::new(Running(command.spawn()?));
    // A redirect would be followed before the next request.
    let has_asked = async || {
        let ended = running.borrow_mut().0.try_wait().is_ok_and(|status| status.is_some());
        let asked = asked.load(Ordering::SeqCst);
        asked > 2 || (ended && asked > 0)
    };
    eventually("the webhook has asked the API server, with its token", has_asked).await;
    assert_eq!(followed.load(Ordering::SeqCst), 0, "it went where it was sent");
    Ok(())
}
