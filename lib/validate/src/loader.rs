//! From the bytes of a module to a policy: the program's engine, its cache of compiled policies, and the
//! process that compiles modules from outside.

use std::future::pending;
use std::io;
use std::path::PathBuf;

use opensdn_admission_policy::{Fault, Problem, is_built_in};
use opensdn_error_chain::error_chain;
use opensdn_module_process::{BoundedProcess, Compiled, Compiler, fault, out_of_memory};
use opensdn_policy_host::{Cache, CacheError, Digest, Engine, LoadError, Policy};

/// What loads policies. The program owns all of it, as it may run policies for other reasons too.
#[derive(Clone, Copy)]
pub struct Loader<'a> {
    /// What policies run on.
    pub engine: &'a Engine,
    /// Where compiled policies are kept, if anywhere.
    pub cache: Option<&'a Cache>,
    /// What compiles modules from outside. Without it they are refused: in this process nothing would
    /// limit what they take.
    pub compiler: Option<&'a BoundedProcess>,
}

/// Why a module is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// Found by this process.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Found by the compiler.
    #[error("{why}")]
    Refused {
        /// One word for programs.
        fault: &'static str,
        /// In words.
        why: String,
    },
    /// It takes more memory than the compiler may have.
    #[error("{}", out_of_memory(*mebibytes))]
    OutOfMemory {
        /// How much that is.
        mebibytes: u64,
    },
    /// The machine is to blame.
    #[error("the module was not compiled: {0}")]
    Interrupted(String),
    /// There is no room for what was compiled.
    #[error("the compiled module cannot be written to {}: {why}", .folder.display())]
    Full {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        why: String,
    },
    /// No folder to hand the code over.
    #[error("there is no folder for the compiled module")]
    NoFolder(#[source] io::Error),
    /// Nor can the one that was made be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// This program has no process for it.
    #[error(
        "modules from outside are compiled by a process of their own, with limits, and this program has none"
    )]
    NoCompiler,
}

impl ModuleError {
    /// One word for programs.
    #[must_use]
    pub fn fault(&self) -> &'static str {
        match self {
            Self::Load(error) => fault(error),
            Self::Refused { fault, .. } => fault,
            Self::OutOfMemory { .. } => "takes-too-much-memory",
            Self::Full { .. } | Self::NoFolder(_) | Self::Cache(_) => "no-space",
            Self::Interrupted(_) | Self::NoCompiler => "not-compiled",
        }
    }

    /// What to do, where it is not the module's author who has to do it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Load(_) | Self::Refused { .. } => None,
            Self::OutOfMemory { .. } => Some(
                "make the module smaller; or, where you trust it, set KUBECTL_OPENSDN_COMPILER_MEBIBYTES to more \
                 here, and --compiler-mebibytes of the webhook",
            ),
            Self::Interrupted(_) => Some("try again when the machine has less to do"),
            Self::Full { .. } | Self::NoFolder(_) | Self::Cache(_) => {
                Some("free space there, or name another folder with --cache-dir")
            }
            Self::NoCompiler => Some("start the program by its path: it has to start itself again"),
        }
    }

    /// Whether the machine is to blame and not the module.
    #[must_use]
    pub fn is_of_machine(&self) -> bool {
        !matches!(self, Self::Load(_) | Self::Refused { .. } | Self::OutOfMemory { .. })
    }
}

impl From<&ModuleError> for Problem {
    fn from(error: &ModuleError) -> Self {
        match error {
            ModuleError::Load(error) => Self::from(error),
            other => {
                let fault =
                    if other.is_of_machine() { Fault::NotCompiled } else { Fault::ModuleUnusable };
                let unusable = Self::unusable(error_chain(other));
                let hint = other.hint().map_or(unusable.hint, str::to_owned);
                Self { fault, hint, ..unusable }
            }
        }
    }
}

impl Loader<'_> {
    /// The policy of these bytes.
    ///
    /// # Errors
    /// They are not what is pinned, or no policy that can be used; or they cannot be compiled here.
    pub async fn load(self, bytes: &[u8], pinned: Option<Digest>) -> Result<Policy, ModuleError> {
        if is_built_in(bytes) {
            return Ok(Policy::load(self.engine, bytes, pinned, self.cache).await?);
        }
        let digest = Digest::of(bytes);
        if let Some(expected) = pinned.filter(|pinned| *pinned != digest) {
            return Err(LoadError::Digest { expected, found: digest }.into());
        }
        if let Some(cache) = self.cache {
            return self.load_by(cache, bytes, digest).await;
        }
        // What is mapped of a file stays when the file is gone.
        let folder = tempfile::tempdir().map_err(ModuleError::NoFolder)?;
        self.load_by(&Cache::open(folder.path())?, bytes, digest).await
    }

    async fn load_by(
        self,
        cache: &Cache,
        bytes: &[u8],
        digest: Digest,
    ) -> Result<Policy, ModuleError> {
        if let Some(policy) = Policy::load_compiled(self.engine, digest, cache).await? {
            return Ok(policy);
        }
        let process = self.compiler.ok_or(ModuleError::NoCompiler)?.clone();
        let compiler = Compiler::by(process, cache, self.engine.metering());
        match compiler.compile(bytes, pending()).await {
            Some(Compiled::Done) => {}
            Some(Compiled::Refused { fault, why }) => {
                return Err(ModuleError::Refused { fault, why });
            }
            Some(Compiled::OutOfMemory { mebibytes }) => {
                return Err(ModuleError::OutOfMemory { mebibytes });
            }
            Some(Compiled::Full { folder, why }) => return Err(ModuleError::Full { folder, why }),
            Some(Compiled::Interrupted(why)) => return Err(ModuleError::Interrupted(why)),
            None => return Err(ModuleError::Interrupted(String::new())),
        }
        let compiled = Policy::load_compiled(self.engine, digest, cache).await?;
        compiled.ok_or_else(|| {
            ModuleError::Interrupted(format!("it is not in {}", cache.folder().display()))
        })
    }
}
