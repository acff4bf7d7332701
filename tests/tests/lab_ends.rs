//! How labs start and end: two side by side, ended, interrupted, killed. Nothing may be left,
//! and no other's may be touched. What a lab does in between is in `lab_cluster.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use opensdn_testing::output::text;
use opensdn_testing::programs::{ProgramsError, program};
use opensdn_testing::signal::{self, Signal};
use opensdn_testing::{Failed, Outcome};
use tempfile::TempDir;

/// So long something may take to go away on a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(60);
const WORKLOAD: &str = include_str!("lab/workload.yaml");

fn command() -> Result<Command, ProgramsError> {
    Ok(Command::new(program("opensdn-sandbox")?))
}

/// A lab in the background.
struct Background {
    dir: PathBuf,
    kubectl: PathBuf,
}

impl Background {
    fn up(dir: PathBuf, nodes: u8) -> Result<Self, Failed> {
        let nodes = format!("--nodes={nodes}");
        let up = command()?.args(["up", &nodes, "--dir"]).arg(&dir).output()?;
        let said = text(&up);
        assert!(up.status.success(), "{said}");
        let kubectl = said.lines().find_map(|line| line.strip_prefix("kubectl"));
        Ok(Self { dir, kubectl: kubectl.ok_or("no kubectl")?.trim().into() })
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<String, Failed> {
        let kubeconfig = self.dir.join("kubeconfig");
        let mut command = Command::new(&self.kubectl);
        let output = command.env("KUBECONFIG", kubeconfig).args(arguments).output()?;
        assert!(output.status.success(), "{}", text(&output));
        Ok(text(&output))
    }

    fn ready_nodes(&self) -> Result<usize, Failed> {
        let nodes = self.kubectl(&["get", "nodes", "--no-headers"])?;
        Ok(nodes.lines().filter(|line| line.contains(" Ready ")).count())
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn owner(&self) -> Result<u32, Failed> {
        Ok(fs::read_to_string(self.data().join("owner.lock"))?.trim().parse()?)
    }

    fn down(&self) -> Outcome {
        let down = command()?.args(["down", "--dir"]).arg(&self.dir).output()?;
        assert!(down.status.success(), "{}", text(&down));
        Ok(())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // A failed test must not leave a lab running.
        if let Ok(mut command) = command() {
            let _ = command.args(["down", "--dir"]).arg(&self.dir).output();
        }
    }
}

/// The id of the lab whose data is in that folder, as the register has it.
fn lab_id(data: &Path) -> Result<String, Failed> {
    for entry in fs::read_dir("/run/opensdn/labs")?.flatten() {
        let folder = fs::read_to_string(entry.path()).unwrap_or_default();
        if Path::new(&folder) == data {
            return Ok(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Err(format!("no lab in {}", data.display()).into())
}

fn cgroups(id: &str) -> Vec<PathBuf> {
    let hierarchies = fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
    let groups = hierarchies.filter_map(|root| fs::read_dir(root.path()).ok()).flatten();
    let roots = fs::read_dir("/sys/fs/cgroup").into_iter().flatten();
    let prefix = format!("opensdn-lab-{id}-");
    let paths = groups.chain(roots).flatten().map(|entry| entry.path());
    paths.filter(|path| path.to_string_lossy().contains(&prefix)).collect()
}

/// The process and all that it has started, directly or not.
fn family(head: u32) -> BTreeSet<u32> {
    let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
            Some((id, parent))
        })
        .collect();
    let mut family = BTreeSet::from([head]);
    loop {
        let size = family.len();
        let children = parents.iter().filter(|(_, parent)| family.contains(parent));
        let children: Vec<u32> = children.map(|(id, _)| *id).collect();
        family.extend(children);
        if family.len() == size {
            return family;
        }
    }
}

/// Networks, mounts and process ids of a family that are not this process' own.
fn namespaces(processes: &BTreeSet<u32>) -> BTreeSet<PathBuf> {
    let of = |process: &str| {
        let kinds = ["net", "mnt", "pid", "uts", "ipc"].into_iter();
        let links = kinds.map(|kind| fs::read_link(format!("/proc/{process}/ns/{kind}")));
        links.flatten().collect::<BTreeSet<PathBuf>>()
    };
    let all: BTreeSet<PathBuf> =
        processes.iter().flat_map(|process| of(&process.to_string())).collect();
    all.difference(&of("self")).cloned().collect()
}

fn all_processes() -> BTreeSet<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn wait_until(what: &str, is: impl Fn() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is() {
        assert!(Instant::now() < deadline, "not within {TIMEOUT:?}: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// What of this machine itself a lab might touch.
#[derive(Debug, PartialEq, Eq)]
struct Host {
    mounts: String,
    links: String,
    routes: String,
    rules: String,
    names: Vec<String>,
}

impl Host {
    fn now() -> Result<Self, Failed> {
        let run = |line: &str| -> Result<String, Failed> {
            let output = Command::new("sh").args(["-c", line]).output()?;
            Ok(text(&output))
        };
        let names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
        Ok(Self {
            mounts: fs::read_to_string("/proc/self/mounts")?,
            links: run("ip -oneline link | cut -d' ' -f1,2")?,
            routes: run("ip route show table all")?,
            rules: run("iptables-save | grep -v '^[#:]'")?,
            names: names.map(|entry| entry.file_name().to_string_lossy().into()).collect(),
        })
    }
}

fn loops(dir: &Path) -> Result<bool, Failed> {
    let listed = Command::new("losetup").args(["--list", "--noheadings"]).output()?;
    Ok(text(&listed).contains(&dir.display().to_string()))
}

/// A lab of one node in the foreground, ready.
fn foreground(dir: &Path) -> Result<Child, Failed> {
    let mut child = command()?
        .args(["--nodes=1", "--dir"])
        .arg(dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    let stdout = child.stdout.take().ok_or("no standard output")?;
    for line in BufReader::new(stdout).lines() {
        if line?.starts_with("Ctrl-C") {
            return Ok(child);
        }
    }
    Err(text(&child.wait_with_output()?).into())
}

fn run_a_workload(lab: &Background) -> Outcome {
    let file = lab.dir.join("workload.yaml");
    fs::write(&file, WORKLOAD)?;
    lab.kubectl(&["apply", "-f", file.to_str().ok_or("no name")?])?;
    fs::remove_file(&file)?;
    lab.kubectl(&["wait", "pod/store", "--for=condition=Ready", "--timeout=90s"])?;
    Ok(())
}

#[test]
fn two_labs_live_side_by_side_and_leave_nothing_however_they_end() -> Outcome {
    let host = Host::now()?;
    let parent = TempDir::new()?;
    let (one, other) = (parent.path().join("one"), parent.path().join("other"));
    let (killed, ended) = thread::scope(|scope| {
        let one = scope.spawn(|| Background::up(one, 3).map_err(|error| error.to_string()));
        let other = Background::up(other, 1);
        (one.join(), other)
    });
    let killed = killed.map_err(|_| "the first did not start")??;
    let ended = ended?;
    assert_eq!((killed.ready_nodes()?, ended.ready_nodes()?), (3, 1));
    run_a_workload(&killed)?;
    run_a_workload_on_one_node(&ended)?;
    assert_eq!(Host::now()?, host, "a lab keeps to its own namespaces while it runs");

    // Killed with everything in it, the worst end of all.
    let id = lab_id(&killed.data())?;
    let owner = killed.owner()?;
    let spaces = namespaces(&family(owner));
    assert!(spaces.len() > 15, "{spaces:?}");
    signal::send(Signal::KILL, owner)?;
    wait_until("its processes and namespaces are gone", || {
        namespaces(&all_processes()).is_disjoint(&spaces)
    });
    wait_until("its volumes are unmounted", || !loops(&killed.data()).unwrap_or(true));
    assert_eq!(ended.ready_nodes()?, 1, "the other lab lives");
    assert!(
        !cgroups(&id).is_empty() && killed.data().exists(),
        "no process was there to remove it"
    );

    // The next start sweeps, and is interrupted itself.
    let next = parent.path().join("next");
    let mut interrupted = foreground(&next)?;
    assert!(cgroups(&id).is_empty(), "{:?}", cgroups(&id));
    assert!(!killed.data().exists() && lab_id(&killed.data()).is_err());
    assert_eq!(ended.ready_nodes()?, 1, "what has an owner is not swept");
    let next_id = lab_id(&next.join("data"))?;
    let spaces = namespaces(&family(interrupted.id()));
    signal::send(Signal::INT, interrupted.id())?;
    assert!(interrupted.wait()?.success());
    assert_gone(&next_id, &spaces, &next)?;

    let (id, spaces) = (lab_id(&ended.data())?, namespaces(&family(ended.owner()?)));
    ended.down()?;
    assert_gone(&id, &spaces, &ended.dir)?;
    assert_eq!(Host::now()?, host);
    Ok(())
}

fn run_a_workload_on_one_node(lab: &Background) -> Outcome {
    lab.kubectl(&[
        "run",
        "web",
        "--image=opensdn.lab/tools:1",
        "--image-pull-policy=Never",
        "--command",
        "--",
        "httpd",
        "-f",
        "-p",
        "8080",
    ])?;
    lab.kubectl(&["wait", "pod/web", "--for=condition=Ready", "--timeout=90s"])?;
    Ok(())
}

/// At once when `down` has returned.
fn assert_gone(id: &str, spaces: &BTreeSet<PathBuf>, dir: &Path) -> Outcome {
    let left: Vec<_> = namespaces(&all_processes()).intersection(spaces).cloned().collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(cgroups(id).is_empty(), "{:?}", cgroups(id));
    assert!(!Path::new("/run/opensdn/labs").join(id).exists());
    assert!(!dir.exists(), "{}", dir.display());
    wait_until("its volumes are unmounted", || !loops(dir).unwrap_or(true));
    Ok(())
}
