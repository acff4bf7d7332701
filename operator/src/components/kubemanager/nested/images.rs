//! The images of kube-manager and of the CNI.

use opensdn_crds::nested::Nested;
use opensdn_nested_workloads::Images;

use super::{PLACE, Wrong};

/// The last part of the name of kube-manager's image, and of that of the CNI.
const KUBE_MANAGER: &str = "kubernetes-kube-manager";
const CNI: &str = "kubernetes-cni-init";

pub(super) fn images(kube_manager: Option<&str>, nested: &Nested, wrong: &mut Wrong) -> Images {
    let Some(image) = kube_manager.filter(|image| !image.is_empty()) else {
        let text = format!(
            "{PLACE}.containers has no image for kubemanager: add an entry with name and image"
        );
        wrong.push(("images", text));
        return Images::default();
    };
    let own = nested.cni.as_ref().and_then(|cni| cni.image.as_deref());
    let cni = match own.filter(|own| !own.is_empty()) {
        // It wins over the one that is made here.
        Some(_) => String::new(),
        None => cni_image(image).unwrap_or_else(|| {
            let text = format!(
                "{PLACE}.nested.cni.image is missing, and cannot be concluded from kube-manager's image {image}, whose \
                 name does not end in {KUBE_MANAGER} with a tag: set it"
            );
            wrong.push(("images.cni", text));
            String::new()
        }),
    };
    Images { kube_manager: image.to_owned(), cni }
}

/// That of the same release. Of a digest nothing can be concluded.
pub(super) fn cni_image(kube_manager: &str) -> Option<String> {
    let start = kube_manager.rfind('/').map_or(0, |at| at + 1);
    let (folder, name) = kube_manager.split_at_checked(start)?;
    let (name, tag) = name.split_once(':').filter(|_| !name.contains('@'))?;
    Some(format!("{folder}{}{CNI}:{tag}", name.strip_suffix(KUBE_MANAGER)?))
}
