//! The program `opensdn-fake-config-api`. What it does is in `opensdn_testing::config_api::command_line`.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    opensdn_testing::config_api::command_line::main().await
}
