//! The documents of a manifest: which of them are kube-manager and the CNI agent, and what these read.

use std::collections::BTreeMap;

use serde_json::Value;

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
    pub(super) at: usize,
    pub(super) document: &'d Value,
    pub(super) role: Role,
}

/// All documents, and the workloads among them.
pub(super) struct Documents<'d> {
    all: &'d [Value],
    workloads: Vec<Workload<'d>>,
}

impl<'d> Documents<'d> {
    pub(super) fn of(all: &'d [Value]) -> Self {
        let workloads = all.iter().enumerate().filter_map(|(at, document)| {
            let role = role(document)?;
            Some(Workload { at, document, role })
        });
        Self { all, workloads: workloads.collect() }
    }

    pub(super) fn workloads(&self) -> &[Workload<'d>] {
        &self.workloads
    }

    /// Those of a kind, with their places.
    pub(super) fn of_kind(&self, kind: &'static str) -> impl Iterator<Item = (usize, &'d Value)> {
        let numbered = self.all.iter().enumerate();
        numbered.filter(move |(_, document)| text(document, "/kind") == kind)
    }

    /// The variables of a workload's containers that are written in the manifest, with where they are. A
    /// variable by itself wins over one of a ConfigMap.
    pub(super) fn environment(&self, workload: &Workload<'d>) -> BTreeMap<&'d str, Variable<'d>> {
        let mut all = BTreeMap::new();
        for (index, container) in workload.containers() {
            for source in list(container, "/envFrom") {
                let name = text(source, "/configMapRef/name");
                for (at, map) in self.config_maps(workload, name) {
                    let data = map.get("data").and_then(Value::as_object).into_iter().flatten();
                    all.extend(data.map(|(key, value)| {
                        let pointer = format!("/data/{key}");
                        (key.as_str(), Variable { at, pointer, value: value.as_str() })
                    }));
                }
            }
            for (number, variable) in list(container, "/env").enumerate() {
                let pointer = format!("/spec/template/spec/containers/{index}/env/{number}");
                let value = variable.get("value").and_then(Value::as_str);
                all.insert(text(variable, "/name"), Variable { at: workload.at, pointer, value });
            }
        }
        all
    }

    fn config_maps<'s>(
        &'s self,
        workload: &'s Workload<'d>,
        name: &'s str,
    ) -> impl Iterator<Item = (usize, &'d Value)> {
        let namespace = text(workload.document, "/metadata/namespace");
        self.of_kind("ConfigMap").filter(move |(_, map)| {
            !name.is_empty()
                && text(map, "/metadata/name") == name
                && text(map, "/metadata/namespace") == namespace
        })
    }
}

/// A variable of a container.
pub(super) struct Variable<'d> {
    pub(super) at: usize,
    pub(super) pointer: String,
    /// None where it is a reference.
    pub(super) value: Option<&'d str>,
}

impl<'d> Workload<'d> {
    pub(super) fn containers(&self) -> impl Iterator<Item = (usize, &'d Value)> {
        list(self.document, "/spec/template/spec/containers").enumerate()
    }
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
