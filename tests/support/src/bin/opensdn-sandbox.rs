//! The program `opensdn-sandbox`. What it does is in `opensdn_testing::command_line`.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    opensdn_testing::command_line::main().await
}
