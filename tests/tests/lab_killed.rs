//! `kubectl opensdn install` and `uninstall`, killed at every single write: before it is stored, and after. The next run
//! takes up what is there. It takes minutes and needs no real node; in the gate some of these steps are tried
//! (`plugin_install`).

use std::collections::BTreeMap;

use opensdn_testing::fault_proxy::{Fault, FaultProxy};
use opensdn_testing::kubectl::kubectl;
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome};

use crate::plugin_install::whole::everything;
use crate::plugin_install::{Plugin, only_api_server, rendered, uids};

/// So many runs would mean that they do not come further.
const MOST_RUNS: usize = 1000;

/// Whether the run was killed at its write of this number; else it has ended with 0.
async fn is_killed(
    sandbox: &Sandbox,
    line: &str,
    write: usize,
    fault: Fault,
) -> Result<bool, Failed> {
    let folder = tempfile::tempdir()?;
    let proxy = FaultProxy::of_what_is_stored(sandbox.client()?, [(write, fault)]).await?;
    let plugin = Plugin::by(proxy.kubeconfig(folder.path())?)?;
    let mut child = plugin.command(line).spawn()?;
    tokio::select! {
        biased;
        () = proxy.broken() => {}
        status = child.wait() => {
            assert!(status?.success(), "{line} ended before write {write}: {:?}", proxy.writes());
            return Ok(false);
        }
    }
    child.kill().await?;
    Ok(true)
}

/// Kills one run after the other, each at its second write: the first says that a run is at work. Returns how many there were.
async fn killed_until_done(
    sandbox: &Sandbox,
    line: &str,
    mut look: impl AsyncFnMut() -> Outcome,
) -> Result<usize, Failed> {
    for runs in 1..MOST_RUNS {
        // What is not stored is written by the next.
        is_killed(sandbox, line, 1, Fault::LoseRequest).await?;
        look().await?;
        if !is_killed(sandbox, line, 1, Fault::LoseAnswer).await? {
            return Ok(runs);
        }
        look().await?;
    }
    Err(format!("{line} does not come to an end").into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn installed_and_removed_by_runs_of_which_each_is_killed_nothing_is_made_twice_or_left()
-> Outcome {
    let sandbox = only_api_server().await?;
    let before = everything(&sandbox).await?;
    let mut known = BTreeMap::new();
    let keeps = async || {
        let now = uids(&sandbox).await?;
        let is_kept = known.iter().all(|(key, uid)| now.get(key) == Some(uid));
        assert!(is_kept, "made twice: {known:?}, {now:?}");
        known = now;
        Ok(())
    };
    let runs = killed_until_done(&sandbox, "install --yes --wait=false", keeps).await?;
    let total = rendered()?.len();
    assert!(
        runs * 2 >= total,
        "{runs} runs for {total} objects: they were not killed at every write"
    );
    assert_eq!(uids(&sandbox).await?.len(), total);

    let context = kubectl(&sandbox, &["config", "current-context"]).await?;
    let purge = format!("uninstall --purge --confirm {}", context.success().trim());
    let mut fewest = total;
    let shrinks = async || {
        let left = uids(&sandbox).await?.len();
        assert!(left <= fewest, "{left} objects after there were {fewest}");
        fewest = left;
        Ok(())
    };
    killed_until_done(&sandbox, &purge, shrinks).await?;
    let same = async || everything(&sandbox).await.is_ok_and(|now| now == before);
    opensdn_testing::eventually::eventually("the cluster has what it had before", same).await;
    Ok(())
}
