//! RabbitMQ 3.10.8 of Debian, started by the files that the operator renders, and asked and changed by the operator: a
//! first start, clients, growth, a member that leaves, lost data, and what must not happen. Each member has a network
//! and a view of the file system of its own, as in a pod. It needs root and the package: `apt-get install
//! rabbitmq-server`, without having it started.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "a test, which is a story, and the line says where"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use opensdn_operator::ensemble::{Access, Change, DATA_LOST, Member, View};
use opensdn_operator::exec::{Exec, ExecError, Output};
use serde_json::{Value, json};

use crate::cluster::{Cluster, answered};

const PROGRAM: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
/// Much may be built on this machine at the same time.
const LONGEST: Duration = Duration::from_secs(240);
const PASSWORD: &str = r#"it's "50%" \n"#;
/// What a pod mounts, by folders of the test's.
const ENTER: &str = r#"set -e
mount -t tmpfs tmpfs /mnt
mkdir /mnt/up /mnt/work
mount -t overlay overlay -o lowerdir=/etc,upperdir=/mnt/up,workdir=/mnt/work /etc
mkdir -p /etc/contrailconfigmaps /etc/certificates /etc/credentials/own /etc/ssl/certs/kubernetes
for pair in files:/etc/contrailconfigmaps certificates:/etc/certificates own:/etc/credentials/own \
  trust:/etc/ssl/certs/kubernetes data:/var/lib/rabbitmq logs:/var/log/rabbitmq; do
  mount --bind "${pair%%:*}" "${pair#*:}"
done
mount -t tmpfs tmpfs /tmp
chmod 1777 /tmp
cd /
exec bash /etc/contrailconfigmaps/run-rabbitmq.sh"#;

/// Processes by the addresses of their members.
type Members = Arc<Mutex<BTreeMap<String, u32>>>;

#[derive(Debug)]
struct Here(Members);

impl Exec for Here {
    fn run<'a>(
        &'a self,
        address: &'a str,
        _: &'a str,
        command: &'a [&'a str],
        _: Duration,
    ) -> BoxFuture<'a, Result<Output, ExecError>> {
        let Some(process) = self.0.lock().unwrap().get(address).copied() else {
            return std::future::ready(Err(ExecError::NoPod(address.to_owned()))).boxed();
        };
        let output = enter(process, command);
        async move {
            let output = tokio::task::spawn_blocking(move || output.output()).await;
            Ok(answered(&output.unwrap().map_err(ExecError::Read)?))
        }
        .boxed()
    }
}

struct Entered(Command);

impl Entered {
    fn output(mut self) -> std::io::Result<std::process::Output> {
        self.0.stdin(Stdio::null()).output()
    }
}

fn enter(process: u32, command: &[&str]) -> Entered {
    let mut entered = Command::new("nsenter");
    entered.args(["--target", &process.to_string(), "--mount", "--net", "--"]).args(command);
    Entered(entered)
}

fn sh(script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What a cluster has of a RabbitMQ, and its members.
struct Stage {
    cluster: Cluster,
    word: String,
    processes: Members,
    children: BTreeMap<String, Child>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        let addresses = self.cluster.valid.addresses.clone();
        for address in addresses {
            self.end(&address);
            let network = self.network(&address);
            let _ = Command::new("ip").args(["netns", "delete", &network]).output();
        }
        let switch = format!("{}-switch", self.word);
        let _ = Command::new("ip").args(["netns", "delete", &switch]).output();
    }
}

impl Stage {
    fn new(addresses: &[&str]) -> Self {
        assert!(
            std::path::Path::new(PROGRAM).exists(),
            "{PROGRAM} is missing: apt-get install rabbitmq-server"
        );
        static STAGES: AtomicU32 = AtomicU32::new(0);
        let number = STAGES.fetch_add(1, Ordering::Relaxed);
        let word = format!("rmq{}x{number}", std::process::id());
        sh(&format!(
            "ip netns add {word}-switch; ip -n {word}-switch link set lo up
             ip -n {word}-switch link add bridge0 type bridge; ip -n {word}-switch link set bridge0 up"
        ));
        Self {
            cluster: Cluster::new(object(), addresses, LONGEST),
            word,
            processes: Members::default(),
            children: BTreeMap::new(),
        }
    }

    fn network(&self, address: &str) -> String {
        format!("{}-{}", self.word, address.rsplit('.').next().unwrap())
    }

    /// Writes what the operator applies into the folders that the pods mount.
    fn render(&self) {
        self.cluster
            .render(|_, text| text.replace("/dev/termination-log", "/var/log/rabbitmq/last-words"));
        for address in &self.cluster.valid.addresses {
            let own = self.cluster.made(address, "own");
            for (name, value) in
                [("user", "u"), ("password", PASSWORD), ("vhost", "v"), ("erlang_cookie", "C")]
            {
                fs::write(own.join(name), value).unwrap();
            }
            // As a kubelet mounts Secrets.
            sh(&format!(
                "cd {}; chgrp -R 1999 certificates own; chmod 440 certificates/* own/*",
                self.cluster.folder_of(address).display()
            ));
        }
    }

    /// Starts the container of the pod there.
    fn start(&mut self, address: &str) {
        let (word, network) = (&self.word, self.network(address));
        let cable = address.rsplit('.').next().unwrap();
        if !sh("ip netns list").contains(&network) {
            sh(&format!(
                "ip netns add {network}; ip -n {network} link set lo up
                 ip -n {word}-switch link add v{cable} type veth peer name eth0 netns {network}
                 ip -n {word}-switch link set v{cable} master bridge0 up
                 ip -n {network} addr add {address}/24 dev eth0; ip -n {network} link set eth0 up"
            ));
        }
        for name in ["data", "logs"] {
            self.cluster.made(address, name);
        }
        let log = self.cluster.log_file(address);
        let child = Command::new("ip")
            .args(["netns", "exec", &network, "unshare", "--mount", "bash", "-c", ENTER])
            .env("POD_IP", address)
            .current_dir(self.cluster.folder_of(address))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.processes.lock().unwrap().insert(address.to_owned(), child.id());
        self.children.insert(address.to_owned(), child);
    }

    /// Ends it, as at once as a lost node.
    fn end(&mut self, address: &str) {
        self.processes.lock().unwrap().remove(address);
        let network = self.network(address);
        let _ = Command::new("sh")
            .args(["-c", &format!("ip netns pids {network} | xargs -r kill -9")])
            .output();
        if let Some(mut child) = self.children.remove(address) {
            let _ = child.wait();
        }
    }

    /// As a kubelet does it.
    fn stop(&mut self, address: &str) {
        let process = self.processes.lock().unwrap()[address];
        sh(&format!("kill -TERM {process}"));
        let status = self.children.remove(address).unwrap().wait().unwrap();
        assert!(status.success(), "{status}\n{}", self.cluster.logs());
        self.end(address);
    }

    fn run(&self, address: &str, command: &[&str]) -> std::process::Output {
        let process = self.processes.lock().unwrap()[address];
        enter(process, command).output().unwrap()
    }

    fn access(&self) -> Access {
        self.cluster.access(Arc::new(Here(Arc::clone(&self.processes))))
    }

    async fn view(&self) -> Result<View, String> {
        self.cluster.view(&self.access()).await
    }

    /// Until those are the members and serve, and no others.
    async fn serve(&self, addresses: &[&str]) -> View {
        let served = self.cluster.serve(&self.access(), addresses).await;
        served.unwrap_or_else(|other| panic!("{other}\n{}", self.cluster.logs()))
    }

    async fn logged(&self, address: &str, text: &str) {
        let said = self.cluster.logged(address, text).await;
        said.unwrap_or_else(|other| panic!("{other}\n{}", self.cluster.logs()));
    }

    async fn forget(&self, address: &str) -> Result<(), String> {
        let view = self.view().await?;
        let Some(member) = view.members.iter().find(|member| member.host == address) else {
            return Err(format!("{address} is no member: {view:?}"));
        };
        let change = Change::Remove(member.clone());
        let made = self.cluster.ensemble().make(&self.access(), &view, &change).await;
        made.map_err(|error| error.to_string())
    }
}

fn object() -> Value {
    json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Rabbitmq",
        "metadata": {"name": "rabbitmq1", "namespace": "tf", "uid": "u", "generation": 1},
        "spec": {"serviceConfiguration": {
            "containers": [{"name": "rabbitmq", "image": "registry.example.com/opensdn-external-rabbitmq:R25.1"}]}}})
}

fn hosts(view: &View) -> BTreeSet<&str> {
    view.members.iter().map(|member: &Member| member.host.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn members_come_and_go_and_are_lost() {
    let [a, b, c, d] = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"];
    let mut stage = Stage::new(&[a, b, c]);
    stage.render();
    for address in [a, b, c] {
        stage.start(address);
    }
    let view = stage.serve(&[a, b, c]).await;
    assert_eq!((hosts(&view), view.leader.as_str()), ([a, b, c].into(), a));
    stage.cluster.set_had_quorum();
    stage.render();

    // Who has no certificate does not get in, and the password is that of the Secret, whatever is in it.
    let ctl = ["bash", "/etc/contrailconfigmaps/as-rabbitmq.sh", "rabbitmqctl", "-q"];
    let login = |password: &str| {
        let command = [&ctl[..], &["authenticate_user", "u", password]].concat();
        stage.run(b, &command).status.success()
    };
    assert!(login(PASSWORD) && !login("another"));
    let users = stage.run(b, &[&ctl[..], &["list_users"]].concat());
    assert!(!String::from_utf8(users.stdout).unwrap().contains("guest"));
    let policies = stage.run(b, &[&ctl[..], &["list_policies", "-p", "v"]].concat());
    assert!(String::from_utf8(policies.stdout).unwrap().contains(r"^(?!amq\.).*"));
    let greeting = |certificate: &str| {
        // A server of AMQP ends what begins otherwise, after it has said which protocol it speaks.
        let script = format!(
            "(sleep 2; printf 'AMQP\\0\\0\\0\\0'; sleep 3) | openssl s_client -quiet -connect {a}:5673 \
             -CAfile /etc/ssl/certs/kubernetes/ca-bundle.crt -verify_return_error -tls1_2 {certificate} 2>/dev/null"
        );
        stage.run(b, &["sh", "-c", &script]).stdout.starts_with(b"AMQP")
    };
    let certificate =
        format!("-cert /etc/certificates/client-{b}.crt -key /etc/certificates/client-key-{b}.pem");
    assert!(greeting(&certificate), "{}", stage.cluster.logs());
    assert!(!greeting(""), "without a certificate");
    let arguments = sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
    assert!(!arguments.contains("50%"), "the password is an argument");
    assert_eq!(stage.cluster.ensemble().may_spare(&stage.access(), a).await.unwrap(), None);

    // One comes by itself.
    stage.cluster.add(d);
    stage.render();
    stage.start(d);
    let view = stage.serve(&[a, b, c, d]).await;
    assert_eq!(hosts(&view), [a, b, c, d].into());

    // One goes: not while it runs. What it has stored does not come back.
    let refused = stage.forget(b).await.unwrap_err();
    assert!(refused.contains("must be stopped"), "{refused}");
    stage.stop(b);
    let view = stage.serve(&[a, c, d]).await;
    assert!(view.has(b), "it is away, and a member");
    stage.forget(b).await.unwrap();
    assert_eq!(hosts(&stage.serve(&[a, c, d]).await), [a, c, d].into());
    stage.start(b);
    stage.logged(b, "setting aside").await;
    stage.serve(&[a, b, c, d]).await;

    // One whose data is lost says so, and joins when it has been taken out.
    stage.end(c);
    stage.cluster.wipe(c);
    stage.start(c);
    stage.logged(c, "waiting to be taken out").await;
    stage.children.get_mut(c).unwrap().wait().unwrap();
    stage.end(c);
    let words = fs::read_to_string(stage.cluster.folder_of(c).join("logs/last-words")).unwrap();
    assert_eq!(words, DATA_LOST);
    stage.serve(&[a, b, d]).await;
    stage.forget(c).await.unwrap();
    stage.start(c);
    stage.serve(&[a, b, c, d]).await;
}

/// Where all are killed at the same moment, none has on its disk that another went before it. They wait then for the
/// one that has lost its data until a user forces one of them: RabbitMQ cannot know whether that one had more.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_comes_back_empty_and_alone_does_not_start_from_nothing() {
    let [a, b, c] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
    let mut stage = Stage::new(&[a, b, c]);
    stage.render();
    for address in [a, b, c] {
        stage.start(address);
    }
    stage.serve(&[a, b, c]).await;
    stage.cluster.set_had_quorum();
    stage.render();
    // The one that has started the cluster goes, and then the others.
    stage.end(a);
    stage.serve(&[b, c]).await;
    stage.stop(b);
    stage.stop(c);
    stage.cluster.wipe(a);
    stage.start(a);
    stage.logged(a, "waiting for a member to serve").await;
    let why = stage.view().await.unwrap_err();
    assert!(why.contains("no member answers"), "{why}");
    let check = stage.run(a, &["bash", "/etc/contrailconfigmaps/check-rabbitmq.sh"]);
    assert!(check.status.success(), "waiting is no reason to be killed");
    stage.start(b);
    stage.start(c);
    let view = stage.serve(&[b, c]).await;
    assert_eq!(hosts(&view), [a, b, c].into());
    stage.logged(a, "waiting to be taken out").await;
}
