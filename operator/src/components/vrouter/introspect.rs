//! Where an agent says whether it works, by its variables: the file of the agent is written by the image's script.

use std::collections::BTreeMap;

use opensdn_crds::vrouter::VrouterConfiguration;

use crate::component::{Introspect, Sessions};

const PORT: u16 = 8085;

/// With these settings and variables, those of profiles included.
pub(super) fn introspect(
    settings: &VrouterConfiguration,
    variables: &BTreeMap<String, String>,
) -> Introspect {
    let variable = |name: &str| variables.get(name).map(|text| text.trim());
    let port = variable("VROUTER_AGENT_INTROSPECT_PORT").and_then(|text| text.parse().ok());
    // At the vrouter's address alone (tf-container-builder, `containers/vrouter/agent/actions.sh:146-149`).
    let all = variable("INTROSPECT_LISTEN_ALL").filter(|word| !word.is_empty());
    Introspect {
        ports: vec![port.unwrap_or(PORT)],
        is_plain: !is_encrypted(settings, &variable),
        may_listen_elsewhere: all.is_some_and(|word| !word.eq_ignore_ascii_case("true")),
        sessions: Sessions::WithControlNodes,
        ..Introspect::default()
    }
}

/// The script writes the word of the variable into the agent's file as it is; an empty one falls to that of all
/// (tf-container-builder, `containers/base/common.sh:330`, `containers/vrouter/agent/actions.sh:357-376`).
fn is_encrypted<'v>(
    settings: &VrouterConfiguration,
    variable: &impl Fn(&str) -> Option<&'v str>,
) -> bool {
    // What the agent takes for true.
    let is_on = |word: &str| ["true", "yes", "on", "1"].contains(&&*word.to_ascii_lowercase());
    let of_all = settings.ssl_enable.unwrap_or(true);
    match (variable("INTROSPECT_SSL_ENABLE"), variable("SSL_ENABLE")) {
        (None, _) => settings.introspect_ssl_enable.unwrap_or(of_all),
        (Some(""), None | Some("")) => of_all,
        (Some(""), Some(word)) | (Some(word), _) => is_on(word),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(settings: Value, variables: &[(&str, &str)]) -> Introspect {
        let variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        introspect(&serde_json::from_value(settings).unwrap(), &variables.collect())
    }

    #[test]
    fn a_variable_moves_the_port_or_the_address() {
        assert_eq!(of(json!({}), &[]).ports, [8085]);
        assert_eq!(of(json!({}), &[("VROUTER_AGENT_INTROSPECT_PORT", " 9085")]).ports, [9085]);
        assert_eq!(of(json!({}), &[("VROUTER_AGENT_INTROSPECT_PORT", "x")]).ports, [8085]);
        let elsewhere =
            |word| of(json!({}), &[("INTROSPECT_LISTEN_ALL", word)]).may_listen_elsewhere;
        assert!(elsewhere("False") && !elsewhere("True") && !elsewhere(""));
        assert!(!of(json!({}), &[]).may_listen_elsewhere);
    }

    #[test]
    fn an_agent_may_be_set_to_speak_without_tls() {
        let plain = |settings, variables: &[(&str, &str)]| of(settings, variables).is_plain;
        assert!(!plain(json!({}), &[]));
        assert!(plain(json!({"introspectSslEnable": false}), &[]));
        assert!(plain(json!({"sslEnable": false}), &[]));
        assert!(!plain(json!({"sslEnable": false, "introspectSslEnable": true}), &[]));
        for (word, is_plain) in [("False", true), ("True", false), ("1", false), ("on", false)] {
            assert_eq!(plain(json!({}), &[("INTROSPECT_SSL_ENABLE", word)]), is_plain, "{word}");
        }
        assert!(!plain(json!({"introspectSslEnable": false}), &[("INTROSPECT_SSL_ENABLE", "")]));
        assert!(plain(json!({}), &[("INTROSPECT_SSL_ENABLE", ""), ("SSL_ENABLE", "no")]));
    }
}
