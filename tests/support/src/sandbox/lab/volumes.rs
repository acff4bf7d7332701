//! Volumes for claims of the default StorageClass: each a file system of the size that was asked
//! for, on the disk of the node that the scheduler chose. It is full when it is full, which a
//! directory (what rancher's local-path-provisioner makes) is not, and it survives the node's
//! restart. Deliberately not here: binding, which Kubernetes does itself.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tokio::task::JoinHandle;

use super::LabError;
use super::node::Node;
use super::wiring::NODE_FOLDER;

/// The name of the default StorageClass.
pub const STORAGE_CLASS: &str = "lab-local";
const PROVISIONER: &str = "opensdn.io/lab";
/// Written by the scheduler once it has chosen.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const ANNOTATION: &str = "pv.kubernetes.io/provisioned-by";
/// Where a node mounts them.
const MOUNTS: &str = "/var/lib/lab-volumes";
/// The files of a fault that fills a volume.
const FILL: &str = ".filled-by-the-lab";
const POLL_INTERVAL: Duration = Duration::from_millis(300);
/// A smaller file system would hold little but its own tables.
const SMALLEST: u64 = 16 << 20;

/// Makes volumes for claims, and removes those whose claims are gone.
pub(super) struct Provisioner {
    task: JoinHandle<()>,
}

impl Provisioner {
    pub(super) fn start(client: Client, nodes: Vec<Arc<Node>>) -> Self {
        let task = tokio::spawn(async move {
            let work = Work { client, nodes };
            loop {
                // A node or the API server may be away, perhaps because a test wants it so:
                // what failed is tried again.
                if let Err(error) = work.step().await {
                    tracing::debug!(error = &error as &dyn std::error::Error, "volumes");
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        });
        Self { task }
    }

    pub(super) fn stop(&self) {
        self.task.abort();
    }
}

struct Work {
    client: Client,
    nodes: Vec<Arc<Node>>,
}

/// A volume to be made.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    volume: String,
    node: String,
    bytes: u64,
    claim: serde_json::Value,
    modes: Vec<String>,
}

impl Work {
    async fn step(&self) -> Result<(), LabError> {
        let all = ListParams::default();
        let claims: Api<PersistentVolumeClaim> = Api::all(self.client.clone());
        let claims = claims.list(&all).await.map_err(asked("list claims"))?;
        for wanted in claims.items.iter().filter_map(wanted) {
            self.make(&wanted).await?;
        }
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let listed = volumes.list(&all).await.map_err(asked("list volumes"))?;
        for volume in listed.items.iter().filter(|volume| is_released(volume)) {
            self.remove(&volumes, volume).await?;
        }
        Ok(())
    }

    async fn make(&self, wanted: &Wanted) -> Result<(), LabError> {
        let Some(node) = self.nodes.iter().find(|node| node.name() == wanted.node) else {
            return Ok(());
        };
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        if volumes.get_opt(&wanted.volume).await.map_err(asked("read a volume"))?.is_some() {
            return Ok(());
        }
        let image = image(node, &wanted.volume);
        if !image.exists() {
            File::create(&image)
                .and_then(|file| file.set_len(wanted.bytes.max(SMALLEST)))
                .map_err(|source| LabError::Files { path: image, source })?;
            node.running()?.machine.run("make a file system", &format(&wanted.volume))?;
        }
        node.running()?.machine.run("mount a volume", &mount(&wanted.volume))?;
        let object = serde_json::from_value(object(wanted)).map_err(|error| {
            let source = Box::new(kube::Error::SerdeError(error));
            LabError::ApiServer { what: "describe a volume".into(), source }
        })?;
        let created = volumes.create(&PostParams::default(), &object).await;
        created.map(drop).map_err(asked("create a volume"))
    }

    async fn remove(
        &self,
        volumes: &Api<PersistentVolume>,
        volume: &PersistentVolume,
    ) -> Result<(), LabError> {
        let name = volume.name_any();
        let holder = self.nodes.iter().find(|node| image(node, &name).exists());
        if let Some(node) = holder {
            node.running()?.machine.run("unmount a volume", &unmount(&name))?;
            let path = image(node, &name);
            fs::remove_file(&path).map_err(|source| LabError::Files { path, source })?;
        }
        let deleted = volumes.delete(&name, &DeleteParams::default()).await;
        deleted.map(drop).map_err(asked("delete a volume"))
    }
}

fn asked(what: &str) -> impl FnOnce(kube::Error) -> LabError {
    let what = what.to_owned();
    move |source| LabError::ApiServer { what, source: Box::new(source) }
}

/// Mounts what the disk of a node that starts again holds.
pub(super) fn mount_all() -> String {
    format!(
        "for file in {NODE_FOLDER}/volumes/*.img; do\n\
         [ -e \"$file\" ] || continue\n\
         name=$(basename \"$file\" .img)\n\
         mkdir -p {MOUNTS}/$name\n\
         mount -o loop \"$file\" {MOUNTS}/$name\n\
         done\n"
    )
}

pub(super) fn image(node: &Node, volume: &str) -> PathBuf {
    node.folder().join("volumes").join(format!("{volume}.img"))
}

fn format(volume: &str) -> String {
    format!("mkfs.ext4 -q -F -m 0 -O ^has_journal {NODE_FOLDER}/volumes/{volume}.img\n")
}

/// Anyone may write, as into a fresh directory of any provisioner.
fn mount(volume: &str) -> String {
    format!(
        "mkdir -p {MOUNTS}/{volume}\n\
         mountpoint -q {MOUNTS}/{volume} || \
         mount -o loop {NODE_FOLDER}/volumes/{volume}.img {MOUNTS}/{volume}\n\
         rmdir {MOUNTS}/{volume}/lost+found 2>/dev/null || true\n\
         chmod 777 {MOUNTS}/{volume}\n"
    )
}

/// Writes until there is no room left; that this fails is the aim.
pub(super) fn fill(volume: &str) -> String {
    format!(
        "for size in 1M 4k 1; do\n\
         dd if=/dev/zero bs=$size of={MOUNTS}/{volume}/{FILL}-$size 2>/dev/null || true\n\
         done\n"
    )
}

/// Removes what [`fill`] wrote.
pub(super) fn empty(volume: &str) -> String {
    format!("rm -f {MOUNTS}/{volume}/{FILL}-*\n")
}

fn unmount(volume: &str) -> String {
    format!("umount {MOUNTS}/{volume} || true\nrmdir {MOUNTS}/{volume} || true\n")
}

/// What a claim asks of us; none when it is another's, has its volume, or no node yet.
fn wanted(claim: &PersistentVolumeClaim) -> Option<Wanted> {
    let spec = claim.spec.as_ref()?;
    let is_ours = spec.storage_class_name.as_deref() == Some(STORAGE_CLASS);
    if !is_ours || spec.volume_name.is_some() {
        return None;
    }
    let size = spec.resources.as_ref()?.requests.as_ref()?.get("storage")?;
    Some(Wanted {
        volume: format!("pvc-{}", claim.uid()?),
        node: claim.annotations().get(SELECTED_NODE)?.clone(),
        bytes: bytes(&size.0)?,
        claim: json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": claim.namespace(),
            "name": claim.name_any(),
            "uid": claim.uid(),
            "resourceVersion": claim.resource_version(),
        }),
        modes: spec.access_modes.clone().unwrap_or_default(),
    })
}

fn object(wanted: &Wanted) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": wanted.volume,
            "annotations": BTreeMap::from([(ANNOTATION, PROVISIONER)]),
        },
        "spec": {
            "capacity": {"storage": wanted.bytes.to_string()},
            "accessModes": wanted.modes,
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": STORAGE_CLASS,
            "claimRef": wanted.claim,
            "local": {"path": format!("{MOUNTS}/{}", wanted.volume)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": [wanted.node]},
            ]}]}},
        },
    })
}

fn is_released(volume: &PersistentVolume) -> bool {
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    let is_ours = volume.annotations().get(ANNOTATION).is_some_and(|by| by == PROVISIONER);
    is_ours && phase == Some("Released")
}

/// A quantity of bytes as Kubernetes writes it.
fn bytes(quantity: &str) -> Option<u64> {
    let units: [(&str, u64); 9] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
        ("", 1),
    ];
    let (number, unit) =
        units.iter().find_map(|(suffix, unit)| Some((quantity.strip_suffix(suffix)?, *unit)))?;
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_quantities_as_kubernetes_writes_them() {
        let cases =
            [("1Gi", Some(1 << 30)), ("20M", Some(20_000_000)), ("7", Some(7)), ("x", None)];
        for (quantity, expected) in cases {
            assert_eq!(bytes(quantity), expected, "{quantity}");
        }
    }

    #[test]
    fn claim_is_served_when_a_node_is_chosen_and_not_before() -> Result<(), serde_json::Error> {
        let mut claim: PersistentVolumeClaim = serde_json::from_value(json!({
            "metadata": {"name": "data", "namespace": "a", "uid": "u"},
            "spec": {"storageClassName": STORAGE_CLASS, "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "20Mi"}}},
        }))?;
        assert_eq!(wanted(&claim), None);
        claim.annotations_mut().insert(SELECTED_NODE.into(), "node-2".into());
        let served = wanted(&claim).map(|wanted| (wanted.volume, wanted.node, wanted.bytes));
        assert_eq!(served, Some(("pvc-u".into(), "node-2".into(), 20 << 20)));
        claim.spec.get_or_insert_default().volume_name = Some("pvc-u".into());
        assert_eq!(wanted(&claim), None);
        Ok(())
    }
}
