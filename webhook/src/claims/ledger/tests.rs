//! What follows for a claim, as a table.

use tokio::time::Instant;

use super::*;
use opensdn_crds::unique_claim::UniqueClaimSpec;

const GRACE: Duration = Duration::from_secs(90);
const NOW: Duration = Duration::ZERO;

fn place(name: &str) -> Place {
    Place { group: "g".into(), kind: "Thing".into(), namespace: "n".into(), name: name.into() }
}

fn claim(key: &str) -> Claim {
    let text = str::to_owned;
    Claim {
        scope: text("s"),
        key: text(key),
        pointer: text("/spec/ip"),
        policy: text("in-force"),
        code: text("C1"),
    }
}

/// An object that was created at that second and makes those claims.
fn known(uid: &str, second: u32, names: &[&str]) -> Known {
    Known {
        uid: uid.into(),
        version: "v1".into(),
        created: format!("2026-01-01T00:00:{second:02}Z"),
        wants: Some(names.iter().map(|name| ((*name).to_owned(), claim(name))).collect()),
        told: None,
    }
}

fn seen(holder: &str, uid: &str, policy: &str) -> Seen {
    let held = Held {
        group: "g".into(),
        kind: "Thing".into(),
        namespace: Some("n".into()),
        name: holder.into(),
        uid: Some(uid.into()),
        ..Held::default()
    };
    Seen {
        uid: "claim".into(),
        version: "1".into(),
        spec: UniqueClaimSpec {
            scope: "s".into(),
            key: "k".into(),
            holder: held,
            policy: Some(policy.into()),
            taken_at: None,
        },
        since: Instant::now(),
    }
}

/// Objects `a` (older) and `b` claim `k`, `c` claims nothing, of `d` it cannot be told.
fn ledger() -> Ledger {
    let mut ledger = Ledger::default();
    ledger.put(place("b"), known("ub", 2, &["k"]));
    ledger.put(place("a"), known("ua", 1, &["k"]));
    ledger.put(place("c"), known("uc", 0, &[]));
    ledger.put(place("d"), Known { wants: None, ..known("ud", 0, &[]) });
    ledger.listed("g", "Thing", &["a", "b", "c", "d"].map(place).into());
    ledger
}

fn next(ledger: &mut Ledger, seen: Option<&Seen>, unchanged: Duration) -> Next {
    ledger.next("k", seen, unchanged, GRACE, &HashSet::from(["in-force".to_owned()]))
}

fn wanter(name: &str, uid: &str, second: u32) -> Wanter {
    Wanter { created: known(uid, second, &[]).created, uid: uid.into(), place: place(name) }
}

#[test]
fn what_follows_for_a_claim() {
    let half = GRACE / 2;
    let cases = [
        ("the oldest gets a free key", None, NOW, Next::Take(wanter("a", "ua", 1))),
        ("it stays", Some(seen("a", "ua", "in-force")), GRACE, Next::Keep),
        ("the younger keeps what it has", Some(seen("b", "ub", "in-force")), GRACE, Next::Keep),
        (
            "the uid of a create that lost is replaced",
            Some(seen("a", "loser", "in-force")),
            NOW,
            Next::Adopt(wanter("a", "ua", 1)),
        ),
        (
            "the policy that asked has another name now",
            Some(seen("a", "ua", "renamed")),
            NOW,
            Next::Adopt(wanter("a", "ua", 1)),
        ),
        ("an update may be under way", Some(seen("c", "uc", "in-force")), half, Next::Wait(half)),
        (
            "it is not claimed any more",
            Some(seen("c", "uc", "in-force")),
            GRACE,
            Next::Release(Why::NotClaimed),
        ),
        (
            "its policy may come back",
            Some(seen("c", "uc", "away")),
            GRACE,
            Next::Wait(GRACE * (WITHOUT_POLICY - 1)),
        ),
        (
            "its policy does not come back",
            Some(seen("c", "uc", "away")),
            GRACE * WITHOUT_POLICY,
            Next::Release(Why::NotClaimed),
        ),
        ("it cannot be told", Some(seen("d", "ud", "in-force")), GRACE * 100, Next::Keep),
        (
            "a create may be under way",
            Some(seen("never", "un", "in-force")),
            half,
            Next::Wait(half),
        ),
        (
            "it never came to be",
            Some(seen("never", "un", "in-force")),
            GRACE,
            Next::Release(Why::Orphan),
        ),
    ];
    for (why, seen, unchanged, expected) in cases {
        assert_eq!(next(&mut ledger(), seen.as_ref(), unchanged), expected, "{why}");
    }
}

#[test]
fn the_claim_of_an_object_that_was_deleted_does_not_wait() {
    let mut ledger = ledger();
    ledger.remove(&place("a"));
    let claim = seen("a", "ua", "in-force");
    assert_eq!(next(&mut ledger, Some(&claim), NOW), Next::Release(Why::Deleted));
    // A create of that name that came after has another UID, and waits.
    let claim = seen("a", "new", "in-force");
    assert_eq!(next(&mut ledger, Some(&claim), NOW), Next::Wait(GRACE));
}

#[test]
fn objects_that_a_new_list_does_not_have_are_gone() {
    let mut ledger = ledger();
    while ledger.pop().is_some() {}
    ledger.listed("g", "Thing", &["b", "c", "d"].map(place).into());
    assert_eq!(ledger.pop().as_deref(), Some("k"));
    let claim = seen("a", "ua", "in-force");
    assert_eq!(next(&mut ledger, Some(&claim), NOW), Next::Release(Why::Deleted));
}

#[test]
fn of_two_created_in_one_second_the_smaller_uid_is_the_older() {
    let mut ledger = Ledger::default();
    ledger.put(place("a"), known("u2", 1, &["k"]));
    ledger.put(place("b"), known("u1", 1, &["k"]));
    assert_eq!(next(&mut ledger, None, NOW), Next::Take(wanter("b", "u1", 1)));
}

#[test]
fn of_objects_of_one_age_the_one_that_holds_the_key_is_the_eldest() {
    let mut ledger = Ledger::default();
    for (name, uid, second) in [("a", "u2", 1), ("b", "u1", 1), ("c", "u0", 2)] {
        ledger.put(place(name), known(uid, second, &["k"]));
    }
    let eldest = |holder: Option<&str>| {
        let holder = holder.map(place);
        ledger.eldest("k", holder.as_ref()).map(|wanter| wanter.place.name.as_str())
    };
    assert_eq!(eldest(None), Some("b"), "nobody holds it: decided by UID");
    assert_eq!(eldest(Some("a")), Some("a"));
    assert_eq!(eldest(Some("c")), Some("b"), "the holder is younger by a second");
    assert_eq!(eldest(Some("gone")), Some("b"), "the holder does not want it any more");
    assert_eq!(ledger.eldest("other", None), None);
}

#[test]
fn a_key_that_is_given_up_goes_to_the_next() {
    let mut ledger = ledger();
    ledger.put(place("a"), known("ua", 1, &["other"]));
    assert_eq!(ledger.wanters("k").count(), 1);
    assert_eq!(next(&mut ledger, None, NOW), Next::Take(wanter("b", "ub", 2)));
}

#[test]
fn an_object_of_the_same_name_is_another_object() {
    let mut ledger = ledger();
    ledger.put(place("a"), known("second", 9, &["k"]));
    let wanters: Vec<_> = ledger.wanters("k").map(|wanter| wanter.uid.as_str()).collect();
    assert_eq!(wanters, ["ub", "second"]);
}
