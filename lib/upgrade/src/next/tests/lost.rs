//! A node that is lost in the middle of a wave.

use opensdn_crds::upgrade::{OnFailure, Phase, State};

use super::world::{Killed, NEW, World};

/// The first vrouter has its new image and is well; then the node of the last is lost.
fn behind_the_first(mut world: World) -> World {
    world.until(|world| world.state_is("Vrouter", State::Running));
    world.lost = Some("Vrouter-2");
    world
}

#[test]
fn a_node_that_is_lost_with_its_earlier_images_turns_nothing_back() {
    let mut world = behind_the_first(World::brisk());
    assert_eq!(world.run(Killed::Never), Phase::Stopped, "{}", world.message());
    for part in ["Vrouter-2", "w9", "upgrade retry"] {
        assert!(world.message().contains(part), "{part}: {}", world.message());
    }
    assert_eq!(world.tags()[..3], [NEW; 3], "waves before it stay as they are");
    // It is back.
    world.lost = None;
    world.spec.retries = Some(1);
    world.pass(Killed::Never);
    assert_eq!(world.run(Killed::Never), Phase::Succeeded, "{}", world.message());
    assert_eq!(world.tags(), [NEW; 4]);
}

#[test]
fn a_node_that_is_lost_before_the_first_is_replaced_turns_nothing_back_either() {
    let mut world = World::brisk();
    world.until(|world| world.state_is("Vrouter", State::Canary));
    world.lost = Some("Vrouter-2");
    assert_eq!(world.run(Killed::Never), Phase::Stopped, "{}", world.message());
    assert!(world.message().contains("Vrouter-2"), "{}", world.message());
    assert_eq!(world.tags()[..3], [NEW; 3], "waves before it stay as they are");
}

#[test]
fn who_wants_it_back_gets_it_back_as_far_as_the_lost_node_lets() {
    let mut world = behind_the_first(World::brisk());
    world.spec.on_failure = Some(OnFailure::RollBack);
    world.until(|world| world.phase() == Phase::RollingBack);
    assert_eq!(world.run(Killed::Never), Phase::Stopped, "{}", world.message());
    assert!(world.message().contains("the way back failed"), "{}", world.message());
    world.lost = None;
    world.spec.retries = Some(1);
    world.pass(Killed::Never);
    assert_eq!(world.run(Killed::Never), Phase::RolledBack, "{}", world.message());
    assert_eq!(world.tags(), ["R24.1"; 4]);
}

#[test]
fn a_new_image_that_does_not_work_goes_back_although_a_node_is_lost() {
    let mut world = World::with_bad("Vrouter");
    world.until(|world| {
        let mut pods = world.services.iter().flat_map(|one| &one.pods);
        pods.any(|pod| pod.images.values().any(|image| image.contains("bad")))
    });
    world.lost = Some("Vrouter-2");
    world.until(|world| world.phase() == Phase::RollingBack);
    world.lost = None;
    assert_eq!(world.run(Killed::Never), Phase::RolledBack, "{}", world.message());
}
