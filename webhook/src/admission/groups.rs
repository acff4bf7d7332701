//! The groups of the user who asks.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// No user is in so many. As a list each takes 24 bytes besides its name, in each review that waits.
pub(super) const MOST_GROUPS: usize = 2_000;

/// Names of groups, not too many.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Groups(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Groups {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(GroupsVisitor)
    }
}

struct GroupsVisitor;

impl<'de> Visitor<'de> for GroupsVisitor {
    type Value = Groups;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a list of at most {MOST_GROUPS} names")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Groups, A::Error> {
        let mut groups = Vec::new();
        while let Some(group) = list.next_element::<String>()? {
            if groups.len() == MOST_GROUPS {
                return Err(A::Error::invalid_length(MOST_GROUPS + 1, &self));
            }
            groups.push(group);
        }
        Ok(Groups(groups))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_groups_as_a_user_may_have_are_read_and_one_more_is_refused() {
        let text = |number: usize| format!("[{}]", vec!["\"\""; number].join(","));
        let read = |text: &str| serde_json::from_str::<Option<Groups>>(text);
        assert_eq!(read("null").unwrap(), None);
        assert_eq!(read("[\"a\"]").unwrap(), Some(Groups(vec!["a".to_owned()])));
        assert_eq!(read(&text(MOST_GROUPS)).unwrap().unwrap().0.len(), MOST_GROUPS);
        assert!(read(&text(MOST_GROUPS + 1)).is_err());
        assert!(read("[1]").is_err());
    }
}
