//! What a component takes from its Manager: a value of its own wins as a whole, an empty one
//! counts as unset. (Authentication is another matter: there the Manager's always wins.)

use std::collections::BTreeMap;

use opensdn_policy_sdk::Pointer;

/// A field's value and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field<T> {
    /// The value.
    pub value: T,
    /// Where it is.
    pub at: Pointer,
}

/// A value that may be there and still be empty.
pub trait Inheritable {
    /// Whether it is empty, so that the Manager's value counts.
    fn says_nothing(&self) -> bool;
}

impl<V> Inheritable for BTreeMap<String, V> {
    fn says_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl<T> Inheritable for Vec<T> {
    fn says_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl Inheritable for String {
    fn says_nothing(&self) -> bool {
        self.is_empty()
    }
}

/// The value that counts: the component's own, else the Manager's. `own` and `inherited` say
/// where each is or would be.
pub fn effective<'a, T: Inheritable>(
    own: (Option<&'a T>, Pointer),
    inherited: Option<(Option<&'a T>, Pointer)>,
) -> Field<Option<&'a T>> {
    let says = |value: Option<&'a T>| value.filter(|value| !value.says_nothing());
    match (says(own.0), inherited) {
        (None, Some((value, at))) => Field { value: says(value), at },
        (value, _) => Field { value, at: own.1 },
    }
}

/// As [`effective`], for a field of which an empty value is one too, as of `distribution`: the Manager's counts only
/// where the component has none.
pub fn effective_if_given<'a, T>(
    own: (Option<&'a T>, Pointer),
    inherited: Option<(Option<&'a T>, Pointer)>,
) -> Field<Option<&'a T>> {
    let (value, at) = match (own.0, inherited) {
        (None, Some(inherited)) => inherited,
        _ => own,
    };
    Field { value, at }
}

#[cfg(test)]
mod tests {
    use opensdn_policy_sdk::Pointer;

    use super::{Field, effective, effective_if_given};

    fn check(own: Option<&str>, inherited: Option<Option<&str>>, expected: (Option<&str>, &str)) {
        let (own, inherited) =
            (own.map(str::to_owned), inherited.map(|value| value.map(str::to_owned)));
        let found = effective(
            (own.as_ref(), Pointer::from("/own")),
            inherited.as_ref().map(|value| (value.as_ref(), Pointer::from("/manager"))),
        );
        assert_eq!((found.value.map(String::as_str), found.at.as_str()), expected);
    }

    #[test]
    fn an_own_value_wins_unless_it_is_empty() {
        check(Some("a"), Some(Some("b")), (Some("a"), "/own"));
        check(Some(""), Some(Some("b")), (Some("b"), "/manager"));
        check(None, Some(Some("b")), (Some("b"), "/manager"));
    }

    #[test]
    fn nothing_said_anywhere_is_none() {
        check(None, Some(Some("")), (None, "/manager"));
        check(Some(""), None, (None, "/own"));
    }

    #[test]
    fn an_empty_value_that_is_one_wins() {
        let at = |place: &str| Pointer::from(place);
        let found = effective_if_given((Some(&""), at("/own")), Some((Some(&"b"), at("/manager"))));
        assert_eq!(found, Field { value: Some(&""), at: at("/own") });
        let found = effective_if_given((None, at("/own")), Some((Some(&"b"), at("/manager"))));
        assert_eq!(found, Field { value: Some(&"b"), at: at("/manager") });
        let found = effective_if_given::<&str>((None, at("/own")), None);
        assert_eq!(found, Field { value: None, at: at("/own") });
    }
}
