//! Images in OCI archives, as `deploy/images/build.sh` and `tests/images/build.sh` make them: what
//! is in them, and a container of one without an engine, whose only network is its own loopback.
//! Needs root. Deliberately not here: pods, which are the lab's.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde::Deserialize;
use tempfile::TempDir;

/// Why an image could not be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("run {program}")]
    Run { program: String, source: io::Error },
    #[error("{what}: {said}")]
    Refused { what: String, said: String },
    #[error("use {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("read {} of an image", path.display())]
    Content { path: PathBuf, source: serde_json::Error },
    #[error("find one manifest in the archive: there are {0}")]
    Manifests(usize),
    #[error("name an image's user: {0:?} is not a number of a user and one of a group")]
    User(String),
}

/// How the program of an image is run.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Configuration {
    /// `user:group`, numbers.
    pub user: String,
    /// `NAME=value`.
    pub env: Vec<String>,
    /// The program and its first arguments.
    pub entrypoint: Vec<String>,
    /// Further arguments, if none are given.
    pub cmd: Vec<String>,
    /// Where it is started.
    pub working_dir: String,
    /// What the image says of itself.
    pub labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Descriptor {
    digest: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Manifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct ConfigurationFile {
    config: Configuration,
}

/// An image out of its archive.
#[derive(Debug)]
pub struct Image {
    /// The whole name, with host and tag.
    pub reference: String,
    /// The digest of its manifest.
    pub digest: String,
    /// How its program is run.
    pub configuration: Configuration,
    layers: Vec<PathBuf>,
    // The layers are in it.
    _content: TempDir,
}

impl Image {
    /// Reads an archive with one image.
    ///
    /// # Errors
    /// It is not there, or not an OCI archive.
    pub fn open(archive: &Path) -> Result<Self, Error> {
        let content = TempDir::new().map_err(file(archive))?;
        run(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(content.path()))?;
        let index: Index = read(&content.path().join("index.json"))?;
        let [described] = index.manifests.as_slice() else {
            return Err(Error::Manifests(index.manifests.len()));
        };
        let blob = |digest: &str| content.path().join("blobs").join(digest.replace(':', "/"));
        let manifest: Manifest = read(&blob(&described.digest))?;
        let file: ConfigurationFile = read(&blob(&manifest.config.digest))?;
        let name = described.annotations.get("org.opencontainers.image.ref.name");
        Ok(Self {
            reference: name.cloned().unwrap_or_default(),
            digest: described.digest.clone(),
            configuration: file.config,
            layers: manifest.layers.iter().map(|layer| blob(&layer.digest)).collect(),
            _content: content,
        })
    }

    /// Unpacks the layers, one over the other.
    ///
    /// # Errors
    /// There is no place, or a layer is broken.
    pub fn unpack(&self, folder: &Path) -> Result<(), Error> {
        fs::create_dir_all(folder).map_err(file(folder))?;
        for layer in &self.layers {
            run(Command::new("tar").arg("-xpf").arg(layer).arg("-C").arg(folder))?;
        }
        Ok(())
    }

    fn user(&self) -> Result<(u32, u32), Error> {
        let user = &self.configuration.user;
        let numbers = user
            .split_once(':')
            .and_then(|(user, group)| Some((user.parse().ok()?, group.parse().ok()?)));
        numbers.ok_or_else(|| Error::User(user.clone()))
    }
}

/// Makes the surroundings and waits for the program. It does not become it: the kernel forgets
/// whose end a process is to share when that changes its user.
const BEGIN: &str = r#"set -e
ip link set lo up
mount --bind "$1" "$1"
for name in proc dev; do mkdir -p "$1/$name"; done
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
hostname service
shift
status=0
"$@" || status=$?
exit "$status""#;

/// A program of an image in namespaces of its own. Ends when it is dropped, or its owner ends.
#[derive(Debug)]
pub struct Container {
    process: Child,
    root: TempDir,
    user: (u32, u32),
    env: Vec<String>,
}

impl Container {
    /// Starts the image's program; without arguments, with the image's own. What it says goes to
    /// a file ([`Container::log`]).
    ///
    /// # Errors
    /// We are not root, or the image cannot be unpacked.
    pub fn start(image: &Image, arguments: &[&str]) -> Result<Self, Error> {
        Self::start_with(image, arguments, &[])
    }

    /// The same, with further files, each by its path from the root and its text.
    ///
    /// # Errors
    /// We are not root, or the image cannot be unpacked.
    pub fn start_with(
        image: &Image,
        arguments: &[&str],
        files: &[(&str, &str)],
    ) -> Result<Self, Error> {
        let root = TempDir::new().map_err(file(Path::new("a new folder")))?;
        let system = root.path().join("root");
        image.unpack(&system)?;
        for (path, text) in files {
            let path = system.join(path);
            fs::write(&path, text).map_err(file(&path))?;
        }
        let hosts = system.join("etc/hosts");
        if hosts.parent().is_some_and(Path::is_dir) {
            fs::write(&hosts, "127.0.0.1 localhost service\n").map_err(file(&hosts))?;
        }
        let log = root.path().join("log");
        let out = fs::File::create(&log).map_err(file(&log))?;
        let err = out.try_clone().map_err(file(&log))?;
        let Configuration { entrypoint, cmd, env, working_dir, .. } = &image.configuration;
        let user = image.user()?;
        // It ends with us, and its own process with it.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "unshare"]);
        command.args(["--net", "--mount", "--pid", "--uts", "--ipc", "--propagation=private"]);
        command
            .args(["--fork", "--kill-child=KILL", "--", "bash", "-c", BEGIN, "bash"])
            .arg(&system);
        command.args(["env", "-i"]).args(env).arg("/usr/bin/unshare").args(become_user(user));
        command.arg("--root").arg(&system).arg("--wd").arg(directory(working_dir));
        command.arg("--").args(entrypoint);
        match arguments {
            [] => command.args(cmd),
            _ => command.args(arguments),
        };
        let process = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
        let process = process.map_err(|source| Error::Run { program: "setpriv".into(), source })?;
        Ok(Self { process, root, user, env: env.clone() })
    }

    /// Waits for the program's end, and returns what it said.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn finish(mut self) -> Result<(Option<i32>, String), Error> {
        let ended = self.process.wait();
        let ended = ended.map_err(|source| Error::Run { program: "setpriv".into(), source })?;
        Ok((ended.code(), self.log()))
    }

    /// What the program has said so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.root.path().join("log")).unwrap_or_default()
    }

    /// Whether the program has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    /// Runs another program of the image beside the first, as its user, in
    /// the root folder.
    ///
    /// # Errors
    /// The container has ended.
    pub fn exec(&self, command: &[&str]) -> Result<Output, Error> {
        let Some(main) = self.main_process() else {
            return Err(Error::Refused { what: "exec".into(), said: self.log() });
        };
        let mut enter = Command::new("env");
        enter.arg("-i").args(&self.env).arg("/usr/bin/nsenter").arg(format!("--target={main}"));
        enter.args(["--net", "--mount", "--pid", "--uts", "--ipc", "--", "/usr/bin/unshare"]);
        // Not by nsenter, which cannot name the root and a folder in it at once.
        enter.arg("--root").arg(self.root.path().join("root")).arg("--wd").arg("/");
        let output = enter
            .args(become_user(self.user))
            .arg("--")
            .args(command)
            .stdin(Stdio::null())
            .output();
        output.map_err(|source| Error::Run { program: "nsenter".into(), source })
    }

    /// Runs a program of this machine in the container's network.
    ///
    /// # Errors
    /// The container has ended.
    pub fn in_its_network(&self, command: &[&str]) -> Result<Output, Error> {
        let Some(main) = self.main_process() else {
            return Err(Error::Refused { what: "enter the network".into(), said: self.log() });
        };
        let mut enter = Command::new("nsenter");
        enter.arg(format!("--net=/proc/{main}/ns/net")).arg("--").args(command);
        let output = enter.stdin(Stdio::null()).output();
        output.map_err(|source| Error::Run { program: "nsenter".into(), source })
    }

    /// The program, once it is in the image's root: below the process that we started and the
    /// first of the namespaces, which both only wait for it.
    fn main_process(&self) -> Option<u32> {
        let main = child_of(child_of(self.process.id())?)?;
        let root = fs::read_link(format!("/proc/{main}/root")).ok()?;
        (root == self.root.path().join("root")).then_some(main)
    }
}

fn child_of(process: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    children.ok()?.split_whitespace().next()?.parse().ok()
}

impl Drop for Container {
    fn drop(&mut self) {
        // Both fail only if it has ended, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn become_user((user, group): (u32, u32)) -> [String; 2] {
    [format!("--setuid={user}"), format!("--setgid={group}")]
}

fn directory(named: &str) -> &str {
    if named.is_empty() { "/" } else { named }
}

fn file(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    |source| Error::File { path, source }
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let bytes = fs::read(path).map_err(file(path))?;
    serde_json::from_slice(&bytes)
        .map_err(|source| Error::Content { path: path.to_owned(), source })
}

/// Runs it to its end.
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output();
    let output = output.map_err(|source| Error::Run { program: program.clone(), source })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::Refused { what: program, said })
}
