//! The image whose program looks: the operator's own, so that a cluster without internet needs no other.

use opensdn_deploy::values::Operator;
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

/// That of the installed operator's Deployment, if there is one, else that of the values, else of this release.
///
/// # Errors
/// These name none.
pub(crate) fn image(installed: Option<&Value>, values: Option<&Values>) -> Result<String, Failure> {
    let installed = installed.map(|one| text(one, IMAGE)).filter(|image| !image.is_empty());
    if let Some(image) = installed {
        return Ok(image.to_owned());
    }
    // Also where no operator is to be installed, its image is where the others are.
    let operator = Operator { enabled: true, ..values.cloned().unwrap_or_default().operator };
    let steps = steps(&Values { operator, ..values.cloned().unwrap_or_default() })?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_is_that_of_the_installed_operator_else_of_the_values() {
        let mut values =
            Values { registry: Some("registry.local/a".to_owned()), ..Values::default() };
        values.operator.enabled = false;
        let planned = image(None, Some(&values)).unwrap();
        assert!(planned.starts_with("registry.local/a/opensdn-operator:"), "{planned}");
        let container = serde_json::json!({"image": "registry.local/b:1"});
        let installed =
            serde_json::json!({"spec": {"template": {"spec": {"containers": [container]}}}});
        assert_eq!(image(Some(&installed), Some(&values)).unwrap(), "registry.local/b:1");
        assert!(image(None, None).unwrap().contains("opensdn-operator"));
    }
}
