//! Why there is no report: what is wrong, what led to it, and what to do. What is wrong with the
//! manifests is no error but in the report.

use opensdn_error_chain::error_causes;

/// Why there is no report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Who has to act.
    pub category: Category,
    /// A stable code for scripts: `unreadable-file`.
    pub code: &'static str,
    /// What is wrong, and where.
    pub message: String,
    /// What led to it, outermost first.
    pub causes: Vec<String>,
    /// What to do.
    pub hint: String,
}

/// Who has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// The user: a name, a file or a policy cannot be used.
    Input,
    /// The cluster did not answer, or not this user.
    Cluster,
}

impl Error {
    /// What was named cannot be used.
    pub(crate) fn input(
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let (message, hint) = (message.into(), hint.into());
        Self { category: Category::Input, code, message, causes: Vec::new(), hint }
    }

    /// The same, with what led to it.
    pub(crate) fn because(mut self, error: &dyn std::error::Error) -> Self {
        self.causes.extend(error_causes(error));
        self
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)?;
        self.causes.iter().try_for_each(|cause| write!(formatter, ": {cause}"))
    }
}

impl std::error::Error for Error {}
