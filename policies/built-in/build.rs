//! Builds every policy beside this crate for `wasm32-unknown-unknown` and makes it a component.
//!
//! The bytes do not depend on the folder that they are built in: a digest that an administrator
//! pinned must be the digest of the next build of the same source.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use wit_component::ComponentEncoder;

const TARGET: &str = "wasm32-unknown-unknown";

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let policies = here.parent().ok_or("this crate stands beside the policies")?;
    let root = policies.parent().ok_or("the policies stand in the workspace")?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);

    let names = policy_names(policies)?;
    declare_inputs(root, &names);
    let modules = build_modules(root, &out, &names)?;
    let mut table = String::from("&[\n");
    for name in &names {
        let component = out.join(format!("{name}.wasm"));
        let module = fs::read(modules.join(format!("{}.wasm", name.replace('-', "_"))))?;
        fs::write(&component, componentize(&module)?)?;
        table.push_str(&format!(
            "    BuiltIn {{ name: {name:?}, bytes: include_bytes!({component:?}) }},\n"
        ));
    }
    table.push_str("]\n");
    fs::write(out.join("built_in.rs"), table)?;
    Ok(())
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

fn declare_inputs(root: &Path, names: &[String]) {
    let shared = ["Cargo.toml", "Cargo.lock", "policies", "crds/Cargo.toml", "crds/src", "sdk/wit"];
    let sdk = [
        "sdk/components/Cargo.toml",
        "sdk/components/src",
        "sdk/derive/Cargo.toml",
        "sdk/derive/src",
        "sdk/guest/Cargo.toml",
        "sdk/guest/src",
    ];
    for path in shared.iter().chain(&sdk).filter(|path| **path != "policies") {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    for name in names {
        for part in ["Cargo.toml", "src"] {
            let path = root.join("policies").join(name).join(part);
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    for variable in ["CARGO_HOME", "RUSTUP_TOOLCHAIN"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
}

fn build_modules(root: &Path, out: &Path, names: &[String]) -> Result<PathBuf, Box<dyn Error>> {
    let target = out.join("modules");
    let mut cargo = Command::new(std::env::var("CARGO")?);
    // What the outer cargo, clippy or rustdoc set for themselves must not reach the inner one.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let outer = text.starts_with("CARGO_") && text != "CARGO_HOME" && text != "CARGO_MAKEFLAGS";
        let flags =
            ["RUSTFLAGS", "RUSTC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CLIPPY_ARGS"];
        if outer || flags.contains(&text.as_ref()) {
            cargo.env_remove(&name);
        }
    }
    cargo
        .current_dir(root)
        .env("CARGO_ENCODED_RUSTFLAGS", reproducible_flags(root)?.join("\u{1f}"))
        .env("CARGO_BUILD_BUILD_DIR", &target)
        .args(["build", "--quiet", "--lib", "--profile", "policy", "--target", TARGET])
        .arg("--target-dir")
        .arg(&target);
    for name in names {
        cargo.args(["--package", name]);
    }
    if !cargo.status()?.success() {
        return Err(format!(
            "the policies do not build for {TARGET}; if the target is missing: rustup target add {TARGET}"
        )
        .into());
    }
    Ok(target.join(TARGET).join("policy"))
}

/// Takes every absolute path out of the modules (panic messages carry some).
fn reproducible_flags(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let rustc = std::env::var("RUSTC")?;
    let output = Command::new(rustc).args(["--print", "sysroot"]).output()?;
    let sysroot = String::from_utf8(output.stdout)?;
    let home = match std::env::var("CARGO_HOME") {
        Ok(home) => home,
        Err(_) => format!("{}/.cargo", std::env::var("HOME")?),
    };
    Ok(vec![
        format!("--remap-path-prefix={}=/rust", sysroot.trim()),
        format!("--remap-path-prefix={home}=/cargo"),
        format!("--remap-path-prefix={}=/opensdn", root.display()),
    ])
}

fn componentize(module: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    Ok(ComponentEncoder::default().validate(true).module(module)?.encode()?)
}
