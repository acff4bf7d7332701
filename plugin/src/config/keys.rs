//! The keys of the configuration: the flags whose default a user may choose. A key is called like
//! its flag, behind the words of the command where the flag is not of all commands. Left out are
//! flags that name input, those that take a secret, and those whose effect must not hang on a file
//! that no user sees.

use clap::{Arg, Command};

use crate::exit::Failure;

/// A key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// The variable that sets the flag.
    pub(crate) variable: &'static str,
    pub(crate) takes: Takes,
    pub(crate) about: About,
}

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// What the flag takes.
    Value,
    /// `true` or `false`.
    Switch,
    /// A path, which must not hang on the folder of the moment.
    Path,
}

/// Where a key has a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// In every run of its command.
    Runs,
    /// Only where a cluster is asked.
    Clusters,
}

/// All keys, by name.
pub(crate) const KEYS: &[Key] = &[
    key("audit.control-namespace", "OPENSDN_NAMESPACE", Takes::Value),
    key("audit.fail-on", "KUBECTL_OPENSDN_AUDIT_FAIL_ON", Takes::Value),
    key("cache-dir", "KUBECTL_OPENSDN_CACHE_DIR", Takes::Path),
    key("certs.renew.control-namespace", "OPENSDN_NAMESPACE", Takes::Value),
    key("certs.status.control-namespace", "OPENSDN_NAMESPACE", Takes::Value),
    key("check.fail-on", "KUBECTL_OPENSDN_CHECK_FAIL_ON", Takes::Value),
    key("color", "KUBECTL_OPENSDN_COLOR", Takes::Value),
    key("diff.control-namespace", "OPENSDN_NAMESPACE", Takes::Value),
    key("install.control-namespace", "OPENSDN_NAMESPACE", Takes::Value),
    key("logs.control-namespace", "OPENSDN_NAMESPACE", Takes::Value),
    key("no-hints", "KUBECTL_OPENSDN_NO_HINTS", Takes::Switch),
    key("policy.manifest.control-namespace", "OPENSDN_NAMESPACE", Takes::Value),
    key("policy.new.lang", "KUBECTL_OPENSDN_POLICY_NEW_LANG", Takes::Value),
    key("progress", "KUBECTL_OPENSDN_PROGRESS", Takes::Value),
    key("prune.control-namespace", "OPENSDN_NAMESPACE", Takes::Value),
    key("render.control-namespace", "OPENSDN_NAMESPACE", Takes::Value),
    Key {
        name: "request-timeout",
        variable: "KUBECTL_OPENSDN_REQUEST_TIMEOUT",
        takes: Takes::Value,
        about: About::Clusters,
    },
    key("status.control-namespace", "OPENSDN_NAMESPACE", Takes::Value),
    key("uninstall.control-namespace", "OPENSDN_NAMESPACE", Takes::Value),
    key("validate.as-of", "KUBECTL_OPENSDN_VALIDATE_AS_OF", Takes::Value),
    key("validate.fail-on", "KUBECTL_OPENSDN_VALIDATE_FAIL_ON", Takes::Value),
    key("validate.operator", "KUBECTL_OPENSDN_VALIDATE_OPERATOR", Takes::Value),
    key("validate.output", "KUBECTL_OPENSDN_VALIDATE_OUTPUT", Takes::Value),
    key("validate.strict", "KUBECTL_OPENSDN_VALIDATE_STRICT", Takes::Switch),
    // Named by the product, for all of its programs.
    key("version.control-namespace", "OPENSDN_NAMESPACE", Takes::Value),
];

const fn key(name: &'static str, variable: &'static str, takes: Takes) -> Key {
    Key { name, variable, takes, about: About::Runs }
}

impl Key {
    /// The key of that name.
    ///
    /// # Errors
    /// There is none; the failure says which was meant, and which there are.
    pub(crate) fn named(name: &str) -> Result<&'static Self, Failure> {
        KEYS.iter().find(|key| key.name == name).ok_or_else(|| {
            let names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
            let meant = nearest(name, names.iter().copied());
            let meant = meant.map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
            let hint = format!("{meant}the keys are: {}", names.join(", "));
            Failure::new(crate::Exit::Usage, "unknown-key", format!("there is no key {name}"), hint)
        })
    }

    /// The words of its command, and the flag without its dashes.
    pub(crate) fn words_and_flag(&self) -> (Vec<&'static str>, &'static str) {
        let mut words: Vec<&str> = self.name.split('.').collect();
        let flag = words.pop().unwrap_or_default();
        (words, flag)
    }

    /// The flag in the definition of the command line.
    pub(crate) fn argument<'a>(&self, definition: &'a Command) -> Option<&'a Arg> {
        let (words, flag) = self.words_and_flag();
        let command = words.iter().try_fold(definition, |within, word| {
            within.get_subcommands().find(|one| one.get_name() == *word)
        })?;
        command.get_arguments().find(|one| one.get_long() == Some(flag))
    }
}

/// The name that was probably meant.
pub(crate) fn nearest<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    // A name without its command means the flag that only one command has.
    let flag = |known: &&str| known.rsplit('.').next() == Some(name);
    let mut of_flag = known.clone().filter(flag);
    if let (Some(one), None) = (of_flag.next(), of_flag.next()) {
        return Some(one);
    }
    let most = (name.chars().count() / 3).clamp(1, 3);
    known
        .map(|known| (strsim::damerau_levenshtein(&name.to_lowercase(), known), known))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, known)| known)
}
