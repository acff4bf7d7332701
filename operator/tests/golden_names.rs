//! What things are called, held to a list that does not come from us: `golden_names/upstream.yaml` is what tf-operator's source says,
//! `golden_names/differences.yaml` what is other here on purpose, and why. A running cluster depends on these names: a selector or a
//! service name that differs cannot be written at all, a path that differs is data that is not found, and a file of tf-operator's that
//! changes has all its pods start their daemons again at once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use opensdn_crds::component::COMPONENTS;
use opensdn_operator::build::certificates::{Subject, Wanted, certificates};
use opensdn_pki::{Authorities, Authority, CaProfile, KeyKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::built::ClusterState;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden_names");
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

type Texts = BTreeMap<String, String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Upstream {
    all: All,
    nodemanager: NodeManager,
    kinds: Vec<Kind>,
}

/// What all kinds have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct All {
    objects: Vec<(String, String, bool)>,
    labels: Texts,
    account: String,
    certificates: Vec<String>,
    keys: Vec<String>,
    env: Vec<String>,
    volumes: Texts,
    host_mounts: Texts,
    certificate_mounts: Texts,
    configuration_mount: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeManager {
    volumes: Texts,
    mounts: Texts,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    kind: String,
    #[serde(rename = "type")]
    word: String,
    name: String,
    /// The golden file with an object of it, and what is around that.
    case: String,
    #[serde(default = "stateful_set")]
    workload: String,
    service_name: Option<String>,
    service: Option<(u16, String)>,
    disruption_budget: Option<String>,
    secret: Option<Vec<String>>,
    secret_labels: Option<Texts>,
    #[serde(default)]
    pod_labels: Texts,
    #[serde(default)]
    keys: Vec<String>,
    #[serde(default)]
    config_maps: BTreeMap<String, Vec<String>>,
    #[serde(default = "configuration_volume")]
    configuration_volume: String,
    #[serde(default)]
    init_containers: Vec<Container>,
    #[serde(default)]
    init_certificates: bool,
    #[serde(default)]
    init_configuration: bool,
    containers: Vec<Container>,
    volumes: Texts,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Container {
    name: String,
    #[serde(default)]
    env: Vec<String>,
    #[serde(default)]
    mounts: Texts,
}

/// What is other here.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    because: String,
    /// The kinds that it is about; all, if there are none.
    #[serde(default)]
    of: Vec<String>,
    /// What only tf-operator has. A `*` stands for anything.
    #[serde(default)]
    gone: Vec<String>,
    /// What only we have.
    #[serde(default)]
    more: Vec<String>,
}

fn stateful_set() -> String {
    "StatefulSet".to_owned()
}

fn configuration_volume() -> String {
    "<n>-<type>-volume".to_owned()
}

fn read<Table: DeserializeOwned>(file: &str) -> Table {
    let text = std::fs::read_to_string(Path::new(FOLDER).join(file)).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

/// Lines, each one name.
type Names = BTreeSet<String>;

fn source(text: &str) -> String {
    if text.starts_with('/') { format!("hostPath {text}") } else { text.to_owned() }
}

impl Kind {
    /// As tf-operator has it.
    fn names(&self, upstream: &Upstream) -> Names {
        let mut names = self.objects(&upstream.all);
        names.extend(self.pods(upstream));
        let all = upstream.all.certificates.iter();
        names.extend(all.map(|key| format!("Secret <n>-secret-certificates key {key}")));
        names.iter().map(|name| self.named(name)).collect()
    }

    fn named(&self, text: &str) -> String {
        text.replace("<n>", &self.name).replace("<type>", &self.word)
    }

    fn config_maps(&self) -> BTreeMap<String, Vec<String>> {
        if self.config_maps.is_empty() {
            return [("<type>-configmap".to_owned(), self.keys.clone())].into();
        }
        self.config_maps.clone()
    }

    fn objects(&self, all: &All) -> Names {
        let workload = format!("<n>-<type>-{}", self.workload.to_lowercase());
        let mut objects = all.objects.clone();
        objects.push((self.workload.clone(), workload, true));
        let mut names = Names::new();
        for (name, keys) in self.config_maps() {
            names.extend(keys.iter().chain(&all.keys).map(|key| format!("file {key}")));
            objects.push(("ConfigMap".to_owned(), format!("<n>-{name}"), true));
        }
        let mut selects = |kind: &str, name: &str| {
            objects.push((kind.to_owned(), name.to_owned(), true));
            let labels = all.labels.iter();
            labels
                .map(|(key, value)| format!("{kind} {name} selector {key}={value}"))
                .collect::<Names>()
        };
        if let Some((port, name)) = &self.service {
            names.extend(selects("Service", "<n>-<type>"));
            names.insert(format!("Service <n>-<type> port {name} {port}/TCP"));
        }
        if let Some(name) = &self.disruption_budget {
            names.extend(selects("PodDisruptionBudget", name));
        }
        if let Some(keys) = &self.secret {
            names.extend(keys.iter().map(|key| format!("Secret <n>-secret key {key}")));
            let of_another = self.secret_labels.iter().flatten();
            names.extend(
                of_another.map(|(key, value)| format!("Secret <n>-secret label {key}={value}")),
            );
            objects.push(("Secret".into(), "<n>-secret".into(), self.secret_labels.is_none()));
        }
        for (kind, name, has_labels) in objects {
            let labels = all.labels.iter().filter(|_| has_labels);
            names.extend(labels.map(|(key, value)| format!("{kind} {name} label {key}={value}")));
            names.insert(format!("{kind} {name}"));
        }
        names
    }

    fn pods(&self, upstream: &Upstream) -> Names {
        let all = &upstream.all;
        let mut names = Names::from([format!("account {}", all.account)]);
        for (key, value) in &all.labels {
            names.insert(format!("selector {key}={value}"));
        }
        for (key, value) in all.labels.iter().chain(&self.pod_labels) {
            names.insert(format!("pods label {key}={value}"));
        }
        if self.workload == stateful_set() {
            names.extend(["policy Parallel", "apart <type> In <n>"].map(str::to_owned));
        } else {
            names.insert("apart <type> Exists".to_owned());
        }
        names.extend(self.service_name.iter().map(|name| format!("service name {name}")));
        let in_order = |all: &[Container]| {
            all.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(" ")
        };
        names.insert(format!("containers {}", in_order(&self.containers)));
        if !self.init_containers.is_empty() {
            names.insert(format!("init containers {}", in_order(&self.init_containers)));
        }
        let mut volumes: Texts = all.volumes.iter().chain(&self.volumes).map(clone).collect();
        let files = || "configMap <n>-<type>-configmap".to_owned();
        volumes.entry(self.configuration_volume.clone()).or_insert_with(files);
        if self.containers.iter().any(|one| one.name == "nodemanager") {
            volumes.extend(upstream.nodemanager.volumes.iter().map(clone));
        }
        names.extend(volumes.iter().map(|(name, of)| format!("volume {name} {}", source(of))));
        for one in &self.containers {
            names.extend(self.container(upstream, one, false));
        }
        for one in &self.init_containers {
            names.extend(self.container(upstream, one, true));
        }
        names
    }

    fn container(&self, upstream: &Upstream, container: &Container, is_init: bool) -> Names {
        let all = &upstream.all;
        let mut mounts = all.host_mounts.clone();
        mounts.extend(container.mounts.iter().map(clone));
        if self.volumes.contains_key("contrail-logs") {
            mounts.insert("/var/log/contrail".to_owned(), "contrail-logs".to_owned());
        }
        if !is_init || self.init_certificates {
            mounts.extend(all.certificate_mounts.iter().map(clone));
        }
        if !is_init || self.init_configuration {
            mounts.insert(all.configuration_mount.clone(), self.configuration_volume.clone());
        }
        if container.name == "nodemanager" {
            mounts.extend(upstream.nodemanager.mounts.iter().map(clone));
        }
        let name = &container.name;
        let mounts = mounts.iter().map(|(path, volume)| format!("mount {name} {path} {volume}"));
        let of_all = all.env.iter().filter(|_| !is_init);
        let env = container.env.iter().chain(of_all).map(|one| format!("env {name} {one}"));
        mounts.chain(env).collect()
    }

    /// As we have it, with an image for every container that tf-operator knows.
    fn ours(&self) -> Names {
        let mut around = ClusterState::read(&Path::new(GOLDEN).join(&self.case).join("in.yaml"));
        let all = self.init_containers.iter().chain(&self.containers);
        let images = all.map(|one| {
            let image = format!("registry.example.com/contrail-{}:R24.1", one.name);
            json!({"name": one.name, "image": image})
        });
        around.object["spec"]["serviceConfiguration"]["containers"] = images.collect();
        let intents = around.intents(&around.object).unwrap();
        let mut names = Names::new();
        for intent in intents {
            let object = serde_json::to_value(&intent.object).unwrap();
            assert_eq!(object["kind"], intent.kind.name());
            names.extend(of_object(&object));
            if ["StatefulSet", "DaemonSet"].contains(&intent.kind.name()) {
                names.extend(of_workload(&object["spec"]));
            }
        }
        names.extend(
            certificate_files()
                .iter()
                .map(|key| self.named(&format!("Secret <n>-secret-certificates key {key}"))),
        );
        names.iter().map(|name| without_addresses(name)).collect()
    }
}

fn clone((key, value): (&String, &String)) -> (String, String) {
    (key.clone(), value.clone())
}

/// The files that are issued for an address.
fn certificate_files() -> Vec<String> {
    let now = OffsetDateTime::now_utc();
    let current = Authority::create(&CaProfile::new("CA of a test"), now).unwrap();
    let authorities = Authorities { current, next: None, previous: None };
    let subjects = [Subject { address: "192.0.2.10".to_owned(), host: None }];
    let wanted = Wanted {
        subjects: &subjects,
        key: KeyKind::default(),
        most: 2,
        trusted: &[],
        signer: None,
    };
    certificates(&[], &wanted, &authorities, now, true).unwrap().data.into_keys().collect()
}

/// With `<ip>` in the place of each address of a node.
fn without_addresses(text: &str) -> String {
    const NETWORK: &str = "192.0.2.";
    let Some((before, after)) = text.split_once(NETWORK) else { return text.to_owned() };
    let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{before}<ip>{}", without_addresses(rest))
}

fn pairs<'a>(value: &'a Value, what: &'a str) -> impl Iterator<Item = String> + 'a {
    let all = value.as_object().into_iter().flatten();
    all.map(move |(key, value)| format!("{what} {key}={}", value.as_str().unwrap_or_default()))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn of_object(object: &Value) -> Names {
    let (kind, metadata, spec) = (text(&object["kind"]), &object["metadata"], &object["spec"]);
    let name = format!("{kind} {}", text(&metadata["name"]));
    let mut names: Names = pairs(&metadata["labels"], &format!("{name} label")).collect();
    // What a test has put into it says nothing.
    let has_certificates = name.ends_with("-secret-certificates");
    let keys = object["data"].as_object().into_iter().flatten().filter(|_| !has_certificates);
    names.extend(keys.map(|(key, _)| match kind {
        "ConfigMap" => format!("file {key}"),
        _ => format!("{name} key {key}"),
    }));
    if kind == "Service" {
        names.extend(pairs(&spec["selector"], &format!("{name} selector")));
        names.extend(list(&spec["ports"]).map(|port| {
            let of = port["name"].as_str().unwrap_or("-");
            format!("{name} port {of} {}/{}", port["port"], text(&port["protocol"]))
        }));
    }
    if kind == "PodDisruptionBudget" {
        names.extend(pairs(&spec["selector"]["matchLabels"], &format!("{name} selector")));
    }
    names.insert(name);
    names
}

fn of_workload(spec: &Value) -> Names {
    let pod = &spec["template"]["spec"];
    let mut names: Names = pairs(&spec["selector"]["matchLabels"], "selector").collect();
    names.extend(pairs(&spec["template"]["metadata"]["labels"], "pods label"));
    names.insert(format!("account {}", text(&pod["serviceAccountName"])));
    names.extend(spec["podManagementPolicy"].as_str().map(|policy| format!("policy {policy}")));
    names.extend(spec["serviceName"].as_str().map(|name| format!("service name {name}")));
    let apart = "/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/labelSelector/matchExpressions/0";
    let apart = pod.pointer(apart).unwrap();
    let words = [&apart["key"], &apart["operator"]].into_iter().chain(list(&apart["values"]));
    names.insert(format!("apart {}", words.map(text).collect::<Vec<_>>().join(" ")));
    for (what, field) in [("containers", "containers"), ("init containers", "initContainers")] {
        let all: Vec<&str> = list(&pod[field]).map(|one| text(&one["name"])).collect();
        names.extend((!all.is_empty()).then(|| format!("{what} {}", all.join(" "))));
    }
    for one in list(&pod["containers"]).chain(list(&pod["initContainers"])) {
        let name = text(&one["name"]);
        names.extend(list(&one["volumeMounts"]).map(|mount| {
            format!("mount {name} {} {}", text(&mount["mountPath"]), text(&mount["name"]))
        }));
        names.extend(list(&one["env"]).map(|env| format!("env {name} {}", text(&env["name"]))));
    }
    names.extend(list(&pod["volumes"]).map(|volume| {
        let of = |pointer: &str| volume.pointer(pointer).map(text);
        let (kind, _) = volume.as_object().unwrap().iter().find(|(key, _)| *key != "name").unwrap();
        let target = ["/hostPath/path", "/configMap/name", "/secret/secretName"].into_iter();
        let target = target.filter_map(of).map(|target| format!(" {target}")).collect::<String>();
        format!("volume {} {kind}{target}", text(&volume["name"]))
    }));
    names
}

/// Whether it is that, where a `*` stands for anything.
fn is(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => {
            let rest = name.strip_prefix(start);
            rest.is_some_and(|rest| {
                (0..=rest.len()).any(|at| rest.get(at..).is_some_and(|rest| is(end, rest)))
            })
        }
    }
}

#[test]
fn every_name_is_tf_operators_or_is_another_for_a_reason_that_is_written_down() {
    let upstream: Upstream = read("upstream.yaml");
    let differences: Vec<Difference> = read("differences.yaml");
    let kinds: BTreeSet<&str> = upstream.kinds.iter().map(|kind| kind.kind.as_str()).collect();
    assert_eq!(kinds, COMPONENTS.iter().map(|facts| facts.kind).collect::<BTreeSet<_>>());
    let mut needed = BTreeSet::new();
    let mut wrong = Vec::new();
    for kind in &upstream.kinds {
        let (theirs, ours) = (kind.names(&upstream), kind.ours());
        for (sign, names) in [('-', theirs.difference(&ours)), ('+', ours.difference(&theirs))] {
            for name in names {
                let all = differences.iter().enumerate();
                let of_kind = |one: &Difference| one.of.is_empty() || one.of.contains(&kind.kind);
                let patterns = all.filter(|(_, one)| of_kind(one)).flat_map(|(number, one)| {
                    let patterns = if sign == '-' { &one.gone } else { &one.more };
                    patterns.iter().map(move |pattern| (number, sign, pattern))
                });
                let known: Vec<_> =
                    patterns.filter(|(.., pattern)| is(&kind.named(pattern), name)).collect();
                if known.is_empty() {
                    wrong.push(format!("{} ({}): {sign} {name}", kind.kind, kind.case));
                }
                needed.extend(known);
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "only tf-operator has what is after -, only we what is after +. Where that is on purpose it belongs into differences.yaml, with \
         the reason:\n{}",
        wrong.join("\n")
    );
    for (number, one) in differences.iter().enumerate() {
        assert!(one.because.len() > 20, "{}", one.because);
        for (sign, pattern) in
            one.gone.iter().map(|one| ('-', one)).chain(one.more.iter().map(|one| ('+', one)))
        {
            let is_needed = needed.contains(&(number, sign, pattern));
            assert!(
                is_needed,
                "{sign} {pattern} is no difference: take it out of differences.yaml"
            );
        }
    }
}

/// What a StatefulSet, a DaemonSet or a Service never changes, and where data lies: there no difference can have a reason.
#[test]
fn no_difference_is_about_what_cannot_change() {
    let differences: Vec<Difference> = read("differences.yaml");
    let all = differences.iter().flat_map(|one| one.gone.iter().chain(&one.more));
    let fixed = ["selector ", "policy ", "service name ", "StatefulSet ", "DaemonSet ", "Service "];
    for name in all {
        let is_label = name.contains(" label app.kubernetes.io/");
        let is_fixed = fixed.iter().any(|start| name.starts_with(start)) && !is_label;
        let is_data = name.contains("-data hostPath /var/lib/contrail/");
        // Declared, and mounted nowhere (pkg/controller/{analytics,config,webui}/sts.go).
        let is_unused =
            ["analytics-data", "config-data", "webui-data"].iter().any(|one| name.contains(one));
        assert!(!is_fixed && (!is_data || is_unused), "{name}");
    }
}

/// Pods of tf-operator look at their files, and start their daemons again when one changes: nothing of ours is among these.
#[test]
fn no_object_that_pods_of_tf_operator_read_files_from_is_written() {
    let upstream: Upstream = read("upstream.yaml");
    for kind in &upstream.kinds {
        let theirs: BTreeSet<String> = kind
            .config_maps()
            .keys()
            .map(|name| kind.named(&format!("ConfigMap <n>-{name}")))
            .collect();
        let ours = kind.ours();
        let shared: Vec<_> = ours.intersection(&theirs).collect();
        assert!(shared.is_empty(), "{}: {shared:?}", kind.kind);
    }
}
