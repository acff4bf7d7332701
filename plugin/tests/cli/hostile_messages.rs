//! No line of an answer begins with what an object or a server of others says: CI takes `::error::` for a command, and people
//! a line of its own for ours.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use serde_json::json;

use crate::fake_api_server::{FakeApiServer, Reply, refusal};
use crate::program;

const SAID: &str = "no\nFAKELINE\r\n::error::x\tand\u{2028}FAKELINE";

fn server() -> FakeApiServer {
    FakeApiServer::start(|request, _| match request {
        "GET /version" => {
            let version = format!("v1.35.4{SAID}");
            let said =
                json!({"major": "1", "minor": "35", "gitVersion": version, "platform": SAID});
            Reply::Document(200, "", said)
        }
        "GET /apis/tf.tungsten.io/v1alpha1/managers" => {
            let row = json!({"kind": "Redis", "name": SAID, "ready": false, "reason": SAID, "message": SAID, "versions": [SAID]});
            let stalled =
                json!({"type": "Stalled", "status": "True", "reason": SAID, "message": SAID});
            let manager = json!({"metadata": {"name": SAID, "namespace": "tf", "generation": 1},
                "spec": {"services": {"redis": {"metadata": {"name": SAID}}}},
                "status": {"observedGeneration": 1, "services": [row], "conditions": [stalled]}});
            Reply::Document(200, "", json!({"kind": "ManagerList", "items": [manager]}))
        }
        "GET /api/v1/nodes" => {
            let ready =
                json!({"type": "Ready", "status": "False", "reason": SAID, "message": SAID});
            let node = json!({"metadata": {"name": SAID}, "status": {"conditions": [ready],
                "nodeInfo": {"kubeletVersion": SAID, "kernelVersion": SAID}}});
            Reply::Document(200, "", json!({"kind": "NodeList", "items": [node]}))
        }
        _ => refusal(403, "Forbidden", SAID),
    })
}

#[test]
fn no_line_begins_with_what_a_server_or_an_object_says() {
    for line in [
        "status",
        "status --depth 2",
        "status -o wide",
        "check",
        "check --pre",
        "version",
        "certs status",
        "logs",
        "install --yes",
        "uninstall --yes",
        "connectivity test",
    ] {
        let output = program::ask(&server(), line);
        let said = [&output.stdout[..], b"\n", &output.stderr[..]].concat();
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains("FAKELINE"), "{line} does not show it: {said}");
        let lines = said.split(['\n', '\r', '\u{2028}']);
        // A runner takes it indented, too.
        let forged = lines.filter(|line| {
            line.starts_with("FAKELINE") || line.trim_start().starts_with("::error")
        });
        assert_eq!(forged.collect::<Vec<_>>(), [""; 0], "{line}: {said}");
    }
}
