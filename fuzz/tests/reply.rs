//! A bounded run of the target `reply`. Each target has a process of its own, so that memory that
//! is lost is seen.

use std::{error::Error, fs, path::Path};

use opensdn_fuzz::{
    reply::Reply,
    run::{Bounds, run},
};

/// Far more than the run needs, far less than a reply that is believed could take.
const MOST_MEMORY_MIB: u64 = 512;

#[test]
fn no_reply_ends_otherwise_than_as_a_value() -> Result<(), Box<dyn Error>> {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let seen = run(&Reply::new()?, Bounds::from_environment(10_000), scratch)?;
    let has = |text: &str| seen.signatures.iter().any(|way| way.contains(text));
    // Else the run would prove nothing.
    for text in ["bad_reply", "inconclusive", "reply_too_large", "bad_patch", "1 1 true"] {
        assert!(has(text), "no input led to {text:?}: {:#?}", seen.signatures);
    }
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|text| text.trim().strip_suffix(" kB")).ok_or("VmHWM")?;
    let peak = peak.parse::<u64>()? >> 10;
    assert!(peak < MOST_MEMORY_MIB, "{peak} MiB at the peak");
    Ok(())
}
