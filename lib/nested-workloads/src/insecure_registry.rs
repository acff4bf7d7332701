//! What a node's runtime needs to pull from a registry without TLS, or with a certificate that it does not
//! know: files, and what is run after them. They are texts; who writes them to nodes is the caller's business.

use serde_json::{Map, Value};

use crate::registry::is_host;

const DAEMON_JSON: &str = "/etc/docker/daemon.json";
const KEY: &str = "insecure-registries";

/// The runtime of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// Docker.
    Docker,
    /// containerd up to 1.7.
    Containerd1,
    /// containerd since 2.0, whose configuration has other names.
    Containerd2,
    /// CRI-O.
    CriO,
}

impl Runtime {
    /// Its name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Containerd1 => "containerd 1",
            Self::Containerd2 => "containerd 2",
            Self::CriO => "CRI-O",
        }
    }

    /// By `status.nodeInfo.containerRuntimeVersion`, as `containerd://1.7.27`; none where it is another.
    #[must_use]
    pub fn of(version: &str) -> Option<Self> {
        let (name, version) = version.split_once("://")?;
        match name {
            "docker" => Some(Self::Docker),
            "containerd" if version.starts_with(['0', '1']) => Some(Self::Containerd1),
            "containerd" => Some(Self::Containerd2),
            "cri-o" => Some(Self::CriO),
            _ => None,
        }
    }
}

/// How the registry answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insecurity {
    /// Without TLS.
    Http,
    /// With a certificate that the node cannot check.
    UnknownCertificate,
}

/// What is done on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// The file.
    pub path: String,
    /// All that is in it.
    pub content: String,
    /// What must be in another file, where that is so: its path and the lines.
    pub also: Option<(&'static str, &'static str)>,
    /// The command that makes the runtime read it, where it does not by itself.
    pub then: Option<&'static str>,
}

/// Why there is no snippet.
#[derive(Debug, thiserror::Error)]
pub enum InsecureRegistryError {
    /// The registry is no host.
    #[error("the registry {0:?} is not a host with or without a port, in lower case")]
    Registry(String),
    /// The file that is there is not one object in JSON.
    #[error("{DAEMON_JSON} is not one JSON object, so docker does not start with it: {why}")]
    NotOneObject {
        /// What it is instead.
        why: String,
    },
    /// Its list of registries is something else.
    #[error("{KEY} in {DAEMON_JSON} is not a list of texts")]
    NotAList,
    /// The file is not written.
    #[error("write {DAEMON_JSON}")]
    Json(#[source] serde_json::Error),
}

impl InsecureRegistryError {
    /// Its stable code, if it has one.
    #[must_use]
    pub const fn code(&self) -> Option<&'static str> {
        match self {
            Self::NotOneObject { .. } => Some("OSDN3066"),
            _ => None,
        }
    }
}

/// What is done on a node of that runtime. `existing` is the text of its `/etc/docker/daemon.json`, if there
/// is one; other runtimes have a file of their own for each registry.
///
/// # Errors
/// The registry is no host, or the existing file cannot be merged with.
pub fn snippet(
    runtime: Runtime,
    registry: &str,
    insecurity: Insecurity,
    existing: Option<&str>,
) -> Result<Snippet, InsecureRegistryError> {
    let registry = registry.split('/').next().unwrap_or_default();
    if !is_host(registry) {
        return Err(InsecureRegistryError::Registry(registry.to_owned()));
    }
    Ok(match runtime {
        Runtime::Docker => docker(registry, existing)?,
        Runtime::Containerd1 => containerd(registry, insecurity, CONFIG_PATH_1),
        Runtime::Containerd2 => containerd(registry, insecurity, CONFIG_PATH_2),
        Runtime::CriO => cri_o(registry),
    })
}

fn docker(registry: &str, existing: Option<&str>) -> Result<Snippet, InsecureRegistryError> {
    let mut object = existing.map_or_else(|| Ok(Map::new()), one_object)?;
    let list = object.entry(KEY).or_insert_with(|| Value::Array(Vec::new()));
    match list {
        Value::Array(entries) if entries.iter().all(Value::is_string) => {
            if !entries.iter().any(|entry| entry == registry) {
                entries.push(registry.into());
            }
        }
        _ => return Err(InsecureRegistryError::NotAList),
    }
    let text = serde_json::to_string_pretty(&object).map_err(InsecureRegistryError::Json)?;
    Ok(Snippet {
        path: DAEMON_JSON.to_owned(),
        content: format!("{text}\n"),
        also: None,
        then: Some("systemctl restart docker"),
    })
}

/// An empty file is as good as none.
fn one_object(text: &str) -> Result<Map<String, Value>, InsecureRegistryError> {
    let refused = |why: String| Err(InsecureRegistryError::NotOneObject { why });
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match value {
            Ok(value) => values.push(value),
            Err(error) => return refused(format!("line {}: {error}", error.line())),
        }
    }
    let count = values.len();
    match (values.pop(), count) {
        (None, _) => Ok(Map::new()),
        (Some(Value::Object(object)), 1) => Ok(object),
        (Some(_), 1) => refused("it is one value, but no object".to_owned()),
        _ => refused(format!(
            "it has {count} values one after the other, as from an object that was appended; merge them into one"
        )),
    }
}

const CONFIG_PATH_1: &str = "[plugins.\"io.containerd.grpc.v1.cri\".registry]\n  config_path = \"/etc/containerd/certs.d\"\n";
const CONFIG_PATH_2: &str = "[plugins.\"io.containerd.cri.v1.images\".registry]\n  config_path = \
                             \"/etc/containerd/certs.d\"\n";

fn containerd(registry: &str, insecurity: Insecurity, config_path: &'static str) -> Snippet {
    let (scheme, check) = match insecurity {
        Insecurity::Http => ("http", ""),
        Insecurity::UnknownCertificate => ("https", "  skip_verify = true\n"),
    };
    let content = format!(
        "server = \"{scheme}://{registry}\"\n\n[host.\"{scheme}://{registry}\"]\n  capabilities = [\"pull\", \
         \"resolve\"]\n{check}"
    );
    Snippet {
        path: format!("/etc/containerd/certs.d/{registry}/hosts.toml"),
        content,
        also: Some(("/etc/containerd/config.toml", config_path)),
        then: None,
    }
}

/// In a file of its own, beside `/etc/containers/registries.conf`.
fn cri_o(registry: &str) -> Snippet {
    let name = registry.replace(':', "-");
    Snippet {
        path: format!("/etc/containers/registries.conf.d/opensdn-{name}.conf"),
        content: format!("[[registry]]\nlocation = \"{registry}\"\ninsecure = true\n"),
        also: None,
        then: Some("systemctl reload crio"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const REGISTRY: &str = "ci-repo.example.net:5010";

    fn docker(existing: Option<&str>) -> Result<Value, InsecureRegistryError> {
        let snippet = snippet(Runtime::Docker, REGISTRY, Insecurity::Http, existing)?;
        Ok(serde_json::from_str(&snippet.content).unwrap())
    }

    #[test]
    fn dockers_file_keeps_all_that_is_in_it() {
        let expected = json!({"insecure-registries": [REGISTRY]});
        for none in [None, Some(""), Some(" \n"), Some("{}")] {
            assert_eq!(docker(none).unwrap(), expected, "{none:?}");
        }
        let existing = r#"{"log-driver": "journald", "insecure-registries": ["a:1"]}"#;
        let merged = json!({"log-driver": "journald", "insecure-registries": ["a:1", REGISTRY]});
        assert_eq!(docker(Some(existing)).unwrap(), merged);
        assert_eq!(docker(Some(&merged.to_string())).unwrap(), merged);
    }

    #[test]
    fn what_the_old_document_has_a_user_append_is_refused_and_explained() {
        let appended = "{\"log-driver\": \"journald\"}\n{\"insecure-registries\": [\"a:1\"]}\n";
        let error = docker(Some(appended)).unwrap_err();
        assert_eq!(error.code(), Some("OSDN3066"));
        assert!(error.to_string().contains("2 values"), "{error}");
        for broken in ["[]", "{", "{} x", "\"a\""] {
            assert_eq!(docker(Some(broken)).unwrap_err().code(), Some("OSDN3066"), "{broken}");
        }
        let list = docker(Some(r#"{"insecure-registries": "a"}"#)).unwrap_err();
        assert!(matches!(list, InsecureRegistryError::NotAList));
    }

    #[test]
    fn each_runtime_has_its_own_file() {
        let of = |runtime, insecurity| snippet(runtime, REGISTRY, insecurity, None).unwrap();
        let http = of(Runtime::Containerd1, Insecurity::Http);
        assert_eq!(http.path, format!("/etc/containerd/certs.d/{REGISTRY}/hosts.toml"));
        assert!(http.content.contains(&format!("[host.\"http://{REGISTRY}\"]")));
        assert!(!http.content.contains("skip_verify") && http.then.is_none());
        assert!(http.also.unwrap().1.contains("grpc.v1.cri"));
        let unknown = of(Runtime::Containerd2, Insecurity::UnknownCertificate);
        assert!(unknown.content.contains("https://") && unknown.content.contains("skip_verify"));
        assert!(unknown.also.unwrap().1.contains("cri.v1.images"));
        let cri_o = of(Runtime::CriO, Insecurity::Http);
        assert_eq!(
            cri_o.content,
            format!("[[registry]]\nlocation = \"{REGISTRY}\"\ninsecure = true\n")
        );
    }

    #[test]
    fn runtimes_are_known_by_what_nodes_say_of_them() {
        let all = [
            ("docker://19.3.1", Some(Runtime::Docker)),
            ("containerd://1.7.27", Some(Runtime::Containerd1)),
            ("containerd://2.1.0", Some(Runtime::Containerd2)),
            ("cri-o://1.33.0", Some(Runtime::CriO)),
            ("other://1", None),
            ("", None),
        ];
        for (version, runtime) in all {
            assert_eq!(Runtime::of(version), runtime, "{version}");
        }
    }

    #[test]
    fn only_a_host_gets_into_a_file() {
        for hostile in ["", "a b", "a\nb", "a\"b", "$(id)", "{{ x }}", "../x", "a:b:1"] {
            let made = snippet(Runtime::CriO, hostile, Insecurity::Http, None);
            assert!(made.is_err(), "{hostile:?}");
        }
        let with_path = snippet(Runtime::CriO, "r.example:1/contrail", Insecurity::Http, None);
        assert!(with_path.unwrap().content.contains("\"r.example:1\""));
    }
}
