//! The bill of materials, in CycloneDX 1.5: the program, each package that is linked into it or into a
//! policy that is in it, and Rust's own libraries.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::graph::{Graph, Id, Package};

/// Which Rust it was built with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// As in `1.95.0`.
    pub rust: String,
    /// What the program was compiled for.
    pub target: String,
}

/// The whole document.
#[must_use]
pub fn bill(graph: &Graph, checksums: &BTreeMap<Id, String>, toolchain: &Toolchain) -> Value {
    let others = graph.packages.iter().filter(|(id, _)| **id != graph.root);
    let mut components: Vec<Value> =
        others.map(|(id, package)| component("library", id, package, checksums.get(id))).collect();
    components.push(json!({
        "type": "library", "bom-ref": standard_library(toolchain), "name": "rust-std",
        "version": toolchain.rust, "licenses": [{"expression": "MIT OR Apache-2.0"}],
        "description": "Rust's standard library and, for targets of musl, the C library that comes with it",
    }));
    let program = graph.packages.get(&graph.root).cloned().unwrap_or_default();
    json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "component": component("application", &graph.root, &program, None),
            "properties": [
                {"name": "opensdn:target", "value": toolchain.target},
                {"name": "opensdn:rust", "value": toolchain.rust},
            ],
        },
        "components": components,
        "dependencies": dependencies(graph, toolchain),
    })
}

fn component(kind: &str, id: &Id, package: &Package, checksum: Option<&String>) -> Value {
    let targets = package.targets.iter();
    let targets: Vec<Value> =
        targets.map(|target| json!({"name": "opensdn:linked-for", "value": target})).collect();
    let mut component = json!({
        "type": kind, "bom-ref": reference(id), "name": id.name, "version": id.version,
        "licenses": [{"expression": package.licence}], "properties": targets,
    });
    let Some(fields) = component.as_object_mut() else { return component };
    if let Some(checksum) = checksum {
        let hash = json!([{"alg": "SHA-256", "content": checksum}]);
        fields.insert("hashes".to_owned(), hash);
    }
    // Ours are in no registry: a scanner that looks them up there would find another's.
    if package.folder.is_none() {
        fields.insert("purl".to_owned(), reference(id).into());
    }
    component
}

fn dependencies(graph: &Graph, toolchain: &Toolchain) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for (id, package) in &graph.packages {
        let mut uses: Vec<String> = package.uses.iter().map(reference).collect();
        if *id == graph.root {
            uses.push(standard_library(toolchain));
        }
        all.push(json!({"ref": reference(id), "dependsOn": uses}));
    }
    all.push(json!({"ref": standard_library(toolchain), "dependsOn": []}));
    all
}

fn standard_library(toolchain: &Toolchain) -> String {
    format!("rust-std@{}", toolchain.rust)
}

/// A package URL.
fn reference(id: &Id) -> String {
    format!("pkg:cargo/{}@{}", id.name, id.version.replace('+', "%2B"))
}
