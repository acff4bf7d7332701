//! The program as a kubelet sees it: what it answers in introspect while the services that it
//! needs come and go, its ports with the certificates that are configured, how it ends, and what
//! it says of a configuration that it refuses. What it needs is played by servers of this test;
//! `tests/tests/service_images.rs` has the real ones.

use std::error::Error;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use opensdn_reserved_port::ReservedPort;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_pki_types::ServerName;
use tempfile::TempDir;

type Outcome = Result<(), Box<dyn Error>>;

const PROGRAM: &str = env!("CARGO_BIN_EXE_opensdn-stand-in");
const START_TIMEOUT: Duration = Duration::from_secs(60);
const NODE_STATUS: &str = "/Snh_SandeshUVECacheReq?x=NodeStatus";
const PASSWORD: &str = "correct-horse";

/// A server that greets as ZooKeeper, RabbitMQ or Cassandra do, until it is dropped.
struct Played {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

fn play(port: u16, answer: &'static [u8]) -> Result<Played, Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let ended = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&ended);
    let thread = thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            if until.load(Ordering::Relaxed) {
                break;
            }
            // A client that only checks whether the port is open is none of ours.
            let _ = stream.read(&mut [0; 64]).and_then(|_| stream.write_all(answer));
        }
    });
    Ok(Played { ended, thread: Some(thread) })
}

/// The Config API with all that it needs, in a folder with certificates.
struct ConfigApi {
    folder: TempDir,
    api: u16,
    introspect: u16,
    admin: u16,
    cassandra: u16,
    zookeeper: u16,
    rabbit: u16,
    _ports: [ReservedPort; 6],
}

impl ConfigApi {
    fn new() -> Result<Self, Box<dyn Error>> {
        let folder = TempDir::new()?;
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let leaf =
            CertificateParams::new(vec!["config".to_owned()])?.signed_by(&key, &authority)?;
        fs::write(folder.path().join("ca.crt"), authority.pem())?;
        fs::write(folder.path().join("server.crt"), leaf.pem())?;
        fs::write(folder.path().join("server.pem"), key.serialize_pem())?;
        fs::write(folder.path().join("other.pem"), KeyPair::generate()?.serialize_pem())?;
        let mut ports = Vec::new();
        for _ in 0..6 {
            ports.push(ReservedPort::new()?);
        }
        let ports: [ReservedPort; 6] = ports.try_into().map_err(|_| "not six")?;
        let [api, introspect, admin, cassandra, zookeeper, rabbit] =
            ports.each_ref().map(ReservedPort::number);
        Ok(Self { folder, api, introspect, admin, cassandra, zookeeper, rabbit, _ports: ports })
    }

    fn text(&self) -> String {
        let Self { api, introspect, admin, cassandra, zookeeper, rabbit, folder, .. } = self;
        let certificates = folder.path().display();
        format!(
            "[DEFAULTS]\nlisten_ip_addr=127.0.0.1\nlisten_port={api}\nhttp_server_ip=127.0.0.1\n\
             http_server_port={introspect}\nadmin_port={admin}\naaa_mode=noauth\n\
             config_api_ssl_enable=True\nconfig_api_ssl_certfile={certificates}/server.crt\n\
             config_api_ssl_keyfile={certificates}/server.pem\n\
             cassandra_server_list=127.0.0.1:{cassandra}\nzk_server_ip=127.0.0.1:{zookeeper}\n\
             rabbit_server=127.0.0.1:{rabbit}\nrabbit_user=it\nrabbit_password={PASSWORD}\n\
             rabbit_vhost=it\n[SANDESH]\nintrospect_ssl_enable=False\n"
        )
    }

    fn write(&self, text: &str) -> Result<PathBuf, Box<dyn Error>> {
        let path = self.folder.path().join("contrail-api.conf");
        fs::write(&path, text)?;
        Ok(path)
    }

    fn start(&self) -> Result<Started, Box<dyn Error>> {
        let path = self.write(&self.text())?;
        let mut command = Command::new(PROGRAM);
        command.arg("api").arg("--config").arg(path).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let out = process.stdout.take().ok_or("no output")?;
        let (said, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if said.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Started { process, lines, heard: Vec::new() })
    }

    /// The three services in their order.
    fn play(&self, which: usize) -> Result<Played, Box<dyn Error>> {
        match which {
            0 => play(self.cassandra, b"\x84\x00\x00\x00\x06\x00\x00\x00\x00"),
            1 => play(self.zookeeper, b"imok"),
            _ => play(self.rabbit, b"\x01\x00\x00\x00\x00\x00\x04"),
        }
    }

    fn stop(&self, which: usize, mut played: Played) {
        let port = match which {
            0 => self.cassandra,
            1 => self.zookeeper,
            _ => self.rabbit,
        };
        played.ended.store(true, Ordering::Relaxed);
        // Wakes it; if the program has just done so, nothing takes this.
        let _ = TcpStream::connect(("127.0.0.1", port));
        played.thread.take().map(JoinHandle::join);
    }
}

struct Started {
    process: Child,
    lines: Receiver<String>,
    heard: Vec<String>,
}

impl Started {
    /// Waits until the program says a line with that.
    #[track_caller]
    fn says(&mut self, wanted: &str) {
        let end = Instant::now() + START_TIMEOUT;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            assert!(line.is_ok(), "never said {wanted:?}: {:#?}", self.heard);
            let line = line.unwrap_or_default();
            let is_it = line.contains(wanted);
            self.heard.push(line);
            if is_it {
                return;
            }
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The answer's head and body.
fn get(
    mut stream: impl std::io::Read + std::io::Write,
    path: &str,
) -> Result<String, Box<dyn Error>> {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    // A peer that closes without TLS' close_notify has still sent everything.
    let _ = stream.read_to_end(&mut answer);
    Ok(String::from_utf8(answer)?)
}

type Status = (String, String, Vec<String>);

/// Waits until introspect says so.
fn becomes(port: u16, what: &str, is: impl Fn(&Status) -> bool) -> Result<(), Box<dyn Error>> {
    let end = Instant::now() + START_TIMEOUT;
    loop {
        let status = node_status(port)?;
        if is(&status) {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(format!("not {what}: {status:?}").into());
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// State and description of the process, and its connections that are down, from introspect.
fn node_status(port: u16) -> Result<Status, Box<dyn Error>> {
    let answer = get(TcpStream::connect(("127.0.0.1", port))?, NODE_STATUS)?;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("no body")?;
    let page = roxmltree::Document::parse(body)?;
    // As contrail-status does.
    let path = ["process_status", "list", "ProcessStatus"];
    let mut at = page.descendants().find(|it| it.has_tag_name("NodeStatus")).ok_or("no status")?;
    for name in path {
        at = at.children().find(|it| it.has_tag_name(name)).ok_or(name)?;
    }
    let text = |of: roxmltree::Node<'_, '_>, name: &str| {
        let child = of.children().find(|it| it.has_tag_name(name));
        child.and_then(|it| it.text()).unwrap_or_default().to_owned()
    };
    assert_eq!(text(at, "module_id"), "contrail-api");
    let infos = at.descendants().filter(|it| it.has_tag_name("ConnectionInfo"));
    let down = infos.filter(|it| text(*it, "status") == "Down").map(|it| text(it, "name"));
    Ok((text(at, "state"), text(at, "description"), down.collect()))
}

#[test]
fn is_functional_while_all_that_it_needs_answers() -> Outcome {
    let it = ConfigApi::new()?;
    let mut played = Vec::new();
    for which in 0..3 {
        played.push(it.play(which)?);
    }
    let mut program = it.start()?;
    program.says("now Functional");
    let all_is_well = ("Functional".into(), String::new(), vec![]);
    becomes(it.introspect, "functional", |status| *status == all_is_well)?;
    // Each goes and returns.
    for (which, name) in [(0, "Cassandra"), (1, "Zookeeper"), (2, "RabbitMQ")] {
        it.stop(which, played.remove(0));
        becomes(it.introspect, name, |(state, description, down)| {
            let is_told = description.ends_with(&format!(":{name} connection down"));
            state == "Non-Functional" && is_told && *down == [name]
        })?;
        program.says("now Non-Functional");
        played.push(it.play(which)?);
        becomes(it.introspect, "functional", |status| *status == all_is_well)?;
    }
    // Another program on the port is not what is needed.
    it.stop(0, played.remove(0));
    let _other = play(it.cassandra, b"HTTP/1.1 400 Bad Request\r\n\r\n")?;
    program.says("does not speak its protocol");
    assert!(!program.heard.concat().contains(PASSWORD), "{:#?}", program.heard);
    Ok(())
}

#[test]
fn serves_with_its_certificate_and_ends_at_once_on_sigterm() -> Outcome {
    let it = ConfigApi::new()?;
    let mut program = it.start()?;
    program.says("now Non-Functional");
    let mut roots = RootCertStore::empty();
    let authority = fs::read(it.folder.path().join("ca.crt"))?;
    for certificate in rustls_pki_types::pem::PemObject::pem_slice_iter(&authority) {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let tls = tls.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("config")?;
    let tls = ClientConnection::new(Arc::new(tls), name)?;
    let stream = StreamOwned::new(tls, TcpStream::connect(("127.0.0.1", it.api))?);
    let answer = get(stream, "/")?;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("contrail-api"), "{answer}");
    let missing = get(TcpStream::connect(("127.0.0.1", it.introspect))?, "/elsewhere")?;
    assert!(missing.starts_with("HTTP/1.1 404"), "{missing}");
    let begun = Instant::now();
    let process = i32::try_from(program.process.id())?;
    let process = rustix::process::Pid::from_raw(process).ok_or("no process")?;
    rustix::process::kill_process(process, rustix::process::Signal::TERM)?;
    assert_eq!(program.process.wait()?.code(), Some(0));
    // Kubernetes would wait for 30 seconds and then kill it.
    assert!(begun.elapsed() < START_TIMEOUT, "{:?}", begun.elapsed());
    Ok(())
}

/// Exit code and message.
fn refused(it: &ConfigApi, text: &str) -> Result<(Option<i32>, String), Box<dyn Error>> {
    let path = it.write(text)?;
    let output = Command::new(PROGRAM).arg("api").arg("--config").arg(path).output()?;
    Ok((output.status.code(), String::from_utf8(output.stderr)?))
}

#[test]
fn wrong_configuration_is_refused_with_its_place_and_a_remedy() -> Outcome {
    let it = ConfigApi::new()?;
    let good = it.text();
    let file = it.folder.path().join("contrail-api.conf").display().to_string();
    let pem = |name: &str| it.folder.path().join(name).display().to_string();
    let wrongs = [
        (
            good.replace("[SANDESH]", "rabbit_vhost\n[SANDESH]"),
            "neither a section nor key=value; see",
        ),
        (
            good.replace("aaa_mode=noauth\n", ""),
            "[DEFAULTS] aaa_mode: there is no such key; add it",
        ),
        (good.replace("DEFAULTS", "DEFAULT"), "[DEFAULTS] aaa_mode: there is no such section; add"),
        (good.replace(PASSWORD, ""), "[DEFAULTS] rabbit_password: there is no value; give it one"),
        (good.replace(PASSWORD, "a<nil>b"), "[DEFAULTS] rabbit_password: a placeholder was left"),
        (
            good.replace(&format!("listen_port={}", it.api), "listen_port=80820"),
            "[DEFAULTS] listen_port: \"80820\" is no port; give a number from 1 to 65535",
        ),
        (
            good.replace("listen_ip_addr=127.0.0.1", "listen_ip_addr={{ .ListenAddress }}"),
            "[DEFAULTS] listen_ip_addr: a placeholder was left as it was: {{ … }}; fill it",
        ),
        (
            good.replace(&pem("server.pem"), &pem("other.pem")),
            "[DEFAULTS] config_api_ssl_certfile: use ",
        ),
        (
            good.replace(&pem("server.crt"), &pem("none.crt")),
            "none.crt: I/O error: No such file or directory (os error 2); mount the Secret",
        ),
        (
            good.replace("config_api_ssl_keyfile", "config_api_ssl_key"),
            "[DEFAULTS] config_api_ssl_keyfile: there is no such key",
        ),
    ];
    for (text, wanted) in wrongs {
        let (code, said) = refused(&it, &text)?;
        assert_eq!(code, Some(2), "{said}");
        assert!(said.starts_with(&format!("api: {file}")) && said.contains(wanted), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let missing = Command::new(PROGRAM).args(["api", "--config", "/none/api.conf"]).output()?;
    let said = String::from_utf8(missing.stderr)?;
    assert_eq!(missing.status.code(), Some(2));
    assert!(said.starts_with("api: read /none/api.conf; mount it there"), "{said}");
    Ok(())
}

#[test]
fn port_that_is_taken_is_named_and_is_no_fault_of_the_configuration() -> Outcome {
    let it = ConfigApi::new()?;
    let _taken = TcpListener::bind(("127.0.0.1", it.api))?;
    let (code, said) = refused(&it, &it.text())?;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&format!("listen on 127.0.0.1:{} for Config API", it.api)), "{said}");
    Ok(())
}
