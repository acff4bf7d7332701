//! From the files of `-f`, `--set` and `--profile` to one set of values. A later file wins over an earlier one, `--profile`
//! over files, and `--set` over all. What the values mean for the objects is `opensdn-deploy`'s.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use opensdn_deploy::{RenderError, Step, Values};
use serde_json::{Map, Value, json};

use super::typed;
use crate::exit::{Exit, Failure};
use crate::output::{API_VERSION, Answer};
use crate::policy::objects::mapping;

impl Answer for Values {
    const KIND: &'static str = "Values";
}

/// What is installed, as the command line says it.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ValuesArgs {
    /// A file with values (YAML or JSON, - for standard input); later ones win. Which there are: kubectl opensdn
    /// explain --schema Values.
    #[arg(short = 'f', long = "values", value_name = "FILE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// What has been read of standard input already, which cannot be read again.
    #[arg(skip)]
    read: Option<(PathBuf, Value)>,
    /// One value, such as webhook.replicas=5; lists are separated by commas.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// How many replicas there are, and how they are spread.
    #[arg(long, value_enum, value_name = "NAME")]
    profile: Option<Profile>,
}

/// Profiles by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// Three replicas of the webhook, two of the operator; they share a node where there are too few.
    Default,
    /// The same, and no two replicas of the webhook on one node.
    Ha,
    /// One of each.
    SingleNode,
}

/// The paths of values that an installation has and a command line does not say, so that they become defaults again.
pub(crate) fn forgotten(before: &Values, given: &Values) -> Vec<String> {
    let as_json = |values: &Values| serde_json::to_value(values).unwrap_or_default();
    let (before, given, default) = (as_json(before), as_json(given), as_json(&Values::default()));
    let mut paths = Vec::new();
    collect(&before, &given, &default, String::new(), &mut paths);
    paths
}

fn collect(before: &Value, given: &Value, default: &Value, path: String, paths: &mut Vec<String>) {
    match before.as_object() {
        Some(fields) => {
            for (name, value) in fields {
                let of = |other: &Value| other.get(name).cloned().unwrap_or_default();
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                collect(value, &of(given), &of(default), below, paths);
            }
        }
        None if before != given && given == default => paths.push(path),
        None => {}
    }
}

impl ValuesArgs {
    /// Those of a command whose `-f` means more than values.
    pub(crate) fn without_files(set: Vec<String>, profile: Option<Profile>) -> Self {
        Self { set, profile, ..Self::default() }
    }

    /// Whether the command line says anything of values.
    pub(crate) fn are_given(&self) -> bool {
        !self.files.is_empty() || self.are_set()
    }

    /// The files, as they are named.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Whether values are given otherwise than by files.
    pub(crate) fn are_set(&self) -> bool {
        !self.set.is_empty() || self.profile.is_some()
    }

    /// The same, of which one file has been read.
    pub(crate) fn knowing(&self, read: Option<(PathBuf, Value)>) -> Self {
        Self { read, ..self.clone() }
    }

    /// The values. Without one of its own the namespace of the webhook is `namespace`.
    ///
    /// # Errors
    /// A file cannot be read, or something in it, or in `--set`, is no value; all of it at once.
    pub(crate) fn read(&self, namespace: &str) -> Result<Values, Failure> {
        let contents = self.files.iter().map(|file| {
            let content = match &self.read {
                Some((read, content)) if read == file => content.clone(),
                _ => mapping(file)?,
            };
            Ok((file.clone(), content))
        });
        let contents = contents.collect::<Result<Vec<_>, Failure>>()?;
        self.with(contents, namespace)
    }

    /// The same with what was read of files, in the place of those that are named.
    ///
    /// # Errors
    /// As of [`Self::read`].
    pub(crate) fn with(
        &self,
        contents: Vec<(PathBuf, Value)>,
        namespace: &str,
    ) -> Result<Values, Failure> {
        let schema = typed::schema();
        let (mut merged, mut problems) = (json!({"namespace": namespace}), Vec::new());
        for (file, content) in contents {
            let content = without_envelope(content).map_err(|problem| {
                Failure::new(
                    Exit::Usage,
                    "invalid-values",
                    format!("{}: {problem}", file.display()),
                    SCHEMA,
                )
            })?;
            let found = typed::problems(&content, &schema).into_iter();
            problems.extend(found.map(|problem| format!("{}: {problem}", file.display())));
            merge(&mut merged, content);
        }
        if let Some(profile) = self.profile.and_then(|profile| profile.to_possible_value()) {
            merge(&mut merged, json!({"profile": profile.get_name()}));
        }
        for assignment in &self.set {
            problems.extend(typed::set(&mut merged, assignment, &schema).err());
        }
        if !problems.is_empty() {
            return Err(invalid(problems));
        }
        checked(merged)
    }
}

const SCHEMA: &str = "which values there are: kubectl opensdn explain --schema Values";

/// The values as their type, and without problems.
///
/// # Errors
/// They are none.
pub(crate) fn checked(values: Value) -> Result<Values, Failure> {
    let values: Values =
        serde_json::from_value(values).map_err(|error| invalid(vec![error.to_string()]))?;
    let problems: Vec<String> = values.problems().iter().map(ToString::to_string).collect();
    if problems.is_empty() { Ok(values) } else { Err(invalid(problems)) }
}

fn invalid(problems: Vec<String>) -> Failure {
    let mut failure =
        Failure::new(Exit::Usage, "invalid-values", "the values cannot be installed", SCHEMA);
    failure.causes = problems;
    failure
}

/// A file may say what it is, as what we print does.
fn without_envelope(mut content: Value) -> Result<Value, String> {
    let Value::Object(fields) = &mut content else { return Ok(content) };
    for (key, expected) in [("apiVersion", API_VERSION), ("kind", Values::KIND)] {
        if fields.remove(key).is_some_and(|stated| stated != expected) {
            return Err(format!("{key} must be {expected}, or left out"));
        }
    }
    Ok(content)
}

/// Mappings are merged; everything else takes the place of what was there.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert_with(|| Value::Object(Map::new())), value);
            }
        }
        // A key without a value says nothing.
        (_, Value::Null) => {}
        (into, from) => *into = from,
    }
}

/// The objects of an installation with these values.
///
/// # Errors
/// A manifest of ours is broken.
pub(crate) fn steps(values: &Values) -> Result<Vec<Step>, Failure> {
    opensdn_deploy::render(values).map_err(|error| broken(&error))
}

/// A manifest of ours is not what it should be.
pub(crate) fn broken(error: &RenderError) -> Failure {
    let hint = "this is a defect of kubectl-opensdn: report it";
    Failure::new(Exit::Usage, "render", "the manifests cannot be rendered", hint).because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_a_command_line_no_longer_says_are_named() {
        let of = |set: &[&str]| {
            let set = set.iter().map(|one| (*one).to_owned()).collect();
            ValuesArgs { set, ..ValuesArgs::default() }.read("opensdn-system").unwrap()
        };
        let before =
            of(&["registry=r.example.com", "webhook.replicas=5", "operator.watchedNamespaces=a"]);
        let given = of(&["webhook.replicas=7"]);
        assert_eq!(forgotten(&before, &given), ["operator.watchedNamespaces", "registry"]);
        assert_eq!(forgotten(&given, &before), Vec::<String>::new());
    }

    #[test]
    fn later_files_win_over_earlier_ones_and_set_wins_over_all() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let values = ValuesArgs {
            files: vec![
                file(
                    "a.yaml",
                    "apiVersion: cli.opensdn.io/v1\nkind: Values\nwebhook: {replicas: 4, logLevel: debug}\n",
                ),
                file("b.yaml", "webhook: {replicas: 5}\nnamespace: mine\n"),
            ],
            set: vec!["webhook.configurationReplicas=1".to_owned()],
            profile: Some(Profile::Ha),
            read: None,
        };
        let values = values.read("opensdn-system").unwrap();
        assert_eq!(values.namespace, "mine");
        assert_eq!(values.profile, opensdn_deploy::values::Profile::Ha);
        assert_eq!(values.webhook.replicas, Some(5));
        assert_eq!(values.webhook.configuration_replicas, Some(1));
        assert_eq!(values.webhook.log_level, Some(opensdn_deploy::values::LogLevel::Debug));
    }

    #[test]
    fn every_problem_is_reported_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        std::fs::write(&path, "webhok: {}\nprofile: huge\n").unwrap();
        let args =
            ValuesArgs { files: vec![path], set: vec!["x=1".to_owned()], ..ValuesArgs::default() };
        let failure = args.read("opensdn-system").unwrap_err();
        assert_eq!((failure.exit, failure.causes.len()), (Exit::Usage, 3), "{failure:?}");
        assert!(failure.causes.iter().any(|cause| cause.contains("a.yaml: webhok")), "{failure:?}");
    }
}
