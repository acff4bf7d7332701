//! The webhook's image, as `deploy/images/build.sh` makes it and nodes run it: what is in it, what
//! it says of itself, and that its program needs nothing else. What it does in pods is tested in
//! the lab.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use opensdn_testing::image::{Container, Image};
use opensdn_testing::{Failed, Outcome};
use tempfile::TempDir;

const BUILD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/images/build.sh");
const KUSTOMIZATION: &str = include_str!("../../deploy/webhook/kustomization.yaml");
/// As it is stored on a node, and all the more in a registry.
const MOST_BYTES: u64 = 30_000_000;

/// The archive; `folder` is where it is kept, if not where it always is.
fn webhook(folder: Option<&Path>) -> Result<PathBuf, Failed> {
    let mut command = Command::new(BUILD);
    command.arg("webhook");
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
fn webhook_image_is_one_small_static_program() -> Outcome {
    let archive = webhook(None)?;
    let folder = TempDir::new()?;
    Image::open(&archive)?.unpack(folder.path())?;
    let files: Vec<_> = fs::read_dir(folder.path())?.collect::<Result<_, _>>()?;
    let [program] = files.as_slice() else { panic!("more than one file: {files:?}") };
    assert_eq!(program.file_name(), "opensdn-webhook");
    let about = program.metadata()?;
    assert_eq!(about.permissions().mode() & 0o7777, 0o755);
    for bytes in [about.len(), fs::metadata(&archive)?.len()] {
        assert!(bytes < MOST_BYTES, "{bytes} bytes");
    }
    assert_eq!(wants_libraries(&fs::read(program.path())?), Some(false));
    assert_eq!(wants_libraries(&fs::read("/bin/sh")?), Some(true));
    Ok(())
}

#[test]
fn webhook_image_says_what_it_is_and_names_a_user_without_rights() -> Outcome {
    let image = Image::open(&webhook(None)?)?;
    let given = |key: &str| {
        let line = KUSTOMIZATION.lines().find_map(|line| line.trim().strip_prefix(key));
        line.map(str::trim).unwrap_or_default()
    };
    // As a kubelet completes the name that the Deployment ends up with.
    let wanted = format!("docker.io/library/{}:{}", given("newName:"), given("newTag:"));
    assert_eq!(image.reference, wanted);
    assert_eq!(image.configuration.user, "65532:65532");
    assert_eq!(image.configuration.entrypoint, ["/opensdn-webhook"]);
    let label = |name: &str| {
        let label = image.configuration.labels.get(&format!("org.opencontainers.image.{name}"));
        label.map(String::as_str).unwrap_or_default()
    };
    assert_eq!(label("title"), "opensdn-webhook");
    assert_eq!(label("licenses"), env!("CARGO_PKG_LICENSE"));
    assert_eq!(label("version"), env!("CARGO_PKG_VERSION"));
    let revision = label("revision").trim_end_matches("-modified");
    assert!(revision == "unknown" || revision.len() == 40, "{revision}");
    assert!(!label("description").is_empty());
    // What one machine has in it, another has not.
    assert!(image.configuration.labels.keys().all(|key| !key.contains("buildah")));
    Ok(())
}

#[test]
fn webhook_runs_with_nothing_but_its_image() -> Outcome {
    let image = Image::open(&webhook(None)?)?;
    let version = Container::start(&image, &["--version"])?.finish()?;
    let wanted = format!("opensdn-webhook {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(version, (Some(0), wanted));
    // It comes as far as to look for the API server, and says what a person can do.
    let (code, said) = Container::start(&image, &["--log-format=text"])?.finish()?;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("outside a cluster set KUBECONFIG"), "{said}");
    Ok(())
}

#[test]
fn packing_again_gives_the_same_digest() -> Outcome {
    let folder = TempDir::new()?;
    let (first, again) = (webhook(None)?, webhook(Some(folder.path()))?);
    assert_ne!(first, again);
    assert_eq!(Image::open(&first)?.digest, Image::open(&again)?.digest);
    Ok(())
}
