//! Problems of objects of our own kinds, and of a kind made up for keywords that ours do not use.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use std::sync::LazyLock;

use super::node::{Additional, Node};
use super::{Schemas, evaluate, found::Found};
use crate::{Document, Problem, Severity, Source, codes, read};

static OURS: LazyLock<Schemas> = LazyLock::new(|| Schemas::new(opensdn_crds::all()));

fn document(text: &str) -> Document {
    let mut parsed = read(&Source::new("f", text));
    assert_eq!(parsed.problems, []);
    parsed.documents.remove(0)
}

/// Code, pointer and hint of each problem, and the text that is blamed.
fn problems(schemas: &Schemas, text: &str) -> Vec<(String, String, String, String)> {
    let told = |problem: Problem| {
        let span = problem.span.unwrap();
        let blamed = text[span.start..span.end].to_owned();
        (problem.code, problem.pointer.unwrap_or_default(), problem.hint, blamed)
    };
    schemas.check(&document(text), None).into_iter().map(told).collect()
}

fn codes_of(schemas: &Schemas, object: &Value) -> Vec<String> {
    let problems = schemas.check(&document(&object.to_string()), None);
    problems.into_iter().map(|problem| problem.code).collect()
}

/// A kind whose spec has the given schema.
fn made_up(spec: Value) -> Schemas {
    let definition = json!({
        "metadata": {"name": "things.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [
                {
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
                },
                {"name": "v0", "served": true, "storage": false, "deprecated": true},
                {"name": "v2", "served": false, "storage": false}
            ]
        }
    });
    let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
    Schemas::new(vec![definition])
}

fn thing(spec: Value) -> Value {
    json!({
        "apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec
    })
}

#[test]
fn every_rule_of_our_kinds_is_understood_and_can_be_evaluated() {
    let mut rules = 0;
    for kinds in OURS.groups.values() {
        for version in kinds.values().flat_map(|kind| kind.versions.values()) {
            rules += understood(&version.root);
            let mut found = Found::default();
            for mut sample in samples(&version.root) {
                sample["metadata"] = json!({"name": "n".repeat(99)});
                evaluate::check(&sample, &version.root, &mut found);
            }
            let told = found.finish(&document("{}"));
            let unchecked: Vec<_> =
                told.iter().filter(|problem| problem.code == codes::NOT_CHECKED).collect();
            assert!(unchecked.is_empty(), "{unchecked:#?}");
            let failed: Vec<_> =
                told.iter().filter(|problem| problem.message.contains("evaluating")).collect();
            assert!(failed.is_empty(), "{failed:#?}");
        }
    }
    assert!(rules > 500, "{rules}");
}

/// How many rules there are; each must compile.
fn understood(node: &Node) -> usize {
    for rule in &node.rules {
        rule.expression.compiled().unwrap();
    }
    let inner = node.properties.values().chain(node.items.as_deref()).chain(&node.all_of);
    let map = if let Additional::Of(node) = &node.additional { Some(&**node) } else { None };
    node.rules.len() + inner.chain(map).map(understood).sum::<usize>()
}

/// Objects with every field set, to several values, so that each rule has something to judge.
fn samples(node: &Node) -> Vec<Value> {
    let texts = ["", "10.0.0.1", "a,b", "10.0.0.0/8", "{\"x\": 1}", "rbac", "12k"];
    let full = texts.iter().map(|text| sample(node, text));
    // Every second field left out, in both ways, and then all that hold no others.
    let sparse = full.clone().flat_map(|sample| {
        (0..3).map(move |way| {
            let mut sample = sample.clone();
            thin(&mut sample, way);
            sample
        })
    });
    full.chain(sparse.collect::<Vec<_>>()).collect()
}

fn thin(value: &mut Value, way: usize) {
    match value {
        Value::Object(fields) => {
            let mut count = 0;
            fields.retain(|_, value| {
                count += 1;
                value.is_object() || (way < 2 && count % 2 == way)
            });
            fields.values_mut().for_each(|value| thin(value, way));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| thin(item, way)),
        _ => {}
    }
}

fn sample(node: &Node, text: &str) -> Value {
    use super::node::Kind;
    match node.kind {
        Some(Kind::Object) | None => {
            let named =
                node.properties.iter().map(|(name, node)| (name.clone(), sample(node, text)));
            let mut fields: serde_json::Map<_, _> = named.collect();
            if let Additional::Of(node) = &node.additional {
                fields.insert("PRIORITY_ID".to_owned(), sample(node, text));
            }
            Value::Object(fields)
        }
        Some(Kind::Array) => {
            let item = node.items.as_deref().map(|node| sample(node, text)).unwrap_or_default();
            json!([item, item])
        }
        Some(Kind::String) => json!(text),
        Some(Kind::Integer) => json!(text.len()),
        Some(Kind::Number) => json!(0.5),
        Some(Kind::Boolean) => json!(text.is_empty()),
    }
}

#[test]
fn unknown_fields_are_reported_with_what_was_meant() {
    let text = "\
apiVersion: tf.tungsten.io/v1alpha1
kind: Control
metadata: {name: c, namespace: tf, label: {}}
spec:
  serviceConfiguration: {bgpport: 179, asNumber: 64512, listen: x}
  comonConfiguration: {}
";
    let told = problems(&OURS, text);
    let hint = |pointer: &str| {
        let found = told.iter().find(|problem| problem.1 == pointer);
        let (code, _, hint, blamed) = found.unwrap_or_else(|| panic!("{pointer} in {told:?}"));
        assert_eq!(code, codes::UNKNOWN_FIELD);
        (hint.as_str(), blamed.as_str())
    };
    assert_eq!(
        hint("/spec/comonConfiguration"),
        ("did you mean `commonConfiguration`?", "comonConfiguration")
    );
    assert_eq!(hint("/spec/serviceConfiguration/bgpport"), ("did you mean `bgpPort`?", "bgpport"));
    assert_eq!(hint("/metadata/label"), ("did you mean `labels`?", "label"));
}

#[test]
fn rules_blame_their_field_by_its_code() {
    let schemas = made_up(json!({
        "type": "object", "properties": {"port": {"type": "integer"}, "other": {"type": "string"}},
        "x-kubernetes-validations": [
            {"rule": "self.port > 0", "message": "OSDN1511 too small", "fieldPath": ".port"},
            {"rule": "has(self.other)", "message": "OSDN1512 missing", "fieldPath": ".other"}
        ]
    }));
    let text =
        "apiVersion: example.org/v1\nkind: Thing\nmetadata: {generateName: z-}\nspec: {port: 0}\n";
    let told = problems(&schemas, text);
    let seen: Vec<_> = told.iter().map(|told| (&*told.0, &*told.1, &*told.3)).collect();
    assert_eq!(seen, [("OSDN1511", "/spec/port", "0"), ("OSDN1512", "/spec/other", "{port: 0}")]);
}

#[test]
fn kinds_and_versions_that_are_not_served_are_reported() {
    let schemas = made_up(json!({"type": "object"}));
    let object = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}});
    assert_eq!(codes_of(&schemas, &object("example.org/v1", "Thing")), Vec::<String>::new());
    assert_eq!(codes_of(&schemas, &object("example.org/v2", "Thing")), [codes::UNKNOWN_KIND]);
    assert_eq!(codes_of(&schemas, &object("example.org/v1", "Thong")), [codes::UNKNOWN_KIND]);
    assert_eq!(codes_of(&schemas, &object("example.org/v0", "Thing")), [codes::DEPRECATED]);
    let foreign = document(&object("apps/v1", "Deployment").to_string());
    assert!(!schemas.knows(&foreign) && schemas.check(&foreign, None).is_empty());
    assert!(schemas.knows(&document(&object("example.org/v9", "Any").to_string())));
    let text = "apiVersion: example.org/v1\nkind: thing\n";
    assert_eq!(problems(&schemas, text)[0].2, "did you mean `Thing`?");
}

#[test]
fn all_that_is_wrong_with_the_structure_is_reported() {
    let schemas = made_up(json!({
        "type": "object", "required": ["must"], "maxProperties": 20,
        "properties": {
            "must": {"type": "string"},
            "text": {"type": "string", "maxLength": 2, "pattern": "^a+$"},
            "count": {"type": "integer", "minimum": 1, "maximum": 3, "exclusiveMaximum": true},
            "third": {"type": "number", "multipleOf": 0.1},
            "color": {"type": "string", "enum": ["red", "green"]},
            "list": {"type": "array", "minItems": 3, "items": {"type": "string"},
                     "x-kubernetes-list-type": "set"},
            "map": {"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
            "either": {"x-kubernetes-int-or-string": true},
            "when": {"type": "string", "format": "date-time"},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "one": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                    "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
        }
    }));
    let wrong = json!({
        "text": "bbb", "count": 3, "third": 0.25, "color": "gren", "list": ["x", "x"],
        "map": [{"name": "n"}, {"name": "n"}], "either": true, "when": "now",
        "free": {"any": [1]}, "labels": {"x": 1}, "one": {"a": "", "b": ""}
    });
    let text = thing(wrong).to_string();
    let mut told: Vec<_> = problems(&schemas, &text)
        .into_iter()
        .map(|(code, pointer, ..)| format!("{code} {pointer}"))
        .collect();
    told.sort();
    let wanted = [
        "schema-alternatives /spec/one",
        "schema-duplicate /spec/list/1",
        "schema-duplicate /spec/map/1",
        "schema-enum /spec/color",
        "schema-format /spec/when",
        "schema-length /spec/list",
        "schema-length /spec/text",
        "schema-pattern /spec/text",
        "schema-range /spec/count",
        "schema-range /spec/third",
        "schema-required /spec/must",
        "schema-type /spec/either",
        "schema-type /spec/labels/x",
    ];
    assert_eq!(told, wanted);
    let right = json!({
        "must": "", "text": "aa", "count": 2, "third": 0.3, "color": "red", "list": ["x", "y", "z"],
        "map": [{"name": "n"}, {"name": "m"}], "either": 3, "when": "2014-12-15T19:30:20Z",
        "free": {"any": [1]}, "labels": {"x": "1"}, "one": {"a": ""}
    });
    assert_eq!(codes_of(&schemas, &thing(right)), Vec::<String>::new());
}

#[test]
fn list_for_a_text_with_a_format_is_a_warning_since_the_api_server_takes_it() {
    let schemas = made_up(json!({
        "type": "object",
        "properties": {
            "when": {"type": "string", "format": "date-time"},
            "other": {"type": "string", "format": "made-up"}
        }
    }));
    let text = thing(json!({"when": [], "other": []})).to_string();
    let problems = schemas.check(&document(&text), None);
    let severities: Vec<_> = problems.iter().map(|problem| problem.severity).collect();
    assert_eq!(severities, [Severity::Error, Severity::Warning]);
}

#[test]
fn nulls_and_defaults_are_those_of_the_api_server() {
    let schemas = made_up(json!({
        "type": "object",
        "properties": {
            "plain": {"type": "string"},
            "kept": {"type": "string", "nullable": true},
            "mode": {"type": "string", "default": "on"},
            "list": {"type": "array", "items": {"type": "string"}},
            "inner": {"type": "object", "default": {}, "properties": {"x": {"type": "integer", "default": 7}}}
        }
    }));
    let object = thing(json!({"plain": null, "kept": null, "mode": null, "gone": 1}));
    let stored = schemas.with_defaults(&object);
    assert_eq!(stored["spec"], json!({"kept": null, "mode": "on", "inner": {"x": 7}}));
    assert_eq!(codes_of(&schemas, &thing(json!({"list": [null]}))), [codes::TYPE]);
    let foreign = json!({"apiVersion": "v1", "kind": "Pod", "x": null});
    assert_eq!(schemas.with_defaults(&foreign), foreign);
}

#[test]
fn rules_see_what_they_see_in_the_api_server() {
    let rule = |rule: &str, more: Value| {
        let mut rule = json!({"rule": rule, "message": "OSDN1 no"});
        rule.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        let schemas = made_up(json!({
            "type": "object",
            "properties": {
                "nothing": {"type": "string", "nullable": true},
                "a-b": {"type": "integer"}, "a_b": {"type": "integer"}, "namespace": {"type": "string"},
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                "time": {"type": "string", "format": "date-time"},
                "span": {"type": "string", "format": "duration"},
                "data": {"type": "string", "format": "byte"},
                "ratio": {"type": "number"}
            },
            "x-kubernetes-validations": [rule]
        }));
        let spec = json!({
            "nothing": null, "a-b": 1, "a_b": 2, "namespace": "n", "map": {"x-y": 3}, "ratio": 2,
            "time": "2024-01-01T00:00:00Z", "span": "90m", "data": "aGk="
        });
        codes_of(&schemas, &thing(spec))
    };
    let fine = [
        "!has(self.nothing)",
        "self.?nothing.orValue('none') == 'none'",
        "self.a__dash__b == 1",
        "self.a_b == 2",
        "self.?map.?none.orValue(5) == 5",
        "self.?none.x.hasValue() == false",
        "self.__namespace__ == 'n'",
        "self.map['x-y'] == 3",
        "self == oldSelf",
        "self.time < timestamp('2025-01-01T00:00:00Z')",
        "self.ratio == 2.0",
        "self.span > duration('1h')",
        "size(self.data) == 2",
        "quantity('1Gi').isGreaterThan(quantity('1Mi'))",
        "cidr('10.0.0.0/8').containsIP('10.1.1.1')",
        "self.map.all(key, self.map[key] > 2)",
        "[1, 2].exists_one(x, x == 2)",
    ];
    for text in fine {
        assert_eq!(rule(text, json!({})), Vec::<String>::new(), "{text}");
    }
    assert_eq!(rule("has(self.nothing)", json!({})), ["OSDN1"]);
    assert_eq!(rule("self.map['none'] == 1", json!({})), ["OSDN1"]);
    assert_eq!(rule("oldSelf.hasValue()", json!({"optionalOldSelf": true})), ["OSDN1"]);
    assert_eq!(
        rule("false", json!({"messageExpression": "'OSDN7 ' + self.__namespace__"})),
        ["OSDN7"]
    );
    assert_eq!(rule("self.unknown(", json!({})), [codes::NOT_CHECKED]);
    assert_eq!(rule("noSuchFunction(self)", json!({})), [codes::NOT_CHECKED]);
}

#[test]
fn rules_about_values_of_the_wrong_type_are_not_checked_and_that_is_reported() {
    let text = "\
apiVersion: tf.tungsten.io/v1alpha1
kind: Zookeeper
metadata: {name: z, namespace: tf}
spec:
  serviceConfiguration: {clientPort: '2181', adminPort: 0}
";
    let told = problems(&OURS, text);
    let codes: Vec<_> = told.iter().map(|problem| problem.0.as_str()).collect();
    assert!(codes.contains(&codes::TYPE) && codes.contains(&codes::NOT_CHECKED), "{told:?}");
    assert!(codes.iter().any(|code| code.starts_with("OSDN")), "{told:?}");
    assert_eq!(told.iter().find(|told| told.0 == codes::TYPE).unwrap().2, "remove the quotes");
}

#[test]
fn metadata_is_checked_as_by_the_api_server() {
    let schemas = made_up(json!({"type": "object"}));
    let codes = |metadata: Value| {
        let object = json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": metadata});
        let problems = schemas.check(&document(&object.to_string()), None);
        problems.into_iter().map(|problem| problem.pointer.unwrap_or_default()).collect::<Vec<_>>()
    };
    let none = Vec::<String>::new();
    assert_eq!(codes(json!({"name": "a.b-c", "labels": {"x.io/a_B": "v", "e": ""}})), none);
    assert_eq!(codes(json!({"generateName": "a-", "annotations": {"X/y": ""}})), none);
    assert_eq!(codes(json!({})), ["/metadata"]);
    assert_eq!(codes(json!("x")), ["/metadata"]);
    assert_eq!(codes(json!({"name": "A"})), ["/metadata/name"]);
    assert_eq!(codes(json!({"name": 1})), ["/metadata/name"]);
    assert_eq!(codes(json!({"name": "a", "namespace": "a.b"})), ["/metadata/namespace"]);
    assert_eq!(codes(json!({"name": "a", "labels": {"-": "v"}})), ["/metadata/labels/-"]);
    assert_eq!(codes(json!({"name": "a", "labels": {"a/b": 1}})), ["/metadata/labels/a~1b"]);
    assert_eq!(
        codes(json!({"name": "a", "annotations": {"a b": ""}})),
        ["/metadata/annotations/a b"]
    );
    assert_eq!(codes(json!({"name": "a", "nam": "b"})), ["/metadata/nam"]);
}

#[test]
fn namespace_of_a_cluster_wide_object_is_a_warning() {
    let text = "\
apiVersion: opensdn.io/v1alpha1
kind: UniqueClaim
metadata: {name: c, namespace: tf}
spec: {scope: s, key: k, holder: {kind: Config, name: c}}
";
    let problems = OURS.check(&document(text), None);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].severity, Severity::Warning);
}
