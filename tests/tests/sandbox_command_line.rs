//! What `opensdn-sandbox` promises to people: `up`, `down`, `status`, the foreground, and
//! that nothing is left whatever happens to it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use opensdn_testing::eventually::{TIMEOUT, eventually};
use opensdn_testing::output::text;
use opensdn_testing::programs::{ProgramsError, program};
use opensdn_testing::sandbox::Binaries;
use opensdn_testing::signal::{self, Signal};
use opensdn_testing::{Failed, Outcome};
use tempfile::TempDir;

fn command() -> Result<Command, ProgramsError> {
    Ok(Command::new(program("opensdn-sandbox")?))
}

fn run(arguments: &[&str], dir: &Path) -> Result<Output, Failed> {
    Ok(command()?.args(arguments).arg("--dir").arg(dir).output()?)
}

async fn programs_folder() -> Result<PathBuf, Failed> {
    let etcd = Binaries::find(None).await?.program("etcd")?;
    Ok(etcd.parent().ok_or("no folder")?.to_owned())
}

/// A sandbox in the foreground whose cache, and so its default data folder, is `cache`.
fn foreground(cache: &Path, programs: &Path) -> Result<Child, Failed> {
    let mut child = command()?
        .env("XDG_CACHE_HOME", cache)
        .env("KUBEBUILDER_ASSETS", programs)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().ok_or("no standard output")?;
    for line in BufReader::new(stdout).lines() {
        if line?.starts_with("Ctrl-C") {
            return Ok(child);
        }
    }
    Err(text(&child.wait_with_output()?).into())
}

fn data_folders(cache: &Path) -> Result<Vec<PathBuf>, std::io::Error> {
    let entries = fs::read_dir(cache.join("opensdn/sandboxes"))?.collect::<Result<Vec<_>, _>>()?;
    Ok(entries.iter().map(fs::DirEntry::path).filter(|path| path.is_dir()).collect())
}

/// State letter and parent of a process, from `/proc`; none when it is gone. A killed one
/// that no parent has waited for is gone too.
fn parent_of(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut words = after_name.split_whitespace();
    let state = words.next()?;
    if state == "Z" { None } else { words.next()?.parse().ok() }
}

fn children_of(parent: u32) -> Result<Vec<u32>, std::io::Error> {
    let processes = fs::read_dir("/proc")?.flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(ids.filter(|id| parent_of(*id) == Some(parent)).collect())
}

fn wait_until_gone(processes: &[u32]) {
    let deadline = Instant::now() + TIMEOUT;
    while processes.iter().any(|id| parent_of(*id).is_some()) {
        assert!(Instant::now() < deadline, "still there: {processes:?}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[tokio::test]
async fn killed_owner_takes_its_programs_along_and_the_next_start_sweeps_its_data() -> Outcome {
    let cache = TempDir::new()?;
    let programs = programs_folder().await?;
    let mut first = foreground(cache.path(), &programs)?;
    let processes = children_of(first.id())?;
    assert_eq!(processes.len(), 4, "etcd, API server, controller-manager, scheduler");
    let left = data_folders(cache.path())?;
    assert_eq!(left.len(), 1);

    first.kill()?; // SIGKILL
    first.wait()?;
    wait_until_gone(&processes);
    assert_eq!(data_folders(cache.path())?, left, "no process was there to remove it");

    let mut second = foreground(cache.path(), &programs)?;
    let now = data_folders(cache.path())?;
    assert_eq!(now.len(), 1);
    assert_ne!(now, left);
    signal::send(Signal::TERM, second.id())?;
    assert!(second.wait()?.success());
    assert!(data_folders(cache.path())?.is_empty());
    Ok(())
}

#[tokio::test]
async fn one_that_is_ended_while_it_starts_leaves_nothing() -> Outcome {
    let cache = TempDir::new()?;
    let mut child = command()?
        .env("XDG_CACHE_HOME", cache.path())
        .env("KUBEBUILDER_ASSETS", programs_folder().await?)
        .stdout(Stdio::null())
        .spawn()?;
    let has_begun = async || data_folders(cache.path()).is_ok_and(|folders| !folders.is_empty());
    eventually("it has a folder", has_begun).await;
    signal::send(Signal::TERM, child.id())?;
    assert!(child.wait()?.success());
    assert!(data_folders(cache.path())?.is_empty());
    Ok(())
}

#[test]
fn up_returns_when_ready_and_down_leaves_nothing() -> Outcome {
    let parent = TempDir::new()?;
    let dir = parent.path().join("try");
    let up = run(&["up", "--simulated-nodes=1"], &dir)?;
    assert!(up.status.success(), "{}", text(&up));
    let said = text(&up);
    assert!(
        said.contains("Kubernetes 1.3") && said.contains("etcd 3.") && said.contains("kwok 0.")
    );
    assert!(said.contains("https://127.0.0.1:"), "{said}");

    let kubectl = said.lines().find_map(|line| line.strip_prefix("kubectl")).ok_or("no kubectl")?;
    let nodes = Command::new(kubectl.trim())
        .env("KUBECONFIG", dir.join("kubeconfig"))
        .args(["get", "nodes", "-o=name"])
        .output()?;
    assert_eq!(text(&nodes), "node/node-0\n");

    let again = run(&["up"], &dir)?;
    assert!(!again.status.success() && text(&again).contains("down --dir"), "{}", text(&again));
    assert!(run(&["status"], &dir)?.status.success());

    let down = run(&["down"], &dir)?;
    assert!(down.status.success(), "{}", text(&down));
    assert!(!dir.exists());
    let status = run(&["status"], &dir)?;
    assert_eq!(status.status.code(), Some(1));
    assert!(run(&["down"], &dir)?.status.success(), "ending what has ended is no error");
    Ok(())
}

#[test]
fn users_files_in_the_folder_are_left_alone() -> Outcome {
    let dir = TempDir::new()?;
    fs::create_dir(dir.path().join("data"))?;
    fs::write(dir.path().join("data/thesis.txt"), "years of work")?;
    let up = run(&["up"], dir.path())?;
    assert!(!up.status.success());
    assert!(text(&up).contains("is not the data folder of a sandbox"), "{}", text(&up));
    run(&["down"], dir.path())?;
    assert!(dir.path().join("data/thesis.txt").exists());
    Ok(())
}

#[tokio::test]
async fn missing_program_of_kubebuilder_assets_is_named() -> Outcome {
    let programs = programs_folder().await?;
    let (assets, dir) = (TempDir::new()?, TempDir::new()?);
    for name in ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"] {
        symlink(programs.join(name), assets.path().join(name))?;
    }
    let up = command()?
        .env("KUBEBUILDER_ASSETS", assets.path())
        .args(["up", "--dir"])
        .arg(dir.path())
        .output()?;
    assert_eq!(up.status.code(), Some(1));
    let said = text(&up);
    let assets = assets.path().display();
    assert!(
        said.contains(&format!("find kube-scheduler in {assets} (KUBEBUILDER_ASSETS)")),
        "{said}"
    );
    Ok(())
}

#[tokio::test]
async fn failed_start_shows_the_end_of_the_right_log() -> Outcome {
    let programs = programs_folder().await?;
    let (assets, dir) = (TempDir::new()?, TempDir::new()?);
    for name in ["etcd", "kube-controller-manager", "kube-scheduler", "kubectl"] {
        symlink(programs.join(name), assets.path().join(name))?;
    }
    // The scheduler does not know the API server's flags, and says so.
    symlink(programs.join("kube-scheduler"), assets.path().join("kube-apiserver"))?;
    let up = command()?
        .env("KUBEBUILDER_ASSETS", assets.path())
        .args(["up", "--dir"])
        .arg(dir.path())
        .output()?;
    let said = text(&up);
    assert_eq!(up.status.code(), Some(1), "{said}");
    assert!(said.contains("kube-apiserver running: it ended with"), "{said}");
    assert!(said.contains("unknown flag: --etcd-servers"), "{said}");
    assert!(dir.path().join("data/logs/kube-apiserver.log").exists());
    Ok(())
}

#[tokio::test]
async fn program_that_ends_by_itself_ends_the_sandbox_and_is_named() -> Outcome {
    let cache = TempDir::new()?;
    let mut sandbox = foreground(cache.path(), &programs_folder().await?)?;
    let scheduler = children_of(sandbox.id())?.into_iter().find(|id| {
        fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|c| c.contains("scheduler"))
    });
    signal::send(Signal::KILL, scheduler.ok_or("no scheduler")?)?;
    let mut said = String::new();
    sandbox.stderr.take().ok_or("no standard error")?.read_to_string(&mut said)?;
    assert_eq!(sandbox.wait()?.code(), Some(1));
    assert!(said.contains("failed to keep kube-scheduler running"), "{said}");
    Ok(())
}

/// What runs on this machine is never asked through a proxy, wherever the variables point.
#[test]
fn behind_a_proxy_the_product_works_and_refuses() -> Outcome {
    let parent = TempDir::new()?;
    let dir = parent.path().join("try");
    // It has to be built before: it is found beside the sandbox's program.
    let webhook = program("opensdn-webhook")?;
    let sandbox = program("opensdn-sandbox")?;
    assert_eq!(webhook.parent(), sandbox.parent());
    let with_proxy = |command: &mut Command| {
        for variable in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"] {
            // Nothing listens there.
            command.env(variable, "http://127.0.0.1:1");
        }
        command.env_remove("NO_PROXY").env_remove("no_proxy");
    };
    let mut up = Command::new(&sandbox);
    with_proxy(&mut up);
    let up = up.args(["up", "--product", "--dir"]).arg(&dir).output()?;
    assert!(up.status.success(), "{}", text(&up));
    let said = text(&up);
    let kubectl = said.lines().find_map(|line| line.strip_prefix("kubectl")).ok_or("no kubectl")?;
    let kubectl = |arguments: &[&str]| {
        let mut command = Command::new(kubectl.trim());
        with_proxy(&mut command);
        command.env("KUBECONFIG", dir.join("kubeconfig")).args(arguments).output()
    };
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/samples-refused/manager.yaml");
    kubectl(&["create", "namespace", "tf"])?;
    let refused = kubectl(&["create", "-f", manifest])?;
    run(&["down"], &dir)?;
    assert!(text(&refused).contains("denied the request"), "{}", text(&refused));
    Ok(())
}

#[test]
fn what_cannot_be_had_is_refused_in_one_sentence() -> Outcome {
    let dir = TempDir::new()?;
    let too_many = command()?.args(["up", "--nodes=200", "--dir"]).arg(dir.path()).output()?;
    assert!(text(&too_many).contains("have 200 real and 0 simulated nodes"), "{}", text(&too_many));
    let both = ["up", "--nodes=1", "--simulated-nodes=1", "--dir"];
    let both = command()?.args(both).arg(dir.path()).output()?;
    assert!(text(&both).contains("cannot be used with"), "{}", text(&both));

    // Without root it is refused.
    let without_root = Command::new("setpriv")
        .args(["--reuid=65534", "--clear-groups"])
        .arg(program("opensdn-sandbox")?)
        .arg("lab-check")
        .output();
    // The program may be where only its owner can read it; then nothing is proven.
    if let Ok(output) = without_root
        && !text(&output).contains("Permission denied")
    {
        let said =
            "opensdn-sandbox: failed to start real nodes: that needs root, so run it with sudo\n";
        assert_eq!((output.status.code(), text(&output).as_str()), (Some(1), said));
    }
    Ok(())
}

/// The arguments by which `make run` plans its nested cluster.
fn nested_arguments(root: &Path, config_api: &str) -> Result<Vec<String>, Failed> {
    let script = fs::read_to_string(root.join("gate/run.sh"))?;
    let given = script.lines().find_map(|line| line.strip_prefix("nested=\"")?.strip_suffix('"'));
    let given = given.ok_or("it has no such line")?.replace("$config_api", config_api);
    Ok(given.split_whitespace().map(str::to_owned).collect())
}

#[test]
fn the_nested_cluster_of_make_run_is_planned_written_and_taken_away_while_the_sandbox_is_up()
-> Outcome {
    let (root, folder) = (Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")), TempDir::new()?);
    let dir = folder.path().join("run");
    let up = ["up", "--config-api", "--simulated-nodes=3"];
    let up = run(&up, &dir)?;
    assert!(up.status.success(), "{}", text(&up));
    let status = text(&run(&["status"], &dir)?);
    let line = status.lines().find_map(|line| line.strip_prefix("config API"));
    let url = line.and_then(|line| line.trim().strip_suffix(", a fake")).ok_or(status.clone())?;
    let given = nested_arguments(root, url)?;
    let nested = |verb: &str, more: &[&str]| {
        let mut command = Command::new(program("kubectl-opensdn")?);
        command.current_dir(root).env("KUBECONFIG", dir.join("kubeconfig"));
        command.env_remove("OS_AUTH_URL").env("NO_PROXY", "127.0.0.1,localhost");
        Ok::<_, Failed>(command.args(["nested", verb]).args(more).output()?)
    };
    let given: Vec<&str> = given.iter().map(String::as_str).collect();

    let planned = nested("plan", &given)?;
    assert!(planned.status.success(), "{}", text(&planned));
    let agent = "k8s-a-vrouter";
    assert!(text(&planned).contains(agent), "{}", text(&planned));
    assert!(text(&planned).contains("OSDN3039"), "who reaches it: {}", text(&planned));
    let backups = folder.path().to_string_lossy();
    let write = [&given[..], &["--yes", "--backup-dir", &backups]].concat();
    let written = nested("apply", &write)?;
    assert!(written.status.success(), "{}", text(&written));
    let again = text(&nested("plan", &given)?);
    assert!(!again.contains("  add the link-local service"), "all is in place: {again}");
    let removed = nested("remove", &["--config-api", url, "--yes", "--backup-dir", &backups])?;
    assert!(text(&removed).contains(agent), "{}", text(&removed));

    assert!(run(&["down"], &dir)?.status.success());
    let address = url.strip_prefix("http://").ok_or("no address")?;
    assert!(TcpStream::connect(address).is_err(), "the cloud ends with the sandbox");
    Ok(())
}
