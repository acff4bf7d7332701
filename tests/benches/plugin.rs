//! What starting the plugin costs: commands that need neither a cluster nor a policy, so that a
//! runtime or engine that is started for nothing shows. And `validate` of many documents, as wall
//! time and as the most memory that it ever has.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use opensdn_testing::Failed;
use opensdn_testing::measure::{Row, Sample, report};
use opensdn_testing::programs::program;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/samples");
const STARTS: usize = 100;
const RUNS: usize = 5;
/// How often the memory of the process is looked at. It is the kernel's high-water mark that is
/// read, so only what the last interval adds is missed.
const GLANCE: Duration = Duration::from_millis(2);

fn main() -> Result<(), Failed> {
    let plugin = program("kubectl-opensdn")?;
    let mut rows = Vec::new();
    for (what, arguments) in [
        ("version --client", &["version", "--client"][..]),
        ("explain CODE", &["explain", "OSDN4001"]),
        ("completion of a word", &["__complete", "vers"]),
        ("--help", &["--help"]),
    ] {
        let start = || {
            let status = Command::new(&plugin).args(arguments).stdout(Stdio::null()).status();
            assert!(status.is_ok_and(|status| status.success()), "{what}");
        };
        let sample = Sample::of(STARTS, start);
        let milliseconds = sample.percentile(0.5) / 1_000.0;
        rows.push(Row::new(format!("plugin: {what}, p50"), milliseconds, "ms").aim("20"));
    }
    rows.extend(validate()?);
    report("plugin", &rows)?;
    Ok(())
}

fn validate() -> Result<Vec<Row>, Failed> {
    let folder = tempfile::tempdir()?;
    let cache = folder.path().join("cache");
    let mut rows = Vec::new();
    let row = |what: &str, number: f64, unit| Row::new(format!("validate: {what}"), number, unit);
    let hundred = manifests(folder.path(), 100)?;
    let (cold, _) = run(&hundred, &cache)?;
    rows.push(row("100 documents, nothing compiled", milliseconds(cold), "ms").aim("1,000"));
    for (documents, name, aim) in
        [(100, "100", "150"), (1_000, "1,000", "1,000"), (10_000, "10,000", "")]
    {
        let file = manifests(folder.path(), documents)?;
        let runs = (0..RUNS).map(|_| run(&file, &cache)).collect::<Result<Vec<_>, _>>()?;
        let peak = runs.iter().map(|(_, peak)| *peak).max().unwrap_or_default();
        let wall = Sample::new(runs.into_iter().map(|(wall, _)| wall).collect());
        let wall = wall.percentile(0.5) / 1_000.0;
        let what = format!("{name} documents, compiled before");
        rows.push(row(&format!("{what}, p50 of {RUNS}"), wall, "ms").aim(aim));
        #[allow(clippy::cast_precision_loss, reason = "a number for people")]
        let mebibytes = peak as f64 / 1_024.0;
        let aim = if documents == 10_000 { "bounded" } else { "" };
        rows.push(row(&format!("{what}, peak resident"), mebibytes, "MiB").aim(aim));
    }
    Ok(rows)
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// Validates the file, in which nothing is wrong: how long it takes, and the most KiB it has.
fn run(file: &Path, cache: &Path) -> Result<(Duration, u64), Failed> {
    let plugin = program("kubectl-opensdn")?;
    let started = Instant::now();
    let mut child = Command::new(plugin)
        .arg("validate")
        .arg(file)
        .arg("--cache-dir")
        .arg(cache)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let ended = loop {
        if let Some(ended) = child.try_wait()? {
            break ended;
        }
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        peak = peak.max(kib.unwrap_or_default());
        std::thread::sleep(GLANCE);
    };
    let wall = started.elapsed();
    if ended.success() { Ok((wall, peak)) } else { Err(format!("validate: {ended}").into()) }
}

/// One file: a profile, then two link-local services, a Vrouter and its Control in turn, made from
/// the samples, each with a name and addresses of its own.
fn manifests(folder: &Path, documents: u32) -> Result<PathBuf, Failed> {
    let sample = |name: &str| fs::read_to_string(format!("{SAMPLES}/{name}.yaml"));
    let services = sample("link-local-service")?;
    let service = services.split("---\n").next().unwrap_or_default();
    let (vrouter, control) = (sample("vrouter")?, sample("control")?);
    let mut text = sample("vrouter-profile")?;
    for number in 0..documents {
        let (high, low) = (number / 250 + 1, number % 250 + 1);
        let network = |number: u32| format!("10.{}.{}.0/24", number / 250 + 1, number % 250 + 1);
        let made = match number % 4 {
            0 | 1 => service
                .replace("node-exporter", &format!("service-{number}"))
                .replace("169.254.0.10", &format!("169.254.{high}.{low}")),
            2 => vrouter
                .replace("vrouter1", &format!("vrouter-{number}"))
                .replace("control1", &format!("control-{number}"))
                .replace("10.1.0.0/24", &network(number))
                .replace("10.1.0.1", &format!("10.{high}.{low}.1")),
            _ => control
                .replace("control1", &format!("control-{}", number - 1))
                .replace("10.1.0.0/24", &network(number - 1)),
        };
        write!(text, "---\n{made}")?;
    }
    let file = folder.join(format!("{documents}.yaml"));
    fs::write(&file, text)?;
    Ok(file)
}
