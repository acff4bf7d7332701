//! What a signer of Kubernetes is asked for, and when what it has issued is put into place.

use super::*;

const NONE: BTreeMap<Asked, Issued> = BTreeMap::new();

/// A signer, by its CA.
struct Theirs {
    ca: Authorities,
    cas: [String; 1],
    /// So long before it issues them its certificates begin.
    skew: Duration,
}

impl Theirs {
    fn new() -> Self {
        let ca = authority();
        Self { cas: [ca.current.certificate().to_owned()], ca, skew: Duration::ZERO }
    }

    fn with<'a>(&'a self, issued: &'a BTreeMap<Asked, Issued>) -> Option<Signer<'a>> {
        Some(Signer { authorities: &self.cas, issued, is_trusted: true })
    }

    /// What it issues for what it is asked for.
    fn issue(
        &self,
        asked: &[Asked],
        wanted: &Wanted<'_>,
        now: OffsetDateTime,
    ) -> BTreeMap<Asked, Issued> {
        let issue = |asked: &Asked| {
            let profile = asked.profile(wanted).unwrap();
            // Ours begin an hour before.
            let leaf = self.ca.current.issue(&profile, now + CLOCK_SKEW - self.skew).unwrap();
            let (certificate, key) = (leaf.certificate().to_owned(), leaf.key().to_owned());
            let times = leaf::times(&certificate, &key, &self.cas[0], &profile.names).unwrap();
            assert_eq!(times.from, now - self.skew);
            (asked.clone(), Issued { certificate, key, times })
        };
        asked.iter().map(issue).collect()
    }
}

fn addresses(asked: &[Asked]) -> Vec<&str> {
    asked.iter().map(|one| one.address.as_str()).collect()
}

#[test]
fn a_signer_is_asked_for_each_and_what_it_issues_is_put_into_place() {
    let (ours, theirs, none) = (authority(), Theirs::new(), NONE);
    let subjects = [subject("192.0.2.1"), subject("192.0.2.2")];
    let wanted = Wanted { signer: theirs.with(&none), ..wanted(&subjects) };
    let first = with(None, &wanted, &ours, now(), true).unwrap();
    assert_eq!((first.data.len(), first.issued, first.missing, first.asked.len()), (0, 0, 4, 4));
    let three = theirs.issue(&first.asked[..3], &wanted, now());
    let answered = Wanted { signer: theirs.with(&three), ..wanted };
    let second = with(None, &answered, &ours, now(), true).unwrap();
    assert_eq!((second.issued, second.missing, second.asked.len()), (3, 1, 1));
    assert_eq!(second.data.len(), 9, "and of each since when it is there");
    let fourth = theirs.issue(&second.asked, &wanted, now());
    let answered = Wanted { signer: theirs.with(&fourth), ..wanted };
    let all = with(Some(&stored(&second)), &answered, &ours, now(), true).unwrap();
    assert_eq!((all.issued, all.missing, all.asked.len(), all.data.len()), (1, 0, 0, 12));
    let kept = with(Some(&stored(&all)), &wanted, &ours, now(), true).unwrap();
    assert_eq!((kept.issued, kept.asked.len(), kept.data), (0, 0, all.data), "all is good");
}

#[test]
fn a_certificate_counts_from_when_it_was_put_into_place_whatever_it_says() {
    let (ours, none) = (authority(), NONE);
    let subjects = [subject("192.0.2.1")];
    for skew in [Duration::ZERO, Duration::minutes(5), Duration::hours(1), Duration::days(3)] {
        let theirs = Theirs { skew, ..Theirs::new() };
        let wanted = Wanted { signer: theirs.with(&none), ..wanted(&subjects) };
        let asked = with(None, &wanted, &ours, now(), true).unwrap().asked;
        let issued = theirs.issue(&asked, &wanted, now());
        // It was approved hours before it was put into place.
        let placed = now() + Duration::hours(7);
        let answered = Wanted { signer: theirs.with(&issued), ..wanted };
        let all = with(None, &answered, &ours, placed, true).unwrap();
        assert_eq!(all.issued_at["192.0.2.1"], placed);
        let mut there = stored(&all);
        let later = with(Some(&there), &wanted, &ours, placed + Duration::days(9), true).unwrap();
        assert_eq!((later.issued_at["192.0.2.1"], later.data), (placed, all.data));
        // What a user has written there is no time to come, as pods would start again until then.
        for spoilt in ["2099-01-01T00:00:00Z", "never"] {
            let bytes = json!(ByteString(spoilt.as_bytes().to_vec()));
            there.data["data"]["server-since-192.0.2.1"] = bytes.clone();
            there.data["data"]["client-since-192.0.2.1"] = bytes;
            let all = with(Some(&there), &wanted, &ours, placed, true).unwrap();
            assert_eq!(all.issued_at["192.0.2.1"], now() - skew, "{spoilt}");
        }
    }
}

#[test]
fn at_a_change_of_signer_each_address_keeps_its_certificate_until_its_turn_and_the_answer() {
    let (ours, theirs, none) = (authority(), Theirs::new(), NONE);
    let subjects = [subject("192.0.2.1"), subject("192.0.2.2")];
    let of_ours = with(None, &wanted(&subjects), &ours, now(), true).unwrap();
    let signed = Wanted { signer: theirs.with(&none), ..wanted(&subjects) };
    let later = now() + Duration::hours(1);
    let there = stored(&of_ours);
    let asked = with(Some(&there), &signed, &ours, later, false).unwrap();
    assert_eq!((asked.missing, asked.data.clone()), (0, of_ours.data.clone()));
    let all = ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.2"];
    assert_eq!(addresses(&asked.asked), all, "a user can approve them together");

    let issued = theirs.issue(&asked.asked, &signed, later);
    let answered = Wanted { signer: theirs.with(&issued), ..signed };
    let unready = with(Some(&there), &answered, &ours, later, false).unwrap();
    assert_eq!((unready.issued, unready.asked), (0, Vec::new()), "no pod can be spared");
    let mixed = with(Some(&there), &answered, &ours, later, true).unwrap();
    assert_eq!((mixed.issued, mixed.missing), (2, 0));
    assert_eq!(mixed.issued_at["192.0.2.1"], later, "one address has its turn, with both sides");
    assert_eq!(mixed.renew_at, later + PAUSE);

    // And back: those of the signer are trusted, and replaced in turn by ours.
    let trusted = Wanted { trusted: &theirs.cas, ..wanted(&subjects) };
    let (there, later) = (stored(&mixed), later + Duration::hours(1));
    let back = with(Some(&there), &trusted, &ours, later, false).unwrap();
    assert_eq!((back.issued, back.data), (0, mixed.data), "kept until its turn");
    let back = with(Some(&there), &trusted, &ours, later, true).unwrap();
    assert_eq!((back.issued, back.data.len()), (2, 8), "nothing of a signer is left");
    let unknown = with(Some(&there), &wanted(&subjects), &ours, later, false).unwrap();
    assert_eq!(unknown.issued, 2, "what none trusts is replaced at once");
}

#[test]
fn who_gets_no_answer_keeps_none_of_the_others_from_their_turn() {
    let (ours, theirs, none) = (authority(), Theirs::new(), NONE);
    let subjects = [subject("192.0.2.1"), subject("192.0.2.2")];
    let there = stored(&with(None, &wanted(&subjects), &ours, now(), true).unwrap());
    let signed = Wanted { signer: theirs.with(&none), ..wanted(&subjects) };
    let later = now() + Duration::hours(1);
    let asked = with(Some(&there), &signed, &ours, later, true).unwrap().asked;
    // The first was denied, and of a half nothing is put into place.
    let issued = theirs.issue(&asked[1..], &signed, later);
    let answered = Wanted { signer: theirs.with(&issued), ..signed };
    let made = with(Some(&there), &answered, &ours, later, true).unwrap();
    assert_eq!((made.issued, made.issued_at["192.0.2.2"]), (2, later));
    assert_eq!(addresses(&made.asked), ["192.0.2.1"], "it is asked for all the same");
}

#[test]
fn what_is_due_waits_until_all_pods_trust_the_signer_unless_it_ends_soon() {
    let (ours, theirs, none) = (authority(), Theirs::new(), NONE);
    let subjects = [subject("192.0.2.1")];
    let there = stored(&with(None, &wanted(&subjects), &ours, now(), true).unwrap());
    let signer = theirs.with(&none).map(|one| Signer { is_trusted: false, ..one });
    let signed = Wanted { signer, ..wanted(&subjects) };
    let held = with(Some(&there), &signed, &ours, now() + Duration::days(1), true).unwrap();
    assert_eq!((held.is_held, held.is_urgent, held.asked.len()), (true, false, 0));
    let late = now() + LIFETIME - URGENT + Duration::days(1);
    let urgent = with(Some(&there), &signed, &ours, late, false).unwrap();
    assert_eq!((urgent.is_urgent, urgent.asked.len()), (true, 2));
    let issued = theirs.issue(&urgent.asked, &signed, late);
    let signer = theirs.with(&issued).map(|one| Signer { is_trusted: false, ..one });
    let made = with(Some(&there), &Wanted { signer, ..signed }, &ours, late, false).unwrap();
    assert_eq!(made.issued, 2);
    // One that has nothing starts, whoever trusts it.
    let first = with(None, &signed, &ours, now(), true).unwrap();
    assert_eq!((first.asked.len(), first.is_held), (2, false));
}

#[test]
fn a_certificate_of_a_few_days_is_urgent_near_its_end_and_not_all_its_life() {
    let (ours, theirs, none) = (authority(), Theirs::new(), NONE);
    let subjects = [subject("192.0.2.1")];
    let signed = Wanted { signer: theirs.with(&none), ..wanted(&subjects) };
    let asked = with(None, &signed, &ours, now(), true).unwrap().asked;
    let mut issued = BTreeMap::new();
    for one in &asked {
        let mut profile = one.profile(&signed).unwrap();
        profile.lifetime = Duration::days(7);
        let leaf = theirs.ca.current.issue(&profile, now()).unwrap();
        let (certificate, key) = (leaf.certificate().to_owned(), leaf.key().to_owned());
        let times = leaf::times(&certificate, &key, &theirs.cas[0], &profile.names).unwrap();
        issued.insert(one.clone(), Issued { certificate, key, times });
    }
    let answered = Wanted { signer: theirs.with(&issued), ..signed };
    let there = stored(&with(None, &answered, &ours, now(), true).unwrap());
    let after = |hours: i64| {
        let now = now() + Duration::hours(hours);
        let made = with(Some(&there), &signed, &ours, now, true).unwrap();
        (made.asked.len(), made.is_urgent)
    };
    assert_eq!(after(24 * 4), (0, false));
    assert_eq!(after(24 * 5), (2, false), "it is due");
    assert_eq!(after(24 * 6 + 1), (2, true));
}

#[test]
fn what_a_ca_has_issued_ends_with_it_and_is_replaced_before_where_there_is_a_successor() {
    let none = NONE;
    let profile = |days| CaProfile { lifetime: Duration::days(days), ..CaProfile::new("their CA") };
    let ca = |days| Authorities::first(&profile(days), now()).unwrap();
    let (first, successor) = (ca(100), ca(5_000));
    let end = first.current.not_after();
    let cas = [&first, &successor].map(|ca| ca.current.certificate().to_owned());
    let bound = |cas: &[String], ca: &Authorities| {
        let times =
            Times { issued: now(), due: now() + Duration::days(243), until: now() + LIFETIME };
        let signer = Signer { authorities: cas, issued: &none, is_trusted: true };
        signer.bounded(times, ca.current.certificate())
    };
    let bounded = bound(&cas[..1], &first);
    assert_eq!((bounded.due, bounded.until), (end, end), "another would end then, too");
    let bounded = bound(&cas, &first);
    assert_eq!((bounded.due, bounded.until), (end - URGENT, end));
    let free = bound(&cas, &successor);
    assert_eq!(free.until, now() + LIFETIME, "the CA ends later");
}

#[test]
fn the_first_to_expire_is_of_what_is_in_place_also_after_it_has() {
    let (ours, theirs, none) = (authority(), Theirs::new(), NONE);
    let subjects = [subject("192.0.2.1")];
    let signed = Wanted { signer: theirs.with(&none), ..wanted(&subjects) };
    let asked = with(None, &signed, &ours, now(), true).unwrap().asked;
    let issued = theirs.issue(&asked, &signed, now());
    let answered = Wanted { signer: theirs.with(&issued), ..signed };
    let all = with(None, &answered, &ours, now(), true).unwrap();
    let late = all.expires_at.unwrap() + Duration::days(1);
    let expired = with(Some(&stored(&all)), &signed, &ours, late, false).unwrap();
    assert_eq!((expired.missing, expired.expires_at), (2, all.expires_at));
}

#[test]
fn what_cannot_be_used_stays_where_it_is_until_the_answer() {
    let (ours, theirs, none) = (authority(), Theirs::new(), NONE);
    let subjects = [subject("192.0.2.1")];
    let signed = Wanted { signer: theirs.with(&none), ..wanted(&subjects) };
    // Of a CA that none knows: a daemon may run with it.
    let of_others = with(None, &wanted(&subjects), &authority(), now(), true).unwrap();
    let made = with(Some(&stored(&of_others)), &signed, &ours, now(), true).unwrap();
    assert_eq!((made.missing, made.asked.len(), made.data), (2, 2, of_others.data));
}

#[test]
fn no_more_than_a_pass_may_issue_is_asked_for() {
    let (theirs, none) = (Theirs::new(), NONE);
    let subjects: Vec<Subject> = (1..=5).map(|one| subject(&format!("192.0.2.{one}"))).collect();
    let signed = Wanted { most: 4, signer: theirs.with(&none), ..wanted(&subjects) };
    let made = with(None, &signed, &authority(), now(), true).unwrap();
    assert_eq!((made.asked.len(), made.missing), (4, 10));
}

#[test]
fn who_has_nothing_is_asked_for_however_many_are_due_and_open() {
    let (ours, theirs, none) = (authority(), Theirs::new(), NONE);
    let subjects = ["192.0.2.1", "192.0.2.2", "192.0.2.9"].map(subject);
    let there = stored(&with(None, &wanted(&subjects[..2]), &ours, now(), true).unwrap());
    let signed = Wanted { most: 2, signer: theirs.with(&none), ..wanted(&subjects) };
    let made = with(Some(&there), &signed, &ours, now() + Duration::hours(1), true).unwrap();
    assert_eq!(addresses(&made.asked)[4..], ["192.0.2.9"; 2], "beside four that are due");
}

#[test]
fn of_very_many_that_are_due_those_are_asked_for_whose_turn_is_next() {
    let (ours, theirs, none) = (authority(), Theirs::new(), NONE);
    let subjects: Vec<Subject> = (1..=30).map(|one| subject(&format!("192.0.2.{one}"))).collect();
    let there = stored(&with(None, &wanted(&subjects), &ours, now(), true).unwrap());
    let signed = Wanted { signer: theirs.with(&none), ..wanted(&subjects) };
    let made = with(Some(&there), &signed, &ours, now() + Duration::hours(1), true).unwrap();
    assert_eq!(made.asked.len(), 2 * ASKED_FOR_TURNS * in_turn(subjects.len()));
}
