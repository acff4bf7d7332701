//! Cassandra 3.11.19 itself on Java 8, as OpenSDN's images have it, started by the files that the operator renders, and
//! changed by the operator: a first start, growth with what it stores, a member that leaves, and one that has lost all.
//! Each node has an address of the loopback network, and a folder for what a pod mounts.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "a test, which is a story, and the line says where"
)]

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use opensdn_operator::ensemble::{Change, Tended};

use stage::{ALL, LONGEST, ONE, ROWS, Stage, has_java_8, secret};

mod stage;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_start_one_after_the_other_and_encrypt_what_they_say() {
    if !has_java_8() {
        return;
    }
    let [a, b, c] = ["127.3.0.11", "127.3.0.12", "127.3.0.13"];
    let mut stage = Stage::new(&[a, b, c]);
    stage.render();
    // The last first: it has to wait for the others.
    for address in [c, b, a] {
        stage.start(address);
    }
    stage.logged(b, "nothing is stored here: waiting").await;
    assert_eq!(stage.pods.manage(b, &["alive"]).code, 0, "waiting is no reason to be killed");
    assert_ne!(stage.pods.manage(b, &["serves"]).code, 0);
    let view = stage.serve(&[a, b, c]).await;
    assert_eq!(view.leader, a);
    assert!(
        stage.cluster.log(a).contains("starting the first member")
            && stage.cluster.log(b).contains("joining the others")
    );
    let spare = stage.cluster.ensemble().may_spare(&stage.access(), b).await.unwrap();
    assert_eq!(spare, None);
    for address in [a, b, c] {
        let plain = std::net::TcpStream::connect((address, 7012));
        assert!(plain.is_err(), "{address} takes what is not encrypted");
        assert!(
            stage
                .cluster
                .log(address)
                .contains("Starting Encrypted Messaging Service on SSL port 7013")
        );
        assert!(
            !stage.cluster.log(address).contains(&secret("keystorePassword")),
            "a password is in the log"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_stored_follows_the_members_that_come_and_go() {
    if !has_java_8() {
        return;
    }
    let [a, b, c] = ["127.3.0.1", "127.3.0.2", "127.3.0.3"];
    let mut stage = Stage::new(&[a]);
    stage.render();
    stage.start(a);
    stage.serve(&[a]).await;
    stage.create(1).await;

    // Two come, one after the other, and all is kept three times.
    stage.more(b);
    stage.start(b);
    stage.serve(&[a, b]).await;
    stage.more(c);
    stage.start(c);
    stage.serve(&[a, b, c]).await;
    assert_eq!(stage.factor(a).await, "1", "OpenSDN never raises it");
    let done = stage.tend().await;
    let raised = done.iter().filter(|what| what.starts_with("keyspace config_db_uuid is kept"));
    assert_eq!(raised.count(), 2, "{done:?}");
    assert!(done.iter().any(|what| what.contains("repairs what it has")), "{done:?}");
    assert_eq!((stage.factor(a).await.as_str(), stage.rows(a, ALL).await), ("3", ROWS));
    // Nothing but what it has itself.
    stage.kill(a);
    stage.kill(b);
    stage.sees_down(c, &[a, b]).await;
    assert_eq!(stage.rows(c, ONE).await, ROWS);

    // Two that were off at once come back by themselves.
    stage.start(a);
    stage.start(b);
    let view = stage.serve(&[a, b, c]).await;

    // One leaves, and what it had is with the others.
    let leaving = view.members.iter().find(|member| member.host == c).unwrap().clone();
    stage.remove(&leaving).await;
    assert_eq!((stage.factor(a).await.as_str(), stage.rows(a, ALL).await), ("2", ROWS));
    let has_left = async |host| stage.cluster.ensemble().has_left(&stage.access(), host).await;
    // For half a minute it says in the ring that it leaves. Its probes are asked meanwhile, as a kubelet asks.
    let begun = Instant::now();
    while !has_left(c).await.unwrap_or(false) {
        stage.pods.manage(c, &["serves"]);
        assert!(begun.elapsed() < LONGEST, "{}", stage.cluster.logs());
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(stage.pods.manage(c, &["alive"]).code, 0, "it waits for its pod to end");
    assert!(
        !has_left(a).await.unwrap(),
        "by which c is started again, where it is wanted once more"
    );
    stage
        .cluster
        .ensemble()
        .make(&stage.access(), &stage.view().await.unwrap(), &Change::Remove(leaving))
        .await
        .unwrap();
    stage.kill(c);

    // It comes again as new.
    stage.start(c);
    stage.logged(c, "setting aside what it had").await;
    stage.logged(c, "joining the others").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leave_that_has_failed_ends_by_a_start_and_the_member_stays_or_leaves_again() {
    if !has_java_8() {
        return;
    }
    let [a, b, c] = ["127.3.0.41", "127.3.0.42", "127.3.0.43"];
    let mut stage = Stage::new(&[a, b, c]);
    stage.render();
    for address in [a, b, c] {
        stage.start(address);
    }
    let view = stage.serve(&[a, b, c]).await;
    stage.cluster.set_had_quorum();
    stage.render();
    stage.create(2).await;
    let leaving = view.members.iter().find(|member| member.host == c).unwrap().clone();
    let mode = |stage: &Stage| stage.pods.manage(c, &["mode"]).stdout.trim().to_owned();

    // One that is to have a part of it is lost before it has.
    let begun = Instant::now();
    while mode(&stage) != "LEAVING" {
        let (ensemble, access) = (stage.cluster.ensemble(), stage.access());
        // Refused while something is left to repair.
        let _ = ensemble.make(&access, &view, &Change::Remove(leaving.clone())).await;
        assert!(begun.elapsed() < LONGEST, "{}", stage.cluster.logs());
        // Java has to start for each look.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    stage.kill(b);
    let failed = stage.pods.folder_of(c).join("cassandra.leave.failed");
    while !failed.exists() {
        assert!(begun.elapsed() < LONGEST, "it does not fail: {}", stage.cluster.logs());
        // Until it gives up handing over.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    stage.start(b);
    let view = stage.serve(&[a, b, c]).await;
    assert_eq!(view.leaving, [c.to_owned()].into());
    assert_eq!(mode(&stage), "LEAVING", "of its own it does not turn back");

    // It is wanted again.
    let (mut said, mut ended) = (BTreeSet::new(), 0);
    while mode(&stage) != "NORMAL" {
        if let Ok(view) = stage.view().await
            && view.serving.len() == 3
            && let Ok(Tended { does: Some(what), .. }) =
                stage.cluster.ensemble().tend(&stage.access(), &view).await
        {
            said.insert(what);
        }
        ended += stage.start_again_who_ended();
        assert!(begun.elapsed() < 2 * LONGEST, "{said:?}\n{}", stage.cluster.logs());
        // It drains before it ends.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(ended, 1, "{said:?}");
    let told = said.iter().any(|what| what.contains("failed to leave, and is started again"));
    assert!(told, "{said:?}");
    let view = stage.serve(&[a, b, c]).await;
    assert_eq!((view.leaving.len(), stage.rows(a, ALL).await), (0, ROWS));

    // And to leave after all.
    stage.remove(&leaving).await;
    let forgotten = |host: &&str| stage.pods.folder_of(host).join("cassandra.remove.log").exists();
    assert_eq!([a, b].iter().find(|host| forgotten(host)), None, "it hands over what it has");
    assert_eq!(stage.rows(a, ALL).await, ROWS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_has_lost_all_takes_its_own_place_and_none_starts_from_nothing() {
    if !has_java_8() {
        return;
    }
    let [a, b] = ["127.3.0.31", "127.3.0.32"];
    let mut stage = Stage::new(&[a, b]);
    stage.render();
    stage.start(a);
    stage.start(b);
    let before = stage.serve(&[a, b]).await.members;
    stage.cluster.set_had_quorum();
    stage.render();
    stage.create(2).await;

    // One has lost all that it had, and takes its own place.
    stage.kill(b);
    stage.cluster.wipe(b);
    stage.start(b);
    stage.logged(b, "what this member had is lost: taking its place").await;
    let after = loop {
        // While the others have not seen yet that it is down.
        stage.start_again_who_ended();
        let view = stage.view().await;
        if let Ok(view) = view
            && view.serving.len() == 2
            && stage.pods.manage(b, &["serves"]).code == 0
        {
            break view.members;
        }
        // It takes over all that it is to have.
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    assert_eq!(before, after, "it has taken over the id, too");
    let done = stage.tend().await;
    assert!(done.iter().any(|what| what.contains(b) && what.contains("repairs")), "{done:?}");
    stage.kill(a);
    stage.sees_down(b, &[a]).await;
    assert_eq!(stage.rows(b, ONE).await, ROWS);

    // All are lost but one that has nothing of its own: it does not start from nothing.
    stage.kill(b);
    stage.cluster.wipe(b);
    stage.start(b);
    stage.logged(b, "nothing is stored here: waiting for other members").await;
    assert!(stage.view().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_reaper_no_client_manages_it_without_certificate_and_password() {
    if !has_java_8() {
        return;
    }
    let address = "127.3.0.21";
    let mut stage = Stage::with(&[address], true);
    stage.render();
    stage.start(address);
    stage.serve(&[address]).await;
    assert_eq!(stage.pods.manage(address, &["mode"]).stdout.trim(), "NORMAL");
    let nodetool = |words: &[&str]| {
        let script = stage.pods.folder_of(address).join("files/try");
        fs::write(&script, "exec nodetool -p 7221 \"$@\" status").unwrap();
        let done = stage.pods.command(address, "try", words).output().unwrap();
        (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let good = ["--ssl", "-u", "reaperUser", "-pw", &secret("reaperPassword")];
    assert_eq!(nodetool(&good), (true, String::new()));
    // What tf-operator has in its source.
    for bad in [&["--ssl", "-u", "cassandra", "-pw", "cassandra"][..], &["--ssl"], &[]] {
        assert!(!nodetool(bad).0, "{bad:?}");
    }
    let arguments = Command::new("ps").args(["-eo", "args"]).output().unwrap().stdout;
    let arguments = String::from_utf8_lossy(&arguments);
    let environment =
        fs::read_to_string(stage.pods.folder_of(address).join("reaper-environment")).unwrap();
    for password in &stage.cluster.valid.description.passwords {
        assert!(!arguments.contains(&secret(password.key)), "{} is among arguments", password.key);
        assert!(
            !stage.cluster.log(address).contains(&secret(password.key)),
            "{} is in the log",
            password.key
        );
    }
    let expected = format!("CASSANDRA_REAPER_JMX_AUTH_PASSWORD={}", secret("reaperPassword"));
    assert!(environment.contains(&expected), "{environment}");
    assert!(environment.contains("CASSANDRA_CONNECT_POINTS=127.3.0.21"), "{environment}");
}
