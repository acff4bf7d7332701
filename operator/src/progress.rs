//! Whether an object is on its way to what its spec says (pure): the condition Progressing, which is True or False for as
//! long as there is a status. `kubectl wait --for=condition=Progressing=False` ends when nothing is brought about any more,
//! whether that went well or not.

use opensdn_crds::status::{Condition, ConditionStatus, Conditions, PAUSED, READY, RECONCILING};

/// Something is being brought about: objects are written, pods come, go or are replaced, members change.
pub const PROGRESSING: &str = "Progressing";

/// Reasons that a loss has as well as a way: of what had come to its end before nothing is brought about by waiting.
const LOSSES: [&str; 3] = ["PodsNotReady", "NeedsNotReady", "NoNodes"];
/// Reasons of what waits for a person, though nothing is wrong with the object.
const FOR_A_PERSON: [&str; 3] = ["UpgradeStopped", "PodsToBeDeleted", REFUSED];
/// The reason of an object of which a setting is not carried out until a person changes something.
pub const REFUSED: &str = "Refused";

/// Sets it by what else is set. `is_resized` says that more or fewer pods are wanted than before, which no generation shows: nodes
/// are labelled, and a service is stopped by an annotation.
pub fn progressing(
    conditions: &mut Conditions<'_>,
    earlier: &[Condition],
    is_resized: bool,
    generation: Option<i64>,
    now: &str,
) {
    let reason_and_message = |condition: &Condition| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        (text(&condition.reason), text(&condition.message))
    };
    let had_ended = earlier.iter().any(|one| {
        one.type_ == PROGRESSING
            && one.status == ConditionStatus::False.label()
            && one.observed_generation == generation
            && !is_resized
    });
    let is_still =
        |reason: &str| FOR_A_PERSON.contains(&reason) || (had_ended && LOSSES.contains(&reason));
    let paused = conditions.get(PAUSED).map(reason_and_message);
    let reconciling = conditions.get(RECONCILING).map(reason_and_message);
    let ready = conditions.get(READY).map(reason_and_message).unwrap_or_default();
    let (status, (reason, message)) = match (paused, reconciling) {
        (Some((_, why)), _) => (ConditionStatus::False, (PAUSED.to_owned(), why)),
        (None, Some((reason, message))) if !is_still(&reason) => {
            (ConditionStatus::True, (reason, message))
        }
        (None, Some(why)) => (ConditionStatus::False, why),
        (None, None) => (ConditionStatus::False, ready),
    };
    conditions.set(PROGRESSING, status, &reason, &message, generation, now);
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENERATION: Option<i64> = Some(3);

    fn after(
        before: Option<(ConditionStatus, i64)>,
        set: impl Fn(&mut Conditions<'_>),
    ) -> (String, String) {
        resized(false, before, set)
    }

    fn resized(
        is_resized: bool,
        before: Option<(ConditionStatus, i64)>,
        set: impl Fn(&mut Conditions<'_>),
    ) -> (String, String) {
        let earlier: Vec<Condition> = before
            .into_iter()
            .map(|(status, generation)| Condition {
                type_: PROGRESSING.to_owned(),
                status: status.label().to_owned(),
                observed_generation: Some(generation),
                ..Condition::default()
            })
            .collect();
        let mut conditions = Conditions::after(&earlier);
        set(&mut conditions);
        progressing(&mut conditions, &earlier, is_resized, GENERATION, "now");
        let said = conditions.get(PROGRESSING).unwrap();
        (said.status.clone(), said.reason.clone().unwrap())
    }

    fn said(status: &str, reason: &str) -> (String, String) {
        (status.to_owned(), reason.to_owned())
    }

    fn waits(reason: &'static str) -> impl Fn(&mut Conditions<'_>) {
        move |conditions| conditions.reconciling(reason, "why", GENERATION, "now")
    }

    #[test]
    fn what_is_on_its_way_progresses_and_what_is_ready_stalled_or_paused_does_not() {
        assert_eq!(after(None, waits("PodsNotReady")), said("True", "PodsNotReady"));
        assert_eq!(
            after(None, |all| all.ready("PodsReady", "", GENERATION, "now")),
            said("False", "PodsReady")
        );
        assert_eq!(
            after(None, |all| all.stalled("NoImage", "", GENERATION, "now")),
            said("False", "NoImage")
        );
        let paused = |all: &mut Conditions<'_>| {
            all.set(PAUSED, ConditionStatus::True, "Annotation", "", GENERATION, "now");
            waits("PodsNotReady")(all);
        };
        assert_eq!(after(None, paused), said("False", "Paused"));
    }

    #[test]
    fn a_pod_that_is_lost_later_is_no_progress_until_something_is_to_be_another() {
        let ended = || Some((ConditionStatus::False, 3));
        assert_eq!(after(ended(), waits("PodsNotReady")), said("False", "PodsNotReady"));
        assert_eq!(after(ended(), waits("RollingUpdate")), said("True", "RollingUpdate"));
        let under_way = Some((ConditionStatus::True, 3));
        assert_eq!(after(under_way, waits("PodsNotReady")), said("True", "PodsNotReady"));
        assert_eq!(after(under_way, waits("UpgradeStopped")), said("False", "UpgradeStopped"));
        assert_eq!(after(under_way, waits(REFUSED)), said("False", "Refused"));
        let of_another_spec = Some((ConditionStatus::False, 2));
        assert_eq!(after(of_another_spec, waits("PodsNotReady")), said("True", "PodsNotReady"));
        assert_eq!(resized(true, ended(), waits("PodsNotReady")), said("True", "PodsNotReady"));
    }
}
