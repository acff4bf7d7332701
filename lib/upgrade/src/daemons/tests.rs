//! What daemons say, compared with what they said before.

use super::*;
use crate::health::Pod;

fn counts(up: i32, all: i32) -> Option<SessionCounts> {
    Some(SessionCounts { up: Some(up), all: Some(all) })
}

/// Of three nodes, with an agent and a node manager each.
fn vrouter(ready: usize, functional: i32, xmpp: i32) -> Service {
    let pod =
        |number| Pod { name: format!("{number}"), is_ready: number < ready, ..Pod::default() };
    let wrong = DaemonState {
        pod: "2".to_owned(),
        node: "w2".to_owned(),
        container: "vrouteragent".to_owned(),
        state: DaemonWord::Initializing,
        message: Some("XMPP:control-node:10.0.0.1 connection down".to_owned()),
    };
    let said = IntrospectStatus {
        functional: Some(functional),
        daemons: Some(6),
        not_active: (functional < 6).then(|| vec![wrong]),
        xmpp: counts(xmpp, 3),
        ..IntrospectStatus::default()
    };
    Service {
        id: "Vrouter/v".to_owned(),
        is_ready: true,
        pods: (0..3).map(pod).collect(),
        daemons: Some(Daemons { said, asked_at: None }),
        ..Service::default()
    }
}

/// What is worse.
fn all_worse(before: &ServiceHealth, now: &Service) -> Vec<(&'static str, String)> {
    let found = compare(before, now).into_iter().filter(|one| one.is_worse);
    found.map(|one| (one.check, one.text)).collect()
}

#[test]
fn an_agent_without_a_control_node_is_worse_than_before() {
    let before = vrouter(3, 6, 3).health();
    let texts: Vec<_> =
        compare(&before, &vrouter(3, 6, 3)).into_iter().map(|one| one.text).collect();
    let expected = [
        "Vrouter/v: 6 of 6 daemons functional, 6 before",
        "Vrouter/v: 3 of 3 agents with a control node, 3 before",
    ];
    assert_eq!(texts, expected);
    assert_eq!(worse(&before, &vrouter(3, 6, 3)), None);
    let expected = [
        (
            FUNCTIONAL,
            "Vrouter/v: 5 of 6 daemons functional, 6 before; vrouteragent on w2: XMPP:control-node:10.0.0.1 connection down",
        ),
        (XMPP, "Vrouter/v: 2 of 3 agents with a control node, 3 before"),
    ];
    let found = all_worse(&before, &vrouter(3, 5, 2));
    assert_eq!(found, expected.map(|(name, text)| (name, text.to_owned())));
    let last = worse(&before, &vrouter(3, 5, 2)).unwrap();
    assert_eq!(last, expected[1].1);
}

#[test]
fn what_was_so_before_or_went_with_a_node_is_not_blamed_on_the_upgrade() {
    let before = vrouter(3, 5, 2).health();
    assert_eq!(worse(&before, &vrouter(3, 5, 2)), None, "as before");
    let before = vrouter(3, 6, 3).health();
    assert_eq!(worse(&before, &vrouter(2, 4, 2)), None, "a node is lost");
    let found = all_worse(&before, &vrouter(2, 4, 1));
    assert_eq!(found.len(), 1, "and another agent has lost its own");
    let unknown = Service { daemons: None, ..vrouter(3, 0, 0) };
    assert_eq!(worse(&before, &unknown), None, "they are asked no more");
    assert_eq!(worse(&unknown.health(), &vrouter(3, 0, 0)), None, "they were not asked before");
}

#[test]
fn bgp_sessions_are_compared_while_no_pod_is_away() {
    let control = |ready, up| {
        let mut one = vrouter(ready, 6, 3);
        let said = &mut one.daemons.as_mut().unwrap().said;
        (said.bgp, said.xmpp) = (counts(up, 4), None);
        one
    };
    let before = control(3, 4).health();
    assert_eq!(worse(&before, &control(3, 4)), None);
    let found = worse(&before, &control(3, 3)).unwrap();
    assert_eq!(found, "Vrouter/v: 3 of 4 BGP sessions up, 4 before");
    assert_eq!(worse(&before, &control(2, 2)), None);
    let mut uncounted = control(3, 3);
    uncounted.daemons.as_mut().unwrap().said.bgp = counts(3, 3);
    assert!(worse(&before, &uncounted).is_some(), "one of them has not counted yet");
    // A count is a minute old at most.
    let mut asked = control(3, 4);
    let since = OffsetDateTime::UNIX_EPOCH;
    for (after, expected) in [(0, true), (89, true), (90, false)] {
        asked.daemons.as_mut().unwrap().asked_at = Some(since + Duration::from_secs(after));
        assert_eq!(are_unheard(&before, &asked, since), expected, "{after}");
    }
}

#[test]
fn of_many_agents_one_in_a_hundred_may_be_missing() {
    let of = |up, all| {
        let mut one = vrouter(3, 6, 3);
        one.daemons.as_mut().unwrap().said.xmpp = counts(up, all);
        one
    };
    assert!(worse(&of(99, 99).health(), &of(98, 99)).is_some());
    let before = of(1000, 1000).health();
    assert_eq!(worse(&before, &of(990, 1000)), None);
    assert!(worse(&before, &of(989, 1000)).is_some());
}

#[test]
fn of_many_agents_the_one_with_the_new_image_may_not_be_missing() {
    let images = [ImageChange {
        container: "vrouteragent".to_owned(),
        from: "a:1".to_owned(),
        to: "a:2".to_owned(),
    }];
    let at = OffsetDateTime::UNIX_EPOCH + time::Duration::seconds(60);
    let service = |asked_at: i64, functional| {
        let mut one = vrouter(3, functional, 999);
        one.pods[2].images = [("vrouteragent".to_owned(), "a:2".to_owned())].into();
        one.pods[2].ready_since = Some(at);
        let now = one.daemons.as_mut().unwrap();
        now.said.xmpp = counts(999, 1000);
        now.asked_at = Some(at + time::Duration::seconds(asked_at));
        one
    };
    let of = |all, up| ServiceHealth { daemons: counts(up, all), ..vrouter(3, 6, 1000).health() };
    let broken = service(1, 5);
    let text = "Vrouter/v: with its new images vrouteragent on w2: XMPP:control-node:10.0.0.1 connection down";
    assert_eq!(new_are_worse(&of(6, 6), &broken, &images).unwrap(), text);
    assert_eq!(new_are_worse(&of(6, 5), &broken, &images), None, "one did not work before");
    assert_eq!(new_are_worse(&of(6, 6), &service(-1, 5), &images), None, "of the pod before");
    assert_eq!(new_are_worse(&of(6, 6), &service(1, 6), &images), None);
    let earlier = Service { pods: vrouter(3, 5, 2).pods, ..broken.clone() };
    assert_eq!(new_are_worse(&of(6, 6), &earlier, &images), None, "with its earlier images");
}

#[test]
fn agents_have_to_be_back_at_a_control_node_before_the_next_is_replaced() {
    let at = OffsetDateTime::UNIX_EPOCH;
    let with = |ready, sessions, asked_at: i64| {
        let mut one = vrouter(ready, 6, 3);
        let now = one.daemons.as_mut().unwrap();
        now.said.xmpp_sessions = counts(sessions, 6);
        now.asked_at = Some(at + time::Duration::seconds(asked_at));
        one
    };
    let before = [with(3, 6, 0).health()];
    let lack = |service: Service| lack_sessions(&before, &[service], at);
    assert_eq!(lack(with(3, 6, 0)), None);
    let text = "Vrouter/v: 5 of 6 sessions of agents with control nodes up, 6 before";
    assert_eq!(lack(with(3, 5, 0)).unwrap(), text);
    assert!(lack(with(3, 6, -1)).unwrap().contains("are asked for their sessions"));
    assert_eq!(lack(with(2, 4, 0)), None, "a node is lost with its agent");
    assert!(lack(with(2, 3, 0)).is_some());
    assert_eq!(lack_sessions(&[vrouter(3, 6, 3).health()], &[with(3, 0, 0)], at), None);
}

#[test]
fn what_daemons_said_before_their_pods_were_replaced_counts_for_nothing() {
    let (early, late) =
        (OffsetDateTime::UNIX_EPOCH, OffsetDateTime::UNIX_EPOCH + time::Duration::SECOND);
    let asked = |at| {
        let mut one = vrouter(3, 6, 3);
        one.daemons.as_mut().unwrap().asked_at = at;
        one
    };
    let before = vrouter(3, 6, 3).health();
    assert!(are_unheard(&before, &asked(None), early));
    assert!(are_unheard(&before, &asked(Some(early)), late));
    assert!(!are_unheard(&before, &asked(Some(late)), late));
    let none = vrouter(3, 0, 0).health();
    assert!(!are_unheard(&none, &asked(None), early), "none worked: there is nothing to lose");
    let off = Service { daemons: None, ..vrouter(3, 6, 3) };
    assert!(!are_unheard(&before, &off, early), "they are not asked here");
}
