//! Values as others have written them, and records.

use std::collections::BTreeMap;

use serde_json::json;

use super::record::ANNOTATION;
use super::*;

fn priorities(text: &str) -> Priorities {
    text.parse().unwrap()
}

#[test]
fn an_order_is_read_as_an_agent_reads_it() {
    let list = |all: Value| json!({ "encapsulation": all });
    let cases = [
        (list(json!(["MPLSoUDP", "MPLSoGRE", "VXLAN"])), "MPLSoUDP,MPLSoGRE,VXLAN"),
        (list(json!(["VXLAN"])), "VXLAN"),
        // The second of two, and what no agent knows, have no effect.
        (list(json!(["VXLAN", null, "MPLSoUDP", "VXLAN", "vxlan", 7])), "VXLAN,MPLSoUDP"),
        (list(json!("VXLAN")), "VXLAN"),
        (json!(["VXLAN"]), "VXLAN"),
    ];
    for (stored, seen) in cases {
        assert!(Stored::read(Some(&stored)).is(&priorities(seen)), "{stored}");
    }
}

#[test]
fn what_stands_for_nothing_is_not_set() {
    let nothing = [
        json!(null),
        json!({}),
        json!([]),
        json!(""),
        json!({"encapsulation": null}),
        json!({"encapsulation": []}),
        json!({"encapsulation": ""}),
    ];
    for stored in nothing.iter().map(Some).chain([None]) {
        let read = Stored::read(stored);
        assert!(read.seen().is_empty() && read.to_string() == "not set", "{stored:?}: {read}");
    }
    // It is shown as it is where agents make nothing of it.
    assert_eq!(Stored::read(Some(&json!(false))).to_string(), "false");
    assert_eq!(Stored::read(Some(&json!({"encapsulation": ["GRE"]}))).to_string(), "[\"GRE\"]");
    let long = json!({"encapsulation": ["ä".repeat(100)]});
    assert!(Stored::read(Some(&long)).to_string().len() <= 100);
}

#[test]
fn an_order_has_each_kind_once_and_at_least_one() {
    let order = priorities(" VXLAN , MPLSoGRE,");
    assert_eq!(order.to_string(), "VXLAN,MPLSoGRE");
    assert_eq!(order.json(), json!({"encapsulation": ["VXLAN", "MPLSoGRE"]}));
    assert_eq!("".parse::<Priorities>(), Err(NotPriorities::Empty));
    let twice = Err(NotPriorities::Twice(Encapsulation::Vxlan));
    assert_eq!("VXLAN,MPLSoGRE,VXLAN".parse::<Priorities>(), twice);
    let error = "vxlan".parse::<Priorities>().unwrap_err().to_string();
    assert!(error.contains("\"vxlan\" is no encapsulation: use MPLSoUDP"), "{error}");
}

#[test]
fn a_record_is_read_as_it_was_written() {
    for state in [State::Writing, State::Written] {
        let record = Record { owner: "a".to_owned(), set: priorities("VXLAN,MPLSoUDP"), state };
        let annotations = BTreeMap::from([(ANNOTATION.to_owned(), record.clone().json())]);
        assert_eq!(Record::of(&annotations).unwrap(), Some(record));
    }
    assert_eq!(Record::of(&BTreeMap::new()).unwrap(), None);
}

#[test]
fn a_record_that_cannot_be_read_is_an_error_that_names_it() {
    let odd = [
        "",
        "{}",
        "{\"version\": 2}",
        "{\"version\": 1}",
        "{\"version\": 1, \"owner\": \"a\", \"set\": [], \"state\": \"written\"}",
    ];
    for text in odd {
        let annotations = BTreeMap::from([(ANNOTATION.to_owned(), text.to_owned())]);
        let error = Record::of(&annotations).unwrap_err().to_string();
        assert!(error.contains(ANNOTATION) && error.contains("remove the annotation"), "{error}");
    }
}

#[test]
fn the_record_is_none_of_a_nested_cluster() {
    let annotations = BTreeMap::from([(ANNOTATION.to_owned(), "no record of rows".to_owned())]);
    let cluster = ClusterId::new("a").unwrap();
    let records = crate::ownership::Records::read(&annotations, &cluster).unwrap();
    assert_eq!(records.others, 0);
}
