//! Replaces the vrouter agent below a node of the lab, as far as link-local services are concerned: it reads their list
//! from the Config API and leads connections of the node and of its pods to the fabric, by rules of its own in the
//! node's iptables; and it answers on the agent's port. An API that is away changes nothing, as with the agent.
//! Deliberately not here: UDP, services by a name of DNS, and the choice among several fabric addresses.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use clap::Parser;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::time::{interval, timeout};

use crate::{chain, say};

/// Of the agent, for the CNI plugin.
const PORT: u16 = 9091;
/// How the agent answers what it does not know.
const ANSWER: &[u8] =
    b"HTTP/1.1 404 OK\r\nContent-Type: application/json\r\nContent-Length: 27\r\n\
    Connection: close\r\n\r\n{\"error\":\"Unknown Request\"}";
/// Holds the rules of this program.
const CHAIN: &str = "OPENSDN-LINK-LOCAL";
const INTERVAL: Duration = Duration::from_millis(200);
/// For an answer of the Config API.
const LIMIT: Duration = Duration::from_secs(5);
const HEADER_END: &[u8] = b"\r\n\r\n";

/// Leads link-local services of this node to the fabric.
#[derive(Debug, Parser)]
#[command(name = "opensdn-link-local-agent", version)]
pub struct Arguments {
    /// Where the Config API is, which asks for no token
    #[arg(long, value_name = "ADDRESS:PORT")]
    config_api: SocketAddr,
    /// The interface of the node that leads to the fabric
    #[arg(long, value_name = "NAME", default_value = "eth0")]
    uplink: String,
}

/// Why it does not work.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("start")]
    Start(#[source] io::Error),
    #[error("listen on port {PORT}")]
    Listen(#[source] io::Error),
    #[error("run {program}")]
    Run {
        program: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("{program} failed: {said}")]
    Failed { program: &'static str, said: String },
}

/// A link-local service: where it is for virtual machines, and in the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    service: (Ipv4Addr, u16),
    fabric: (Ipv4Addr, u16),
}

/// Runs until it is ended; exit code 1 for what the node did not give.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended =
        runtime.map_err(Error::Start).and_then(|runtime| runtime.block_on(serve(arguments)));
    if let Err(error) = ended {
        say(&format!("link-local agent: {}", chain(&error)));
    }
    ExitCode::FAILURE
}

async fn serve(arguments: &Arguments) -> Result<(), Error> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).await.map_err(Error::Listen)?;
    tokio::spawn(answer(listener));
    // What leads to 127.0.0.1 is dropped otherwise, as no other machine has that address.
    let setting = "/proc/sys/net/ipv4/conf/all/route_localnet";
    tokio::fs::write(setting, "1\n").await.map_err(Error::Start)?;
    restore(&format!(":{CHAIN} - [0:0]\n-I PREROUTING -j {CHAIN}\n-I OUTPUT -j {CHAIN}\n")).await?;
    let mut current: Option<Vec<Row>> = None;
    let mut ticks = interval(INTERVAL);
    loop {
        ticks.tick().await;
        let Ok(Ok(body)) = timeout(LIMIT, read(arguments.config_api)).await else { continue };
        let Some(rows) = rows(&body) else { continue };
        if current.as_ref() != Some(&rows) {
            lead(&rows, &arguments.uplink).await?;
            say(&format!("{} link-local services", rows.len()));
            current = Some(rows);
        }
    }
}

/// Whatever is asked is not known here.
async fn answer(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            // Who has asked nothing yet may only want to know whether the port is open.
            let asked = stream.read(&mut [0; 4096]).await;
            if asked.is_ok_and(|length| length > 0) {
                let _ = stream.write_all(ANSWER).await;
            }
        });
    }
}

/// The objects with the list, as JSON.
async fn read(at: SocketAddr) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(at).await?;
    let request = format!(
        "GET /global-vrouter-configs?detail=true HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    let end = bytes.windows(HEADER_END.len()).position(|part| part == HEADER_END);
    let body = end.map(|end| bytes.split_off(end + HEADER_END.len()));
    body.filter(|_| bytes.starts_with(b"HTTP/1.1 200"))
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Those that have addresses. Nothing where the answer is none.
fn rows(body: &[u8]) -> Option<Vec<Row>> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let object = body.get("global-vrouter-configs")?.get(0)?.get("global-vrouter-config")?;
    let list = object.pointer("/linklocal_services/linklocal_service_entry");
    let entries = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    Some(entries.iter().filter_map(row).collect())
}

fn row(entry: &Value) -> Option<Row> {
    let address = |value: &Value| value.as_str()?.parse::<Ipv4Addr>().ok();
    let port = |key: &str| entry.get(key)?.as_u64()?.try_into().ok();
    Some(Row {
        service: (address(entry.get("linklocal_service_ip")?)?, port("linklocal_service_port")?),
        fabric: (
            address(entry.get("ip_fabric_service_ip")?.get(0)?)?,
            port("ip_fabric_service_port")?,
        ),
    })
}

async fn lead(rows: &[Row], uplink: &str) -> Result<(), Error> {
    // Without a route the node itself would not get as far as the rules.
    let addresses: BTreeSet<Ipv4Addr> = rows.iter().map(|row| row.service.0).collect();
    for address in addresses {
        let route = format!("{address}/32");
        finish("ip", &["route", "replace", &route, "dev", uplink], "").await?;
    }
    restore(&rules(rows)).await
}

/// Of rows with one address and port the first is taken, as by the agent.
fn rules(rows: &[Row]) -> String {
    // Named as a new chain it is emptied.
    let mut text = format!(":{CHAIN} - [0:0]\n");
    for Row { service: (address, port), fabric: (to, to_port) } in rows {
        // Into a string: never fails.
        let _ = writeln!(
            text,
            "-A {CHAIN} -d {address}/32 -p tcp --dport {port} -j DNAT --to-destination {to}:{to_port}"
        );
    }
    text
}

async fn restore(rules: &str) -> Result<(), Error> {
    let input = format!("*nat\n{rules}COMMIT\n");
    finish("iptables-restore", &["--noflush", "--wait"], &input).await
}

async fn finish(program: &'static str, arguments: &[&str], input: &str) -> Result<(), Error> {
    let failed = |source| Error::Run { program, source };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // What ends before it has read says why.
        let _ = stdin.write_all(input.as_bytes()).await;
    }
    let output = child.wait_with_output().await.map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Failed { program, said })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(entries: &Value) -> Vec<u8> {
        let services = json!({"linklocal_service_entry": entries});
        json!({"global-vrouter-configs": [{"global-vrouter-config": {"linklocal_services": services}}]})
            .to_string()
            .into_bytes()
    }

    #[test]
    fn each_service_is_led_to_the_fabric_and_one_with_a_name_is_left_out() {
        let entry = |ip: &str, port: u16, fabric: Value| {
            json!({"linklocal_service_name": "x", "linklocal_service_ip": ip, "linklocal_service_port": port,
                "ip_fabric_service_ip": fabric, "ip_fabric_service_port": 8775})
        };
        let entries = json!([
            entry("10.10.10.1", 8082, json!(["192.168.1.100", "192.168.1.101"])),
            entry("10.10.10.2", 53, json!([])),
        ]);
        let rows = rows(&body(&entries)).unwrap();
        assert_eq!(
            rules(&rows),
            ":OPENSDN-LINK-LOCAL - [0:0]\n\
             -A OPENSDN-LINK-LOCAL -d 10.10.10.1/32 -p tcp --dport 8082 -j DNAT --to-destination 192.168.1.100:8775\n"
        );
    }

    #[test]
    fn a_cloud_without_services_has_none_and_what_is_no_answer_changes_nothing() {
        assert_eq!(rows(&body(&Value::Null)), Some(vec![]));
        assert_eq!(rows(b"{}"), None);
        assert_eq!(rows(b"Bad Gateway"), None);
    }
}
