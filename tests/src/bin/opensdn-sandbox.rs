//! The program `opensdn-sandbox`. What it does is in `opensdn_tests::command_line`.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    opensdn_tests::command_line::main().await
}
