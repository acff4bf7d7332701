//! Nodes of each runtime, and what has to be on them.

use serde_json::json;

use super::*;

fn command(existing: Option<&str>) -> InsecureRegistryCommand {
    InsecureRegistryCommand {
        registry: "r.example:5010/contrail".to_owned(),
        tls: Tls::None,
        existing: existing.map(PathBuf::from),
        _cluster: AsksCluster {},
        _output: Output { output: crate::output::Format::Human },
    }
}

fn node(name: &str, runtime: &str) -> Value {
    json!({"metadata": {"name": name}, "status": {"nodeInfo": {"containerRuntimeVersion": runtime}}})
}

fn written(answer: &InsecureRegistry) -> String {
    let mut out = Vec::new();
    answer.write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn each_runtime_is_said_once_with_its_nodes() {
    let nodes = [
        node("a", "containerd://1.7.27"),
        node("b", "docker://19.3.1"),
        node("c", "containerd://1.6.0"),
        node("d", "cri-o://1.33.0"),
        node("e", "frakti://1"),
    ];
    let existing = r#"{"log-driver": "journald"}"#;
    let answer = command(None).answer(&nodes, &Read::Absent, Some(existing)).unwrap();
    let runtimes: Vec<(&str, Vec<&str>)> = answer
        .runtimes
        .iter()
        .map(|one| (one.runtime.as_str(), one.nodes.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(
        runtimes,
        [("CRI-O", vec!["d"]), ("containerd 1", vec!["a", "c"]), ("docker", vec!["b"])]
    );
    let text = written(&answer);
    assert!(text.contains("# docker on b\n# /etc/docker/daemon.json\n{\n"), "{text}");
    assert!(text.contains("\"log-driver\": \"journald\""), "{text}");
    assert!(text.contains("unknown  e has the runtime \"frakti://1\""), "{text}");
}

#[test]
fn a_node_that_has_refused_the_registry_is_named_and_another_failure_is_not() {
    let event = |host: &str, message: &str| json!({"source": {"host": host}, "message": message});
    let refusal = "Failed to pull image \"r.example:5010/a:1\": http: server gave HTTP response to HTTPS client";
    let events = vec![
        event("a", refusal),
        event("a", refusal),
        event("b", "Failed to pull image \"r.example:5010/a:1\": not found"),
        event("c", "Failed to pull image \"other/a:1\": x509: unknown authority"),
    ];
    let answer = command(None).answer(&[], &Read::Known(events), None).unwrap();
    assert_eq!(answer.refusing, ["a"]);
    assert!(written(&answer).contains("[OSDN3065] a has refused"));
}

#[test]
fn a_file_that_docker_does_not_take_is_refused_by_its_code() {
    let failure = command(None).snippet(ContainerRuntime::Docker, Some("{} {}")).unwrap_err();
    assert!(failure.message.starts_with("[OSDN3066]"), "{failure:?}");
    assert_eq!(failure.exit, Exit::Usage);
    let endless = command(Some("/dev/zero")).existing().unwrap_err();
    assert_eq!(endless.causes, ["it is larger than 1 MiB"]);
}

#[test]
fn what_a_node_says_of_itself_reaches_no_terminal() {
    let nodes = [node("a\u{1b}[31m", "x\u{1b}[2J")];
    let answer = command(None).answer(&nodes, &Read::Absent, None).unwrap();
    assert!(!written(&answer).contains('\u{1b}'));
}
