//! What is for OpenShift has the shape that OpenShift documents. There is no OpenShift here: the types below are its
//! published fields (SecurityContextConstraints security.openshift.io/v1, MachineConfig with Ignition 3.2), so that one that
//! does not exist or has another type is found. Deliberately not here: that an OpenShift works with it.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use opensdn_crds::component::{COMPONENTS, Transport};
use opensdn_deploy::values::Platform;
use opensdn_deploy::{openshift_machines, operator_on, webhook_on};
use opensdn_testing::{Failed, Outcome};
use serde::Deserialize;
use serde_json::Value;

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/openshift/machines/files");

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "fields of a published API")]
struct SecurityContextConstraints {
    api_version: String,
    kind: String,
    metadata: Value,
    priority: i32,
    allow_privileged_container: bool,
    default_add_capabilities: Vec<String>,
    required_drop_capabilities: Vec<String>,
    allowed_capabilities: Vec<String>,
    allow_host_dir_volume_plugin: bool,
    volumes: Vec<String>,
    allow_host_network: bool,
    allow_host_ports: bool,
    #[serde(rename = "allowHostPID")]
    allow_host_pid: bool,
    #[serde(rename = "allowHostIPC")]
    allow_host_ipc: bool,
    allow_privilege_escalation: bool,
    se_linux_context: Strategy,
    run_as_user: Strategy,
    supplemental_groups: Strategy,
    fs_group: Strategy,
    read_only_root_filesystem: bool,
    users: Vec<String>,
    groups: Vec<String>,
    seccomp_profiles: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Strategy {
    r#type: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineConfigSpec {
    config: Ignition,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ignition {
    ignition: Version,
    #[serde(default)]
    storage: Storage,
    #[serde(default)]
    systemd: Systemd,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Version {
    version: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Storage {
    directories: Vec<Directory>,
    files: Vec<File>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Directory {
    path: String,
    mode: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    path: String,
    mode: u32,
    overwrite: bool,
    contents: Contents,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    source: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Systemd {
    units: Vec<Unit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unit {
    name: String,
    enabled: bool,
    contents: String,
}

fn of_kind(objects: &[Value], kind: &str) -> Vec<Value> {
    objects.iter().filter(|object| object["kind"] == kind).cloned().collect()
}

fn on_openshift() -> Result<Vec<Value>, Failed> {
    let steps = [webhook_on(Platform::Openshift)?, operator_on(Platform::Openshift)?].concat();
    Ok(steps.into_iter().flat_map(|step| step.objects).collect())
}

fn machine_configs() -> Result<Vec<(String, Ignition)>, Failed> {
    let parsed = |object: Value| -> Result<(String, Ignition), Failed> {
        assert_eq!(object["apiVersion"], "machineconfiguration.openshift.io/v1");
        let role = &object["metadata"]["labels"]["machineconfiguration.openshift.io/role"];
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let role = role.as_str().ok_or("no role")?;
        assert!(name.contains(&format!("-{role}-opensdn-")), "{name}");
        let spec: MachineConfigSpec = serde_json::from_value(object["spec"].clone())?;
        Ok((role.to_owned(), spec.config))
    };
    of_kind(&openshift_machines()?, "MachineConfig").into_iter().map(parsed).collect()
}

#[test]
fn security_context_constraints_have_the_published_fields_and_are_used_by_our_accounts_alone()
-> Outcome {
    let objects = on_openshift()?;
    for object in of_kind(&objects, "SecurityContextConstraints") {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let constraints: SecurityContextConstraints = serde_json::from_value(object)?;
        assert_eq!(constraints.api_version, "security.openshift.io/v1");
        assert!(constraints.users.is_empty() && constraints.groups.is_empty(), "{name}");
        assert!(constraints.allow_host_network, "{name}");
        let is_of_components = name == "opensdn-components";
        assert_eq!(constraints.allow_privileged_container, is_of_components, "{name}");
        assert_eq!(constraints.allow_host_dir_volume_plugin, is_of_components, "{name}");
        let user = constraints.run_as_user.r#type;
        assert_eq!(user, if is_of_components { "RunAsAny" } else { "MustRunAsNonRoot" });
    }
    // A cluster-wide binding would let the accounts use them in every namespace.
    let of_scc = |object: &&Value| {
        object["roleRef"]["name"].as_str().is_some_and(|name| name.contains("scc"))
    };
    let bindings: Vec<&Value> = objects.iter().filter(of_scc).collect();
    assert_eq!(bindings.len(), 3);
    assert!(bindings.iter().all(|binding| binding["kind"] == "RoleBinding"));
    Ok(())
}

#[test]
fn both_roles_get_the_same_machine_configs_in_ignition_3_2() -> Outcome {
    let mut paths: Vec<(String, String)> = Vec::new();
    for (role, config) in machine_configs()? {
        assert_eq!(config.ignition.version, "3.2.0");
        for Directory { path, mode } in config.storage.directories {
            assert_eq!(mode, 0o755, "{path}");
            paths.push((role.clone(), path));
        }
        for File { path, mode, overwrite, .. } in config.storage.files {
            assert!(overwrite && [0o644, 0o744].contains(&mode), "{path}");
            assert_eq!(mode == 0o744, path.ends_with(".sh"), "{path}");
            paths.push((role.clone(), path));
        }
        for Unit { name, enabled, contents } in config.systemd.units {
            assert!(enabled && contents.contains("[Install]\n"), "{name}");
            // systemd takes a mount unit only by the name of its folder.
            if let Some(folder) = name.strip_suffix(".mount") {
                assert!(contents.contains(&format!("Where=/{}\n", folder.replace('-', "/"))));
            }
            paths.push((role.clone(), name));
        }
    }
    let of = |role: &str| -> BTreeSet<String> {
        paths.iter().filter(|(one, _)| one == role).map(|(_, path)| path.clone()).collect()
    };
    assert_eq!(of("master"), of("worker"));
    assert_eq!(of("master").len(), 12, "{:?}", of("master"));
    Ok(())
}

#[test]
fn the_data_of_machine_configs_are_the_files_beside_them() -> Outcome {
    let mut seen = BTreeSet::new();
    for file in machine_configs()?.into_iter().flat_map(|(_, config)| config.storage.files) {
        let written = match file.path.as_str() {
            "/etc/opensdn/firewall.sh" => "firewall.sh",
            "/etc/opensdn/network-manager.sh" => "network-manager.sh",
            "/etc/crio/crio.conf.d/00-opensdn-pids-limit" => "pids-limit.conf",
            "/etc/sysctl.d/60-opensdn.conf" => "sysctl.conf",
            other => return Err(format!("{other} is of no file").into()),
        };
        let data = file.contents.source.strip_prefix("data:text/plain;charset=utf-8;base64,");
        let found = STANDARD.decode(data.ok_or("not base64")?)?;
        let path = Path::new(FILES).join(written);
        let expected = std::fs::read(&path)?;
        let renew = format!("put `base64 -w0 {}` into both files", path.display());
        assert_eq!(String::from_utf8(found)?, String::from_utf8(expected)?, "{renew}");
        if written.ends_with(".sh") {
            assert!(Command::new("bash").arg("-n").arg(&path).status()?.success(), "{written}");
        }
        seen.insert(written);
    }
    let files = std::fs::read_dir(FILES)?.count();
    assert_eq!(seen.len(), files);
    Ok(())
}

/// A stand-in for iptables: `-C` finds what `-I` has put into a file, which this returns.
fn firewall(folder: &Path, works: bool) -> Result<(bool, Vec<String>), Failed> {
    let (rules, program) = (folder.join("rules"), folder.join("iptables"));
    let insert = if works { "echo \"$rule\" >> \"$RULES\"" } else { "exit 1" };
    let script = format!(
        "#!/bin/bash\nrule=\"${{*:5}}\"\ncase $rule in '-C INPUT '*) grep -qxF -- \"${{rule#-C INPUT }}\" \"$RULES\" ;;\n'-I INPUT 1 '*) rule=${{rule#-I INPUT 1 }}; {insert} ;;\n*) exit 2 ;; esac\n"
    );
    std::fs::write(&program, script)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    let path = format!("{}:{}", folder.display(), std::env::var("PATH")?);
    let status = Command::new("bash")
        .arg(Path::new(FILES).join("firewall.sh"))
        .env("PATH", path)
        .env("RULES", &rules)
        .status()?;
    let text = std::fs::read_to_string(&rules).unwrap_or_default();
    Ok((status.success(), text.lines().map(str::to_owned).collect()))
}

/// `-p tcp --dport 7010:7013 -j ACCEPT` lets 7011 in.
fn lets_in(rules: &[String], protocol: &str, port: u16) -> bool {
    let start = format!("-p {protocol} --dport ");
    let ports =
        rules.iter().filter_map(|rule| rule.strip_prefix(&start)?.strip_suffix(" -j ACCEPT"));
    ports.into_iter().any(|ports| {
        let (first, last) = ports.split_once(':').unwrap_or((ports, ports));
        let bound = |text: &str| text.parse::<u16>().ok();
        bound(first).zip(bound(last)).is_some_and(|(first, last)| (first..=last).contains(&port))
    })
}

#[test]
fn the_firewall_lets_in_every_port_of_every_component_and_a_second_run_changes_nothing() -> Outcome
{
    let folder = tempfile::tempdir()?;
    let (ok, rules) = firewall(folder.path(), true)?;
    assert!(ok);
    let mut missing = Vec::new();
    for component in COMPONENTS {
        for port in component.ports {
            let protocols: &[&str] = match port.transport {
                Transport::Tcp => &["tcp"],
                Transport::Udp => &["udp"],
                Transport::TcpAndUdp => &["tcp", "udp"],
            };
            let closed =
                protocols.iter().filter(|protocol| !lets_in(&rules, protocol, port.number));
            missing.extend(closed.map(|protocol| format!("{protocol} {}", port.number)));
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
    let (ok, again) = firewall(folder.path(), true)?;
    assert!(ok);
    assert_eq!(again, rules);
    Ok(())
}

#[test]
fn a_firewall_that_takes_no_rule_is_a_unit_that_failed() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (ok, rules) = firewall(folder.path(), false)?;
    assert!(!ok && rules.is_empty(), "{rules:?}");
    Ok(())
}
