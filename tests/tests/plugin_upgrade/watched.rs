//! Who watches an upgrade: sees each change, may go at any time, and may be one of several.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command};

use opensdn_testing::kubectl::kubectl;
use opensdn_testing::signal::{self, Signal};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};

use super::{Cluster, UPGRADE, status};

/// A command at work, that is ended with the test.
struct Watcher {
    child: Child,
    err: BufReader<std::process::ChildStderr>,
    seen: Vec<String>,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Watcher {
    fn start(mut command: Command) -> Result<Self, Failed> {
        let mut child = command.spawn()?;
        let err = BufReader::new(child.stderr.take().ok_or("no stderr")?);
        Ok(Self { child, err, seen: Vec::new() })
    }

    /// Reads until a line on stderr has this.
    fn until(&mut self, part: &str) -> Result<String, Failed> {
        loop {
            let mut line = String::new();
            if self.err.read_line(&mut line)? == 0 {
                return Err(format!("{part:?} is missing in: {:#?}", self.seen).into());
            }
            self.seen.push(line.trim_end().to_owned());
            if line.contains(part) {
                return Ok(line);
            }
        }
    }

    /// Both streams to their ends, and the code.
    fn end(mut self) -> Result<(String, String, Option<i32>), Failed> {
        let (mut out, mut err) = (String::new(), String::new());
        self.err.read_to_string(&mut err)?;
        self.child.stdout.take().ok_or("no stdout")?.read_to_string(&mut out)?;
        Ok((out, self.seen.join("\n") + "\n" + &err, self.child.wait()?.code()))
    }
}

fn is_time(word: &str) -> bool {
    let is_fitting =
        |(byte, form): (u8, u8)| if form == b'0' { byte.is_ascii_digit() } else { byte == form };
    word.len() == 20 && word.bytes().zip(*b"0000-00-00T00:00:00Z").all(is_fitting)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_watch_one_upgrade_to_its_end_and_its_verdict_is_their_code() -> Outcome {
    let cluster = Cluster::start().await?;
    let mut first = Watcher::start(cluster.command("apply R25.1 --yes")?)?;
    first.until("made the Upgrade tf/to-r25-1")?;
    let mut second = Watcher::start(cluster.command("apply R25.1 --yes --progress json -o json")?)?;
    second.until("attaching to the Upgrade to-r25-1")?;
    cluster.says("to-r25-1", &status("Running", ["Running", "Pending"])).await?;
    let line = first.until("wave config Running")?;
    assert!(line.split(' ').next().is_some_and(is_time), "{line}");
    let event: Value = serde_json::from_str(&second.until("\"wave\":\"config\"")?)?;
    assert_eq!((&event["level"], &event["state"]), (&json!("event"), &json!("Running")));
    assert_eq!(event["upgrade"], "tf/to-r25-1");
    assert_eq!(cluster.names().await?, ["to-r25-1"], "the second one has made none");
    let (report, code) = cluster.document("status")?;
    assert_eq!(
        (code, &report["phase"], &report["verdict"]),
        (0, &json!("Running"), &json!("running"))
    );

    cluster.says("to-r25-1", &status("Paused", ["Succeeded", "Pending"])).await?;
    first.until("upgrade Paused")?;
    cluster.expect("status", 0, &["Paused", "kubectl opensdn upgrade resume to-r25-1 -n tf"])?;
    let mut done = status("Succeeded", ["Succeeded", "Succeeded"]);
    done["finishedAt"] = json!("2026-11-25T08:10:00Z");
    cluster.says("to-r25-1", &done).await?;
    let (out, err, code) = first.end()?;
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("Succeeded  10m") || out.contains("Succeeded 10m"), "{out}");
    assert!(err.contains("step Webui/webui1 Succeeded"), "{err}");
    let (out, err, code) = second.end()?;
    let report: Value = serde_json::from_str(&out)?;
    assert_eq!(
        (code, &report["verdict"], &report["seconds"]),
        (Some(0), &json!("succeeded"), &json!(600))
    );
    assert!(
        err.lines()
            .filter(|line| !line.is_empty())
            .all(|line| serde_json::from_str::<Value>(line).is_ok()),
        "{err}"
    );

    cluster.expect("apply R25.1 --yes --no-wait", 0, &["made the Upgrade tf/to-r25-1-2"])?;
    let (history, code) = cluster.document("history")?;
    let all = history["upgrades"].as_array().ok_or("no history")?;
    let find = |name: &str| all.iter().find(|one| one["name"] == name).cloned().unwrap_or_default();
    assert_eq!(
        (code, all.len(), find("to-r25-1")["seconds"].as_i64()),
        (0, 2, Some(600)),
        "{history:#}"
    );
    assert_eq!(find("to-r25-1-2")["requestedBy"], "alice");
    cluster.expect("history", 0, &["NAME", "to-r25-1", "Succeeded", "10m", "alice"])?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_interrupted_is_detached_and_the_upgrade_stays() -> Outcome {
    let cluster = Cluster::start().await?;
    for (line, sign, expected) in
        [("apply R25.1 --yes", Signal::INT, 130), ("status --watch", Signal::TERM, 143)]
    {
        let mut watcher = Watcher::start(cluster.command(line)?)?;
        if sign == Signal::INT {
            watcher.until("made the Upgrade tf/to-r25-1")?;
            cluster.says("to-r25-1", &status("Running", ["Running", "Pending"])).await?;
        }
        watcher.until("wave config Running")?;
        signal::send(sign, watcher.child.id())?;
        let (_, err, code) = watcher.end()?;
        let again = "detached; the upgrade continues; re-attach with: kubectl opensdn upgrade status to-r25-1 --watch -n tf";
        assert_eq!(code, Some(expected), "{err}");
        assert!(err.contains(again), "{err}");
    }
    assert_eq!(cluster.upgrade("to-r25-1").await?["status"]["phase"], "Running");
    cluster.expect(
        "status --watch --timeout 1s",
        4,
        &["not over within --timeout", "re-attach with"],
    )?;

    let mut watcher = Watcher::start(cluster.command("status --watch")?)?;
    watcher.until("wave config Running")?;
    kubectl(&cluster.sandbox, &["delete", UPGRADE, "to-r25-1", "-n", "tf"]).await?.success();
    let (_, err, code) = watcher.end()?;
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("was deleted: what it has changed stays"), "{err}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_did_not_succeed_ends_with_1_and_says_what_to_do() -> Outcome {
    let cluster = Cluster::start().await?;
    cluster.expect("apply R25.1 --yes --no-wait", 0, &[])?;
    cluster.says("to-r25-1", &status("Stopped", ["Failed", "Pending"])).await?;
    cluster.expect(
        "apply R25.1 --yes",
        1,
        &["attaching", "upgrade Stopped", "upgrade retry to-r25-1 -n tf"],
    )?;
    let (report, code) = cluster.document("status to-r25-1")?;
    assert_eq!((code, &report["verdict"]), (1, &json!("stopped")));
    cluster.says("to-r25-1", &status("RolledBack", ["RolledBack", "Pending"])).await?;
    cluster.expect("status --watch", 1, &["upgrade RolledBack"])?;

    // What was refused had done nothing, and another one is made in its place.
    cluster.expect("apply R25.1 --yes --no-wait", 0, &["to-r25-1-2"])?;
    let before = cluster.upgrade("to-r25-1-2").await?["metadata"]["uid"].clone();
    cluster
        .says(
            "to-r25-1-2",
            &json!({"phase": "Refused", "observedGeneration": 1, "message": "OSDN5010: other"}),
        )
        .await?;
    let refused = cluster.expect(
        "status",
        1,
        &["Refused", "kubectl delete upgrades.opensdn.io to-r25-1-2 -n tf"],
    )?;
    assert!(refused.contains("OSDN5010: other"), "{refused}");
    cluster.expect("apply R25.1 --yes --no-wait", 0, &["it is replaced"])?;
    assert_ne!(cluster.upgrade("to-r25-1-2").await?["metadata"]["uid"], before);
    cluster.expect("apply R25.1 --yes --soak 3m", 5, &["another --soak"])?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_cluster_says_moves_no_cursor() -> Outcome {
    let cluster = Cluster::start().await?;
    cluster.expect("apply R25.1 --yes --no-wait", 0, &[])?;
    let mut hidden = status("Stopped", ["Failed", "Pending"]);
    let text = "\u{1b}[2J\u{1b}[8mgone\nok  all is well \u{202e}";
    hidden["message"] = json!(text);
    hidden["steps"][0]["message"] = json!(text);
    hidden["remarks"] = json!([{"code": "OSDN5020", "severity": "Failed", "message": text}]);
    cluster.says("to-r25-1", &hidden).await?;
    for line in
        ["status", "status --watch", "status -o json", "status --watch --progress json", "history"]
    {
        let said = String::from_utf8(cluster.run(line)?.stdout)?
            + &String::from_utf8(cluster.run(line)?.stderr)?;
        let is_bad = |letter: char| (letter.is_control() && letter != '\n') || letter == '\u{202e}';
        assert!(!said.contains(is_bad), "{line}: {said:?}");
        assert!(!said.lines().any(|line| line.starts_with("ok ")), "{line}: {said}");
    }
    Ok(())
}
