//! Where the files of an image come from: a statement of in-toto with the predicate of SLSA. It names no
//! time, so that two builds of the same commit say the same.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// What kind of build this is; the parameters below are its own.
const BUILD_TYPE: &str = "https://opensdn.io/build/image/v1";

/// Why there is no statement.
#[derive(Debug, thiserror::Error)]
pub enum ProvenanceError {
    /// A file that it is about.
    #[error("read {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// The index of the archive.
    #[error("read the index of the image in {}", .0.display())]
    Index(PathBuf, #[source] serde_json::Error),
    /// There is no image in it, or there are several.
    #[error("find one image in the index: there are {0}")]
    Images(usize),
}

/// What was built of what, by whom.
#[derive(Clone, Debug)]
pub struct Build {
    /// Of the package.
    pub program_name: String,
    /// As it is in the image.
    pub program: PathBuf,
    /// The OCI archive.
    pub archive: PathBuf,
    /// `index.json` of the archive.
    pub index: PathBuf,
    /// The bill of materials.
    pub bill: PathBuf,
    /// The versions and checksums of what was compiled.
    pub lock: PathBuf,
    /// What the program was compiled for.
    pub target: String,
    /// The commit, with `-modified` behind it where files differed from it; `unknown` without git.
    pub revision: String,
    /// Where the source is to be had.
    pub source: Option<String>,
    /// Who built, as a URI.
    pub builder: String,
    /// `NAME VERSION` of tools.
    pub tools: Vec<String>,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Manifest>,
}

#[derive(Deserialize)]
struct Manifest {
    digest: String,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

/// The whole document.
///
/// # Errors
/// A file cannot be read.
pub fn provenance(build: &Build) -> Result<Value, ProvenanceError> {
    let manifest = manifest(&build.index)?;
    let image = manifest.annotations.get("org.opencontainers.image.ref.name");
    let image_digest = manifest.digest.trim_start_matches("sha256:");
    Ok(json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            file(&build.archive)?,
            {"name": image, "digest": {"sha256": image_digest}},
            {"name": build.program_name, "digest": {"sha256": sha256(&build.program)?}},
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"program": build.program_name, "target": build.target},
                "internalParameters": {"tools": build.tools},
                "resolvedDependencies": [commit(build), file(&build.lock)?],
            },
            "runDetails": {
                "builder": {"id": build.builder},
                "byproducts": [file(&build.bill)?],
            },
        },
    }))
}

fn commit(build: &Build) -> Value {
    let commit = build.revision.trim_end_matches("-modified");
    let mut source = json!({"name": "source"});
    let Some(fields) = source.as_object_mut() else { return source };
    if let Some(place) = &build.source {
        fields.insert("uri".to_owned(), format!("git+{place}").into());
    }
    if commit != "unknown" {
        fields.insert("digest".to_owned(), json!({"gitCommit": commit}));
    }
    // A commit that the files differ from does not say what was built.
    if commit != build.revision {
        fields.insert("annotations".to_owned(), json!({"modified": true}));
    }
    source
}

fn manifest(index: &Path) -> Result<Manifest, ProvenanceError> {
    let text = fs::read(index).map_err(|error| ProvenanceError::Read(index.to_owned(), error))?;
    let Index { manifests } = serde_json::from_slice(&text)
        .map_err(|error| ProvenanceError::Index(index.to_owned(), error))?;
    let count = manifests.len();
    let mut manifests = manifests.into_iter();
    match (manifests.next(), manifests.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(ProvenanceError::Images(count)),
    }
}

/// By its name alone: the folder is another one elsewhere.
fn file(path: &Path) -> Result<Value, ProvenanceError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(json!({"name": name, "digest": {"sha256": sha256(path)?}}))
}

fn sha256(path: &Path) -> Result<String, ProvenanceError> {
    let read = |error| ProvenanceError::Read(path.to_owned(), error);
    let mut hash = Sha256::new();
    io::copy(&mut fs::File::open(path).map_err(read)?, &mut hash).map_err(read)?;
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
