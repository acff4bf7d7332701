//! A Manager: services that are one now, that have become two, or that there are no more.

use opensdn_crds::component::{COMPONENTS, Count};
use serde_json::{Map, Value, json};

use super::component::{self, rename};
use super::fields::{put, take};
use super::{Notes, empty, reasons};

const KEYSTONE: &str = "commonConfiguration.authParameters.keystoneSecretName";
const AUTH: &str = "commonConfiguration.authParameters";

/// Lists of which there is one now.
const SINGLE: &[(&str, &str)] = &[("kubemanagers", "kubemanager"), ("zookeepers", "zookeeper")];

/// Containers of Config that are in services of their own now: service, its name, the containers with what they are
/// called there, and the fields with what they are called there.
struct Part {
    service: &'static str,
    name: &'static str,
    is_list: bool,
    containers: &'static [(&'static str, &'static str)],
    fields: &'static [(&'static str, &'static str)],
}

const PARTS: &[Part] = &[
    Part {
        service: "analytics",
        name: "analytics1",
        is_list: false,
        containers: &[
            ("analyticsapi", "analyticsapi"),
            ("collector", "collector"),
            ("nodemanageranalytics", "nodemanager"),
            ("provisioneranalytics", "provisioner"),
        ],
        fields: &[
            ("analyticsConfigAuditTTL", "analyticsConfigAuditTTL"),
            ("analyticsDataTTL", "analyticsDataTTL"),
            ("analyticsFlowTTL", "analyticsFlowTTL"),
            ("analyticsIntrospectPort", "analyticsIntrospectPort"),
            ("analyticsMonitorIntrospectPort", "analyticsIntrospectPort"),
            ("analyticsPort", "analyticsPort"),
            ("analyticsStatisticsTTL", "analyticsStatisticsTTL"),
            ("collectorIntrospectPort", "collectorIntrospectPort"),
            ("collectorMonitorIntrospectPort", "collectorIntrospectPort"),
            ("collectorPort", "collectorPort"),
        ],
    },
    Part {
        service: "queryengine",
        name: "queryengine1",
        is_list: false,
        containers: &[("queryengine", "queryengine")],
        fields: &[],
    },
    Part {
        service: "redis",
        name: "redis1",
        is_list: true,
        containers: &[("redis", "redis"), ("stunnel", "stunnel")],
        fields: &[("redisPort", "redisPort")],
    },
];

/// Converts the spec of a Manager.
pub(super) fn convert(spec: &mut Value, notes: &mut Notes) {
    rename(spec, "keystoneSecretName", KEYSTONE, "spec", notes);
    rename(spec, "keystoneSecretInstance", KEYSTONE, "spec", notes);
    component::log_level(spec, "spec", notes);
    if let Some(services) = spec.get_mut("services") {
        databases(services, notes);
        single(services, notes);
        parts(services, notes);
        vrouter_settings(services, notes);
        without_place(services, notes);
        components(services, notes);
    }
    let of_config = "services.config.spec.commonConfiguration.authParameters";
    let of_config = spec.pointer(&format!("/{}", of_config.replace('.', "/"))).cloned();
    // All components ask the same Keystone, and the Manager says which.
    for (name, value) in of_config.as_ref().and_then(Value::as_object).into_iter().flatten() {
        if put(spec, &format!("{AUTH}.{name}"), value.clone()).is_ok() {
            let field = format!("spec.services.config.spec.{AUTH}.{name}");
            notes.say(&field, format!("is in spec.{AUTH} too"));
        }
    }
}

/// A Cassandra alone had the folder of the configuration (tf-operator R2011, `pkg/controller/cassandra/sts.go:104`). Since release
/// 21.3 one that is alone has that of all databases (`pkg/controller/cassandra/cassandra_controller.go:224`).
fn databases(services: &Value, notes: &mut Notes) {
    let count = |list: &str| services[list].as_array().map_or(0, Vec::len);
    let is_old = SINGLE.iter().any(|(list, _)| count(list) > 0);
    if is_old && count("cassandras") == 1 {
        let said = "keeps its data in /var/lib/contrail/database; those of release 2011 are in /var/lib/contrail/config-database, and \
            a Cassandra that is to have them needs them moved on each node, while none runs";
        notes.say("spec.services.cassandras[0]", said.to_owned());
    }
}

fn single(services: &mut Value, notes: &mut Notes) {
    for (list, one) in SINGLE {
        let Some(Value::Array(items)) = take(services, list) else { continue };
        for (at, item) in items.into_iter().enumerate() {
            let field = format!("spec.services.{list}[{at}]");
            match put(services, one, item) {
                Ok(()) => notes.moved(&field, &format!("spec.services.{one}")),
                Err(_) => notes.dropped(&field, "a cluster has one"),
            }
        }
    }
}

/// Takes what Config had of other services into those.
fn parts(services: &mut Value, notes: &mut Notes) {
    let Some(mut config) = take(services, "config") else { return };
    for part in PARTS {
        let mut settings = part_containers(part, &mut config, notes);
        for (from, to) in part.fields {
            let Some(value) = take(&mut config, &format!("spec.serviceConfiguration.{from}"))
            else {
                continue;
            };
            let field = format!("spec.services.config.spec.serviceConfiguration.{from}");
            let place = format!("spec.services.{}.spec.serviceConfiguration.{to}", part.place());
            match put(&mut settings, to, value) {
                Ok(()) => notes.moved(&field, &place),
                Err(_) => notes.dropped(&field, &format!("{place} is set too, and stays")),
            }
        }
        if settings.as_object().is_some_and(|settings| !settings.is_empty()) {
            part.add(services, settings, &config, notes);
        }
    }
    if let Some(services) = services.as_object_mut() {
        services.insert("config".to_owned(), config);
    }
}

fn part_containers(part: &Part, config: &mut Value, notes: &mut Notes) -> Value {
    let mut settings = empty();
    let Some(Value::Array(containers)) =
        config.pointer_mut("/spec/serviceConfiguration/containers")
    else {
        return settings;
    };
    let mut moved = Vec::new();
    containers.retain(|container| {
        let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
        let Some((_, there)) = part.containers.iter().find(|(one, _)| *one == name) else {
            return true;
        };
        let mut container = container.clone();
        if let Some(container) = container.as_object_mut() {
            container.insert("name".to_owned(), json!(there));
        }
        moved.push(container);
        let field = format!("spec.services.config.spec.serviceConfiguration.containers[{name}]");
        notes.moved(&field, &format!("container {there} of spec.services.{}", part.place()));
        false
    });
    if let Some(settings) = settings.as_object_mut().filter(|_| !moved.is_empty()) {
        settings.insert("containers".to_owned(), Value::Array(moved));
    }
    settings
}

impl Part {
    fn place(&self) -> String {
        if self.is_list { format!("{}[0]", self.service) } else { self.service.to_owned() }
    }

    /// Adds what came from Config to the service, or makes it on the nodes of Config.
    fn add(&self, services: &mut Value, settings: Value, config: &Value, notes: &mut Notes) {
        let there = match self.is_list {
            true => services.pointer_mut(&format!("/{}/0", self.service)),
            false => services.get_mut(self.service),
        };
        if let Some(there) = there.filter(|there| !there.is_null()) {
            let Value::Object(settings) = settings else { return };
            for (name, value) in settings {
                let path = format!("spec.serviceConfiguration.{name}");
                if put(there, &path, value).is_err() {
                    let field = format!("spec.services.config ({name} of {})", self.service);
                    notes.dropped(&field, &format!("{} has {name} already", self.place()));
                }
            }
            return;
        }
        let labels = config.pointer("/metadata/labels").cloned().unwrap_or_else(empty);
        let mut spec = Map::from_iter([("serviceConfiguration".to_owned(), settings)]);
        let common = config.pointer("/spec/commonConfiguration").cloned();
        spec.extend(common.map(|common| ("commonConfiguration".to_owned(), common)));
        let service = json!({"metadata": {"name": self.name, "labels": labels}, "spec": spec});
        let service = if self.is_list { json!([service]) } else { service };
        if let Some(services) = services.as_object_mut() {
            services.insert(self.service.to_owned(), service);
            let place = format!("spec.services.{}", self.place());
            notes.say(&place, format!("added as {}: it was a part of config", self.name));
        }
    }
}

const GLOBAL: &str = "provisionManager.spec.serviceConfiguration.globalVrouterConfiguration";

/// What ProvisionManager set for all vrouters.
fn vrouter_settings(services: &mut Value, notes: &mut Notes) {
    let field = |name: &str| format!("spec.services.{GLOBAL}.{name}");
    if let Some(order) = take(services, &format!("{GLOBAL}.encapPriority")) {
        let order: Vec<&str> =
            order.as_str().unwrap_or_default().split(',').map(str::trim).collect();
        let vrouters = services.get_mut("vrouters").and_then(Value::as_array_mut);
        for vrouter in vrouters.into_iter().flatten() {
            // One that has its own keeps it.
            let _ = put(vrouter, "spec.serviceConfiguration.encapsulationPriorities", json!(order));
        }
        let place = "spec.services.vrouters[].spec.serviceConfiguration.encapsulationPriorities";
        notes.moved(&field("encapPriority"), place);
    }
    let entries = "linkLocalServices.linkLocalServicesEntries";
    if let Some(Value::Array(entries_there)) = take(services, &format!("{GLOBAL}.{entries}")) {
        let many =
            |entry: &Value| entry["ipFabricServiceIP"].as_array().is_some_and(|all| all.len() > 1);
        for (at, _) in entries_there.iter().enumerate().filter(|(_, entry)| many(entry)) {
            let reason =
                "a service has one address here: make a LinkLocalService of opensdn.io with all";
            notes.dropped(&field(&format!("{entries}[{at}].ipFabricServiceIP[1..]")), reason);
        }
        let list: Vec<Value> = entries_there.iter().map(link_local_service).collect();
        let place = "config.spec.serviceConfiguration.linklocalServices";
        match put(services, place, json!(list)) {
            Ok(()) => notes.moved(&field(entries), &format!("spec.services.{place}")),
            Err(_) => notes.dropped(&field(entries), "config has linklocalServices already"),
        }
    }
    for name in ["ecmpHashingIncludeFields", "vxlanNetworkIdentifierMode"] {
        if take(services, &format!("{GLOBAL}.{name}")).is_some() {
            let reason =
                "no kind has it: set it in the global vrouter configuration, by the API or webui";
            notes.dropped(&field(name), reason);
        }
    }
}

fn link_local_service(entry: &Value) -> Value {
    let host = entry.get("ipFabricDNSServiceName").filter(|name| **name != "");
    let host = host.or_else(|| entry.pointer("/ipFabricServiceIP/0"));
    let fields = [
        ("name", entry.get("linkLocalServiceName")),
        ("ip", entry.get("linkLocalServiceIP")),
        ("port", entry.get("linkLocalServicePort")),
        ("ipFabricServiceHost", host),
        ("ipFabricServicePort", entry.get("ipFabricServicePort")),
    ];
    let set =
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.clone())));
    Value::Object(set.collect())
}

fn without_place(services: &mut Value, notes: &mut Notes) {
    let Some(services) = services.as_object_mut() else { return };
    services.retain(|name, _| match reasons::of_service(name) {
        Some(reason) => {
            notes.dropped(&format!("spec.services.{name}"), reason);
            false
        }
        None => true,
    });
}

fn components(services: &mut Value, notes: &mut Notes) {
    for component in COMPONENTS {
        let Some(there) = services.get_mut(component.key) else { continue };
        let path = format!("spec.services.{}", component.key);
        let items = match (component.count, there) {
            (Count::Many, Value::Array(items)) => items
                .iter_mut()
                .enumerate()
                .map(|(at, item)| (format!("{path}[{at}]"), item))
                .collect(),
            (_, one) => vec![(path, one)],
        };
        for (path, item) in items {
            if let Some(spec) = item.get_mut("spec") {
                component::convert(component.kind, spec, &format!("{path}.spec"), notes);
            }
        }
    }
}
