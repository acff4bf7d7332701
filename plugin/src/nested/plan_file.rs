//! A plan in a file, with the Config API that it is for. It is carried out only while the cloud is as it was when the
//! plan was made.

use std::path::Path;

use opensdn_nested::Plan;
use opensdn_nested::plan::FORMAT;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::atomic_write;
use crate::exit::{Exit, Failure};
use crate::output::{API_VERSION, Answer};
use crate::policy::objects;

/// What `nested plan` answers, and what `nested apply --plan` reads.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NestedPlan {
    /// The addresses of the Config API.
    pub(crate) config_api: Vec<String>,
    /// The plan.
    pub(crate) plan: Plan,
}

impl Answer for NestedPlan {
    const KIND: &'static str = "NestedPlan";
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document<P> {
    api_version: String,
    kind: String,
    #[serde(flatten)]
    plan: P,
}

impl NestedPlan {
    /// Writes it as `-o json` would.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let document = Document {
            api_version: API_VERSION.to_owned(),
            kind: Self::KIND.to_owned(),
            plan: self,
        };
        let unwritable = |error: &dyn std::error::Error| {
            let message = format!("the plan cannot be written to {}", path.display());
            let hint = "name another file: --out FILE";
            Failure::new(Exit::Usage, "unwritable-file", message, hint).because(error)
        };
        let text = serde_json::to_string_pretty(&document).map_err(|error| unwritable(&error))?;
        atomic_write::replace(path, (text + "\n").as_bytes()).map_err(|error| unwritable(&error))
    }

    /// Reads it.
    ///
    /// # Errors
    /// The file cannot be read, or has no plan that this version knows.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |why: String| {
            let message = format!("{} has no plan that can be carried out: {why}", path.display());
            let hint = "make one: kubectl opensdn nested plan --out FILE";
            Failure::new(Exit::Usage, "unreadable-plan", message, hint)
        };
        let document: Document<Self> = serde_json::from_value(objects::mapping(path)?)
            .map_err(|error| wrong(error.to_string()))?;
        if document.kind != Self::KIND || document.api_version != API_VERSION {
            return Err(wrong(format!("it is a {} of {}", document.kind, document.api_version)));
        }
        let plan = document.plan;
        if plan.plan.format != FORMAT {
            return Err(wrong(format!(
                "its format is {}, and this program knows {FORMAT}",
                plan.plan.format
            )));
        }
        Ok(plan)
    }
}
