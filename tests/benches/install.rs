//! What `kubectl opensdn install` takes on three real nodes: from its start to a webhook that answers with all policies in
//! force and an operator that runs, when it is there already, and `uninstall` back. Deliberately not here: how long images
//! are pulled, which the nodes have, and what a Manager needs to be Ready (`operator`).

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use opensdn_deploy::names;
use opensdn_testing::Failed;
use opensdn_testing::development_image::DevelopmentImage;
use opensdn_testing::kubectl::kubectl;
use opensdn_testing::measure::{Row, Sample, report};
use opensdn_testing::programs::program;
use opensdn_testing::sandbox::{Sandbox, lab};

const RUNS: usize = 3;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failed> {
    if let Err(missing) = lab::available() {
        #[allow(clippy::print_stdout, reason = "a benchmark's output is its purpose")]
        {
            println!("install: left out, for {missing}");
        }
        return Ok(());
    }
    let sandbox = Sandbox::with_real_nodes(3).await?;
    let nodes = sandbox.lab().ok_or("the sandbox has no real nodes")?;
    for name in [names::operator::NAME, names::webhook::NAME] {
        nodes.load_image(DevelopmentImage::of_ours(name)?.archive()).await?;
    }
    let context = kubectl(&sandbox, &["config", "current-context"]).await?.success().to_owned();
    let kubeconfig = sandbox.kubeconfig();
    let (mut installs, mut same, mut back) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        installs.push(run(&kubeconfig, &["install", "--yes"])?);
        same.push(run(&kubeconfig, &["install", "--yes"])?);
        back.push(run(&kubeconfig, &["uninstall", "--purge", "--confirm", context.trim()])?);
    }
    let seconds = |took| Sample::new(took).percentile(0.5) / 1_000_000.0;
    let rows = [
        Row::new(
            format!("install to a webhook that answers, p50 of {RUNS}"),
            seconds(installs),
            "s",
        ),
        Row::new("install again, nothing to change, p50", seconds(same), "s"),
        Row::new("uninstall --purge, p50", seconds(back), "s"),
    ];
    report("install", &rows)?;
    Ok(())
}

fn run(kubeconfig: &Path, arguments: &[&str]) -> Result<Duration, Failed> {
    let started = Instant::now();
    let output = Command::new(program("kubectl-opensdn")?)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(arguments)
        .stdin(Stdio::null())
        .output()?;
    match output.status.success() {
        true => Ok(started.elapsed()),
        false => Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}
