//! What daemons say of themselves (pure): which pages of introspect are asked of the pods that were found. They are had by
//! the API server's proxy, which needs the right to get pods/proxy.

use opensdn_crds::component::{Component, Setting};
use serde_json::Value;

use crate::snapshot::{list, name, namespace, number, text};
use crate::status::owner;

/// The most of one page, in bytes: of an agent with many connections it is long.
pub(crate) const MOST_PAGE: u64 = 2 << 20;

/// A container that answers in introspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct At {
    kind: &'static str,
    container: &'static str,
    /// Its port in the table of components, which says what changes it.
    port: u16,
    /// Of several one works, and the others open no port.
    is_elected: bool,
    pages: &'static [(&'static str, &'static str)],
}

/// How it is, with its connections.
const NODE_STATUS: (&str, &str) = ("node-status", "Snh_SandeshUVECacheReq?x=NodeStatus");
const OWN: &[(&str, &str)] = &[NODE_STATUS];
/// tf-controller, `src/bgp/bgp_peer.sandesh`.
const OF_CONTROL: &[(&str, &str)] = &[
    NODE_STATUS,
    ("bgp-router", "Snh_SandeshUVECacheReq?x=BgpRouterState"),
    // Agents are neighbours too, by XMPP.
    ("bgp-xmpp-neighbors", "Snh_ShowBgpNeighborSummaryReq?search_string="),
    ("routing-instances", "Snh_ShowRoutingInstanceSummaryReq?search_string="),
    ("routes", "Snh_ShowRouteSummaryReq?search_string="),
];
/// tf-controller, `src/vnsw/agent/kstate/kstate.sandesh`, `controller/controller.sandesh`, `oper/agent.sandesh`: what `vif`,
/// `flow` and `nh` show. Of flows it is the first page.
const OF_AGENT: &[(&str, &str)] = &[
    NODE_STATUS,
    ("xmpp", "Snh_AgentXmppConnectionStatusReq"),
    ("interfaces", "Snh_ItfReq?name="),
    ("vif", "Snh_KInterfaceReq?if_id=-1"),
    ("nh", "Snh_KNHReq?nh_id=-1"),
    ("flow", "Snh_KFlowReq?flow_idx=-1&show_evicted=0"),
    ("drop-statistics", "Snh_KDropStatsReq"),
];

const fn at(kind: &'static str, container: &'static str, port: u16) -> At {
    At { kind, container, port, is_elected: false, pages: OWN }
}

const fn elected(kind: &'static str, container: &'static str, port: u16) -> At {
    At { is_elected: true, ..at(kind, container, port) }
}

/// Those that the operator asks, and the DNS of control nodes.
const DAEMONS: &[At] = &[
    at("Analytics", "analyticsapi", 8090),
    at("Analytics", "collector", 8089),
    at("AnalyticsAlarm", "analytics-alarm-gen", 5995),
    at("AnalyticsSnmp", "analytics-snmp-collector", 5920),
    at("AnalyticsSnmp", "analytics-snmp-topology", 5921),
    at("Config", "api", 8084),
    elected("Config", "schematransformer", 8087),
    elected("Config", "servicemonitor", 8088),
    elected("Config", "devicemanager", 8096),
    At { pages: OF_CONTROL, ..at("Control", "control", 8083) },
    at("Control", "dns", 8092),
    elected("Kubemanager", "kubemanager", 8108),
    at("QueryEngine", "queryengine", 8091),
    At { pages: OF_AGENT, ..at("Vrouter", "vrouteragent", 8085) },
];
/// The variable with which an agent listens elsewhere.
const AGENT_PORT: &str = "VROUTER_AGENT_INTROSPECT_PORT";

/// The pages of one daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Daemon {
    /// Whether it may be the one that waits for another to end.
    pub(crate) is_elected: bool,
    /// The file of each page, and its path at the API server.
    pub(crate) pages: Vec<(String, String)>,
}

/// Those whose containers run. `objects` are the components, by their kind.
pub(crate) fn daemons<'o>(
    pods: &[Value],
    object: impl Fn(&Component, &str, &str) -> Option<&'o Value>,
) -> Vec<Daemon> {
    let mut found = Vec::new();
    for pod in pods {
        let Some((facts, name)) = owner(pod) else { continue };
        let spec = object(facts, namespace(pod), name);
        let mine = DAEMONS.iter().filter(|at| at.kind == facts.kind && runs(pod, at.container));
        found.extend(mine.map(|at| at.of(pod, spec)));
    }
    found
}

fn runs(pod: &Value, container: &str) -> bool {
    let mut states = list(pod, "/status/containerStatuses");
    states.any(|one| text(one, "/name") == container && one.pointer("/state/running").is_some())
}

impl At {
    fn of(&self, pod: &Value, object: Option<&Value>) -> Daemon {
        let (place, pod_name) = (namespace(pod), name(pod));
        let scheme = if self.is_plain(pod, object) { "" } else { "https:" };
        let port = self.number(pod, object);
        let proxy = format!("/api/v1/namespaces/{place}/pods/{scheme}{pod_name}:{port}/proxy");
        let container = self.container;
        let page = |(file, page): &(&str, &str)| {
            (
                format!("introspect/{place}/{pod_name}/{container}/{file}.xml"),
                format!("{proxy}/{page}"),
            )
        };
        Daemon { is_elected: self.is_elected, pages: self.pages.iter().map(page).collect() }
    }

    fn setting(&self) -> Option<Setting> {
        let mut ports = Component::of_kind(self.kind)?.ports.iter();
        let is_mine = |port: &&opensdn_crds::component::Port| {
            port.container == self.container && port.number == self.port
        };
        ports.find(is_mine).map(|port| port.setting)
    }

    fn number(&self, pod: &Value, object: Option<&Value>) -> u16 {
        let said = match self.setting() {
            Some(Setting::Field(field)) => object
                .and_then(|one| number(one, &format!("/spec/serviceConfiguration/{field}")))
                .and_then(|said| said.try_into().ok()),
            _ => variable(pod, self.container, AGENT_PORT).and_then(|said| said.parse().ok()),
        };
        said.unwrap_or(self.port)
    }

    /// Agents alone can be set to speak without TLS.
    fn is_plain(&self, pod: &Value, object: Option<&Value>) -> bool {
        if self.kind != "Vrouter" {
            return false;
        }
        let said = |field: &str| {
            object?.pointer(&format!("/spec/serviceConfiguration/{field}"))?.as_bool()
        };
        let of_all = said("sslEnable").unwrap_or(true);
        let of = |name: &str| variable(pod, self.container, name);
        // As the script of the image reads them; the operator does so too.
        let is_encrypted = match (of("INTROSPECT_SSL_ENABLE"), of("SSL_ENABLE")) {
            (None, _) => said("introspectSslEnable").unwrap_or(of_all),
            (Some(""), None | Some("")) => of_all,
            (Some(""), Some(word)) | (Some(word), _) => is_on(word),
        };
        !is_encrypted
    }
}

/// What the agent takes for true.
fn is_on(word: &str) -> bool {
    ["true", "yes", "on", "1"].contains(&&*word.to_ascii_lowercase())
}

/// What a variable of a container says.
fn variable<'p>(pod: &'p Value, container: &str, name: &str) -> Option<&'p str> {
    let container = list(pod, "/spec/containers").find(|one| text(one, "/name") == container)?;
    let said = list(container, "/env").find(|one| text(one, "/name") == name)?;
    Some(text(said, "/value").trim())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_port_is_one_of_its_container_in_the_table_of_components() {
        for at in DAEMONS {
            assert!(at.setting().is_some(), "{at:?}");
        }
    }

    fn pod(word: &str, container: &str, env: Value) -> Value {
        json!({"metadata": {"name": "p", "namespace": "tf", "labels": {"tf_manager": word, word: "x"}},
            "spec": {"containers": [{"name": container, "env": env}]},
            "status": {"containerStatuses": [{"name": container, "state": {"running": {}}},
                {"name": "devicemanager", "state": {"waiting": {}}}]}})
    }

    fn pages(pod: Value, object: Option<Value>) -> Vec<String> {
        let daemons = daemons(&[pod], |_, place, name| {
            assert_eq!((place, name), ("tf", "x"));
            object.as_ref()
        });
        daemons.into_iter().flat_map(|one| one.pages).map(|(_, path)| path).collect()
    }

    #[test]
    fn pages_are_those_of_containers_that_run_at_the_ports_that_they_are_set_to() {
        let object = json!({"spec": {"serviceConfiguration": {"apiIntrospectPort": 9084}}});
        let asked = pages(pod("config", "api", json!([])), Some(object));
        let page = "proxy/Snh_SandeshUVECacheReq?x=NodeStatus";
        assert_eq!(asked, [format!("/api/v1/namespaces/tf/pods/https:p:9084/{page}")]);
        let asked = pages(pod("config", "api", json!([])), None);
        assert_eq!(asked, [format!("/api/v1/namespaces/tf/pods/https:p:8084/{page}")]);
        let env = json!([{"name": AGENT_PORT, "value": "9085"}, {"name": "INTROSPECT_SSL_ENABLE", "value": "False"}]);
        let asked = pages(pod("vrouter", "vrouteragent", env), None);
        assert_eq!(asked.first(), Some(&format!("/api/v1/namespaces/tf/pods/p:9085/{page}")));
        let has = |what: &str| asked.iter().any(|path| path.contains(what));
        assert!(has("Snh_KInterfaceReq") && has("Snh_KNHReq") && has("Snh_KFlowReq"), "{asked:?}");
        let object = json!({"spec": {"serviceConfiguration": {"introspectSslEnable": false}}});
        let asked = pages(pod("vrouter", "vrouteragent", json!([])), Some(object));
        assert!(asked.iter().all(|path| path.contains("/pods/p:8085/")), "{asked:?}");
        let none: [&str; 0] = [];
        assert_eq!(pages(pod("redis", "redis", json!([])), None), none);
    }
}
