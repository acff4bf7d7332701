//! What starting the plugin costs: commands that need neither a cluster nor a policy, so that a
//! runtime or engine that is started for nothing shows.

use std::{error::Error, process::Command, process::Stdio};

use opensdn_tests::measure::{Row, Sample, report};

const PLUGIN: &str = env!("CARGO_BIN_EXE_plugin-of-tests");
const STARTS: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let mut rows = Vec::new();
    for (what, arguments) in [
        ("version --client", &["version", "--client"][..]),
        ("explain CODE", &["explain", "OSDN4001"]),
        ("completion of a word", &["__complete", "vers"]),
        ("--help", &["--help"]),
    ] {
        let start = || {
            let status = Command::new(PLUGIN).args(arguments).stdout(Stdio::null()).status();
            assert!(status.is_ok_and(|status| status.success()), "{what}");
        };
        let sample = Sample::of(STARTS, start);
        let milliseconds = sample.percentile(0.5) / 1_000.0;
        rows.push(Row::new(format!("plugin: {what}, p50"), milliseconds, "ms").aim("20"));
    }
    report("plugin", &rows)?;
    Ok(())
}
