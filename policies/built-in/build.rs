//! Builds every policy beside this crate and lists the components. How they are built is in
//! `sdk/build`.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use opensdn_policy_build::{Build, Component};

/// Where the modules are built, if not beside what this crate is built for.
const MODULES: &str = "OPENSDN_POLICY_MODULES";

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let policies = here.parent().ok_or("this crate stands beside the policies")?;
    let workspace = policies.parent().ok_or("the policies stand in the workspace")?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);

    let packages = policy_names(policies)?;
    declare_inputs(&packages);
    let cargo = PathBuf::from(std::env::var("CARGO")?);
    // They are the same whatever this crate is built for, so the gate has them built once.
    let target = std::env::var_os(MODULES).map_or_else(|| out.join("modules"), PathBuf::from);
    let build = Build { workspace, cargo: &cargo, target: &target, packages: &packages };
    let mut table = String::from("&[\n");
    for Component { package, bytes } in build.run()? {
        let file = out.join(format!("{package}.wasm"));
        fs::write(&file, bytes)?;
        table.push_str(&format!(
            "    BuiltIn {{ name: {package:?}, bytes: include_bytes!({file:?}) }},\n"
        ));
    }
    table.push_str("]\n");
    fs::write(out.join("built_in.rs"), table)?;
    fs::write(out.join("cases.rs"), cases(policies, &packages)?)?;
    fs::write(out.join("sources.rs"), sources(policies, &packages)?)?;
    Ok(())
}

/// What shows that each policy says what is so: `CODE: REPOSITORY PATH:LINES; …`, a line for each code.
fn sources(policies: &Path, packages: &[String]) -> Result<String, Box<dyn Error>> {
    let mut table = String::from("&[\n");
    for package in packages {
        let file = policies.join(package).join("sources.txt");
        let text = if file.is_file() { fs::read_to_string(&file)? } else { String::new() };
        for line in text.lines() {
            let (code, sources) =
                line.split_once(": ").ok_or_else(|| format!("{}: {line}", file.display()))?;
            let sources: Vec<_> = sources.split("; ").collect();
            table.push_str(&format!("    ({package:?}, {code:?}, &{sources:?}),\n"));
        }
    }
    table.push_str("]\n");
    Ok(table)
}

/// The texts of all cases, which `kubectl opensdn policy` runs and shows.
fn cases(policies: &Path, packages: &[String]) -> Result<String, Box<dyn Error>> {
    let mut table = String::from("&[\n");
    for package in packages {
        let folder = policies.join(package).join("cases");
        let mut files = Vec::new();
        if folder.is_dir() {
            for entry in fs::read_dir(&folder)? {
                files.push(entry?.path());
            }
        }
        files.sort();
        table.push_str(&format!("    ({package:?}, &[\n"));
        for file in files {
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            // Not the file's path, which is another one in another clone.
            let text = fs::read_to_string(&file)?;
            table.push_str(&format!("        ({name:?}, {text:?}),\n"));
        }
        table.push_str("    ]),\n");
    }
    table.push_str("]\n");
    Ok(table)
}

fn policy_names(policies: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(policies)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.join("Cargo.toml").is_file() && name != "built-in" {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// By paths relative to this crate: the same sources in another clone are no change.
fn declare_inputs(names: &[String]) {
    let shared = ["Cargo.toml", "Cargo.lock", "crds/Cargo.toml", "crds/src", "sdk/wit"];
    let sdk = [
        "sdk/components/Cargo.toml",
        "sdk/components/src",
        "sdk/derive/Cargo.toml",
        "sdk/derive/src",
        "sdk/guest/Cargo.toml",
        "sdk/guest/src",
    ];
    for path in shared.iter().chain(&sdk) {
        println!("cargo::rerun-if-changed=../../{path}");
    }
    // Whole folders: a path that is not there counts as changed at each build, and not every policy has all.
    for name in names {
        println!("cargo::rerun-if-changed=../{name}");
    }
    for variable in [MODULES, "CARGO_HOME", "RUSTUP_TOOLCHAIN"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
}
