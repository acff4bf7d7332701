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
        none is tested with the data of one that came after it. tf-operator treats it as an upgrade. What the \
        operator itself takes back, as it rolls an Upgrade back, is not warned of.",
    hint: "stay at the later release, or restore the databases from a backup of the earlier one; an Upgrade that is under way \
        is taken back by: kubectl opensdn upgrade rollback",
};

/// Judges the component as it will be, beside its spec as it is.
pub(crate) fn judge(old: &Spec, new: &ComponentView<'_, Spec>, verdict: &mut Verdict) {
    let (old, is) = (images(&old.service_configuration), images(&new.spec.service_configuration));
    let back = changed(&old, &is).into_iter().filter_map(|container| {
        let (was, is) = (tag(old.get(container)?)?, tag(is.get(container)?)?);
        (release(is)? < release(was)?).then(|| format!("{container} from {was} to {is}"))
    });
    let back: Vec<_> = back.collect();
    if !back.is_empty() {
        let text = format!("{}: images go back: {}", new.title(), back.join(", "));
        verdict.add(BACKWARDS.at(new.setting("/containers")).says(text));
    }
}

/// Of an image by its digest the tag says nothing for certain, but what was meant.
fn tag(image: &str) -> Option<&str> {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    let (_, tag) = name.rsplit_once(':')?;
    (!tag.contains('/')).then_some(tag)
}
