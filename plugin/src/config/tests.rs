//! The keys as a whole, and changes of texts as people write them.

use super::edit::with;
use super::keys::KEYS;
use super::*;

fn parsed(text: &str) -> ConfigFile {
    ConfigFile::parse(Path::new("config.yaml"), text.as_bytes().to_vec()).unwrap()
}

fn settings(text: &str) -> Result<Config, Failure> {
    let file = ConfigFile::parse(Path::new("config.yaml"), text.as_bytes().to_vec())?;
    file.settings(&crate::parse::command())
}

#[track_caller]
fn wrong(text: &str) -> String {
    settings(text).unwrap_err().message
}

#[test]
fn every_key_is_a_flag_with_the_variable_of_its_name() {
    let definition = crate::parse::command();
    assert!(KEYS.is_sorted_by_key(|key| key.name));
    for key in KEYS {
        let argument = key.argument(&definition).unwrap_or_else(|| panic!("{}", key.name));
        let named = format!("KUBECTL_OPENSDN_{}", key.name.to_uppercase().replace(['.', '-'], "_"));
        assert!(key.variable == named || key.variable == "OPENSDN_NAMESPACE", "{}", key.name);
        let variable = argument.get_env().and_then(|name| name.to_str());
        let expected = (key.about == keys::About::Runs).then_some(key.variable);
        assert_eq!(variable, expected, "{}", key.name);
    }
}

#[test]
fn where_the_installation_is_has_a_key_with_each_command_that_looks_for_it() {
    fn commands(within: &clap::Command, words: &str) -> Vec<String> {
        let own = within.get_arguments().any(|one| one.get_long() == Some("control-namespace"));
        let own = own.then(|| format!("{words}control-namespace"));
        let below = within
            .get_subcommands()
            .flat_map(|one| commands(one, &format!("{words}{}.", one.get_name())));
        own.into_iter().chain(below).collect()
    }
    let mut wanted = commands(&crate::parse::command(), "");
    wanted.sort();
    let all = KEYS.iter().map(|key| key.name).filter(|name| name.ends_with("control-namespace"));
    assert_eq!(wanted, all.collect::<Vec<_>>());
}

#[test]
fn every_key_and_variable_is_on_the_page_about_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(root.join("docs/src/reference/configuration.md")).unwrap();
    for key in KEYS {
        let row = format!("| `{}` | `{}` |", key.name, key.variable);
        assert!(page.contains(&row), "docs/src/reference/configuration.md has no {row}");
    }
}

#[test]
fn no_key_takes_a_secret() {
    assert!(settings("defaults: {token: abc}").unwrap().settings.is_empty());
    for word in ["token", "password", "client-key", "certificate"] {
        assert!(KEYS.iter().all(|key| !key.name.contains(word)), "{word}");
    }
}

#[test]
fn a_context_wins_over_what_holds_in_general() {
    let config = settings("defaults: {color: never}\ncontexts: {prod: {color: always}}").unwrap();
    let color = keys::Key::named("color").unwrap();
    let value = |context| config.of(color, context).map(|one| one.value.as_str());
    assert_eq!(value(None), Some("never"));
    assert_eq!(value(Some("prod")), Some("always"));
    assert_eq!(value(Some("other")), Some("never"));
}

#[test]
fn what_is_wrong_is_reported_with_its_location() {
    assert!(wrong("defaults:\n  color: nevr\n").starts_with("config.yaml:2:10: color: invalid"));
    assert!(wrong("defaults:\n  color: [never]\n").starts_with("config.yaml:2:10: "));
    assert!(wrong("defaults:\n  cache-dir: ~/x\n").starts_with("config.yaml:2:14: cache-dir: "));
    assert!(wrong("defaults: {no-hints: 1}").starts_with("config.yaml:1:22: no-hints: "));
    assert!(wrong("defaults: 7").starts_with("config.yaml:1:11: "));
    assert!(wrong("defaults:\n  a: b: c\n").starts_with("config.yaml:2:"));
    assert!(wrong("a: 1\na: 2\n").starts_with("config.yaml:2:1: "));
    assert!(wrong("a: 1\n---\na: 2\n").starts_with("config.yaml:3:1: "));
    assert!(wrong("- a\n").starts_with("config.yaml:1:"));
    assert!(wrong("contexts:\n  prod: 7\n").starts_with("config.yaml:2:9: "));
}

#[test]
fn what_is_unknown_is_reported_and_has_no_effect() {
    let config = settings("defaults:\n  colour: x\n  as-of: info\nregistries: {}\n").unwrap();
    assert_eq!(config.settings, []);
    let [as_of, colour, registries] = config.warnings.as_slice() else { panic!("{config:?}") };
    assert!(colour.starts_with("config.yaml:2:3: colour is unknown"), "{colour}");
    assert!(colour.ends_with("did you mean color?"), "{colour}");
    assert!(as_of.ends_with("did you mean validate.as-of?"), "{as_of}");
    assert!(registries.starts_with("config.yaml:4:1: registries is unknown"), "{registries}");
}

#[test]
fn numbers_are_taken_as_they_are_written() {
    let config = settings("defaults: {validate.as-of: 1.33, request-timeout: 30}").unwrap();
    let values: Vec<&str> = config.settings.iter().map(|one| one.value.as_str()).collect();
    assert_eq!(values, ["1.33", "30"]);
}

#[test]
fn a_change_keeps_comments_and_what_it_does_not_know() {
    let color = ["defaults", "color"];
    let prod = ["contexts", "prod", "color"];
    for (before, path, after) in [
        ("", &color[..], "defaults:\n  color: never\n"),
        ("# mine\n", &color, "# mine\ndefaults:\n  color: never\n"),
        ("x: 1", &color, "x: 1\ndefaults:\n  color: never\n"),
        (
            "defaults: # all\n    # quiet\n    no-hints: true\nx: 1\n",
            &color,
            "defaults: # all\n    color: never\n    # quiet\n    no-hints: true\nx: 1\n",
        ),
        ("defaults:\n  color: 'auto' # why\n", &color, "defaults:\n  color: never # why\n"),
        ("defaults:\n  color:\n", &color, "defaults:\n  color: never\n"),
        ("defaults:\nx: 1\n", &color, "defaults:\n  color: never\nx: 1\n"),
        ("defaults: {}\n", &color, "defaults: {color: never}\n"),
        ("{\"x\": 1}\n", &color, "{defaults: {color: never}, \"x\": 1}\n"),
        ("contexts:\n  a: {x: 1}\n", &prod, "contexts:\n  prod:\n    color: never\n  a: {x: 1}\n"),
        ("contexts: {prod: {}}\n", &prod, "contexts: {prod: {color: never}}\n"),
        ("", &["contexts", "a:b/c~d", "color"], "contexts:\n  \"a:b/c~d\":\n    color: never\n"),
    ] {
        let changed = with(&parsed(before), path, "never");
        assert_eq!(changed.as_deref(), Some(after), "{before:?}");
        let again = with(&parsed(after), path, "never");
        assert_eq!(again.as_deref(), Some(after), "twice: {before:?}");
    }
}

#[test]
fn values_that_yaml_would_read_otherwise_are_put_into_quotes() {
    for value in ["30", "1.30", "null", "no", "a b", "a#b", "\"", "-"] {
        let text = with(&parsed(""), &["defaults", "key"], value).unwrap();
        assert_eq!(parsed(&text).value(&["defaults", "key"]).as_deref(), Some(value), "{text}");
    }
}

#[test]
fn what_only_a_person_can_change_is_left() {
    for text in [
        "a: &a {x: 1}\ndefaults: *a\n",
        "defaults:\n  color: [a]\n",
        "x: 1\n...\n",
        "defaults: &d\n  color: &c auto\ncontexts:\n  a: *c\n",
    ] {
        assert_eq!(with(&parsed(text), &["defaults", "color"], "never"), None, "{text}");
    }
}
