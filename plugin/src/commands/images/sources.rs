//! Which images are meant: those of an installation with its values, those that Managers name, and single ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use opensdn_deploy::names::NAMESPACE;
use serde_json::Value;

use super::Image;
use crate::exit::{Exit, Failure};
use crate::install::object::ObjectKey;
use crate::install::values::{ValuesArgs, steps};
use crate::oci::reference::Reference;
use crate::policy::objects;
use crate::ui::Ui;

/// Which images.
#[derive(Clone, Debug, Args)]
pub(crate) struct Sources {
    #[command(flatten)]
    values: ValuesArgs,
    /// A file with Managers or components (YAML or JSON, - for standard input), whose images are meant as well.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    manager: Vec<PathBuf>,
    /// One more image.
    #[arg(long, value_name = "IMAGE")]
    image: Vec<String>,
}

type Found = BTreeMap<String, Vec<ObjectKey>>;

impl Sources {
    /// All of them.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn images(&self) -> Result<Vec<Image>, Failure> {
        let mut found = self.of_installation()?.1;
        self.others(&mut found)?;
        let image = |(reference, used_by): (String, Vec<ObjectKey>)| {
            let digest = reference.split_once('@').map(|(_, digest)| digest.to_owned());
            Image { reference, digest, used_by }
        };
        Ok(found.into_iter().map(image).collect())
    }

    /// All that can be asked for: those of the installation only where a registry is named.
    ///
    /// # Errors
    /// A file cannot be read, a name is none, or nothing is left.
    pub(super) fn references(&self, ui: &mut Ui) -> Result<Vec<Reference>, Failure> {
        let (is_in_registry, mut of_installation) = self.of_installation()?;
        let mut found = Found::new();
        self.others(&mut found)?;
        if is_in_registry {
            found.append(&mut of_installation);
        }
        let names: Vec<String> = of_installation.into_keys().collect();
        let names = names.join(", ");
        let hint = "name the registry that has them: --set registry=registry.example.com/opensdn";
        if found.is_empty() {
            // By its name alone an image of another publisher would be found.
            let message = format!("no registry is named for {names}");
            return Err(Failure::usage(message, hint));
        }
        if !names.is_empty() {
            ui.warn(&format!("left out, since no registry is named for them: {names}"));
            ui.hint(hint);
        }
        let reference = |text: String| {
            let hint = "an image is called as in registry.example.com/opensdn/webhook:1.0";
            text.parse().map_err(|why: String| Failure::new(Exit::Usage, "no-image", why, hint))
        };
        found.into_keys().map(reference).collect()
    }

    /// Those of the installation, and whether they have a registry.
    fn of_installation(&self) -> Result<(bool, Found), Failure> {
        let values = self.values.read(NAMESPACE)?;
        let mut found = Found::new();
        for object in steps(&values)?.iter().flat_map(|step| &step.objects) {
            let containers = object.pointer("/spec/template/spec/containers");
            for container in containers.and_then(|all| all.as_array()).into_iter().flatten() {
                note(&mut found, container, object);
            }
        }
        Ok((values.registry.is_some(), found))
    }

    fn others(&self, found: &mut Found) -> Result<(), Failure> {
        for path in &self.manager {
            for object in objects::all(path)? {
                let before = found.len();
                within(object.get("spec").unwrap_or(&Value::Null), &object, found);
                if found.len() == before
                    && found.values().flatten().all(|one| *one != ObjectKey::of(&object))
                {
                    return Err(without_images(path, &object));
                }
            }
        }
        for image in &self.image {
            found.entry(image.clone()).or_default();
        }
        Ok(())
    }
}

fn without_images(path: &Path, object: &Value) -> Failure {
    let ObjectKey { kind, name, .. } = ObjectKey::of(object);
    let message = format!("{}: {kind} {name} names no image", path.display());
    let hint = "give a Manager, or a component, with spec.….serviceConfiguration.containers";
    Failure::new(Exit::Usage, "no-image", message, hint)
}

/// The containers of all services, wherever they are: a Manager's, and a component's own.
fn within(value: &Value, object: &Value, found: &mut Found) {
    match value {
        Value::Object(fields) => {
            let containers = fields.get("containers").and_then(Value::as_array);
            for container in containers.into_iter().flatten() {
                note(found, container, object);
            }
            fields.values().for_each(|value| within(value, object, found));
        }
        Value::Array(items) => items.iter().for_each(|item| within(item, object, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn note(found: &mut Found, container: &Value, object: &Value) {
    let image = container.get("image").and_then(Value::as_str).filter(|image| !image.is_empty());
    let Some(image) = image else { return };
    let used_by = found.entry(image.to_owned()).or_default();
    let key = ObjectKey::of(object);
    if !used_by.contains(&key) {
        used_by.push(key);
    }
}
