//! Who watches hears of it that the operator looks.

use super::*;

#[test]
fn each_look_at_one_that_is_at_work_is_noted_now_and_then_and_nothing_else_is_written_for_it() {
    let mut world = World::new();
    // Nothing comes further.
    world.until(|world| world.state_is("Config", State::Canary));
    let (mut noted, mut passes) = (std::collections::BTreeSet::new(), 0);
    for _ in 0..60 {
        let before = world.status.clone();
        world.now += SOON;
        world.pass(Killed::Never);
        passes += 1;
        let at = world.status.looked_at.as_deref().and_then(parse).unwrap();
        assert!((world.now - at).unsigned_abs() <= NOTED + SOON, "{at}");
        let mut unsaid = world.status.clone();
        unsaid.looked_at.clone_from(&before.looked_at);
        if unsaid == before {
            noted.insert(world.status.looked_at.clone());
        }
    }
    assert!(!noted.is_empty() && noted.len() < passes / 3, "{} of {passes}", noted.len());
    // A clock that was put back ends nothing.
    world.now -= Duration::from_secs(3600);
    world.pass(Killed::Never);
    assert_eq!(world.status.looked_at.as_deref().and_then(parse), Some(world.now));
}

#[test]
fn a_wave_that_became_late_while_none_looked_has_a_moment_to_get_well() {
    let mut world = World::new();
    world.until(|world| world.state_is("Config", State::Running));
    // The process stood still: it has not begun to look anew.
    world.now += Duration::from_secs(86_400);
    world.pass(Killed::Never);
    assert_eq!(world.status.phase, Some(Phase::Running), "{}", world.message());
    let deadlines = world.status.waves.iter().flatten().filter_map(|wave| wave.deadline.as_deref());
    let latest = deadlines.filter_map(parse).max().unwrap();
    assert_eq!(latest - world.now, time::Duration::seconds(120), "a moment only");
    assert_eq!(world.run(Killed::Never), Phase::Succeeded);
}

#[test]
fn vrouters_that_are_held_while_it_is_paused_hear_at_once_that_it_is_resumed() {
    let mut world = World::new();
    world.until(|world| world.state_is("Vrouter", State::Running));
    world.spec.paused = Some(true);
    world.until(|world| world.status.phase == Some(Phase::Paused));
    world.spec.paused = None;
    let held = |world: &World| {
        let mut steps = world.status.steps.iter().flatten();
        steps.any(|step| step.id.starts_with("Vrouter/") && step.held == Some(true))
    };
    assert!(held(&world));
    // What is not heard is seen by the check in `World::pass`.
    world.until(|world| world.status.phase == Some(Phase::Running) && !held(world));
    assert_eq!(world.run(Killed::Never), Phase::Succeeded);
}
