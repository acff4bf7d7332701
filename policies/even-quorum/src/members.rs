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

#[cfg(test)]
mod tests {
    use super::{Selector, describe};

    #[test]
    fn describes_selectors() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let selector = Selector::from([pair("rack", "a"), pair("role", "db")]);
        assert_eq!(describe(Some(&selector)), "the label rack=a and role=db");
    }
}
