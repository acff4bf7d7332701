//! What is to be installed, from files: Managers and VrouterProfiles that are judged as if they were in the cluster, and the
//! values that `install` is to be given.
//! Deliberately not here: everything that is wrong with them (`validate`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use opensdn_crds::{OPENSDN_GROUP, TUNGSTEN_GROUP};
use opensdn_deploy::Values;
use opensdn_deploy::names::NAMESPACE;
use opensdn_manifests::{Document, Schemas, Severity};
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::install::values::ValuesArgs;
use crate::policy::objects::{self, Content};
use crate::snapshot::{Read, annotation, name, namespace, text, title};

/// Faults of a schema that are shown.
const SHOWN: usize = 5;

/// Objects that are not stored yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Planned {
    managers: Vec<Value>,
    profiles: Vec<Value>,
    /// Other objects of the same groups, which no check looks at.
    not_judged: Vec<String>,
    /// Files with values of an installation, and what is in them.
    values_files: Vec<(PathBuf, Value)>,
    /// What is to be installed, where that is said.
    values: Option<Values>,
}

impl Planned {
    /// Reads them. An object that names no namespace gets `default`, as kubectl would give it.
    ///
    /// # Errors
    /// A file cannot be read, has none of them, or one that the API server would not take.
    pub(crate) fn read(files: &[PathBuf], default: &str) -> Result<Self, Failure> {
        let mut planned = Self::default();
        if files.is_empty() {
            return Ok(planned);
        }
        let schemas = Schemas::new(opensdn_crds::all());
        for file in files {
            let documents = match objects::objects_or_mapping(file)? {
                Content::Objects(documents) => documents,
                Content::Mapping(values) => {
                    planned.values_files.push((file.clone(), values));
                    continue;
                }
            };
            for document in documents {
                refuse_malformed(&schemas, &document)?;
                planned.add(document.value, default);
            }
        }
        let is_empty = planned.managers.is_empty() && planned.profiles.is_empty();
        if is_empty && planned.values_files.is_empty() {
            let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            let message =
                format!("there is no Manager and no VrouterProfile in {}", files.join(", "));
            let hint = "what is to run is said by a Manager: deploy/samples/manager.yaml; what is to be installed by values";
            return Err(Failure::new(Exit::Usage, "nothing-planned", message, hint));
        }
        Ok(planned)
    }

    fn add(&mut self, mut object: Value, default: &str) {
        mark(&mut object);
        let (group, _) = text(&object, "/apiVersion").split_once('/').unwrap_or_default();
        let (group, kind) = (group.to_owned(), text(&object, "/kind").to_owned());
        if namespace(&object).is_empty()
            && let Some(metadata) = object.pointer_mut("/metadata").and_then(Value::as_object_mut)
        {
            metadata.insert("namespace".to_owned(), json!(default));
        }
        match (&*group, &*kind) {
            (TUNGSTEN_GROUP, "Manager") => self.managers.push(object),
            (OPENSDN_GROUP, "VrouterProfile") => self.profiles.push(object),
            (TUNGSTEN_GROUP, _) => self.not_judged.push(format!("{kind} {}", title(&object))),
            _ => {}
        }
    }

    /// The same with the values of an installation: of files of [`Self::read`], and of `given`. None without either.
    ///
    /// # Errors
    /// They are none.
    pub(crate) fn with_values(mut self, given: &ValuesArgs) -> Result<Self, Failure> {
        let files = std::mem::take(&mut self.values_files);
        if !files.is_empty() || given.are_given() {
            self.values = Some(given.with(files, NAMESPACE)?);
        }
        Ok(self)
    }

    /// What an installation with these values is judged by.
    pub(crate) fn of_values(values: Values) -> Self {
        Self { values: Some(values), ..Self::default() }
    }

    /// A file that has values.
    pub(crate) fn values_file(&self) -> Option<&Path> {
        self.values_files.first().map(|(file, _)| file.as_path())
    }

    /// What is to be installed, where that is said.
    pub(crate) fn values(&self) -> Option<&Values> {
        self.values.as_ref()
    }

    /// Objects that look as if they were judged, and are not.
    pub(crate) fn not_judged(&self) -> &[String] {
        &self.not_judged
    }

    /// The Managers of the cluster as they will be.
    pub(super) fn put_managers(&self, stored: &mut Read<Vec<Value>>) {
        put(&self.managers, stored);
    }

    /// The VrouterProfiles of the cluster as they will be.
    pub(super) fn put_profiles(&self, stored: &mut Read<Vec<Value>>) {
        put(&self.profiles, stored);
    }
}

/// By which it is known that an object is not stored as it is judged.
const MARK: &str = "kubectl-opensdn/planned";

fn mark(object: &mut Value) {
    let Some(metadata) = object.pointer_mut("/metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(MARK.to_owned(), json!("true"));
    }
}

/// Whether it comes from a file: what is to be changed of it is changed there.
pub(super) fn is_planned(object: &Value) -> bool {
    annotation(object, MARK).is_some()
}

/// In place of those of the same name. Where it is not known what is stored, what is planned is known all the same.
fn put(planned: &[Value], stored: &mut Read<Vec<Value>>) {
    if planned.is_empty() {
        return;
    }
    let place = |object: &Value| (namespace(object).to_owned(), name(object).to_owned());
    // The last of a name counts, as it would for who applies them.
    let last: HashMap<(String, String), usize> =
        planned.iter().enumerate().map(|(number, object)| (place(object), number)).collect();
    let others = stored.items().iter().filter(|other| !last.contains_key(&place(other)));
    let planned = planned.iter().enumerate();
    let planned = planned.filter(|(number, object)| last.get(&place(object)) == Some(number));
    *stored = Read::Known(others.chain(planned.map(|(_, object)| object)).cloned().collect());
}

/// A field that cannot be read would be judged as one that is not set.
fn refuse_malformed(schemas: &Schemas, document: &Document) -> Result<(), Failure> {
    let problems = schemas.check(document, None);
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    let causes: Vec<String> = errors.take(SHOWN).map(|problem| problem.message.clone()).collect();
    if causes.is_empty() {
        return Ok(());
    }
    let kind = document.kind().unwrap_or_default();
    let name = document.name().unwrap_or_default();
    let message = format!("{kind} {name} is not as its schema has it");
    let hint = "all that is wrong, with places: kubectl opensdn validate";
    let mut failure = Failure::new(Exit::Usage, "malformed-object", message, hint);
    failure.causes = causes;
    Err(failure)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn read(text: &str) -> Result<Planned, Failure> {
        let file = file(text);
        Planned::read(&[file.path().to_owned()], "tf")
    }

    const MANAGER: &str = "{apiVersion: tf.tungsten.io/v1alpha1, kind: Manager, metadata: {name: m}, spec: {services: {}}}";

    #[test]
    fn what_is_planned_takes_the_place_of_what_is_stored_with_its_name() {
        let planned = read(MANAGER).unwrap();
        assert_eq!(planned.managers.len(), 1);
        let stored = |namespace: &str| json!({"metadata": {"name": "m", "namespace": namespace}});
        let mut managers = Read::Known(vec![stored("tf"), stored("other")]);
        planned.put_managers(&mut managers);
        let found: Vec<_> = managers.items().iter().map(title).collect();
        assert_eq!(found, ["other/m", "tf/m"]);
        assert!(managers.items()[1].pointer("/spec/services").is_some());
        for mut unknown in [Read::Absent, Read::Unknown("no right".to_owned())] {
            planned.put_managers(&mut unknown);
            assert_eq!(unknown.items().len(), 1);
        }
        let mut profiles = Read::Unknown("no right".to_owned());
        planned.put_profiles(&mut profiles);
        assert!(profiles.why_unknown().is_some(), "none is planned");
    }

    #[test]
    fn of_many_that_are_planned_the_last_of_a_name_counts() {
        let one = |number: usize, round: usize| json!({"metadata": {"name": format!("m{number}"), "namespace": "tf"}, "spec": {"round": round}});
        let both = (0..2).flat_map(|round| (0..20_000).map(move |number| one(number, round)));
        let planned: Vec<Value> = both.collect();
        let mut stored = Read::Known(vec![one(7, 9), one(30_000, 9)]);
        put(&planned, &mut stored);
        let rounds = stored.items().iter().map(|one| one["spec"]["round"].as_u64().unwrap());
        let rounds: Vec<u64> = rounds.collect();
        assert_eq!((rounds.len(), rounds[0]), (20_001, 9));
        assert!(rounds[1..].iter().all(|round| *round == 1));
    }

    #[test]
    fn other_objects_in_the_files_are_left_alone_and_components_are_named() {
        let text = format!(
            "{MANAGER}\n---\n{{apiVersion: v1, kind: Namespace, metadata: {{name: tf}}}}\n---\n\
             {{apiVersion: tf.tungsten.io/v1alpha1, kind: Vrouter, metadata: {{name: v, namespace: a}}, spec: \
             {{serviceConfiguration: {{}}}}}}"
        );
        assert_eq!(read(&text).unwrap().not_judged(), ["Vrouter a/v"]);
    }

    #[test]
    fn a_file_without_what_is_judged_or_with_what_the_api_server_refuses_is_an_error() {
        let error = read("{apiVersion: v1, kind: Namespace, metadata: {name: tf}}").unwrap_err();
        assert!(error.message.starts_with("there is no Manager"), "{}", error.message);
        let error = read(&MANAGER.replace("{services: {}}", "{services: 5}")).unwrap_err();
        assert!(
            error.message.contains("Manager m is not as its schema has it"),
            "{}",
            error.message
        );
        assert!(!error.causes.is_empty());
        let error = read(&format!("profile: ha\n---\n{MANAGER}")).unwrap_err();
        assert!(error.message.contains("without apiVersion and kind"), "{}", error.message);
        assert!(Planned::read(&[], "tf").unwrap().managers.is_empty());
    }

    #[test]
    fn a_file_may_have_the_values_of_an_installation_and_set_wins_over_it() {
        let values =
            file("{profile: ha, registry: registry.local/a, operator: {namespace: of-operator}}");
        let manager = file(MANAGER);
        let read = || Planned::read(&[values.path().to_owned(), manager.path().to_owned()], "tf");
        let planned = read().unwrap();
        assert_eq!(planned.values_file(), Some(values.path()));
        let set = ValuesArgs::without_files(vec!["registry=registry.local/b".to_owned()], None);
        let planned = planned.with_values(&set).unwrap();
        let found = planned.values().unwrap();
        assert_eq!(found.registry.as_deref(), Some("registry.local/b"));
        assert_eq!((&*found.namespace, &*found.operator.namespace), (NAMESPACE, "of-operator"));
        assert_eq!(planned.managers.len(), 1);

        let none = Planned::default().with_values(&ValuesArgs::default()).unwrap();
        assert_eq!(none.values(), None);
        let wrong = file("{replicas: 3}");
        let wrong = Planned::read(&[wrong.path().to_owned()], "tf").unwrap();
        let error = wrong.with_values(&ValuesArgs::default()).unwrap_err();
        assert!(error.causes.concat().contains("replicas"), "{error:?}");
    }
}
