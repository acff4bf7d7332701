//! The catalogue is complete: against the built-in policies themselves, the schemas' own rules, the
//! checks of AdmissionPolicies, and those of the plans of nested clusters.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use opensdn_policy_host::{Cache, Engine, Policy};

use super::*;

fn code_of(text: &str) -> Option<&str> {
    text.get(..8).filter(|code| code.starts_with("OSDN"))
}

#[test]
fn every_message_of_every_built_in_policy_is_explained_as_the_policy_says() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let engine = runtime.block_on(async { Engine::start(2) }).unwrap();
    let cache = Cache::of_user().unwrap();
    let all = all();
    for built_in in opensdn_policies::ALL {
        let loading = Policy::load(&engine, built_in.bytes, None, cache.as_ref());
        let policy = runtime.block_on(loading).unwrap();
        for message in &policy.metadata().messages {
            let explained = all.iter().find(|one| one.code == message.code);
            let explained = explained.unwrap_or_else(|| panic!("{} is missing", message.code));
            let title = message.title.replace('\n', " ");
            let same = |meaning: &&Meaning| {
                meaning.policy.as_deref() == Some(built_in.name) && meaning.title == title
            };
            assert!(
                explained.meanings.iter().any(|meaning| same(&meaning)),
                "{} of {} is another in policies/README.md",
                message.code,
                built_in.name
            );
        }
    }
}

#[test]
fn every_rule_of_every_schema_has_a_reason_and_no_reason_is_left_over() {
    let mut rules = BTreeSet::new();
    for definition in opensdn_crds::all() {
        let text = serde_json::to_string(&definition).unwrap();
        for (at, _) in text.match_indices("\"OSDN") {
            rules.extend(text.get(at + 1..).and_then(code_of).map(str::to_owned));
        }
    }
    let reasons: BTreeSet<String> = reasons::codes().map(str::to_owned).collect();
    assert_eq!(rules, reasons);
}

#[test]
fn every_check_of_admission_policies_is_explained() {
    let source = include_str!("../../../sdk/admission-policy/src/problem.rs");
    let given = source.match_indices("=> \"OSDN").map(|(at, _)| source.get(at + 4..));
    let given: BTreeSet<&str> = given.flatten().filter_map(code_of).collect();
    let explained: BTreeSet<&str> = admission_policies::meanings().map(|(code, _)| code).collect();
    assert_eq!(given, explained);
}

/// Whether it is a place in a repository, with or without lines, or the address of a page.
fn is_source(source: &str) -> bool {
    let Some((repository, place)) = source.split_once(' ') else {
        let (host, page) = source.split_once('/').unwrap_or_default();
        return host.contains('.') && !page.is_empty();
    };
    let (path, lines) = place.split_once(':').unwrap_or((place, "1"));
    let are_lines = lines.split('-').all(|line| line.parse::<u32>().is_ok());
    let is_file = path.contains(['/', '.']) || path == "SConscript";
    !repository.is_empty() && is_file && are_lines
}

#[test]
fn every_meaning_of_every_code_names_where_it_is_shown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let all = all();
    for explanation in &all {
        for meaning in &explanation.meanings {
            assert!(!meaning.sources.is_empty(), "{} of {meaning:?}", explanation.code);
            for source in &meaning.sources {
                assert!(is_source(source), "{}: {source}", explanation.code);
                // Our own files have no lines, which would soon be others.
                if let Some(path) = source.strip_prefix("kubectl-opensdn ") {
                    assert!(root.join(path).is_file(), "{}: {path}", explanation.code);
                }
            }
        }
    }
    let known: BTreeSet<&str> = all.iter().map(|explanation| explanation.code.as_str()).collect();
    for built_in in opensdn_policies::ALL {
        for code in opensdn_policies::codes_with_sources(built_in.name) {
            assert!(known.contains(code), "{}: {code} is left over", built_in.name);
        }
    }
    let own = |finder: Finder| !matches!(finder, Finder::Policy | Finder::Schema);
    let others: BTreeSet<&str> = all
        .iter()
        .filter(|explanation| explanation.meanings.iter().any(|meaning| own(meaning.found_by)))
        .map(|explanation| explanation.code.as_str())
        .collect();
    for (file, text, known) in [
        ("crds/sources.txt", SOURCES_OF_RULES, &known),
        ("plugin/src/catalogue/sources.txt", SOURCES, &others),
    ] {
        let codes: Vec<&str> = text.lines().map(|line| line.split_once(": ").unwrap().0).collect();
        assert!(codes.is_sorted_by(|one, next| one < next), "{file}: {codes:?}");
        for code in codes {
            assert!(known.contains(code), "{file}: {code} is left over");
        }
    }
}

/// What a script or an exception of last year names must not mean another thing today.
#[test]
fn a_code_that_was_given_once_is_never_given_to_another_thing() {
    let lines: Vec<(&str, bool)> = include_str!("ids.txt")
        .lines()
        .map(|line| line.strip_suffix(" retired").map_or((line, false), |code| (code, true)))
        .collect();
    assert!(lines.is_sorted_by(|one, next| one.0 < next.0), "ids.txt is not sorted");
    let (retired, given): (Vec<_>, Vec<_>) = lines.into_iter().partition(|line| line.1);
    let given: BTreeSet<&str> = given.iter().map(|line| line.0).collect();
    let all = all();
    let known: BTreeSet<&str> = all.iter().map(|one| one.code.as_str()).collect();
    let again = retired.iter().find(|line| known.contains(line.0));
    assert_eq!(again, None, "was given before, and is retired: take a code that is not in ids.txt");
    let new: Vec<_> = known.difference(&given).collect();
    assert!(new.is_empty(), "add to plugin/src/catalogue/ids.txt: {new:?}");
    let gone: Vec<_> = given.difference(&known).collect();
    assert!(gone.is_empty(), "is explained no more; say ` retired` behind it in ids.txt: {gone:?}");
}

/// Whether the catalogue has it; it adds the sources.
fn has(all: &[Explanation], code: &str, meaning: &Meaning) -> bool {
    let known = all.iter().find(|one| one.code == code).unwrap();
    let mut bare = known.meanings.iter().cloned().map(|one| Meaning { sources: Vec::new(), ..one });
    bare.any(|one| one == *meaning)
}

/// `validate` gives these, the codes of the rules, and those of the policies: all that it can print.
#[test]
fn every_code_without_a_number_is_explained_and_none_is_left_over() {
    let own = opensdn_validate::report::codes::ALL.iter().map(|one| one.0);
    let texts = opensdn_manifests::codes::ALL.iter().map(|one| one.0);
    let given: BTreeSet<&str> = own.chain(texts).collect();
    let explained: BTreeSet<&str> = words::meanings().map(|(code, _)| code).collect();
    assert_eq!(given, explained);
    let sources = [
        include_str!("../../../lib/validate/src/collector.rs"),
        include_str!("../../../lib/validate/src/claims.rs"),
        include_str!("../../../lib/validate/src/judge.rs"),
        include_str!("../../../lib/validate/src/suppress.rs"),
    ];
    for source in sources {
        let literal = source.lines().find(|line| line.trim_start().starts_with("code: \""));
        assert_eq!(literal, None, "a code that is no constant is not in the list");
    }
}

#[test]
fn every_code_of_a_nested_plan_is_explained_once_and_as_bad_as_it_is() {
    let explained: Vec<(&str, Severity)> =
        nested_plan::meanings().map(|(code, meaning)| (code, meaning.severity)).collect();
    let given = opensdn_nested::Code::ALL.iter().map(|code| {
        let is_error = code.severity() == opensdn_nested::Severity::Error;
        (code.as_str(), if is_error { Severity::Deny } else { Severity::Warn })
    });
    assert_eq!(explained, given.collect::<Vec<_>>());
    let all = all();
    for (code, meaning) in nested_plan::meanings() {
        assert!(has(&all, code, &meaning), "{code}");
    }
}

#[test]
fn every_code_of_a_verification_is_explained_and_those_of_a_plan_keep_their_meaning() {
    use crate::nested::verify::code::Code;
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert!(codes.is_sorted_by(|one, next| one < next), "{codes:?}");
    let of_plans: BTreeSet<&str> =
        opensdn_nested::Code::ALL.iter().map(|one| one.as_str()).collect();
    // A login that may not do something is found by both, and explained once.
    let both: Vec<&&str> = codes.iter().filter(|code| of_plans.contains(**code)).collect();
    assert_eq!(both, [&Code::Unauthorized.as_str()]);
    let all = all();
    for (code, meaning) in nested_verify::meanings() {
        assert!(has(&all, code, &meaning), "{code}");
    }
}

#[test]
fn a_check_is_explained_as_bad_as_it_is() {
    let words = |of: &[Explanation], id: &str| -> Vec<String> {
        let found = of.iter().filter(|one| one.code == id).flat_map(|one| &one.meanings);
        let checks = found.filter(|meaning| meaning.found_by == Finder::Check);
        checks.map(|meaning| format!("{:?}", meaning.severity)).collect()
    };
    let all = all();
    for check in crate::checks::catalogue::CHECKS.iter() {
        let own = format!("{:?}", check.severity).replace("Warning", "Warn");
        assert_eq!(words(&all, check.id), [own], "{}", check.id);
    }
}

#[test]
fn a_remedy_of_a_nested_plan_names_flags_that_nested_apply_has() {
    let command = crate::command();
    let nested = command.find_subcommand("nested").unwrap();
    let apply = nested.find_subcommand("apply").unwrap();
    let flags: BTreeSet<&str> = apply.get_arguments().filter_map(|one| one.get_long()).collect();
    // A flag of kubelet.
    let foreign = ["node-ip"];
    for (code, meaning) in nested_plan::meanings() {
        for word in
            meaning.remedy.split(|letter: char| letter != '-' && !letter.is_ascii_lowercase())
        {
            let Some(flag) = word.strip_prefix("--") else { continue };
            assert!(flags.contains(flag) || foreign.contains(&flag), "{code}: --{flag}");
        }
    }
}

/// All files below that end so, without tests.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let is_left_out = ["target", "tests", "tests.rs", "benches", "reference"];
        if name.starts_with('.') || is_left_out.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            files(&path, ending, found);
        } else if name.ends_with(ending) {
            found.push(path);
        }
    }
}

#[test]
fn every_code_that_a_source_or_a_page_names_is_explained() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut sources, mut pages) = (Vec::new(), Vec::new());
    files(&root, ".rs", &mut sources);
    files(&root.join("docs/src"), ".md", &mut pages);
    assert!(sources.len() > 500 && pages.len() > 10, "{} {}", sources.len(), pages.len());
    let known: BTreeSet<String> = all().into_iter().map(|one| one.code).collect();
    // Examples of how a code is written, in what reads texts of others.
    const EXAMPLES: [&str; 2] = ["OSDN1234", "OSDN2104"];
    let mut unknown = BTreeSet::new();
    for path in sources.into_iter().chain(pages) {
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (at, _) in text.match_indices("OSDN") {
            let code = text.get(at..).and_then(code_of);
            let is_code = |code: &&str| code.bytes().skip(4).all(|byte| byte.is_ascii_digit());
            let is_known = |code: &str| known.contains(code) || EXAMPLES.contains(&code);
            if let Some(code) = code.filter(is_code).filter(|code| !is_known(code)) {
                unknown.insert(format!("{code} in {}", path.display()));
            }
        }
    }
    assert_eq!(unknown, BTreeSet::new(), "explain does not know these");
}

#[test]
fn every_code_of_nested_mode_that_a_check_has_is_explained_by_it() {
    let all = all();
    for code in ["OSDN3060", "OSDN3068", "OSDN3069", "OSDN3070", "OSDN3071"] {
        let known = all.iter().find(|one| one.code == code).unwrap();
        let [meaning] = known.meanings.as_slice() else { panic!("{known:?}") };
        assert!(
            meaning.found_by == Finder::Check && !meaning.title.contains("OSDN"),
            "{meaning:?}"
        );
    }
    let of_verify = all.iter().find(|one| one.code == "OSDN3067").unwrap();
    assert_eq!(of_verify.meanings.len(), 1, "nested verify explains it");
}

#[test]
fn every_code_has_a_title_a_reason_and_a_remedy() {
    for Explanation { code, meanings } in all() {
        let mut words = words::meanings().chain(cluster_checks::meanings());
        let word = words.any(|(word, _)| word == code);
        assert!(word || code_of(&code) == Some(code.as_str()), "{code}");
        assert!(!meanings.is_empty(), "{code}");
        for meaning in meanings {
            let texts = [&meaning.title, &meaning.why, &meaning.remedy];
            assert!(texts.iter().all(|text| !text.is_empty()), "{code}: {meaning:?}");
        }
    }
}

#[test]
fn codes_are_found_as_people_write_them() {
    for text in ["1201", "osdn1201", "OSDN-1201", "[OSDN1201]", " OSDN1201"] {
        assert_eq!(normalized(text), "OSDN1201", "{text}");
    }
    for text in ["schema-type", "Schema_Type", "[schema-type]"] {
        assert_eq!(normalized(text), "schema-type", "{text}");
    }
}

#[test]
fn the_nearest_codes_come_first() {
    let known = |code: &str| Explanation { code: code.to_owned(), meanings: Vec::new() };
    let all = [known("OSDN1201"), known("OSDN1202"), known("OSDN4014")];
    assert_eq!(nearest("OSDN1203", &all), ["OSDN1201", "OSDN1202"]);
    assert!(nearest("OSDN9999", &all).is_empty());
}

#[test]
fn distances_are_those_of_levenshtein() {
    for (one, other, expected) in [("", "abc", 3), ("kitten", "sitting", 3), ("same", "same", 0)] {
        assert_eq!(distance(one, other), expected, "{one} {other}");
        assert_eq!(distance(other, one), expected, "{other} {one}");
    }
}

/// Policies and checks have theirs on pages of their own.
fn evidence() -> String {
    let mut page = "<!-- Generated: UPDATE=1 cargo test -p kubectl-opensdn the_page_of_evidence_is_current -->\n\n\
        # What codes are based on\n\n\
        What shows that a rule is right, of the codes that are no policy's: rules of the schemas, plans and verification of \
        nested clusters, upgrades, `validate` and AdmissionPolicies. Of a policy it stands on the policy's page, of a check \
        on that of [the checks](checks.md). The same, one by one and with the reason: `kubectl opensdn explain CODE`.\n\n\
        | code | what is wrong | what shows it |\n| --- | --- | --- |\n"
        .to_owned();
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    for explanation in all() {
        let own = |meaning: &&Meaning| !matches!(meaning.found_by, Finder::Policy | Finder::Check);
        for meaning in explanation.meanings.iter().filter(own) {
            let (code, title) = (&explanation.code, cell(&meaning.title));
            let sources = cell(&meaning.sources.join("; "));
            page.push_str(&format!("| {code} | {title} | {sources} |\n"));
        }
    }
    page
}

#[test]
fn the_page_of_evidence_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/reference/evidence.md");
    let expected = evidence();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &expected).unwrap();
    }
    let current = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        current == expected,
        "UPDATE=1 cargo test -p kubectl-opensdn the_page_of_evidence_is_current"
    );
    assert!(!expected.contains(" |  |"), "each code has something that shows it");
}
