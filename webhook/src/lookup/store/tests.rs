//! What is kept of objects, and how it is found.

use opensdn_policy_host::lookup::ALL;
use serde_json::json;

use super::*;

fn index(key: &str, reads: &[&str]) -> Index {
    Index {
        name: format!("by {key}"),
        group: "g".into(),
        kind: "Thing".into(),
        key: key.into(),
        reads: reads.iter().map(|&read| read.into()).collect(),
    }
}

fn thing(name: &str, ip: &str) -> Value {
    json!({"metadata": {"namespace": "n", "name": name, "uid": format!("uid-{name}")},
        "spec": {"ip": ip, "secret": "kept out"}})
}

fn names(schema: &IndexSchema, table: &Store, index: &Index, key: &str) -> Vec<String> {
    let number = schema.number(index).unwrap();
    table
        .find(number, key, ALL)
        .iter()
        .map(|entry| schema.found(number, entry).unwrap().name)
        .collect()
}

#[test]
fn of_an_object_that_is_nested_too_deep_only_what_was_cut_off_is_no_answer() {
    let (deep, flat) = (index("/spec/ip", &["/spec/deep"]), index("/spec/ip", &["/spec/ip"]));
    let schema = IndexSchema::new([&deep, &flat]);
    let (open, close) = (r#"{"a":"#.repeat(500), "}".repeat(500));
    let text =
        thing("a", "1").to_string().replace(r#""ip""#, &format!(r#""deep":{open}1{close},"ip""#));
    let mut table = Store::new(&schema);
    table.put(&schema, &serde_json::from_str::<levels::Whole>(&text).unwrap().into());
    table.put(&schema, &thing("b", "1"));
    let found = |index: &Index| {
        let number = schema.number(index).unwrap();
        let found = table.find(number, "1", ALL);
        found
            .iter()
            .map(|entry| schema.found(number, entry).map(|found| found.name))
            .collect::<Vec<_>>()
    };
    assert_eq!(found(&flat), [Ok("a".to_owned()), Ok("b".to_owned())]);
    let [Err(error), Ok(_)] = &found(&deep)[..] else { panic!("{:?}", found(&deep)) };
    assert_eq!(error.to_string(), "/spec/deep of n/a is nested more than 120 levels deep");
}

fn heavy(namespace: &str, name: &str, bytes: usize) -> Value {
    let mut object = thing(name, "1");
    object["metadata"]["namespace"] = namespace.into();
    object["spec"]["data"] = "x".repeat(bytes).into();
    object
}

#[test]
fn of_what_is_over_the_part_of_its_namespace_the_keys_are_kept_and_the_rest_is_an_error() {
    let (data, bare) = (index("/spec/ip", &["/spec/data"]), index("/spec/ip", &[]));
    let schema = IndexSchema::new([&data, &bare]);
    let mut table = Store::with_budget(&schema, Budget::new(4_000, 1 << 20, 0));
    for (namespace, name) in [("a", "1"), ("a", "2"), ("b", "1")] {
        table.put(&schema, &heavy(namespace, name, 2_000));
    }
    let found = |table: &Store, index: &Index| -> Vec<Result<String, String>> {
        let number = schema.number(index).unwrap();
        assert_eq!(table.is_indexed(), Ok(()));
        let found = table.find(number, "1", ALL);
        let found = found.iter().map(|entry| schema.found(number, entry));
        found.map(|found| found.map(|found| found.name).map_err(|error| error.0)).collect()
    };
    assert_eq!(found(&table, &bare), [Ok("1".into()), Ok("2".into()), Ok("1".into())]);
    let with_data = found(&table, &data);
    assert!(with_data[0].is_ok() && with_data[2].is_ok(), "{with_data:?}");
    assert!(with_data[1].as_ref().is_err_and(|why| why.contains("in namespace a, or")));
    // To read it again without more room would be in vain.
    table.put(&schema, &heavy("a", "1", 2_000));
    assert!(!table.may_take_in_more());
    table.put(&schema, &heavy("b", "1", 1_000));
    assert!(table.may_take_in_more(), "something is smaller");
    // What is gone makes room: then the others are read again.
    table.remove(&heavy("a", "1", 0));
    assert!(table.may_take_in_more() && !table.may_take_in_more());
    table.put(&schema, &heavy("a", "2", 2_000));
    assert!(!table.may_take_in_more(), "nothing is left out any more");
    assert!(found(&table, &data).iter().all(Result::is_ok));
}

#[test]
fn where_keys_are_not_kept_either_nothing_is_said_to_be_all_that_is_found() {
    let each = index("/spec/list/*/ip", &[]);
    let schema = IndexSchema::new([&each]);
    let mut table = Store::with_budget(&schema, Budget::new(20_000, 1 << 20, 0));
    table.put(&schema, &thing("small", "1"));
    let mut many = thing("many", "1");
    many["spec"]["list"] = (0..1_000).map(|number| json!({"ip": number.to_string()})).collect();
    table.put(&schema, &many);
    assert!(table.is_indexed().is_err());
    assert!(table.get("n", "many").is_some(), "that it is there is known");
    table.remove(&many);
    assert_eq!(table.is_indexed(), Ok(()));
}

#[test]
fn what_is_the_same_in_a_new_list_is_shared_with_the_old_one() {
    let schema = IndexSchema::new([&index("/spec/ip", &["/spec/ip"])]);
    let (mut old, mut new) = (Store::new(&schema), Store::new(&schema));
    old.put(&schema, &thing("a", "1"));
    old.put(&schema, &thing("b", "1"));
    new.put_known(&schema, &thing("a", "1"), &old);
    new.put_known(&schema, &thing("b", "2"), &old);
    let is_shared = |name| Arc::ptr_eq(&old.get("n", name).unwrap(), &new.get("n", name).unwrap());
    assert!(is_shared("a") && !is_shared("b"));
}

#[test]
fn finds_by_key_in_the_order_of_names_and_follows_changes() {
    let by_ip = index("/spec/ip", &["/spec/ip"]);
    let schema = IndexSchema::new([&by_ip]);
    let mut table = Store::new(&schema);
    for object in [thing("b", "1"), thing("a", "1"), thing("c", "2")] {
        table.put(&schema, &object);
    }
    assert_eq!(names(&schema, &table, &by_ip, "1"), ["a", "b"]);
    table.put(&schema, &thing("a", "2"));
    assert_eq!(names(&schema, &table, &by_ip, "1"), ["b"]);
    assert_eq!(names(&schema, &table, &by_ip, "2"), ["a", "c"]);
    table.remove(&thing("c", "whatever it was last"));
    assert_eq!(names(&schema, &table, &by_ip, "2"), ["a"]);
    assert_eq!(table.len(), 2);
}

#[test]
fn keeps_declared_parts_only_and_returns_those_of_the_index_asked() {
    let (by_ip, all) = (index("/spec/ip", &["/metadata/uid", "/spec/ip"]), index("", &[]));
    let schema = IndexSchema::new([&by_ip, &all, &by_ip]);
    let mut table = Store::new(&schema);
    table.put(&schema, &thing("a", "1"));
    assert!(!format!("{table:?}").contains("kept out"));
    let entry = table.get("n", "a").unwrap();
    let found = schema.found(schema.number(&by_ip).unwrap(), &entry).unwrap();
    assert_eq!(found.parts, [Some("\"uid-a\"".to_owned()), Some("\"1\"".to_owned())]);
    assert_eq!(schema.found(schema.number(&all).unwrap(), &entry).unwrap().parts, []);
    assert_eq!(names(&schema, &table, &all, ""), ["a"]);
}

#[test]
fn only_metadata_is_asked_for_where_nothing_else_is_declared() {
    let (labels, name) = (index("", &["/metadata/labels"]), index("/metadata/name", &[]));
    assert!(IndexSchema::new([&labels, &name]).is_metadata());
    assert!(!IndexSchema::new([&labels, &index("/spec/ip", &[])]).is_metadata());
    assert!(!IndexSchema::new([&index("", &["/type"])]).is_metadata());
    assert!(!IndexSchema::new([&index("", &[""])]).is_metadata(), "the whole object");
}

#[test]
fn of_a_secret_no_more_comes_here_than_what_is_declared_and_values_are_never_kept() {
    let of_secrets = |reads: &[&str]| {
        IndexSchema::new([&Index {
            group: String::new(),
            kind: "Secret".into(),
            ..index("", reads)
        }])
    };
    let declared = |pointers: &[&str]| Arc::new(Declared::new(pointers.iter().copied(), []));
    let labels = ["/metadata/labels"];
    assert_eq!(of_secrets(&labels).parts(), Parts::DeclaredMetadata(declared(&labels)));
    assert_eq!(of_secrets(&["/type"]).parts(), Parts::secret_type(["/type"]));
    let keys = ["/data", "/type"];
    assert_eq!(of_secrets(&keys).parts(), Parts::SecretKeys(declared(&keys)));
    let of_things = IndexSchema::new([&index("/spec/ip", &["/data"])]).parts();
    assert_eq!(of_things, Parts::Declared(Arc::new(Declared::new(["/data"], ["/spec/ip"]))));
    let schema = of_secrets(&["", "/data"]);
    let mut store = Store::new(&schema);
    store.put(&schema, &json!({"metadata": {"name": "a"}, "data": {"key": "hunter2"}}));
    let text = format!("{store:?}");
    assert!(text.contains("key") && !text.contains("hunter2"), "{text}");
}

#[test]
fn the_name_and_order_of_indexes_do_not_matter() {
    let (one, other) = (index("/a", &["/x"]), index("/b", &[]));
    let mut renamed = one.clone();
    renamed.name = "other".into();
    assert!(IndexSchema::new([&one, &other]).is_like(&IndexSchema::new([&other, &renamed])));
    assert!(!IndexSchema::new([&one]).is_like(&IndexSchema::new([&one, &other])));
}
