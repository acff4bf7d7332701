//! Containers that are started again and again.

use super::*;

#[test]
fn a_service_that_was_bad_before_may_start_again_and_again() {
    let mut world = World::new();
    world.spec.images = Some(vec![opensdn_crds::upgrade::Image {
        kind: None,
        container: "api".to_owned(),
        image: format!("contrail-api:{NEW}"),
    }]);
    (world.spec.version, world.restless) = (None, Some("Webui/a"));
    world.services.iter_mut().find(|one| one.id == "Webui/a").unwrap().is_ready = false;
    assert_eq!(world.run(Killed::Never), Phase::Succeeded, "{}", world.message());
}

#[test]
fn a_gate_behind_which_containers_start_again_and_again_is_shut_after_its_time() {
    let mut world = World::new();
    world.restless = Some("Webui/a");
    world.spec.on_failure = Some(OnFailure::Stop);
    assert_eq!(world.run(Killed::Never), Phase::Stopped, "{}", world.message());
    assert!(world.message().contains("again and again"), "{}", world.message());
}

#[test]
fn a_first_pod_whose_containers_start_again_and_again_is_not_well_in_time() {
    let mut world = World::new();
    world.spec.on_failure = Some(OnFailure::Stop);
    world.until(|world| world.status.steps.is_some() && world.state_is("Config", State::Canary));
    world.restless = Some("Config/a");
    assert_eq!(world.run(Killed::Never), Phase::Stopped);
    assert!(world.message().contains("was started again"), "{}", world.message());
}

#[test]
fn one_restart_in_a_long_look_begins_it_again_and_ends_nothing() {
    let mut world = World::new();
    (world.spec.soak, world.spec.wave_timeout) = (Some("5m".to_owned()), Some("1m".to_owned()));
    world.spec.on_failure = Some(OnFailure::Stop);
    let is_asked = |world: &World| {
        world.status.waves.iter().flatten().any(|wave| wave.healthy_since.is_some())
    };
    world.until(is_asked);
    // Long after the time that a wave may be without progress, and before it has been well for long enough.
    for _ in 0..120 {
        world.pass(Killed::Never);
        world.controllers();
    }
    world.restless = Some("Webui/a");
    world.controllers();
    world.restless = None;
    assert_eq!(world.run(Killed::Never), Phase::Succeeded, "{}", world.message());
}

#[test]
fn a_first_pod_that_starts_again_now_and_then_does_not_move_the_deadline_without_end() {
    let mut world = World::new();
    world.spec.on_failure = Some(OnFailure::Stop);
    world.until(|world| world.status.steps.is_some() && world.state_is("Config", State::Canary));
    let mut passes = 0;
    while ![Phase::Stopped, Phase::Succeeded].contains(&world.phase()) {
        passes += 1;
        assert!(passes < 10_000, "it never ends: {}", world.message());
        // Each time it is well for twenty seconds, of the thirty that it has to be.
        world.restless = (passes % 10 == 0).then_some("Config/a");
        world.pass(Killed::Never);
        world.controllers();
    }
    assert_eq!(world.phase(), Phase::Stopped, "{}", world.message());
    assert!(world.message().contains(" times, and then was not"), "{}", world.message());
}
