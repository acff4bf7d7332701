//! The images of the webhook and the operator, as `deploy/images/build.sh` makes them and nodes run them: what
//! is in them, what they say of themselves and what the files beside them say, and that their programs need
//! nothing else. What they do in pods is tested in the lab; what the records name, in `deploy/records`.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use opensdn_testing::image::{Container, Image};
use opensdn_testing::{Failed, Outcome};
use serde_json::Value;
use tempfile::TempDir;

const BUILD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/images/build.sh");

/// An image.
struct Shipped {
    /// As the script knows it.
    name: &'static str,
    program: &'static str,
    kustomization: &'static str,
    /// As it is stored on a node, and all the more in a registry.
    most_bytes: u64,
}

const SHIPPED: [Shipped; 2] = [
    Shipped {
        name: "webhook",
        program: "opensdn-webhook",
        kustomization: include_str!("../../deploy/webhook/kustomization.yaml"),
        most_bytes: 30_000_000,
    },
    Shipped {
        name: "operator",
        program: "opensdn-operator",
        kustomization: include_str!("../../deploy/operator/kustomization.yaml"),
        most_bytes: 20_000_000,
    },
];

fn webhook(folder: Option<&Path>) -> Result<PathBuf, Failed> {
    archive("webhook", folder)
}

/// The archive; `folder` is where it is kept, if not where it always is.
fn archive(name: &str, folder: Option<&Path>) -> Result<PathBuf, Failed> {
    let mut command = Command::new(BUILD);
    command.arg(name);
    if let Some(folder) = folder {
        command.env("OPENSDN_IMAGES", folder);
    }
    let built = command.output()?;
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Ok(PathBuf::from(String::from_utf8(built.stdout)?.trim()))
}

/// Whether a program for 64 bits names another that loads its libraries: one of its segments
/// is of the kind `PT_INTERP`. Nothing if it is no such program.
fn wants_libraries(elf: &[u8]) -> Option<bool> {
    let number = |at: usize, length: usize| {
        let bytes = elf.get(at..at + length)?.iter().rev();
        Some(bytes.fold(0, |sum, byte| (sum << 8) | usize::from(*byte)))
    };
    let (start, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let kinds = (0..count).map(|segment| number(start + segment * size, 4));
    let kinds: Vec<usize> = kinds.collect::<Option<_>>()?;
    elf.starts_with(b"\x7fELF\x02").then(|| kinds.contains(&3))
}

#[test]
fn an_image_is_one_small_static_program() -> Outcome {
    for shipped in &SHIPPED {
        let archive = archive(shipped.name, None)?;
        let folder = TempDir::new()?;
        Image::open(&archive)?.unpack(folder.path())?;
        let files: Vec<_> = fs::read_dir(folder.path())?.collect::<Result<_, _>>()?;
        let [program] = files.as_slice() else { panic!("more than one file: {files:?}") };
        assert_eq!(program.file_name(), shipped.program);
        let about = program.metadata()?;
        assert_eq!(about.permissions().mode() & 0o7777, 0o755);
        for bytes in [about.len(), fs::metadata(&archive)?.len()] {
            assert!(bytes < shipped.most_bytes, "{}: {bytes} bytes", shipped.name);
        }
        assert_eq!(wants_libraries(&fs::read(program.path())?), Some(false));
    }
    assert_eq!(wants_libraries(&fs::read("/bin/sh")?), Some(true));
    Ok(())
}

#[test]
fn an_image_says_what_it_is_and_names_a_user_without_rights() -> Outcome {
    for Shipped { name, program, kustomization, .. } in &SHIPPED {
        let image = Image::open(&archive(name, None)?)?;
        let given = |key: &str| {
            let line = kustomization.lines().find_map(|line| line.trim().strip_prefix(key));
            line.map(str::trim).unwrap_or_default()
        };
        // As a kubelet completes the name that the Deployment ends up with.
        let wanted = format!("docker.io/library/{}:{}", given("newName:"), given("newTag:"));
        assert_eq!(image.reference, wanted);
        assert_eq!(image.configuration.user, "65532:65532");
        assert_eq!(image.configuration.entrypoint, [format!("/{program}")]);
        let label = |name: &str| {
            let label = image.configuration.labels.get(&format!("org.opencontainers.image.{name}"));
            label.map(String::as_str).unwrap_or_default()
        };
        assert_eq!(label("title"), *program);
        assert_eq!(label("licenses"), env!("CARGO_PKG_LICENSE"));
        assert_eq!(label("version"), env!("CARGO_PKG_VERSION"));
        let revision = label("revision").trim_end_matches("-modified");
        assert!(revision == "unknown" || revision.len() == 40, "{revision}");
        assert!(!label("description").is_empty());
        // What one machine has in it, another has not.
        assert!(image.configuration.labels.keys().all(|key| !key.contains("buildah")));
    }
    Ok(())
}

#[test]
fn a_program_runs_with_nothing_but_its_image() -> Outcome {
    for Shipped { name, program, .. } in &SHIPPED {
        let image = Image::open(&archive(name, None)?)?;
        let version = Container::start(&image, &["--version"])?.finish()?;
        let wanted = format!("{program} {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(version, (Some(0), wanted));
        // It comes as far as to look for the API server, and says what a person can do.
        let (code, said) = Container::start(&image, &["--log-format=text"])?.finish()?;
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("outside a cluster set KUBECONFIG"), "{said}");
    }
    Ok(())
}

#[test]
fn packing_again_gives_the_same_digest() -> Outcome {
    let folder = TempDir::new()?;
    let (first, again) = (webhook(None)?, webhook(Some(folder.path()))?);
    assert_ne!(first, again);
    assert_eq!(Image::open(&first)?.digest, Image::open(&again)?.digest);
    let (bill, same) = (first.with_extension("cdx.json"), again.with_extension("cdx.json"));
    assert_eq!(fs::read(bill)?, fs::read(same)?);
    Ok(())
}

fn json(path: &Path) -> Result<Value, Failed> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

/// As the system's own program says it.
fn sha256(path: &Path) -> Result<String, Failed> {
    let output = Command::new("sha256sum").arg(path).output()?;
    let said = String::from_utf8(output.stdout)?;
    Ok(said.split(' ').next().unwrap_or_default().to_owned())
}

/// The program as it is in the image, in this folder.
fn program(archive: &Path, folder: &Path) -> Result<PathBuf, Failed> {
    Image::open(archive)?.unpack(folder)?;
    Ok(folder.join("opensdn-webhook"))
}

#[test]
fn the_provenance_beside_the_archive_has_the_digests_of_its_files() -> Outcome {
    let (archive, folder) = (webhook(None)?, TempDir::new()?);
    let said = json(&archive.with_extension("provenance.json"))?;
    let digests = |list: &Value| -> Vec<String> {
        let all = list.as_array().into_iter().flatten();
        all.map(|one| one["digest"]["sha256"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let image = Image::open(&archive)?;
    let digest = image.digest.trim_start_matches("sha256:").to_owned();
    let program = sha256(&program(&archive, folder.path())?)?;
    assert_eq!(digests(&said["subject"]), [sha256(&archive)?, digest, program]);
    let run = &said["predicate"]["runDetails"];
    let bill = archive.with_extension("cdx.json");
    assert_eq!(digests(&run["byproducts"]), [sha256(&bill)?]);
    let sources = &said["predicate"]["buildDefinition"]["resolvedDependencies"];
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
    assert_eq!(digests(sources).get(1), Some(&sha256(&lock)?));
    let revision = &image.configuration.labels["org.opencontainers.image.revision"];
    let commit = sources[0]["digest"]["gitCommit"].as_str().unwrap_or("unknown");
    assert_eq!(revision.trim_end_matches("-modified"), commit);
    Ok(())
}

/// `NAME-VERSION` of each package of which the program says in which file it panics.
fn packages_in(program: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(program);
    let places = text.split("/cargo/registry/src/").skip(1);
    let package = |place: &str| Some(place.split('/').nth(1)?.to_owned());
    places.filter_map(package).filter(|name| name.contains('-')).collect()
}

#[test]
fn what_the_program_itself_says_that_it_is_made_of_is_in_the_bill() -> Outcome {
    let (archive, folder) = (webhook(None)?, TempDir::new()?);
    let bytes = fs::read(program(&archive, folder.path())?)?;
    let bill = json(&archive.with_extension("cdx.json"))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let components = bill["components"].as_array().into_iter().flatten();
    let named: BTreeSet<String> =
        components.map(|one| format!("{}-{}", text(&one["name"]), text(&one["version"]))).collect();
    let found = packages_in(&bytes);
    assert!(found.len() > 30, "{found:?}");
    assert_eq!(found.difference(&named).collect::<Vec<_>>(), Vec::<&String>::new());
    // For scanners that have the program alone.
    let list = br#"{"packages":[{"#;
    assert!(bytes.windows(list.len()).any(|window| window == list));
    Ok(())
}
