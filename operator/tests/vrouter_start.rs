//! The script by which the agent is started, as bash runs it, with functions of an image that write what they are given as
//! that of upstream does: unquoted into a file that bash reads (tf-container-builder,
//! `containers/vrouter/agent/actions.sh:171-185` and `:202`).

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/vrouter/out.yaml");
const IMAGE: &str = r#"
PARAMETERS_FILE_TEMPLATE=FOLDER/template
prepare_agent() {
  local computed=eth0
  while IFS='=' read -r key _; do
    [ -z "$key" ] || echo "$key=\"${!key}\""
  done < "$PARAMETERS_FILE_TEMPLATE" > FOLDER/parameters
  echo "COMPUTED=$computed" >> FOLDER/parameters
}
create_agent_config() {
  . FOLDER/parameters
  printf '%s\n' "$SLO_DESTINATION" "$METADATA_PROXY_SECRET" "$UNSET" "$COMPUTED" > FOLDER/said
}
start_agent() { touch FOLDER/started; }
"#;

/// The script, as a golden file has it.
fn script() -> String {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&fs::read_to_string(GOLDEN).unwrap()).unwrap();
    let mut scripts =
        documents.iter().filter_map(|one| one["data"]["start-vrouteragent.sh"].as_str());
    scripts.next().unwrap().to_owned()
}

/// What the agent's configuration is made of, where the settings say that.
fn said(slo: &str, secret: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let here = folder.path().display().to_string();
    // One is there twice, as in the image.
    let template = "SLO_DESTINATION=\nMETADATA_PROXY_SECRET=\nUNSET=\n\nSLO_DESTINATION=\n";
    fs::write(at("template"), template).unwrap();
    fs::write(at("actions.sh"), IMAGE.replace("FOLDER", &here)).unwrap();
    let quoted = |value: &str| value.replace('\'', "'\\''");
    let settings = format!(
        "export SLO_DESTINATION='{}'\nexport METADATA_PROXY_SECRET='{}'\n",
        quoted(slo),
        quoted(secret)
    );
    fs::write(at("settings.env"), settings).unwrap();
    fs::write(at("params.env.192.0.2.1"), "").unwrap();
    let script = script()
        .replace("/etc/contrailconfigmaps/", &format!("{here}/"))
        .replace(". /actions.sh", &format!(". {here}/actions.sh"));
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).env("POD_IP", "192.0.2.1").current_dir(folder.path());
    let output = bash.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(at("started").is_file(), "{err}");
    assert!(!ran(folder.path()), "{slo} {secret}");
    let text = fs::read_to_string(at("said")).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn ran(folder: &Path) -> bool {
    folder.join("ran").exists()
}

#[test]
fn what_is_said_of_the_agent_stays_text() {
    for value in [
        "10.0.0.1 10.0.0.2",
        "collector $(touch ran)",
        "`touch ran`",
        "a\"; touch ran; \"",
        "p\"; touch ran; #",
        "back\\slash \\$HOME \\",
        "a'b & c * ? [x] {y} ~",
        "$HOME ${HOME} $$",
    ] {
        assert_eq!(said(value, "plain"), [value, "plain", "", "eth0"]);
        assert_eq!(said("plain", value), ["plain", value, "", "eth0"]);
    }
}
