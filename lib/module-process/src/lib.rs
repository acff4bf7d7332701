//! What is done with a module's bytes before they are known to be a policy, in a process of its own with
//! limits: the program starts itself again, with other arguments. So a module cannot end or hang the
//! webhook or the plugin, whatever is in it. `process.rs` is such a process as its parent sees it,
//! `limits.rs` as it sees itself; `compiler.rs` compiles by one. Deliberately not here: which modules
//! there are, and what a user can do about one that is refused.

mod compiler;
mod limits;
mod process;

pub use compiler::{
    CompileRequest, Compiled, Compiler, compile_request, fault, out_of_memory, run,
};
pub use limits::{PROCESSOR_SECONDS, restrict};
pub use process::{BoundedProcess, Ended};

/// Mebibytes of memory that such a process may take unless it is said otherwise.
pub const DEFAULT_MEBIBYTES: u64 = 256;
