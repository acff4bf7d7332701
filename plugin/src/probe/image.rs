//! The image whose program looks: the operator's own, so that a cluster without internet needs no other.

use opensdn_deploy::{Values, names};
use serde_json::Value;

use crate::exit::Failure;
use crate::install::values::steps;
use crate::snapshot::ask::Asker;
use crate::snapshot::places::Places;
use crate::snapshot::{name, text};

const IMAGE: &str = "/spec/template/spec/containers/0/image";

/// The Deployment of the operator of this cluster, if there is one that may be read.
pub(crate) async fn installed(asker: &Asker) -> Option<Value> {
    let namespace = Places::of(asker, names::NAMESPACE).await.operator;
    let name = names::operator::NAME;
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}");
    asker.get(&path).await.known().cloned()
}

/// That of the installed operator's Deployment, if there is one, else that of the values of this release.
///
/// # Errors
/// This release names none.
pub(crate) fn image(installed: Option<&Value>) -> Result<String, Failure> {
    let installed = installed.map(|one| text(one, IMAGE)).filter(|image| !image.is_empty());
    if let Some(image) = installed {
        return Ok(image.to_owned());
    }
    let steps = steps(&Values::default())?;
    let mut objects = steps.iter().flat_map(|step| &step.objects);
    let found = objects
        .find(|one| text(one, "/kind") == "Deployment" && name(one) == names::operator::NAME);
    let image = found.map(|one| text(one, IMAGE).to_owned()).unwrap_or_default();
    if image.is_empty() {
        let message = "this release names no image of the operator";
        return Err(Failure::usage(message, "name one with --probe-image"));
    }
    Ok(image)
}
