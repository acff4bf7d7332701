//! Changes that tf-operator applies at once, late, or not at all.

use opensdn_policy_components::ComponentView;
use opensdn_policy_sdk::{Message, Severity, Verdict};

use crate::{
    Common, Spec,
    upgrade::{begins, images},
};

pub(crate) const NOT_STAGED: Message = Message {
    code: "OSDN1309",
    severity: Severity::Warn,
    title: "tf-operator replaces all services at the same time",
    explanation: "It upgrades in stages only where the tag changes of the first container of kubemanager, else of \
        webui, else of the first of controls. With another registry and the same tag, or other tags alone, \
        every StatefulSet is replaced at once, the databases too; so it is with another logLevel, which is in \
        the environment of each container, and the vrouters' agents restart besides.",
    hint: "change the tag of kubemanager (else webui, else controls) together with the others, or make the change \
        when the whole cluster may restart",
};

pub(crate) const NOT_APPLIED: Message = Message {
    code: "OSDN1818",
    severity: Severity::Warn,
    title: "tf-operator does not apply this change of the vrouters",
    explanation: "It updates the DaemonSet only where an image or a variable of a container changes. \
        The pages that pods ask for, node selector and tolerations stay what they were. The MTU of pods is written \
        into a ConfigMap that a pod of the vrouter reads when it starts.",
    hint: "delete the DaemonSet of the group when its nodes may lose their network: tf-operator makes it \
        again with the new settings; for another MTU delete the pods of the vrouters, one node after the other",
};

pub(crate) const NO_NEW_KEYS: Message = Message {
    code: "OSDN1905",
    severity: Severity::Warn,
    title: "tf-operator keeps the keys and certificates that are there",
    explanation: "It makes a key where there is none. What is set here holds for nodes that come later; \
        a signer that is taken out is used until the operator restarts.",
    hint: "delete the Secrets NAME-secret-certificates when the services may restart, and restart the \
        operator",
};

/// What it takes where none is given: upstream's `pkg/certificates/certificate.go:72`.
fn signer(common: &Common) -> &str {
    common.cert_signer.as_deref().unwrap_or("SelfSignedCA")
}

/// It passes over numbers below 1: upstream's `pkg/certificates/certificate.go:28`.
fn key_length(common: &Common) -> i64 {
    common.cert_key_length.filter(|length| *length > 0).unwrap_or(4096)
}

pub(crate) fn judge_common(old: &Common, new: &Common, verdict: &mut Verdict) {
    for (field, changes) in [
        ("certSigner", signer(old) != signer(new)),
        ("certKeyLength", key_length(old) != key_length(new)),
    ] {
        if changes {
            let text = format!("a limit of tf-operator: {field} changes, and no certificate does");
            let at = opensdn_policy_sdk::Pointer::from("/spec/commonConfiguration").key(field);
            verdict.add(NO_NEW_KEYS.at(at).says(text));
        }
    }
}

/// Another level of logs, which everything has in its environment.
pub(crate) fn judge_level(old: &Common, new: &Common, verdict: &mut Verdict) {
    let level = |common: &Common| match common.log_level.as_str() {
        "" => "debug".to_owned(),
        level => level.to_owned(),
    };
    let (was, is) = (level(old), level(new));
    if was != is {
        let text = format!(
            "a limit of tf-operator: with logLevel {is} in place of {was} it replaces all services and \
             restarts all agents at once"
        );
        let hint = "make the change when the whole cluster may restart";
        verdict.add(NOT_STAGED.at("/spec/commonConfiguration/logLevel").says(text).hint(hint));
    }
}

/// Those that are in both.
fn pairs<'a>(
    before: &'a [ComponentView<'a, Spec>],
    after: &'a [ComponentView<'a, Spec>],
) -> impl Iterator<Item = (&'a ComponentView<'a, Spec>, &'a ComponentView<'a, Spec>)> {
    after.iter().filter_map(|new| {
        let same = |old: &&ComponentView<'_, Spec>| (old.kind, old.name) == (new.kind, new.name);
        before.iter().find(same).map(|old| (old, new))
    })
}

/// Other images by which no upgrade in stages begins.
pub(crate) fn judge_images(
    before: &[ComponentView<'_, Spec>],
    after: &[ComponentView<'_, Spec>],
    verdict: &mut Verdict,
) {
    let staged = begins(before, after).is_some();
    let moved: Vec<_> = pairs(before, after)
        .filter(|(_, new)| new.kind != "Vrouter" && !staged)
        .filter(|(old, new)| {
            let old = images(old);
            images(new).iter().any(|(name, image)| {
                let was = old.iter().find(|(other, _)| other == name).map(|(_, image)| image);
                was.is_some_and(|was| (was.name, was.tag) != (image.name, image.tag))
            })
        })
        .map(|(_, new)| new)
        .collect();
    if let Some(first) = moved.first() {
        let titles: Vec<_> = moved.iter().map(|component| component.title()).collect();
        let text = format!(
            "a limit of tf-operator: no upgrade in stages begins by these images, and it replaces at once: {}",
            titles.join(", ")
        );
        verdict.add(NOT_STAGED.at(first.setting("/containers")).says(text));
    }
}

pub(crate) fn judge_vrouters(
    before: &[ComponentView<'_, Spec>],
    after: &[ComponentView<'_, Spec>],
    verdict: &mut Verdict,
) {
    for (old, new) in pairs(before, after).filter(|(_, new)| new.kind == "Vrouter") {
        judge_vrouter(old, new, verdict);
    }
}

/// What changes of a group of vrouters and does not reach its pods, or not yet.
fn judge_vrouter(
    old: &ComponentView<'_, Spec>,
    new: &ComponentView<'_, Spec>,
    verdict: &mut Verdict,
) {
    let mut changed = Vec::new();
    if old.spec.given("cniMTU") != new.spec.given("cniMTU") {
        let text = format!(
            "a limit of tf-operator: cniMTU of {} holds on a node only when its pod starts again",
            new.title()
        );
        let hint = "delete the pods of the vrouters, one node after the other; pods that run keep their MTU";
        verdict.add(NOT_APPLIED.at(new.setting("/cniMTU")).says(text).hint(hint));
    }
    for field in ["hugePages2M", "hugePages1G"] {
        if old.spec.given(field) != new.spec.given(field) {
            changed.push((new.setting("").key(field), field));
        }
    }
    let (was, is) = (&old.spec.common_configuration, &new.spec.common_configuration);
    if was.node_selector != is.node_selector {
        changed.push((new.shared("/nodeSelector"), "nodeSelector"));
    }
    if was.tolerations != is.tolerations {
        changed.push((new.shared("/tolerations"), "tolerations"));
    }
    if let Some((at, _)) = changed.first() {
        let names: Vec<_> = changed.iter().map(|(_, name)| *name).collect();
        let text = format!(
            "a limit of tf-operator: the pods of {} keep what they ask for of {}",
            new.title(),
            names.join(", ")
        );
        let hint = format!(
            "delete DaemonSet {}-vrouter-daemonset when its nodes may lose their network: \
             tf-operator makes it again",
            new.name
        );
        verdict.add(NOT_APPLIED.at(at).says(text).hint(hint));
    }
}
