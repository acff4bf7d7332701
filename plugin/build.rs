//! Hands the program what `version` says of how it was built: by which rustc, and for which machine. The commit is not
//! looked for here, for sources without git are to build, too: a script that knows it sets `OPENSDN_COMMIT`.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Ok(target) = std::env::var("TARGET") {
        println!("cargo::rustc-env=OPENSDN_TARGET={target}");
    }
    if let Some(version) = rustc_version() {
        println!("cargo::rustc-env=OPENSDN_RUSTC={version}");
    }
}

/// `1.95.0` of `rustc 1.95.0 (f6d1e2a9b 2026-04-14)`.
fn rustc_version() -> Option<String> {
    let said = Command::new(std::env::var_os("RUSTC")?).arg("--version").output().ok()?;
    let text = String::from_utf8(said.stdout).ok()?;
    text.split_whitespace().nth(1).map(str::to_owned)
}
