//! An image layout of the OCI in an archive: its index, which names the images. `ctr images import`, `skopeo` and `podman`
//! read it too.

use serde_json::json;

use super::archive::{Archive, Part};
use super::digest::Digest;
use super::error::Error;
use super::manifest::{self, Content, Descriptor, INDEXES, MOST};
use super::reference::Reference;

/// The whole name, for containerd, which takes the other one for a tag.
pub(super) const CONTAINERD_NAME: &str = "io.containerd.image.name";
pub(super) const NAME: &str = "org.opencontainers.image.ref.name";
const VERSION: &str = "1.0.0";

/// An image of an archive.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) reference: Reference,
    pub(crate) descriptor: Descriptor,
}

/// The images of an archive.
///
/// # Errors
/// It is no layout, or an image has no name.
pub(crate) fn images(archive: &Archive) -> Result<Vec<Named>, Error> {
    if !archive.has("oci-layout") {
        let why = match archive.has("manifest.json") {
            true => {
                "it is in the form of Docker before 25: save it with a newer one, or with skopeo as oci-archive"
            }
            false => "it has no oci-layout: it is no OCI image layout",
        };
        return Err(archive.wrong(why));
    }
    let version: serde_json::Value = serde_json::from_slice(&archive.small("oci-layout", MOST)?)
        .map_err(|error| archive.wrong(format!("oci-layout: {error}")))?;
    if version.get("imageLayoutVersion").and_then(|version| version.as_str()) != Some(VERSION) {
        return Err(archive.wrong(format!("its imageLayoutVersion is not {VERSION}")));
    }
    let index = manifest::read(&archive.small("index.json", MOST)?, "");
    let index = index.map_err(|why| archive.wrong(format!("index.json: {why}")))?;
    let (Content::Index(children), _) = index else {
        return Err(archive.wrong("index.json is no index"));
    };
    let named = children.into_iter().map(|descriptor| {
        let name = descriptor.name.clone().unwrap_or_default();
        if !name.contains(['/', ':']) {
            return Err(
                archive.wrong(format!("{} in it has no name but {name:?}", descriptor.digest))
            );
        }
        let reference = name.parse().map_err(|why: String| archive.wrong(why))?;
        Ok(Named { reference, descriptor })
    });
    let named: Vec<Named> = named.collect::<Result<_, _>>()?;
    if named.is_empty() { Err(archive.wrong("there is no image in it")) } else { Ok(named) }
}

/// Ends an archive with the index of its images.
///
/// # Errors
/// It cannot be written.
pub(crate) fn finish(part: Part, images: &[(Reference, String, Digest, u64)]) -> Result<(), Error> {
    let manifests: Vec<_> = images
        .iter()
        .map(|(reference, media_type, digest, size)| {
            let (name, of_runtime) = (reference.to_string(), reference.of_runtime().to_string());
            json!({"mediaType": media_type, "digest": digest.to_string(), "size": size,
                "annotations": {(CONTAINERD_NAME): of_runtime, (NAME): name}})
        })
        .collect();
    let index = json!({"schemaVersion": 2, "mediaType": INDEXES[0], "manifests": manifests});
    let layout = json!({"imageLayoutVersion": VERSION});
    part.finish(&[
        ("oci-layout", layout.to_string().into_bytes()),
        ("index.json", index.to_string().into_bytes()),
    ])
}
