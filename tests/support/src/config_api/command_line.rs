//! The command line of `opensdn-fake-config-api`: until Ctrl-C. Deliberately not here: faults, which are for tests.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use super::{FakeConfigApi, Mode, Settings, WorkedExample};
use crate::Failed;

const EXAMPLES: &str = "\
Examples:
  opensdn-fake-config-api --worked-example
  opensdn-fake-config-api --listen 127.0.0.1:8082 --keystone-listen 127.0.0.1:5000 --mode rbac

It prints where both services are. Tokens are for the user admin with the password contrail123.
Objects are in memory and end with it.";

/// A fake of OpenSDN's Config API and of Keystone, to try clients on.
#[derive(Debug, Parser)]
#[command(name = "opensdn-fake-config-api", version, after_help = EXAMPLES)]
struct CommandLine {
    /// Where the Config API listens
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Where Keystone listens
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    keystone_listen: SocketAddr,
    /// Who is let in
    #[arg(long, value_enum, default_value_t)]
    mode: ModeName,
    /// Begin with the cloud of the documentation's worked example
    #[arg(long)]
    worked_example: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ModeName {
    /// Each caller
    #[default]
    NoAuth,
    /// A token with the role admin
    CloudAdmin,
    /// A token, for what the rules allow
    Rbac,
}

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::NoAuth => Self::NoAuth,
            ModeName::CloudAdmin => Self::CloudAdmin,
            ModeName::Rbac => Self::Rbac,
        }
    }
}

/// Runs it.
pub async fn main() -> ExitCode {
    match run(CommandLine::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is nowhere else to say it.
            let _ =
                writeln!(std::io::stderr(), "opensdn-fake-config-api: failed to start: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(line: CommandLine) -> Result<(), Failed> {
    let fake = FakeConfigApi::start(Settings {
        listen: line.listen,
        keystone_listen: line.keystone_listen,
        mode: line.mode.into(),
        ..Settings::default()
    })?;
    if line.worked_example {
        WorkedExample::fill(&fake)?;
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "config-api {}\nkeystone {}", fake.url(), fake.keystone_url())?;
    out.flush()?;
    drop(out);
    tokio::signal::ctrl_c().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn command_line_is_consistent() {
        super::CommandLine::command().debug_assert();
    }
}
