//! A label selector as it is written on kubectl's command line, for an AdmissionPolicy.

use std::collections::BTreeMap;

use opensdn_crds::admission_policy::{LabelRequirement, LabelSelector};

/// Reads `team=network,tier!=test,judged,!exempt`.
///
/// # Errors
/// It is no selector; the text says why.
pub(crate) fn parse(text: &str) -> Result<LabelSelector, String> {
    let mut labels = BTreeMap::new();
    let mut requirements = Vec::new();
    for term in text.split(',').map(str::trim) {
        if let Some((key, value)) = term.split_once("!=") {
            requirements.push(requirement(key, "NotIn", Some(value))?);
        } else if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
            labels.insert(word(key)?, value.trim().to_owned());
        } else if let Some(key) = term.strip_prefix('!') {
            requirements.push(requirement(key, "DoesNotExist", None)?);
        } else {
            requirements.push(requirement(term, "Exists", None)?);
        }
    }
    Ok(LabelSelector {
        match_labels: Some(labels).filter(|labels| !labels.is_empty()),
        match_expressions: Some(requirements).filter(|requirements| !requirements.is_empty()),
    })
}

fn requirement(key: &str, operator: &str, value: Option<&str>) -> Result<LabelRequirement, String> {
    Ok(LabelRequirement {
        key: word(key)?,
        operator: operator.to_owned(),
        values: value.map(|value| vec![value.trim().to_owned()]),
    })
}

fn word(key: &str) -> Result<String, String> {
    let key = key.trim();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
    if key.is_empty() || !key.chars().all(plain) {
        return Err(format!("{key:?} is no label; write key=value, key!=value, key or !key"));
    }
    Ok(key.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::parse;

    #[test]
    fn the_forms_of_kubectl_are_understood() {
        let selector = parse("team=network, tier!=test,judged,!exempt,a==b").unwrap();
        let expected = json!({
            "matchLabels": {"team": "network", "a": "b"},
            "matchExpressions": [
                {"key": "tier", "operator": "NotIn", "values": ["test"]},
                {"key": "judged", "operator": "Exists"},
                {"key": "exempt", "operator": "DoesNotExist"},
            ],
        });
        assert_eq!(serde_json::to_value(selector).unwrap(), expected);
        for wrong in ["", "a=b,,", "a in (b)", "=b"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
