//! A service that is left out in the middle gets its earlier images again, whatever else happens.

use super::*;

fn left_out(step: &str) -> Option<Vec<Skip>> {
    let (step, reason) = (step.to_owned(), "later".to_owned());
    Some(vec![Skip { step, reason, requested_by: None }])
}

#[test]
fn what_is_left_out_gets_all_of_its_earlier_images_before_the_upgrade_is_paused() {
    let mut world = World::new();
    world.until(|world| world.state_is("Config", State::Running));
    world.spec.paused = Some(true);
    world.spec.skip = left_out("Config/a");
    world.until(|world| world.phase() == Phase::Paused);
    assert_eq!(world.state("Config"), State::Skipped, "{}", world.message());
    assert_eq!(world.tags()[1], "R24.1");
    let config = world.services.iter().find(|one| one.id == "Config/a").unwrap();
    let earlier =
        |pod: &crate::health::Pod| pod.images.values().all(|image| image.ends_with("R24.1"));
    assert!(config.pods.iter().all(earlier), "{:?}", config.pods);
}

/// With a service that is on its way to its earlier images, and another one of its wave that a user has given another image.
fn stopped() -> World {
    let mut world = World::of(&every_kind());
    world.until(|world| world.status.steps.is_some() && world.state_is("Redis", State::Canary));
    for _ in 0..2 {
        world.pass(Killed::Never);
        world.controllers();
    }
    world.spec.skip = left_out("Redis/a");
    world.manager = image_of_zookeeper(&world, "other");
    world.pass(Killed::Never);
    assert_eq!(world.phase(), Phase::Stopped, "{}", world.message());
    assert_eq!(world.state("Redis"), State::RollingBack);
    world
}

fn image_of_zookeeper(world: &World, tag: &str) -> Value {
    let mut manager = world.manager.clone();
    let image = "/services/zookeeper/spec/serviceConfiguration/containers/0/image";
    let image = manager.pointer_mut(image).unwrap();
    let name = image.as_str().unwrap().rsplit_once(':').unwrap().0.to_owned();
    *image = format!("{name}:{tag}").into();
    manager
}

#[test]
fn one_that_stops_while_a_service_is_left_out_is_not_on_its_way_back() {
    let mut retried = stopped();
    assert!(!is_on_its_way_back(&retried.status));
    assert!(retried.message().contains("rollback"), "{}", retried.message());
    retried.manager = image_of_zookeeper(&retried, NEW);
    retried.spec.retries = Some(1);
    assert_eq!(retried.run(Killed::Never), Phase::Succeeded, "{}", retried.message());
    assert_eq!(retried.state("Redis"), State::Skipped);

    let mut back = stopped();
    back.manager = image_of_zookeeper(&back, NEW);
    back.spec.goal = Some(opensdn_crds::upgrade::Goal::RollBack);
    assert_eq!(back.run(Killed::Never), Phase::RolledBack, "{}", back.message());
    assert!(back.tags().iter().all(|tag| tag == "R24.1"), "{:?}", back.tags());
}

#[test]
fn what_is_left_out_while_all_goes_back_keeps_what_it_has() {
    let mut world = World::new();
    world.until(|world| world.state_is("Webui", State::Canary));
    world.spec.goal = Some(opensdn_crds::upgrade::Goal::RollBack);
    world.until(|world| world.phase() == Phase::RollingBack);
    world.spec.skip = left_out("Zookeeper/a");
    assert_eq!(world.run(Killed::Never), Phase::RolledBack, "{}", world.message());
    assert_eq!(world.tags(), [NEW, "R24.1", "R24.1", "R24.1"]);
    assert!(world.message().contains("left out were Zookeeper/a"), "{}", world.message());
}

#[test]
fn one_that_is_left_out_and_does_not_get_well_stops_the_upgrade_until_it_is_tried_again() {
    for on_failure in [None, Some(OnFailure::Stop), Some(OnFailure::RollBack)] {
        stops_until_it_is_tried_again(on_failure);
    }
}

fn stops_until_it_is_tried_again(on_failure: Option<OnFailure>) {
    let mut world = World::new();
    (world.spec.on_failure, world.spec.wave_timeout) = (on_failure, Some("1m".to_owned()));
    let canary =
        |world: &World| world.status.steps.is_some() && world.state_is("Config", State::Canary);
    world.until(canary);
    world.pass(Killed::Never);
    world.controllers();
    world.spec.skip = left_out("Config/a");
    // Its earlier images cannot be had any more.
    world.lost = Some("Config-0");
    assert_eq!(world.run(Killed::Never), Phase::Stopped, "{}", world.message());
    let said = world.status.remarks.clone();
    for _ in 0..50 {
        world.pass(Killed::Never);
        world.controllers();
        assert_eq!(world.phase(), Phase::Stopped, "nobody has asked for another try");
    }
    assert_eq!(world.status.remarks, said);
    world.lost = None;
    world.spec.retries = Some(1);
    assert_eq!(world.run(Killed::Never), Phase::Succeeded, "{}", world.message());
    assert_eq!(world.state("Config"), State::Skipped);
    assert_eq!(world.tags(), [NEW, "R24.1", NEW, NEW]);
}
