//! Why claims were not taken, in words for whoever is refused.

use opensdn_crds::unique_claim::Holder as Held;
use opensdn_policy_host::Claim;

/// Why claims were not taken.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Somebody else has them. The only variant that is about the object in review.
    #[error("{}", .0.iter().map(Conflict::message).collect::<Vec<_>>().join("; "))]
    Held(Vec<Conflict>),
    /// A claim has the name that stands for another scope and key, so nobody could take it.
    #[error(
        "take {key:?} ({scope}): the UniqueClaim {name} is about something else, so it was made by hand; delete it with `kubectl delete uniqueclaim {name}`"
    )]
    Forged {
        /// Name of the claim.
        name: String,
        /// Scope that the name stands for.
        scope: String,
        /// Key that the name stands for.
        key: String,
    },
    /// The API server refused a call.
    #[error("{doing} {name}")]
    Api {
        /// What was to be done.
        doing: Doing,
        /// Name of the claim, or of its holder.
        name: String,
        /// What it said.
        #[source]
        source: Box<kube::Error>,
    },
    /// The API server did not answer a call.
    #[error("{doing} {name}: the API server did not answer within {patience:?}; try again")]
    NoAnswer {
        /// What was to be done.
        doing: Doing,
        /// Name of the claim, or of its holder.
        name: String,
        /// How long it was given.
        patience: std::time::Duration,
    },
    /// The review's time is over.
    #[error("take the claims in time: the API server answered too slowly; try again")]
    Deadline,
    /// Others changed the same claim again and again.
    #[error("take the UniqueClaim {name}: other requests for the same object change it; try again")]
    Contended {
        /// Name of the claim.
        name: String,
    },
    /// The task that takes them ended without an answer: a fault of this program.
    #[error("take the claims: the task ended without a result; try again and report this")]
    Broken,
}

/// The call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Create a claim.
    Create,
    /// Read a claim.
    Read,
    /// Change a claim.
    Change,
    /// Delete a claim.
    Delete,
    /// Read the object that holds a claim.
    ReadHolder,
    /// Write the condition and the Event of an object that lost a key.
    Tell,
}

impl std::fmt::Display for Doing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Create => "create the UniqueClaim",
            Self::Read => "read the UniqueClaim",
            Self::Change => "change the UniqueClaim",
            Self::Delete => "delete the UniqueClaim",
            Self::ReadHolder => "read the holder of a UniqueClaim,",
            Self::Tell => "write who has its key to the status of",
        })
    }
}

/// A key that somebody else has.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// What was wanted.
    pub claim: Claim,
    /// Who has it.
    pub held: Held,
    /// Name of the UniqueClaim.
    pub name: String,
    /// What is known of the holder.
    pub tenure: Tenure,
}

/// What is known of the object that holds a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tenure {
    /// It is stored.
    Stored,
    /// It is not stored: its create is under way or was refused a moment ago, or it was deleted.
    Pending {
        /// After how many seconds the claim is given up.
        seconds: u64,
    },
    /// Another object of the same name is stored now.
    Replaced,
    /// It could not be read.
    Unknown,
}

impl Conflict {
    /// What is wrong: which value, and who has it.
    #[must_use]
    pub fn message(&self) -> String {
        let Claim { scope, key, .. } = &self.claim;
        let state = match self.tenure {
            Tenure::Stored | Tenure::Unknown => "",
            Tenure::Pending { .. } => ", which is not stored (yet)",
            Tenure::Replaced => ", of which a new one of the same name is stored",
        };
        format!("{key} ({scope}) is already taken by {}{state}", describe(&self.held))
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let Self { claim: Claim { pointer, .. }, held, name, tenure } = self;
        let other = match tenure {
            Tenure::Stored => "change or delete that object first".to_owned(),
            Tenure::Pending { seconds } => format!(
                "try again in {seconds} seconds: if that object is not stored by then, its claim is released"
            ),
            Tenure::Replaced | Tenure::Unknown => {
                format!("see `kubectl describe uniqueclaim {name}` for who holds it")
            }
        };
        let own = if held.pointer.as_deref() == Some(pointer) { "here" } else { pointer.as_str() };
        format!("choose another value {}, or {other}", place(own))
    }
}

fn place(pointer: &str) -> String {
    if pointer == "here" || pointer.is_empty() { "here".into() } else { format!("at {pointer}") }
}

/// A holder as its user knows it: `LinkLocalService prod/metrics (/spec/ip)`.
pub(crate) fn describe(held: &Held) -> String {
    let Held { kind, namespace, name, pointer, .. } = held;
    let name = match namespace.as_deref() {
        None | Some("") => name.clone(),
        Some(namespace) => format!("{namespace}/{name}"),
    };
    match pointer.as_deref() {
        None | Some("") => format!("{kind} {name}"),
        Some(pointer) => format!("{kind} {name} ({pointer})"),
    }
}
