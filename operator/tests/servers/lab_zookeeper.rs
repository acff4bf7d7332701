//! ZooKeeper 3.7.1 itself, as OpenSDN's image has it, started by the files that the operator renders, and asked and
//! changed by the operator: a first start, growth, a change of the leader, lost data, and what must not happen. Each
//! server has an address of the loopback network, and a folder for what a pod mounts.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "a test, which is a story, and the line says where"
)]

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use opensdn_operator::ensemble::{Access, Change, DATA_LOST, Member, View};
use opensdn_operator::exec::Nowhere;
use opensdn_pki::{Authorities, CaProfile};
use serde_json::json;
use time::OffsetDateTime;

use crate::cluster::Cluster;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const LONGEST: Duration = Duration::from_secs(120);
/// A server says so that starts with what it has stored itself.
const STORED: &str = "starting with the members that were stored here";

/// What a cluster has of a ZooKeeper, and its servers.
struct Stage {
    cluster: Cluster,
    jars: String,
    servers: Vec<(String, Child)>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        for (_, server) in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

impl Stage {
    /// With nodes at these addresses, of which none runs a server yet.
    fn new(addresses: &[&str]) -> Self {
        let build = Command::new("bash")
            .args([&format!("{REPOSITORY}/tests/images/build.sh"), "zookeeper", "--jars"])
            .output()
            .unwrap();
        assert!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));
        let jars = String::from_utf8(build.stdout).unwrap().trim().to_owned();
        let object = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Zookeeper",
            "metadata": {"name": "zookeeper1", "namespace": "tf", "uid": "u", "generation": 1},
            "spec": {"serviceConfiguration": {"adminEnabled": false,
                "containers": [{"name": "zookeeper", "image": "registry.example.com/zookeeper:1"}]}}});
        Self { cluster: Cluster::new(object, addresses, LONGEST), jars, servers: Vec::new() }
    }

    /// Writes what the operator applies into the folders that the pods mount.
    fn render(&self) {
        self.cluster.render(|address, text| {
            let places = [
                ("/etc/contrailconfigmaps", "files"),
                ("/etc/certificates", "certificates"),
                ("/etc/ssl/certs/kubernetes", "trust"),
                ("/var/lib/zookeeper", "data"),
                ("/tmp/zookeeper.", "zookeeper."),
                ("/dev/termination-log", "last-words"),
            ];
            let text = self.cluster.mounted(address, text, &places);
            // All servers are on one machine.
            let own = format!("\nsecureClientPortAddress={address}\nsecureClientPort=");
            text.replace("\nsecureClientPort=", &own)
        });
    }

    /// Starts the container of the pod there.
    fn start(&mut self, address: &str) {
        let folder = self.cluster.folder_of(address);
        self.cluster.made(address, "data");
        let _ = fs::remove_file(folder.join("zookeeper.started"));
        let log = self.cluster.log_file(address);
        let path = std::env::var("PATH").unwrap();
        let path = format!("{REPOSITORY}/tests/images/zookeeper/root/usr/bin:{path}");
        let server = Command::new("bash")
            .arg(folder.join("files/run-zookeeper.sh"))
            .env("POD_IP", address)
            .env("ZOOKEEPER_JARS", &self.jars)
            .env("PATH", path)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.servers.push((address.to_owned(), server));
    }

    /// Ends it, as at once as a lost node.
    fn kill(&mut self, address: &str) {
        let position = self.servers.iter().position(|(other, _)| other == address).unwrap();
        let (_, mut server) = self.servers.remove(position);
        server.kill().unwrap();
        server.wait().unwrap();
    }

    fn access(&self) -> Access {
        self.cluster.access(Arc::new(Nowhere))
    }

    async fn view(&self) -> Result<View, String> {
        self.cluster.view(&self.access()).await
    }

    /// Until those serve, and no others.
    async fn serve(&self, addresses: &[&str]) -> View {
        let served = self.cluster.serve(&self.access(), addresses).await;
        served.unwrap_or_else(|other| panic!("{other}\n{}", self.logs()))
    }

    async fn logged(&self, address: &str, text: &str) {
        let said = self.cluster.logged(address, text).await;
        said.unwrap_or_else(|other| panic!("{other}\n{}", self.logs()));
    }

    /// Until the change is made.
    async fn make(&self, change: impl Fn(&View) -> Change) {
        let begun = Instant::now();
        loop {
            let view = self.view().await.unwrap_or_else(|why| panic!("{why}\n{}", self.logs()));
            let change = change(&view);
            let made = self.cluster.ensemble().make(&self.access(), &view, &change).await;
            let is_so = |view: &View| match &change {
                Change::Add(member) => view.members.contains(member),
                Change::Remove(member) => !view.members.contains(member),
            };
            // When the leader leaves, its answer is lost.
            if self.view().await.is_ok_and(|view| is_so(&view)) {
                return;
            }
            assert!(begun.elapsed() < LONGEST, "{made:?}\n{}", self.logs());
            // An election takes its time.
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    fn logs(&self) -> String {
        let lists = |address: &String| format!("--- {address}\n{}\n", self.lists(address));
        let lists: String = self.cluster.valid.addresses.iter().map(lists).collect();
        lists + &self.cluster.logs()
    }

    /// The lists of members that are stored there.
    fn lists(&self, address: &str) -> String {
        let files =
            fs::read_dir(self.cluster.folder_of(address).join("data")).into_iter().flatten();
        let files = files.flatten().filter_map(|file| {
            let name = file.file_name().into_string().ok()?;
            let text = fs::read_to_string(file.path()).ok()?;
            Some(format!("{name}: {text}"))
        });
        files.collect::<Vec<_>>().join("\n")
    }

    fn probe(&self, address: &str, what: &str) -> bool {
        let script = self.cluster.folder_of(address).join("files/check-zookeeper.sh");
        let mut probe = Command::new("bash");
        probe.arg(script).arg(what).env("POD_IP", address).stderr(Stdio::null());
        probe.status().unwrap().success()
    }

    fn had_quorum(&mut self) {
        self.cluster.set_had_quorum();
        self.render();
    }
}

fn member(id: u32, host: &str) -> Member {
    Member { id, host: host.to_owned() }
}

fn remove(view: &View, host: &str) -> Change {
    let absent = member(0, host);
    let member = view.members.iter().find(|member| member.host == host).cloned();
    Change::Remove(member.unwrap_or(absent))
}

#[tokio::test]
async fn members_come_go_and_are_lost_and_no_second_ensemble_arises() {
    let [a, b, c, d] = ["127.1.0.1", "127.1.0.2", "127.1.0.3", "127.1.0.4"];
    let mut stage = Stage::new(&[a, b, c]);
    stage.render();
    for address in [a, b, c] {
        stage.start(address);
    }
    let view = stage.serve(&[a, b, c]).await;
    assert_eq!(view.members, [member(1, a), member(2, b), member(3, c)]);
    assert!([a, b, c].iter().all(|address| stage.probe(address, "serves")));
    stage.had_quorum();

    // One comes: it follows before it is a member, also when it is started again in between.
    stage.cluster.add(d);
    stage.render();
    stage.start(d);
    let view = stage.serve(&[a, b, c, d]).await;
    assert!(!view.has(d), "nobody has told the others");
    stage.kill(d);
    stage.start(d);
    stage.serve(&[a, b, c, d]).await;
    stage.make(|_| Change::Add(member(4, d))).await;
    // From then on it knows by itself that it is one, also as the last of the list.
    stage.serve(&[a, b, c, d]).await;
    assert!(!stage.cluster.log(d).contains(STORED));
    stage.kill(d);
    stage.start(d);
    stage.serve(&[a, b, c, d]).await;
    assert!(stage.cluster.log(d).contains(STORED), "{}", stage.logs());

    // The leader goes, and what was asked of it is as lost as its answer.
    let leader = stage.view().await.unwrap().leader;
    stage.make(|view| remove(view, &leader)).await;
    let view = stage.view().await.unwrap();
    assert_eq!(view.members.len(), 3);
    assert_ne!(view.leader, leader);
    stage.kill(&leader);

    // One whose data is lost does not vote until it has been taken out and in again.
    let lost = view.members.iter().find(|member| member.host != view.leader).unwrap().clone();
    stage.kill(&lost.host);
    stage.cluster.wipe(&lost.host);
    stage.start(&lost.host);
    let words = stage.cluster.folder_of(&lost.host).join("last-words");
    let begun = Instant::now();
    while fs::read_to_string(&words).unwrap_or_default() != DATA_LOST {
        assert!(begun.elapsed() < LONGEST, "{}", stage.logs());
        // A person reads no faster.
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert!(stage.probe(&lost.host, "alive"), "waiting is no reason to be killed");
    assert!(!stage.probe(&lost.host, "serves"));
    stage.make(|view| remove(view, &lost.host)).await;
    stage.kill(&lost.host);
    stage.start(&lost.host);
    let rest = stage.view().await.unwrap().members;
    let mut serving: Vec<&str> = rest.iter().map(|member| member.host.as_str()).collect();
    serving.push(&lost.host);
    stage.serve(&serving).await;
    stage.make(|_| Change::Add(lost.clone())).await;

    // All are lost but one, which has nothing of its own any more: it does not start from nothing.
    let all = stage.serve(&serving).await.serving;
    for address in &all {
        stage.kill(address);
    }
    stage.cluster.wipe(&lost.host);
    stage.start(&lost.host);
    stage.logged(&lost.host, "waiting for most of the members to serve").await;
    let why = stage.view().await.unwrap_err();
    assert!(why.contains("no member answers"), "{why}");

    // The others come back by themselves, with what they have stored.
    for address in all.iter().filter(|address| **address != lost.host) {
        stage.start(address);
    }
    let others: Vec<&str> =
        all.iter().filter(|address| **address != lost.host).map(String::as_str).collect();
    let view = stage.serve(&others).await;
    assert_eq!(view.members.len(), 3);
}

#[tokio::test]
async fn no_client_changes_the_members_without_the_certificate_of_the_operator() {
    let address = "127.1.1.1";
    let mut stage = Stage::new(&[address]);
    stage.render();
    stage.start(address);
    stage.serve(&[address]).await;
    let other = Authorities::first(&CaProfile::new("other CA"), OffsetDateTime::now_utc()).unwrap();
    let good = std::mem::replace(&mut stage.cluster.authorities, other);
    let why = stage.view().await.unwrap_err();
    assert!(why.contains("no member answers"), "{why}");
    stage.cluster.authorities = good;
    // With rights to nothing but reading: that of a client without the superuser's help.
    let access = stage.access();
    let swapped = Access {
        operator: access.superuser.clone(),
        superuser: access.operator.clone(),
        ..access.clone()
    };
    let view = stage.view().await.unwrap();
    let change = Change::Add(member(2, "127.1.1.2"));
    let refused = stage.cluster.ensemble().make(&swapped, &view, &change).await.unwrap_err();
    assert!(refused.to_string().contains("has no right to do it"), "{refused}");
    let refused = stage.cluster.ensemble().make(&access, &view, &change).await.unwrap_err();
    assert!(refused.to_string().contains("no quorum of the new configuration"), "{refused}");
}
