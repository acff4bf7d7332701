//! What krew gets: a manifest of its form, and archives that are what it says.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::path::Path;
use std::process::{Command, Output};

use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const PACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/krew/pack.sh");

fn pack(folder: &Path, arguments: &[&str]) -> Result<Output, Failed> {
    let folder = folder.display().to_string();
    let address = ["v0.1.0", "https://example.com/v0.1.0/", "https://example.com", &folder];
    Ok(Command::new(PACK).args(address).args(arguments).output()?)
}

/// The form of krew's `Plugin`, as its developer guide has it; what krew requires is required.
fn schema() -> Value {
    let text = json!({"type": "string", "minLength": 1});
    let file = json!({"type": "object", "additionalProperties": false, "required": ["from", "to"], "properties": {"from": text, "to": text}});
    let label = json!({"type": "object", "additionalProperties": false, "properties":
        {"os": {"enum": ["linux", "darwin", "windows"]}, "arch": {"enum": ["amd64", "arm64", "386", "arm"]}}});
    let platform = json!({"type": "object", "additionalProperties": false, "required": ["uri", "sha256", "bin", "selector"], "properties": {
        "uri": {"type": "string", "pattern": "^https://.*\\.(zip|tar\\.gz)$"}, "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "bin": text, "files": {"type": "array", "minItems": 1, "items": file},
        "selector": {"type": "object", "required": ["matchLabels"], "properties": {"matchLabels": label}}}});
    json!({"type": "object", "additionalProperties": false, "required": ["apiVersion", "kind", "metadata", "spec"], "properties": {
        "apiVersion": {"const": "krew.googlecontainertools.github.com/v1alpha2"}, "kind": {"const": "Plugin"},
        "metadata": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "pattern": "^[a-z0-9-]+$"}}},
        "spec": {"type": "object", "additionalProperties": false, "required": ["version", "shortDescription", "platforms"], "properties": {
            "version": {"type": "string", "pattern": "^v[0-9]+\\.[0-9]+\\.[0-9]+"}, "homepage": text, "description": text, "caveats": text,
            // krew-index wants it short and without a full stop.
            "shortDescription": {"type": "string", "maxLength": 50, "pattern": "[^.]$"},
            "platforms": {"type": "array", "minItems": 1, "items": platform}}}}})
}

#[test]
fn a_manifest_for_krew_is_of_its_form_and_names_archives_by_what_they_are() -> Outcome {
    let folder = tempfile::tempdir()?;
    // A small one: how it is packed does not hang on what it does.
    let plugin = folder.path().join("program");
    std::fs::write(&plugin, "#!/bin/sh\necho it is run\n")?;
    let amd64 = format!("amd64={}", plugin.display());
    let output = pack(folder.path(), &[&amd64])?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(folder.path().join("opensdn.yaml"))?;
    let manifest: Value = serde_saphyr::from_str(&text)?;
    let validator = jsonschema::validator_for(&schema())?;
    let wrong: Vec<String> =
        validator.iter_errors(&manifest).map(|error| error.to_string()).collect();
    assert_eq!(wrong, [""; 0], "{text}");

    let platform = &manifest["spec"]["platforms"][0];
    let name =
        platform["uri"].as_str().and_then(|uri| uri.strip_prefix("https://example.com/v0.1.0/"));
    let archive = std::fs::read(folder.path().join(name.ok_or("another address")?))?;
    let sha256: String =
        Sha256::digest(&archive).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(platform["sha256"], sha256);
    // As krew installs it: unpacked, and each of the files moved.
    let installed = tempfile::tempdir()?;
    let unpacked = Command::new("tar")
        .args(["-xzf", &folder.path().join(name.unwrap_or_default()).display().to_string(), "-C"])
        .arg(installed.path())
        .status()?;
    assert!(unpacked.success());
    for file in platform["files"].as_array().into_iter().flatten() {
        assert!(
            installed.path().join(file["from"].as_str().unwrap_or_default()).is_file(),
            "{file}"
        );
    }
    let bin = installed.path().join(platform["bin"].as_str().unwrap_or_default());
    assert_eq!(Command::new(bin).output()?.stdout, b"it is run\n");

    // The same again is the same, and nothing else is left.
    let again = tempfile::tempdir()?;
    assert!(pack(again.path(), &[&amd64])?.status.success());
    assert_eq!(std::fs::read_to_string(again.path().join("opensdn.yaml"))?, text);
    assert_eq!(std::fs::read_dir(again.path())?.count(), 2);
    let large = folder.path().join("large");
    std::fs::File::create(&large)?.set_len(40_000_000)?;
    let large = format!("amd64={}", large.display());
    let refused = pack(again.path(), &[&large])?;
    assert!(String::from_utf8_lossy(&refused.stderr).contains("40000000 bytes"), "{refused:?}");
    // As every program of this machine's own.
    let refused = pack(again.path(), &["amd64=/bin/sh"])?;
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("needs the C library"), "{refused:?}");
    for wrong in [&["amd64=/no/such/file"][..], &["sparc=/bin/sh"], &[&large], &[]] {
        assert!(!pack(again.path(), wrong)?.status.success(), "{wrong:?}");
    }
    Ok(())
}
