//! Fields of the schemas that are built in.

use std::sync::LazyLock;

use super::*;

static KINDS: LazyLock<Kinds> = LazyLock::new(Kinds::built_in);

fn explained(words: &str) -> FieldExplanation {
    KINDS.explain(words, Depth::One).unwrap()
}

fn hint(words: &str) -> String {
    KINDS.explain(words, Depth::One).unwrap_err().hint().join(" ")
}

#[test]
fn a_field_has_its_type_its_bounds_and_the_rules_with_their_codes() {
    let port = explained("manager.spec.services.config.spec.serviceConfiguration.apiPort");
    assert_eq!(
        (port.kind.as_str(), port.api_version.as_str()),
        ("Manager", "tf.tungsten.io/v1alpha1")
    );
    assert_eq!(port.field.type_name, "integer");
    assert!(port.field.description.contains("8082"), "{}", port.field.description);
    assert_eq!(port.field.bounds["minimum"], 1);
    assert_eq!(port.field.bounds["maximum"], 65535);
    assert!(port.field.fields.is_empty());
    let [rule] = port.field.rules.as_slice() else { panic!("{port:#?}") };
    assert_eq!(rule.code.as_deref(), Some("OSDN1519"));
    assert_eq!(rule.message, "apiPort must be a port from 1 to 65535");
}

#[test]
fn a_rule_on_an_object_is_shown_with_each_field_that_it_is_about() {
    for name in ["minHeapSize", "maxHeapSize"] {
        let field = explained(&format!("cassandra.spec.serviceConfiguration.{name}")).field;
        let about = "minHeapSize must not be larger than maxHeapSize";
        assert!(field.rules.iter().any(|rule| rule.message == about), "{field:#?}");
    }
}

#[test]
fn a_kind_is_known_by_each_of_its_names_and_with_its_group() {
    for words in [
        "Vrouter.spec",
        "vrouters.spec",
        "tfvr.spec",
        "vrouter.tf.tungsten.io.spec",
        "vrouters.v1alpha1.tf.tungsten.io.spec",
        "vrouter.spec.",
    ] {
        assert_eq!(explained(words).field.path, "vrouter.spec", "{words}");
    }
    assert_eq!(explained("vrouter").field.type_name, "Object");
    let names: Vec<String> =
        explained("vrouter").field.fields.into_iter().map(|one| one.path).collect();
    let expected =
        ["apiVersion", "kind", "metadata", "spec", "status"].map(|name| format!("vrouter.{name}"));
    assert_eq!(names, expected);
}

#[test]
fn every_kind_and_every_field_of_it_can_be_asked_for_by_the_path_that_is_shown() {
    fn check(field: &Field, kinds: &Kinds) {
        let (kind, names) = field.path.split_once('.').unwrap_or((&field.path, ""));
        let kind = kinds.0.iter().find(|one| one.word() == kind).unwrap();
        let names: Vec<&str> = names.split('.').filter(|name| !name.is_empty()).collect();
        assert_eq!(kind.walk(&names).unwrap().path, names, "{}", field.path);
        assert!(!field.description.is_empty(), "{}", field.path);
        field.fields.iter().for_each(|one| check(one, kinds));
    }
    let kinds = &*KINDS;
    for word in kinds.words() {
        check(&kinds.explain(&word, Depth::All).unwrap().field, kinds);
    }
}

#[test]
fn positions_and_keys_lead_into_lists_and_mappings() {
    let field = explained("manager.spec.services.vrouters[0].spec").field;
    assert_eq!(field.path, "manager.spec.services.vrouters.spec");
    assert_eq!(explained("manager.spec.services.vrouters.0.spec").field, field);
    let selector = explained("manager.spec.commonConfiguration.nodeSelector");
    assert_eq!(selector.field.type_name, "map[string]string");
    explained("manager.spec.commonConfiguration.nodeSelector.rack");
}

#[test]
fn codes_of_policies_are_those_of_their_cases_for_a_component_alone_and_in_a_manager() {
    let codes = |words: &str| explained(words).codes;
    let alone = codes("vrouter.spec.serviceConfiguration.sslEnable");
    assert!(alone.iter().any(|code| code.code == "OSDN1816"), "{alone:#?}");
    assert_eq!(codes("manager.spec.services.vrouters.spec.serviceConfiguration.sslEnable"), alone);
    assert!(codes("vrouter.spec.serviceConfiguration").is_empty());
}

#[test]
fn what_is_misspelt_gets_what_is_nearest() {
    assert_eq!(hint("vruoter"), "did you mean vrouter or vrouters?");
    assert_eq!(hint("vrouter.spce"), "did you mean spec?");
    let elsewhere = hint("manager.spec.apiPort");
    assert!(
        elsewhere.contains(
            "a field of that name is manager.spec.services.config.spec.serviceConfiguration.apiPort"
        ),
        "{elsewhere}"
    );
    let bare = hint("apiPort");
    assert!(bare.contains("config.spec.serviceConfiguration.apiPort"), "{bare}");
}

#[test]
fn what_is_typed_is_completed_by_kinds_and_their_fields() {
    let kinds = &*KINDS;
    let of = |typed: &str| {
        kinds.beginning_with(typed).into_iter().map(|(path, _)| path).collect::<Vec<_>>()
    };
    assert_eq!(of("vr"), ["vrouter", "vrouterprofile"]);
    assert_eq!(of("vrouter.s"), ["vrouter.spec", "vrouter.status"]);
    assert!(of("nonsense.s").is_empty());
}
