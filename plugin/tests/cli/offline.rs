//! Commands that need no cluster stay offline: they open no socket and read no kubeconfig, although
//! there is one, and proxies, and a server that listens.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may end here, and the line says where"
)]

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-opensdn");
const MANIFEST: &str = "\
apiVersion: opensdn.io/v1alpha1
kind: LinkLocalService
metadata: {name: a, namespace: tf}
spec: {ip: 169.254.0.10, port: 80, fabric: {addresses: [10.0.0.10], port: 80}}
";

/// Command lines, and how they end.
fn commands(manifest: &str) -> Vec<(Vec<String>, i32)> {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let mut commands: Vec<(Vec<String>, i32)> = [
        "--help",
        "validate --help",
        "help policy",
        "explain",
        "explain OSDN1202",
        "explain --schema Versions",
        "completion bash",
        "completion kubectl",
        "completion nushell",
        "config path",
        "config view --context c",
        "__complete vers",
        "__complete explain OSDN",
        "version --client",
        "--version",
        "render",
        "render --set platform=openshift --for openshift-installer",
        "images list",
        "images mirror --dry-run --set registry=a.example/b --to registry.local:5000/x",
        "install --dry-run=client",
        "policy inspect even-quorum",
        "policy manifest even-quorum",
        "nested manifest --cluster-name a --cluster-network b:c --config-nodes 192.0.2.1 --vrouter-address 192.0.2.5 --api-server 192.0.2.9 --registry r --tag t",
    ]
    .map(|line| (words(line), 0))
    .into();
    commands.push((vec!["validate".to_owned(), manifest.to_owned()], 0));
    commands.push((words("explain OSDN9999"), 2));
    commands
}

struct Machine {
    folder: tempfile::TempDir,
    listener: TcpListener,
}

impl Machine {
    /// A kubeconfig that names the only server that listens.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        fs::create_dir(folder.path().join(".kube")).unwrap();
        fs::write(folder.path().join("a.yaml"), MANIFEST).unwrap();
        // Defaults for a context must not make a command read the kubeconfig.
        let config = folder.path().join(".config/kubectl-opensdn");
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("config.yaml"), "contexts: {c: {request-timeout: 1s}}\n").unwrap();
        Self { folder, listener }
    }

    fn manifest(&self) -> String {
        self.folder.path().join("a.yaml").display().to_string()
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join(".kube/config")
    }

    fn run(&self, program: &str, arguments: &[String]) -> Output {
        let address = format!("http://{}", self.listener.local_addr().unwrap());
        let mut command = Command::new(program);
        command.args(arguments).env_clear().env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"] {
            command.env(name, &address);
        }
        command
            .env("HOME", self.folder.path())
            .env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"))
            .output()
            .unwrap()
    }

    #[track_caller]
    fn nobody_called(&self, what: &[String]) {
        let error = self.listener.accept().err().map(|error| error.kind());
        assert_eq!(error, Some(std::io::ErrorKind::WouldBlock), "{what:?} connected");
    }
}

#[test]
fn commands_without_a_cluster_call_nobody_and_read_no_kubeconfig() {
    let around = Machine::new();
    let server = around.listener.local_addr().unwrap();
    let usable = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nclusters: [{{name: c, cluster: {{server: 'http://{server}'}}}}]\nusers: [{{name: u, user: {{token: t}}}}]\n"
    );
    // A command that reads the second one fails.
    for kubeconfig in [usable.as_str(), "{ this is no kubeconfig"] {
        fs::write(around.kubeconfig(), kubeconfig).unwrap();
        for (arguments, code) in commands(&around.manifest()) {
            let output = around.run(PROGRAM, &arguments);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
            around.nobody_called(&arguments);
        }
    }
    // The same machine shows a command that does ask.
    fs::write(around.kubeconfig(), &usable).unwrap();
    let asking = ["version", "--request-timeout", "1s"].map(str::to_owned);
    around.run(PROGRAM, &asking);
    assert!(around.listener.accept().is_ok(), "version asks the server");
}

/// With strace, where it is there and may look: not a single socket is opened.
#[test]
fn commands_without_a_cluster_open_no_socket() {
    let around = Machine::new();
    fs::write(around.kubeconfig(), "{ this is no kubeconfig").unwrap();
    let trace = around.folder.path().join("trace");
    let traced = |arguments: &[String]| {
        let trace = trace.display().to_string();
        let strace = ["-f", "-qq", "-e", "trace=socket,connect,open,openat", "-o", &trace, PROGRAM];
        let strace = strace.map(str::to_owned);
        around.run("strace", &[&strace[..], arguments].concat())
    };
    if !Path::new("/usr/bin/strace").exists() || !traced(&["--version".to_owned()]).status.success()
    {
        // The test above shows the same with less certainty.
        return;
    }
    for (arguments, code) in commands(&around.manifest()) {
        assert_eq!(traced(&arguments).status.code(), Some(code), "{arguments:?}");
        let calls = fs::read_to_string(&trace).unwrap();
        assert!(calls.contains("openat("), "nothing was seen of {arguments:?}");
        let network = |call: &&str| call.contains("socket(") || call.contains("connect(");
        assert_eq!(calls.lines().find(network), None, "{arguments:?}");
        let kubeconfig = calls.lines().find(|call| call.contains(".kube/config"));
        assert_eq!(kubeconfig, None, "{arguments:?}");
    }
}
