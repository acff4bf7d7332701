//! The whole process but for its reviews: flags in, ports and certificate up, SIGTERM, end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use clap::Parser;
use opensdn_reserved_port::ReservedPort;
use opensdn_webhook::args::Args;
use opensdn_webhook::{startup, wiring::Context};
use rustix::process::{Signal, getpid, kill_process};
use tokio::sync::Semaphore;

use crate::admin::get;
use crate::stage::{Ca, Connection, Echo, NAME, TOKEN, VALIDATE, client};

/// A client of an API server that is not there.
fn nobody(port: &ReservedPort) -> kube::Client {
    let uri = format!("http://{}", port.address()).parse().unwrap();
    kube::Client::try_from(kube::Config::new(uri)).unwrap()
}

/// Calls until the server has asked five times to close the connection: the API server keeps
/// calling until the endpoint is gone, and may well reconnect.
async fn calls(address: SocketAddr, config: Arc<rustls::ClientConfig>) -> usize {
    let (mut served, mut closed) = (0, 0);
    let mut connection = Connection::open(address, config.clone()).await.unwrap();
    while closed < 5 {
        let answer = connection.review(VALIDATE, b"{}").await.unwrap();
        assert_eq!(answer.status, 200);
        served += 1;
        if answer.closes() {
            closed += 1;
            connection = Connection::open(address, config.clone()).await.unwrap();
        }
    }
    served
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_termination_signal_under_load_loses_no_call_and_ends_the_process_well() {
    let ca = Ca::new("server CA");
    let pair = ca.sign(NAME);
    let folder = tempfile::tempdir().unwrap();
    let (chain, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    std::fs::write(&chain, &pair.chain).unwrap();
    std::fs::write(&key, &pair.key).unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, TOKEN).unwrap();
    let ports = [(); 3].map(|()| ReservedPort::new().unwrap());
    let [listen, admin, _] = ports.each_ref().map(ReservedPort::address);
    let args = [
        "opensdn-webhook".to_owned(),
        format!("--listen={listen}"),
        format!("--admin-listen={admin}"),
        format!("--tls-cert={}", chain.display()),
        format!("--tls-key={}", key.display()),
        format!("--path-tokens={}", tokens.display()),
        "--drain-seconds=60".to_owned(),
        "--grace-seconds=5".to_owned(),
    ];
    let running = tokio::spawn(startup::run(
        Args::try_parse_from(args).unwrap(),
        nobody(&ports[2]),
        async |context: Context| {
            assert!(context.bundle.borrow().is_none(), "a given certificate's CA is not ours");
            let permits = Arc::new(Semaphore::new(1 << 20));
            Echo { permits, waiting: Arc::new(AtomicUsize::new(0)) }
        },
    ));
    while tokio::net::TcpStream::connect(admin).await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    while !get(admin, "/ready").await.starts_with("HTTP/1.1 200") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    let config = client(&ca, None);
    let loads: Vec<_> = (0..8).map(|_| tokio::spawn(calls(listen, config.clone()))).collect();
    while !get(admin, "/metrics").await.contains("opensdn_webhook_connections 8\n") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    kill_process(getpid(), Signal::TERM).unwrap();
    for load in loads {
        assert!(load.await.unwrap() >= 5);
    }
    let answer = get(admin, "/ready").await;
    assert!(answer.contains("shutdown: the process is stopping"), "{answer}");
    // The second one means that no caller is left.
    kill_process(getpid(), Signal::TERM).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(60), running).await.unwrap();
    ended.unwrap().unwrap();
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let args = ["opensdn-webhook".to_owned(), format!("--listen={address}")];
    let port = ReservedPort::new().unwrap();
    let run = startup::run(Args::try_parse_from(args).unwrap(), nobody(&port), async |_| Echo {
        permits: Arc::new(Semaphore::new(1)),
        waiting: Arc::new(AtomicUsize::new(0)),
    });
    let error = run.await.unwrap_err();
    assert_eq!(error.to_string(), format!("listen on {address}"));
    assert_eq!(error.hint(), Some("another process may have the port"));
}
