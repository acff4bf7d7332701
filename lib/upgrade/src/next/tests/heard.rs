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
