//! etcd, kube-apiserver, kube-controller-manager and kube-scheduler: their flags, the order
//! in which they start, and when they are ready. Deliberately not here: how a process is
//! kept (`program`), and who may talk to the API server (`access`).

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::{Api, Client};
use opensdn_reserved_port::ReservedPort;

use super::access::{Access, AccessError, User};
use super::binaries::{Binaries, BinariesError};
use super::certificates::{Authority, CertificateError, KeyFiles, write_private};
use super::program::{Program, ProgramError, wait_until};
use super::surroundings::Surroundings;

/// Addresses of Services, and the first of them, which is that of Service `kubernetes`.
pub(super) const SERVICE_RANGE: &str = "10.96.0.0/12";
const SERVICE_ADDRESS: &str = "10.96.0.1";
/// In the network of a lab, where nothing else listens.
pub(super) const LAB_API_SERVER_PORT: u16 = 6443;
/// So long a real node may be silent before it counts as lost. Kubernetes' default is 50.
const NODE_GRACE_SECONDS: u32 = 20;

/// The folder of etcd's data, in that of the sandbox.
pub(super) const ETCD: &str = "etcd";
/// Where etcd listens, in the same folder, which programs run in and no other user may enter. The API server has a hundred
/// connections to it, and to begin each with TLS was a fifth of what its start takes.
const ETCD_URL: &str = "unix://etcd.sock";

const AUDIT_POLICY: &str = include_str!("audit_policy.yaml");

/// Why the control plane does not run.
#[derive(Debug, thiserror::Error)]
pub enum ControlPlaneError {
    /// A program is not there.
    #[error(transparent)]
    Binaries(#[from] BinariesError),
    /// Certificates could not be made.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// A program did not start, ended, or is not ready.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// No client could be made.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The machine has no free port.
    #[error("find a free port on 127.0.0.1; too many connections may be open: ss --summary")]
    NoPort(#[source] io::Error),
}

/// Which controllers run beside the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// API server and etcd only: enough for admission, schemas and RBAC, and quicker.
    OnlyApiServer,
    /// Controller-manager and scheduler too.
    Everything,
}

impl Extent {
    /// The programs it needs; asked for before any is started.
    pub(super) fn programs(self) -> &'static [&'static str] {
        match self {
            Self::OnlyApiServer => &["etcd", "kube-apiserver"],
            Self::Everything => {
                &["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]
            }
        }
    }
}

/// Where the control plane runs, and where it is reached.
#[derive(Debug, Clone)]
pub(super) enum Site {
    /// On this machine's loopback interface.
    Loopback,
    /// In a network of its own, with real nodes.
    Lab {
        /// The process whose network it is.
        machine: u32,
        /// Where nodes reach the API server.
        address: Ipv4Addr,
        /// Where this machine reaches it, on its loopback interface.
        forwarded_port: u16,
    },
}

impl Site {
    fn surroundings(&self) -> Surroundings {
        match self {
            Self::Loopback => Surroundings::Ours,
            Self::Lab { machine, .. } => Surroundings::NetworkOf(*machine),
        }
    }

    /// What the API server's certificate is for, besides the loopback interface.
    fn addresses(&self) -> Vec<String> {
        match self {
            Self::Loopback => Vec::new(),
            Self::Lab { address, .. } => vec![address.to_string(), SERVICE_ADDRESS.into()],
        }
    }

    /// The port for clients on this machine.
    fn port_for_clients(&self, port: u16) -> u16 {
        match self {
            Self::Loopback => port,
            Self::Lab { forwarded_port, .. } => *forwarded_port,
        }
    }

    /// The API server's port. In a network of its own all are free, and it must stay what nodes know.
    fn port(&self) -> io::Result<Port> {
        Ok(match self {
            Self::Loopback => {
                let held = ReservedPort::new()?;
                Port { number: held.number(), _held: Some(held) }
            }
            Self::Lab { .. } => Port { number: LAB_API_SERVER_PORT, _held: None },
        })
    }
}

struct Port {
    number: u16,
    /// It stays ours while the program is down.
    _held: Option<ReservedPort>,
}

/// The running control plane.
pub(super) struct ControlPlane {
    // Dropped in this order: clients before what they talk to.
    controllers: Vec<Program>,
    api_server: Program,
    etcd: Program,
    _port: Port,
}

impl ControlPlane {
    /// Starts the programs and returns when they are ready.
    pub(super) async fn start(
        binaries: &Binaries,
        extent: Extent,
        folder: &Path,
        site: &Site,
    ) -> Result<(Self, Access), ControlPlaneError> {
        let authority = Arc::new(Authority::new()?);
        let keys = KeyFiles::write(&authority, &folder.join("keys"), &site.addresses())?;
        write_private(&folder.join("audit-policy.yaml"), AUDIT_POLICY)?;
        let (mut control_plane, access) =
            start_api_server(binaries, &keys, &authority, folder, site).await?;
        if extent == Extent::Everything {
            control_plane.start_controllers(binaries, &keys, &access, folder, site).await?;
        }
        Ok((control_plane, access))
    }

    async fn start_controllers(
        &mut self,
        binaries: &Binaries,
        keys: &KeyFiles,
        access: &Access,
        folder: &Path,
        site: &Site,
    ) -> Result<(), ControlPlaneError> {
        let controllers = [
            ("kube-controller-manager", controller_manager(keys, site)),
            ("kube-scheduler", scheduler()),
        ];
        for (name, arguments) in controllers {
            let user = User::new(format!("system:{name}"));
            let kubeconfig = match site {
                Site::Loopback => access.kubeconfig_for(&user)?,
                Site::Lab { .. } => {
                    let path = folder.join("kubeconfigs").join(format!("{name}.yaml"));
                    let url = format!("https://127.0.0.1:{LAB_API_SERVER_PORT}");
                    write_private(&path, &access.kubeconfig_text(&user, &url)?)?;
                    path
                }
            };
            let all = [vec![format!("--kubeconfig={}", kubeconfig.display())], arguments].concat();
            let program = Program::new(name, binaries.program(name)?, all, folder)
                .surrounded_by(site.surroundings());
            let program = sparing(program);
            program.start()?;
            self.controllers.push(program);
        }
        self.wait_for_controllers(access.client()?).await
    }

    /// Waits until a namespace has what the controllers put into each: without its default
    /// service account no pod is admitted.
    async fn wait_for_controllers(&self, client: Client) -> Result<(), ControlPlaneError> {
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
        let config_maps: Api<ConfigMap> = Api::namespaced(client, "default");
        let Some(first) = self.controllers.first() else { return Ok(()) };
        let all: Vec<&Program> = self.controllers.iter().collect();
        wait_until(first, &all, || async {
            accounts.get("default").await.map_err(|error| error.to_string())?;
            config_maps.get("kube-root-ca.crt").await.map_err(|error| error.to_string())?;
            Ok(())
        })
        .await?;
        Ok(())
    }

    pub(super) fn api_server(&self) -> &Program {
        &self.api_server
    }

    pub(super) fn etcd(&self) -> &Program {
        &self.etcd
    }

    /// Every program, to count processes.
    pub(super) fn programs(&self) -> impl Iterator<Item = &Program> {
        self.controllers.iter().chain([&self.api_server, &self.etcd])
    }

    /// Waits until the API server says that it is ready.
    pub(super) async fn wait_for_api_server(
        &self,
        client: &Client,
    ) -> Result<(), ControlPlaneError> {
        wait_until(&self.api_server, &[&self.etcd, &self.api_server], || ready(client)).await?;
        Ok(())
    }
}

async fn start_api_server(
    binaries: &Binaries,
    keys: &KeyFiles,
    authority: &Arc<Authority>,
    folder: &Path,
    site: &Site,
) -> Result<(ControlPlane, Access), ControlPlaneError> {
    let etcd_path = binaries.program("etcd")?;
    let api_server_path = binaries.program("kube-apiserver")?;
    let port = site.port().map_err(ControlPlaneError::NoPort)?;
    let api_server_flags = api_server(keys, folder, port.number, site);
    let access = Access::new(Arc::clone(authority), site.port_for_clients(port.number), folder)?;
    let program = |name, path, flags| {
        let program = Program::new(name, path, flags, folder);
        sparing(program.surrounded_by(site.surroundings()))
    };
    let control_plane = ControlPlane {
        controllers: Vec::new(),
        etcd: program("etcd", etcd_path, etcd(folder)),
        api_server: program("kube-apiserver", api_server_path, api_server_flags),
        _port: port,
    };
    control_plane.etcd.start()?;
    control_plane.api_server.start()?;
    control_plane.wait_for_api_server(&access.client()?).await?;
    Ok((control_plane, access))
}

/// Has a program in Go do with less. Of the short life of a test's control plane the garbage collector takes a good part, most
/// of it over what is made at the start and stays.
pub(super) fn sparing(program: Program) -> Program {
    program.variable("GOGC", "300")
}

async fn ready(client: &Client) -> Result<(), String> {
    let request = http::Request::get("/readyz").body(Vec::new()).map_err(|e| e.to_string())?;
    client.request_text(request).await.map(drop).map_err(|error| error.to_string())
}

fn etcd(folder: &Path) -> Vec<String> {
    vec![
        format!("--data-dir={}", folder.join(ETCD).display()),
        format!("--listen-client-urls={ETCD_URL}"),
        // The only member has no peers and tells no client where it is, but etcd insists on both.
        "--advertise-client-urls=http://127.0.0.1:1".into(),
        "--listen-peer-urls=http://127.0.0.1:0".into(),
        // A sandbox may lose its data when the machine does; it must not wait for the disk.
        "--unsafe-no-fsync=true".into(),
        "--log-level=warn".into(),
    ]
}

fn api_server(keys: &KeyFiles, folder: &Path, port: u16, site: &Site) -> Vec<String> {
    let mut flags = vec![
        format!("--etcd-servers={ETCD_URL}"),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", keys.api_server.certificate.display()),
        format!("--tls-private-key-file={}", keys.api_server.key.display()),
        format!("--client-ca-file={}", keys.authority.display()),
        "--authorization-mode=Node,RBAC".into(),
        "--anonymous-auth=true".into(),
        "--allow-privileged=true".into(),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
        format!("--service-account-key-file={}", keys.token_public_key.display()),
        format!("--service-account-signing-key-file={}", keys.token_key.display()),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        format!("--audit-policy-file={}", folder.join("audit-policy.yaml").display()),
        format!("--audit-log-path={}", folder.join("audit.log").display()),
        // An event is in the file before its request is answered, so tests need not wait.
        "--audit-log-mode=blocking".into(),
        // Without it open watches, its own among them, keep it from ending for a minute.
        "--shutdown-watch-termination-grace-period=1s".into(),
        "--profiling=false".into(),
    ];
    flags.extend(reach(keys, site));
    flags
}

/// How the API server is reached, and how it reaches others.
fn reach(keys: &KeyFiles, site: &Site) -> Vec<String> {
    match site {
        Site::Loopback => vec![
            "--bind-address=127.0.0.1".into(),
            "--advertise-address=127.0.0.1".into(),
            // A loopback address is not allowed as the endpoint of Service `kubernetes`.
            "--endpoint-reconciler-type=none".into(),
        ],
        Site::Lab { address, .. } => vec![
            "--bind-address=0.0.0.0".into(),
            format!("--advertise-address={address}"),
            format!("--kubelet-client-certificate={}", keys.kubelet_client.certificate.display()),
            format!("--kubelet-client-key={}", keys.kubelet_client.key.display()),
            format!("--kubelet-certificate-authority={}", keys.authority.display()),
            // Else exec and logs ask a name server for the node.
            "--kubelet-preferred-address-types=InternalIP".into(),
            // Webhooks are called by their pods' addresses: no kube-proxy runs beside it.
            "--enable-aggregator-routing=true".into(),
        ],
    }
}

/// The default of 20 requests a second costs four seconds at the start.
const CLIENT_RATE: [&str; 2] = ["--kube-api-qps=1000", "--kube-api-burst=2000"];

fn controller_manager(keys: &KeyFiles, site: &Site) -> Vec<String> {
    let mut flags = vec![
        "--use-service-account-credentials=true".into(),
        "--leader-elect=false".into(),
        "--secure-port=0".into(),
        format!("--root-ca-file={}", keys.authority.display()),
        format!("--service-account-private-key-file={}", keys.token_key.display()),
        format!("--cluster-signing-cert-file={}", keys.authority.display()),
        format!("--cluster-signing-key-file={}", keys.authority_key.display()),
        "--profiling=false".into(),
    ];
    flags.extend(CLIENT_RATE.map(String::from));
    if matches!(site, Site::Lab { .. }) {
        flags.push(format!("--node-monitor-grace-period={NODE_GRACE_SECONDS}s"));
        flags.push("--node-monitor-period=2s".into());
    }
    flags
}

fn scheduler() -> Vec<String> {
    let mut flags: Vec<String> =
        vec!["--leader-elect=false".into(), "--secure-port=0".into(), "--profiling=false".into()];
    flags.extend(CLIENT_RATE.map(String::from));
    flags
}
