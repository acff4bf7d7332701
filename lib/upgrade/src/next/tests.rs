//! An Upgrade from its beginning to its end.

mod agents;
mod drained;
mod heard;
mod left_out;
mod lost;
mod outdated;
mod restless;
mod second_look;
mod world;

use opensdn_crds::upgrade::{OnFailure, Skip};

use super::*;
use world::{Killed, NEW, World, every_kind};

#[test]
fn all_services_get_the_new_images_wave_by_wave() {
    let mut world = World::new();
    assert_eq!(world.run(Killed::Never), Phase::Succeeded, "{}", world.message());
    assert_eq!(world.tags(), [NEW; 4]);
    let order: Vec<_> = world.set.iter().map(|one| one.split('/').next().unwrap()).collect();
    assert_eq!(order, ["Zookeeper", "Config", "Webui", "Vrouter"]);
    let ready = world.status.conditions.as_ref().unwrap().iter().find(|one| one.type_ == "Ready");
    assert_eq!(ready.unwrap().status, "True");
    assert!(world.status.finished_at.is_some());
    let again = world.decide();
    assert_eq!((again.status, again.images, again.look_again), (world.status, vec![], None));
}

#[test]
fn killed_at_any_decision_it_comes_to_the_same_end_and_sets_no_image_twice() {
    let bad = || World {
        spec: UpgradeSpec { images: World::with_bad("Config").spec.images, ..World::brisk().spec },
        ..World::brisk()
    };
    for make in [World::brisk, bad, || World::brisk().on_nodes()] {
        let mut calm = make();
        let end = calm.run(Killed::Never);
        for number in 1..=calm.decisions {
            for killed in [Killed::Before(number), Killed::After(number)] {
                let mut world = make();
                assert_eq!(world.run(killed), end, "{killed:?}: {}", world.message());
                assert_eq!(world.set, calm.set, "{killed:?}");
                assert_eq!(world.tags(), calm.tags(), "{killed:?}");
            }
        }
    }
}

#[test]
fn no_image_is_set_before_the_status_says_that_it_will_be() {
    let mut world = World::new();
    for _ in 0..1800 {
        let decision = world.decide();
        if !decision.images.is_empty() {
            assert!(has_same_states(&decision.status, &world.status));
        }
        for set in &decision.images {
            let step =
                world.status.steps.iter().flatten().find(|step| step.id == set.service).unwrap();
            assert!(matches!(step.state, State::Canary | State::Running), "{step:?}");
            assert!(step.started_at.is_some() && step.attempts == Some(1));
        }
        world.pass(Killed::Never);
        world.controllers();
    }
    assert_eq!(world.phase(), Phase::Succeeded);
}

#[test]
fn one_pod_of_a_service_is_looked_at_for_a_while_before_the_next_is_replaced() {
    let mut world = World::new();
    world.until(|world| {
        world.state_is("Config", State::Canary)
            && world.set.iter().any(|one| one.starts_with("Config"))
    });
    let since = world.now;
    world.until(|world| world.state_is("Config", State::Running));
    assert!(world.now - since >= SOAK, "{}", world.now - since);
    let config = world.services.iter().find(|one| one.id == "Config/a").unwrap();
    let new = config.pods.iter().filter(|pod| pod.images["api"].ends_with(NEW)).count();
    assert!(new <= 2, "the second at the earliest now");
}

#[test]
fn a_canary_that_starts_again_and_again_is_not_well() {
    let mut world = World::new();
    world.until(|world| world.state_is("Config", State::Canary));
    for round in 0..120 {
        world.pass(Killed::Never);
        world.controllers();
        let config = world.services.iter_mut().find(|one| one.id == "Config/a").unwrap();
        if round % 5 == 0 {
            config.pods[0].restarts += 1;
        }
        assert_eq!(world.state("Config"), State::Canary);
    }
}

#[test]
fn a_bad_image_of_any_kind_takes_one_pod_and_all_come_back() {
    for of in every_kind() {
        let kind = of.2;
        let mut world = World::of(&every_kind()).giving(&of, "bad");
        // Of a tag no version of RabbitMQ is known.
        world.spec.force = Some(vec!["OSDN5014".to_owned()]);
        world.until(|world| world.phase() == Phase::RollingBack);
        let bad =
            world.services.iter().flat_map(|one| &one.pods).filter(|pod| !pod.is_ready).count();
        assert_eq!(bad, 1, "{kind}");
        assert_eq!(world.run(Killed::Never), Phase::RolledBack, "{kind}: {}", world.message());
        assert!(world.tags().iter().all(|tag| tag == "R24.1"), "{kind}: {:?}", world.tags());
        assert!(world.message().contains("ImagePullBackOff"), "{}", world.message());
        let stalled = world
            .status
            .conditions
            .as_ref()
            .unwrap()
            .iter()
            .any(|one| one.type_ == "Stalled" && one.status == "True");
        assert!(stalled);
    }
}

#[test]
fn a_wave_that_fails_is_left_as_it_is_where_a_person_shall_decide() {
    let mut world = World::with_bad("Config");
    world.spec.on_failure = Some(OnFailure::Stop);
    assert_eq!(world.run(Killed::Never), Phase::Stopped);
    assert_eq!(world.tags()[1], "R24.1+bad");
    let said = world.status.clone();
    for _ in 0..100 {
        world.pass(Killed::Never);
        world.controllers();
    }
    assert_eq!(world.status, said, "nothing more is changed");
    // With another try it fails again.
    world.spec.retries = Some(1);
    world.pass(Killed::Never);
    assert_eq!(world.phase(), Phase::Running);
    assert_eq!(world.run(Killed::Never), Phase::Stopped);
    let config = world.status.steps.iter().flatten().find(|one| one.id == "Config/a").unwrap();
    assert_eq!(config.attempts, Some(2));
    // Left out, the others follow; what it has stays.
    world.spec.skip = Some(vec![Skip {
        step: "Config/a".into(),
        reason: "known".into(),
        requested_by: Some("ann".into()),
    }]);
    assert_eq!(world.run(Killed::Never), Phase::Succeeded, "what is left out keeps no gate shut");
    assert_eq!(world.tags(), [NEW, "R24.1", NEW, NEW], "what is left out has its earlier image");
}

#[test]
fn a_step_that_is_left_out_is_on_record_with_who_and_why() {
    let mut world = World::with_bad("Webui");
    world.spec.on_failure = Some(OnFailure::Stop);
    world.run(Killed::Never);
    world.spec.skip = Some(vec![Skip {
        step: "Webui/a".into(),
        reason: "not needed".into(),
        requested_by: Some("ann".into()),
    }]);
    world.pass(Killed::Never);
    assert_eq!(world.phase(), Phase::Running);
    assert_eq!(world.run(Killed::Never), Phase::Succeeded, "{}", world.message());
    assert_eq!(world.state("Webui"), State::Skipped);
    let webui = world.status.steps.iter().flatten().find(|one| one.id == "Webui/a").unwrap();
    assert_eq!(webui.message.as_deref(), Some("left out by ann: not needed"));
    assert!(world.message().contains("Webui/a"));
}

#[test]
fn paused_nothing_more_is_changed_and_what_is_at_work_is_finished() {
    let mut world = World::new();
    world.until(|world| world.state_is("Zookeeper", State::Running));
    world.spec.paused = Some(true);
    world.until(|world| world.phase() == Phase::Paused);
    assert_eq!(world.state("Zookeeper"), State::Succeeded);
    assert_eq!(world.tags(), [NEW, "R24.1", "R24.1", "R24.1"]);
    world.now += Duration::from_secs(86_400);
    world.pass(Killed::Never);
    assert_eq!(world.phase(), Phase::Paused, "however long");
    world.spec.paused = None;
    assert_eq!(world.run(Killed::Never), Phase::Succeeded, "{}", world.message());
}

#[test]
fn vrouters_are_paused_between_two_nodes() {
    let mut world = World::new();
    let count = |world: &World| {
        let vrouter = world.services.iter().find(|one| one.id == "Vrouter/a").unwrap();
        vrouter.pods.iter().filter(|pod| pod.images["vrouteragent"].ends_with(NEW)).count()
    };
    world.until(|world| world.status.steps.is_some() && world.state_is("Vrouter", State::Running));
    world.until(|world| count(world) == 2);
    world.spec.paused = Some(true);
    world.pass(Killed::Never);
    assert!(world.message().contains("pauses as soon as"), "{}", world.message());
    world.until(|world| world.phase() == Phase::Paused);
    for _ in 0..1000 {
        world.pass(Killed::Never);
        world.controllers();
    }
    assert_eq!((world.phase(), count(&world)), (Phase::Paused, 2), "{}", world.message());
    world.spec.paused = None;
    assert_eq!(world.run(Killed::Never), Phase::Succeeded, "{}", world.message());
}

#[test]
fn a_way_back_that_failed_is_tried_again_and_not_offered() {
    let mut world = World::with_bad("Webui");
    world.until(|world| world.phase() == Phase::RollingBack);
    // No pod is replaced any more.
    while world.phase() == Phase::RollingBack {
        world.pass(Killed::Never);
        world.now += Duration::from_secs(30);
    }
    assert_eq!(world.phase(), Phase::Stopped);
    assert!(world.message().contains("upgrade retry"), "{}", world.message());
    assert!(!world.message().contains("rollback"), "{}", world.message());
    world.spec.retries = Some(1);
    assert_eq!(world.run(Killed::Never), Phase::RolledBack, "{}", world.message());
}

#[test]
fn it_is_paused_before_the_waves_that_are_named() {
    let mut world = World::new();
    world.spec.pause_before = Some(vec!["vrouters".to_owned()]);
    world.until(|world| world.phase() == Phase::Paused);
    assert_eq!(world.tags(), [NEW, NEW, NEW, "R24.1"]);
    assert!(world.message().contains("vrouters"));
    world.spec.pause_before = None;
    assert_eq!(world.run(Killed::Never), Phase::Succeeded);
}

#[test]
fn a_canary_that_is_paused_stays_one() {
    let mut world = World::new();
    world.until(|world| world.state_is("Config", State::Canary) && world.set.len() == 2);
    world.spec.paused = Some(true);
    world.until(|world| world.phase() == Phase::Paused);
    world.now += Duration::from_secs(86_400);
    world.pass(Killed::Never);
    world.controllers();
    assert_eq!(world.state("Config"), State::Canary);
    world.spec.paused = None;
    assert_eq!(
        world.run(Killed::Never),
        Phase::Succeeded,
        "its deadline is another one: {}",
        world.message()
    );
}

#[test]
fn back_from_anywhere_all_services_have_their_earlier_images() {
    let mut calm = World::brisk();
    calm.run(Killed::Never);
    for number in 1..=calm.decisions {
        let mut world = World::brisk();
        for _ in 0..number {
            world.pass(Killed::Never);
            world.controllers();
        }
        world.spec.goal = Some(Goal::RollBack);
        world.pass(Killed::Never);
        world.until(|world| world.phase() == Phase::RolledBack);
        assert_eq!(world.tags(), ["R24.1"; 4], "after {number}");
        assert!(world.manager.to_string().matches(NEW).next().is_none());
    }
}

#[test]
fn behind_the_point_of_no_return_only_what_comes_after_it_goes_back() {
    let mut world = World::with_bad("Webui");
    world.until(|world| world.status.waves.is_some());
    world.status.steps.as_mut().unwrap()[0].no_way_back = Some("its data".to_owned());
    assert_eq!(world.run(Killed::Never), Phase::RolledBack);
    assert_eq!(world.tags(), [NEW, "R24.1", "R24.1", "R24.1"]);
    assert!(world.message().contains("without a way back stay Zookeeper/a"), "{}", world.message());

    // An image that never ran has written nothing.
    let mut world = World::with_bad("Zookeeper");
    world.until(|world| world.status.waves.is_some());
    world.status.steps.as_mut().unwrap()[0].no_way_back = Some("its data".to_owned());
    assert_eq!(world.run(Killed::Never), Phase::RolledBack, "{}", world.message());
    assert_eq!(world.tags(), ["R24.1"; 4]);

    let mut world = World::new();
    world.until(|world| world.state_is("Zookeeper", State::Running));
    world.status.steps.as_mut().unwrap()[0].no_way_back = Some("its data".to_owned());
    world.spec.goal = Some(Goal::RollBack);
    assert_eq!(world.run(Killed::Never), Phase::Stopped);
    assert!(world.message().contains("there is no way back"), "{}", world.message());
    assert!(!world.message().contains("or go back"), "{}", world.message());
}

#[test]
fn an_image_that_was_edited_meanwhile_is_not_overwritten() {
    let mut world = World::new();
    world.until(|world| world.state_is("Config", State::Canary));
    let image = "/services/webui/spec/serviceConfiguration/containers/0/image";
    *world.manager.pointer_mut(image).unwrap() = "mine:1".into();
    assert_eq!(world.run(Killed::Never), Phase::Stopped);
    assert!(world.message().contains("mine:1"), "{}", world.message());
    assert_eq!(world.manager.pointer(image).unwrap(), "mine:1");
    *world.manager.pointer_mut(image).unwrap() = "contrail-webuiweb:R24.1".into();
    world.spec.retries = Some(1);
    world.pass(Killed::Never);
    assert_eq!(world.phase(), Phase::Running);
    assert_eq!(world.run(Killed::Never), Phase::Succeeded, "{}", world.message());
}

#[test]
fn a_service_that_is_taken_out_of_the_manager_is_left_out() {
    let mut world = World::new();
    world.until(|world| world.state_is("Config", State::Canary));
    world.manager["services"].as_object_mut().unwrap().remove("webui");
    world.services.retain(|one| one.id != "Webui/a");
    assert_eq!(world.run(Killed::Never), Phase::Succeeded, "{}", world.message());
    assert_eq!(world.state("Webui"), State::Skipped);
}

#[test]
fn nothing_is_begun_that_another_plan_than_the_one_looked_at_would_do() {
    let mut world = World::new();
    world.spec.plan = Some("0123456789".to_owned());
    assert_eq!(world.run(Killed::Never), Phase::Refused);
    assert!(world.message().contains("OSDN5010"), "{}", world.message());
    world.spec.plan = world.status.plan.clone();
    world.pass(Killed::Never);
    assert_eq!(world.phase(), Phase::Running, "what nothing of was done is planned again");
}

#[test]
fn what_runs_the_images_already_is_done_at_once() {
    let mut world = World::new();
    world.spec.version = Some("R24.1".to_owned());
    assert_eq!(world.run(Killed::Never), Phase::Succeeded);
    assert_eq!(world.set, [""; 0]);
}

#[test]
fn another_upgrade_of_the_manager_is_waited_for() {
    let mut world = World::new();
    world.other = Some("first");
    let decision = world.decide();
    assert_eq!(decision.status.phase, Some(Phase::Pending));
    assert!(decision.status.message.unwrap().contains("first") && decision.images.is_empty());
}

#[test]
fn a_service_that_was_well_before_and_is_not_keeps_the_gate_shut() {
    let mut world = World::new();
    world.until(|world| world.state_is("Zookeeper", State::Running));
    // Of another wave.
    let index = world.services.iter().position(|one| one.id == "Vrouter/a").unwrap();
    for _ in 0..60 {
        world.services[index].pods[0].trouble = Some("no route".to_owned());
        world.services[index].is_ready = false;
        world.pass(Killed::Never);
        assert!(!world.state_is("Config", State::Canary));
        world.controllers();
    }
    let mut waves = world.status.waves.iter().flatten();
    let wave = waves.find(|wave| wave.name == "data-stores").unwrap();
    assert_eq!((wave.state, &wave.healthy_since), (State::Running, &None));
    assert!(world.message().contains("Vrouter/a"), "{}", world.message());
}

#[test]
fn what_was_late_while_no_operator_ran_has_a_moment_to_get_well() {
    let away = |then: &dyn Fn(&mut World)| {
        let mut world = World::new();
        world.until(|world| world.state_is("Config", State::Running));
        world.now += Duration::from_secs(86_400);
        world.looking_since = world.now;
        then(&mut world);
        world.run(Killed::Never)
    };
    assert_eq!(away(&|_| {}), Phase::Succeeded);
    let breaks = |world: &mut World| {
        world.spec.images = World::with_bad("Config").spec.images;
        for pod in &mut world.services[1].pods {
            pod.images.insert("api".to_owned(), "contrail-api:bad".to_owned());
        }
        let image = "/services/config/spec/serviceConfiguration/containers/0/image";
        *world.manager.pointer_mut(image).unwrap() = "contrail-api:bad".into();
        world.status.steps.as_mut().unwrap()[1].images[0].to = "contrail-api:bad".to_owned();
    };
    assert_eq!(away(&breaks), Phase::RolledBack, "a moment only");
}

#[test]
fn an_image_that_is_put_back_by_hand_is_not_set_again() {
    let mut world = World::new();
    world.until(|world| world.state_is("Config", State::Running));
    let image = "/services/config/spec/serviceConfiguration/containers/0/image";
    *world.manager.pointer_mut(image).unwrap() = "contrail-api:R24.1".into();
    assert_eq!(world.run(Killed::Never), Phase::Stopped);
    assert!(world.message().contains("edited meanwhile"), "{}", world.message());
    assert_eq!(world.manager.pointer(image).unwrap(), "contrail-api:R24.1");
    world.spec.retries = Some(1);
    assert_eq!(
        world.run(Killed::Never),
        Phase::Succeeded,
        "as he wants it then: {}",
        world.message()
    );
}

#[test]
fn who_may_write_the_status_only_sets_no_image() {
    let mut world = World::new();
    world.until(|world| world.state_is("Zookeeper", State::Canary));
    world.status.steps.as_mut().unwrap()[1].images[0].to = "evil:1".to_owned();
    assert_eq!(world.run(Killed::Never), Phase::Stopped);
    assert!(world.message().contains("another has written"), "{}", world.message());
    assert!(!world.manager.to_string().contains("evil"));
}

#[test]
fn a_wave_that_stops_holds_back_what_it_was_looking_at() {
    let mut world = World::with_bad("Config");
    world.spec.on_failure = Some(OnFailure::Stop);
    world.run(Killed::Never);
    let config = world.status.steps.iter().flatten().find(|one| one.id == "Config/a").unwrap();
    assert_eq!((config.state, config.held), (State::Failed, Some(true)));
}

#[test]
fn why_images_are_refused_is_said_while_it_is_so_and_at_the_end() {
    let mut world = World::new();
    world.spec.on_failure = Some(OnFailure::Stop);
    world.until(|world| world.status.waves.is_some());
    world.refusals.insert("Zookeeper/a".to_owned(), "change freeze".to_owned());
    world.until(|world| world.state_is("Zookeeper", State::Canary));
    for _ in 0..1800 {
        let decision = world.decide();
        assert_ne!(
            decision.look_again,
            Some(Duration::ZERO).filter(|_| has_same_states(&decision.status, &world.status))
        );
        world.status = decision.status;
        world.now += Duration::from_secs(2);
        if world.phase() == Phase::Stopped {
            break;
        }
    }
    assert!(world.message().contains("change freeze"), "{}", world.message());
}

#[test]
fn the_way_back_of_what_is_over_waits_for_another_upgrade() {
    let mut world = World::new();
    world.run(Killed::Never);
    world.spec.goal = Some(Goal::RollBack);
    world.other = Some("newer");
    let decision = world.decide();
    assert_eq!(decision.status.phase, Some(Phase::Succeeded));
    assert!(decision.status.message.unwrap().contains("newer"));
}

#[test]
fn numbers_that_others_wrote_end_nothing() {
    let mut world = World::new();
    world.until(|world| world.status.waves.is_some());
    for step in world.status.steps.as_mut().unwrap() {
        (step.attempts, step.restarts) = (Some(i64::MAX), Some(i64::MAX));
    }
    world.spec.retries = Some(i64::MAX);
    assert_eq!(world.run(Killed::Never), Phase::Succeeded);
    let report = crate::report::report("tf/a", &world.spec, &world.status);
    assert!(report.unplanned_restarts >= 0);
}

#[test]
fn nodes_pull_the_new_images_before_anything_is_changed() {
    let mut world = World::new().on_nodes();
    let is_pulling = |world: &World| world.status.wave.as_deref() == Some("1/5 images");
    world.until(|world| is_pulling(world) && !world.pullers.is_empty());
    let nodes: Vec<_> =
        world.pullers.iter().map(|one| (one.node.as_str(), one.pulled.len())).collect();
    assert_eq!(nodes, [("node-0", 4), ("node-1", 4), ("node-2", 4)]);
    assert!(world.set.is_empty());
    assert_eq!(world.run(Killed::Never), Phase::Succeeded);
    assert!(world.pullers.is_empty(), "they go when all is pulled");
    let mut without = World::new().on_nodes();
    without.spec.pre_pull = Some(false);
    without.until(|world| !world.set.is_empty());
    assert_eq!(without.status.wave.as_deref(), Some("1/4 data-stores"));
}

#[test]
fn an_image_that_no_node_can_have_changes_nothing() {
    let mut world = World::with_bad("Webui").on_nodes();
    assert_eq!(world.run(Killed::Never), Phase::RolledBack);
    assert!(world.set.is_empty() && world.pullers.is_empty(), "{:?}", world.set);
    let message = world.message();
    assert!(message.contains("0 of 3 nodes have the new images"), "{message}");
    assert!(message.contains("node node-0: ImagePullBackOff not found"), "{message}");
    assert!(message.ends_with("nothing had been changed"), "{message}");
}

#[test]
fn after_images_could_not_be_had_their_service_can_be_left_out() {
    let mut world = World::with_bad("Webui").on_nodes();
    world.spec.on_failure = Some(OnFailure::Stop);
    assert_eq!(world.run(Killed::Never), Phase::Stopped, "{}", world.message());
    assert!(world.set.is_empty());
    let skip = Skip { step: "Webui/a".to_owned(), reason: "later".to_owned(), requested_by: None };
    world.spec.skip = Some(vec![skip]);
    assert_eq!(world.run(Killed::Never), Phase::Succeeded, "{}", world.message());
    assert_eq!(world.tags(), [NEW, NEW, "R24.1", NEW]);
}

#[test]
fn no_node_pulls_what_only_the_status_asks_for() {
    let mut world = World::new().on_nodes();
    world.until(|world| !world.pullers.is_empty());
    let mut forged = world.status.clone();
    forged.steps.as_mut().unwrap()[0].images[0].to = "evil/contrail-zookeeper:1".to_owned();
    world.status = forged;
    let decision = world.decide();
    assert_eq!((decision.status.phase, decision.pulls), (Some(Phase::Stopped), vec![]));
}

#[test]
fn a_node_that_is_lost_while_it_pulls_is_not_waited_for() {
    let mut world = World::with_bad("Webui").on_nodes();
    world.spec.skip = None;
    world.until(|world| !world.pullers.is_empty());
    let refused = [("node-1".to_owned(), "pods is forbidden".to_owned())];
    world.refusals = refused.into();
    world.pullers.clear();
    let decision = world.decide();
    assert!(
        decision.status.message.unwrap().contains("pods is forbidden"),
        "what the API server says"
    );
    world.refusals.clear();
    for service in &mut world.services {
        service.pods[1].is_ready = false;
    }
    let nodes: Vec<_> = world.decide().pulls.into_iter().map(|pull| pull.node).collect();
    assert_eq!(nodes, ["node-0", "node-2"]);
}

#[test]
fn a_wave_that_comes_further_has_its_whole_time_again() {
    let mut world = World::new();
    world.spec.soak = Some("2s".to_owned());
    // Shorter than all pods of the wave take together, one each two seconds, longer than one.
    world.spec.wave_timeout = Some("20s".to_owned());
    world.spec.images = None;
    let vrouters = world.services.iter_mut().find(|one| one.id == "Vrouter/a").unwrap();
    let pod = vrouters.pods[0].clone();
    vrouters.pods = (0..30)
        .map(|number| crate::health::Pod { name: format!("v-{number}"), ..pod.clone() })
        .collect();
    assert_eq!(world.run(Killed::Never), Phase::Succeeded, "{}", world.message());
    let mut waves = world.status.waves.iter().flatten();
    assert_eq!(waves.find(|wave| wave.name == "vrouters").unwrap().progress, Some(29));
}

#[test]
fn a_first_pod_that_is_made_again_is_looked_at_from_the_beginning() {
    let mut world = World::new();
    let since = |world: &World| {
        let mut steps = world.status.steps.iter().flatten();
        steps.find(|step| step.id == "Config/a").and_then(|step| step.canary_since.clone())
    };
    world.until(|world| since(world).is_some());
    let before = since(&world);
    // Evicted, and its successor is ready at the next look.
    let config = world.services.iter_mut().find(|one| one.id == "Config/a").unwrap();
    let first = config.pods.iter_mut().find(|pod| pod.images["api"].ends_with(NEW)).unwrap();
    first.uid = "another".to_owned();
    world.now += Duration::from_secs(20);
    world.pass(Killed::Never);
    assert_eq!(since(&world), None);
    world.pass(Killed::Never);
    assert!(since(&world) > before, "{:?}", since(&world));
    assert_eq!(world.state("Config"), State::Canary);
}

#[test]
fn what_the_api_server_would_refuse_is_asked_before_anything_is_begun() {
    let mut world = World::new();
    let decision = world.decide();
    assert_eq!(decision.status.phase, Some(Phase::Running));
    let services: Vec<_> = decision.rehearsed.iter().map(|set| set.service.as_str()).collect();
    assert_eq!(services, ["Zookeeper/a", "Config/a", "Webui/a", "Vrouter/a"]);
    assert!(decision.images.is_empty(), "nothing is written yet");
    world.refusals.insert("m".to_owned(), "change freeze".to_owned());
    let refused = world.decide();
    assert_eq!(refused.status.phase, Some(Phase::Refused));
    let message = refused.status.message.unwrap();
    assert!(message.contains("OSDN5017") && message.contains("change freeze"), "{message}");
    assert!(refused.status.steps.is_none() && refused.rehearsed.is_empty());
    world.refusals.clear();
    world.until(|world| world.status.waves.is_some());
    assert!(world.decide().rehearsed.is_empty(), "once");
}
