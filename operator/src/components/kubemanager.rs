//! Kubemanager: turns what Kubernetes wants into configuration of OpenSDN. Of several one works, which ZooKeeper
//! chooses; only that has introspect.

mod cluster;
mod nested;

use opensdn_crds::component::{self, Component};
use opensdn_crds::kubemanager::KubemanagerConfiguration;
use serde_json::json;

use self::cluster::{api_servers, known, token_file};
use super::shared::around::{around, credentials, passwords};
use super::shared::{logs, port};
use crate::cluster::words;
use crate::component::{
    Check, ComponentKind, Container, Description, File, Given, Introspect, Nested, SettingsError,
    Template,
};

/// The kind Kubemanager.
pub(super) struct Kubemanager;

const IP_FABRIC_SUBNETS: &str = "10.64.0.0/12";
/// Not asked: there is a token, so it asks by TLS.
const PLAIN_PORT: u16 = 8080;
const INTROSPECT: u16 = component::row("Kubemanager").fixed_port("kubemanager");
const CHECK: &str = "bash /etc/contrailconfigmaps/check-kubemanager.sh";

impl ComponentKind for Kubemanager {
    fn facts(&self) -> &'static Component {
        const { component::row("Kubemanager") }
    }

    fn templates(&self) -> &'static [Template] {
        &[
            template!("kubemanager/answers.sh"),
            template!("kubemanager/run-kubemanager.sh"),
            template!("kubemanager/check-kubemanager.sh"),
            template!("kubemanager/kubemanager.ini"),
            template!("kubemanager/api-servers.ini"),
        ]
    }

    fn describe(&self, given: &Given<'_>) -> Result<Description, SettingsError> {
        let settings: KubemanagerConfiguration = given.settings()?;
        let cluster = given.cluster;
        let [preferred, servers] = api_servers(given, &settings)?;
        known(given, &settings)?;
        let (token, folder) = token_file(settings.kubernetes_token_file.as_deref())?;
        let pool = format!(
            "{{'project' : '{}-default', 'domain': 'default-domain', 'name': '__fip_pool_public__' , 'network' : \
             '__public__'}}",
            cluster.name
        );
        let yes = |given: Option<bool>, default: bool| given.unwrap_or(default).to_string();
        Ok(Description {
            containers: vec![Container {
                name: "kubemanager",
                check: Check::Command(CHECK.to_owned()),
                introspect: Introspect::of_elected(INTROSPECT),
                requests: ("50m", "192Mi"),
                ..Container::default()
            }],
            files: vec![
                File::shared("run-kubemanager.sh", "kubemanager/run-kubemanager.sh"),
                File::shared("check-kubemanager.sh", "kubemanager/check-kubemanager.sh"),
                File::of_pod("kubemanager", "kubemanager/kubemanager.ini"),
                File::of_pod("api-servers", "kubemanager/api-servers.ini"),
                File::of_pod("vnc_api_lib.ini", "common/vnc_api_lib.ini"),
            ],
            values: json!({
                "orchestrator": text(settings.cloud_orchestrator, "kubernetes"),
                "token": token,
                "preferred": preferred,
                "servers": servers,
                "plain_port": port(settings.kubernetes_api_port, PLAIN_PORT),
                "cluster": cluster.name,
                "pod_subnets": subnets(settings.pod_subnet, &cluster.pod_subnets.join(" ")),
                "service_subnets": subnets(settings.service_subnet, &cluster.service_subnets.join(" ")),
                "ip_fabric_subnets": subnets(settings.ip_fabric_subnets, IP_FABRIC_SUBNETS),
                "ip_fabric_forwarding": yes(settings.ip_fabric_forwarding, false),
                "ip_fabric_snat": yes(settings.ip_fabric_snat, true),
                "host_network_service": yes(settings.host_network_service, false),
                "public_fip_pool": text(settings.public_fip_pool, &pool),
                "around": around(given),
            }),
            volumes: vec![logs("/var/log/contrail/kubemanager")],
            passwords: passwords(given),
            credentials: credentials(given),
            token: folder.is_none(),
            folders_of_node: folder.into_iter().collect(),
            depends_on_release: true,
            ..Description::default()
        })
    }

    fn takes_nested(&self) -> bool {
        true
    }

    fn nested(&self, given: &Given<'_>) -> Result<Option<Nested>, SettingsError> {
        nested::nested(given)
    }
}

fn text(given: Option<String>, default: &str) -> String {
    given.filter(|given| !given.trim().is_empty()).unwrap_or_else(|| default.to_owned())
}

/// With spaces between, whatever white space was given. Of separators alone there is no network.
fn subnets(given: Option<String>, default: &str) -> String {
    let spaced = |text: &str| words(text).collect::<Vec<_>>().join(" ");
    let given = spaced(given.as_deref().unwrap_or_default());
    if given.is_empty() { spaced(default) } else { given }
}

#[cfg(test)]
mod tests {
    use super::subnets;

    #[test]
    fn networks_are_separated_by_any_white_space() {
        let given = "10.64.0.0/12\t10.80.0.0/12, 10.96.0.0/12\n".to_owned();
        assert_eq!(subnets(Some(given), ""), "10.64.0.0/12 10.80.0.0/12 10.96.0.0/12");
        assert_eq!(subnets(None, "10.64.0.0/12"), "10.64.0.0/12");
        assert_eq!(subnets(Some(" , ".to_owned()), "10.64.0.0/12"), "10.64.0.0/12");
    }
}
