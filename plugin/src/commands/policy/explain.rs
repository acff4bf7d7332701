//! `policy explain`: why a policy says what it says, an example, and what to do; offline.

use std::io::{self, Write};

use clap::Args;
use opensdn_policy_host::cases::Case;
use opensdn_policy_host::{Message, Policy};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output::{Answer, Output};
use crate::policy::answer::{Identity, severity};
use crate::policy::case_files::{self, CaseFile};
use crate::policy::dev_policy::load;
use crate::policy::reference::Module;
use crate::runtime::Runtime;
use crate::ui::{Ui, wrap};

const EXAMPLES: &str = "\
Examples:
  # Everything that a policy can say
  kubectl opensdn policy explain even-quorum

  # One code of a built-in policy
  kubectl opensdn policy explain OSDN1205";

/// Arguments of `policy explain`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    /// A code of a built-in policy; or a policy: a file, a built-in policy's name[@version] or
    /// sha256:PREFIX [default: the component in build/].
    #[arg(value_name = "POLICY|CODE")]
    subject: Option<String>,
    #[command(flatten)]
    _output: Output,
}

/// What `policy explain` answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PolicyExplanation {
    /// The policy.
    policy: Identity,
    /// One line.
    summary: String,
    /// What it can say; only the one that was asked for.
    messages: Vec<Explanation>,
}

impl Answer for PolicyExplanation {
    const KIND: &'static str = "PolicyExplanation";
}

/// A message explained.
#[derive(Debug, Serialize, JsonSchema)]
struct Explanation {
    code: String,
    severity: &'static str,
    /// What is wrong.
    title: String,
    /// Why that is wrong.
    explanation: String,
    /// What to do.
    hint: String,
    /// An object that gives it.
    example: Option<Example>,
}

/// An object that gives the message.
#[derive(Debug, Serialize, JsonSchema)]
struct Example {
    /// The case that it is from.
    case: String,
    /// Why the case matters.
    description: String,
    /// The object as it would be.
    object: Value,
    /// Where it is wrong.
    pointer: String,
    /// What is said.
    message: String,
}

impl Explain {
    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let runtime = Runtime::start(global)?;
        let code = self.subject.as_deref().filter(|subject| is_code(subject));
        let (module, policy) = match code {
            Some(code) => of_code(&runtime, code)?,
            None => {
                let module = Module::find(self.subject.as_deref())?;
                let policy = load(&runtime, &module)?;
                (module, policy)
            }
        };
        let cases = case_files::find(&[], &module).unwrap_or_default();
        let messages = policy.metadata().messages.iter();
        let wanted = |message: &&Message| code.is_none_or(|code| message.code == code);
        let answer = PolicyExplanation {
            policy: Identity::of(&policy, &module),
            summary: policy.metadata().summary.clone(),
            messages: messages.filter(wanted).map(|one| explain(one, &cases)).collect(),
        };
        let width = ui.layout().width;
        ui.answer(&answer, |out| answer.write(width, out))?;
        Ok(Exit::Done)
    }
}

/// Capital letters and digits: no policy is named so, and no file ends so.
fn is_code(subject: &str) -> bool {
    let letters = subject.trim_end_matches(|last: char| last.is_ascii_digit());
    letters.len() < subject.len()
        && !letters.is_empty()
        && letters.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
}

fn of_code(runtime: &Runtime, code: &str) -> Result<(Module, Policy), Failure> {
    for built_in in opensdn_policies::ALL {
        let module = Module::find(Some(built_in.name))?;
        let policy = load(runtime, &module)?;
        if policy.message(code).is_some() {
            return Ok((module, policy));
        }
    }
    let message = format!("no built-in policy says {code}");
    let hint = format!(
        "codes of kinds too: kubectl opensdn explain {code}; of a policy of yours: name its file"
    );
    Err(Failure::new(Exit::Usage, "unknown-code", message, hint))
}

fn explain(message: &Message, cases: &[CaseFile]) -> Explanation {
    Explanation {
        code: message.code.clone(),
        severity: severity(message.severity),
        title: message.title.clone(),
        explanation: message.explanation.clone(),
        hint: message.hint.clone(),
        example: cases
            .iter()
            .filter_map(|file| example(&message.code, file, &file.case().ok()?))
            .min_by_key(|example| example.object.to_string().len()),
    }
}

/// The case as an example of the code, if nothing else is wrong in it.
fn example(code: &str, file: &CaseFile, case: &Case) -> Option<Example> {
    let [finding] = case.expect.findings.as_slice() else { return None };
    if finding.code != code {
        return None;
    }
    Some(Example {
        case: file.name.clone(),
        description: case.description.clone(),
        object: case.object.clone()?,
        pointer: finding.pointer.clone(),
        message: finding.message.clone(),
    })
}

impl PolicyExplanation {
    fn write(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        let Identity { name, version, .. } = &self.policy;
        writeln!(out, "{name} {version}: {}", self.summary)?;
        for message in &self.messages {
            message.write(width, out)?;
        }
        Ok(())
    }
}

impl Explanation {
    fn write(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\n{} ({}): {}", self.code, self.severity, self.title)?;
        let mut paragraph = |title: &str, text: &str| -> io::Result<()> {
            writeln!(out, "  {title}")?;
            for line in wrap(text, width.saturating_sub(4)) {
                writeln!(out, "    {line}")?;
            }
            Ok(())
        };
        paragraph("why", &self.explanation)?;
        paragraph("do", &self.hint)?;
        let Some(example) = &self.example else { return Ok(()) };
        writeln!(out, "  example, from {}", example.case)?;
        let object = serde_saphyr::to_string(&example.object).map_err(io::Error::other)?;
        for line in object.lines() {
            writeln!(out, "    {line}")?;
        }
        writeln!(out, "    # {}: {}", example.pointer, example.message)
    }
}

#[cfg(test)]
mod tests {
    use super::is_code;

    #[test]
    fn a_code_is_no_name_and_no_file() {
        assert!(is_code("OSDN1205") && is_code("TEAM-A-0001"));
        for other in ["even-quorum", "a.wasm", "OSDN", "1205", "sha256:12", "build/A1.wasm"] {
            assert!(!is_code(other), "{other}");
        }
    }
}
