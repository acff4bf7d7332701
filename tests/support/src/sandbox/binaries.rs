//! Where the programs of the control plane come from: `KUBEBUILDER_ASSETS`, the convention
//! of envtest, or the cache that `control-plane/build.sh` fills from pinned Go modules.
//! Deliberately not here: how a program is built, which that script alone knows.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use tokio::process::Command;

/// The default version of Kubernetes.
pub const DEFAULT_KUBERNETES: &str = "1.35";
/// Names another default, for `make test-kubernetes`.
pub const KUBERNETES_VARIABLE: &str = "OPENSDN_KUBERNETES";
/// A folder with ready programs.
const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";
const CONTROL_PLANES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../control-plane");

/// Why the programs are not there.
#[derive(Debug, thiserror::Error)]
pub enum BinariesError {
    /// `KUBEBUILDER_ASSETS` is set but does not hold what is needed.
    #[error(
        "find {program} in {} (KUBEBUILDER_ASSETS): put it there, or unset the variable to have \
         the pinned version built",
        folder.display()
    )]
    Missing {
        /// The file that is missing.
        program: &'static str,
        /// The folder that the variable names.
        folder: PathBuf,
    },
    /// There is no pinned module for that version.
    #[error("use Kubernetes {version}: there is none in {CONTROL_PLANES}, only {}", known.join(", "))]
    UnknownVersion {
        /// What was asked for.
        version: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The script could not be run at all.
    #[error(
        "run {CONTROL_PLANES}/build.sh; without bash, set KUBEBUILDER_ASSETS to a folder with the programs"
    )]
    Script(#[source] io::Error),
    /// The script ran and failed. It has written why to standard error.
    #[error(
        "build {subject}: {CONTROL_PLANES}/build.sh ended with {status}; it has said why above. \
         It needs Go and the Go module proxy, once; or set KUBEBUILDER_ASSETS to a folder with \
         the programs"
    )]
    Build {
        /// What was to be built: a version, or kwok.
        subject: String,
        /// How the script ended.
        status: ExitStatus,
    },
}

/// The programs of one Kubernetes version.
#[derive(Debug, Clone)]
pub struct Binaries {
    folder: PathBuf,
    from_assets: bool,
}

impl Binaries {
    /// Finds the programs of a version such as `1.36`, and builds them when they are not
    /// there yet: that takes minutes, once. `None` is the default version.
    ///
    /// # Errors
    /// When the version is not pinned, or its programs cannot be built.
    pub async fn find(version: Option<&str>) -> Result<Self, BinariesError> {
        if let Some(folder) = assets_folder() {
            return Ok(Self { folder, from_assets: true });
        }
        let asked = std::env::var(KUBERNETES_VARIABLE).ok().filter(|value| !value.is_empty());
        let version = version.or(asked.as_deref()).unwrap_or(DEFAULT_KUBERNETES);
        let folder = build(&pinned(version)?).await?;
        Ok(Self { folder, from_assets: false })
    }

    /// The file of a program.
    ///
    /// # Errors
    /// When it is not there; the error names it and the folder.
    pub fn program(&self, program: &'static str) -> Result<PathBuf, BinariesError> {
        let path = self.folder.join(program);
        if path.is_file() {
            Ok(path)
        } else {
            Err(BinariesError::Missing { program, folder: self.folder.clone() })
        }
    }

    /// kwok, which simulates nodes: beside the other programs, or built.
    ///
    /// # Errors
    /// When it is not there and cannot be built.
    pub async fn kwok(&self) -> Result<PathBuf, BinariesError> {
        if self.from_assets && self.folder.join("kwok").is_file() {
            return self.program("kwok");
        }
        Ok(build("kwok").await?.join("kwok"))
    }

    /// What runs on real nodes: kubelet, kube-proxy, CoreDNS and the first images. Built when
    /// it is not there yet.
    ///
    /// # Errors
    /// When it cannot be built.
    pub async fn of_nodes() -> Result<NodeBinaries, BinariesError> {
        Ok(NodeBinaries {
            folder: build(&format!("{DEFAULT_KUBERNETES}-nodes")).await?,
            dns_image: build("coredns").await?.join("coredns.tar"),
        })
    }
}

/// What real nodes are made of.
#[derive(Debug, Clone)]
pub struct NodeBinaries {
    /// Holds `kubelet`, `kube-proxy` and `pause`.
    pub(super) folder: PathBuf,
    dns_image: PathBuf,
}

impl NodeBinaries {
    /// The archives of the images that every node has from the start.
    pub(super) fn images(&self) -> [PathBuf; 3] {
        [self.folder.join("pause.tar"), self.folder.join("tools.tar"), self.dns_image.clone()]
    }
}

/// The version that a program prints with `--version`; none when it does not.
pub(super) async fn version_of(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").env_clear().output().await.ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = text.split_whitespace().map(|word| word.trim_start_matches('v'));
    words
        .filter(|word| word.contains('.'))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .map(String::from)
}

fn assets_folder() -> Option<PathBuf> {
    let folder = std::env::var_os(ASSETS_VARIABLE).filter(|value| !value.is_empty())?;
    // Absolute, for the programs run in a folder of their own.
    Some(std::path::absolute(&folder).unwrap_or_else(|_| PathBuf::from(folder)))
}

/// The pinned module that a version selects: `1.36.3`, `v1.36` and `1.36` are one.
fn pinned(version: &str) -> Result<String, BinariesError> {
    let bare = version.strip_prefix('v').unwrap_or(version);
    let minor: String = bare.split('.').take(2).collect::<Vec<_>>().join(".");
    if Path::new(CONTROL_PLANES).join(&minor).join("go.mod").is_file() {
        return Ok(minor);
    }
    Err(BinariesError::UnknownVersion { version: version.into(), known: known_versions() })
}

/// The versions with a pinned module, oldest first.
#[must_use]
pub fn known_versions() -> Vec<String> {
    let entries = std::fs::read_dir(CONTROL_PLANES).into_iter().flatten().flatten();
    let mut known: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(|first: char| first.is_ascii_digit()))
        .collect();
    known.sort();
    known
}

async fn build(subject: &str) -> Result<PathBuf, BinariesError> {
    let output = Command::new(Path::new(CONTROL_PLANES).join("build.sh"))
        .arg(subject)
        .stdin(Stdio::null())
        // A build takes minutes: what it does goes to the user as it happens.
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(BinariesError::Script)?;
    if !output.status.success() {
        return Err(BinariesError::Build { subject: subject.into(), status: output.status });
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    Ok(PathBuf::from(printed.lines().last().unwrap_or_default().trim()))
}
