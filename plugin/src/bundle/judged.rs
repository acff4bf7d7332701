//! What `status` and `check` say, as documents.

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::redactor::Redactor;
use crate::checks::planned::Planned;
use crate::snapshot::ask::Asker;
use crate::{checks, status};

/// A file, and what is in it; else why it cannot be made.
pub(crate) type Document = (String, Result<Vec<u8>, String>);

/// Both.
pub(crate) async fn judged(asker: &Asker, server: &str, redactor: &Redactor) -> [Document; 2] {
    let scope = status::ask::Scope {
        control_namespace: opensdn_deploy::names::NAMESPACE.to_owned(),
        ..status::ask::Scope::default()
    };
    let world = Box::pin(status::ask::world(asker, &scope)).await;
    let status = document(&status::assess(&world, Timestamp::now()), redactor);
    let checks = match Box::pin(checks::ask::world(asker, server, &Planned::default())).await {
        Ok(world) => document(&checks::judge(&world, &checks::Chosen::default()), redactor),
        Err(failure) => Err(failure.message),
    };
    [("status.json".to_owned(), status), ("check.json".to_owned(), checks)]
}

/// Something as JSON, without secrets.
pub(crate) fn document(of: &impl Serialize, redactor: &Redactor) -> Result<Vec<u8>, String> {
    let mut value: Value = serde_json::to_value(of).map_err(|error| error.to_string())?;
    redactor.object(&mut value);
    serde_json::to_vec_pretty(&value).map_err(|error| error.to_string())
}
