//! The part of all scripts that keeps a daemon running by its files, as bash runs it: it waits for them, starts the
//! daemon again when one changes, and ends as the daemon does, or on SIGTERM.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const WAIT: &str = include_str!("../templates/common/wait.sh.j2");
const SUPERVISE: &str = include_str!("../templates/common/supervise.sh.j2");
const CHECK_OF_RABBITMQ: &str = include_str!("../templates/rabbitmq/check-rabbitmq.sh.j2");
const LONGEST: Duration = Duration::from_secs(60);

/// Supervises that command by a file in the folder, where its output goes too.
fn start(folder: &Path, command: &str) -> Child {
    let script = format!("set -u\n{WAIT}\n{SUPERVISE}\nsupervise 1 file -- bash -c '{command}'\n");
    let log = fs::File::create(folder.join("log")).unwrap();
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(folder).stdin(Stdio::null());
    bash.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONGEST, "{what}");
        // Another process brings it about.
        sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_daemon_is_started_again_when_a_file_changes_and_ends_when_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let log = || fs::read_to_string(folder.path().join("log")).unwrap();
    let started = || log().matches("started").count();
    let mut bash = start(folder.path(), "echo started; exec sleep 1000");
    until("it says what it waits for", || log().contains("waiting for file"));
    assert_eq!(started(), 0);
    fs::write(folder.path().join("file"), "1").unwrap();
    until("it is started", || started() == 1);
    fs::write(folder.path().join("file"), "2").unwrap();
    until("it is started again", || started() == 2);
    assert!(log().contains("restarting: a file has changed"), "{}", log());
    let told = Command::new("kill").args(["-TERM", &bash.id().to_string()]).status();
    assert!(told.unwrap().success());
    // As a shell says that SIGTERM has ended it.
    assert_eq!(bash.wait().unwrap().code(), Some(143));
    assert_eq!(started(), 2);
}

#[test]
fn what_ends_a_daemon_by_itself_is_for_the_kubelet_to_see() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "1").unwrap();
    let mut bash = start(folder.path(), "exit 7");
    assert_eq!(bash.wait().unwrap().code(), Some(7));
}

#[test]
fn a_function_that_it_runs_has_the_variables_of_its_script() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "1").unwrap();
    let script = format!(
        "set -u\n{WAIT}\n{SUPERVISE}\nfiles=/etc/contrailconfigmaps\nstart() {{ echo \"files=$files\"; }}\n\
         supervise 1 file -- start\n"
    );
    let mut bash = Command::new("bash");
    let ended = bash.args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.contains("files=/etc/contrailconfigmaps\n"), "{said}");
}

const PROVISION: &str = include_str!("../templates/common/provision.sh.j2");

#[test]
fn what_an_image_has_started_to_provision_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    // As the images' own: bash, with another script before it that bash does not end.
    fs::write(
        folder.path().join("entrypoint.sh"),
        "bash -c 'echo $$ >program; sleep 1000; :'\nexec \"$@\"\n",
    )
    .unwrap();
    fs::write(folder.path().join("file"), "1").unwrap();
    let script = format!(
        "set -u\n{WAIT}\n{SUPERVISE}\n{PROVISION}\nchmod +x entrypoint.sh\n\
         start() {{ provision ./entrypoint.sh; }}\nsupervise 1 file -- start\n"
    );
    let mut bash =
        Command::new("bash").args(["-c", &script]).current_dir(folder.path()).spawn().unwrap();
    let program = folder.path().join("program");
    let pid = || fs::read_to_string(&program).unwrap_or_default().trim().to_owned();
    until("its program runs", || !pid().is_empty());
    let first = pid();
    let runs = |pid: &str| Path::new("/proc").join(pid).exists();
    assert!(runs(&first));
    fs::write(folder.path().join("file"), "2").unwrap();
    until("it is started again", || pid() != first);
    until("the first has ended", || !runs(&first));
    let second = pid();
    let told = Command::new("kill").args(["-TERM", &bash.id().to_string()]).status();
    assert!(told.unwrap().success());
    bash.wait().unwrap();
    until("the second has ended", || !runs(&second));
}

const FILL: &str = include_str!("../templates/common/fill.sh.j2");

/// What `fill` makes of a text with these credentials, or what it says.
fn filled(format: &str, text: &str, credentials: &[(&str, &str)]) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().display();
    for (path, value) in credentials {
        let path = folder.path().join("credentials").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value).unwrap();
    }
    fs::write(folder.path().join("source"), text).unwrap();
    let functions = FILL.replace("/etc/credentials", &format!("{here}/credentials"));
    let script = format!("set -u\n{functions}\nfill {format} source folder/target");
    let ended =
        Command::new("bash").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    if !ended.status.success() {
        return Err(String::from_utf8_lossy(&ended.stderr).replace(&here.to_string(), ""));
    }
    let target = folder.path().join("folder/target");
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&target).unwrap().permissions())
            & 0o777,
        0o600
    );
    Ok(fs::read_to_string(target).unwrap())
}

#[test]
fn credentials_are_filled_in_as_the_file_needs_them_and_nothing_else_is() {
    let value = r#"a%b&c\d'e"f$(g)@h"#;
    let all = [("bus/password", value), ("bus/user", "u")];
    let text = "user = @credentials/bus/user@\npassword=@credentials/bus/password@;@credentials/bus/user@\n\nmail = a@b.c\n\n";
    let expected = |value: &str| format!("user = u\npassword={value};u\n\nmail = a@b.c\n\n");
    assert_eq!(filled("plain", text, &all).unwrap(), expected(value));
    assert_eq!(filled("python", text, &all).unwrap(), expected(&value.replace('%', "%%")));
    let js = r#"a%b&c\\d\'e\"f$(g)@h"#;
    assert_eq!(filled("js", text, &all).unwrap(), expected(js));
    let properties = r#"a%b&c\\d'e"f$(g)@h"#;
    assert_eq!(filled("properties", text, &all).unwrap(), expected(properties));
    let leading = filled("properties", text, &[("bus/password", " a b"), ("bus/user", "u")]);
    assert_eq!(leading.unwrap(), expected(r"\ a b"));
    // A value that looks like a place for another is none.
    let tricky = [("bus/password", "@credentials/bus/user@"), ("bus/user", "u")];
    assert_eq!(filled("plain", text, &tricky).unwrap(), expected("@credentials/bus/user@"));
}

#[test]
fn a_credential_that_is_missing_or_has_a_line_break_is_told_by_its_file() {
    let text = "a = @credentials/bus/password@";
    let missing = filled("plain", text, &[]).unwrap_err();
    assert!(missing.contains("credentials/bus/password"), "{missing}");
    let broken = filled("plain", text, &[("bus/password", "secret\nb = 1")]).unwrap_err();
    assert!(
        broken.contains("bus/password has a line break") && !broken.contains("secret"),
        "{broken}"
    );
    assert_eq!(filled("plain", text, &[("bus/password", "a\n")]).unwrap(), "a = a");
}

/// A script of a golden case, with these paths below a folder.
fn script(case: &str, key: &str, folder: &Path) -> String {
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(case);
    let out = fs::read_to_string(case.join("out.yaml")).unwrap();
    let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(&out).unwrap();
    let mut scripts = documents.iter().filter_map(|one| one.get("data")?.get(key)?.as_str());
    let here = folder.display();
    let script = scripts.next().unwrap().replace("/proc/net", &format!("{here}/proc/net"));
    ["/etc/", "/opt/", "/entrypoint.sh"]
        .iter()
        .fold(script, |script, path| script.replace(path, &format!("{here}{path}")))
}

fn put(folder: &Path, path: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs the provisioner of the API against one that has defaults or not: what was called, in order.
fn provisioned(has_defaults: bool) -> String {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let text = script("config-r25-keystone", "run-provisioner.sh", here);
    let of = |key: &str| script("config-r25-keystone", key, here);
    let files = "etc/contrailconfigmaps";
    for key in ["config-provisioner.env", "provision.conf", "vnc_api_lib.ini.192.0.2.10"] {
        put(here, &format!("{files}/{key}"), &of(key));
    }
    for name in ["server", "server-key", "client", "client-key"] {
        let end = if name.ends_with("key") { "pem" } else { "crt" };
        put(here, &format!("etc/certificates/{name}-192.0.2.10.{end}"), "a");
    }
    put(here, "etc/ssl/certs/kubernetes/ca-bundle.crt", "a");
    for (key, value) in [("keystone/password", "geheim%"), ("own/rndckey", "a")] {
        put(here, &format!("etc/credentials/{key}"), value);
    }
    let log = here.join("log").display().to_string();
    let says = |name: &str| {
        format!("#!/bin/bash\necho {name} \"$@\" defaults=${{APPLY_DEFAULTS-}} >>{log}\n")
    };
    put(here, "opt/contrail/utils/provision_control.py", &says("control"));
    put(here, "opt/contrail/utils/provision_linklocal.py", &says("linklocal"));
    put(here, "entrypoint.sh", &says("entrypoint"));
    // The first API server does not answer.
    let code = if has_defaults { 0 } else { 3 };
    put(
        here,
        "bin/python3",
        &format!("#!/bin/bash\n[ \"$2\" = 192.0.2.11 ] || exit 1\nexit {code}\n"),
    );
    let python = here.join("bin/python3").display().to_string();
    put(here, "opt/contrail/utils/provision_encap.py", &format!("#!{python}\n"));
    let path = format!("{}:{}", here.join("bin").display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["-c", &text]).env("PATH", path).env("POD_IP", "192.0.2.10").env("BGP_ASN", "64512");
    assert!(bash.stdin(Stdio::null()).status().unwrap().success());
    let filled = fs::read_to_string(here.join("etc/contrail/provision.conf")).unwrap();
    assert_eq!(filled.matches("admin_password = geheim%%\n").count(), 2, "{filled}");
    fs::read_to_string(log).unwrap()
}

#[test]
fn an_api_is_given_defaults_once_and_what_the_settings_say_each_time() {
    for has_defaults in [false, true] {
        let log = provisioned(has_defaults);
        let expected = if has_defaults { "false" } else { "" };
        let lines: Vec<_> = log.lines().collect();
        assert_eq!(lines.len(), 3, "{log}");
        let begins = ["control ", "linklocal ", "entrypoint "];
        for (line, begin) in lines.iter().zip(begins) {
            assert!(
                line.starts_with(begin) && line.ends_with(&format!("defaults={expected}")),
                "{line}"
            );
        }
        assert!(log.contains(
            "--router_asn 64512 --no_ibgp_auto_mesh --enable_4byte_as --api_server_ip 192.0.2.10"
        ));
        assert!(
            log.contains("--ipfabric_service_ip 192.0.2.77 --ipfabric_service_port 8775"),
            "{log}"
        );
        assert!(
            log.contains("--linklocal_service_name metadata") && !log.contains("geheim"),
            "{log}"
        );
    }
}

const ADDRESS: &str = include_str!("../templates/control/address.sh.j2");

/// What a text becomes on a node with these addresses.
fn addressed(network: &str, pod: &str, addresses: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().display();
    let trie = addresses.iter().map(|one| format!("     |-- {one}\n        /32 host LOCAL\n"));
    let others = "     |-- 10.1.0.255\n        /32 link BROADCAST\n";
    put(folder.path(), "trie", &format!("Main:\n{others}{}", trie.collect::<String>()));
    put(folder.path(), "source", &format!("hostip = @address-in/{network}@\nother = a@b\n"));
    let functions =
        format!("{FILL}\n{}", ADDRESS.replace("/proc/net/fib_trie", &format!("{here}/trie")));
    let script = format!("set -u\n{functions}\nfill_with_address plain source folder/target");
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).env("POD_IP", pod).current_dir(folder.path());
    assert!(bash.status().unwrap().success());
    fs::read_to_string(folder.path().join("folder/target")).unwrap()
}

#[test]
fn the_address_of_a_node_in_a_network_is_found_among_those_of_its_interfaces() {
    let all = ["127.0.0.1", "192.0.2.1", "10.1.1.7", "10.1.0.7"];
    let found = |network, pod| addressed(network, pod, &all);
    assert_eq!(found("10.1.0.0/24", "192.0.2.1"), "hostip = 10.1.0.7\nother = a@b\n");
    // That of the pod, where it will do.
    assert_eq!(found("10.1.0.0/23", "10.1.1.7"), "hostip = 10.1.1.7\nother = a@b\n");
    assert_eq!(found("10.1.1.7/32", "fd00::1"), "hostip = 10.1.1.7\nother = a@b\n");
}

/// Files of a member that has just been added reach its node a minute later, or more.
#[test]
fn rabbitmq_passes_its_check_while_its_files_are_to_come_and_not_when_it_has_been_silent() {
    let folder = tempfile::tempdir().unwrap();
    let alive = folder.path().join("alive");
    let check = CHECK_OF_RABBITMQ.replace("/tmp/rabbitmq.alive", &alive.display().to_string());
    let passes = || Command::new("bash").args(["-c", &check]).status().unwrap().success();
    assert!(passes(), "it waits for its files");
    fs::write(&alive, "").unwrap();
    assert!(passes(), "it has just answered");
    let ago = Command::new("touch").arg("--date=10 minutes ago").arg(&alive).status();
    assert!(ago.unwrap().success());
    assert!(!passes(), "it is silent");
}
