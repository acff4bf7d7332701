//! Configurations of networks of pods, in the order in which the container runtime takes them, and what the runtime is
//! set to.

use opensdn_node_probe::{Cni, CniFile};
use serde_json::Value;

use super::host::Host;

const USUAL: &str = "/etc/cni/net.d";
/// k3s has its own containerd, with its own folder.
const K3S: &str = "/var/lib/rancher/k3s/agent/etc/cni/net.d";
const CONTAINERD: &str = "/etc/containerd/config.toml";
const CRIO: &str = "/etc/crio/crio.conf";
const CRIO_FOLDER: &str = "/etc/crio/crio.conf.d";

pub(super) fn look(host: &Host) -> Result<Cni, String> {
    let (folder, named_by) = folder(host)?;
    let names = host.names(&folder)?.unwrap_or_default();
    let is_read = |name: &&String| {
        [".conf", ".conflist", ".json"].iter().any(|ending| name.ends_with(ending))
    };
    let files = names.iter().filter(is_read).map(|name| file(host, &folder, name)).collect();
    Ok(Cni { files, folder, named_by, default_network: of_crio(host, "cni_default_network")? })
}

/// The folder that the runtime is set to, and by what.
fn folder(host: &Host) -> Result<(String, Option<String>), String> {
    if host.metadata(K3S).ok().flatten().is_some() {
        return Ok((K3S.to_owned(), Some("k3s".to_owned())));
    }
    let containerd = host.text(CONTAINERD)?.unwrap_or_default();
    if let Some(folder) = setting(&containerd, "conf_dir").filter(|folder| folder != USUAL) {
        return Ok((folder, Some(CONTAINERD.to_owned())));
    }
    let folder = of_crio(host, "network_dir")?;
    let folder = folder.map(|folder| folder.trim_end_matches('/').to_owned());
    Ok(match folder.filter(|folder| folder != USUAL) {
        Some(folder) => (folder, Some(CRIO.to_owned())),
        None => (USUAL.to_owned(), None),
    })
}

/// A setting of CRI-O: the last of its files that has it holds.
fn of_crio(host: &Host, key: &str) -> Result<Option<String>, String> {
    let mut value = setting(&host.text(CRIO)?.unwrap_or_default(), key);
    for name in host.names(CRIO_FOLDER)?.unwrap_or_default() {
        let text = host.text(&format!("{CRIO_FOLDER}/{name}"))?.unwrap_or_default();
        value = setting(&text, key).or(value);
    }
    Ok(value.filter(|value| !value.is_empty()))
}

/// A text of a file in TOML. Both keys that are asked for are in one table alone of these files.
fn setting(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        let value = value.split('#').next()?.trim();
        (name.trim() == key).then(|| value.trim_matches(['"', '\'']).to_owned())
    })
}

fn file(host: &Host, folder: &str, name: &str) -> CniFile {
    let mut found = CniFile { file: name.to_owned(), ..CniFile::default() };
    let parsed = host
        .needed(&format!("{folder}/{name}"))
        .and_then(|text| serde_json::from_str::<Value>(&text).map_err(|error| error.to_string()));
    match parsed {
        Ok(config) => {
            let of = |value: &Value, key: &str| {
                value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            found.network = of(&config, "name");
            let plugins = config.get("plugins").and_then(Value::as_array);
            found.plugins = match plugins {
                Some(plugins) => plugins.iter().map(|plugin| of(plugin, "type")).collect(),
                None => vec![of(&config, "type")],
            };
        }
        Err(error) => found.error = Some(error),
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::node;
    use super::*;

    #[test]
    fn files_are_in_the_order_in_which_containerd_takes_them() {
        let (_folder, host) = node(&[
            (
                "etc/cni/net.d/10-contrail.conf",
                r#"{"name": "contrail-k8s-cni", "type": "contrail-k8s-cni"}"#,
            ),
            (
                "etc/cni/net.d/05-cilium.conflist",
                r#"{"name": "cilium", "plugins": [{"type": "cilium-cni"}]}"#,
            ),
            ("etc/cni/net.d/00-broken.conf", "{"),
            ("etc/cni/net.d/calico-kubeconfig", "secret"),
            ("etc/containerd/config.toml", "conf_dir = \"/etc/cni/net.d\" # usual\n"),
        ]);
        let seen = look(&host).unwrap();
        let names: Vec<&str> = seen.files.iter().map(|one| &*one.file).collect();
        assert_eq!(names, ["00-broken.conf", "05-cilium.conflist", "10-contrail.conf"]);
        let errors = seen.files.iter().map(|one| one.error.is_some());
        assert_eq!(errors.collect::<Vec<_>>(), [true, false, false]);
        assert_eq!((seen.named_by, seen.default_network), (None, None));
        assert_eq!(seen.files.last().unwrap().plugins, ["contrail-k8s-cni"]);
    }

    #[test]
    fn what_the_runtime_is_set_to_holds() {
        let (_folder, host) = node(&[
            ("etc/crio/crio.conf", "[crio.network]\ncni_default_network = \"\"\n"),
            ("etc/crio/crio.conf.d/10-x.conf", "cni_default_network = \"contrail\"\n"),
            ("etc/containerd/config.toml", "  conf_dir = '/etc/other'\n"),
        ]);
        let seen = look(&host).unwrap();
        assert_eq!(seen.default_network.as_deref(), Some("contrail"));
        assert_eq!((&*seen.folder, seen.files.len()), ("/etc/other", 0));
        assert_eq!(seen.named_by.as_deref(), Some("/etc/containerd/config.toml"));
    }
}
