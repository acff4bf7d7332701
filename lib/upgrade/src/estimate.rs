//! For how long services will be at work: what their pods took to be ready when they were made last, and what is waited for on
//! purpose. By it a time is chosen; it is no promise, and pulling images is not in it.

use std::time::Duration;

use opensdn_crds::upgrade::{Step, UpgradeSpec};

use crate::health::{Pod, Service};
use crate::next::{is_of_nodes, soak};
use crate::order::has_canary;
use crate::settled;

/// A pod that took longer was held up by something else, or has been ready before.
const LONGEST_START: Duration = Duration::from_secs(900);
/// What a pod takes to be ready of which nothing is known: most take less, a Cassandra 40 to 58 s (docs/src/upgrade.md).
const USUAL_START: Duration = Duration::from_secs(60);
/// What a pod takes to end: a Cassandra 8 to 11 s, a RabbitMQ 19 to 27 (docs/src/upgrade.md).
const USUAL_END: Duration = Duration::from_secs(15);

/// For how long the services of a wave will be at work, beside each other, and what is waited for behind it.
pub fn of_wave(steps: impl Iterator<Item = Duration>, spec: &UpgradeSpec) -> Duration {
    steps.max().map_or(Duration::ZERO, |longest| longest.saturating_add(soak(spec)))
}

/// For how long a service will be at work; for no time where it has no pods.
#[must_use]
pub fn of_step(step: &Step, services: &[Service], spec: &UpgradeSpec) -> Duration {
    let kind = step.id.split('/').next().unwrap_or_default();
    let service = services.iter().find(|one| one.id == step.id);
    let pods = service.map(|one| one.pods.as_slice()).unwrap_or_default();
    let at_once = if is_of_nodes(step) { spec.vrouters_at_once.unwrap_or(1) } else { 1 };
    let at_once = usize::try_from(at_once).unwrap_or(1).max(1);
    let rest = pods.len().saturating_sub(1).div_ceil(at_once);
    let turns = rest.saturating_add(usize::from(!pods.is_empty()));
    let settles = settled::of_kind(kind).unwrap_or_default();
    let settles = Duration::from_secs(u64::try_from(settles).unwrap_or_default());
    // Behind the last one nothing is waited for but the gate.
    let first = if has_canary(kind) { settles.max(soak(spec)) } else { settles };
    let first = if turns > 1 { first } else { Duration::ZERO };
    let others = times(settles, turns.saturating_sub(2));
    times(start(pods).saturating_add(USUAL_END), turns).saturating_add(first).saturating_add(others)
}

fn times(one: Duration, count: usize) -> Duration {
    one.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
}

/// What a pod takes to be ready, by the middle one of those that there are.
fn start(pods: &[Pod]) -> Duration {
    let mut all: Vec<Duration> = pods.iter().filter_map(took).collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or(USUAL_START)
}

/// What this one took, if it became ready once.
fn took(pod: &Pod) -> Option<Duration> {
    let took = Duration::try_from(pod.ready_since? - pod.created?).ok()?;
    (pod.restarts == 0 && took <= LONGEST_START).then_some(took)
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;

    use super::*;

    /// A pod that became ready so many seconds after it was made.
    fn pod(seconds: i64, restarts: i64) -> Pod {
        let created = OffsetDateTime::UNIX_EPOCH + time::Duration::days(20_000);
        let ready_since = Some(created + time::Duration::seconds(seconds));
        Pod { created: Some(created), ready_since, restarts, ..Pod::default() }
    }

    fn seconds(kind: &str, pods: Vec<Pod>, spec: &UpgradeSpec) -> u64 {
        let step = Step::new(format!("{kind}/a"), "a".to_owned(), Vec::new());
        let service = Service { id: step.id.clone(), pods, ..Service::default() };
        of_step(&step, &[service], spec).as_secs()
    }

    #[test]
    fn each_pod_takes_what_the_middle_one_took_and_the_first_is_looked_at() {
        let spec = UpgradeSpec::default();
        let pods = || vec![pod(40, 0), pod(50, 0), pod(600, 0)];
        assert_eq!(seconds("Cassandra", pods(), &spec), 3 * (50 + 15) + 30);
        assert_eq!(seconds("Kubemanager", pods(), &spec), 3 * (50 + 15), "of it none is looked at");
        assert_eq!(seconds("Config", vec![pod(50, 0)], &spec), 50 + 15, "there is no other one");
        assert_eq!(seconds("Config", Vec::new(), &spec), 0);
    }

    #[test]
    fn a_pod_that_has_been_ready_before_says_nothing_of_its_start() {
        let spec = UpgradeSpec::default();
        for pods in [vec![pod(901, 0)], vec![pod(20, 1)], vec![pod(-1, 0)], vec![Pod::default()]] {
            assert_eq!(seconds("Webui", pods, &spec), 60 + 15);
        }
    }

    #[test]
    fn control_nodes_and_vrouters_have_to_be_ready_for_a_while_before_the_next() {
        let spec = UpgradeSpec::default();
        let pods = |count| vec![pod(10, 0); count];
        assert_eq!(seconds("Control", pods(3), &spec), 3 * 25 + 60 + 60);
        assert_eq!(seconds("Vrouter", pods(12), &spec), 12 * 25 + 30 + 10 * 30);
        let five = UpgradeSpec { vrouters_at_once: Some(5), ..spec.clone() };
        assert_eq!(seconds("Vrouter", pods(12), &five), 4 * 25 + 30 + 2 * 30, "one, 5, 5 and 1");
        let long = UpgradeSpec { soak: Some("5m".to_owned()), ..spec };
        assert_eq!(seconds("Vrouter", pods(2), &long), 2 * 25 + 300);
    }

    #[test]
    fn services_of_a_wave_are_at_work_beside_each_other_and_a_gate_is_behind_them() {
        let spec = UpgradeSpec::default();
        let all = [40, 90, 20].map(Duration::from_secs);
        assert_eq!(of_wave(all.into_iter(), &spec).as_secs(), 90 + 30);
        assert_eq!(of_wave([].into_iter(), &spec), Duration::ZERO);
    }

    #[test]
    fn a_number_of_a_spec_that_no_one_means_ends_nothing() {
        let spec = UpgradeSpec { vrouters_at_once: Some(i64::MIN), ..UpgradeSpec::default() };
        assert!(seconds("Vrouter", vec![pod(10, 0); 3], &spec) > 0);
        let spec = UpgradeSpec { vrouters_at_once: Some(i64::MAX), ..UpgradeSpec::default() };
        assert!(seconds("Vrouter", vec![pod(10, 0); 3], &spec) > 0);
    }
}
