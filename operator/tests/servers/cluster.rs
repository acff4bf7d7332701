//! What a cluster has of an object whose members are asked and changed: its nodes, and a folder for what each pod
//! mounts.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test, and the line says where")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use opensdn_operator::build::certificates::{Subject, Wanted, certificates};
use opensdn_operator::build::{Secrets, Valid, build};
use opensdn_operator::cache::{Cache, Feed};
use opensdn_operator::component::word;
use opensdn_operator::components::{of_kind, templates};
use opensdn_operator::ensemble::{Access, Ensemble, View};
use opensdn_operator::exec::{self, Exec};
use opensdn_operator::kind::Kind;
use opensdn_operator::names::Instance;
use opensdn_operator::reconcile::fetch::Fetched;
use opensdn_operator::reconcile::validate::validate;
use opensdn_operator::template::Templates;
use opensdn_pki::{Authorities, CaProfile};
use opensdn_runtime::watch::Event;
use serde_json::{Value, json};
use tempfile::TempDir;
use time::OffsetDateTime;

/// So many lines of a log are shown.
const SHOWN: usize = 40;

pub(crate) struct Cluster {
    folder: TempDir,
    object: DynamicObject,
    /// So long it is waited for what is to come.
    longest: Duration,
    pub(crate) authorities: Authorities,
    pub(crate) valid: Valid,
}

impl Cluster {
    /// With the object, and nodes at these addresses, of which none runs a member yet.
    pub(crate) fn new(object: Value, addresses: &[&str], longest: Duration) -> Self {
        let cache = Cache::default();
        for address in addresses {
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{address}"),
                "resourceVersion": "1", "labels": {"node-role.kubernetes.io/control-plane": ""}},
                "status": {"addresses": [{"type": "InternalIP", "address": address}]}});
            Feed::new(Kind::Node, "").take(&cache, Event::Apply(node));
        }
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let component = of_kind(&object.types.as_ref().unwrap().kind).unwrap();
        let instance = Instance { word: word(component.facts()), name: object.name_any() };
        let fetched = Fetched::read(&cache, Arc::new(object.clone()), &instance);
        let valid = validate(component, &fetched).unwrap();
        let now = OffsetDateTime::now_utc();
        let authorities = Authorities::first(&CaProfile::new("test CA"), now).unwrap();
        Self { folder: TempDir::new().unwrap(), object, longest, authorities, valid }
    }

    /// Another node comes.
    pub(crate) fn add(&mut self, address: &str) {
        self.valid.addresses.push(address.to_owned());
        self.valid.addresses.sort();
        let members = self.valid.members.as_mut().unwrap();
        members.record = members.record.clone().with(&self.valid.addresses);
    }

    pub(crate) fn set_had_quorum(&mut self) {
        self.valid.members.as_mut().unwrap().had_quorum = true;
    }

    /// Writes what the operator applies into the folders `files`, `certificates` and `trust` of each pod. `fit` changes
    /// the text of a file for the pod of an address to where the test runs it.
    pub(crate) fn render(&self, fit: impl Fn(&str, &str) -> String) {
        let subject = |address: &String| Subject { address: address.clone(), host: None };
        let subjects: Vec<_> = self.valid.addresses.iter().map(subject).collect();
        let wanted = Wanted {
            subjects: &subjects,
            key: self.valid.key,
            most: usize::MAX,
            trusted: &[],
            signer: None,
        };
        let now = OffsetDateTime::now_utc();
        let made = certificates(&[], &wanted, &self.authorities, now, true).unwrap();
        let secrets = Secrets { certificates: vec![made.data.clone()], ..Secrets::default() };
        let templates = Templates::new(templates()).unwrap();
        let intents = build(&templates, &self.object, &self.valid, secrets).unwrap();
        let files = intents.iter().find(|one| one.kind == Kind::ConfigMap).unwrap();
        for address in &self.valid.addresses {
            for (name, text) in files.object.data["data"].as_object().unwrap() {
                let text = fit(address, text.as_str().unwrap());
                fs::write(self.made(address, "files").join(name), text).unwrap();
            }
            for (name, value) in &made.data {
                fs::write(self.made(address, "certificates").join(name), &value.0).unwrap();
            }
            let trust = self.made(address, "trust");
            fs::write(trust.join("ca-bundle.crt"), self.authorities.bundle()).unwrap();
        }
    }

    /// The text with the folders of a pod in the place of what is mounted in its container.
    pub(crate) fn mounted(&self, address: &str, text: &str, places: &[(&str, &str)]) -> String {
        let here = self.folder_of(address).display().to_string();
        places.iter().fold(text.to_owned(), |text, (there, name)| {
            text.replace(there, &format!("{here}/{name}"))
        })
    }

    /// The folder of a pod.
    pub(crate) fn folder_of(&self, address: &str) -> PathBuf {
        self.folder.path().join(address)
    }

    /// A folder in that of a pod, which is made where it is not there yet.
    pub(crate) fn made(&self, address: &str, name: &str) -> PathBuf {
        let folder = self.folder_of(address).join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    pub(crate) fn ensemble(&self) -> Arc<dyn Ensemble> {
        self.valid.description.ensemble.clone().unwrap()
    }

    pub(crate) fn access(&self, exec: Arc<dyn Exec>) -> Access {
        Access::new(&self.authorities, &self.authorities.bundle(), OffsetDateTime::now_utc(), exec)
            .unwrap()
    }

    pub(crate) async fn view(&self, access: &Access) -> Result<View, String> {
        let answers = self.ensemble().look(access, &self.valid.addresses).await;
        View::of(&answers, str::to_owned, |_| false).map_err(|why| format!("{why}; {answers:?}"))
    }

    /// Until those serve, and no others, or what there was instead when the time was over.
    pub(crate) async fn serve(&self, access: &Access, addresses: &[&str]) -> Result<View, String> {
        let expected: BTreeSet<String> = addresses.iter().map(|&one| one.to_owned()).collect();
        let begun = Instant::now();
        loop {
            match self.view(access).await {
                Ok(view) if view.serving == expected => return Ok(view),
                other if begun.elapsed() > self.longest => return Err(format!("{other:?}")),
                _ => {}
            }
            // Until a member has started.
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Where the container of a pod writes what it says, behind what is there.
    pub(crate) fn log_file(&self, address: &str) -> fs::File {
        let path = self.folder_of(address).join("log");
        fs::File::options().create(true).append(true).open(path).unwrap()
    }

    /// What the container of a pod has said.
    pub(crate) fn log(&self, address: &str) -> String {
        fs::read_to_string(self.folder_of(address).join("log")).unwrap_or_default()
    }

    /// Until the container of a pod has said that, or what there was instead when the time was over.
    pub(crate) async fn logged(&self, address: &str, text: &str) -> Result<(), String> {
        let begun = Instant::now();
        while !self.log(address).contains(text) {
            if begun.elapsed() > self.longest {
                return Err(format!("{address} does not say {text:?}\n{}", self.logs()));
            }
            // It asks each of the others first.
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        Ok(())
    }

    /// The last of each log.
    pub(crate) fn logs(&self) -> String {
        let log = |address: &String| {
            let log = self.log(address);
            let lines: Vec<_> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
            format!("--- {address}\n{last}\n")
        };
        self.valid.addresses.iter().map(log).collect()
    }

    /// What a pod has stored is lost.
    pub(crate) fn wipe(&self, address: &str) {
        for entry in fs::read_dir(self.folder_of(address).join("data")).unwrap() {
            let entry = entry.unwrap();
            let is_folder = entry.file_type().unwrap().is_dir();
            let path = entry.path();
            if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        }
    }
}

/// What a program came to, as a pod would answer it.
pub(crate) fn answered(done: &std::process::Output) -> exec::Output {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    exec::Output {
        code: done.status.code().unwrap_or(-1),
        stdout: text(&done.stdout),
        stderr: text(&done.stderr),
    }
}
