//! Descriptions within the bounds and just beyond each of them.

use serde_json::json;

use super::*;
use crate::contract::{Message, Operation, Severity, Step};

fn interest(reads: Vec<String>) -> Interest {
    let operations = vec![Operation::Create];
    Interest { step: Step::Validate, group: "g".into(), kind: "Thing".into(), operations, reads }
}

fn index(reads: Vec<String>) -> Index {
    let (group, kind) = (String::new(), "Node".to_owned());
    Index { name: "i".into(), group, kind, key: String::new(), reads }
}

fn message(code: &str) -> Message {
    let text = String::new;
    let severity = Severity::Deny;
    Message { code: code.into(), severity, title: text(), explanation: text(), hint: text() }
}

fn metadata() -> Metadata {
    Metadata {
        name: "some-policy".into(),
        version: "1".into(),
        summary: String::new(),
        interests: vec![interest(vec!["/spec".into()])],
        indexes: vec![index(vec!["/metadata/name".into()])],
        messages: vec![message("X1")],
        settings_schema: json!({}),
        claims: false,
    }
}

#[track_caller]
fn said_of(change: impl FnOnce(&mut Metadata)) -> String {
    let mut metadata = metadata();
    change(&mut metadata);
    check(&metadata).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn summary_and_titles_are_one_line() {
    for forged in ["fine\nverdict  trusted", "a\u{2028}b", "\u{1b}[1m"] {
        assert!(said_of(|one| one.summary = forged.into()).contains("a summary has a character"));
        assert!(said_of(|one| one.messages[0].title = forged.into()).contains("a title has"));
    }
    assert_eq!(said_of(|one| one.summary = "héllo — “x”".into()), "");
}

#[test]
fn a_pointer_has_256_bytes_and_32_segments_and_no_more() {
    let reads = |pointer: String| {
        let said = said_of(|one| one.interests = vec![interest(vec![pointer.clone()])]);
        assert_eq!(said, said_of(|one| one.indexes = vec![index(vec![pointer.clone()])]));
        assert_eq!(said, said_of(|one| one.indexes[0].key = pointer));
        said
    };
    assert_eq!(reads(format!("/{}", "a".repeat(255))), "");
    assert!(reads(format!("/{}", "a".repeat(256))).contains("has 257"));
    assert_eq!(reads("/a".repeat(32)), "");
    assert!(reads("/a".repeat(33)).contains("more than 32 segments"));
    let long = reads("/a".repeat(200_000));
    assert!(long.contains("has 400000") && long.len() < 200, "{long}");
    assert!(reads("a".into()).contains("not a JSON Pointer"));
}

#[test]
fn there_are_so_many_reads_indexes_interests_and_messages_and_no_more() {
    let pointers = |count: usize| (0..count).map(|number| format!("/a{number}")).collect();
    assert_eq!(said_of(|one| one.interests = vec![interest(pointers(255))]), "");
    let said = said_of(|one| one.interests = vec![interest(pointers(256))]);
    assert!(said.contains("257 pointers"), "the index has one too: {said}");
    assert_eq!(said_of(|one| one.indexes = vec![index(vec![]); 64]), "");
    assert!(said_of(|one| one.indexes = vec![index(vec![]); 65]).contains("65 indexes"));
    assert!(
        said_of(|one| one.interests = vec![interest(pointers(1)); 65]).contains("65 interests")
    );
    let messages = |count: usize| (0..count).map(|number| message(&format!("X{number}"))).collect();
    assert_eq!(said_of(|one| one.messages = messages(256)), "");
    assert!(said_of(|one| one.messages = messages(257)).contains("257 messages"));
}

#[test]
fn names_are_short_and_codes_are_there_once() {
    assert!(said_of(|one| one.name = "Some Policy".into()).contains("lower case words"));
    assert!(said_of(|one| one.name = "a".repeat(254)).contains("has 254"));
    assert!(said_of(|one| one.version = "1".repeat(254)).contains("has 254"));
    assert!(said_of(|one| one.interests[0].kind = "K".repeat(254)).contains("has 254"));
    assert!(said_of(|one| one.indexes[0].name = "i".repeat(254)).contains("has 254"));
    assert!(said_of(|one| one.messages.push(message("X1"))).contains("two messages"));
    let every = vec![Operation::Create; 5];
    assert!(said_of(|one| one.interests[0].operations = every).contains("5 operations"));
    assert!(said_of(|one| one.interests.clear()).contains("no kind of object"));
}

#[test]
fn names_have_no_character_that_a_reader_does_not_see() {
    for unseen in ["\u{1b}[2J", "\u{202e}", "\n", "\u{200b}"] {
        let name = format!("X1{unseen}");
        let shown = "that is not shown";
        assert!(said_of(|one| one.version = name.clone()).contains(shown), "{unseen:?}");
        assert!(said_of(|one| one.messages[0].code = name.clone()).contains(shown));
        assert!(said_of(|one| one.indexes[0].name = name.clone()).contains(shown));
        assert!(said_of(|one| one.interests[0].kind = name.clone()).contains(shown));
        let said = said_of(|one| one.interests[0].group = name);
        assert!(said.contains(shown) && !said.contains(unseen), "{said}");
    }
}
