//! ZooKeeper 3.7.1 itself, as OpenSDN's image has it, started by the files that the operator renders, and asked and
//! told by the operator: a first start, growth, a change of the leader, lost data, and what must not happen. Each
//! server has an address of the loopback network, and a folder for what a pod mounts.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "a test, which is a story, and the line says where"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::DynamicObject;
use opensdn_operator::build::certificates::{Subject, certificates};
use opensdn_operator::build::{Secrets, build};
use opensdn_operator::cache::{Cache, Feed, Kind};
use opensdn_operator::components::of_kind;
use opensdn_operator::ensemble::{Access, Change, DATA_LOST, Ensemble, Member, View};
use opensdn_operator::exec::Nowhere;
use opensdn_operator::names::Instance;
use opensdn_operator::reconcile::fetch::Fetched;
use opensdn_operator::reconcile::validate::{Valid, validate};
use opensdn_operator::template::Templates;
use opensdn_pki::{Authorities, CaProfile};
use opensdn_runtime::watch::Event;
use serde_json::json;
use tempfile::TempDir;
use time::OffsetDateTime;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const LONGEST: Duration = Duration::from_secs(120);
/// A server says so that starts with what it has stored itself.
const STORED: &str = "starting with the members that were stored here";

/// What a cluster has of a ZooKeeper, and its servers.
struct Stage {
    folder: TempDir,
    jars: String,
    authorities: Authorities,
    valid: Valid,
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
        let cache = Cache::default();
        for address in addresses {
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{address}"),
                "resourceVersion": "1", "labels": {"node-role.kubernetes.io/control-plane": ""}},
                "status": {"addresses": [{"type": "InternalIP", "address": address}]}});
            Feed::new(Kind::Node, "").take(&cache, Event::Apply(node));
        }
        let object = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Zookeeper",
            "metadata": {"name": "zookeeper1", "namespace": "tf", "uid": "u", "generation": 1},
            "spec": {"serviceConfiguration": {"adminEnabled": false,
                "containers": [{"name": "zookeeper", "image": "registry.example.com/zookeeper:1"}]}}});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let instance = Instance { word: "zookeeper".into(), name: "zookeeper1".into() };
        let fetched = Fetched::read(&cache, Arc::new(object), &instance);
        let component = of_kind("Zookeeper").unwrap();
        let valid = validate(component, &fetched).unwrap();
        let now = OffsetDateTime::now_utc();
        let authorities = Authorities::first(&CaProfile::new("test CA"), now).unwrap();
        Self { folder: TempDir::new().unwrap(), jars, authorities, valid, servers: Vec::new() }
    }

    /// Writes what the operator applies into the folders that the pods mount.
    fn render(&self) {
        let object = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Zookeeper",
            "metadata": {"name": "zookeeper1", "namespace": "tf", "uid": "u"}});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let subject = |address: &String| Subject { address: address.clone(), host: None };
        let subjects: Vec<_> = self.valid.addresses.iter().map(subject).collect();
        let now = OffsetDateTime::now_utc();
        let made = certificates(None, &subjects, &self.authorities, now, true).unwrap();
        let secrets = Secrets { certificates: made.data.clone(), ..Secrets::default() };
        let intents = build(&Templates::new().unwrap(), &object, &self.valid, secrets).unwrap();
        let files = intents.iter().find(|one| one.kind == Kind::ConfigMap).unwrap();
        for address in &self.valid.addresses {
            let folder = self.folder_of(address);
            for name in ["files", "certificates", "trust", "data"] {
                fs::create_dir_all(folder.join(name)).unwrap();
            }
            for (name, text) in files.object.data["data"].as_object().unwrap() {
                let here = folder.display().to_string();
                let text = text.as_str().unwrap();
                let text = [
                    ("/etc/contrailconfigmaps", "files"),
                    ("/etc/certificates", "certificates"),
                    ("/etc/ssl/certs/kubernetes", "trust"),
                    ("/var/lib/zookeeper", "data"),
                    ("/tmp/zookeeper.", "zookeeper."),
                    ("/dev/termination-log", "last-words"),
                ]
                .iter()
                .fold(text.to_owned(), |text, (there, name)| {
                    text.replace(there, &format!("{here}/{name}"))
                });
                // All servers are on one machine.
                let own = format!("\nsecureClientPortAddress={address}\nsecureClientPort=");
                fs::write(
                    folder.join("files").join(name),
                    text.replace("\nsecureClientPort=", &own),
                )
                .unwrap();
            }
            for (name, value) in &made.data {
                fs::write(folder.join("certificates").join(name), &value.0).unwrap();
            }
            fs::write(folder.join("trust/ca-bundle.crt"), self.authorities.bundle()).unwrap();
        }
    }

    fn folder_of(&self, address: &str) -> PathBuf {
        self.folder.path().join(address)
    }

    /// Starts the container of the pod there.
    fn start(&mut self, address: &str) {
        let folder = self.folder_of(address);
        let _ = fs::remove_file(folder.join("zookeeper.started"));
        let log = fs::File::options().create(true).append(true).open(folder.join("log")).unwrap();
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

    fn ensemble(&self) -> Arc<dyn Ensemble> {
        self.valid.description.ensemble.clone().unwrap()
    }

    fn access(&self) -> Access {
        Access::new(&self.authorities, OffsetDateTime::now_utc(), Arc::new(Nowhere)).unwrap()
    }

    async fn view(&self) -> Result<View, String> {
        let answers = self.ensemble().look(&self.access(), &self.valid.addresses).await;
        View::of(&answers, str::to_owned, |_| false).map_err(|why| format!("{why}; {answers:?}"))
    }

    /// Until those serve, and no others.
    async fn serve(&self, addresses: &[&str]) -> View {
        let expected: BTreeSet<String> = addresses.iter().map(|&one| one.to_owned()).collect();
        let begun = Instant::now();
        loop {
            let view = self.view().await;
            match view {
                Ok(view) if view.serving == expected => return view,
                other => assert!(begun.elapsed() < LONGEST, "{other:?}\n{}", self.logs()),
            }
            // Until a server has started.
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    /// Until the change is made.
    async fn make(&self, change: impl Fn(&View) -> Change) {
        let begun = Instant::now();
        loop {
            let view = self.view().await.unwrap_or_else(|why| panic!("{why}\n{}", self.logs()));
            let change = change(&view);
            let made = self.ensemble().make(&self.access(), &view, &change).await;
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
        let log = |address: &String| {
            let log = fs::read_to_string(self.folder_of(address).join("log")).unwrap_or_default();
            let lines: Vec<_> = log.lines().rev().take(30).collect();
            let lines = lines.into_iter().rev().collect::<Vec<_>>().join("\n");
            format!("--- {address}\n{}\n{lines}\n", self.lists(address))
        };
        self.valid.addresses.iter().map(log).collect()
    }

    /// The lists of members that are stored there.
    fn lists(&self, address: &str) -> String {
        let files = fs::read_dir(self.folder_of(address).join("data")).into_iter().flatten();
        let files = files.flatten().filter_map(|file| {
            let name = file.file_name().into_string().ok()?;
            let text = fs::read_to_string(file.path()).ok()?;
            Some(format!("{name}: {text}"))
        });
        files.collect::<Vec<_>>().join("\n")
    }

    fn log_has(&self, address: &str, text: &str) -> bool {
        fs::read_to_string(self.folder_of(address).join("log")).unwrap_or_default().contains(text)
    }

    fn probe(&self, address: &str, what: &str) -> bool {
        let script = self.folder_of(address).join("files/check-zookeeper.sh");
        let mut probe = Command::new("bash");
        probe.arg(script).arg(what).env("POD_IP", address).stderr(Stdio::null());
        probe.status().unwrap().success()
    }

    fn had_quorum(&mut self) {
        self.valid.members.as_mut().unwrap().had_quorum = true;
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

fn wipe(folder: &Path) {
    fs::remove_dir_all(folder.join("data")).unwrap();
    fs::create_dir(folder.join("data")).unwrap();
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
    stage.valid.addresses.push(d.to_owned());
    let members = stage.valid.members.as_mut().unwrap();
    members.record = members.record.clone().with(&stage.valid.addresses);
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
    assert!(!stage.log_has(d, STORED));
    stage.kill(d);
    stage.start(d);
    stage.serve(&[a, b, c, d]).await;
    assert!(stage.log_has(d, STORED), "{}", stage.logs());

    // The leader goes, and what it was told is as lost as its answer.
    let leader = stage.view().await.unwrap().leader;
    stage.make(|view| remove(view, &leader)).await;
    let view = stage.view().await.unwrap();
    assert_eq!(view.members.len(), 3);
    assert_ne!(view.leader, leader);
    stage.kill(&leader);

    // One whose data is lost does not vote until it has been taken out and in again.
    let lost = view.members.iter().find(|member| member.host != view.leader).unwrap().clone();
    stage.kill(&lost.host);
    wipe(&stage.folder_of(&lost.host));
    stage.start(&lost.host);
    let words = stage.folder_of(&lost.host).join("last-words");
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

    // All are lost but one, which has nothing of its own any more: it does not begin anew.
    let all = stage.serve(&serving).await.serving;
    for address in &all {
        stage.kill(address);
    }
    wipe(&stage.folder_of(&lost.host));
    stage.start(&lost.host);
    let begun = Instant::now();
    while !stage.log_has(&lost.host, "waiting for most of the members to serve") {
        assert!(begun.elapsed() < LONGEST, "{}", stage.logs());
        // It asks each of the others first.
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
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
async fn nobody_changes_the_members_without_the_certificate_of_the_operator() {
    let address = "127.1.1.1";
    let mut stage = Stage::new(&[address]);
    stage.render();
    stage.start(address);
    stage.serve(&[address]).await;
    let other = Authorities::first(&CaProfile::new("other CA"), OffsetDateTime::now_utc()).unwrap();
    let good = std::mem::replace(&mut stage.authorities, other);
    let why = stage.view().await.unwrap_err();
    assert!(why.contains("no member answers"), "{why}");
    stage.authorities = good;
    // With rights to nothing but reading: that of a client without the superuser's help.
    let access = stage.access();
    let swapped = Access {
        operator: access.superuser.clone(),
        superuser: access.operator.clone(),
        ..access.clone()
    };
    let view = stage.view().await.unwrap();
    let change = Change::Add(member(2, "127.1.1.2"));
    let refused = stage.ensemble().make(&swapped, &view, &change).await.unwrap_err();
    assert!(refused.to_string().contains("has no right to do it"), "{refused}");
    let refused = stage.ensemble().make(&access, &view, &change).await.unwrap_err();
    assert!(refused.to_string().contains("no quorum of the new configuration"), "{refused}");
}
