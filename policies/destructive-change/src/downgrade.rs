//! Images that go back to an earlier release.

use opensdn_policy_components::{ComponentView, release};
use opensdn_policy_sdk::{Message, Severity, Verdict};

use crate::{
    Spec,
    interruption::{changed, images},
};

pub(crate) const BACKWARDS: Message = Message {
    code: "OSDN2007",
    severity: Severity::Warn,
    title: "the images go back to an earlier release",
    explanation: "What the later release has written into the databases the earlier one may not be able to read: \
        none is tested with the data of one that came after it. To tf-operator it is an upgrade as any other. What the \
        operator itself takes back, as it rolls an Upgrade back, is not warned of.",
    hint: "stay at the later release, or restore the databases from a backup of the earlier one; an Upgrade that is under way \
        is taken back by: kubectl opensdn upgrade rollback",
};

/// Judges the component as it will be, beside its spec as it is.
pub(crate) fn judge(old: &Spec, new: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let (old, is) = (images(&old.service_configuration), images(&new.spec.service_configuration));
    let back = changed(&old, &is).into_iter().filter_map(|container| {
        let ((image, was), (other, is)) = (parts(old.get(container)?)?, parts(is.get(container)?)?);
        // Two programs have nothing to do with each other's releases.
        let is_back = image == other && release(is)? < release(was)?;
        is_back.then(|| format!("{container} from {was} to {is}"))
    });
    let back: Vec<_> = back.collect();
    if !back.is_empty() {
        let text = format!("{}: images go back: {}", new.title(), back.join(", "));
        verdict.add(BACKWARDS.at(new.setting("/containers")).says(text));
    }
}

/// Which image it is, wherever it is from, and its tag. Upstream's have another name since R25.1. Of an image by its digest
/// the tag says what was meant.
fn parts(image: &str) -> Option<(&str, &str)> {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    let (path, tag) = name.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'))?;
    let name = path.rsplit('/').next()?;
    let name = name.strip_prefix("contrail-").or(name.strip_prefix("opensdn-")).unwrap_or(name);
    Some((name, tag))
}
