//! Vrouters on DPDK: what their pods are, and their scripts as a shell runs them, with an entrypoint that does what upstream's
//! does with signals (tf-container-builder, `containers/vrouter/agent-dpdk/entrypoint.sh:21-54`). No network card is asked.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::built::{ClusterState, Ended};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/samples/vrouter-profile.yaml");

fn case(name: &str) -> ClusterState {
    ClusterState::read(&Path::new(FOLDER).join(name).join("in.yaml"))
}

fn built(around: &ClusterState) -> Vec<Value> {
    match around.built(&around.object) {
        Ended::Built(objects) => objects,
        Ended::Refused(why) => panic!("{why}"),
    }
}

fn pod(objects: &[Value]) -> Value {
    let set = objects.iter().find(|one| one["kind"] == "DaemonSet").unwrap();
    set["spec"]["template"]["spec"].clone()
}

fn container(pod: &Value, name: &str) -> Value {
    let all = ["initContainers", "containers"]
        .into_iter()
        .flat_map(|list| pod[list].as_array().unwrap().clone());
    all.into_iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

fn names(pod: &Value, list: &str) -> Vec<String> {
    let all = pod[list].as_array().unwrap().iter();
    all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

fn variable(container: &Value, name: &str) -> Option<String> {
    let all = container["env"].as_array().unwrap();
    let found = all.iter().find(|one| one["name"] == name)?;
    found["value"].as_str().map(str::to_owned)
}

/// A script of the ConfigMap.
fn script(objects: &[Value], name: &str) -> String {
    let mut found = objects.iter().filter_map(|one| one["data"][name].as_str());
    found.next().unwrap().to_owned()
}

#[test]
fn the_process_is_in_the_place_of_the_kernel_module() {
    let pod = pod(&built(&case("vrouter-dpdk")));
    let init = names(&pod, "initContainers");
    assert_eq!(init.first().unwrap(), "vrouterkernelinitdpdk");
    assert!(!init.contains(&"vrouterkernelinit".to_owned()), "{init:?}");
    assert_eq!(
        names(&pod, "containers"),
        ["provisioner", "nodemanager", "vrouteragent", "vrouteragentdpdk"]
    );
    for name in ["vrouterkernelinitdpdk", "provisioner", "vrouteragent", "vrouteragentdpdk"] {
        let mode = variable(&container(&pod, name), "AGENT_MODE");
        assert_eq!(mode.as_deref(), Some("dpdk"), "{name}");
    }
    let process = container(&pod, "vrouteragentdpdk");
    for (name, value) in [
        ("CPU_CORE_MASK", "1,2-3"),
        ("SERVICE_CORE_MASK", "0x10"),
        ("DPDK_CTRL_THREAD_MASK", "0x20"),
        ("DPDK_UIO_DRIVER", "vfio-pci"),
        ("DPDK_MEM_PER_SOCKET", "1024"),
        ("PHYSICAL_INTERFACE", "ens3f0"),
    ] {
        assert_eq!(variable(&process, name).as_deref(), Some(value), "{name}");
    }
    // It speaks no TLS and knows no password.
    assert_eq!(variable(&process, "SSL_ENABLE"), None);
    assert!(process["livenessProbe"].is_null() && process["startupProbe"].is_null());
}

#[test]
fn only_the_process_has_huge_pages_and_of_each_size_what_is_asked_for() {
    for (name, expected) in [
        ("vrouter-dpdk", json!({"hugepages-1Gi": "4Gi"})),
        ("vrouter-dpdk-r25", json!({"hugepages-1Gi": "2Gi", "hugepages-2Mi": "512Mi"})),
    ] {
        let objects = built(&case(name));
        let pod = pod(&objects);
        assert_eq!(container(&pod, "vrouteragentdpdk")["resources"]["limits"], expected);
        assert!(container(&pod, "vrouteragent")["resources"]["limits"].is_null());
        let settings = script(&objects, "settings.env");
        for size in ["1GB", "2MB"] {
            assert!(settings.contains(&format!("export HUGE_PAGES_{size}='0'")), "{settings}");
        }
    }
}

#[test]
fn the_sample_of_a_profile_is_the_one_that_is_tried() {
    let documents = |path: &Path| -> Vec<Value> {
        serde_saphyr::from_multiple(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let profile = |documents: Vec<Value>| {
        let mut all = documents.into_iter().filter(|one| one["kind"] == "VrouterProfile");
        all.find(|one| one["metadata"]["name"] == "dpdk").unwrap()["spec"].clone()
    };
    let golden = documents(&Path::new(FOLDER).join("vrouter-dpdk/in.yaml"));
    assert_eq!(profile(golden), profile(documents(Path::new(SAMPLE))));
}

#[test]
fn without_its_image_or_pages_nothing_is_made() {
    let around = case("vrouter-dpdk-r25");
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut object = around.object.clone();
        change(&mut object["spec"]["serviceConfiguration"]);
        match around.built(&object) {
            Ended::Refused(why) => why,
            Ended::Built(_) => panic!("it is made"),
        }
    };
    let why = refused(&|settings| {
        settings["containers"]
            .as_array_mut()
            .unwrap()
            .retain(|one| one["name"] != "vrouteragentdpdk");
    });
    assert!(why.contains("no image for vrouteragentdpdk"), "{why}");
    let why = refused(&|settings| {
        settings["hugePages1G"] = 0.into();
        settings["hugePages2M"] = 0.into();
    });
    assert!(why.contains("dpdk.hugePages1G"), "{why}");
}

#[test]
fn the_entrypoint_gets_what_the_pod_says_and_the_control_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let here = folder.path().display().to_string();
    fs::write(
        at("entrypoint.sh"),
        "#!/bin/bash\necho \"$$ $* $CONTROL_NODES $VROUTER_HOSTNAME\" >\"${0%/*}/said\"\n",
    )
    .unwrap();
    fs::write(
        at("params.env.192.0.2.1"),
        "export CONTROL_NODES='192.0.2.10'\nexport VROUTER_HOSTNAME='node'\n",
    )
    .unwrap();
    let script = script(&built(&case("vrouter-dpdk")), "run-vrouteragentdpdk.sh")
        .replace("/etc/contrailconfigmaps/", &format!("{here}/"))
        .replace("exec /entrypoint.sh", &format!("exec bash {here}/entrypoint.sh"));
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).env("POD_IP", "192.0.2.1").env("VROUTER_HOSTNAME", "another");
    let child = bash.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let number = child.id();
    let output = child.wait_with_output().unwrap();
    let said = fs::read_to_string(at("said")).unwrap_or_default();
    // In the place of the script, as signals are its own.
    let expected = format!("{number} /usr/bin/contrail-vrouter-dpdk 192.0.2.10 another\n");
    assert_eq!(said, expected, "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_pod_ends_when_the_node_has_its_interface_back() {
    let pod = pod(&built(&case("vrouter-dpdk")));
    let process = container(&pod, "vrouteragentdpdk");
    let hook = process.pointer("/lifecycle/preStop/exec/command/2").unwrap().as_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let nic = folder.path().join("nic");
    fs::write(&nic, "ens3f0").unwrap();
    let entrypoint = format!(
        "sleep 60 & process=$!\ntrap 'kill $process; sleep 2; rm {nic}; exit 0' QUIT\ntrap 'exit 1' TERM\n\
         touch {nic}.ready\nwait $process\n",
        nic = nic.display()
    );
    let mut bash = Command::new("bash");
    bash.args(["-c", &entrypoint]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = bash.spawn().unwrap();
    let began = Instant::now();
    while !folder.path().join("nic.ready").exists() {
        assert!(began.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(20));
    }
    let hook = hook
        .replace("kill -QUIT 1;", &format!("kill -QUIT {};", child.id()))
        .replace("/var/run/vrouter/nic", &nic.display().to_string());
    assert!(Command::new("sh").args(["-c", &hook]).status().unwrap().success());
    assert!(!nic.exists(), "the signal that ends the pod would cut it short");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_start_forgets_an_empty_name_and_waits_until_the_interface_has_an_address() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().display();
    let at = |name: &str| folder.path().join(name);
    fs::write(
        at("entrypoint.sh"),
        format!("ls {here}/nic 2>&1 | grep -c 'No such' > {here}/said\n"),
    )
    .unwrap();
    fs::write(at("params.env.192.0.2.1"), "export CONTROL_NODES='192.0.2.10'\n").unwrap();
    fs::write(at("nic"), "\n").unwrap();
    // It has an address when it is asked for the second time.
    let ip = format!(
        "#!/bin/bash\n[ \"$*\" = '-4 addr show dev ens3f0' ] || exit 1\n\
         [ -e {here}/asked ] && echo '    inet 192.0.2.1/24'\ntouch {here}/asked\n"
    );
    fs::write(at("ip"), ip).unwrap();
    fs::set_permissions(at("ip"), fs::Permissions::from_mode(0o755)).unwrap();
    let script = script(&built(&case("vrouter-dpdk")), "run-vrouteragentdpdk.sh")
        .replace("/etc/contrailconfigmaps/", &format!("{here}/"))
        .replace("/var/run/vrouter/nic", &format!("{here}/nic"))
        .replace("sleep 5", "sleep 0.1")
        .replace("exec /entrypoint.sh", &format!("exec bash {here}/entrypoint.sh"));
    let path = format!("{here}:{}", std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).env("POD_IP", "192.0.2.1").env("PATH", path);
    let output = bash.env("PHYSICAL_INTERFACE", "ens3f0").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("waits for an IPv4 address of interface ens3f0"), "{said}");
    assert_eq!(fs::read_to_string(at("said")).unwrap(), "1\n", "the empty name is gone");
}
