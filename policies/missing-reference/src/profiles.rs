//! The VrouterProfiles that a Vrouter names, from both sides: they must be there, and may not go
//! while they are named. Which may stand in one list is in `data_planes`.

use opensdn_policy_components::ComponentView;
use opensdn_policy_sdk::{Index, Message, Outcome, Reads, Request, Severity, Verdict};

use crate::{
    Settings, Spec,
    data_planes::{self, Profile},
};

pub(crate) const MISSING: Message = Message {
    code: "OSDN1821",
    severity: Severity::Deny,
    title: "the vrouters name a VrouterProfile that is not there",
    explanation: "The profile decides how the data plane runs. Without it the vrouters of the \
        group cannot be configured, and a profile that goes away while it is in use would change \
        the data plane under the workloads.",
    hint: "create the VrouterProfile first, or name another: kubectl get vrouterprofiles",
};

pub(crate) const PROFILES: Index = Index {
    name: "profiles",
    group: "opensdn.io",
    kind: "VrouterProfile",
    key: "",
    reads: &["/spec/kernel", "/spec/dpdk", "/spec/nodeSelector"],
};

/// By namespace: who makes thousands in one of his own that name the same profile must lock none in another.
pub(crate) const VROUTERS: Index = Index {
    name: "vrouters-by-namespace",
    group: "tf.tungsten.io",
    kind: "Vrouter",
    key: "/metadata/namespace",
    reads: &["/spec/serviceConfiguration/profiles"],
};

pub(crate) const MANAGERS: Index = Index {
    name: "managers-by-namespace",
    group: "tf.tungsten.io",
    kind: "Manager",
    key: "/metadata/namespace",
    reads: &["/spec/services/vrouters"],
};

pub(crate) fn judge(
    component: &ComponentView<'_, Spec>,
    namespace: &str,
    verdict: &mut Verdict,
) -> Outcome {
    let mut all = Vec::new();
    for (number, name) in component.spec.service_configuration.profiles.iter().enumerate() {
        if let Some(profile) = PROFILES.get(namespace, name)? {
            all.push(Profile::of(&profile)?);
        } else {
            let title = component.title();
            let text =
                format!("{title}: there is no VrouterProfile {name:?} in namespace {namespace}");
            let at = component.setting("/profiles").index(number);
            let hint = format!(
                "create it first, or name one of: kubectl -n {namespace} get vrouterprofiles"
            );
            verdict.add(MISSING.at(at).says(text).hint(hint));
        }
    }
    data_planes::judge(component, &all, verdict);
    Ok(())
}

#[derive(Reads)]
#[reads(group = "opensdn.io", kind = "VrouterProfile", operations(Delete))]
pub(crate) struct VrouterProfile {
    #[read("/metadata/name")]
    name: String,
}

pub(crate) fn deleted_profile(
    request: &Request<VrouterProfile>,
    _: &Settings,
    verdict: &mut Verdict,
) -> Outcome {
    let Some(VrouterProfile { name }) = &request.old_object else { return Ok(()) };
    for (user, _) in data_planes::users(name, &request.namespace)? {
        let text = format!("VrouterProfile {name} is in use: {user} names it");
        let hint = format!("remove it from the profiles of {user} first");
        verdict.add(MISSING.at("/metadata/name").says(text).hint(hint));
    }
    Ok(())
}
