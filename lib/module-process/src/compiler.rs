//! The compiler as a process of its own. A module is compiled there, asked what it is, and that is
//! checked, before anything of it is used by who asked: what a module does to the compiler it cannot do to
//! the webhook or the plugin. The system gets the memory back, and a module on which it crashes, or that
//! takes too much, costs a message.
//!
//! It writes the code to the cache folder; the exit code is the answer, standard error has the reason, and
//! standard output one word for it. Memory and processor time are limited by the process itself: were a
//! container's limit the first to hold, the kernel would end the webhook with its compiler, as all of a
//! container ends together (`memory.oom.group`).

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use opensdn_error_chain::error_chain;
use opensdn_policy_host::{Cache, Engine, LoadError, Metering, Policy, PrecompileError};

use crate::DEFAULT_MEBIBYTES;
use crate::limits::restrict;
use crate::process::{BoundedProcess, Ended, FULL, OUT_OF_MEMORY, REFUSED, UNAVAILABLE};

/// The argument that makes a program the compiler; the cache folder, the mebibytes of memory that it may
/// take, and what its code is to count follow.
const COMPILE: &str = "compile-module";
/// The code is to count what it executes.
const FUEL: &str = "fuel";

/// Compiles modules into a cache folder, each in a process of its own.
#[derive(Debug)]
pub struct Compiler {
    process: BoundedProcess,
    folder: PathBuf,
    metering: Metering,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Compiled {
    /// The cache has it.
    Done,
    /// The module is to blame, and would be again.
    Refused {
        /// One word for programs.
        fault: &'static str,
        /// In words.
        why: String,
    },
    /// It takes more memory than the compiler may have.
    OutOfMemory {
        /// How much that is.
        mebibytes: u64,
    },
    /// The machine is to blame; why.
    Interrupted(String),
    /// So is the disk.
    Full {
        /// Where there is no room.
        folder: PathBuf,
        /// What the system says.
        why: String,
    },
}

/// Why a module is refused that takes more memory than the compiler may have.
#[must_use]
pub fn out_of_memory(mebibytes: u64) -> String {
    format!(
        "memory ran out: to compile the module takes more than the {mebibytes} MiB of the compiler"
    )
}

impl Compiler {
    /// Compiles by `program`, which may take so many mebibytes of memory.
    #[must_use]
    pub fn new(program: PathBuf, cache: &Cache, mebibytes: u64) -> Self {
        Self::by(BoundedProcess::new(program, mebibytes), cache, Metering::Off)
    }

    /// Compiles by this process, for an engine that counts so.
    #[must_use]
    pub fn by(process: BoundedProcess, cache: &Cache, metering: Metering) -> Self {
        Self { process, folder: cache.folder().to_owned(), metering }
    }

    /// None where it was `over` before it ended: its process is gone then, and what it held with it.
    pub async fn compile(&self, module: &[u8], over: impl Future<Output = ()>) -> Option<Compiled> {
        let mebibytes = self.process.mebibytes();
        let mut arguments: Vec<OsString> =
            vec![COMPILE.into(), self.folder.clone().into(), mebibytes.to_string().into()];
        if self.metering == Metering::Fuel {
            arguments.push(FUEL.into());
        }
        let ended = self.process.run(&arguments, module, over).await?;
        let died_of = ended.died_of();
        Some(match ended {
            Ended::Done(_) => Compiled::Done,
            Ended::Refused(fault, why) => Compiled::Refused { fault: known_fault(&fault), why },
            Ended::OutOfMemory => Compiled::OutOfMemory { mebibytes },
            Ended::OutOfTime => Compiled::Refused {
                fault: "takes-too-long",
                why: format!("to compile the module {}", died_of.unwrap_or_default()),
            },
            Ended::Crashed(how) => Compiled::Refused { fault: "crashes-the-compiler", why: how },
            Ended::Full(why) => Compiled::Full { folder: self.folder.clone(), why },
            Ended::Interrupted(why) => Compiled::Interrupted(why),
        })
    }
}

const FAULTS: [&str; 5] = [
    "not-a-component",
    "forbidden-import",
    "wrong-world",
    "cannot-describe-itself",
    "wrong-description",
];

fn known_fault(word: &[u8]) -> &'static str {
    FAULTS.into_iter().find(|fault| fault.as_bytes() == word).unwrap_or("not-a-policy")
}

/// One word for programs.
#[must_use]
pub fn fault(error: &LoadError) -> &'static str {
    match error {
        LoadError::Digest { .. } => "digest-mismatch",
        LoadError::Compile(_) => "not-a-component",
        LoadError::Import(_) => "forbidden-import",
        LoadError::World(_) => "wrong-world",
        LoadError::Describe(_) => "cannot-describe-itself",
        LoadError::Metadata(_) => "wrong-description",
    }
}

/// What this process is to do if it is to be the compiler.
#[derive(Debug, PartialEq, Eq)]
pub struct CompileRequest {
    folder: PathBuf,
    mebibytes: u64,
    metering: Metering,
}

/// The request, if this process is to be the compiler.
pub fn compile_request(arguments: impl IntoIterator<Item = OsString>) -> Option<CompileRequest> {
    let mut arguments = arguments.into_iter().skip(1);
    let is_compiler = arguments.next()? == COMPILE;
    let folder = arguments.next().filter(|_| is_compiler).map(PathBuf::from)?;
    let mebibytes = arguments.next().and_then(|text| text.to_str()?.parse().ok());
    let counts = arguments.next().is_some_and(|text| text == FUEL);
    Some(CompileRequest {
        folder,
        mebibytes: mebibytes.unwrap_or(DEFAULT_MEBIBYTES),
        metering: if counts { Metering::Fuel } else { Metering::Off },
    })
}

/// The compiler's process, whole.
#[must_use]
pub fn run(request: &CompileRequest) -> ExitCode {
    let outcome = restrict(request.mebibytes).map_err(Failure::Limit);
    let Err(failure) = outcome.and_then(|()| compile_into(&request.folder, request.metering))
    else {
        return ExitCode::SUCCESS;
    };
    // Where nothing reads it, the exit code still says the most.
    if let Failure::Compile(PrecompileError::Module(error)) = &failure {
        let _said = write!(io::stdout(), "{}", fault(error));
    }
    let _said = writeln!(io::stderr(), "{}", error_chain(&failure));
    exit_code(&failure).into()
}

fn exit_code(failure: &Failure) -> u8 {
    match failure {
        Failure::Compile(PrecompileError::Module(error)) if error.is_out_of_memory() => {
            OUT_OF_MEMORY
        }
        Failure::Compile(PrecompileError::Module(_)) => REFUSED,
        Failure::Compile(PrecompileError::Cache(error)) | Failure::Cache(error)
            if error.is_full() =>
        {
            FULL
        }
        _ => UNAVAILABLE,
    }
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("limit what the compiler may take")]
    Limit(#[source] io::Error),
    #[error("read the module")]
    Read(#[source] io::Error),
    #[error("start the runtime of the compiler")]
    Runtime(#[source] io::Error),
    #[error(transparent)]
    Engine(#[from] opensdn_policy_host::EngineError),
    #[error(transparent)]
    Cache(#[from] opensdn_policy_host::CacheError),
    #[error(transparent)]
    Compile(#[from] PrecompileError),
}

fn compile_into(folder: &Path, metering: Metering) -> Result<(), Failure> {
    let mut module = Vec::new();
    io::stdin().read_to_end(&mut module).map_err(Failure::Read)?;
    // How many evaluations there may be at once is nothing to the code.
    let (cache, engine) = (Cache::open(folder)?, Engine::start_metered(1, metering)?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(Failure::Runtime)?;
    Ok(runtime.block_on(Policy::precompile(&engine, module, &cache))?)
}

#[cfg(test)]
mod tests {
    use opensdn_policy_host::CacheError;

    use super::*;

    #[test]
    fn a_full_disk_is_another_answer_than_any_other_trouble_with_the_cache() {
        let of_cache = |kind: io::ErrorKind| CacheError::Write("code".into(), kind.into());
        let of_compilation = |kind| Failure::Compile(PrecompileError::Cache(of_cache(kind)));
        assert_eq!(exit_code(&of_compilation(io::ErrorKind::StorageFull)), FULL);
        assert_eq!(exit_code(&Failure::Cache(of_cache(io::ErrorKind::QuotaExceeded))), FULL);
        assert_eq!(exit_code(&of_compilation(io::ErrorKind::PermissionDenied)), UNAVAILABLE);
    }

    #[test]
    fn what_the_engine_counts_is_handed_to_the_compiler() {
        let request = |arguments: &[&str]| {
            compile_request(["program"].iter().chain(arguments).map(OsString::from))
        };
        assert_eq!(request(&["validate", "folder"]), None);
        assert_eq!(request(&["compile-module"]), None);
        let asked = request(&["compile-module", "f", "64", "fuel"]).unwrap();
        assert_eq!((asked.mebibytes, asked.metering), (64, Metering::Fuel));
        let asked = request(&["compile-module", "f"]).unwrap();
        assert_eq!((asked.mebibytes, asked.metering), (DEFAULT_MEBIBYTES, Metering::Off));
    }
}
