//! Every step of a rotation, and what interrupts one.

use super::{
    Authorities, Authority, AuthorityError, CaProfile, Duration, OffsetDateTime, Published,
    Request, Rotation, SecretState,
};

fn start() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap()
}

fn rotation() -> Rotation {
    Rotation::new(CaProfile::new("test CA"))
}

fn first(now: OffsetDateTime) -> Result<Authorities, AuthorityError> {
    Authorities::first(&rotation().ca, now)
}

fn advance(
    state: &SecretState,
    published: Option<&Published>,
    now: OffsetDateTime,
) -> Result<Option<Authorities>, AuthorityError> {
    super::advance(state, published, now, &rotation())
}

fn complete(authorities: &Authorities, since: OffsetDateTime) -> SecretState {
    SecretState::Complete { authorities: authorities.clone(), since, request: Request::None }
}

fn published(authorities: &Authorities, since: OffsetDateTime) -> Published {
    Published { bundle: authorities.bundle(), since }
}

/// A settled CA made at [`start`], announced with its successor in its last year.
fn announced() -> (Authorities, OffsetDateTime) {
    let settled = first(start()).unwrap();
    let now = settled.current.not_after() - Duration::days(364);
    (advance(&complete(&settled, start()), None, now).unwrap().unwrap(), now)
}

#[test]
fn the_first_ca_is_made_where_there_is_none() {
    let made = advance(&SecretState::Missing, None, start()).unwrap().unwrap();
    assert_eq!((made.next.as_ref(), made.previous.as_ref()), (None, None));
    assert_eq!(made.current.not_after() - start(), Duration::days(3650));
}

#[test]
fn nothing_changes_before_the_last_year() {
    let settled = first(start()).unwrap();
    for days in [0, 1, 1000, 3284] {
        let now = start() + Duration::days(days);
        assert_eq!(advance(&complete(&settled, start()), None, now).unwrap(), None, "{days}");
    }
}

#[test]
fn a_rotation_announces_then_changes_then_forgets() {
    let (announced, now) = announced();
    let next = announced.next.clone().unwrap();
    assert!(announced.bundle().contains(next.certificate().trim()));
    assert!(announced.bundle().contains(announced.current.certificate().trim()));

    // The bundle is in place since now; after a minute the next CA signs.
    let evidence = published(&announced, now);
    let state = complete(&announced, now);
    assert_eq!(advance(&state, Some(&evidence), now + Duration::seconds(59)).unwrap(), None);
    let later = now + Duration::seconds(60);
    let changed = advance(&state, Some(&evidence), later).unwrap().unwrap();
    assert_eq!(changed.current, next);
    assert_eq!(changed.next, None);
    assert_eq!(changed.previous.as_deref(), Some(announced.current.certificate()));
    assert!(changed.bundle().contains(announced.current.certificate().trim()));

    let state = complete(&changed, later);
    assert_eq!(advance(&state, None, later + Duration::hours(23)).unwrap(), None);
    let settled = advance(&state, None, later + Duration::hours(24)).unwrap().unwrap();
    assert_eq!(settled, Authorities { previous: None, ..changed });
}

#[test]
fn an_announced_ca_is_not_used_while_its_bundle_is_not_in_place() {
    let (announced, now) = announced();
    let month_later = now + Duration::days(30);
    let state = complete(&announced, now);
    assert_eq!(advance(&state, None, month_later).unwrap(), None);
    // A bundle of another time does not count.
    let settled = Authorities { next: None, ..announced.clone() };
    let stale = published(&settled, now);
    assert_eq!(advance(&state, Some(&stale), month_later).unwrap(), None);
}

#[test]
fn an_announced_ca_is_used_rather_than_letting_the_current_one_expire() {
    let (announced, now) = announced();
    let end = announced.current.not_after();
    for at in [end - Duration::days(6), end + Duration::days(1)] {
        let changed = advance(&complete(&announced, now), None, at).unwrap().unwrap();
        assert_eq!(Some(changed.current), announced.next);
        assert_eq!(changed.previous.is_some(), at < end, "an expired CA is of no use");
    }
}

#[test]
fn an_expired_ca_without_successor_is_replaced_at_once() {
    let settled = first(start()).unwrap();
    let late = settled.current.not_after() + Duration::seconds(1);
    let made = advance(&complete(&settled, start()), None, late).unwrap().unwrap();
    assert_ne!(made.current, settled.current);
    assert_eq!((made.next, made.previous), (None, None));
}

#[test]
fn a_rotation_that_is_asked_for_begins_at_once_but_not_within_another() {
    let settled = first(start()).unwrap();
    let now = start() + Duration::days(1);
    let asked = |authorities: &Authorities| SecretState::Complete {
        authorities: authorities.clone(),
        since: now,
        request: Request::Rotate,
    };
    let announced = advance(&asked(&settled), None, now).unwrap().unwrap();
    assert!(announced.next.is_some());
    assert_eq!(advance(&asked(&announced), None, now).unwrap(), None);
    let changed = Authorities {
        current: announced.next.clone().unwrap(),
        next: None,
        previous: Some(announced.current.certificate().to_owned()),
    };
    assert_eq!(advance(&asked(&changed), None, now).unwrap(), None);
}

#[test]
fn a_damaged_secret_gets_a_new_ca_and_trusts_the_old_one_further() {
    let old = first(start()).unwrap().current.certificate().to_owned();
    let now = start() + Duration::days(1);
    for (trusted, kept) in
        [(Some(old.clone()), Some(old)), (Some("not PEM".into()), None), (None, None)]
    {
        let made = advance(&SecretState::Damaged { trusted }, None, now).unwrap().unwrap();
        assert_eq!(made.previous, kept);
        assert_eq!(made.next, None);
    }
}

#[test]
fn every_step_trusts_what_signed_before_it() {
    // Whatever the state, a certificate signed by the CA before is in the bundle after.
    let (announced, now) = announced();
    let mut state = announced;
    let mut at = now;
    for _ in 0..6 {
        let evidence = published(&state, at);
        let later = at + Duration::days(2);
        let Some(next) = advance(&complete(&state, at), Some(&evidence), later).unwrap() else {
            break;
        };
        assert!(next.bundle().contains(state.current.certificate().trim()));
        assert!(state.bundle().contains(next.current.certificate().trim()));
        (state, at) = (next, later);
    }
    assert_eq!((state.next, state.previous), (None, None));
}

/// A CA that a user gives.
fn given(now: OffsetDateTime) -> Authority {
    Authority::create(&CaProfile::new("given CA"), now).unwrap()
}

fn advance_with(
    given: &Authority,
    authorities: &Authorities,
    published: Option<&Published>,
    now: OffsetDateTime,
) -> Option<Authorities> {
    let rotation = Rotation { given: Some(given.clone()), ..rotation() };
    super::advance(&complete(authorities, now), published, now, &rotation).unwrap()
}

#[test]
fn a_ca_that_is_given_is_the_first() {
    let (ca, now) = (given(start()), start());
    let rotation = Rotation { given: Some(ca.clone()), ..rotation() };
    let first = super::advance(&SecretState::Missing, None, now, &rotation).unwrap().unwrap();
    assert_eq!((&first.current, &first.next, &first.previous), (&ca, &None, &None));
}

#[test]
fn a_ca_that_is_given_later_is_announced_before_it_is_used() {
    let (made, ca, now) = (first(start()).unwrap(), given(start()), start());
    let announced = advance_with(&ca, &made, None, now).unwrap();
    assert_eq!((&announced.current, announced.next.as_ref()), (&made.current, Some(&ca)));
    assert_eq!(advance_with(&ca, &announced, None, now), None, "no pod is known to trust it");
    let in_place = published(&announced, now - Duration::hours(1));
    let used = advance_with(&ca, &announced, Some(&in_place), now).unwrap();
    assert_eq!((&used.current, &used.next), (&ca, &None));
    assert_eq!(used.previous.as_deref(), Some(made.current.certificate()));
}

#[test]
fn one_of_ours_that_is_announced_gives_way_to_the_one_that_is_given() {
    let (announced, now) = announced();
    let ca = given(now);
    let instead = advance_with(&ca, &announced, None, now).unwrap();
    assert_eq!((&instead.current, instead.next.as_ref()), (&announced.current, Some(&ca)));
    let stays = advance_with(&announced.current, &announced, None, now).unwrap();
    assert_eq!((&stays.current, &stays.next), (&announced.current, &None));
}

#[test]
fn a_ca_that_is_given_is_never_replaced_by_one_that_was_made() {
    let ca = given(start());
    let settled = Authorities::only(ca.clone(), None);
    for left in [Duration::days(364), Duration::hours(1), -Duration::days(1)] {
        assert_eq!(advance_with(&ca, &settled, None, ca.not_after() - left), None, "{left}");
    }
    let request =
        SecretState::Complete { authorities: settled, since: start(), request: Request::Rotate };
    let rotation = Rotation { given: Some(ca), ..rotation() };
    assert_eq!(super::advance(&request, None, start(), &rotation).unwrap(), None);
}

#[test]
fn where_the_current_ca_has_expired_the_one_that_is_given_is_used_at_once() {
    let made = first(start()).unwrap();
    let now = made.current.not_after();
    let ca = given(now);
    let used = advance_with(&ca, &made, None, now).unwrap();
    assert_eq!((&used.current, &used.next, &used.previous), (&ca, &None, &None));
}

#[test]
fn a_ca_that_is_given_in_the_last_days_of_the_one_before_is_announced_all_the_same() {
    let made = first(start()).unwrap();
    let now = made.current.not_after() - Duration::days(5);
    let ca = given(now);
    let announced = advance_with(&ca, &made, None, now).unwrap();
    assert_eq!(announced.current, made.current);
    let rotation = Rotation { given: Some(ca.clone()), ..rotation() };
    let later = |passed: Duration| {
        super::advance(&complete(&announced, now), None, now + passed, &rotation).unwrap()
    };
    assert_eq!(later(Duration::hours(1)), None, "no pod is known to trust it");
    assert_eq!(later(Duration::days(2)).unwrap().current, ca, "the last resort");
    let end = now + Duration::days(5) - Duration::minutes(1);
    let short = super::advance(&complete(&announced, end), None, end, &rotation).unwrap();
    assert_eq!(short.unwrap().current, ca, "there is no time left");
}
