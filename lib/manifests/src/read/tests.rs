//! What is read from texts, good and bad.

use std::io::{BufReader, Read, repeat};

use serde_json::{Value, json};

use super::{MAX_DEPTH, MAX_DOCUMENT_BYTES, Parsed, read};
use crate::{Position, Severity, Source, Sources, codes};

fn parsed(text: &str) -> Parsed {
    read(&Source::new("f", text))
}

/// The only document of a text without problems.
fn one(text: &str) -> Value {
    let parsed = parsed(text);
    assert_eq!(parsed.problems, []);
    assert_eq!(parsed.documents.len(), 1, "{text}");
    parsed.documents[0].value.clone()
}

fn codes_of(text: &str) -> Vec<String> {
    parsed(text).problems.into_iter().map(|problem| problem.code).collect()
}

/// The text at the place of the only problem.
fn blamed(text: &str) -> String {
    let parsed = parsed(text);
    assert_eq!(parsed.problems.len(), 1, "{:?}", parsed.problems);
    let span = parsed.problems[0].span.unwrap();
    text[span.start..span.end].to_owned()
}

#[test]
fn keys_and_values_know_where_they_stand() {
    let text = "kind: A\nspec:\n  list:\n  - x: 'ä'\n  - \"y\"\n  empty:\n  a/b: |\n    text\n    more\n\n";
    let parsed = parsed(text);
    let document = &parsed.documents[0];
    let at = |pointer: &str| {
        let place = document.span(pointer).unwrap();
        let text = |span: crate::Span| text[span.start..span.end].to_owned();
        (place.key.map(text), text(place.value))
    };
    assert_eq!(at("/kind"), (Some("kind".into()), "A".into()));
    assert_eq!(at("/spec/list/0/x"), (Some("x".into()), "'ä'".into()));
    assert_eq!(at("/spec/list/1"), (None, "\"y\"".into()));
    assert_eq!(at("/spec/list"), (Some("list".into()), "- x: 'ä'\n  - \"y\"".into()));
    assert_eq!(at("/spec/empty"), (Some("empty".into()), "empty".into()));
    assert_eq!(at("/spec/a~1b"), (Some("a/b".into()), "text\n    more".into()));
    assert_eq!(document.span("/spec/none"), None);
    assert_eq!(document.nearest("/spec/list/7/z"), document.span("/spec/list").unwrap());
    assert_eq!(document.nearest("/none"), document.span("").unwrap());
}

#[test]
fn flow_collections_end_with_their_bracket() {
    let text = "a: {b: [1, 2], c: {}}\n";
    let parsed = parsed(text);
    let span = |pointer| parsed.documents[0].span(pointer).unwrap().value;
    assert_eq!(&text[span("/a").start..span("/a").end], "{b: [1, 2], c: {}}");
    assert_eq!(&text[span("/a/c").start..span("/a/c").end], "{}");
}

#[test]
fn values_are_those_of_kubernetes() {
    assert_eq!(
        one(
            "on: yes\nmode: 0644\nport: '80'\n1: ~\nfolded: >-\n  a\n  b\n!!str 2: !!str 3\nown: !x y\n"
        ),
        json!({
            "true": true, "mode": 420, "port": "80", "1": null, "folded": "a b", "2": "3", "own": "y"
        })
    );
}

#[test]
fn anchors_and_merges_are_written_out() {
    let text =
        "base: &b {x: 1, z: 2}\nitem:\n  <<: *b\n  z: 3\nboth:\n  <<: [{x: 5}, *b]\ncopy: *b\n";
    assert_eq!(
        one(text),
        json!({
            "base": {"x": 1, "z": 2}, "item": {"x": 1, "z": 3}, "both": {"x": 5, "z": 2},
            "copy": {"x": 1, "z": 2}
        })
    );
    let parsed = parsed(text);
    let place = |pointer| {
        let span = parsed.documents[0].span(pointer).unwrap().value;
        text[span.start..span.end].to_owned()
    };
    assert_eq!(place("/copy"), "*b");
    assert_eq!(place("/copy/z"), "2");
    assert_eq!(place("/item/x"), "1");
}

#[test]
fn merge_behind_a_field_overrides_it_as_in_kubectl_and_is_reported() {
    let parsed = parsed("base: &b {x: 1}\nitem:\n  x: 2\n  <<: *b\n");
    assert_eq!(parsed.documents[0].value["item"]["x"], 1);
    assert_eq!(parsed.problems[0].severity, Severity::Warning);
    assert_eq!(parsed.problems[0].pointer.as_deref(), Some("/item/x"));
    assert_eq!(codes_of("a:\n  <<: 3\n"), [codes::MERGE]);
}

#[test]
fn duplicate_keys_are_errors_wherever_they_are() {
    assert_eq!(blamed("a:\n- b: 1\n  c: 2\n  b: 3\n"), "b");
    assert_eq!(blamed("{\"a\": 1, \"a\": 2}"), "\"a\"");
    let parsed = parsed("a:\n- 0\n- b: 1\n  b: 3\n1: x\n\"1\": y\n");
    let pointers: Vec<_> =
        parsed.problems.iter().map(|problem| problem.pointer.as_deref().unwrap()).collect();
    assert_eq!(pointers, ["/a/1/b", "/1"]);
}

#[test]
fn keys_that_json_has_not_are_errors() {
    assert_eq!(codes_of("a: {b: 1}\n? [x]\n: 2\n~: 3\n"), [codes::KEY, codes::KEY]);
    assert_eq!(blamed("name: {{ .Values.name }}\n"), "{ .Values.name }");
    assert_eq!(codes_of("a: .nan\n"), [codes::VALUE]);
}

#[test]
fn documents_behind_a_broken_one_are_read() {
    let text = "a: 1\n---\nb: [1\n---\nc: 3\n---\n\td: 4\n---\ne: 5\n";
    let parsed = parsed(text);
    let values: Vec<_> = parsed.documents.iter().map(|document| document.value.clone()).collect();
    assert_eq!(values, [json!({"a": 1}), json!({"c": 3}), json!({"e": 5})]);
    assert_eq!(parsed.problems.len(), 2, "{:?}", parsed.problems);
    assert!(parsed.problems.iter().all(|problem| !problem.hint.is_empty()));
    let source = Source::new("f", text);
    let line = |index: usize| source.position(parsed.problems[index].span.unwrap().start).line;
    assert_eq!(line(1), 7);
}

#[test]
fn empty_documents_are_left_out() {
    assert_eq!(parsed("---\n# nothing\n---\n\n---\n~\n").documents.len(), 0);
    assert_eq!(codes_of(""), Vec::<String>::new());
    assert_eq!(codes_of("just text\n"), [codes::NO_OBJECT]);
    assert_eq!(codes_of("- a\n"), [codes::NO_OBJECT]);
}

#[test]
fn what_kubectl_does_not_read_is_reported() {
    assert_eq!(blamed("a: 1\n--- {b: 2}\n"), "{b: 2}");
    assert_eq!(codes_of("a: 1\n...\nb: 2\n"), [codes::SEPARATOR]);
    assert_eq!(codes_of("%YAML 1.2\n---\na: 1\n"), [codes::SYNTAX]);
}

#[test]
fn lists_of_objects_become_their_entries() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- kind: A\n- apiVersion: g/v1\n  kind: BList\n  items:\n  - metadata: {name: x}\n  -\n";
    let parsed = parsed(text);
    assert_eq!(parsed.problems, []);
    let origins: Vec<_> = parsed.documents.iter().map(super::Document::origin).collect();
    assert_eq!(origins, ["/items/0", "/items/1/items/0"]);
    let last = &parsed.documents[1];
    assert_eq!(
        (last.kind(), last.api_version(), last.name()),
        (Some("B"), Some("g/v1"), Some("x"))
    );
    let place = last.span("/metadata/name").unwrap();
    assert_eq!(&text[place.value.start..place.value.end], "x");
}

#[test]
fn carriage_returns_and_byte_order_marks_are_no_content() {
    let text = "\u{feff}a: b # c\r\nd: |\r\n  e\r\n---\r\nf: g\r\n";
    let parsed = parsed(text);
    assert_eq!(parsed.problems, []);
    assert_eq!(parsed.documents[0].value, json!({"a": "b", "d": "e\n"}));
    assert_eq!(parsed.documents[0].comments()[0].text, "c");
    let source = Source::new("f", text);
    let place = parsed.documents[0].span("/a").unwrap();
    assert_eq!(source.position(place.value.start), Position { line: 1, column: 4 });
    assert_eq!(&text[place.value.start..place.value.end], "b");
}

#[test]
fn comments_are_kept_with_their_places() {
    let text =
        "# top\na: 1 # opensdn-ignore: OSDN1 lab\nb:\n  # opensdn-ignore: OSDN2 x\n  c: '# no'\n";
    let parsed = parsed(text);
    let comments = parsed.documents[0].comments();
    let seen: Vec<_> =
        comments.iter().map(|comment| (comment.text.as_str(), comment.trailing)).collect();
    assert_eq!(
        seen,
        [("top", false), ("opensdn-ignore: OSDN1 lab", true), ("opensdn-ignore: OSDN2 x", false)]
    );
    assert!(comments.iter().all(|comment| text[comment.span.start..].starts_with('#')));
}

#[test]
fn json_streams_need_no_separator() {
    let text = "{\"a\": 1,\n\t\"b\": \"\\u00e4\\/\"}\n{\"c\": 1.0}{\"d\": 2}\n";
    let parsed = parsed(text);
    assert_eq!(parsed.problems, []);
    let values: Vec<_> = parsed.documents.iter().map(|document| document.value.clone()).collect();
    assert_eq!(values, [json!({"a": 1, "b": "ä/"}), json!({"c": 1}), json!({"d": 2})]);
}

#[test]
fn nested_aliases_are_refused_before_they_grow() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let below = format!("*a{}", level - 1);
        text += &format!("a{level}: &a{level} [{}]\n", vec![below; 9].join(", "));
    }
    assert_eq!(codes_of(&text), [codes::LIMIT]);
    assert_eq!(codes_of("a: &a [*a]\n"), [codes::ALIAS]);
    assert_eq!(codes_of("a: &a\n  b: {<<: *a}\n"), [codes::ALIAS]);
    assert_eq!(codes_of("a: *none\nb: 1\n"), [codes::ALIAS]);
}

#[test]
fn anchors_around_each_other_are_refused_before_they_grow() {
    let depth = 400;
    let opening: String = (0..depth).map(|level| format!("&a{level} [")).collect();
    let text = format!("a: {opening}{}{}", "x".repeat(1 << 20), "]".repeat(depth));
    assert_eq!(codes_of(&text), [codes::LIMIT]);
}

#[test]
fn nesting_is_limited_as_in_the_webhook() {
    let flow = |depth: usize| format!("a: {}{}\n", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(codes_of(&flow(MAX_DEPTH - 1)), Vec::<String>::new());
    assert_eq!(codes_of(&flow(MAX_DEPTH)), [codes::LIMIT]);
    assert_eq!(codes_of(&flow(200_000)), [codes::LIMIT]);
    let block = |depth: usize| format!("a:\n{}x\n", "- ".repeat(depth));
    assert_eq!(codes_of(&block(MAX_DEPTH - 1)), Vec::<String>::new());
    assert_eq!(codes_of(&block(100_000)), [codes::LIMIT]);
    // Each alias is shallow, and deep in what it copies.
    let mut text = format!("a0: &a0 {}{}\n", "[".repeat(100), "]".repeat(100));
    for level in 1..6 {
        let (open, close) = ("[".repeat(100), "]".repeat(100));
        text += &format!("a{level}: &a{level} {open}*a{}{close}\n", level - 1);
    }
    assert_eq!(codes_of(&text), [codes::LIMIT]);
}

#[test]
fn json_deeper_than_the_limit_is_refused() {
    let text = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    assert_eq!(codes_of(&text), [codes::LIMIT]);
}

#[test]
fn huge_documents_are_refused_and_the_next_is_read() {
    let text = format!("a: {}\n---\nb: 1\n", "x".repeat(MAX_DOCUMENT_BYTES));
    assert_eq!(codes_of(&text), [codes::LIMIT]);
    assert_eq!(parsed(&text).documents.len(), 1);
    let sources: Vec<_> =
        Sources::new("f", text.as_bytes()).map(|source| read(&source.unwrap())).collect();
    assert_eq!(sources.len(), 2);
    assert_eq!(sources[0].problems[0].code, codes::LIMIT);
    assert_eq!(sources[1].documents[0].value, json!({"b": 1}));
    let many = format!("[{}]", "1,".repeat(1_100_000));
    assert_eq!(codes_of(&many), [codes::LIMIT]);
}

#[test]
fn endless_line_takes_bounded_memory() {
    let endless = repeat(b'-').take(3 * MAX_DOCUMENT_BYTES as u64);
    let sources: Vec<_> = Sources::new("f", BufReader::new(endless)).collect();
    assert_eq!(sources.len(), 1);
    let parsed = read(sources[0].as_ref().unwrap());
    assert_eq!(parsed.problems[0].code, codes::LIMIT);
}

#[test]
fn stream_knows_lines_of_the_whole_file() {
    let text = "a: 1\n---\nb: [1\n---\nc: \"\u{e4}\"\n";
    let sources: Vec<_> = Sources::new("f", text.as_bytes()).collect::<Result<_, _>>().unwrap();
    let lines: Vec<_> = sources.iter().map(Source::first_line).collect();
    assert_eq!(lines, [1, 2, 4]);
    let broken = read(&sources[1]);
    assert!(sources[1].position(broken.problems[0].span.unwrap().start).line >= 3);
    let last = read(&sources[2]);
    let place = last.documents[0].span("/c").unwrap();
    assert_eq!(sources[2].position(place.value.start), Position { line: 5, column: 4 });
}

#[test]
fn json_stream_is_cut_between_lines_only() {
    let text = "{\n \"a\": \"}{\"\n}\n{\"b\": 1}\n{\"c\": 1}\n";
    let sources: Vec<_> = Sources::new("f", text.as_bytes()).collect::<Result<_, _>>().unwrap();
    assert_eq!(sources.len(), 3);
    assert_eq!(read(&sources[0]).documents[0].value, json!({"a": "}{"}));
}

#[test]
fn one_document_that_is_no_text_leaves_the_others() {
    let bytes = b"a: 1\n---\nb: \xff\n---\nc: 3\n".as_slice();
    let read: Vec<_> = Sources::new("f", bytes).map(|source| read(&source.unwrap())).collect();
    assert_eq!(read[1].problems[0].code, codes::ENCODING);
    assert!(read[1].problems[0].message.contains("byte 12 "), "{:?}", read[1].problems);
    assert_eq!(read[2].documents[0].value, json!({"c": 3}));
}

/// Each sample cut at every byte, and with each byte changed: there is no panic, and every
/// location is within the text.
#[test]
fn no_cut_and_no_flipped_byte_is_a_panic() {
    let samples = [
        "a: &x {b: [1, 'c', \"d\\n\"], e: |\n    f\n  }\n<<: *x\n---\n- g: !!int 3 # h\n? i\n: ~\n",
        "{\"kind\": \"List\", \"items\": [{\"a\": \"\\u00e4\"}, null, -1.5e3, true]}\n{}\n",
        "%YAML 1.2\n---\na: >-\n  b\n\n  c\n...\n--- !!map\nx: .inf\n",
    ];
    for sample in samples {
        for at in 0..sample.len() {
            check_bytes(&sample.as_bytes()[..at]);
            for byte in [0, b'\t', b'{', b'[', b'&', b'*', b'"', b'-', b'\n', 0x80, 0xff] {
                let mut changed = sample.as_bytes().to_vec();
                changed[at] = byte;
                check_bytes(&changed);
            }
        }
    }
}

fn check_bytes(bytes: &[u8]) {
    for source in Sources::new("f", bytes) {
        let source = source.unwrap();
        let parsed = read(&source);
        for span in parsed.problems.iter().filter_map(|problem| problem.span) {
            assert!(source.text().get(span.start..span.end).is_some(), "{source:?} {span:?}");
        }
        for document in &parsed.documents {
            let span = document.span("").unwrap().value;
            assert!(source.text().get(span.start..span.end).is_some(), "{source:?} {span:?}");
        }
    }
}
