//! The members of a service, one on each node that its selector matches, in words.

use opensdn_policy_components::nodes::{CONTROL_PLANE, Selector};

/// The selector in words.
pub(crate) fn describe(selector: Option<&Selector>) -> String {
    match selector {
        Some(selector) => {
            let pairs: Vec<_> =
                selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("the label {}", pairs.join(" and "))
        }
        None => format!("the label {} (the default, as no nodeSelector is set)", CONTROL_PLANE[0]),
    }
}

/// The first few names.
pub(crate) fn list(names: &[String]) -> String {
    const SHOWN: usize = 6;
    let mut text = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(", …");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Selector, describe, list};

    #[test]
    fn describes_selectors_and_long_lists() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let selector = Selector::from([pair("rack", "a"), pair("role", "db")]);
        assert_eq!(describe(Some(&selector)), "the label rack=a and role=db");
        let names: Vec<_> = (0..8).map(|number| format!("n{number}")).collect();
        assert_eq!(list(&names), "n0, n1, n2, n3, n4, n5, …");
    }
}
