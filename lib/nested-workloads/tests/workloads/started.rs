//! Whether upstream's entrypoint gets through with the rights that the manifest leaves it: it gives folders to the user of
//! OpenSDN's images, and becomes that user (tf-container-builder, `containers/general-base/functions.sh`, `run_service`).
//! That takes root, as in a container.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::process::Command;

use k8s_openapi::api::core::v1::{Container, PodSpec};
use opensdn_nested_workloads::{Inputs, render};

use crate::example::option_1;

/// What the entrypoint does with rights; `$1` is a key as a projected volume has it.
const ENTRYPOINT: &str = r#"
set -e
folder=$(mktemp -d)
chown 1999:1999 "$folder"
setpriv --reuid 1999 --regid 1999 --clear-groups --no-new-privs sh -c 'touch "$0/log" && cat "$1"' "$folder" "$1"
rm -r "$folder"
"#;

fn pod(inputs: &Inputs) -> PodSpec {
    render(inputs).unwrap().kube_manager.spec.unwrap().template.spec.unwrap()
}

/// With these rights and no others, as a runtime starts a container.
fn started(capabilities: &[String], key: &str) -> (bool, String) {
    let kept = capabilities.iter().map(|one| format!(",+{}", one.to_lowercase()));
    let bounding = format!("--bounding-set=-all{}", kept.collect::<String>());
    let output = Command::new("setpriv")
        .args([&bounding, "--inh-caps=-all", "--", "sh", "-c", ENTRYPOINT, "sh", key])
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

fn rights(container: &Container) -> Vec<String> {
    let context = container.security_context.clone().unwrap();
    let capabilities = context.capabilities.unwrap();
    assert_eq!(capabilities.drop.unwrap(), ["ALL"]);
    capabilities.add.unwrap()
}

#[test]
fn kube_managers_entrypoint_becomes_its_user_with_the_rights_that_it_has_and_reads_its_key() {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        eprintln!("left out: only root can give up rights as a container's runtime does");
        return;
    }
    let pod = pod(&Inputs { client_certificate_secret: Some("own".to_owned()), ..option_1() });
    let rights = rights(pod.containers.first().unwrap());
    let group = pod.security_context.and_then(|context| context.fs_group).unwrap();
    let sources = pod.volumes.iter().flatten().filter_map(|volume| volume.projected.as_ref());
    let sources = sources.flat_map(|projected| projected.sources.iter().flatten());
    let items = sources.filter_map(|source| source.secret.as_ref()?.items.as_ref()).flatten();
    let mode = items.filter(|item| item.key == "tls.key").find_map(|item| item.mode).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("tls.key");
    std::fs::write(&key, "the key").unwrap();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&key, Permissions::from_mode(mode.try_into().unwrap())).unwrap();
    chown(&key, None, Some(group.try_into().unwrap())).unwrap();
    let path = key.to_str().unwrap();
    assert_eq!(started(&rights, path), (true, "the key".to_owned()));

    // Without one of them it does not: what is left is needed.
    for needed in ["CHOWN", "SETUID", "SETGID"] {
        let fewer: Vec<String> = rights.iter().filter(|one| *one != needed).cloned().collect();
        assert!(!started(&fewer, path).0, "{needed}");
    }
    chown(&key, None, Some(0)).unwrap();
    assert!(!started(&rights, path).0, "a key of root's group is not read");
}
