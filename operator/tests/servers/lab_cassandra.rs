//! Cassandra 3.11.19 itself on Java 8, as OpenSDN's images have it, started by the files that the operator renders, and
//! changed by the operator: a first start, growth with what it stores, a member that leaves, and one that has lost all.
//! Each node has an address of the loopback network, and a folder for what a pod mounts.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "a test, which is a story, and the line says where"
)]

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
const LONGEST: Duration = Duration::from_secs(240);
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
struct Pods {
    folder: PathBuf,
    programs: Programs,
    running: Mutex<BTreeSet<String>>,
}

impl Pods {
    fn folder_of(&self, address: &str) -> PathBuf {
        self.folder.join(address)
    }

    /// What runs in the container of that pod.
    fn command(&self, address: &str, script: &str, words: &[&str]) -> Command {
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

    fn manage(&self, address: &str, words: &[&str]) -> Output {
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
struct Stage {
    cluster: Cluster,
    pods: Arc<Pods>,
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
    fn new(addresses: &[&str]) -> Self {
        Self::with(addresses, false)
    }

    fn with(addresses: &[&str], has_reaper: bool) -> Self {
        let cluster = Cluster::new(object(has_reaper), addresses, LONGEST);
        let (folder, programs) = (cluster.folder_of(""), Programs::fetch());
        let pods = Arc::new(Pods { folder, programs, running: Mutex::default() });
        Self { cluster, pods, servers: Vec::new() }
    }

    /// Writes what the operator applies into the folders that the pods mount.
    fn render(&self) {
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
    fn start(&mut self, address: &str) {
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
    fn kill(&mut self, address: &str) {
        let position = self.servers.iter().position(|(other, _)| other == address).unwrap();
        let (_, mut server) = self.servers.remove(position);
        let group = format!("-{}", server.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        server.wait().unwrap();
        self.pods.running.lock().unwrap().remove(address);
    }

    /// Another node comes to those for which there are files.
    fn more(&mut self, address: &str) {
        self.cluster.add(address);
        self.cluster.set_had_quorum();
        self.render();
    }

    fn access(&self) -> Access {
        self.cluster.access(Arc::new(Here(self.pods.clone())))
    }

    async fn view(&self) -> Result<View, String> {
        self.cluster.view(&self.access()).await
    }

    /// Until those serve and are the members, and take clients.
    async fn serve(&mut self, addresses: &[&str]) -> View {
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
    async fn tend(&self) -> Vec<String> {
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
    async fn remove(&self, member: &Member) {
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
    async fn cql(&self, address: &str, consistency: u8, statement: &str) -> String {
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
    async fn create(&self, factor: u32) {
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
    async fn rows(&self, address: &str, consistency: u8) -> usize {
        let text = self.cql(address, consistency, "SELECT v FROM config_db_uuid.t").await;
        text.matches("value-").count()
    }

    async fn factor(&self, address: &str) -> String {
        let statement = "SELECT toJson(replication) FROM system_schema.keyspaces WHERE keyspace_name = 'config_db_uuid'";
        let text = self.cql(address, ONE, statement).await;
        text.rsplit("\"replication_factor\": \"").next().unwrap().chars().next().unwrap().into()
    }

    /// Until one sees that the others are down, which takes some seconds.
    async fn sees_down(&self, address: &str, others: &[&str]) {
        let begun = Instant::now();
        let down = |said: &str| others.iter().all(|other| said.contains(&format!("DN  {other} ")));
        while !down(&self.pods.manage(address, &["status"]).stdout) {
            assert!(begun.elapsed() < LONGEST, "{}", self.cluster.logs());
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn logged(&self, address: &str, text: &str) {
        let said = self.cluster.logged(address, text).await;
        said.unwrap_or_else(|other| panic!("{other}\n{}", self.cluster.logs()));
    }
}

/// The password of that key.
fn secret(key: &str) -> String {
    format!("of-{:.8}", key.replace("Password", ""))
}

const ONE: u8 = 1;
const ALL: u8 = 5;
const ROWS: usize = 40;

/// Debian has none: without it these are left out, and say so.
fn has_java_8() -> bool {
    let is_there = std::env::var_os("JAVA8_HOME").is_some();
    if !is_there {
        eprintln!("left out: Cassandra 3.11 needs Java 8; set JAVA8_HOME to its folder");
    }
    is_there
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_start_one_after_the_other_and_encrypt_what_they_say() {
    if !has_java_8() {
        return;
    }
    let [a, b, c] = ["127.3.0.11", "127.3.0.12", "127.3.0.13"];
    let mut stage = Stage::new(&[a, b, c]);
    stage.render();
    // The last first: it has to wait for the others.
    for address in [c, b, a] {
        stage.start(address);
    }
    stage.logged(b, "nothing is stored here: waiting").await;
    assert_eq!(stage.pods.manage(b, &["alive"]).code, 0, "waiting is no reason to be killed");
    assert_ne!(stage.pods.manage(b, &["serves"]).code, 0);
    let view = stage.serve(&[a, b, c]).await;
    assert_eq!(view.leader, a);
    assert!(
        stage.cluster.log(a).contains("starting the first member")
            && stage.cluster.log(b).contains("joining the others")
    );
    let spare = stage.cluster.ensemble().may_spare(&stage.access(), b).await.unwrap();
    assert_eq!(spare, None);
    for address in [a, b, c] {
        let plain = std::net::TcpStream::connect((address, 7012));
        assert!(plain.is_err(), "{address} takes what is not encrypted");
        assert!(
            stage
                .cluster
                .log(address)
                .contains("Starting Encrypted Messaging Service on SSL port 7013")
        );
        assert!(
            !stage.cluster.log(address).contains(&secret("keystorePassword")),
            "a password is in the log"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_stored_follows_the_members_that_come_and_go() {
    if !has_java_8() {
        return;
    }
    let [a, b, c] = ["127.3.0.1", "127.3.0.2", "127.3.0.3"];
    let mut stage = Stage::new(&[a]);
    stage.render();
    stage.start(a);
    stage.serve(&[a]).await;
    stage.create(1).await;

    // Two come, one after the other, and all is kept three times.
    stage.more(b);
    stage.start(b);
    stage.serve(&[a, b]).await;
    stage.more(c);
    stage.start(c);
    stage.serve(&[a, b, c]).await;
    assert_eq!(stage.factor(a).await, "1", "OpenSDN never raises it");
    let done = stage.tend().await;
    let raised = done.iter().filter(|what| what.starts_with("keyspace config_db_uuid is kept"));
    assert_eq!(raised.count(), 2, "{done:?}");
    assert!(done.iter().any(|what| what.contains("repairs what it has")), "{done:?}");
    assert_eq!((stage.factor(a).await.as_str(), stage.rows(a, ALL).await), ("3", ROWS));
    // Nothing but what it has itself.
    stage.kill(a);
    stage.kill(b);
    stage.sees_down(c, &[a, b]).await;
    assert_eq!(stage.rows(c, ONE).await, ROWS);

    // Two that were off at once come back by themselves.
    stage.start(a);
    stage.start(b);
    let view = stage.serve(&[a, b, c]).await;

    // One leaves, and what it had is with the others.
    let leaving = view.members.iter().find(|member| member.host == c).unwrap().clone();
    stage.remove(&leaving).await;
    assert_eq!((stage.factor(a).await.as_str(), stage.rows(a, ALL).await), ("2", ROWS));
    assert_eq!(stage.pods.manage(c, &["alive"]).code, 0, "it waits for its pod to end");
    let has_left = async |host| stage.cluster.ensemble().has_left(&stage.access(), host).await;
    let said = (has_left(c).await.unwrap(), has_left(a).await.unwrap());
    assert_eq!(said, (true, false), "by which it is started again, where it is wanted once more");
    stage
        .cluster
        .ensemble()
        .make(&stage.access(), &stage.view().await.unwrap(), &Change::Remove(leaving))
        .await
        .unwrap();
    stage.kill(c);

    // It comes again as new.
    stage.start(c);
    stage.logged(c, "setting aside what it had").await;
    stage.logged(c, "joining the others").await;
}

/// The containers that have ended are started again, as the kubelet does.
fn start_again_who_ended(stage: &mut Stage) -> usize {
    let has_ended = |server: &mut Child| server.try_wait().unwrap().is_some();
    let ended = stage
        .servers
        .iter_mut()
        .filter_map(|(host, server)| has_ended(server).then(|| host.clone()));
    let ended: Vec<String> = ended.collect();
    for host in &ended {
        stage.kill(host);
        stage.start(host);
    }
    ended.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leave_that_has_failed_ends_by_a_start_and_the_member_stays_or_leaves_again() {
    if !has_java_8() {
        return;
    }
    let [a, b, c] = ["127.3.0.41", "127.3.0.42", "127.3.0.43"];
    let mut stage = Stage::new(&[a, b, c]);
    stage.render();
    for address in [a, b, c] {
        stage.start(address);
    }
    let view = stage.serve(&[a, b, c]).await;
    stage.cluster.set_had_quorum();
    stage.render();
    stage.create(2).await;
    let leaving = view.members.iter().find(|member| member.host == c).unwrap().clone();
    let mode = |stage: &Stage| stage.pods.manage(c, &["mode"]).stdout.trim().to_owned();

    // One that is to have a part of it is lost before it has.
    let begun = Instant::now();
    while mode(&stage) != "LEAVING" {
        let (ensemble, access) = (stage.cluster.ensemble(), stage.access());
        // Refused while something is left to repair.
        let _ = ensemble.make(&access, &view, &Change::Remove(leaving.clone())).await;
        assert!(begun.elapsed() < LONGEST, "{}", stage.cluster.logs());
        // Java has to start for each look.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    stage.kill(b);
    let failed = stage.pods.folder_of(c).join("cassandra.leave.failed");
    while !failed.exists() {
        assert!(begun.elapsed() < LONGEST, "it does not fail: {}", stage.cluster.logs());
        // Until it gives up handing over.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    stage.start(b);
    let view = stage.serve(&[a, b, c]).await;
    assert_eq!(view.leaving, [c.to_owned()].into());
    assert_eq!(mode(&stage), "LEAVING", "of its own it does not turn back");

    // It is wanted again.
    let (mut said, mut ended) = (BTreeSet::new(), 0);
    while mode(&stage) != "NORMAL" {
        if let Ok(view) = stage.view().await
            && view.serving.len() == 3
            && let Ok(Tended { does: Some(what), .. }) =
                stage.cluster.ensemble().tend(&stage.access(), &view).await
        {
            said.insert(what);
        }
        ended += start_again_who_ended(&mut stage);
        assert!(begun.elapsed() < 2 * LONGEST, "{said:?}\n{}", stage.cluster.logs());
        // It drains before it ends.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(ended, 1, "{said:?}");
    let told = said.iter().any(|what| what.contains("failed to leave, and is started again"));
    assert!(told, "{said:?}");
    let view = stage.serve(&[a, b, c]).await;
    assert_eq!((view.leaving.len(), stage.rows(a, ALL).await), (0, ROWS));

    // And to leave after all.
    stage.remove(&leaving).await;
    assert_eq!(stage.rows(a, ALL).await, ROWS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_has_lost_all_takes_its_own_place_and_none_starts_from_nothing() {
    if !has_java_8() {
        return;
    }
    let [a, b] = ["127.3.0.31", "127.3.0.32"];
    let mut stage = Stage::new(&[a, b]);
    stage.render();
    stage.start(a);
    stage.start(b);
    let before = stage.serve(&[a, b]).await.members;
    stage.cluster.set_had_quorum();
    stage.render();
    stage.create(2).await;

    // One has lost all that it had, and takes its own place.
    stage.kill(b);
    stage.cluster.wipe(b);
    stage.start(b);
    stage.logged(b, "what this member had is lost: taking its place").await;
    let after = loop {
        // While the others have not seen yet that it is down.
        start_again_who_ended(&mut stage);
        let view = stage.view().await;
        if let Ok(view) = view
            && view.serving.len() == 2
            && stage.pods.manage(b, &["serves"]).code == 0
        {
            break view.members;
        }
        // It takes over all that it is to have.
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    assert_eq!(before, after, "it has taken over the id, too");
    let done = stage.tend().await;
    assert!(done.iter().any(|what| what.contains(b) && what.contains("repairs")), "{done:?}");
    stage.kill(a);
    stage.sees_down(b, &[a]).await;
    assert_eq!(stage.rows(b, ONE).await, ROWS);

    // All are lost but one that has nothing of its own: it does not start from nothing.
    stage.kill(b);
    stage.cluster.wipe(b);
    stage.start(b);
    stage.logged(b, "nothing is stored here: waiting for other members").await;
    assert!(stage.view().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_reaper_no_client_manages_it_without_certificate_and_password() {
    if !has_java_8() {
        return;
    }
    let address = "127.3.0.21";
    let mut stage = Stage::with(&[address], true);
    stage.render();
    stage.start(address);
    stage.serve(&[address]).await;
    assert_eq!(stage.pods.manage(address, &["mode"]).stdout.trim(), "NORMAL");
    let nodetool = |words: &[&str]| {
        let script = stage.pods.folder_of(address).join("files/try");
        fs::write(&script, "exec nodetool -p 7221 \"$@\" status").unwrap();
        let done = stage.pods.command(address, "try", words).output().unwrap();
        (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let good = ["--ssl", "-u", "reaperUser", "-pw", &secret("reaperPassword")];
    assert_eq!(nodetool(&good), (true, String::new()));
    // What tf-operator has in its source.
    for bad in [&["--ssl", "-u", "cassandra", "-pw", "cassandra"][..], &["--ssl"], &[]] {
        assert!(!nodetool(bad).0, "{bad:?}");
    }
    let arguments = Command::new("ps").args(["-eo", "args"]).output().unwrap().stdout;
    let arguments = String::from_utf8_lossy(&arguments);
    let environment =
        fs::read_to_string(stage.pods.folder_of(address).join("reaper-environment")).unwrap();
    for password in &stage.cluster.valid.description.passwords {
        assert!(!arguments.contains(&secret(password.key)), "{} is among arguments", password.key);
        assert!(
            !stage.cluster.log(address).contains(&secret(password.key)),
            "{} is in the log",
            password.key
        );
    }
    let expected = format!("CASSANDRA_REAPER_JMX_AUTH_PASSWORD={}", secret("reaperPassword"));
    assert!(environment.contains(&expected), "{environment}");
    assert!(environment.contains("CASSANDRA_CONNECT_POINTS=127.3.0.21"), "{environment}");
}
