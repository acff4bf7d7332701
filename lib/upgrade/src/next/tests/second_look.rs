//! What a person does one thing right after another, and what is in the way that no image is to blame for.

use std::time::Duration;

use opensdn_crds::upgrade::{Goal, OnFailure, Phase, State};
use time::OffsetDateTime;

use super::world::{Killed, NEW, World};
use crate::next::{ANOTHER_TRY, FAILURE, is_failure};

/// Stopped at Config, of which one pod has an image that does not work.
fn stopped() -> World {
    let mut world = World::with_bad("Config");
    (world.spec.soak, world.spec.wave_timeout) = (Some("4s".into()), Some("30s".into()));
    world.spec.on_failure = Some(OnFailure::Stop);
    assert_eq!(world.run(Killed::Never), Phase::Stopped, "{}", world.message());
    world
}

#[test]
fn what_was_asked_for_another_try_goes_back_as_well() {
    for passes in 1..6 {
        let mut world = stopped();
        world.spec.retries = Some(1);
        for _ in 0..passes {
            world.pass(Killed::Never);
        }
        world.spec.goal = Some(Goal::RollBack);
        assert_eq!(world.run(Killed::Never), Phase::RolledBack, "{passes}: {}", world.message());
        assert!(world.tags().iter().all(|tag| tag == "R24.1"), "{passes}: {:?}", world.tags());
    }
}

#[test]
fn a_way_back_that_a_paused_manager_holds_up_has_its_whole_time_afterwards() {
    let mut world = World::brisk();
    assert_eq!(world.run(Killed::Never), Phase::Succeeded, "{}", world.message());
    world.spec.goal = Some(Goal::RollBack);
    world.until(|world| world.phase() == Phase::RollingBack && !world.message().is_empty());
    world.paused = Some("3am");
    for _ in 0..60 {
        world.pass(Killed::Never);
        world.now += Duration::from_secs(2);
    }
    assert_eq!(world.phase(), Phase::RollingBack, "{}", world.message());
    world.paused = None;
    assert_eq!(world.run(Killed::Never), Phase::RolledBack, "{}", world.message());
    assert!(world.message().contains("as a user wanted it"), "{}", world.message());
}

#[test]
fn where_one_vrouter_works_with_the_new_image_another_that_does_not_stops_it_and_turns_none_back() {
    let mut world = World::brisk();
    world.until(|world| {
        let pods =
            world.services.iter().filter(|one| one.id == "Vrouter/a").flat_map(|one| &one.pods);
        world.state_is("Vrouter", State::Running)
            && pods.filter(|pod| pod.images.values().any(|image| image.ends_with(NEW))).count() > 1
    });
    let vrouter = world.services.iter().find(|one| one.id == "Vrouter/a").unwrap();
    let new = |pod: &&crate::health::Pod| pod.images.values().any(|image| image.ends_with(NEW));
    let last = vrouter.pods.iter().filter(new).max_by_key(|pod| pod.ready_since).unwrap();
    world.lost =
        ["Vrouter-0", "Vrouter-1", "Vrouter-2"].into_iter().find(|name| *name == last.name);
    assert_eq!(world.run(Killed::Never), Phase::Stopped, "{}", world.message());
    assert_eq!(world.tags()[..3], [NEW; 3], "waves before it stay as they are");
    assert!(world.message().contains(world.lost.unwrap()), "{}", world.message());

    // Another try before it is well says no more of the image.
    world.spec.retries = Some(1);
    world.pass(Killed::Never);
    assert_eq!(world.run(Killed::Never), Phase::Stopped, "{}", world.message());
    assert_eq!(world.tags()[..3], [NEW; 3], "waves before it stay as they are");

    // Who wants that gets it.
    world.lost = None;
    world.spec.goal = Some(Goal::RollBack);
    assert_eq!(world.run(Killed::Never), Phase::RolledBack, "{}", world.message());
}

#[test]
fn a_failure_that_was_tried_again_stays_in_the_report_and_is_no_failure_any_more() {
    let mut world = stopped();
    for retries in 1..9 {
        world.spec.retries = Some(retries);
        world.pass(Killed::Never);
        assert_eq!(world.run(Killed::Never), Phase::Stopped, "{}", world.message());
        let remarks = world.status.remarks.iter().flatten();
        let of = remarks.filter(|one| one.code == FAILURE).collect::<Vec<_>>();
        let tried = of.iter().filter(|one| !is_failure(one)).count();
        assert_eq!((tried, of.len() - tried), (retries.min(5) as usize, 1), "{of:?}");
        assert!(of[0].message.starts_with("tried again: the wave config"), "{of:?}");
    }
}

#[test]
fn a_webhook_that_does_not_answer_turns_nothing_back() {
    let mut world = World::brisk();
    world.until(|world| world.state_is("Config", State::Canary));
    let why = "failed to set its images: failed calling webhook \"a\": context deadline exceeded";
    world.refusals.insert("Config/a".to_owned(), why.to_owned());
    // Nothing is set then.
    let freeze = |world: &mut World, passes: usize| {
        for _ in 0..passes {
            world.pass(Killed::Never);
            world.now += Duration::from_secs(2);
        }
    };
    freeze(&mut world, 90);
    assert_eq!(world.phase(), Phase::Running, "{}", world.message());
    assert!(world.message().contains("failed calling webhook"), "{}", world.message());
    world.refusals.clear();
    assert_eq!(world.run(Killed::Never), Phase::Succeeded, "{}", world.message());

    // What a webhook refuses is another matter.
    let mut world = World::brisk();
    world.until(|world| world.state_is("Config", State::Canary));
    world.refusals.insert("Config/a".to_owned(), "admission webhook denied it".to_owned());
    freeze(&mut world, 20);
    assert_eq!(world.phase(), Phase::RollingBack, "{}", world.message());
}

#[test]
fn a_first_pod_that_is_missing_or_does_not_end_is_called_so() {
    let mut world = World::new();
    world.until(|world| world.state_is("Config", State::Canary));
    let config = world.services.iter_mut().find(|one| one.id == "Config/a").unwrap();
    config.pods[2].images.insert("api".to_owned(), "contrail-api:R24.1".to_owned());
    config.pods[2].is_ready = false;
    config.pods[2].asked_to_end = Some(OffsetDateTime::UNIX_EPOCH);
    config.pods[2].finalizers = vec!["example.com/stuck".to_owned()];
    let gone = config.pods[2].clone();
    world.pass(Killed::Never);
    world.pass(Killed::Never);
    for part in ["Config-2", "has been ending since 1970-01-01", "finalizers: example.com/stuck"] {
        assert!(world.message().contains(part), "{part}: {}", world.message());
    }
    let config = world.services.iter_mut().find(|one| one.id == "Config/a").unwrap();
    config.pods.retain(|pod| pod.name != gone.name);
    world.pass(Killed::Never);
    world.pass(Killed::Never);
    for part in ["there are 2 of its 3 pods", "get events -n tf", "reason=FailedCreate"] {
        assert!(world.message().contains(part), "{part}: {}", world.message());
    }
}

#[test]
fn a_date_at_the_end_of_all_dates_ends_nothing() {
    let mut world = World::new();
    world.until(|world| world.state_is("Config", State::Canary));
    let end = || Some("9999-12-31T23:59:59Z".to_owned());
    for wave in world.status.waves.iter_mut().flatten() {
        (wave.deadline, wave.healthy_since, wave.finished_at) = (end(), end(), end());
    }
    for step in world.status.steps.iter_mut().flatten() {
        step.canary_since = end();
    }
    world.spec.soak = Some("999999h999999h".to_owned());
    world.spec.wave_timeout = Some("999999h".to_owned());
    for _ in 0..50 {
        world.pass(Killed::Never);
        world.controllers();
    }
}

#[test]
fn what_kubernetes_waits_for_between_two_pods_is_not_the_time_of_the_wave() {
    let kinds = super::every_kind();
    let control = kinds.iter().find(|one| one.2 == "Control").unwrap();
    let mut world = World::of(&[*control]);
    (world.spec.soak, world.spec.wave_timeout) = (Some("4s".into()), Some("30s".into()));
    world.until(|world| world.state_is("Control", State::Running));
    for service in &mut world.services {
        service.pods.iter_mut().for_each(|pod| pod.is_ready = true);
        let new =
            service.pods.iter_mut().filter(|pod| pod.images.values().any(|one| one.ends_with(NEW)));
        new.for_each(|pod| pod.ready_since = Some(world.now));
    }
    let since = world.now;
    while world.now - since < Duration::from_secs(60) {
        world.pass(Killed::Never);
        assert_eq!(world.phase(), Phase::Running, "{}", world.message());
        world.now += Duration::from_secs(2);
    }
    while world.phase() == Phase::Running && world.now - since < Duration::from_secs(300) {
        world.pass(Killed::Never);
        world.now += Duration::from_secs(2);
    }
    assert_eq!(world.phase(), Phase::RollingBack, "and then it is: {}", world.message());
}

#[test]
fn another_try_has_as_long_as_a_kubelet_waits_before_it_starts_a_container_again() {
    let mut world = stopped();
    world.spec.wave_timeout = Some("1m".to_owned());
    world.spec.retries = Some(1);
    let began = world.now;
    assert_eq!(world.run(Killed::Never), Phase::Stopped, "{}", world.message());
    let took = world.now - began;
    assert!(took >= ANOTHER_TRY && took < ANOTHER_TRY + Duration::from_secs(60), "{took}");
}
