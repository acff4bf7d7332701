//! Agents that run, and find no control node.

use super::*;
use crate::daemons::Daemons;

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
fn an_agent_that_finds_none_after_the_first_one_did_is_the_last_that_is_replaced() {
    let mut world = World::with_tag("Vrouter", "partly").asking(Duration::from_secs(1));
    let mut most = 0;
    for _ in 0..1800 {
        world.pass(Killed::Never);
        world.controllers();
        let vrouter = world.services.iter().find(|one| one.id == "Vrouter/a").unwrap();
        let is_new = |pod: &&crate::health::Pod| pod.images["vrouteragent"].ends_with("partly");
        most = most.max(vrouter.pods.iter().filter(is_new).count());
    }
    // The first works: none is turned back for the second.
    assert_eq!((world.phase(), most), (Phase::Stopped, 2), "{}", world.message());
    let why = "2 of 3 agents with a control node, 3 before";
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

#[test]
fn a_first_pod_whose_daemons_are_never_asked_is_not_waited_for_without_end() {
    let mut world = World::new().asking(HALF_A_MINUTE);
    world.spec.on_failure = Some(OnFailure::Stop);
    world.until(|world| world.status.steps.is_some() && world.state_is("Vrouter", State::Canary));
    world.asks = None;
    assert_eq!(world.run(Killed::Never), Phase::Stopped, "{}", world.message());
    assert!(world.message().contains("since then is not known yet"), "{}", world.message());
    assert_eq!(world.tags().last().unwrap(), "R24.1+R24.1.1", "the first alone");
}

#[test]
fn daemons_of_which_nothing_is_known_any_more_open_no_gate() {
    let mut world = World::new().asking(HALF_A_MINUTE);
    world.spec.on_failure = Some(OnFailure::Stop);
    world.until(|world| world.status.steps.is_some() && world.state_is("Webui", State::Running));
    world.asks = None;
    let vrouter = world.services.iter_mut().find(|one| one.id == "Vrouter/a").unwrap();
    vrouter.daemons = Some(Daemons::default());
    assert_eq!(world.run(Killed::Never), Phase::Stopped, "{}", world.message());
    assert!(world.message().contains("Vrouter/a"), "{}", world.message());
}

#[test]
fn the_way_back_says_which_daemons_are_not_what_they_were() {
    let mut world = World::with_bad("Webui").asking(HALF_A_MINUTE);
    world.until(|world| world.phase() == Phase::RollingBack);
    // Whatever has happened to them meanwhile.
    world.asks = None;
    let said = |world: &mut World, up| {
        let vrouter = world.services.iter_mut().find(|one| one.id == "Vrouter/a").unwrap();
        let daemons = vrouter.daemons.as_mut().unwrap();
        daemons.said.xmpp.as_mut().unwrap().up = Some(up);
        daemons.asked_at = Some(world.now);
    };
    said(&mut world, 1);
    let start = world.now;
    assert_eq!(world.run(Killed::Never), Phase::RolledBack);
    let why = "not as before: Vrouter/a: 1 of 3 agents with a control node, 3 before";
    assert!(world.message().contains(why), "{}", world.message());
    let waited = world.now - start;
    assert!(waited >= Duration::from_secs(3 * 60) && waited < Duration::from_secs(5 * 60));

    // Those that find one in time are not spoken of.
    let mut world = World::with_bad("Webui").asking(HALF_A_MINUTE);
    world.until(|world| world.phase() == Phase::RollingBack);
    said(&mut world, 1);
    assert_eq!(world.run(Killed::Never), Phase::RolledBack);
    assert!(!world.message().contains("not as before"), "{}", world.message());
}

#[test]
fn on_the_way_back_the_next_agent_waits_until_the_last_has_been_asked() {
    let mut world = World::new().asking(HALF_A_MINUTE);
    assert_eq!(world.run(Killed::Never), Phase::Succeeded);
    world.spec.goal = Some(Goal::RollBack);
    let mut waited = 0;
    while world.phase() != Phase::RolledBack {
        world.pass(Killed::Never);
        world.controllers();
        let vrouter = world.services.iter().find(|one| one.id == "Vrouter/a").unwrap();
        let asked_at = vrouter.daemons.as_ref().unwrap().asked_at.unwrap();
        let is_unheard = |pod: &&crate::health::Pod| {
            pod.ready_since.is_none_or(|since| since > asked_at)
                && pod.images["vrouteragent"].ends_with("R24.1")
        };
        let unheard = vrouter.pods.iter().filter(is_unheard).count();
        assert!(unheard <= 1, "two agents of which nothing is known: {:?}", vrouter.pods);
        waited += usize::from(vrouter.pods.iter().all(|pod| pod.is_ready) && unheard == 1);
    }
    assert!(waited > 5, "{waited}: else it never mattered");
    assert_eq!(world.tags(), ["R24.1"; 4]);
}

#[test]
fn on_the_way_back_agents_that_are_not_asked_any_more_are_waited_for_some_minutes() {
    let mut world = World::new().asking(HALF_A_MINUTE);
    assert_eq!(world.run(Killed::Never), Phase::Succeeded);
    (world.spec.goal, world.asks) = (Some(Goal::RollBack), None);
    let start = world.now;
    world.until(|world| {
        world.status.steps.is_some() && world.state_is("Vrouter", State::RolledBack)
    });
    let waited = world.now - start;
    assert!(
        waited > Duration::from_secs(4 * 60) && waited < Duration::from_secs(8 * 60),
        "{waited}"
    );
    assert_eq!(world.run(Killed::Never), Phase::RolledBack, "{}", world.message());
}

#[test]
fn an_agent_that_is_not_ready_gets_its_earlier_image_beside_others() {
    let mut world = World::with_tag("Vrouter", "bad").asking(HALF_A_MINUTE);
    world.until(|world| {
        world.status.steps.is_some() && world.state_is("Vrouter", State::RollingBack)
    });
    let start = world.now;
    assert_eq!(world.run(Killed::Never), Phase::RolledBack, "{}", world.message());
    assert!(world.now - start < Duration::from_secs(4 * 60), "{}", world.now - start);
}
