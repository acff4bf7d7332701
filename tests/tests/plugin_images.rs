//! `kubectl opensdn images save`, `load` and `mirror` with a registry that is not ours: what comes out is what went in,
//! nothing is sent twice, nothing broken is sent at all, and no login is shown.

#![allow(clippy::indexing_slicing, reason = "JSON of a test, and the line says where")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use base64::Engine as _;
use opensdn_pki::{Authority, CaProfile, KeyKind, LeafProfile, Usage};
use opensdn_testing::programs::program;
use opensdn_testing::registry::{Registry, RegistryOptions};
use opensdn_testing::{Failed, Outcome};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const PASSWORD: &str = "hunter2-hunter2";

fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// A request without our program, and its answer.
fn http(
    address: &str,
    method: &str,
    path: &str,
    kind: &str,
    body: &[u8],
) -> Result<(u16, Vec<u8>), Failed> {
    let mut stream = TcpStream::connect(address)?;
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or("no answer")?;
    let status = String::from_utf8_lossy(&answer[9..12]).parse()?;
    Ok((status, answer.split_off(end + 4)))
}

fn blob(address: &str, repository: &str, bytes: &[u8]) -> Result<Value, Failed> {
    let digest = digest(bytes);
    let path = format!("/v2/{repository}/blobs/uploads/?digest={digest}");
    assert_eq!(http(address, "POST", &path, "application/octet-stream", bytes)?.0, 201);
    Ok(json!({"mediaType": "application/octet-stream", "digest": digest, "size": bytes.len()}))
}

fn manifest(
    address: &str,
    repository: &str,
    name: &str,
    kind: &str,
    content: &Value,
) -> Result<Value, Failed> {
    let bytes = content.to_string().into_bytes();
    let name = if name.is_empty() { digest(&bytes) } else { name.to_owned() };
    let (status, said) =
        http(address, "PUT", &format!("/v2/{repository}/manifests/{name}"), kind, &bytes)?;
    assert_eq!(status, 201, "{}", String::from_utf8_lossy(&said));
    Ok(json!({"mediaType": kind, "digest": digest(&bytes), "size": bytes.len()}))
}

/// What all images begin with.
fn base() -> Vec<u8> {
    (0..300_000_u32).flat_map(u32::to_le_bytes).collect()
}

/// An image for each of the platforms; its digest.
fn seed(address: &str, repository: &str, tag: &str, platforms: &[&str]) -> Result<String, Failed> {
    let mut children = Vec::new();
    for platform in platforms {
        let config = blob(
            address,
            repository,
            format!("{{\"of\": \"{repository} {platform}\"}}").as_bytes(),
        )?;
        let layers =
            [blob(address, repository, &base())?, blob(address, repository, platform.as_bytes())?];
        let content =
            json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers});
        let name = if platforms.len() == 1 { tag } else { "" };
        let mut child = manifest(address, repository, name, MANIFEST, &content)?;
        if let Some((os, architecture)) = platform.split_once('/') {
            child["platform"] = json!({"os": os, "architecture": architecture});
        }
        children.push(child);
    }
    if let [only] = children.as_slice() {
        return Ok(only["digest"].as_str().unwrap_or_default().to_owned());
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": children});
    let index = manifest(address, repository, tag, INDEX, &index)?;
    Ok(index["digest"].as_str().unwrap_or_default().to_owned())
}

/// A source with all that an installation and a Manager need, and the arguments that say so.
struct Site {
    folder: tempfile::TempDir,
    source: Registry,
    sources: Vec<String>,
    webhook: String,
}

impl Site {
    fn new() -> Result<Self, Failed> {
        let folder = tempfile::tempdir()?;
        let instead = folder.path().join("instead");
        std::fs::create_dir(&instead)?;
        let source = Registry::start(&RegistryOptions {
            instead: Some(&instead),
            ..RegistryOptions::default()
        })?;
        let address = source.address().to_owned();
        let webhook =
            seed(&address, "opensdn/opensdn-webhook", "0.1.0", &["linux/amd64", "linux/arm64"])?;
        seed(&address, "opensdn/opensdn-operator", "0.1.0", &["linux/amd64"])?;
        seed(&address, "tf/contrail-external-redis", "R24.1", &["linux/amd64"])?;
        let _ = source.requests()?;
        let manager = folder.path().join("manager.yaml");
        let container = json!({"name": "redis", "image": format!("{address}/tf/contrail-external-redis:R24.1")});
        let services = json!({"redis": {"metadata": {"name": "r"}, "spec": {"serviceConfiguration": {"containers": [container]}}}});
        let object = json!({"apiVersion": "tf.tungsten.io/v1alpha1", "kind": "Manager", "metadata": {"name": "m"}, "spec": {"services": services}});
        std::fs::write(&manager, object.to_string())?;
        let sources = [
            format!("--set=registry={address}/opensdn"),
            format!("--manager={}", manager.display()),
            format!("--insecure-registry={address}"),
        ];
        Ok(Self { folder, source, sources: sources.to_vec(), webhook })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The plugin with nothing of the developer's but what a test puts into its home.
    fn run(&self, arguments: &[&str]) -> Result<Output, Failed> {
        let mut command = Command::new(program("kubectl-opensdn")?);
        command.env_clear().env("HOME", self.folder.path()).arg("images").args(arguments);
        Ok(command.output()?)
    }

    /// With what it is to copy.
    fn with_sources(&self, arguments: &[&str]) -> Result<Output, Failed> {
        let sources: Vec<&str> = self.sources.iter().map(String::as_str).collect();
        self.run(&[arguments, &sources].concat())
    }

    fn save(&self, name: &str) -> Result<Output, Failed> {
        self.with_sources(&["save", &format!("--out={}", self.path(name).display()), "-o", "json"])
    }

    fn load(&self, name: &str, to: &Registry) -> Result<Output, Failed> {
        let (file, to) = (self.path(name).display().to_string(), to.address());
        self.run(&[
            "load",
            &file,
            &format!("--to={to}/x"),
            &format!("--insecure-registry={to}"),
            "-o",
            "json",
        ])
    }
}

/// The answer, held to its schema.
fn answer(output: &Output) -> Result<Value, Failed> {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    let schema = Command::new(program("kubectl-opensdn")?)
        .args(["explain", "--schema", "ImageTransfer"])
        .output()?;
    let validator = jsonschema::validator_for(&serde_json::from_slice(&schema.stdout)?)?;
    assert!(validator.is_valid(&answer), "{answer:#}");
    Ok(answer)
}

/// How it failed: its code and what it said.
fn failed(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// That every byte of the image is there.
fn is_whole(address: &str, repository: &str, name: &str) -> Result<String, Failed> {
    let (status, bytes) =
        http(address, "GET", &format!("/v2/{repository}/manifests/{name}"), "", b"")?;
    assert_eq!(status, 200, "{repository} {name}");
    let content: Value = serde_json::from_slice(&bytes)?;
    for child in content["manifests"].as_array().into_iter().flatten() {
        is_whole(address, repository, child["digest"].as_str().ok_or("no digest")?)?;
    }
    let layers = content["layers"].as_array().into_iter().flatten();
    for part in layers.chain(content.get("config")) {
        let wanted = part["digest"].as_str().ok_or("no digest")?;
        let (status, bytes) =
            http(address, "GET", &format!("/v2/{repository}/blobs/{wanted}"), "", b"")?;
        assert_eq!((status, digest(&bytes).as_str()), (200, wanted), "{repository}");
    }
    Ok(digest(&bytes))
}

const IMAGES: [(&str, &str); 3] = [
    ("opensdn-webhook", "0.1.0"),
    ("opensdn-operator", "0.1.0"),
    ("contrail-external-redis", "R24.1"),
];

fn uploads(registry: &Registry) -> Result<Vec<String>, Failed> {
    let all = registry.requests()?.into_iter();
    Ok(all.filter(|request| request.starts_with("PUT") && request.contains("/blobs/")).collect())
}

#[test]
fn images_are_saved_and_loaded_with_all_platforms_and_what_is_there_is_not_sent_again() -> Outcome {
    let site = Site::new()?;
    let target = Registry::start(&RegistryOptions::default())?;
    let saved = answer(&site.save("a.tar")?)?;
    // The base is in it once.
    assert_eq!((&saved["blobsSent"], &saved["blobsThere"]), (&json!(7), &json!(4)), "{saved:#}");
    let loaded = answer(&site.load("a.tar", &target)?)?;
    assert_eq!(loaded["images"].as_array().map(Vec::len), Some(3), "{loaded:#}");
    for (name, tag) in IMAGES {
        let found = is_whole(target.address(), &format!("x/{name}"), tag)?;
        if name == "opensdn-webhook" {
            assert_eq!(found, site.webhook);
        }
    }
    let _ = target.requests()?;
    let again = answer(&site.load("a.tar", &target)?)?;
    assert_eq!(again["blobsSent"], 0, "{again:#}");
    assert_eq!(uploads(&target)?, [""; 0]);

    // Other programs read it; a second run does not write over it, and is the same elsewhere.
    let listed = Command::new("tar").arg("-tf").arg(site.path("a.tar")).output()?;
    assert!(String::from_utf8(listed.stdout)?.ends_with("oci-layout\nindex.json\n"));
    assert_eq!(failed(&site.save("a.tar")?).0, Some(5));
    answer(&site.save("b.tar")?)?;
    assert!(std::fs::read(site.path("a.tar"))? == std::fs::read(site.path("b.tar"))?);
    Ok(())
}

#[test]
fn a_list_has_the_digests_that_tags_stand_for_and_says_which_are_not_known() -> Outcome {
    let site = Site::new()?;
    let output = site.with_sources(&["list", "--resolve", "-o", "json"])?;
    let listed: Value = serde_json::from_slice(&output.stdout)?;
    let digest = |name: &str| {
        let mut images = listed["images"].as_array().into_iter().flatten();
        let named = |one: &&Value| one["reference"].as_str().is_some_and(|one| one.contains(name));
        images.find(named).map(|one| one["digest"].clone())
    };
    assert_eq!(digest("opensdn-webhook"), Some(json!(site.webhook)), "{listed:#}");
    assert_eq!(output.status.code(), Some(0));
    let asked = site.source.requests()?;
    assert!(!asked.is_empty() && asked.iter().all(|one| one.starts_with("HEAD")), "{asked:#?}");

    // What the registry does not have is named, and the others have theirs.
    let missing = format!("--image={}/opensdn/none:1", site.source.address());
    let output = site.with_sources(&["list", "--resolve", &missing])?;
    let (code, said) = failed(&output);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("/opensdn/none:1 is not known"), "{said}");
    let lines = String::from_utf8(output.stdout)?;
    assert!(lines.contains(&format!("opensdn-webhook:0.1.0@{}\n", site.webhook)), "{lines}");
    assert!(lines.contains("/opensdn/none:1\n"), "{lines}");

    // By a value that is a digest no registry is asked.
    let pinned = format!("webhook.image.digest={}", site.webhook);
    let output = site.run(&["list", "--set", &pinned, "-o", "json"])?;
    let listed: Value = serde_json::from_slice(&output.stdout)?;
    let digests: Vec<&Value> = listed["images"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one.get("digest"))
        .collect();
    assert_eq!(digests, [&json!(site.webhook)], "{listed:#}");
    let refused = failed(&site.run(&["list", "--insecure-registry=localhost:1"])?);
    assert_eq!(refused.0, Some(2), "{refused:?}");
    Ok(())
}

#[test]
fn a_mirror_has_the_same_digests_and_a_second_run_copies_nothing() -> Outcome {
    let site = Site::new()?;
    let target = Registry::start(&RegistryOptions::default())?;
    let to = [
        format!("--to={}/x", target.address()),
        format!("--insecure-registry={}", target.address()),
    ];
    let mirror = |more: &[&str]| {
        site.with_sources(&[&["mirror", &to[0], &to[1], "-o", "json"], more].concat())
    };
    let planned = answer(&mirror(&["--dry-run"])?)?;
    assert_eq!(
        planned["images"][0]["target"],
        format!("{}/x/opensdn-operator:0.1.0", target.address())
    );
    assert_eq!([site.source.requests()?, target.requests()?], [[""; 0]; 2]);

    let done = answer(&mirror(&[])?)?;
    assert_eq!(done["blobsThere"], 4, "{done:#}");
    assert!(is_whole(target.address(), "x/opensdn-webhook", "0.1.0")? == site.webhook);
    // Of what two repositories share one is offered to the registry as it has it.
    assert!(target.requests()?.iter().any(|request| request.contains("mount=")));
    let again = answer(&mirror(&[])?)?;
    assert_eq!(again["blobsSent"], 0);
    assert_eq!(uploads(&target)?, [""; 0]);

    // One platform is an image by itself.
    let place = format!("--to={}/arm", target.address());
    let one =
        site.with_sources(&["mirror", &place, &to[1], "-o", "json", "--platform=linux/arm64"])?;
    let one = answer(&one)?;
    let webhook = one["images"].as_array().and_then(|all| {
        all.iter()
            .find(|one| one["source"].as_str().is_some_and(|source| source.contains("webhook")))
    });
    assert_eq!(webhook.ok_or("no webhook")?["platforms"], json!(["linux/arm64"]), "{one:#}");
    assert_ne!(is_whole(target.address(), "arm/opensdn-webhook", "0.1.0")?, site.webhook);
    let (code, said) =
        failed(&site.with_sources(&["mirror", &place, &to[1], "--platform=linux/s390x"])?);
    assert!(code == Some(3) && said.contains("but for linux/amd64, linux/arm64"), "{said}");
    Ok(())
}

#[test]
fn nothing_of_an_archive_that_is_not_whole_is_sent() -> Outcome {
    let site = Site::new()?;
    let target = Registry::start(&RegistryOptions::default())?;
    answer(&site.save("a.tar")?)?;
    let whole = std::fs::read(site.path("a.tar"))?;
    let broken = |bytes: &[u8]| -> Result<String, Failed> {
        std::fs::write(site.path("broken.tar"), bytes)?;
        let (code, said) = failed(&site.load("broken.tar", &target)?);
        assert_eq!(code, Some(2), "{said}");
        Ok(said)
    };
    for length in [0, 100, 700, whole.len() / 2, whole.len() - 3000] {
        broken(&whole[..length])?;
    }
    // A byte of the base, of a manifest, and of what says which images there are.
    let base =
        whole.windows(8).position(|eight| eight == [1, 0, 0, 0, 2, 0, 0, 0]).ok_or("no base")?;
    let config =
        whole.windows(14).position(|some| some == b"\"schemaVersion").ok_or("no manifest")?;
    for place in [base, config] {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        let said = broken(&bytes)?;
        assert!(said.contains("instead of sha256:"), "{said}");
    }
    assert_eq!(target.requests()?, [""; 0]);
    Ok(())
}

#[test]
fn what_a_registry_sends_is_held_to_its_digest_and_an_interrupted_save_goes_on() -> Outcome {
    let site = Site::new()?;
    let path = site.path("instead").join(&digest(b"linux/arm64")[7..]);
    std::fs::write(&path, b"linux/evil6")?;
    let (code, said) = failed(&site.save("a.tar")?);
    assert!(code == Some(3) && said.contains("instead of sha256:"), "{said}");
    assert!(!site.path("a.tar").exists(), "nothing is where the archive is to be");
    // Straight from one to the other as well.
    let target = Registry::start(&RegistryOptions::default())?;
    let to =
        [format!("--to={}", target.address()), format!("--insecure-registry={}", target.address())];
    let (code, said) = failed(&site.with_sources(&["mirror", &to[0], &to[1]])?);
    assert!(code == Some(3) && said.contains("instead of sha256:"), "{said}");
    assert_eq!(
        http(target.address(), "GET", "/v2/opensdn-webhook/manifests/0.1.0", "", b"")?.0,
        404,
        "no name without all of it"
    );

    std::fs::remove_file(&path)?;
    let _ = site.source.requests()?;
    let saved = answer(&site.save("a.tar")?)?;
    let base = digest(&base());
    assert!(!site.source.requests()?.iter().any(|request| request.contains(&base)), "it was there");
    assert!(saved["blobsThere"].as_u64() > Some(4), "{saved:#}");

    // A manifest that no registry should send.
    let huge = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [], "annotations": {"a": "x".repeat(5 << 20)}});
    manifest(site.source.address(), "huge", "1", INDEX, &huge)?;
    let image = format!("--image={}/huge:1", site.source.address());
    let out = format!("--out={}", site.path("huge.tar").display());
    let (code, said) = failed(&site.with_sources(&["save", &image, &out])?);
    assert!(code == Some(3) && said.contains("larger than 4 MiB"), "{said}");
    Ok(())
}

/// A CA, and a certificate of it for this machine.
fn certificates(folder: &Path) -> Result<[PathBuf; 3], Failed> {
    let now = time::OffsetDateTime::now_utc();
    let ca = Authority::create(&CaProfile::new("test"), now)?;
    let leaf = ca.issue(
        &LeafProfile {
            common_name: "127.0.0.1".to_owned(),
            names: vec!["127.0.0.1".to_owned()],
            lifetime: time::Duration::days(1),
            usage: Usage::ServerAndClient,
            key: KeyKind::EcdsaP256,
        },
        now,
    )?;
    let files = ["ca.crt", "tls.crt", "tls.key"].map(|name| folder.join(name));
    for (file, text) in files.iter().zip([ca.certificate(), leaf.certificate(), leaf.key()]) {
        std::fs::write(file, text)?;
    }
    Ok(files)
}

#[test]
fn a_login_is_that_of_docker_login_and_is_shown_nowhere() -> Outcome {
    let site = Site::new()?;
    let [ca, certificate, key] = certificates(site.folder.path())?;
    let ca = format!("--registry-ca={}", ca.display());
    std::fs::create_dir(site.path(".docker"))?;
    for by_token in [false, true] {
        let login = format!("bob:{PASSWORD}");
        let options = RegistryOptions {
            tls: Some((&certificate, &key)),
            login: Some(&login),
            by_token,
            ..RegistryOptions::default()
        };
        let target = Registry::start(&options)?;
        let to = format!("--to={}/x", target.address());
        let mirror = |login: &str, more: &[&str]| {
            let auth = base64::prelude::BASE64_STANDARD.encode(login);
            let config = json!({"auths": {target.address(): {"auth": auth}}});
            let config = if login.is_empty() { json!({}) } else { config };
            std::fs::write(site.path(".docker/config.json"), config.to_string())?;
            site.with_sources(&[&["mirror", &to, "-vv"], more].concat())
        };
        let (code, said) = failed(&mirror("", &[&ca])?);
        assert!(code == Some(3) && said.contains("docker login"), "{said}");
        let (code, said) = failed(&mirror("bob:wrong-wrong", &[&ca])?);
        assert!(code == Some(3) && !said.contains("wrong-wrong"), "{said}");
        // Whom nobody vouches for is not asked.
        let (code, said) = failed(&mirror(&login, &[])?);
        assert!(code == Some(3) && said.contains("--registry-ca"), "{said}");
        let output = mirror(&login, &[&ca])?;
        let said =
            String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat())
                .into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        let encoded = base64::prelude::BASE64_STANDARD.encode(&login);
        assert!(!said.contains(PASSWORD) && !said.contains(&encoded), "{said}");
    }
    // A program that keeps logins is named, and not run.
    let options = RegistryOptions { login: Some("a:b"), ..RegistryOptions::default() };
    let target = Registry::start(&options)?;
    std::fs::write(site.path(".docker/config.json"), r#"{"credsStore": "desktop"}"#)?;
    let to = [
        format!("--to={}/x", target.address()),
        format!("--insecure-registry={}", target.address()),
    ];
    let (code, said) = failed(&site.with_sources(&["mirror", &to[0], &to[1]])?);
    assert!(
        code == Some(2) && said.contains("docker-credential-desktop, which is not run"),
        "{said}"
    );
    Ok(())
}

#[test]
fn only_a_registry_that_is_named_is_asked_without_tls_and_no_image_is_looked_for_without_a_registry()
-> Outcome {
    let site = Site::new()?;
    let target = Registry::start(&RegistryOptions::default())?;
    let (code, said) =
        failed(&site.with_sources(&["mirror", &format!("--to={}", target.address())])?);
    assert!(code == Some(3) && said.contains("--insecure-registry"), "{said}");
    assert_eq!(target.requests()?, [""; 0]);
    let out = format!("--out={}", site.path("c.tar").display());
    let (code, said) = failed(&site.run(&["save", &out])?);
    assert!(
        code == Some(2) && said.contains("no registry is named for opensdn-operator:0.1.0"),
        "{said}"
    );
    let (code, said) = failed(&site.run(&["save", &out, "--image=127.0.0.1:1/a:1", "-q"])?);
    assert!(code == Some(3) && said.contains("127.0.0.1:1 cannot be reached"), "{said}");
    Ok(())
}
