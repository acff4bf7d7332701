//! Nodes of Cassandra, each with an address of the loopback network and a folder for what a pod mounts, and the operator's way
//! to them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use opensdn_operator::ensemble::{Access, Change, Member, Tended, View};
use opensdn_operator::exec::{Exec, ExecError, Output};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::cluster::{Cluster, answered};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// A node starts in about 20 s on two busy cores; who joins waits for others to have started first.
pub(super) const LONGEST: Duration = Duration::from_secs(240);
const PORT: u16 = 9041;
/// What tf-operator's API has there, and what all nodes on one machine cannot share.
const JMX: &str = "7201";

/// What `tests/images` has of Cassandra.
#[derive(Clone, Debug)]
struct Programs {
    jars: String,
    java: String,
}

impl Programs {
    fn fetch() -> Self {
        let run = |script: &str, words: &[&str]| {
            let path = format!("{REPOSITORY}/tests/images/{script}");
            let done = Command::new("bash").arg(path).args(words).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            String::from_utf8(done.stdout).unwrap().trim().to_owned()
        };
        Self {
            jars: run("build.sh", &["cassandra-3.11", "--jars"]),
            java: run("cassandra-3.11/java.sh", &[]),
        }
    }
}

/// The folders of the pods, and which of them run.
#[derive(Debug)]
pub(super) struct Pods {
    folder: PathBuf,
    programs: Programs,
    running: Mutex<BTreeSet<String>>,
}

impl Pods {
    pub(super) fn folder_of(&self, address: &str) -> PathBuf {
        self.folder.join(address)
    }

    /// What runs in the container of that pod.
    pub(super) fn command(&self, address: &str, script: &str, words: &[&str]) -> Command {
        let folder = self.folder_of(address);
        let path = std::env::var("PATH").unwrap();
        let (java, images) = (&self.programs.java, format!("{REPOSITORY}/tests/images"));
        let mut command = Command::new("bash");
        command
            .arg(folder.join("files").join(script))
            .args(words)
            .env("POD_IP", address)
            .env("HOME", &folder)
            .env("JAVA_HOME", java)
            .env("CASSANDRA_JARS", &self.programs.jars)
            .env("CASSANDRA_LOGBACK", format!("{images}/cassandra/root/etc/cassandra"))
            .env("PATH", format!("{images}/cassandra-3.11/bin:{java}/bin:{path}"))
            .current_dir(&folder)
            .stdin(Stdio::null());
        command
    }

    pub(super) fn manage(&self, address: &str, words: &[&str]) -> Output {
        let done = self.command(address, "manage-cassandra.sh", words).output().unwrap();
        answered(&done)
    }
}

/// In the place of the API server.
#[derive(Debug)]
struct Here(Arc<Pods>);

impl Exec for Here {
    fn run<'a>(
        &'a self,
        address: &'a str,
        container: &'a str,
        command: &'a [&'a str],
        _: Duration,
    ) -> BoxFuture<'a, Result<Output, ExecError>> {
        assert_eq!((container, command[0]), ("cassandra", "bash"));
        assert_eq!(command[1], "/etc/contrailconfigmaps/manage-cassandra.sh");
        if !self.0.running.lock().unwrap().contains(address) {
            return std::future::ready(Err(ExecError::NoPod(address.to_owned()))).boxed();
        }
        let (pods, address) = (self.0.clone(), address.to_owned());
        let words: Vec<String> = command[2..].iter().map(|&word| word.to_owned()).collect();
        let run = tokio::task::spawn_blocking(move || {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            pods.manage(&address, &words)
        });
        run.map(|done| Ok(done.unwrap())).boxed()
    }
}

/// What a cluster has of a Cassandra, and its nodes.
pub(super) struct Stage {
    pub(super) cluster: Cluster,
    pub(super) pods: Arc<Pods>,
    servers: Vec<(String, Child)>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        while let Some((address, _)) = self.servers.first() {
            self.kill(&address.clone());
        }
    }
}

fn object(has_reaper: bool) -> Value {
    json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Cassandra",
        "metadata": {"name": "configdb1", "namespace": "tf", "uid": "u", "generation": 1},
        "spec": {"serviceConfiguration": {"reaperEnabled": has_reaper, "minHeapSize": "192m", "maxHeapSize": "256m", "containers": [
            {"name": "cassandra", "image": "registry.example.com/contrail-external-cassandra:R24.1"},
            {"name": "nodemanager", "image": "registry.example.com/contrail-nodemgr:R24.1"},
            {"name": "provisioner", "image": "registry.example.com/contrail-provisioner:R24.1"}]}}})
}

impl Stage {
    /// With nodes at these addresses, of which none runs Cassandra yet.
    pub(super) fn new(addresses: &[&str]) -> Self {
        Self::with(addresses, false)
    }

    pub(super) fn with(addresses: &[&str], has_reaper: bool) -> Self {
        let cluster = Cluster::new(object(has_reaper), addresses, LONGEST);
        let (folder, programs) = (cluster.folder_of(""), Programs::fetch());
        let pods = Arc::new(Pods { folder, programs, running: Mutex::default() });
        Self { cluster, pods, servers: Vec::new() }
    }

    /// Writes what the operator applies into the folders that the pods mount.
    pub(super) fn render(&self) {
        self.cluster.render(|address, text| {
            let jmx =
                format!("72{:02}", address.rsplit_once('.').unwrap().1.parse::<u8>().unwrap());
            let places = [
                ("/etc/contrailconfigmaps", "files"),
                ("/etc/certificates", "certificates"),
                ("/etc/ssl/certs/kubernetes", "trust"),
                ("/etc/credentials", "credentials"),
                ("/etc/keystore", "keystore"),
                ("/etc/cassandra/", "configuration/"),
                ("/var/lib/cassandra", "data"),
                ("/tmp/cassandra.", "cassandra."),
                ("/root/", ""),
                ("/dev/termination-log", "last-words"),
            ];
            let text = self.cluster.mounted(address, text, &places);
            let text = text.replace("/docker-entrypoint.sh", "docker-entrypoint.sh");
            // Only OpenSDN's images have it.
            let text = text.replace("/run-reaper.sh &", "env >reaper-environment &");
            text.replace(JMX, &jmx)
        });
        for address in &self.cluster.valid.addresses {
            let own = self.cluster.made(address, "credentials/own");
            for password in &self.cluster.valid.description.passwords {
                fs::write(own.join(password.key), secret(password.key)).unwrap();
            }
        }
    }

    /// Starts the container of the pod there.
    pub(super) fn start(&mut self, address: &str) {
        for name in ["data", "configuration"] {
            self.cluster.made(address, name);
        }
        let log = self.cluster.log_file(address);
        let mut command = self.pods.command(address, "run-cassandra.sh", &[]);
        let env = &self.cluster.valid.description.containers[0].env;
        command.envs(env.iter().map(|(name, value)| (name, value)));
        // With all that it starts.
        command.process_group(0).stdout(log.try_clone().unwrap()).stderr(log);
        self.servers.push((address.to_owned(), command.spawn().unwrap()));
        self.pods.running.lock().unwrap().insert(address.to_owned());
    }

    /// Ends it, as at once as a lost node.
    pub(super) fn kill(&mut self, address: &str) {
        let position = self.servers.iter().position(|(other, _)| other == address).unwrap();
        let (_, mut server) = self.servers.remove(position);
        let group = format!("-{}", server.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        server.wait().unwrap();
        self.pods.running.lock().unwrap().remove(address);
    }

    /// The containers that have ended are started again, as the kubelet does.
    pub(super) fn start_again_who_ended(&mut self) -> usize {
        let has_ended = |server: &mut Child| server.try_wait().unwrap().is_some();
        let ended = self
            .servers
            .iter_mut()
            .filter_map(|(host, server)| has_ended(server).then(|| host.clone()));
        let ended: Vec<String> = ended.collect();
        for host in &ended {
            self.kill(host);
            self.start(host);
        }
        ended.len()
    }

    /// Another node comes to those for which there are files.
    pub(super) fn more(&mut self, address: &str) {
        self.cluster.add(address);
        self.cluster.set_had_quorum();
        self.render();
    }

    pub(super) fn access(&self) -> Access {
        self.cluster.access(Arc::new(Here(self.pods.clone())))
    }

    pub(super) async fn view(&self) -> Result<View, String> {
        self.cluster.view(&self.access()).await
    }

    /// Until those serve and are the members, and take clients.
    pub(super) async fn serve(&mut self, addresses: &[&str]) -> View {
        let expected: BTreeSet<String> = addresses.iter().map(|&one| one.to_owned()).collect();
        let begun = Instant::now();
        loop {
            let view = self.view().await;
            let takes = |address: &&str| self.pods.manage(address, &["serves"]).code == 0;
            match view {
                Ok(view)
                    if view.serving == expected
                        && view.members.len() == expected.len()
                        && addresses.iter().all(takes) =>
                {
                    return view;
                }
                other => assert!(begun.elapsed() < LONGEST, "{other:?}\n{}", self.cluster.logs()),
            }
            for (address, server) in &mut self.servers {
                let ended = server.try_wait().unwrap();
                assert!(ended.is_none(), "{address}: {ended:?}\n{}", self.cluster.log(address));
            }
            // Java has to start for each look.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Until nothing is left to do, and what was done.
    pub(super) async fn tend(&self) -> Vec<String> {
        let begun = Instant::now();
        let mut done: Vec<String> = Vec::new();
        loop {
            let view = self.view().await.unwrap();
            match self.cluster.ensemble().tend(&self.access(), &view).await {
                Ok(Tended { does: None, .. }) => return done,
                Ok(Tended { does: Some(what), .. }) if done.last() != Some(&what) => {
                    done.push(what)
                }
                Ok(_) => {}
                Err(error) => done.push(error.to_string()),
            }
            assert!(begun.elapsed() < LONGEST, "{done:?}\n{}", self.cluster.logs());
            // A repair takes its time.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Until the member is none any more.
    pub(super) async fn remove(&self, member: &Member) {
        let begun = Instant::now();
        let mut said = Vec::new();
        loop {
            // While it leaves, not all agree.
            if let Ok(view) = self.view().await {
                if !view.has(&member.host) {
                    return;
                }
                let change = Change::Remove(member.clone());
                if let Err(why) = self.cluster.ensemble().make(&self.access(), &view, &change).await
                {
                    said.push(why.to_string());
                }
            }
            assert!(begun.elapsed() < LONGEST, "{said:?}\n{}", self.cluster.logs());
            // It hands over what it has.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Runs a statement at a consistency, and answers the frame.
    pub(super) async fn cql(&self, address: &str, consistency: u8, statement: &str) -> String {
        let stream = tokio::net::TcpStream::connect((address, PORT)).await.unwrap();
        let name = ServerName::try_from(address.to_owned()).unwrap();
        let tls = tokio_rustls::TlsConnector::from(self.access().operator);
        let mut stream = tls.connect(name, stream).await.unwrap();
        let start = b"\x04\0\0\0\x01\0\0\0\x16\0\x01\0\x0bCQL_VERSION\0\x053.0.0";
        stream.write_all(start).await.unwrap();
        let mut ready = [0; 9];
        stream.read_exact(&mut ready).await.unwrap();
        let length = u32::try_from(statement.len()).unwrap();
        let mut frame = vec![4, 0, 0, 0, 7];
        frame.extend((length + 7).to_be_bytes());
        frame.extend(length.to_be_bytes());
        frame.extend(statement.as_bytes());
        frame.extend([0, consistency, 0]);
        stream.write_all(&frame).await.unwrap();
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let length = u32::from_be_bytes(head[5..].try_into().unwrap());
        let mut body = vec![0; usize::try_from(length).unwrap()];
        stream.read_exact(&mut body).await.unwrap();
        let text = String::from_utf8_lossy(&body).into_owned();
        assert_eq!(head[4], 8, "{statement}: {text}\n{}", self.cluster.logs());
        text
    }

    /// As OpenSDN does where it has found so many nodes.
    pub(super) async fn create(&self, factor: u32) {
        let first = &self.cluster.valid.addresses[0];
        let replication = format!("{{'class': 'SimpleStrategy', 'replication_factor': {factor}}}");
        let create = format!("CREATE KEYSPACE config_db_uuid WITH replication = {replication}");
        self.cql(first, ONE, &create).await;
        self.cql(first, ONE, "CREATE TABLE config_db_uuid.t (k int PRIMARY KEY, v text)").await;
        for row in 0..ROWS {
            let insert =
                format!("INSERT INTO config_db_uuid.t (k, v) VALUES ({row}, 'value-{row}')");
            self.cql(first, ALL, &insert).await;
        }
    }

    /// How many rows of the table are read at that consistency.
    pub(super) async fn rows(&self, address: &str, consistency: u8) -> usize {
        let text = self.cql(address, consistency, "SELECT v FROM config_db_uuid.t").await;
        text.matches("value-").count()
    }

    pub(super) async fn factor(&self, address: &str) -> String {
        let statement = "SELECT toJson(replication) FROM system_schema.keyspaces WHERE keyspace_name = 'config_db_uuid'";
        let text = self.cql(address, ONE, statement).await;
        text.rsplit("\"replication_factor\": \"").next().unwrap().chars().next().unwrap().into()
    }

    /// Until one sees that the others are down, which takes some seconds.
    pub(super) async fn sees_down(&self, address: &str, others: &[&str]) {
        let begun = Instant::now();
        let down = |said: &str| others.iter().all(|other| said.contains(&format!("DN  {other} ")));
        while !down(&self.pods.manage(address, &["status"]).stdout) {
            assert!(begun.elapsed() < LONGEST, "{}", self.cluster.logs());
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    pub(super) async fn logged(&self, address: &str, text: &str) {
        let said = self.cluster.logged(address, text).await;
        said.unwrap_or_else(|other| panic!("{other}\n{}", self.cluster.logs()));
    }
}

/// The password of that key.
pub(super) fn secret(key: &str) -> String {
    format!("of-{:.8}", key.replace("Password", ""))
}

pub(super) const ONE: u8 = 1;
pub(super) const ALL: u8 = 5;
pub(super) const ROWS: usize = 40;

/// Debian has none: without it these are left out, and say so.
pub(super) fn has_java_8() -> bool {
    let is_there = std::env::var_os("JAVA8_HOME").is_some();
    if !is_there {
        eprintln!("left out: Cassandra 3.11 needs Java 8; set JAVA8_HOME to its folder");
    }
    is_there
}
