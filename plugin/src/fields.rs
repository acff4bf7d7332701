//! The fields of our custom resources, as the CustomResourceDefinitions that are built in describe them: `kubectl explain`
//! without a cluster, with the rules of the schemas and the codes of the policies. Pure. Deliberately not here: what a code
//! means (`catalogue.rs`).

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::catalogue::Severity;

mod codes;
mod nearest;
mod resource;
mod schema;
mod text;

use resource::{Found, content, description};

pub(crate) use nearest::Missing;
pub(crate) use text::describe;

/// A field, and of what it is one.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FieldExplanation {
    /// The group and version: `tf.tungsten.io/v1alpha1`.
    pub(crate) api_version: String,
    /// The kind of the object.
    pub(crate) kind: String,
    /// The field; its path begins with the kind.
    pub(crate) field: Field,
    /// The codes of built-in policies that their cases give for this field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) codes: Vec<FieldCode>,
}

/// What a field is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Field {
    /// From the kind on, as `kubectl explain` takes it: `vrouter.spec.serviceConfiguration.mtu`.
    pub(crate) path: String,
    /// `string`, `integer`, `number`, `boolean`, `Object`, `any`, `[]string`, `map[string]string` and the like.
    #[serde(rename = "type")]
    pub(crate) type_name: String,
    /// What it means.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) description: String,
    /// Whether what it is a field of must have it.
    pub(crate) required: bool,
    /// What the API server fills in. Where it has nothing, the description says what an absent field means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) default: Option<Value>,
    /// The values that there are.
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed: Vec<Value>,
    /// The other limits, by the keywords of the schema: `minimum`, `maxLength`, `pattern`; those of the items of a list
    /// and of the values of a mapping begin with `items.` and `values.`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) bounds: BTreeMap<String, Value>,
    /// What else the API server demands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rules: Vec<FieldRule>,
    /// Its fields, those of the items of a list, or those of the values of a mapping.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) fields: Vec<Field>,
}

/// A rule in CEL.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FieldRule {
    /// The code of the message, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<String>,
    /// What the API server says.
    pub(crate) message: String,
    /// The rule itself.
    pub(crate) rule: String,
}

/// A code that a policy gives for a field.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FieldCode {
    /// The code.
    pub(crate) code: String,
    /// The policy.
    pub(crate) policy: String,
    /// What it does to a request.
    pub(crate) severity: Severity,
    /// What is wrong.
    pub(crate) title: String,
}

/// How many levels of fields an explanation has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The fields of the field.
    One,
    /// Theirs, too.
    All,
}

/// The schemas of our kinds.
pub(crate) struct Kinds(Vec<Kind>);

struct Kind {
    definition: CustomResourceDefinition,
    version: String,
    root: JSONSchemaProps,
}

impl Kinds {
    /// Those that are built in.
    pub(crate) fn built_in() -> Self {
        let mut kinds: Vec<Kind> = opensdn_crds::all().into_iter().filter_map(Kind::new).collect();
        kinds.sort_by(|one, other| one.name().cmp(other.name()));
        Self(kinds)
    }

    /// The field of that path: a kind, plural or short name, then the names of fields, all with dots between them. Positions
    /// in lists (`vrouters[0]`) and the group (`managers.tf.tungsten.io`) may stand in it.
    ///
    /// # Errors
    /// There is none; with what is most like it.
    pub(crate) fn explain(&self, words: &str, depth: Depth) -> Result<FieldExplanation, Missing> {
        let (kind, found) = self.find(words)?;
        Ok(FieldExplanation {
            api_version: format!("{}/{}", kind.definition.spec.group, kind.version),
            kind: kind.name().to_owned(),
            codes: codes::of(kind.name(), &found.path, self),
            field: schema::field(&kind.word(), &found, depth),
        })
    }

    fn find(&self, words: &str) -> Result<(&Kind, Found<'_>), Missing> {
        let written = nearest::without_positions(words);
        let mut names = written.split('.');
        let first = names.next().unwrap_or_default();
        let kind = self.0.iter().find(|kind| kind.is_called(first));
        let kind = kind.ok_or_else(|| Missing::kind(first, &self.0))?;
        let names: Vec<&str> = names.collect();
        Ok((kind, kind.walk(kind.without_group(&names))?))
    }

    /// The kind of that name, exactly.
    fn kind(&self, name: &str) -> Option<&Kind> {
        self.0.iter().find(|kind| kind.name() == name)
    }

    /// What can follow what has been typed: kinds, and after a dot the fields of one, with what each is.
    pub(crate) fn beginning_with(&self, typed: &str) -> Vec<(String, String)> {
        let Some((parent, start)) = typed.rsplit_once('.') else {
            let fits = |kind: &&Kind| kind.word().starts_with(&typed.to_lowercase());
            let named = |kind: &Kind| (kind.word(), description(&kind.root));
            return self.0.iter().filter(fits).map(named).collect();
        };
        // Which codes there are for it nothing shows here, and to find them takes its time.
        let Ok((_, found)) = self.find(parent) else { return Vec::new() };
        let fields = content(found.schema).properties.iter().flatten();
        let fitting = fields.filter(|(name, _)| name.starts_with(start));
        fitting.map(|(name, said)| (format!("{parent}.{name}"), description(said))).collect()
    }
}

#[cfg(test)]
mod tests;
