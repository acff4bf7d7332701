//! The DaemonSet: a pod on each node of the component.
//!
//! tf-operator leaves it to a person to delete pods one by one (OnDelete). Here one is replaced at a time, unless its settings say
//! otherwise or an Upgrade has the operator do it (`reconcile/pod_of_node.rs`), and the next only when the one before has been
//! ready for a while: a change that does not work stops at the first node.

use k8s_openapi::api::apps::v1::{
    DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy, RollingUpdateDaemonSet,
};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use opensdn_upgrade::settled;

use super::{Owner, pod};
use crate::canary::Pace;
use crate::component::Update;
use crate::names::CONFIGURATION;

/// tf-operator's, on pods only.
const VERSION: (&str, &str) = ("version", "1");

pub(super) fn build(owner: &Owner<'_>, configuration: &str) -> DaemonSet {
    let valid = owner.valid;
    let labels = valid.instance.labels();
    let mut of_pods = labels.clone();
    of_pods.insert(VERSION.0.to_owned(), VERSION.1.to_owned());
    DaemonSet {
        metadata: owner.metadata(valid.instance.daemon_set()),
        spec: Some(DaemonSetSpec {
            min_ready_seconds: Some(settled::OF_NODES),
            selector: LabelSelector { match_labels: Some(labels), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    annotations: Some(
                        [(CONFIGURATION.to_owned(), configuration.to_owned())].into(),
                    ),
                    labels: Some(of_pods),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod::build(valid, None)),
            },
            // While an Upgrade looks at the first pod the others wait, or each for its node to be drained.
            update_strategy: Some(update_strategy(&valid.pace, valid.description.update)),
            ..DaemonSetSpec::default()
        }),
        ..DaemonSet::default()
    }
}

/// By Kubernetes, unless only the operator replaces one, which looks at zones, too, or a user.
fn update_strategy(pace: &Pace, update: Update) -> DaemonSetUpdateStrategy {
    match update {
        Update::Rolling(at_once) if !pace.is_of_operator() => DaemonSetUpdateStrategy {
            type_: Some("RollingUpdate".to_owned()),
            rolling_update: Some(RollingUpdateDaemonSet {
                max_unavailable: Some(IntOrString::Int(at_once)),
                ..RollingUpdateDaemonSet::default()
            }),
        },
        Update::Rolling(_) | Update::OnDelete => DaemonSetUpdateStrategy {
            type_: Some("OnDelete".to_owned()),
            ..DaemonSetUpdateStrategy::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::canary::Drain;

    #[test]
    fn one_is_replaced_at_a_time_unless_the_settings_an_upgrade_or_a_user_say_otherwise() {
        let of = |pace: &Pace, update| json!(update_strategy(pace, update));
        for at_once in [1, 5] {
            assert_eq!(
                of(&Pace::default(), Update::Rolling(at_once)),
                json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": at_once}})
            );
        }
        assert_eq!(of(&Pace::default(), Update::OnDelete), json!({"type": "OnDelete"}));
        let held = [
            Pace { at_once: Some(1), ..Pace::default() },
            Pace { at_once: Some(5), ..Pace::default() },
            Pace { canary: true, ..Pace::default() },
            Pace { drain: Drain::For("tf/up".to_owned()), ..Pace::default() },
            Pace { on_hold: true, ..Pace::default() },
        ];
        for pace in held {
            for update in [Update::default(), Update::Rolling(50), Update::OnDelete] {
                assert_eq!(of(&pace, update), json!({"type": "OnDelete"}), "{pace:?} {update:?}");
            }
        }
    }
}
