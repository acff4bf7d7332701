//! The C bindings of the policy world are generated from `sdk/wit/policy.wit` and committed; here
//! they are compared, or written when `UPDATE` is set.

#![allow(clippy::unwrap_used, reason = "a test may end here, and the line says where")]

use std::fs;
use std::path::Path;

use wit_bindgen_core::Files;
use wit_parser::Resolve;

const COMMAND: &str = "UPDATE=1 cargo test -p opensdn-policy-templates";

#[test]
fn c_bindings_are_current() {
    let mut resolve = Resolve::default();
    let contract = include_str!("../../wit/policy.wit");
    let package = resolve.push_str("policy.wit", contract).unwrap();
    let world = resolve.select_world(&[package], Some("policy")).unwrap();
    // `policy build` writes the world into the module, so that no object file is needed.
    let options = wit_bindgen_c::Opts { no_object_file: true, ..wit_bindgen_c::Opts::default() };
    let mut files = Files::default();
    options.build().generate(&mut resolve, world, &mut files).unwrap();

    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/vendor/opensdn-policy");
    let mut names = Vec::new();
    for (name, text) in files.iter() {
        let path = folder.join(name);
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, text).unwrap();
        }
        assert!(fs::read(&path).unwrap() == text, "{name} is not current: run {COMMAND}");
        names.push(name);
    }
    assert_eq!(names, ["policy.c", "policy.h"]);
}
