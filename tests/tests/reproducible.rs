//! A policy has one digest, wherever it is built: what an administrator pinned today is what
//! another machine builds from the same source.

use opensdn_testing::Outcome;
use std::{
    fs,
    path::{Path, PathBuf},
};

use opensdn_policies::BuiltIn;
use opensdn_policy_build::Build;
use opensdn_policy_host::Digest;

fn workspace() -> Result<PathBuf, std::io::Error> {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()
}

/// Copies the source, not what was made of it.
fn copy(from: &Path, to: &Path) -> Outcome {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let made = name.to_string_lossy().starts_with('.') || name == "target";
        if path.is_dir() && !made {
            copy(&path, &to.join(&name))?;
        } else if path.is_file() {
            fs::copy(&path, to.join(&name))?;
        }
    }
    Ok(())
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn a_policy_built_in_another_folder_has_the_same_digest() -> Outcome {
    // The path is fixed so that the second run of this test finds the dependencies compiled.
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("another-folder");
    let (source, target) = (scratch.join("source"), scratch.join("target"));
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    copy(&workspace()?, &source)?;
    // All of them, as in the product: packages that are built together share features.
    let packages: Vec<String> =
        opensdn_policies::ALL.iter().map(|policy| policy.name.to_owned()).collect();
    let cargo = Path::new(env!("CARGO"));
    let built = Build { workspace: &source, cargo, target: &target, packages: &packages }.run()?;
    let digests = |name: &str, bytes: &[u8]| format!("{name} {}", Digest::of(bytes));
    let here: Vec<String> =
        opensdn_policies::ALL.iter().map(|one| digests(one.name, one.bytes)).collect();
    let there: Vec<String> = built.iter().map(|one| digests(&one.package, &one.bytes)).collect();
    assert_eq!(here, there);
    Ok(())
}

#[test]
fn no_policy_says_where_it_was_built() -> Outcome {
    let mut places = vec![workspace()?.display().to_string(), env!("CARGO_TARGET_TMPDIR").into()];
    places.extend(std::env::var("CARGO_HOME"));
    // With the slash, as a user's name alone may well be in a text.
    places.extend(std::env::var("HOME").ok().filter(|home| home.len() > 1).map(|home| home + "/"));
    for BuiltIn { name, bytes } in opensdn_policies::ALL {
        for place in &places {
            assert!(!contains(bytes, place), "{name} names {place}");
        }
    }
    Ok(())
}
