//! The files that the operator renders start the real servers, as a pod would: the golden files' scripts, in
//! a mount namespace in which they are where they say. As root, with the packages of `make setup-lab`.

#![allow(clippy::indexing_slicing, reason = "YAML of a test, and the line says where")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use opensdn_testing::{Failed, Outcome};
use serde_json::Value;
use tempfile::TempDir;

const GOLDEN: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../operator/tests/golden/redis/out.yaml");
/// The address and the port of the golden files, and others that are free here.
const ADDRESSES: [(&str, &str); 2] = [("192.0.2.10", "127.0.0.2"), ("6390", "16390")];

/// Both containers of the pod, one after the other asked, given a new certificate, and ended by a signal.
const POD: &str = r#"
set -eu
mkdir -p /etc/contrailconfigmaps /etc/certificates /etc/stunnel /var/run/stunnel
for folder in contrailconfigmaps certificates stunnel; do mount --bind "$1/$folder" "/etc/$folder"; done
mount --bind "$1/run" /var/run/stunnel
export POD_IP=127.0.0.2
cd "$1"
certificate() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=127.0.0.2 -days 2 \
    -keyout "$1/certificates/server-key-127.0.0.2.pem" -out "$1/certificates/server-127.0.0.2.crt" 2>"$1/openssl.log"
}
serial() { openssl s_client -connect 127.0.0.2:16390 </dev/null 2>>openssl.log | openssl x509 -noout -serial; }
bash /etc/contrailconfigmaps/run-redis.sh >redis.log 2>&1 & redis=$!
bash /etc/contrailconfigmaps/run-stunnel.sh >stunnel.log 2>&1 & stunnel=$!
trap 'kill -KILL $redis $stunnel 2>/dev/null || true' EXIT
sleep 2
echo "waits: $(grep -c 'waiting for /etc/certificates/server-127.0.0.2.crt' stunnel.log)"
certificate "$1"
for _ in $(seq 60); do serial 2>/dev/null | grep -q serial && break; sleep 1; done
redis-cli -h 127.0.0.2 -p 16390 --tls --insecure set key value
echo "get: $(redis-cli -h 127.0.0.1 -p 16390 get key)"
first=$(serial)
certificate "$1"
for _ in $(seq 60); do [ "$(serial)" = "$first" ] || break; sleep 1; done
[ "$(serial)" = "$first" ] || echo "reloaded"
kill -TERM $stunnel $redis
wait $stunnel; echo "stunnel ended with $?"
wait $redis; echo "redis ended with $?"
"#;

fn render(folder: &Path) -> Outcome {
    for name in ["contrailconfigmaps", "certificates", "stunnel", "run"] {
        fs::create_dir(folder.join(name))?;
    }
    let documents: Vec<Value> = serde_saphyr::from_multiple(&fs::read_to_string(GOLDEN)?)?;
    let files = documents.iter().find(|one| one["kind"] == "ConfigMap").ok_or("no ConfigMap")?;
    for (name, text) in files["data"].as_object().into_iter().flatten() {
        let here = |text: &str| {
            ADDRESSES.iter().fold(text.to_owned(), |text, (there, here)| text.replace(there, here))
        };
        let path = folder.join("contrailconfigmaps").join(here(name));
        fs::write(path, here(text.as_str().unwrap_or_default()))?;
    }
    Ok(())
}

#[test]
fn redis_and_stunnel_start_reload_and_end_by_the_rendered_files() -> Outcome {
    let folder = TempDir::new()?;
    render(folder.path())?;
    let mut pod = Command::new("timeout");
    pod.args(["--kill-after=5", "150", "unshare", "--mount", "bash", "-c", POD, "pod"]);
    let said = pod.arg(folder.path()).stdin(Stdio::null()).output()?;
    let out = String::from_utf8_lossy(&said.stdout).into_owned();
    let logs = ["redis.log", "stunnel.log", "openssl.log"]
        .map(|log| fs::read_to_string(folder.path().join(log)).unwrap_or_default());
    let err = String::from_utf8_lossy(&said.stderr);
    let expected =
        ["waits: 1", "get: value", "reloaded", "stunnel ended with 0", "redis ended with 0"];
    for line in expected {
        assert!(out.contains(line), "{line:?} is missing in:\n{out}\n{err}\n{logs:#?}");
    }
    Ok::<(), Failed>(())
}
