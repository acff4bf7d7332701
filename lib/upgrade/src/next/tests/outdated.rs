//! One of another plan than that which was looked at.

use super::*;

#[test]
fn one_of_an_outdated_plan_begins_within_a_minute_and_never_afterwards() {
    let hash = World::new().decide().status.plan;
    let with_other = |seconds: i64| {
        let mut world = World::new();
        world.spec.plan = hash.clone();
        let before = world.manager.clone();
        let image = "/services/webui/spec/serviceConfiguration/containers/0/image";
        *world.manager.pointer_mut(image).unwrap() = "contrail-webuiweb:R24.1.7".into();
        world.pass(Killed::Never);
        assert_eq!(world.phase(), Phase::Refused, "{}", world.message());
        assert!(world.message().starts_with("OSDN5010"), "{}", world.message());
        world.now += time::Duration::seconds(seconds);
        world.pass(Killed::Never);
        world.manager = before;
        world
    };
    // The operator knew the Manager a moment later.
    let mut early = with_other(30);
    early.pass(Killed::Never);
    assert_eq!(early.phase(), Phase::Running, "{}", early.message());
    // A way back of another Upgrade must not start it.
    let mut late = with_other(61);
    for _ in 0..100 {
        late.pass(Killed::Never);
        late.controllers();
    }
    assert_eq!(late.phase(), Phase::Refused);
    assert!(late.message().contains("does not begin any more"), "{}", late.message());
}
