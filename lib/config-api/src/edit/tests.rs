//! Edits of rows of ours among rows of others.

use serde_json::{Value, json};

use super::*;
use crate::link_local::Target;

fn ours(name: &str, last: u8, port: u16, fabric: u8) -> Row {
    let target = Target::new([[192, 168, 1, fabric].into()], port);
    Row::new(name, Key::new([10, 10, 10, last].into(), port), &target)
}

fn metadata() -> Value {
    json!({
        "linklocal_service_name": "metadata", "linklocal_service_ip": "169.254.169.254",
        "linklocal_service_port": 80, "ip_fabric_DNS_service_name": "", "ip_fabric_service_ip": ["10.0.0.9"],
        "ip_fabric_service_port": 8775, "x": [null, {"y": ""}],
    })
}

fn rows(all: &[&Row]) -> Rows {
    let all: Vec<Value> = all.iter().map(|row| row.json().clone()).collect();
    Rows::read(Some(&json!({"linklocal_service_entry": all}))).unwrap()
}

fn held(all: &[(&Row, How)]) -> BTreeMap<Key, Held> {
    let one = |(row, how): &(&Row, How)| {
        let held = Held { name: row.name().to_owned(), target: row.target(), how: *how };
        (row.key(), held)
    };
    all.iter().map(one).collect()
}

/// What is wanted where others have no record.
struct Case {
    wanted: Vec<Row>,
    ours: BTreeMap<Key, Held>,
    others: BTreeSet<Key>,
    foreign: Foreign,
    unwanted: Unwanted,
}

impl Case {
    fn of(wanted: &[&Row]) -> Self {
        let wanted = wanted.iter().map(|row| (*row).clone()).collect();
        Self {
            wanted,
            ours: BTreeMap::new(),
            others: BTreeSet::new(),
            foreign: Foreign::Respect,
            unwanted: Unwanted::Remove,
        }
    }

    fn written(mut self, all: &[&Row]) -> Self {
        self.ours = held(&all.iter().map(|row| (*row, How::Written)).collect::<Vec<_>>());
        self
    }

    fn edit(&self, current: &Rows) -> Result<Edit, Conflicts> {
        let Self { wanted, ours, others, foreign, unwanted } = self;
        edit(
            current,
            &Wanted {
                rows: wanted,
                ours,
                others,
                written: &BTreeSet::new(),
                foreign: *foreign,
                unwanted: *unwanted,
            },
        )
    }

    fn kinds(&self, current: &Rows) -> Vec<ConflictKind> {
        self.edit(current).unwrap_err().0.iter().map(|one| one.kind).collect()
    }
}

fn texts(edit: &Edit) -> Vec<String> {
    edit.changes.iter().map(ToString::to_string).collect()
}

#[test]
fn the_metadata_service_is_never_ours_whatever_a_record_says() {
    let (metadata, a) = (Row::from(metadata()), ours("a", 1, 8082, 100));
    let edit = Case::of(&[]).written(&[&metadata, &a]).edit(&rows(&[&metadata, &a])).unwrap();
    assert_eq!(edit.rows.json(), rows(&[&metadata]).json());
    let other = Row::new("b", metadata.key(), &a.target());
    let mut case = Case::of(&[&other]).written(&[&metadata]);
    case.foreign = Foreign::TakeOver;
    assert_eq!(case.kinds(&rows(&[&metadata])), [ConflictKind::Foreign]);
}

#[test]
fn missing_rows_are_appended_and_rows_of_others_stay_byte_for_byte() {
    let (odd, metadata) = (Row::from(Value::Null), Row::from(metadata()));
    let (a, b) = (ours("a", 1, 8082, 100), ours("b", 2, 8086, 101));
    let edit = Case::of(&[&a, &b]).edit(&rows(&[&metadata, &odd])).unwrap();
    assert_eq!(edit.rows.json().to_string(), rows(&[&metadata, &odd, &a, &b]).json().to_string());
    assert_eq!(
        texts(&edit),
        [
            "+ \"a\" 10.10.10.1:8082 -> 192.168.1.100:8082",
            "+ \"b\" 10.10.10.2:8086 -> 192.168.1.101:8086"
        ]
    );
    assert_eq!(edit.held, held(&[(&a, How::Written), (&b, How::Written)]));
}

#[test]
fn what_is_there_already_is_adopted_and_not_renamed() {
    let wanted = ours("vrouter", 5, 9091, 1);
    let mut found = ours("K8s-cni-to-agent", 5, 9091, 1).json().clone();
    found["ip_fabric_DNS_service_name"] = json!("ignored.example");
    let found = Row::from(found);
    let edit = Case::of(&[&wanted]).edit(&rows(&[&found])).unwrap();
    assert!(edit.changes.is_empty());
    let kept = edit.held.get(&wanted.key()).unwrap();
    assert_eq!((kept.how, kept.name.as_str()), (How::Adopted, "K8s-cni-to-agent"));
    let again = Case::of(&[&wanted]).written(&[&wanted]).edit(&edit.rows).unwrap();
    assert_eq!(
        again.held.get(&wanted.key()).unwrap().how,
        How::Written,
        "what we wrote stays ours"
    );
}

#[test]
fn rows_of_ours_are_replaced_in_their_place_and_those_not_wanted_are_removed() {
    let (old, new) = (ours("a", 1, 8082, 100), ours("a", 1, 8082, 200));
    let (gone, other) = (ours("gone", 3, 5673, 100), Row::from(metadata()));
    let case = Case::of(&[&new]).written(&[&old, &gone]);
    let edit = case.edit(&rows(&[&gone, &old, &other])).unwrap();
    assert_eq!(edit.rows.json(), rows(&[&new, &other]).json());
    let replaced = Change::Replaced { before: old.clone(), after: new.clone() };
    assert_eq!(edit.changes, [Change::Removed(gone), replaced]);
    assert_eq!(edit.held, held(&[(&new, How::Written)]));
    assert!(Case::of(&[&new]).written(&[&new]).edit(&edit.rows).unwrap().changes.is_empty());
}

#[test]
fn what_is_not_wanted_any_more_stays_as_leaving_until_it_is_removed_or_wanted_again() {
    let (old, new, gone) =
        (ours("a", 1, 8082, 100), ours("a", 2, 8082, 100), ours("gone", 3, 5673, 100));
    let mut case = Case::of(&[&new]).written(&[&old, &gone]);
    case.unwanted = Unwanted::Keep;
    let edit = case.edit(&rows(&[&old])).unwrap();
    assert_eq!(edit.rows.json(), rows(&[&old, &new]).json());
    let leaving = held(&[(&old, How::Leaving), (&new, How::Written)]);
    assert_eq!(edit.held, leaving, "what is gone is forgotten");
    // The same again.
    case.ours = edit.held;
    let again = case.edit(&edit.rows).unwrap();
    assert_eq!((again.changes.len(), &again.held), (0, &leaving));
    // Another cluster has it by now: it is that one's.
    case.others = [old.key()].into();
    let shared = case.edit(&edit.rows).unwrap();
    assert_eq!((shared.shared, shared.held.len()), (vec![old.key()], 1));
    case.others.clear();
    // Wanted again, it is as any other of ours, also where somewhere else is wanted of it.
    case.wanted = vec![old.clone(), new.clone()];
    let back = case.edit(&edit.rows).unwrap();
    assert_eq!(back.held, held(&[(&old, How::Written), (&new, How::Written)]));
    case.wanted = vec![ours("a", 1, 8082, 101), new.clone()];
    assert_eq!(case.edit(&edit.rows).unwrap().changes.len(), 1);
    case.wanted = vec![new.clone()];
    case.unwanted = Unwanted::Remove;
    let pruned = case.edit(&edit.rows).unwrap();
    assert_eq!(pruned.rows.json(), rows(&[&new]).json());
    assert_eq!(pruned.held, held(&[(&new, How::Written)]));
}

#[test]
fn a_row_of_ours_that_was_renamed_or_pointed_elsewhere_is_still_ours() {
    let (a, moved, renamed) = (ours("a", 1, 80, 1), ours("a", 1, 80, 9), ours("z", 1, 80, 1));
    let repaired = Case::of(&[&a]).written(&[&a]).edit(&rows(&[&moved])).unwrap();
    assert_eq!(repaired.rows.json(), rows(&[&a]).json());
    for found in [&moved, &renamed] {
        let removed = Case::of(&[]).written(&[&a]).edit(&rows(&[found])).unwrap();
        assert!(removed.rows.rows().is_empty(), "{found}");
    }
    let foreign = ours("z", 1, 80, 9);
    let kept = Case::of(&[]).written(&[&a]).edit(&rows(&[&foreign])).unwrap();
    assert_eq!(kept.rows.rows(), [foreign]);
}

#[test]
fn adopted_rows_and_rows_that_others_use_are_never_removed() {
    let (a, b) = (ours("a", 1, 80, 1), ours("b", 2, 80, 2));
    let mut case = Case::of(&[]).written(&[&b]);
    case.ours.extend(held(&[(&a, How::Adopted)]));
    case.others = BTreeSet::from([b.key()]);
    let edit = case.edit(&rows(&[&a, &b])).unwrap();
    assert!(edit.changes.is_empty() && edit.held.is_empty());
    assert_eq!(edit.shared, [b.key()]);
}

#[test]
fn of_two_equal_targets_only_the_row_of_our_name_is_removed() {
    let (a, twin) = (ours("a", 1, 80, 1), ours("twin", 1, 80, 1));
    let edit = Case::of(&[]).written(&[&a]).edit(&rows(&[&twin, &a])).unwrap();
    assert_eq!(edit.rows.rows(), [twin]);
}

#[test]
fn a_row_of_others_with_our_key_is_a_conflict_unless_it_is_taken_over() {
    let (a, foreign, after) = (ours("a", 1, 80, 1), ours("x", 1, 80, 7), Row::from(metadata()));
    let mut case = Case::of(&[&a]);
    let current = rows(&[&foreign, &after]);
    assert_eq!(case.kinds(&current), [ConflictKind::Foreign]);
    let text = case.edit(&current).unwrap_err().to_string();
    assert!(text.contains("\"x\" 10.10.10.1:80 -> 192.168.1.7:80 is there already"), "{text}");
    case.foreign = Foreign::TakeOver;
    let edit = case.edit(&current).unwrap();
    assert_eq!(edit.rows.json(), rows(&[&a, &after]).json());
    assert_eq!(edit.held.get(&a.key()).unwrap().how, How::Written);
}

#[test]
fn a_row_of_others_before_ours_wins_and_is_a_conflict() {
    let (a, foreign) = (ours("a", 1, 80, 1), ours("x", 1, 80, 7));
    let both = rows(&[&foreign, &a]);
    let mut case = Case::of(&[&a]).written(&[&a]);
    assert_eq!(case.kinds(&both), [ConflictKind::Shadowing]);
    assert_eq!(Case::of(&[&a]).kinds(&both), [ConflictKind::Shadowing]);
    let behind = case.edit(&rows(&[&a, &foreign])).unwrap();
    assert!(behind.changes.is_empty(), "one behind ours has no effect");
    case.foreign = Foreign::TakeOver;
    assert_eq!(case.edit(&both).unwrap().rows.rows(), [a]);
}

#[test]
fn a_row_that_others_use_as_it_is_is_not_changed() {
    let (old, new) = (ours("a", 1, 80, 1), ours("a", 1, 80, 2));
    let mut case = Case::of(&[&new]).written(&[&old]);
    case.others = BTreeSet::from([old.key()]);
    assert_eq!(case.kinds(&rows(&[&old])), [ConflictKind::Shared]);
}

#[test]
fn one_key_with_two_targets_is_not_wanted() {
    let (a, b) = (ours("a", 1, 80, 1), ours("b", 1, 80, 2));
    assert!(Case::of(&[&a, &b]).kinds(&rows(&[])).contains(&ConflictKind::Twice));
    let same = Case::of(&[&a, &ours("b", 1, 80, 1)]).edit(&rows(&[])).unwrap();
    assert_eq!(same.rows.rows(), [a]);
}

#[test]
fn a_row_is_lost_only_if_it_is_gone_by_its_meaning() {
    let (a, b, metadata) = (ours("a", 1, 80, 1), ours("b", 2, 80, 2), Row::from(metadata()));
    let before = rows(&[&a, &metadata, &b]);
    let mut rewritten = metadata.json().clone();
    rewritten["ip_fabric_DNS_service_name"] = Value::Null;
    let none = BTreeSet::new();
    let lost_in = |after: &[&Row]| lost(&before, &rows(after), &none);
    assert!(lost_in(&[&b, &Row::from(rewritten.clone()), &a]).is_empty(), "null for \"\"");
    rewritten["ip_fabric_service_port"] = json!(1);
    assert!(lost_in(&[&a, &Row::from(rewritten), &b]).is_empty(), "changed by its owner");
    let found = lost_in(&[&a, &b]);
    assert_eq!(found.iter().map(|one| &one.row).collect::<Vec<_>>(), [&metadata]);
    assert_eq!(put_back(&rows(&[&a, &b]), &found).json(), before.json());
    assert!(lost(&before, &rows(&[&a, &b]), &BTreeSet::from([metadata.key()])).is_empty());
}

#[test]
fn of_rows_without_a_usable_key_each_is_looked_for() {
    let odd = |name: &str| Row::from(json!({"linklocal_service_name": name}));
    let (x, y) = (odd("x"), odd("y"));
    let found = lost(&rows(&[&x, &y, &y]), &rows(&[&y]), &BTreeSet::new());
    let names: Vec<&str> = found.iter().map(|one| one.row.name()).collect();
    assert_eq!(names, ["x", "y"]);
}
