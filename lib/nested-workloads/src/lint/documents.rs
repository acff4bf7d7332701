//! The documents of manifests: which of them are kube-manager and the CNI agent of nested mode, and what these
//! read.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Kept;
use crate::finding::DocumentId;

/// What switches nested mode on.
pub(super) const MODE: &str = "KUBEMANAGER_NESTED_MODE";
/// What has a meaning in nested mode alone; upstream's spelling.
pub(super) const VROUTER: &str = "KUBERNESTES_NESTED_VROUTER_VIP";

/// Which workload it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    KubeManager,
    CniAgent,
}

impl Role {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::KubeManager => "kube-manager",
            Self::CniAgent => "the CNI agent",
        }
    }
}

/// A Deployment, DaemonSet or StatefulSet of nested mode.
pub(super) struct Workload<'d> {
    pub(super) kept: &'d Kept,
    pub(super) role: Role,
}

/// All documents, and the workloads of nested mode among them.
pub(super) struct Documents<'d> {
    all: &'d [Kept],
    workloads: Vec<Workload<'d>>,
}

impl<'d> Documents<'d> {
    pub(super) fn of(all: &'d [Kept]) -> Self {
        let found = all.iter().filter_map(|kept| Some(Workload { kept, role: role(&kept.value)? }));
        let mut documents = Self { all, workloads: Vec::new() };
        documents.workloads =
            found.filter(|workload| documents.environment(workload).is_nested()).collect();
        documents
    }

    pub(super) fn workloads(&self) -> &[Workload<'d>] {
        &self.workloads
    }

    /// Those of a kind.
    pub(super) fn of_kind(&self, kind: &'static str) -> impl Iterator<Item = &'d Kept> {
        self.all.iter().filter(move |kept| text(&kept.value, "/kind") == kind)
    }

    /// What a workload's containers read, as far as it is among the documents. A variable by itself wins over one
    /// of a ConfigMap.
    pub(super) fn environment(&self, workload: &Workload<'d>) -> Environment<'d> {
        let mut environment = Environment { all: BTreeMap::new(), is_whole: true };
        for (index, container) in workload.containers() {
            for source in list(container, "/envFrom") {
                let maps = self.config_maps(workload, text(source, "/configMapRef/name"));
                environment.is_whole &= !maps.is_empty();
                maps.into_iter().for_each(|map| environment.add_map(map));
            }
            for (number, variable) in list(container, "/env").enumerate() {
                let pointer = format!("/spec/template/spec/containers/{index}/env/{number}");
                let value = variable.get("value").and_then(Value::as_str);
                let id = workload.id();
                environment.all.insert(text(variable, "/name"), Variable { id, pointer, value });
            }
        }
        environment
    }

    /// The ConfigMaps that a workload takes whole.
    pub(super) fn maps_of(&self, workload: &Workload<'d>) -> Vec<&'d Kept> {
        let sources = workload.containers().flat_map(|(_, one)| list(one, "/envFrom"));
        sources
            .flat_map(|one| self.config_maps(workload, text(one, "/configMapRef/name")))
            .collect()
    }

    /// Those of a name in the workload's own text; where it has none, in the others, for each cluster's manifest
    /// may have one of the same name.
    fn config_maps(&self, workload: &Workload<'d>, name: &str) -> Vec<&'d Kept> {
        let namespace = text(workload.document(), "/metadata/namespace");
        let found = self.of_kind("ConfigMap").filter(|map| {
            !name.is_empty()
                && text(&map.value, "/metadata/name") == name
                && text(&map.value, "/metadata/namespace") == namespace
        });
        let (near, far): (Vec<_>, Vec<_>) =
            found.partition(|map| map.id.text == workload.id().text);
        if near.is_empty() { far } else { near }
    }
}

/// What containers read.
pub(super) struct Environment<'d> {
    all: BTreeMap<&'d str, Variable<'d>>,
    /// Whether all that they take whole is among the documents.
    is_whole: bool,
}

/// A variable of a container.
pub(super) struct Variable<'d> {
    pub(super) id: DocumentId,
    pub(super) pointer: String,
    /// None where it is a reference.
    pub(super) value: Option<&'d str>,
}

impl<'d> Environment<'d> {
    fn add_map(&mut self, map: &'d Kept) {
        let data = map.value.get("data").and_then(Value::as_object).into_iter().flatten();
        self.all.extend(data.map(|(key, value)| {
            let pointer = format!("/data/{key}");
            (key.as_str(), Variable { id: map.id, pointer, value: value.as_str() })
        }));
    }

    pub(super) fn get(&self, name: &str) -> Option<&Variable<'d>> {
        self.all.get(name)
    }

    /// The text of a variable: nothing where it is a reference, or in a document that is not there.
    pub(super) fn known(&self, name: &str, default: &'d str) -> Option<&'d str> {
        match self.get(name) {
            Some(variable) => variable.value,
            None => self.is_whole.then_some(default),
        }
    }

    /// The same images run beside vrouters of their own. What is not known may be of nested mode.
    fn is_nested(&self) -> bool {
        let has_vrouter = self.known(VROUTER, "").is_some_and(|address| !address.is_empty());
        has_vrouter || !matches!(self.known(MODE, "0"), Some("0" | ""))
    }
}

impl<'d> Workload<'d> {
    pub(super) fn id(&self) -> DocumentId {
        self.kept.id
    }

    pub(super) fn document(&self) -> &'d Value {
        &self.kept.value
    }

    pub(super) fn containers(&self) -> impl Iterator<Item = (usize, &'d Value)> {
        list(self.document(), "/spec/template/spec/containers").enumerate()
    }
}

/// Whether an object is kube-manager or the CNI agent that only nested mode has.
#[must_use]
pub fn is_workload(document: &Value) -> bool {
    role(document).is_some()
}

/// By the image, whose name is upstream's in every release, else by the name.
fn role(document: &Value) -> Option<Role> {
    if !["DaemonSet", "Deployment", "StatefulSet"].contains(&text(document, "/kind")) {
        return None;
    }
    let images = list(document, "/spec/template/spec/containers").map(|one| text(one, "/image"));
    let is_of = |image: &str, name: &str| {
        let end = image.rsplit('/').next().unwrap_or_default();
        end.split([':', '@']).next().is_some_and(|end| end.ends_with(name))
    };
    let has = |name: &str| images.clone().any(|image| is_of(image, name));
    let called = |name: &str| text(document, "/metadata/name").ends_with(name);
    if has("kubernetes-kube-manager") || called("kube-manager") {
        Some(Role::KubeManager)
    } else if has("kubernetes-cni-init") || called("kubernetes-cni-agent") {
        // Without nested mode the same image is an init container.
        Some(Role::CniAgent)
    } else {
        None
    }
}

/// Empty where it is none.
pub(super) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn list<'v>(
    value: &'v Value,
    pointer: &str,
) -> impl Iterator<Item = &'v Value> + Clone + use<'v> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}
