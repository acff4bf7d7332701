//! `policy manifest`: the objects that put a policy in force.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use opensdn_crds::admission_policy::{
    AdmissionPolicySpec, Exemptions, FailureMode, KindRule, LabelSelector, Limits, Mode, Operation,
};
use opensdn_deploy::names::NAMESPACE;
use serde_json::{Value, json};

use super::run::settings;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::policy::dev_policy::{LimitFlags, load};
use crate::policy::installation::{Installation, Target};
use crate::policy::reference::Module;
use crate::policy::selector;
use crate::runtime::Runtime;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # Try a policy in the cluster without refusing anything
  kubectl opensdn policy manifest --mode audit | kubectl apply --server-side -f -

  # A built-in policy with settings, where a label says so
  kubectl opensdn policy manifest even-quorum --settings settings.yaml \\
    --namespace-selector judged=yes";

/// Arguments of `policy manifest`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Manifest {
    /// The policy: a file, a built-in policy's name[@version] or sha256:PREFIX [default: the
    /// component in build/].
    #[arg(value_name = "POLICY", add = crate::completion::policies())]
    policy: Option<String>,
    /// Name of the AdmissionPolicy [default: the policy's name].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// What a denial does.
    #[arg(long, value_enum, default_value_t, value_name = "MODE")]
    mode: ModeFlag,
    /// What becomes of a request that the policy cannot judge [default: fail for the kinds of
    /// OpenSDN, ignore for others].
    #[arg(long, value_enum, value_name = "MODE")]
    failure_mode: Option<FailureModeFlag>,
    /// Settings of the policy (YAML or JSON).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    settings: Option<PathBuf>,
    /// Only these kinds, as GROUP/KIND or GROUP/VERSION/KIND; KIND alone is of the core group.
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kind)]
    kinds: Vec<KindRule>,
    /// Only objects of namespaces with these labels, such as judged=yes.
    #[arg(long, value_name = "LABELS", value_parser = selector::parse)]
    namespace_selector: Option<LabelSelector>,
    /// Only objects with these labels.
    #[arg(long, value_name = "LABELS", value_parser = selector::parse)]
    object_selector: Option<LabelSelector>,
    /// Do not judge what this user does (repeatable).
    #[arg(long, value_name = "NAME")]
    exempt_user: Vec<String>,
    /// Do not judge what members of this group do (repeatable).
    #[arg(long, value_name = "NAME")]
    exempt_group: Vec<String>,
    /// Do not judge objects of this namespace (repeatable).
    #[arg(long, value_name = "NAME")]
    exempt_namespace: Vec<String>,
    /// Namespace of the webhook: the ConfigMap with the module is there, and the service account
    /// that may read what the policy looks up.
    #[arg(long, value_name = "NAME", env = "OPENSDN_NAMESPACE", default_value = NAMESPACE)]
    control_namespace: String,
    /// The module lies at this path below the webhook's folder of policies: no ConfigMap.
    #[arg(long, value_name = "PATH")]
    folder: Option<String>,
    #[command(flatten)]
    limits: LimitFlags,
    /// How the objects are written [default: a YAML document for each].
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
}

/// How the objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A YAML document for each object.
    Yaml,
    /// One List.
    Json,
}

/// What a denial does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ModeFlag {
    /// It refuses the request.
    #[default]
    Enforce,
    /// It is a warning.
    Warn,
    /// It is recorded only.
    Audit,
}

/// What becomes of a request that the policy cannot judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailureModeFlag {
    /// It is refused.
    Fail,
    /// It passes with a warning.
    Ignore,
}

fn kind(text: &str) -> Result<KindRule, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let (group, version, kind) = match parts.as_slice() {
        [kind] => ("", None, *kind),
        [group, kind] => (*group, None, *kind),
        [group, version, kind] => (*group, Some((*version).to_owned()), *kind),
        _ => return Err("write GROUP/KIND or GROUP/VERSION/KIND".to_owned()),
    };
    if !kind.starts_with(|first: char| first.is_ascii_uppercase()) {
        return Err(format!("{kind:?} is no kind: kinds begin with a capital letter"));
    }
    let operations = vec![Operation::Create, Operation::Update];
    Ok(KindRule { group: group.to_owned(), version, kind: kind.to_owned(), operations })
}

impl Manifest {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let module = Module::find(self.policy.as_deref())?;
        let policy = load(&Runtime::start(global)?, &module)?;
        let name = self.name.clone().unwrap_or_else(|| policy.metadata().name.clone());
        let place = match &self.folder {
            Some(path) => Target::Folder(path.clone()),
            None => Target::ConfigMap,
        };
        let namespace = &self.control_namespace;
        let installation =
            Installation::new(&name, &module, &policy, &place, namespace, self.spec()?)?;
        match self.output {
            None | Some(Format::Yaml) => ui.write(|out| yaml(&installation.objects, out))?,
            Some(Format::Json) => ui.write(|out| json(&installation.objects, out))?,
        }
        if let (Some(path), None) = (&self.folder, module.built_in()) {
            ui.hint(&format!("before you apply it, copy the module to {path} in the folder that the webhook's --policy-folder names, for every replica; until it is there the policy judges nothing"));
        }
        if installation.server_side {
            ui.hint("apply it with kubectl apply --server-side -f -, for the module is too large for an annotation");
        }
        if !installation.readable.is_empty() {
            let readable = installation.readable.join(", ");
            ui.hint(&format!("a ClusterRole lets the webhook read {readable}, which the policy needs; see that the names are those of `kubectl api-resources`"));
        }
        Ok(Exit::Done)
    }

    fn spec(&self) -> Result<AdmissionPolicySpec, Failure> {
        let list = |names: &[String]| Some(names.to_vec()).filter(|names| !names.is_empty());
        let exemptions = Exemptions {
            users: list(&self.exempt_user),
            groups: list(&self.exempt_group),
            namespaces: list(&self.exempt_namespace),
        };
        let limits = self.limits.or_of_project(Path::new("."))?;
        let limits = Limits {
            timeout_milliseconds: limits.time_limit.map(i64::from),
            memory_mebibytes: limits.memory_limit.map(i64::from),
        };
        Ok(AdmissionPolicySpec {
            kinds: Some(self.kinds.clone()).filter(|kinds| !kinds.is_empty()),
            settings: self.settings()?,
            mode: match self.mode {
                ModeFlag::Enforce => Mode::Enforce,
                ModeFlag::Warn => Mode::Warn,
                ModeFlag::Audit => Mode::Audit,
            },
            failure_mode: self.failure_mode.map(|mode| match mode {
                FailureModeFlag::Fail => FailureMode::Fail,
                FailureModeFlag::Ignore => FailureMode::Ignore,
            }),
            namespace_selector: self.namespace_selector.clone(),
            object_selector: self.object_selector.clone(),
            exemptions: Some(exemptions).filter(|some| *some != Exemptions::default()),
            limits: Some(limits).filter(|some| *some != Limits::default()),
            ..AdmissionPolicySpec::default()
        })
    }

    fn settings(&self) -> Result<Option<serde_json::Map<String, Value>>, Failure> {
        let Some(path) = &self.settings else { return Ok(None) };
        match settings(Some(path))? {
            Value::Object(settings) => Ok(Some(settings)),
            _ => {
                let message = format!("{} does not hold settings", path.display());
                let hint = "write names and values: `name: value`";
                Err(Failure::new(Exit::Usage, "bad-settings", message, hint))
            }
        }
    }
}

fn yaml(objects: &[Value], out: &mut dyn Write) -> io::Result<()> {
    for (number, object) in objects.iter().enumerate() {
        if number > 0 {
            writeln!(out, "---")?;
        }
        let text = serde_saphyr::to_string(object).map_err(io::Error::other)?;
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

fn json(objects: &[Value], out: &mut dyn Write) -> io::Result<()> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    serde_json::to_writer_pretty(&mut *out, &list)?;
    writeln!(out)
}
