//! Agents that run, and find no control node.

use super::*;

const HALF_A_MINUTE: Duration = Duration::from_secs(30);

#[test]
fn with_agents_that_are_asked_an_upgrade_ends_as_without() {
    let mut world = World::new().asking(HALF_A_MINUTE);
    assert_eq!(world.run(Killed::Never), Phase::Succeeded, "{}", world.message());
    let snapshot = world.status.snapshot.as_ref().unwrap();
    let vrouter = snapshot.iter().find(|one| one.service == "Vrouter/a").unwrap();
    assert_eq!(vrouter.xmpp.unwrap().up, Some(3));
    for wave in world.status.waves.iter().flatten().filter(|wave| wave.name != "images") {
        let gate = wave.gate.as_ref().unwrap();
        let xmpp = gate.iter().find(|check| check.name == "xmpp-as-before").unwrap();
        assert!(xmpp.passed, "{}", wave.name);
    }
}

#[test]
fn an_agent_that_finds_no_control_node_with_its_new_image_is_the_only_one() {
    let mut world = World::with_tag("Vrouter", "deaf").asking(HALF_A_MINUTE);
    let mut most = 0;
    for _ in 0..1800 {
        world.pass(Killed::Never);
        world.controllers();
        let vrouter = world.services.iter().find(|one| one.id == "Vrouter/a").unwrap();
        let is_deaf = |pod: &&crate::health::Pod| pod.images["vrouteragent"].ends_with("deaf");
        most = most.max(vrouter.pods.iter().filter(is_deaf).count());
    }
    assert_eq!((world.phase(), most), (Phase::RolledBack, 1));
    let why = "Vrouter/a: 2 of 3 agents with a control node, 3 before";
    assert!(world.message().contains(why), "{}", world.message());
}

#[test]
fn a_wave_after_which_agents_are_cut_off_is_taken_back() {
    let mut world = World::with_tag("Webui", "mute").asking(HALF_A_MINUTE);
    assert_eq!(world.run(Killed::Never), Phase::RolledBack, "{}", world.message());
    assert!(world.message().contains("(xmpp-as-before)"), "{}", world.message());
    assert_eq!(world.tags(), ["R24.1"; 4]);
}

#[test]
fn a_gate_is_not_passed_before_the_agents_were_asked_behind_it() {
    let mut world = World::with_tag("Webui", "mute").asking(Duration::from_secs(10 * 60));
    let waves = |world: &World| world.status.waves.clone().unwrap_or_default();
    let is_over = |world: &World| {
        waves(world).iter().any(|wave| wave.name == "web-ui" && wave.state == State::Succeeded)
    };
    for _ in 0..1800 {
        world.pass(Killed::Never);
        world.controllers();
        assert!(!is_over(&world), "what they said before they were cut off counts for nothing");
    }
    assert_eq!(world.phase(), Phase::RolledBack, "{}", world.message());
}

#[test]
fn agents_that_are_never_asked_again_shut_the_gate_after_its_time() {
    let mut world = World::new().asking(HALF_A_MINUTE);
    world.spec.on_failure = Some(OnFailure::Stop);
    world.asks = None;
    assert_eq!(world.run(Killed::Never), Phase::Stopped);
    assert!(world.message().contains("were not asked for introspect"), "{}", world.message());
}

#[test]
fn a_new_operator_asks_the_daemons_before_it_says_what_was_before() {
    let mut world = World::new().asking(HALF_A_MINUTE);
    // What another operator has written, and no longer is.
    let vrouter = world.services.iter_mut().find(|one| one.id == "Vrouter/a").unwrap();
    vrouter.daemons.as_mut().unwrap().asked_at = None;
    world.looking_since = world.now;
    world.pass(Killed::Never);
    assert_eq!(world.phase(), Phase::Pending, "{}", world.message());
    assert!(world.message().contains("asks the daemons of Vrouter/a"), "{}", world.message());
    // None asks them; it begins some day, and compares with nothing.
    world.asks = None;
    world.now += Duration::from_secs(10 * 60);
    assert_eq!(world.run(Killed::Never), Phase::Succeeded, "{}", world.message());
    let snapshot = world.status.snapshot.as_ref().unwrap();
    let vrouter = snapshot.iter().find(|one| one.service == "Vrouter/a").unwrap();
    assert_eq!((vrouter.daemons, vrouter.xmpp), (None, None));
}

#[test]
fn an_agent_that_finds_its_control_node_now_and_then_does_not_move_the_deadline_for_ever() {
    let mut world = World::new().asking(Duration::from_secs(1));
    let mut passes = 0;
    while ![Phase::RolledBack, Phase::Succeeded].contains(&world.phase()) {
        passes += 1;
        assert!(passes < 20_000, "it never ends: {}", world.message());
        world.pass(Killed::Never);
        world.controllers();
        // Good for some seconds, and not for some.
        let is_new = |pod: &crate::health::Pod| !pod.images["vrouteragent"].ends_with("R24.1");
        let now = world.now.unix_timestamp();
        let vrouter = world.services.iter_mut().find(|one| one.id == "Vrouter/a").unwrap();
        if vrouter.pods.iter().any(is_new) && now % 12 < 5 {
            let said = &mut vrouter.daemons.as_mut().unwrap().said;
            said.xmpp.as_mut().unwrap().up = Some(2);
        }
    }
    assert_eq!(world.phase(), Phase::RolledBack, "{}", world.message());
    assert!(world.message().contains(" times, and then was not"), "{}", world.message());
}
