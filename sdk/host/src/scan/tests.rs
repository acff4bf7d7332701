//! The scanner against serde_json and against what it must refuse.

use serde_json::Value;

use super::{MOST_LEVELS, Paths, ScanError, scan};

fn parts<'t>(text: &'t str, pointers: &[&str]) -> Vec<Option<&'t str>> {
    let mut paths = Paths::new();
    let slots: Vec<_> = pointers.iter().map(|pointer| paths.want(pointer)).collect();
    let found = scan(text.as_bytes(), &paths).unwrap();
    slots.into_iter().map(|slot| found.get(slot)).collect()
}

fn refusal(text: &str) -> ScanError {
    scan(text.as_bytes(), &Paths::new()).unwrap_err()
}

#[test]
fn finds_parts_at_every_depth_in_one_pass() {
    let text = r#" {"a": {"b~c": [10, {"d/e": "x"}], "f": null}, "g": 1.5e-3} "#;
    assert_eq!(
        parts(text, &["/a/b~0c/1/d~1e", "/a/f", "/g", "/a/b~0c/0", "/a/missing", ""]),
        [Some(r#""x""#), Some("null"), Some("1.5e-3"), Some("10"), None, Some(text.trim())]
    );
}

#[test]
fn finds_a_key_that_is_written_with_escapes() {
    assert_eq!(parts(r#"{"\u006bey": 1}"#, &["/key"]), [Some("1")]);
}

#[test]
fn a_part_within_a_part_is_found_too() {
    assert_eq!(parts(r#"{"a":{"b":1}}"#, &["/a", "/a/b"]), [Some(r#"{"b":1}"#), Some("1")]);
}

#[test]
fn the_same_pointer_has_one_slot() {
    let mut paths = Paths::new();
    assert_eq!(paths.want("/a"), paths.want("/a"));
}

#[test]
fn a_pointer_of_any_depth_can_be_mounted() {
    let mut object = Paths::new();
    object.want(&"/a".repeat(200_000));
    let mut review = Paths::new();
    let mount = review.mount("/object", &object);
    assert!(scan(b"{}", &review).unwrap().document(&mount).is_none());
}

#[test]
fn many_keys_among_many_wanted_ones_are_each_found() {
    let mut paths = Paths::new();
    let slots: Vec<_> = (0..20_000).map(|number| paths.want(&format!("/k{number}"))).collect();
    let keys: Vec<_> = (0..20_000).rev().map(|number| format!("\"k{number}\":{number}")).collect();
    let text = format!("{{{}}}", keys.join(","));
    let found = scan(text.as_bytes(), &paths).unwrap();
    for (number, slot) in slots.into_iter().enumerate() {
        assert_eq!(found.get(slot), Some(number.to_string().as_str()));
    }
}

#[test]
fn documents_are_found_where_they_are_mounted() {
    let mut object = Paths::new();
    let name = object.want("/metadata/name");
    let whole = object.want("");
    let mut review = Paths::new();
    let uid = review.want("/request/uid");
    let new = review.mount("/request/object", &object);
    let old = review.mount("/request/oldObject", &object);
    let text = r#"{"request":{"uid":"u","object":{"metadata":{"name":"x"}},"oldObject":null}}"#;
    let found = scan(text.as_bytes(), &review).unwrap();
    assert_eq!(found.get(uid), Some(r#""u""#));
    let document = found.document(&new).unwrap();
    assert_eq!(document.part(name), Some(r#""x""#));
    assert_eq!(document.part(whole), Some(r#"{"metadata":{"name":"x"}}"#));
    assert_eq!(document.text(), r#"{"metadata":{"name":"x"}}"#);
    assert!(found.document(&old).is_none());
}

#[test]
fn refuses_a_key_that_stands_twice() {
    for text in [r#"{"a":1,"a":2}"#, r#"{"a":1,"\u0061":2}"#, r#"[{"x":{"k":1,"b":2,"k":3}}]"#] {
        assert!(matches!(refusal(text), ScanError::DuplicateKey { .. }), "{text}");
    }
    let many = |last: &str| {
        let keys: Vec<_> = (0..600).map(|number| format!("\"k{number}\":{{}}")).collect();
        format!("{{{},\"{last}\":0}}", keys.join(","))
    };
    assert!(scan(many("other").as_bytes(), &Paths::new()).is_ok());
    assert!(matches!(refusal(&many("k3")), ScanError::DuplicateKey { .. }));
    assert!(matches!(refusal(&many("k599")), ScanError::DuplicateKey { .. }));
}

#[test]
fn refuses_more_keys_than_an_object_can_be_stored_with() {
    let object = |keys: std::ops::Range<usize>| {
        let keys: Vec<_> = keys.map(|number| format!("\"{number:x}\":0")).collect();
        keys.join(",")
    };
    let most = super::keys::MOST_KEYS;
    assert!(scan(format!("{{{}}}", object(0..most)).as_bytes(), &Paths::new()).is_ok());
    let one_more = format!("{{{}}}", object(0..most + 1));
    assert!(matches!(refusal(&one_more), ScanError::TooManyKeys { .. }));
    // Those of all objects that are open count, those of one beside the other do not.
    let half = most / 2 + 1;
    let beside = format!("[{{{0}}},{{{0}}}]", object(0..half));
    assert!(scan(beside.as_bytes(), &Paths::new()).is_ok());
    let inside = format!("{{{},\"in\":{{{}}}}}", object(0..half), object(0..half));
    assert!(matches!(refusal(&inside), ScanError::TooManyKeys { .. }));
}

#[test]
fn the_same_key_in_two_objects_is_no_duplicate() {
    assert!(scan(br#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}"#, &Paths::new()).is_ok());
}

#[test]
fn refuses_what_two_parsers_could_read_differently() {
    for text in ["{} x", "{}{}", r#""\ud800""#, r#""\udc00""#, r#""\ud800A""#, "[1,]", "01", "1."] {
        assert!(matches!(refusal(text), ScanError::Syntax { .. }), "{text}");
    }
    // Infinity to some, an error to others.
    for text in ["1e999".to_owned(), "9".repeat(400), format!("{}.5", "9".repeat(400))] {
        assert!(matches!(refusal(&text), ScanError::Syntax { .. }), "{text}");
    }
    assert_eq!(
        scan(b"{\"a\":\"\xff\"}", &Paths::new()).unwrap_err(),
        ScanError::Encoding { at: 6 }
    );
}

#[test]
fn refuses_nesting_without_end() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(scan(deep(MOST_LEVELS).as_bytes(), &Paths::new()).is_ok());
    for levels in [MOST_LEVELS + 2, 1_000_000] {
        assert!(matches!(refusal(&deep(levels)), ScanError::TooDeep { .. }), "{levels}");
    }
}

#[test]
fn at_any_depth_parts_are_found_and_two_readings_refused() {
    let nested = |levels: usize, inner: &str| {
        format!(
            r#"{}{inner}{}"#,
            r#"{"a":[1,"#.repeat(levels / 2),
            r#",{}],"b":2}"#.repeat(levels / 2)
        )
    };
    for levels in [2, 510, 512, 514, 2_000, 10_000] {
        let within = |inner: &str| format!(r#"{{"deep":{},"after":7}}"#, nested(levels, inner));
        let (mut paths, text) =
            (Paths::new(), within(r#"{"x":[],"y":{},"z":[1,"}"] , "\u0061":null}"#));
        let (deep, after) = (paths.want("/deep/b"), paths.want("/after"));
        let found = scan(text.as_bytes(), &paths).unwrap();
        assert_eq!((found.get(deep), found.get(after)), (Some("2"), Some("7")), "{levels}");
        for (inner, is_duplicate) in [
            (r#"{"x":1,"y":2,"x":3}"#, true),
            (r#"{"x":1,"\u0078":2}"#, true),
            ("[1,]", false),
            (r#"{"x":1,}"#, false),
            (r#"{"x" 1}"#, false),
            ("[1 2]", false),
            ("[}", false),
            (r#"{"x":"\ud800"}"#, false),
            ("[1e400]", false),
            ("", false),
        ] {
            let error = refusal(&within(inner));
            let is_one = matches!(error, ScanError::DuplicateKey { .. });
            assert_eq!(is_one, is_duplicate, "{levels} {inner}: {error}");
        }
    }
}

#[test]
fn takes_and_refuses_the_same_texts_as_serde_json() {
    let samples = [
        "null",
        "true",
        "fals",
        "",
        " ",
        "-",
        "-0",
        "-01",
        "1e5",
        "1e",
        "1E+5",
        "1e308",
        "1e309",
        "-1e999",
        "0e999",
        "1e-999",
        "0.5",
        ".5",
        "\"a\nb\"",
        "\"tab\\t\"",
        "\"bad\\x\"",
        "\"\\u12\"",
        "\"\\ud83d\\ude00\"",
        "[",
        "[]",
        "{}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "[1 2]",
        "\"open",
        "{\"a\":[{\"b\":[1,2,{\"c\":null}]}]}",
        "18446744073709551616",
        "\"exactly8\"",
        "\"longer than eight bytes \\\" and on\"",
        "nul",
        "[}",
    ];
    for text in samples {
        let ours = scan(text.as_bytes(), &Paths::new()).is_ok();
        assert_eq!(ours, serde_json::from_str::<Value>(text).is_ok(), "{text}");
    }
}

#[test]
fn no_key_has_a_meaning_of_its_own() {
    // With features of serde_json that some dependency could switch on, these would be read as
    // the value in the text.
    for key in ["$serde_json::private::RawValue", "$serde_json::private::Number"] {
        let text = format!("{{\"{key}\":\"1\"}}");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value, serde_json::json!({ key: "1" }));
    }
}

#[test]
fn of_a_key_that_stands_twice_no_more_than_100_bytes_are_quoted() {
    let key = "k".repeat(9_000);
    let error = refusal(&format!("{{\"{key}\":1,\"{key}\":2}}"));
    assert!(error.to_string().len() < 200, "{error}");
}
