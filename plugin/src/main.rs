//! `kubectl opensdn`.

mod allocator;

use std::process::ExitCode;

fn main() -> ExitCode {
    kubectl_opensdn::run(std::env::args_os())
}
