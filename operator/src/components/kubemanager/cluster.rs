//! What it gets to know of the cluster: by its own fields, else by what the cluster says of itself.

use opensdn_crds::kubemanager::KubemanagerConfiguration;

use crate::cluster::ApiServer;
use crate::component::{FolderOfNode, Given, SettingsError};

/// Those that it asks before all others, and those that it asks if they are on its own node, and then any.
pub(super) fn api_servers(
    given: &Given<'_>,
    settings: &KubemanagerConfiguration,
) -> Result<[Vec<ApiServer>; 2], SettingsError> {
    let own_port = settings.kubernetes_apissl_port.and_then(|port| u16::try_from(port).ok());
    let with_port = |one: ApiServer| ApiServer { port: own_port.unwrap_or(one.port), ..one };
    let own = settings.kubernetes_api_server.as_deref().unwrap_or_default();
    let own = own.split([',', ' ']).filter(|word| !word.is_empty());
    let own: Vec<_> = own.collect();
    if !own.is_empty() {
        let wrong = own.iter().find(|word| ApiServer::of(word).is_none());
        if let Some(word) = wrong {
            return Err(unfit(&format!(
                "spec.serviceConfiguration.kubernetesAPIServer has {word:?}: give names or IPv4 addresses, each with or \
                 without a port"
            )));
        }
        let own = own.into_iter().filter_map(ApiServer::of).map(with_port).collect();
        return Ok([own, Vec::new()]);
    }
    let cluster = given.cluster;
    let preferred: Vec<_> = cluster.endpoint.iter().cloned().map(with_port).collect();
    let servers: Vec<_> = cluster.api_servers.iter().cloned().map(with_port).collect();
    if preferred.is_empty() && servers.is_empty() {
        return Err(unfit(
            "where the API server of Kubernetes is, the EndpointSlice default/kubernetes does not say, or the operator may \
             not read it (deploy/operator/rbac.yaml): set spec.serviceConfiguration.kubernetesAPIServer",
        ));
    }
    Ok([preferred, servers])
}

/// What is there and cannot be read must not become a default: networks would be made of it.
pub(super) fn known(
    given: &Given<'_>,
    settings: &KubemanagerConfiguration,
) -> Result<(), SettingsError> {
    match &given.cluster.unreadable {
        Some(why) if settings.pod_subnet.is_none() || settings.service_subnet.is_none() => {
            Err(unfit(&format!(
                "the networks of the cluster are not known: {why}; set podSubnet and serviceSubnet of \
                 spec.serviceConfiguration"
            )))
        }
        _ => Ok(()),
    }
}

/// Where the token is, and the folder of the node with it, if another than that of the ServiceAccount is wanted.
pub(super) fn token_file(
    path: Option<&str>,
) -> Result<(String, Option<FolderOfNode>), SettingsError> {
    let Some(path) = path.filter(|path| !path.is_empty()) else {
        return Ok(("@credentials/token/token@".to_owned(), None));
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
    match path.rsplit_once('/') {
        Some((folder, name))
            if folder.starts_with('/')
                && !["", ".", ".."].contains(&name)
                && !path.contains("/../")
                && path.bytes().all(is_plain) =>
        {
            let folder = FolderOfNode { folder: "given", path: folder.to_owned() };
            Ok((format!("@credentials/given/{name}@"), Some(folder)))
        }
        _ => Err(unfit(&format!(
            "spec.serviceConfiguration.kubernetesTokenFile is {path:?}: give the path of a file on the nodes, in a folder"
        ))),
    }
}

fn unfit(message: &str) -> SettingsError {
    SettingsError::Unfit { reason: "ClusterUnknown", message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use opensdn_crds::pod::PodConfiguration;
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::Cluster;
    use crate::peers::Peers;
    use crate::release::Release;

    /// The API servers, with the preferred first, or what is said instead.
    fn asked(cluster: &Cluster, settings: &Value) -> Result<String, String> {
        let (common, peers) = (PodConfiguration::default(), Peers::default());
        let release = Release::default();
        let given = Given {
            name: "n",
            settings,
            common: &common,
            peers: &peers,
            cluster,
            release,
            profiles: &[],
        };
        let settings = given.settings().unwrap();
        let all = api_servers(&given, &settings).map_err(|error| error.to_string())?;
        known(&given, &settings).map_err(|error| error.to_string())?;
        let text = |one: &ApiServer| format!("{}:{}", one.host, one.port);
        Ok(all.concat().iter().map(text).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn its_own_fields_win_and_without_any_api_server_it_says_what_to_set() {
        let server = |text: &str| ApiServer::of(text).unwrap();
        let cluster = Cluster { api_servers: vec![server("192.0.2.1")], ..Cluster::default() };
        assert_eq!(asked(&cluster, &json!({})).unwrap(), "192.0.2.1:6443");
        let other_port = json!({"kubernetesAPISSLPort": 443});
        assert_eq!(asked(&cluster, &other_port).unwrap(), "192.0.2.1:443");
        let own = json!({"kubernetesAPIServer": "a.example.com,b.example.com:8443"});
        assert_eq!(asked(&cluster, &own).unwrap(), "a.example.com:6443 b.example.com:8443");
        let cluster = Cluster { endpoint: Some(server("vip.example.com:8443")), ..cluster };
        assert_eq!(asked(&cluster, &json!({})).unwrap(), "vip.example.com:8443 192.0.2.1:6443");
        let unknown = asked(&Cluster::default(), &json!({})).unwrap_err();
        assert!(unknown.contains("set spec.serviceConfiguration.kubernetesAPIServer"), "{unknown}");
        assert!(asked(&cluster, &json!({"kubernetesAPIServer": "[::1]:1"})).is_err());
    }

    #[test]
    fn networks_that_cannot_be_read_do_not_become_the_defaults() {
        let api_servers = vec![ApiServer::of("192.0.2.1").unwrap()];
        let unreadable = Some("it is no YAML".to_owned());
        let cluster = Cluster { api_servers, unreadable, ..Cluster::default() };
        assert!(asked(&cluster, &json!({})).unwrap_err().contains("it is no YAML"));
        let own = json!({"podSubnet": "10.1.0.0/16", "serviceSubnet": "10.2.0.0/16"});
        assert!(asked(&cluster, &own).is_ok());
    }

    #[test]
    fn a_token_file_is_a_file_in_a_folder_of_the_node() {
        let (token, folder) = token_file(Some("/etc/kubernetes/token")).unwrap();
        assert_eq!(
            (token.as_str(), folder.unwrap().path.as_str()),
            ("@credentials/given/token@", "/etc/kubernetes")
        );
        assert!(token_file(None).unwrap().1.is_none());
        for wrong in
            ["token", "/token", "/etc/", "/etc/..", "/etc/a b", "/etc/$(id)", "/etc/../x/../"]
        {
            assert!(token_file(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
