//! A policy on a developer's machine: loaded into an engine that counts, with the limits of the
//! flags or of the project. Deliberately not here: which requests it judges.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use opensdn_policy_host::{Limits, Meter, Metering, Policy};
use opensdn_validate::ModuleError;

use super::module_info::ModuleInfo;
use super::project::{ProjectFile, ProjectLimits};
use super::reference::Module;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::runtime::Runtime;
use crate::ui::Ui;

/// A policy and what it runs in.
pub(crate) struct DevPolicy {
    runtime: Runtime,
    pub(crate) policy: Policy,
}

impl DevPolicy {
    /// Compiles the module, or takes what the cache has of it.
    ///
    /// # Errors
    /// It is no policy, has another version than asked for, or the engine does not start.
    pub(crate) fn start(
        global: &Global,
        ui: &mut Ui,
        module: &Module,
        metering: Metering,
    ) -> Result<Self, Failure> {
        let runtime = Runtime::start(global)?.metered(metering);
        if let Some(reason) = runtime.uncached() {
            ui.warn(reason);
        }
        let policy = load(&runtime, module)?;
        Ok(Self { runtime, policy })
    }

    /// Runs the future to its end.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Where the engine counts.
    ///
    /// # Errors
    /// The engine does not start.
    pub(crate) fn meter(&self) -> Result<Meter, Failure> {
        Ok(self.runtime.engine()?.meter().clone())
    }
}

/// The policy of the module.
///
/// # Errors
/// It is no policy, has another version than asked for, or the engine does not start.
pub(crate) fn load(runtime: &Runtime, module: &Module) -> Result<Policy, Failure> {
    let policy =
        runtime.load(&module.bytes, None)?.map_err(|error| refusal(runtime, module, &error))?;
    let has = &policy.metadata().version;
    match &module.version {
        Some(wanted) if wanted != has => {
            let message = format!("{} has the version {has}, not {wanted}", module.origin);
            let hint = "leave the version out, or use the release of this program that has it";
            Err(Failure::new(Exit::Usage, "other-version", message, hint))
        }
        _ => Ok(policy),
    }
}

/// Why the module is not used.
fn refusal(runtime: &Runtime, module: &Module, error: &ModuleError) -> Failure {
    let message = format!("{} is not a policy that can be used", module.origin);
    let hint = format!(
        "what it is and what it lacks: kubectl opensdn policy inspect {}",
        match module.built_in() {
            Some(name) => name.to_owned(),
            None => module.origin.to_string(),
        }
    );
    if let Some(hint) = error.hint() {
        return Failure::new(Exit::Usage, error.fault(), message, hint).because(error);
    }
    let failure = Failure::new(Exit::Usage, error.fault(), message, hint);
    // What the bytes show is clearer than what the compiler says of them.
    let info = runtime.block_on(ModuleInfo::by_process(runtime.process(), &module.bytes));
    match info.problems {
        problems if problems.is_empty() => failure.because(error),
        problems => Failure { causes: problems, ..failure },
    }
}

/// The limits of one evaluation.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct LimitFlags {
    /// Memory of one evaluation, 1 to 256 MiB [default: the project's, else 16].
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) memory_limit: Option<u32>,
    /// Time of one evaluation, 1 to 1000 ms [default: the project's, else 50].
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) time_limit: Option<u32>,
}

impl LimitFlags {
    /// The flags, else what the project in this folder says.
    ///
    /// # Errors
    /// The project file cannot be understood.
    pub(crate) fn or_of_project(self, folder: &Path) -> Result<Self, Failure> {
        let Some(project) = ProjectFile::find(folder)? else { return Ok(self) };
        let ProjectLimits { timeout_milliseconds, memory_mebibytes } = project.limits;
        Ok(Self {
            memory_limit: self.memory_limit.or(memory_mebibytes),
            time_limit: self.time_limit.or(timeout_milliseconds),
        })
    }

    /// The limits, with the webhook's defaults for what is unset.
    pub(crate) fn limits(self) -> Limits {
        let default = Limits::default();
        let memory = self.memory_limit.and_then(|mebibytes| usize::try_from(mebibytes).ok());
        Limits {
            memory: memory.map_or(default.memory, |mebibytes| mebibytes << 20),
            time: self
                .time_limit
                .map_or(default.time, |time| Duration::from_millis(u64::from(time))),
            ..default
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::LimitFlags;

    #[test]
    fn a_flag_wins_over_the_project_and_that_over_the_default() {
        let project = tempfile::tempdir().unwrap();
        let text =
            "name: p\nlanguage: c\nlimits: {memoryMebibytes: 32, timeoutMilliseconds: 200}\n";
        std::fs::write(project.path().join("opensdn-policy.yaml"), text).unwrap();
        let flags = LimitFlags { memory_limit: Some(64), time_limit: None };
        let limits = flags.or_of_project(project.path()).unwrap().limits();
        assert_eq!((limits.memory, limits.time), (64 << 20, Duration::from_millis(200)));
        let limits = LimitFlags::default().limits();
        assert_eq!((limits.memory, limits.time), (16 << 20, Duration::from_millis(50)));
    }
}
