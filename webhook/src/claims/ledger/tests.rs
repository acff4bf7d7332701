//! What follows for a claim, as a table.

use tokio::time::Instant;

use super::*;
use opensdn_crds::unique_claim::UniqueClaimSpec;

const GRACE: Duration = Duration::from_secs(90);
const NOW: Duration = Duration::ZERO;

fn object_ref(name: &str) -> ObjectRef {
    ObjectRef { group: "g".into(), kind: "Thing".into(), namespace: "n".into(), name: name.into() }
}

fn claim(key: &str) -> Claim {
    let text = str::to_owned;
    Claim {
        scope: text("s"),
        key: text(key),
        value: None,
        pointer: text("/spec/ip"),
        policy: text("in-force"),
        code: text("C1"),
    }
}

/// An object that was created at that second and makes those claims.
fn known(uid: &str, second: u32, names: &[&str]) -> KnownObject {
    KnownObject {
        uid: uid.into(),
        version: "v1".into(),
        resource_version: "1".into(),
        created: format!("2026-01-01T00:00:{second:02}Z"),
        claims: Some(names.iter().map(|name| ((*name).to_owned(), claim(name))).collect()),
        condition: None,
        owner: None,
    }
}

fn seen(holder: &str, uid: &str, policy: &str) -> CachedClaim {
    let held = StoredHolder {
        group: "g".into(),
        kind: "Thing".into(),
        namespace: Some("n".into()),
        name: holder.into(),
        uid: Some(uid.into()),
        ..StoredHolder::default()
    };
    CachedClaim {
        uid: "claim".into(),
        version: "1".into(),
        spec: UniqueClaimSpec {
            scope: "s".into(),
            key: "k".into(),
            value: None,
            shared: None,
            holder: held,
            policy: Some(policy.into()),
            taken_at: None,
        },
        since: Instant::now(),
    }
}

/// Objects `a` (older) and `b` claim `k`, `c` claims nothing, of `d` it is not known.
fn ledger() -> Ledger {
    let mut ledger = Ledger::default();
    ledger.put(object_ref("b"), known("ub", 2, &["k"]));
    ledger.put(object_ref("a"), known("ua", 1, &["k"]));
    ledger.put(object_ref("c"), known("uc", 0, &[]));
    ledger.put(object_ref("d"), KnownObject { claims: None, ..known("ud", 0, &[]) });
    ledger.listed("g", "Thing", &["a", "b", "c", "d"].map(object_ref).into());
    ledger
}

fn action(ledger: &mut Ledger, seen: Option<&CachedClaim>, unchanged: Duration) -> Action {
    let policies = ClaimingPolicies::of(&["in-force"], &["not-loaded"]);
    ledger.action("k", seen, unchanged, GRACE, &policies)
}

fn claimant(name: &str, uid: &str, second: u32) -> Claimant {
    Claimant {
        created: known(uid, second, &[]).created,
        uid: uid.into(),
        object_ref: object_ref(name),
    }
}

#[test]
fn what_follows_for_a_claim() {
    use Action::{Adopt, Keep, Release, Take, Wait};
    let half = GRACE / 2;
    let cases = [
        ("the oldest gets a free key", None, NOW, Take(claimant("a", "ua", 1))),
        ("it stays", Some(seen("a", "ua", "in-force")), GRACE, Keep),
        ("the newer keeps what it has", Some(seen("b", "ub", "in-force")), GRACE, Keep),
        (
            "the uid of a create that lost is replaced",
            Some(seen("a", "loser", "in-force")),
            NOW,
            Adopt(claimant("a", "ua", 1)),
        ),
        (
            "its policy has another name",
            Some(seen("a", "ua", "renamed")),
            NOW,
            Adopt(claimant("a", "ua", 1)),
        ),
        ("an update may be under way", Some(seen("c", "uc", "in-force")), half, Wait(half)),
        (
            "it is no longer claimed",
            Some(seen("c", "uc", "in-force")),
            GRACE,
            Release(ReleaseReason::NotClaimed),
        ),
        (
            "its policy may come back",
            Some(seen("c", "uc", "away")),
            GRACE,
            Wait(GRACE * (WITHOUT_POLICY - 1)),
        ),
        (
            "its policy does not come back",
            Some(seen("c", "uc", "away")),
            GRACE * WITHOUT_POLICY,
            Release(ReleaseReason::NotClaimed),
        ),
        (
            "its policy is only not loaded here",
            Some(seen("c", "uc", "not-loaded")),
            GRACE * WITHOUT_POLICY * 100,
            Keep,
        ),
        ("what it claims is not known", Some(seen("d", "ud", "in-force")), GRACE * 100, Keep),
        ("a create may be under way", Some(seen("never", "un", "in-force")), half, Wait(half)),
        (
            "it never came to be",
            Some(seen("never", "un", "in-force")),
            GRACE,
            Release(ReleaseReason::Orphan),
        ),
    ];
    for (why, seen, unchanged, expected) in cases {
        assert_eq!(action(&mut ledger(), seen.as_ref(), unchanged), expected, "{why}");
    }
}

#[test]
fn the_claim_of_an_object_that_was_deleted_does_not_wait() {
    let mut ledger = ledger();
    ledger.remove(&object_ref("a"));
    let claim = seen("a", "ua", "in-force");
    assert_eq!(action(&mut ledger, Some(&claim), NOW), Action::Release(ReleaseReason::Deleted));
    // A create of that name that came after has another UID, and waits.
    let claim = seen("a", "new", "in-force");
    assert_eq!(action(&mut ledger, Some(&claim), NOW), Action::Wait(GRACE));
}

#[test]
fn however_often_an_object_is_made_again_little_is_remembered_of_it() {
    let mut ledger = Ledger::default();
    for number in 0..1000 {
        ledger.put(object_ref("a"), known(&format!("u{number}"), 1, &["k"]));
        ledger.remove(&object_ref("a"));
    }
    assert!(ledger.gone.values().map(VecDeque::len).sum::<usize>() <= GONE);
    let claim = seen("a", "u999", "in-force");
    assert_eq!(action(&mut ledger, Some(&claim), NOW), Action::Release(ReleaseReason::Deleted));
}

#[test]
fn objects_that_a_new_list_does_not_have_are_gone() {
    let mut ledger = ledger();
    while ledger.pop().is_some() {}
    ledger.listed("g", "Thing", &["b", "c", "d"].map(object_ref).into());
    assert_eq!(ledger.pop().as_deref(), Some("k"));
    let claim = seen("a", "ua", "in-force");
    assert_eq!(action(&mut ledger, Some(&claim), NOW), Action::Release(ReleaseReason::Deleted));
}

#[test]
fn of_two_created_in_one_second_the_smaller_uid_is_the_older() {
    let mut ledger = Ledger::default();
    ledger.put(object_ref("a"), known("u2", 1, &["k"]));
    ledger.put(object_ref("b"), known("u1", 1, &["k"]));
    assert_eq!(action(&mut ledger, None, NOW), Action::Take(claimant("b", "u1", 1)));
}

#[test]
fn of_objects_of_one_age_the_one_that_holds_the_key_is_the_eldest() {
    let mut ledger = Ledger::default();
    for (name, uid, second) in [("a", "u2", 1), ("b", "u1", 1), ("c", "u0", 2)] {
        ledger.put(object_ref(name), known(uid, second, &["k"]));
    }
    let oldest = |holder: Option<&str>| {
        let holder = holder.map(object_ref);
        ledger.oldest("k", holder.as_ref()).map(|claimant| claimant.object_ref.name.as_str())
    };
    assert_eq!(oldest(None), Some("b"), "it has no holder: decided by UID");
    assert_eq!(oldest(Some("a")), Some("a"));
    assert_eq!(oldest(Some("c")), Some("b"), "the holder was created a second later");
    assert_eq!(oldest(Some("gone")), Some("b"), "the holder does not want it any more");
    assert_eq!(ledger.oldest("other", None), None);
}

#[test]
fn a_key_that_is_released_goes_to_the_next() {
    let mut ledger = ledger();
    ledger.put(object_ref("a"), known("ua", 1, &["other"]));
    assert_eq!(ledger.claimants("k").count(), 1);
    assert_eq!(action(&mut ledger, None, NOW), Action::Take(claimant("b", "ub", 2)));
}

#[test]
fn an_object_of_the_same_name_is_another_object() {
    let mut ledger = ledger();
    ledger.put(object_ref("a"), known("second", 9, &["k"]));
    let claimants: Vec<_> = ledger.claimants("k").map(|claimant| claimant.uid.as_str()).collect();
    assert_eq!(claimants, ["ub", "second"]);
}

/// An object that says that of the key `k`.
fn saying(uid: &str, second: u32, value: &str) -> KnownObject {
    let claim = Claim { value: Some(value.to_owned()), ..claim("k") };
    KnownObject { claims: Some([("k".to_owned(), claim)].into()), ..known(uid, second, &[]) }
}

#[test]
fn a_claim_follows_what_its_objects_say_of_the_key() {
    use Action::{Adopt, Keep, Wait};
    let half = GRACE / 2;
    let alone = || {
        let mut ledger = Ledger::default();
        ledger.put(object_ref("a"), saying("ua", 1, "x"));
        ledger
    };
    let with = |value: &str| {
        let mut ledger = alone();
        ledger.put(object_ref("b"), saying("ub", 2, value));
        ledger
    };
    let stored = |value: Option<&str>, shared: Option<bool>| {
        let mut claim = seen("a", "ua", "in-force");
        (claim.spec.value, claim.spec.shared) = (value.map(str::to_owned), shared);
        claim
    };
    let adopted = || Adopt(claimant("a", "ua", 1));
    let cases = [
        ("it is alone", alone(), stored(Some("x"), None), GRACE, Keep),
        ("they share it", with("x"), stored(Some("x"), Some(true)), GRACE, Keep),
        ("another says something else", with("y"), stored(Some("x"), None), GRACE, Keep),
        ("an older version wrote it", alone(), stored(None, None), GRACE, adopted()),
        ("its definition is older", alone(), stored(None, None), half, Wait(half)),
        ("another was there unasked", with("x"), stored(Some("x"), None), NOW, adopted()),
        ("another may be under way", alone(), stored(Some("x"), Some(true)), half, Wait(half)),
        ("the others are gone", alone(), stored(Some("x"), Some(true)), GRACE, adopted()),
        ("an update may be under way", alone(), stored(Some("y"), None), half, Wait(half)),
        ("the update was refused", alone(), stored(Some("y"), None), GRACE, adopted()),
    ];
    for (why, mut ledger, stored, unchanged, expected) in cases {
        assert_eq!(action(&mut ledger, Some(&stored), unchanged), expected, "{why}");
    }
}
