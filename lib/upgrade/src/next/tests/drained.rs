//! Vrouters that wait for their nodes to be drained.

use super::*;

#[test]
fn vrouters_wait_for_their_nodes_to_be_drained_as_long_as_that_takes() {
    let mut world = World::brisk().waiting_for_drain();
    let waits = |world: &World| world.message().contains("waits for a node to be drained");
    for (number, left) in
        [(0, "left: node-0, node-1, node-2"), (1, "left: node-1, node-2"), (2, "left: node-2")]
    {
        world.until(waits);
        assert!(world.message().ends_with(left), "{}", world.message());
        // Far longer than a wave may be without progress.
        for _ in 0..200 {
            world.pass(Killed::Never);
            world.controllers();
        }
        assert_eq!(world.phase(), Phase::Running, "{}", world.message());
        world.drained = [format!("node-{number}")].into();
        for _ in 0..2 {
            world.pass(Killed::Never);
            world.controllers();
        }
    }
    assert_eq!(world.run(Killed::Never), Phase::Succeeded, "{}", world.message());
    assert_eq!(world.tags(), [NEW; 4]);
}

#[test]
fn on_the_way_back_no_node_has_to_be_drained() {
    let mut world = World::brisk().waiting_for_drain();
    world.drained = ["node-0".to_owned()].into();
    world.until(|world| world.message().contains("left: node-1, node-2"));
    world.spec.goal = Some(Goal::RollBack);
    world.drained.clear();
    assert_eq!(world.run(Killed::Never), Phase::RolledBack, "{}", world.message());
    assert_eq!(world.tags(), ["R24.1"; 4]);
}

#[test]
fn a_first_vrouter_is_not_said_to_be_done_before_it_has_been_well_for_a_while() {
    let mut world = World::new().waiting_for_drain();
    world.drained = ["node-1".to_owned()].into();
    let has_first = |world: &World| {
        let steps = world.status.steps.iter().flatten();
        steps.clone().any(|step| step.id == "Vrouter/a" && step.canary_since.is_some())
    };
    world.until(has_first);
    assert!(world.message().contains("has to be well for a while"), "{}", world.message());
    // Neither does it end when containers start again and again.
    world.restless = Some("Vrouter/a");
    assert_eq!(world.run(Killed::Never), Phase::Stopped, "{}", world.message());
}

#[test]
fn where_nodes_are_to_be_drained_a_failure_stops_and_the_way_back_begins_held() {
    let mut world = World::brisk().waiting_for_drain();
    world.drained = ["node-0".to_owned()].into();
    world.until(|world| world.message().contains("left: node-1, node-2"));
    // The one that is done gets worse: nothing goes back by itself.
    let vrouters = |world: &mut World| {
        let service = world.services.iter_mut().find(|one| one.id == "Vrouter/a").unwrap();
        service.pods[0].is_ready = false;
        service.is_ready = false;
    };
    for _ in 0..60 {
        vrouters(&mut world);
        world.now += Duration::from_secs(2);
        world.pass(Killed::Never);
    }
    assert_eq!(world.phase(), Phase::Stopped, "{}", world.message());
    world.spec.goal = Some(Goal::RollBack);
    world.pass(Killed::Never);
    let vrouter = world.status.steps.iter().flatten().find(|one| one.id == "Vrouter/a").unwrap();
    assert_eq!((vrouter.state, vrouter.held), (State::RollingBack, Some(true)));
    assert_eq!(world.run(Killed::Never), Phase::RolledBack, "{}", world.message());
}
