//! A VrouterProfile that changes: with our operator the vrouters that name it restart. tf-operator knows no profiles.

use std::collections::BTreeMap;

use opensdn_policy_sdk::{Index, Outcome, Reads, Request, Verdict};
use serde_json::Value;

use crate::{Settings, interruption::VROUTERS};

/// Groups of a Manager are among them. By namespace: who makes thousands in one of his own that name the same profile must
/// lock none in another.
pub(crate) const VROUTERS_OF_NAMESPACE: Index = Index {
    name: "vrouters-by-namespace",
    group: "tf.tungsten.io",
    kind: "Vrouter",
    key: "/metadata/namespace",
    reads: &["/spec/serviceConfiguration/profiles"],
};

/// As many names as a message has.
const NAMED: usize = 5;

#[derive(Reads)]
#[reads(group = "opensdn.io", kind = "VrouterProfile", operations(Update))]
pub(crate) struct VrouterProfile {
    #[read("/spec/sriov")]
    sriov: Option<Value>,
    #[read("/spec/moreConfig")]
    variables: Option<BTreeMap<String, Value>>,
}

/// Warns where what pods are made of changes. Of a data plane that changes says `missing-reference` more.
pub(crate) fn changed(
    request: &Request<VrouterProfile>,
    _: &Settings,
    verdict: &mut Verdict,
) -> Outcome {
    let (Some(old), Some(new)) = (&request.old_object, &request.object) else { return Ok(()) };
    let given = |of: &VrouterProfile| of.variables.clone().unwrap_or_default();
    let parts = [("sriov", old.sriov != new.sriov), ("moreConfig", given(old) != given(new))];
    let parts: Vec<_> = parts.into_iter().filter(|(_, differs)| *differs).collect();
    let Some((first, _)) = parts.first() else { return Ok(()) };
    let mut users = Vec::new();
    for vrouter in VROUTERS_OF_NAMESPACE.find(&request.namespace)? {
        let profiles = vrouter.part::<Vec<String>>(0)?.unwrap_or_default();
        if profiles.contains(&request.name) {
            users.push(vrouter.name().to_owned());
        }
    }
    if users.is_empty() {
        return Ok(());
    }
    users.sort_unstable();
    let more = users.len().saturating_sub(NAMED);
    users.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let parts: Vec<_> = parts.iter().map(|(part, _)| *part).collect();
    let text = format!(
        "VrouterProfile {}: the agents of those that name it restart, one node after the other, and pods there lose their \
         network meanwhile, unless a later profile or the group itself says otherwise: Vrouter {}{more} ({})",
        request.name,
        users.join(", "),
        parts.join(", ")
    );
    let hint = "make the change when nodes of these groups may lose their network for a moment; to try it on few nodes \
        first, give them a group and a profile of their own";
    verdict.add(VROUTERS.at(format!("/spec/{first}").as_str()).says(text).hint(hint));
    Ok(())
}
