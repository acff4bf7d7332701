//! The commands that are suggested next, as a user can paste them: in the namespace that he named.

use crate::shell::quoted;

/// Writes commands of `upgrade`.
#[derive(Clone, Debug, Default)]
pub(crate) struct NextCommand {
    namespace: Option<String>,
}

impl NextCommand {
    /// With `-n`, where it was given.
    pub(crate) fn new(namespace: Option<String>) -> Self {
        Self { namespace }
    }

    /// The command with these words.
    pub(crate) fn of(&self, words: &[&str]) -> String {
        let namespace = self.namespace.iter().flat_map(|name| ["-n", name.as_str()]);
        let words = words.iter().copied().chain(namespace).map(quoted);
        let words: Vec<String> = words.collect();
        format!("kubectl opensdn upgrade {}", words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_and_stays_in_its_namespace() {
        let next = NextCommand::new(Some("tf".to_owned()));
        assert_eq!(
            next.of(&["apply", "R25.1", "--image", "Redis/redis=a.io:5000/r@sha256:1"]),
            "kubectl opensdn upgrade apply R25.1 --image Redis/redis=a.io:5000/r@sha256:1 -n tf"
        );
        let next = NextCommand::default();
        let text = next.of(&["skip", "a; rm -rf 'x'", ""]);
        assert_eq!(text, r"kubectl opensdn upgrade skip 'a; rm -rf '\''x'\''' ''");
    }
}
