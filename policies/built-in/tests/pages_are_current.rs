//! The book's pages about policies, and its list of codes, are generated from what the policies say
//! of themselves and from their cases.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use opensdn_policy_host::{
    Engine, Finding, Message, Metadata, Operation, Policy, Severity, Step,
    cases::{self, Case},
};
use serde_json::Value;

const GENERATED: &str =
    "<!-- Generated: UPDATE=1 cargo test -p opensdn-policies pages_are_current -->";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A case that shows a code: what is stored, what is requested, and what is found.
struct Example {
    stored: Option<Value>,
    object: Option<Value>,
    settings: Value,
    finding: Finding,
}

/// A policy, and one example a code.
struct Page {
    about: Metadata,
    examples: BTreeMap<String, Example>,
}

impl Page {
    async fn of(engine: &Engine, name: &str, bytes: &[u8]) -> Self {
        let policy = Policy::load(engine, bytes, None, crate::compiled().as_ref()).await.unwrap();
        let mut examples = BTreeMap::new();
        let cases = std::fs::read_dir(root().join("policies").join(name).join("cases")).unwrap();
        let mut files: Vec<PathBuf> = cases.map(|entry| entry.unwrap().path()).collect();
        // The shortest case that gives a code shows it best: of an object, of a change, of a deletion.
        files.sort_by_key(|file| (file.metadata().unwrap().len(), file.clone()));
        let mut read: Vec<Case> = files
            .iter()
            .map(|file| serde_saphyr::from_str(&std::fs::read_to_string(file).unwrap()).unwrap())
            .collect();
        read.sort_by_key(|case| (case.object.is_none(), case.old_object.is_some()));
        for case in read {
            let report = cases::run(&policy, &case).await.unwrap();
            for finding in report.verdict.findings {
                examples.entry(finding.code.clone()).or_insert_with(|| Example {
                    stored: case.old_object.clone(),
                    object: case.object.clone(),
                    settings: case.settings.clone(),
                    finding,
                });
            }
        }
        Self { about: policy.metadata().clone(), examples }
    }

    fn text(&self) -> String {
        let Self { about, .. } = self;
        let mut text = format!("{GENERATED}\n\n# {}\n\n{}.\n\n", about.name, about.summary);
        self.nature(&mut text);
        for message in &about.messages {
            self.code(&mut text, message);
        }
        settings(&mut text, &about.settings_schema);
        self.install(&mut text);
        text
    }

    fn nature(&self, text: &mut String) {
        let Self { about, .. } = self;
        text.push_str("| | |\n| --- | --- |\n");
        let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for interest in &about.interests {
            let kind = if interest.kind == "*" { "every kind" } else { &interest.kind };
            kinds.entry(kind).or_default().extend(interest.operations.iter().map(operation));
        }
        for (kind, mut operations) in kinds {
            operations.sort_unstable();
            operations.dedup();
            writeln!(text, "| judges | {kind}: {} |", operations.join(", ")).unwrap();
        }
        if about.has(Step::Mutate) {
            text.push_str("| changes objects | yes; what it writes is the patch of its cases |\n");
        }
        if about.claims {
            text.push_str(
                "| claims | what must be unique, so that it holds under concurrent writes |\n",
            );
        }
        for index in &about.indexes {
            let group = if index.group.is_empty() { "core" } else { &index.group };
            writeln!(text, "| looks up | {} ({group}) by `{}` |", index.kind, index.key).unwrap();
        }
    }

    fn code(&self, text: &mut String, message: &Message) {
        let severity = severity(message.severity);
        writeln!(text, "\n## {}: {}\n", message.code, message.title).unwrap();
        writeln!(text, "*{severity}* · {}\n", message.explanation).unwrap();
        writeln!(text, "**What to do:** {}", message.hint).unwrap();
        let sources = opensdn_policies::sources(&self.about.name, &message.code);
        let sources: Vec<_> = sources.iter().map(|source| link(source)).collect();
        writeln!(text, "\n**Where it is shown:** {}", sources.join(", ")).unwrap();
        let Some(example) = self.examples.get(&message.code) else { return };
        let at = if example.finding.pointer.is_empty() {
            "the object"
        } else {
            &example.finding.pointer
        };
        let titles = match (&example.stored, &example.object) {
            (Some(_), Some(_)) => ["\nStored:\n", "\nChanged to:\n"],
            (Some(_), None) => ["\nDeleted:\n", ""],
            (None, _) => ["", ""],
        };
        for (title, object) in titles.into_iter().zip([&example.stored, &example.object]) {
            let Some(object) = object else { continue };
            let yaml = serde_saphyr::to_string(object).unwrap();
            writeln!(text, "{title}\n```yaml\n{}\n```", yaml.trim_end()).unwrap();
        }
        text.push('\n');
        if example.settings.as_object().is_some_and(|settings| !settings.is_empty()) {
            writeln!(text, "With the settings `{}`:\n", example.settings).unwrap();
        }
        writeln!(text, "> `{at}`: {}", example.finding.message.replace('\n', " ")).unwrap();
    }

    fn install(&self, text: &mut String) {
        let name = &self.about.name;
        writeln!(
            text,
            "\n## In force\n\nIt is part of `deploy/webhook`. To put it in force by itself, or in \
             another mode, see [Rolling a policy out](../rollout.md):\n\n```yaml\napiVersion: \
             opensdn.io/v1alpha1\nkind: AdmissionPolicy\nmetadata:\n  name: {name}\nspec:\n  \
             module:\n    builtIn: {name}\n  mode: audit\n```"
        )
        .unwrap();
    }
}

fn operation(operation: &Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
        Operation::Connect => "connect",
    }
}

/// A source with the address at which it can be read; lines are those of these commits.
fn link(source: &str) -> String {
    const COMMITS: [(&str, &str); 4] = [
        ("tf-container-builder", "701b232"),
        ("tf-controller", "fbb63bc"),
        ("tf-operator", "8786770"),
        ("tf-vrouter", "e6e94a6"),
    ];
    let (repository, place) = source.split_once(' ').unwrap();
    let commit = COMMITS.iter().find(|(name, _)| *name == repository);
    let Some((_, commit)) = commit else { return format!("`{place}`") };
    let (path, lines) = place.split_once(':').unwrap_or((place, ""));
    let lines = lines.replace('-', "-L");
    let address =
        format!("https://github.com/OpenSDN-io/{repository}/blob/{commit}/{path}#L{lines}");
    format!("[{repository} `{place}`]({address})")
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Deny => "deny",
        Severity::Warn => "warn",
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn settings(text: &mut String, schema: &Value) {
    let Some(settings) = schema.get("properties").and_then(Value::as_object) else { return };
    if settings.is_empty() {
        return;
    }
    text.push_str("\n## Settings\n\nIn `spec.settings` of its AdmissionPolicy.\n\n");
    text.push_str("| setting | meaning | default |\n| --- | --- | --- |\n");
    for (name, schema) in settings {
        let default = schema.get("default").map(ToString::to_string).unwrap_or_default();
        let default = if default.is_empty() { "–".to_owned() } else { format!("`{default}`") };
        let meaning = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        writeln!(text, "| `{name}` | {} | {default} |", cell(meaning)).unwrap();
    }
}

fn list_of_policies(pages: &[Page]) -> String {
    let mut text = format!(
        "{GENERATED}\n\n# The policies\n\nWhat the webhook judges by, and `kubectl opensdn \
         validate` too: the same modules.\n\n| policy | what it is about |\n| --- | --- |\n"
    );
    for Page { about, .. } in pages {
        writeln!(text, "| [{0}](policies/{0}.md) | {1} |", about.name, cell(&about.summary))
            .unwrap();
    }
    text
}

fn list_of_codes(pages: &[Page]) -> String {
    let mut codes: BTreeMap<&str, (&Metadata, &Message)> = BTreeMap::new();
    for Page { about, .. } in pages {
        codes
            .extend(about.messages.iter().map(|message| (message.code.as_str(), (about, message))));
    }
    let mut text = format!(
        "{GENERATED}\n\n# Codes of the policies\n\nThe same, offline and one by one: \
         `kubectl opensdn explain CODE`. The rules that the API server itself checks, from the \
         schemas and CEL, are in \
         [crds/RULES.md](https://github.com/opensdn-io/kubectl-opensdn/blob/main/crds/RULES.md).\n\n\
         | code | severity | what is wrong | policy |\n| --- | --- | --- | --- |\n"
    );
    for (code, (about, message)) in codes {
        let anchor = heading_anchor(&format!("{code}: {}", message.title));
        let (severity, title) = (severity(message.severity), cell(&message.title));
        writeln!(
            text,
            "| [{code}](../policies/{0}.md#{anchor}) | {severity} | {title} | {0} |",
            about.name
        )
        .unwrap();
    }
    text
}

/// As mdBook makes it.
fn heading_anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|one| match one {
        ' ' | '-' => Some('-'),
        '_' => Some('_'),
        one if one.is_alphanumeric() => Some(one.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pages_of_policies_are_current() {
    let engine = Engine::start(4).unwrap();
    let mut pages = Vec::new();
    for built_in in opensdn_policies::ALL {
        pages.push(Page::of(&engine, built_in.name, built_in.bytes).await);
    }
    let mut files = vec![
        ("policies.md".to_owned(), list_of_policies(&pages)),
        ("reference/codes.md".to_owned(), list_of_codes(&pages)),
    ];
    files
        .extend(pages.iter().map(|page| (format!("policies/{}.md", page.about.name), page.text())));
    for (name, expected) in files {
        let file = root().join("docs/src").join(&name);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, &expected).unwrap();
        }
        let current = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            current == expected,
            "docs/src/{name} is not current: UPDATE=1 cargo test -p opensdn-policies pages_are_current"
        );
    }
}
