//! Names of rows. A number is in a name only where a role has several nodes. A row that is there keeps its name, so a
//! new one takes a number that none has yet.

use std::collections::BTreeSet;

use crate::roles::{Naming, Role};

/// The names of a plan's rows.
pub(crate) struct Names<'a> {
    naming: Naming,
    cluster: &'a str,
    /// In small letters, as agents compare them.
    taken: BTreeSet<String>,
}

impl<'a> Names<'a> {
    /// Where these are taken already.
    pub(crate) fn new(
        naming: Naming,
        cluster: &'a str,
        taken: impl IntoIterator<Item = String>,
    ) -> Self {
        let taken = taken.into_iter().map(|name| name.to_lowercase()).collect();
        Self { naming, cluster, taken }
    }

    /// The name of a role's node, where there are so many of them, and it is this one from 1.
    pub(crate) fn usual(&self, role: Role, number: usize, count: usize) -> String {
        let (name, separator) = match self.naming {
            Naming::Doc => (role.display_name().to_owned(), ' '),
            Naming::Scoped => (format!("{}-{}", self.cluster, role.label()), '-'),
        };
        if count > 1 { format!("{name}{separator}{number}") } else { name }
    }

    /// The same for a new row: with the next number that is free.
    pub(crate) fn take(&mut self, role: Role, number: usize, count: usize) -> String {
        let others = (count + 1..).map(|number| self.usual(role, number, number));
        let mut candidates = std::iter::once(self.usual(role, number, count)).chain(others);
        let free = candidates.find(|name| !self.taken.contains(&name.to_lowercase()));
        // The numbers have no end, so one is free.
        let name = free.unwrap_or_default();
        self.taken.insert(name.to_lowercase());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::Names;
    use crate::roles::{Naming, Role};

    #[test]
    fn only_a_role_with_several_nodes_has_numbers() {
        let names = Names::new(Naming::Doc, "a", []);
        assert_eq!(names.usual(Role::Rabbitmq, 1, 1), "Contrail Msg Queue");
        assert_eq!(names.usual(Role::Analytics, 2, 2), "Contrail Analytics 2");
        let names = Names::new(Naming::Scoped, "a", []);
        assert_eq!(names.usual(Role::ConfigDatabase, 3, 3), "a-config-database-3");
    }

    #[test]
    fn a_new_row_takes_a_number_that_none_has() {
        let taken = ["contrail analytics 1".to_owned(), "Contrail Analytics 2".to_owned()];
        let mut names = Names::new(Naming::Doc, "a", taken);
        assert_eq!(names.take(Role::Analytics, 1, 3), "Contrail Analytics 4");
        assert_eq!(names.take(Role::Analytics, 3, 3), "Contrail Analytics 3");
    }
}
