//! The JSON Schema of every answer, by kind. A command's own answers are in the command's file;
//! here is only the list.

use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::commands;
use crate::exit::Failure;
use crate::output::{API_VERSION, Answer};

/// A kind of document and its schema.
pub(crate) struct Published {
    /// The document's `kind`.
    pub(crate) kind: &'static str,
    schema: fn() -> Schema,
    /// Whether a document has to say what it is: a file that users write need not.
    says_what_it_is: bool,
}

/// Every kind, by name.
pub(crate) const PUBLISHED: &[Published] = &[
    of::<commands::audit::AuditFindings>(),
    of::<crate::certificates::renew::CertificatesRenewal>(),
    of::<crate::certificates::CertificatesReport>(),
    of::<crate::checks::report::CheckCatalogue>(),
    of::<crate::checks::report::CheckReport>(),
    of::<commands::config::set::ConfigChange>(),
    of::<commands::config::path::ConfigPath>(),
    of::<commands::config::view::ConfigView>(),
    of::<crate::connectivity::cleanup::ConnectivityCleanup>(),
    of::<crate::connectivity::ConnectivityReport>(),
    of::<crate::connectivity::speed::ConnectivitySpeed>(),
    of::<Failure>(),
    of::<commands::explain::Explanations>(),
    of::<commands::images::ImageList>(),
    of::<commands::images::transfer::ImageTransfer>(),
    of::<commands::nested::insecure_registry::InsecureRegistry>(),
    of::<commands::install::Installation>(),
    of::<commands::diff::InstallationDiff>(),
    of::<commands::diff::manifests::ManifestDiff>(),
    of::<commands::nested::apply::NestedApplication>(),
    of::<crate::nested::plan_file::NestedPlan>(),
    of::<commands::nested::remove::NestedRemoval>(),
    of::<crate::nested::verify::NestedVerification>(),
    of::<commands::nested::hosts::NodeHosts>(),
    of::<commands::policy::bench::PolicyBench>(),
    of::<commands::policy::build::PolicyBuild>(),
    of::<commands::policy::explain::PolicyExplanation>(),
    of::<commands::policy::inspect::PolicyInspection>(),
    of::<commands::policy::new::PolicyProject>(),
    of::<crate::policy::evaluation::PolicyRun>(),
    of::<crate::policy::test_report::PolicyTest>(),
    of::<commands::nested::registry_secret::RegistrySecret>(),
    of::<crate::nested::registry_check::RegistrySecretReport>(),
    of::<crate::status::report::StatusReport>(),
    of::<crate::bundle::report::SupportBundle>(),
    of::<commands::uninstall::Uninstallation>(),
    of::<crate::upgrade::edit::UpgradeChange>(),
    of::<crate::upgrade::history::UpgradeHistory>(),
    of::<crate::upgrade::plan::UpgradePlan>(),
    of::<crate::upgrade::report::UpgradeReport>(),
    of::<crate::upgrade::way_back::UpgradeRollBack>(),
    of::<opensdn_validate::report::ValidationReport>(),
    file::<opensdn_deploy::Values>(),
    of::<commands::version::Versions>(),
];

const fn of<A: Answer>() -> Published {
    Published { kind: A::KIND, schema: schema::<A>, says_what_it_is: true }
}

/// A kind that is read as well.
const fn file<A: Answer>() -> Published {
    let schema = || SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<A>();
    Published { kind: A::KIND, schema, says_what_it_is: false }
}

fn schema<A: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<A>()
}

impl Published {
    /// The schema of the whole document.
    pub(crate) fn schema(&self) -> Value {
        let mut schema = (self.schema)().to_value();
        let envelope = json!({
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": self.kind},
        });
        if let (Some(schema), Value::Object(envelope)) = (schema.as_object_mut(), envelope) {
            schema.insert("title".to_owned(), json!(self.kind));
            let properties =
                schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
            let mut names: Vec<Value> = envelope.keys().map(|name| json!(name)).collect();
            if let Some(properties) = properties.as_object_mut() {
                properties.extend(envelope);
            }
            if !self.says_what_it_is {
                return Value::Object(std::mem::take(schema));
            }
            let required = schema.entry("required").or_insert_with(|| Value::Array(Vec::new()));
            if let Some(required) = required.as_array_mut() {
                names.append(required);
                *required = names;
            }
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// The kinds of the answers in the source of a folder and those below.
    fn kinds(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                kinds(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(path).unwrap();
            // Answers of tests are published nowhere.
            let code = text.split("#[cfg(test)]").next().unwrap();
            let written = code.split("const KIND: &'static str = \"").skip(1);
            found.extend(
                written.filter_map(|rest| rest.split_once('"')).map(|(kind, _)| kind.into()),
            );
        }
    }

    #[test]
    fn every_answer_has_a_published_schema() {
        let mut written = BTreeSet::new();
        kinds(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut written);
        let published: Vec<&str> = PUBLISHED.iter().map(|one| one.kind).collect();
        assert_eq!(published, Vec::from_iter(written.iter().map(String::as_str)));
    }
}
