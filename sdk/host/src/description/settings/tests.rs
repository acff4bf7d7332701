//! Schemas that ask for more than a validator should do, and those that do not.

use serde_json::json;

use super::*;

fn refusal(schema: &Value) -> String {
    SettingsSchema::new(schema).err().map(|error| error.to_string()).unwrap_or_default()
}

/// Definitions `d0` to `dN`; each but the first is made of the name of the one before.
fn definitions(count: usize, one: impl Fn(String) -> Value) -> Value {
    let mut all = Map::new();
    all.insert("d0".to_owned(), json!({"type": "object"}));
    for number in 1..=count {
        all.insert(format!("d{number}"), one(format!("#/$defs/d{}", number - 1)));
    }
    json!({"$defs": all, "$ref": format!("#/$defs/d{count}")})
}

#[test]
fn a_chain_of_references_is_refused_however_short_its_links_are() {
    for count in [MAX_SCHEMA_DEPTH, 1_000, 20_000] {
        let chain = definitions(count, |before| json!({"$ref": before}));
        let said = refusal(&chain);
        assert!(said.contains("deeper than 64") || said.contains("more than 10000"), "{said}");
    }
    let short = definitions(5, |before| json!({"$ref": before}));
    assert_eq!(SettingsSchema::new(&short).unwrap().check(&json!({})), [""; 0]);
}

#[test]
fn references_that_double_the_work_at_each_level_are_refused() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let doubling = |levels| {
            definitions(levels, |before| json!({keyword: [{"$ref": before}, {"$ref": before}]}))
        };
        for levels in [14, 30, 60] {
            assert!(!refusal(&doubling(levels)).is_empty(), "{levels} levels of {keyword}");
        }
        assert_eq!(refusal(&doubling(3)), "", "three levels of {keyword}");
    }
    let nested = definitions(20, |before| {
        json!({"anyOf": [{"$ref": before}],
        "unevaluatedProperties": false})
    });
    assert!(!refusal(&nested).is_empty());
}

#[test]
fn a_schema_that_refers_to_itself_is_refused() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"properties": {"a": {"$ref": "#"}}}),
        json!({"items": {"$ref": "#/items"}}),
        json!({"$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
    ] {
        assert!(refusal(&schema).contains("refers to itself"), "{schema}: {}", refusal(&schema));
    }
}

#[test]
fn a_reference_that_cannot_be_counted_is_refused() {
    for target in [
        "https://json-schema.org/draft/2020-12/schema",
        "#anchor",
        "#/$defs/none",
        "#/$defs/%61",
        "other.json",
    ] {
        let schema = json!({"$ref": target, "$defs": {"a": {}}});
        assert!(refusal(&schema).contains("not a reference"), "{target}");
    }
    for keyword in REFUSED {
        let schema = json!({"items": {keyword: "#a"}});
        assert!(refusal(&schema).contains("cannot be used"), "{keyword}");
    }
    assert!(
        refusal(&json!({"$schema": "http://json-schema.org/draft-04/schema#"})).contains("draft")
    );
}

#[test]
fn patterns_are_few_and_small() {
    let many: Vec<Value> = (0..200).map(|_| json!({"pattern": "a"})).collect();
    assert!(refusal(&json!({"allOf": many})).contains("more than 10000"));
    assert!(refusal(&json!({"pattern": r"(\w{1000}){1000}"})).starts_with("it is wrong"));
    let names = SettingsSchema::new(&json!({"pattern": "^[a-z]{1,63}$"})).unwrap();
    assert_eq!(names.check(&json!("abc")).len(), 0);
    assert_eq!(names.check(&json!("A")).len(), 1);
}

#[test]
fn what_schemars_makes_of_settings_is_taken_and_says_everything_that_is_wrong() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings", "type": "object", "additionalProperties": false,
        "properties": {
            "profile": {"$ref": "#/$defs/Profile"},
            "names": {"type": "array", "items": {"type": "string"}}},
        "$defs": {"Profile": {"enum": ["strict", "lenient"]}}});
    let schema = SettingsSchema::new(&schema).unwrap();
    assert_eq!(schema.check(&json!({"profile": "strict", "names": ["a"]})).len(), 0);
    let said = schema.check(&json!({"profile": "other", "names": [1, 2], "more": 1}));
    assert_eq!(said.len(), 4, "{said:?}");
    assert!(said.iter().any(|text| text.starts_with("/names/0: ")), "{said:?}");
}

#[test]
fn settings_of_any_size_are_checked_in_bounded_steps_and_few_words() {
    let never: Vec<bool> = vec![false; 5_000];
    let schema = SettingsSchema::new(&json!({"items": {"allOf": never}})).unwrap();
    assert_eq!(schema.check(&json!([0, 0])).len(), MAX_ERRORS);
    assert_eq!(schema.check(&json!(vec![0; 100])).len(), 1, "the first of half a million");
    let said = schema.check(&json!(vec![0; 100_000]));
    assert!(said.concat().contains("too many for a schema"), "{said:?}");
    let schema = SettingsSchema::new(&json!({"type": "object"})).unwrap();
    let said = schema.check(&json!("x".repeat(10_000)));
    assert!(said.iter().all(|text| text.len() < 600), "{said:?}");
}

#[test]
fn fields_are_named_where_a_schema_knows_none() {
    let schema = SettingsSchema::new(&json!({
        "additionalProperties": false,
    }))
    .unwrap();
    let said = schema.check(&json!({"colour": "red"}));
    assert_eq!(said, ["Additional properties are not allowed ('colour' was unexpected)"]);
    let said = schema.check(&json!({"colour": {}, "size": 1}));
    assert_eq!(said, ["Additional properties are not allowed ('colour', 'size' were unexpected)"]);
    let inner = json!({"properties": {"a": {"additionalProperties": false}, "b": false}});
    let schema = SettingsSchema::new(&inner).unwrap();
    let said = schema.check(&json!({"a": {"colour": 1}, "b": {"c": 1}}));
    assert!(said[0].starts_with("/a: Additional properties") && said[0].contains("'colour'"));
    assert_eq!(said[1], "/b: False schema does not allow {\"c\":1}");
}

#[test]
fn no_more_than_100_bytes_of_a_value_or_a_field_of_the_settings_are_quoted() {
    let schema = json!({"properties": {"a": {"enum": ["b", "c"]}}, "additionalProperties": false});
    let schema = SettingsSchema::new(&schema).unwrap();
    assert_eq!(schema.check(&json!({"a": "d"})), [r#"/a: "d" is not one of "b" or "c""#]);
    let long = "x".repeat(9_000);
    for settings in [json!({"a": long}), json!({long: 1})] {
        let said = schema.check(&settings).concat();
        assert!(said.contains("xxx") && said.len() < 200, "{said}");
    }
}
