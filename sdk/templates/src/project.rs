//! From a name, a language and kinds to the files of a project.

use std::{fmt, path::PathBuf};

use crate::{
    File, embedded,
    fill::{Places, fill, of_kind, put},
    kind::Kind,
};

/// Where a project in Rust keeps the SDK that came with it.
const VENDOR: &str = "vendor/opensdn-policy-sdk";

/// The lock file, which depends on where the SDK is from.
const LOCK: &str = "Cargo.lock";

/// What a policy is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Rust, with the SDK.
    Rust,
    /// JavaScript, by componentize-js.
    JavaScript,
    /// Python, by componentize-py.
    Python,
    /// C, by clang and wit-bindgen.
    C,
}

/// Where the SDK of a policy in Rust comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sdk {
    /// Its source is written into the project.
    Embedded,
    /// A checkout of the product's repository.
    Checkout(PathBuf),
    /// A release in a registry.
    Release(String),
}

/// A project that is to be made.
#[derive(Clone, Debug)]
pub struct Project {
    /// Name of the policy, in lower case with `-`.
    pub name: String,
    /// What it is written in.
    pub language: Language,
    /// What it is about; at least one kind.
    pub kinds: Vec<Kind>,
    /// Where the SDK is from, where there is one.
    pub sdk: Sdk,
}

impl Language {
    /// As on the command line and in `opensdn-policy.yaml`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::JavaScript => "javascript",
            Self::Python => "python",
            Self::C => "c",
        }
    }

    fn files(self) -> &'static [File] {
        match self {
            Self::Rust => embedded::RUST,
            Self::JavaScript => embedded::JAVASCRIPT,
            Self::Python => embedded::PYTHON,
            Self::C => embedded::C,
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl Project {
    /// The files, by their paths below the project's folder, in order.
    #[must_use]
    pub fn files(&self) -> Vec<(PathBuf, String)> {
        let places = self.places();
        let mut files = Vec::new();
        for file in self.language.files() {
            if file.path.contains("{{kind-file}}") {
                files.extend(self.kinds.iter().map(|kind| {
                    let (of_kind, text) = (of_kind(kind), put(file.text, &of_kind(kind)));
                    (put(file.path, &of_kind), fill(&text, &places, &self.kinds))
                }));
            } else {
                files.push((file.path.to_owned(), fill(file.text, &places, &self.kinds)));
            }
        }
        files.extend(self.sdk_files());
        files.sort();
        files.into_iter().map(|(path, text)| (path.into(), text)).collect()
    }

    /// The contract, and the SDK where it is written into the project.
    fn sdk_files(&self) -> Vec<(String, String)> {
        let sdk = embedded::SDK.iter();
        match (self.language, &self.sdk) {
            (Language::Rust, Sdk::Embedded) => {
                let mut files: Vec<_> = sdk
                    .map(|file| (format!("{VENDOR}/{}", file.path), file.text.to_owned()))
                    .collect();
                files.push((format!("{VENDOR}/Cargo.toml"), embedded::SDK_WORKSPACE.to_owned()));
                files.push((LOCK.to_owned(), embedded::LOCK.to_owned()));
                files
            }
            (Language::Rust, Sdk::Checkout(_)) => {
                vec![(LOCK.to_owned(), embedded::LOCK.to_owned())]
            }
            (Language::Rust, Sdk::Release(_)) => Vec::new(),
            _ => sdk
                .filter(|file| file.path.starts_with("wit/"))
                .map(|file| (file.path.to_owned(), file.text.to_owned()))
                .collect(),
        }
    }

    fn places(&self) -> Places {
        let each = |write: &dyn Fn(&Kind) -> String| {
            self.kinds.iter().map(write).collect::<Vec<_>>().join(", ")
        };
        vec![
            ("name", self.name.clone()),
            ("crate", self.name.replace('-', "_")),
            ("sdk", self.sdk_dependency()),
            ("kinds", each(&|kind| kind.kind.clone())),
            ("functions", each(&|kind| format!("check_owner_of_{}", kind.words('_')))),
            ("a-kind", self.kinds.first().map(|kind| kind.words('-')).unwrap_or_default()),
        ]
    }

    /// The right-hand side of the dependency in Cargo.toml.
    fn sdk_dependency(&self) -> String {
        // A path may hold what a TOML string has to escape; Rust's escapes are TOML's.
        match &self.sdk {
            Sdk::Embedded => format!("{{ path = \"{VENDOR}/guest\" }}"),
            Sdk::Checkout(folder) => format!("{{ path = {:?} }}", folder.join("sdk/guest")),
            Sdk::Release(version) => format!("{version:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Language, Project, Sdk};

    fn project(language: Language, sdk: Sdk) -> Vec<(String, String)> {
        let kinds = vec!["v1/ConfigMap".parse().unwrap(), "apps/v1/Deployment".parse().unwrap()];
        let project = Project { name: "no-owner".to_owned(), language, kinds, sdk };
        let files = project.files().into_iter();
        files.map(|(path, text)| (path.display().to_string(), text)).collect()
    }

    const ALL: [Language; 4] =
        [Language::Rust, Language::JavaScript, Language::Python, Language::C];

    #[test]
    fn no_place_is_left_unfilled() {
        for language in ALL {
            for (path, text) in project(language, Sdk::Embedded) {
                // GitHub's own places have a space in them.
                let left = text.replace("{{ ", "").contains("{{") && !path.starts_with("vendor/");
                assert!(!left && !path.contains("{{"), "{language}: {path}:\n{text}");
            }
        }
    }

    #[test]
    fn every_project_says_how_it_is_built_and_has_two_cases_for_each_kind() {
        for language in ALL {
            let files = project(language, Sdk::Embedded);
            let has = |path: &str| files.iter().any(|(file, _)| file == path);
            for path in ["README.md", "opensdn-policy.yaml", ".gitignore"] {
                assert!(has(path), "{language}: no {path}");
            }
            for kind in ["config-map", "deployment"] {
                assert!(has(&format!("cases/{kind}-with-an-owner-passes.yaml")), "{language}");
                assert!(has(&format!("cases/{kind}-without-an-owner-is-refused.yaml")));
            }
            assert!(has(".github/workflows/policy.yaml"), "{language}: no workflow");
        }
    }

    #[test]
    fn the_sdk_comes_from_where_the_flag_says() {
        let manifest = |sdk| {
            let files = project(Language::Rust, sdk);
            let vendored = files.iter().any(|(path, _)| path.starts_with("vendor/"));
            let manifest = files.into_iter().find(|(path, _)| path == "Cargo.toml").unwrap().1;
            (manifest, vendored)
        };
        let (text, vendored) = manifest(Sdk::Embedded);
        assert!(text.contains("{ path = \"vendor/opensdn-policy-sdk/guest\" }") && vendored);
        let (text, vendored) = manifest(Sdk::Checkout("/src/opensdn".into()));
        assert!(text.contains("{ path = \"/src/opensdn/sdk/guest\" }") && !vendored);
        let (text, vendored) = manifest(Sdk::Release("0.1".to_owned()));
        assert!(text.contains("opensdn-policy-sdk = \"0.1\"") && !vendored);
    }

    #[test]
    fn the_vendored_sdk_has_every_version_that_it_inherits() {
        let files = project(Language::Rust, Sdk::Embedded);
        let text = |path: &str| &files.iter().find(|(file, _)| file.ends_with(path)).unwrap().1;
        let workspace = text("opensdn-policy-sdk/Cargo.toml");
        for crate_manifest in ["guest/Cargo.toml", "derive/Cargo.toml"] {
            let inherited = text(crate_manifest).lines().filter(|line| line.contains(".workspace"));
            for line in inherited {
                let name = line.split('.').next().unwrap();
                assert!(workspace.contains(&format!("\n{name} = ")), "{name} in {workspace}");
            }
        }
        assert!(!workspace.contains("tokio") && !text("Cargo.lock").contains("name = \"tokio\""));
    }
}
