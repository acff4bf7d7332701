//! What `support-bundle` leaves where it does not come to an end: nothing, so that the same command works again. And what
//! it has of daemons, nodes and our own programs.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::fake_api_server::{FakeApiServer, Reply, refusal, version};
use crate::program::{self, PROGRAM};

/// A ConfigMap that does not become small when it is compressed.
fn large() -> Reply {
    let mut number = 1_u64;
    let words = std::iter::repeat_with(|| {
        number =
            number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 40).to_string()
    });
    let text = words.take(30_000).collect::<Vec<String>>().join(" ");
    let map =
        json!({"metadata": {"name": "a", "namespace": "opensdn-system"}, "data": {"a": text}});
    Reply::Document(200, "", json!({"items": [map]}))
}

fn cluster() -> FakeApiServer {
    FakeApiServer::start(|request, _| match request {
        "GET /version" => version(),
        "GET /api/v1/namespaces/opensdn-system/configmaps" => large(),
        _ => refusal(404, "NotFound", "not found"),
    })
}

fn names(folder: &Path) -> Vec<String> {
    let all = fs::read_dir(folder).unwrap();
    all.map(|one| one.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn what_is_there_is_not_written_over_and_what_a_killed_run_has_left_is_no_obstacle() {
    let (server, folder) = (cluster(), tempfile::tempdir().unwrap());
    let out = folder.path().join("a.tar.gz");
    fs::write(folder.path().join("a.tar.gz.part"), "left").unwrap();
    let line = format!("support-bundle --quick --out {}", out.display());
    let output = program::ask(&server, &line);
    assert_eq!(names(folder.path()), ["a.tar.gz"], "{output:?}");
    let written = fs::read(&out).unwrap();
    let output = program::ask(&server, &line);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("is there already") && said.contains("--out FILE"), "{said}");
    assert_eq!(fs::read(&out).unwrap(), written);
}

/// Where a file system may be mounted that nobody else sees.
#[test]
fn a_disk_that_is_full_is_said_and_nothing_is_left_on_it() {
    let (server, folder) = (cluster(), tempfile::tempdir().unwrap());
    let (disk, url) = (folder.path().join("disk"), server.url());
    fs::create_dir(&disk).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=16k tmpfs '{0}' || exit 99; \
         '{PROGRAM}' support-bundle --quick --out '{0}/a.tar.gz' --kubeconfig /dev/null --server {url}; \
         code=$?; ls -A '{0}'; exit $code",
        disk.display()
    );
    let output = program::isolated("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &script])
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output();
    let Ok(output) = output else { return };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(99) || said.starts_with("unshare:") {
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("No space left on device") && said.contains("is the disk full?"),
        "{said}"
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "nothing is left");
}

#[test]
fn an_interrupt_leaves_no_file_and_the_exit_code_names_the_signal() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let server = FakeApiServer::start(|request, _| match request {
            "GET /version" => version(),
            "GET /api/v1/namespaces/opensdn-system/configmaps" => Reply::Silence,
            _ => refusal(404, "NotFound", "not found"),
        });
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("a.tar.gz").display().to_string();
        let mut child = program::asking(&server, &format!("support-bundle --out {out}"))
            .args(["--request-timeout", "10m"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while !server.seen().iter().any(|request| request.ends_with("/opensdn-system/configmaps")) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(names(folder.path()).contains(&"a.tar.gz.part".to_owned()));
        let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        assert_eq!(names(folder.path()), [""; 0]);
    }
}

const SECRET: &str = "hunter2-hunter2";

/// An agent, a schema transformer that waits for another, and the webhook, on two nodes.
fn pods() -> Reply {
    let pod = |name: &str, labels: Value, container: &str| {
        json!({"metadata": {"name": name, "namespace": "opensdn-system", "labels": labels},
            "spec": {"nodeName": "w1", "containers": [{"name": container, "image": "i"}]},
            "status": {"phase": "Running", "podIP": "10.0.0.7",
                "containerStatuses": [{"name": container, "state": {"running": {}}}]}})
    };
    Reply::Document(
        200,
        "",
        json!({"kind": "PodList", "items": [
            pod("agent", json!({"tf_manager": "vrouter", "vrouter": "v"}), "vrouteragent"),
            pod("schema", json!({"tf_manager": "config", "config": "c"}), "schematransformer"),
            pod("control", json!({"tf_manager": "control", "control": "c"}), "control"),
            pod("webhook-1", json!({"app.kubernetes.io/name": "opensdn-webhook"}), "webhook"),
        ]}),
    )
}

fn asked_by_proxy() -> FakeApiServer {
    FakeApiServer::start(|request, _| {
        let path = request.strip_prefix("GET ").unwrap_or_default();
        let proxied = path.strip_prefix("/api/v1/namespaces/opensdn-system/pods/");
        let of_node = path.strip_prefix("/api/v1/nodes/");
        match (path, proxied, of_node) {
            ("/version", ..) => version(),
            ("/api/v1/namespaces/opensdn-system/pods", ..) => pods(),
            ("/api/v1/nodes", ..) => {
                let node = |name: &str| json!({"metadata": {"name": name}});
                let nodes =
                    json!({"kind": "NodeList", "items": [node("w1"), node("w2"), node("w3")]});
                Reply::Document(200, "", nodes)
            }
            (_, Some("https:schema:8087/proxy/Snh_SandeshUVECacheReq"), _) => refusal(
                503,
                "ServiceUnavailable",
                "error trying to reach service: dial tcp 10.0.0.7:8087: connect: connection refused",
            ),
            (_, Some(page), _) if page.starts_with("https:control:") => refusal(
                403,
                "Forbidden",
                "pods \"control\" is forbidden: cannot get resource \"pods/proxy\"",
            ),
            (_, Some("https:agent:8085/proxy/Snh_KNHReq"), _) => Reply::Text(
                200,
                "<KNHResp><dip>10.0.0.8</dip><auth_keys type=\"list\"><list size=\"1\"><element>hunter2-hunter2</element></list>\
                 </auth_keys><password>hunter2-hunter2</password><site>acme-berlin</site></KNHResp>",
            ),
            (_, Some(page), _) if page.starts_with("https:agent:8085/proxy/") => {
                Reply::Text(200, "<x><url>http://bob:hunter2-hunter2@10.0.0.8/</url></x>")
            }
            (_, Some("webhook-1:8080/proxy/metrics"), _) => {
                Reply::Text(200, "a{peer=\"10.0.0.8\",token=\"hunter2-hunter2\"} 1\n")
            }
            (_, _, Some("w1/proxy/logs/kern.log")) => Reply::Text(
                200,
                "[1.0] vrouter of acme-berlin: loaded for 10.0.0.8 password=hunter2-hunter2\n",
            ),
            (_, _, Some("w2/proxy/logs/messages")) => Reply::Text(
                200,
                "Nov 1 w2 kernel: vrouter: ready\nNov 1 w2 login[1]: hunter2-hunter2 of bob\n",
            ),
            _ => refusal(404, "NotFound", "not found"),
        }
    })
}

/// All that is in the archive, one file after the other.
pub(crate) fn unpacked(archive: &Path) -> String {
    let output = Command::new("tar").arg("-xzOf").arg(archive).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn paths(report: &Value, of: &str) -> Vec<String> {
    let all = report[of].as_array().into_iter().flatten();
    all.map(|one| one["path"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn what_daemons_kernels_and_our_programs_say_is_in_it_without_secrets_and_what_lacks_has_its_reason()
 {
    let (server, folder) = (asked_by_proxy(), tempfile::tempdir().unwrap());
    let out = folder.path().join("a.tar.gz");
    let output = program::ask(&server, &format!("support-bundle -o json --out {}", out.display()));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let size = "to be read: 4 logs, 13 pages of introspect, 3 logs of kernels: ";
    assert!(said.contains(size) && said.contains("MiB at most"), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let files = paths(&report, "files");
    let agent = "introspect/opensdn-system/agent/vrouteragent";
    for file in
        ["node-status", "vif", "nh", "flow", "xmpp"].map(|page| format!("{agent}/{page}.xml"))
    {
        assert!(files.contains(&file), "{file}: {files:#?}");
    }
    for file in
        ["metrics/opensdn-system/webhook-1.txt", "nodes/w1/kernel.log", "nodes/w2/kernel.log"]
    {
        assert!(files.iter().any(|one| one == file), "{file}: {files:#?}");
    }
    let schema = "introspect/opensdn-system/schema/schematransformer/node-status.xml";
    assert_eq!(paths(&report, "absent"), [schema, "nodes/w3/kernel.log"]);
    let failed = paths(&report, "failed");
    let control = "introspect/opensdn-system/control/control/";
    assert!(failed.iter().filter(|path| path.starts_with(control)).count() == 5, "{failed:#?}");
    let asked = server.seen();
    let of_control = asked.iter().filter(|one| one.contains("https:control:"));
    assert_eq!(of_control.count(), 1, "one that refuses is not asked again");
    let text = unpacked(&out);
    assert!(!text.contains(SECRET), "{text}");
    for kept in ["pods/proxy", "loaded for", "vrouter: ready", "acme-berlin", "10.0.0.8"] {
        assert!(text.contains(kept), "{kept} is missing: {text}");
    }
    assert!(!text.contains("login[1]"), "of a log of all only the kernel's lines are taken");
}

#[test]
fn patterns_and_addresses_are_nowhere_in_it_where_that_is_wanted() {
    let (server, folder) = (asked_by_proxy(), tempfile::tempdir().unwrap());
    let (out, patterns) = (folder.path().join("a.tar.gz"), folder.path().join("patterns"));
    fs::write(&patterns, "# ours\nacme-[a-z]+\n").unwrap();
    let line = format!(
        "support-bundle --redact-addresses --redact-file {} --out {}",
        patterns.display(),
        out.display()
    );
    let output = program::ask(&server, &line);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let text = unpacked(&out);
    for gone in [SECRET, "acme-", "10.0.0.7", "10.0.0.8"] {
        assert!(!text.contains(gone), "{gone} is there: {text}");
    }
    let name = |before: &str| {
        let rest = text.split_once(before).unwrap().1;
        let end = rest.find(|one: char| !one.is_ascii_alphanumeric() && one != '-');
        rest[..end.unwrap_or(rest.len())].to_owned()
    };
    let pseudonym = name("<dip>");
    assert!(pseudonym.starts_with("address-"), "{pseudonym}");
    assert_eq!((name("loaded for "), name("a{peer=\"")), (pseudonym.clone(), pseudonym));

    fs::write(&patterns, "(").unwrap();
    let output = program::ask(&server, &line);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--redact-file") && said.contains("line 1 of"), "{said}");
}

#[test]
fn without_these_rights_nothing_of_pods_and_nodes_is_asked() {
    let (server, folder) = (asked_by_proxy(), tempfile::tempdir().unwrap());
    let out = folder.path().join("a.tar.gz").display().to_string();
    let line = format!("support-bundle --no-files --no-introspect --out {out}");
    program::ask(&server, &line);
    let asked = server.seen();
    assert!(asked.iter().any(|one| one.ends_with("/pods/agent/log")), "{asked:#?}");
    assert!(!asked.iter().any(|one| one.contains("/proxy/")), "{asked:#?}");
}
