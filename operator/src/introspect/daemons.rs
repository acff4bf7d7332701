//! Which daemons of a pod are asked, and where.

use kube::api::DynamicObject;
use opensdn_crds::component::{Component, Setting};
use serde_json::Value;

use crate::object::{list, text};

/// A daemon with introspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Daemon {
    pub(super) kind: &'static str,
    pub(super) container: &'static str,
    /// Its port, unless a field of the settings says another.
    pub(super) port: u16,
    /// Whether of several one works, and the others open no port until it ends (tf-controller: `introspect_init` in
    /// `schema_transformer/to_bgp.py:804`, `svc_monitor.py:920`, `dm_server.py:101`, `kube_manager.py:193`).
    pub(super) has_backups: bool,
}

const fn daemon(kind: &'static str, container: &'static str, port: u16) -> Daemon {
    Daemon { kind, container, port, has_backups: false }
}

const fn one_works(kind: &'static str, container: &'static str, port: u16) -> Daemon {
    Daemon { has_backups: true, ..daemon(kind, container, port) }
}

/// Those that contrail-status asks. Deliberately not here: node managers, which say how machines are; they are not functional
/// where a clock is not synchronised, though everything works. Nor the DNS of Control, which contrail-status does not ask
/// either (tf-controller, `src/sandesh/common/vns.sandesh:148`): it answers nothing while it reads its configuration.
pub(super) const DAEMONS: [Daemon; 13] = [
    daemon("Analytics", "analyticsapi", 8090),
    daemon("Analytics", "collector", 8089),
    daemon("AnalyticsAlarm", "analytics-alarm-gen", 5995),
    daemon("AnalyticsSnmp", "analytics-snmp-collector", 5920),
    daemon("AnalyticsSnmp", "analytics-snmp-topology", 5921),
    daemon("Config", "api", 8084),
    one_works("Config", "devicemanager", 8096),
    one_works("Config", "schematransformer", 8087),
    one_works("Config", "servicemonitor", 8088),
    daemon("Control", "control", 8083),
    one_works("Kubemanager", "kubemanager", 8108),
    daemon("QueryEngine", "queryengine", 8091),
    daemon("Vrouter", "vrouteragent", 8085),
];

/// By how much the ports of further workers of the Config API are above that of the first (tf-operator,
/// `pkg/apis/tf/v1alpha1/config_types.go:190`).
const WORKERS_ABOVE: u16 = 10_000;
/// Workers that are asked.
const MOST_WORKERS: u16 = 32;

/// The variable by which an agent listens elsewhere (tf-container-builder, `containers/vrouter/agent/entrypoint.sh`).
const AGENT_PORT: &str = "VROUTER_AGENT_INTROSPECT_PORT";

impl Daemon {
    /// Where its processes listen with these settings (`spec` of its component): one, but for workers of the Config API.
    pub(super) fn ports_of(&self, spec: &Value) -> Vec<u16> {
        let first = self.port_of(spec);
        let workers = spec.pointer("/serviceConfiguration/apiWorkerCount").and_then(Value::as_u64);
        let workers = workers.and_then(|count| u16::try_from(count).ok()).unwrap_or(1);
        let more = if self.container == "api" { workers.clamp(1, MOST_WORKERS) - 1 } else { 0 };
        let more =
            (0..more).filter_map(|worker| first.checked_add(WORKERS_ABOVE)?.checked_add(worker));
        std::iter::once(first).chain(more).collect()
    }

    fn port_of(&self, spec: &Value) -> u16 {
        let settings = spec.pointer("/serviceConfiguration").unwrap_or(&Value::Null);
        let number =
            |value: Option<&Value>| value?.as_u64().and_then(|port| u16::try_from(port).ok());
        if self.kind == "Vrouter" {
            let variable = settings.pointer(&format!("/envVariablesConfig/{AGENT_PORT}"));
            let variable =
                variable.and_then(Value::as_str).and_then(|port| port.trim().parse().ok());
            return variable.unwrap_or(self.port);
        }
        let ports = Component::of_kind(self.kind).map_or(&[][..], |facts| facts.ports);
        let known =
            ports.iter().find(|one| one.container == self.container && one.number == self.port);
        match known.map(|one| one.setting) {
            Some(Setting::Field(field)) => number(settings.get(field)).unwrap_or(self.port),
            _ => self.port,
        }
    }

    /// Whether it speaks without TLS with these settings: agents alone can be set so.
    pub(super) fn is_plain(&self, spec: &Value) -> bool {
        let settings = spec.pointer("/serviceConfiguration").unwrap_or(&Value::Null);
        let switch = |field: &str| settings.get(field).and_then(Value::as_bool);
        let variable = |name: &str| {
            let variable = settings.get("envVariablesConfig").and_then(|all| all.get(name));
            variable.and_then(Value::as_str).map(str::trim)
        };
        // The words that the agent takes for true, in whose file the script writes it as it is; an empty one falls to that
        // of all (tf-container-builder, `containers/base/common.sh:330`, `containers/vrouter/agent/actions.sh:357-376`).
        let is_on = |word: &str| ["true", "yes", "on", "1"].contains(&&*word.to_ascii_lowercase());
        let of_all = switch("sslEnable").unwrap_or(true);
        let is_encrypted = match (variable("INTROSPECT_SSL_ENABLE"), variable("SSL_ENABLE")) {
            (None, _) => switch("introspectSslEnable").unwrap_or(of_all),
            (Some(""), None | Some("")) => of_all,
            (Some(""), Some(word)) | (Some(word), _) => is_on(word),
        };
        self.kind == "Vrouter" && !is_encrypted
    }

    /// Whether it may listen at another address than that of its pod: an agent that is to listen at the vrouter's alone
    /// (tf-container-builder, `containers/vrouter/agent/actions.sh:146-149`).
    pub(super) fn may_listen_elsewhere(&self, spec: &Value) -> bool {
        let word = text(spec, "/serviceConfiguration/envVariablesConfig/INTROSPECT_LISTEN_ALL");
        self.kind == "Vrouter" && !word.is_empty() && !word.trim().eq_ignore_ascii_case("true")
    }

    /// Whether its container runs in that pod.
    pub(super) fn runs_in(&self, pod: &DynamicObject) -> bool {
        let mut containers = list(&pod.data, "/status/containerStatuses");
        containers.any(|one| {
            text(one, "/name") == self.container && one.pointer("/state/running").is_some()
        })
    }
}

#[cfg(test)]
mod tests {
    use opensdn_crds::component::COMPONENTS;
    use serde_json::json;

    use super::*;

    fn named(container: &str) -> Daemon {
        *DAEMONS.iter().find(|one| one.container == container).unwrap()
    }

    #[test]
    fn each_is_a_container_of_its_kind_that_has_the_port() {
        for one in DAEMONS {
            let facts = COMPONENTS.iter().find(|facts| facts.kind == one.kind).unwrap();
            let has = |port: &opensdn_crds::component::Port| {
                (port.container, port.number) == (one.container, one.port)
            };
            assert!(facts.ports.iter().any(has), "{one:?}");
        }
    }

    #[test]
    fn a_field_or_a_variable_moves_a_port() {
        let with = |settings: Value| json!({"serviceConfiguration": settings});
        assert_eq!(named("api").port_of(&Value::Null), 8084);
        assert_eq!(named("api").port_of(&with(json!({"apiIntrospectPort": 9084}))), 9084);
        // What is out of range is refused elsewhere.
        assert_eq!(named("api").port_of(&with(json!({"apiIntrospectPort": 70000}))), 8084);
        // No field moves this one, whatever it is called.
        assert_eq!(named("control").port_of(&with(json!({"introspectPort": 9083}))), 8083);
        let agent = |port: &str| with(json!({"envVariablesConfig": {AGENT_PORT: port}}));
        assert_eq!(named("vrouteragent").port_of(&agent("9085")), 9085);
        assert_eq!(named("vrouteragent").port_of(&agent("x")), 8085);
    }

    #[test]
    fn each_worker_of_the_config_api_is_asked() {
        let with = |settings: Value| json!({"serviceConfiguration": settings});
        let three = with(json!({"apiWorkerCount": 3, "apiIntrospectPort": 9084}));
        assert_eq!(named("api").ports_of(&three), [9084, 19_084, 19_085]);
        assert_eq!(named("schematransformer").ports_of(&three), [8087]);
        assert_eq!(named("api").ports_of(&with(json!({"apiWorkerCount": 0}))), [8084]);
        let many = with(json!({"apiWorkerCount": 60_000, "apiIntrospectPort": 65_000}));
        assert_eq!(named("api").ports_of(&many), [65_000], "no port is above all");
    }

    #[test]
    fn an_agent_may_be_set_to_listen_elsewhere() {
        let with = |word: &str| json!({"serviceConfiguration": {"envVariablesConfig": {"INTROSPECT_LISTEN_ALL": word}}});
        let agent = named("vrouteragent");
        assert!(
            agent.may_listen_elsewhere(&with("False"))
                && !agent.may_listen_elsewhere(&with("True"))
        );
        assert!(
            !agent.may_listen_elsewhere(&Value::Null)
                && !named("api").may_listen_elsewhere(&with("False"))
        );
    }

    #[test]
    fn an_agent_may_be_set_to_speak_without_tls() {
        let agent = named("vrouteragent");
        let with = |settings: Value| json!({"serviceConfiguration": settings});
        assert!(!agent.is_plain(&Value::Null));
        assert!(agent.is_plain(&with(json!({"introspectSslEnable": false}))));
        assert!(agent.is_plain(&with(json!({"sslEnable": false}))));
        assert!(!agent.is_plain(&with(json!({"sslEnable": false, "introspectSslEnable": true}))));
        let variable =
            |word: &str| with(json!({"envVariablesConfig": {"INTROSPECT_SSL_ENABLE": word}}));
        assert!(agent.is_plain(&variable("False")) && !agent.is_plain(&variable("True")));
        assert!(!agent.is_plain(&variable("1")) && !agent.is_plain(&variable("")));
        let of_all = json!({"INTROSPECT_SSL_ENABLE": "", "SSL_ENABLE": "no"});
        assert!(agent.is_plain(&with(json!({"envVariablesConfig": of_all}))));
        assert!(!named("api").is_plain(&with(json!({"sslEnable": false}))), "of agents alone");
    }

    #[test]
    fn who_does_not_run_is_not_asked() {
        let pod = |state: Value| -> DynamicObject {
            serde_json::from_value(json!({"metadata": {"name": "p"},
                "status": {"containerStatuses": [{"name": "control", "state": state}]}}))
            .unwrap()
        };
        assert!(named("control").runs_in(&pod(json!({"running": {}}))));
        assert!(!named("control").runs_in(&pod(json!({"waiting": {}}))));
        assert!(!named("api").runs_in(&pod(json!({"running": {}}))));
    }
}
