//! Why claims were not taken, in words for the author of the request. Deliberately not here: how
//! that is decided (`decide.rs`).

use opensdn_crds::unique_claim::Holder as StoredHolder;
use opensdn_policy_host::Claim;
use opensdn_runtime::call::CallError;

use super::name::NoName;

/// Why claims were not taken.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another object has them. The only variant that is about the object in review.
    #[error("{}", .0.iter().map(Conflict::message).collect::<Vec<_>>().join("; "))]
    Held(Vec<Conflict>),
    /// A claim has the name that identifies another scope and key, so no object could take it.
    #[error(
        "take {key:?} ({scope}): the UniqueClaim {name} is about something else, so it was made by hand; delete it with `kubectl delete uniqueclaim {name}`"
    )]
    Forged {
        /// Name of the claim.
        name: String,
        /// Scope that the name identifies.
        scope: String,
        /// Key that the name identifies.
        key: String,
    },
    /// The object cannot be called that, so it is never stored.
    #[error(transparent)]
    NoName(#[from] NoName),
    /// A call to the API server failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The review's time is over.
    #[error("take the claims in time: the API server answered too slowly; try again")]
    Deadline,
    /// Others kept changing the same claim.
    #[error("take the UniqueClaim {name}: other requests for the same object change it; try again")]
    Contended {
        /// Name of the claim.
        name: String,
    },
    /// The task that takes them ended without an answer: a fault of this program.
    #[error("take the claims: the task ended without a result; try again and report this")]
    Broken,
}

/// A key that another object has.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// What was wanted.
    pub claim: Claim,
    /// Who has it.
    pub held: StoredHolder,
    /// Name of the UniqueClaim.
    pub name: String,
    /// What is known of the holder.
    pub state: HolderState,
}

/// What is known of the object that holds a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HolderState {
    /// It is stored.
    Stored,
    /// It is not stored: its create is under way or was refused a moment ago, or it was deleted.
    Pending {
        /// After how many seconds the claim is released.
        seconds: u64,
    },
    /// Another object of the same name is stored now.
    Replaced,
    /// It could not be read.
    Unknown,
    /// The object in review, or one that is gone; others have the key with the value that it had.
    Shared,
}

impl Conflict {
    /// What is wrong: which value, and who has it.
    #[must_use]
    pub fn message(&self) -> String {
        let Claim { scope, key, .. } = &self.claim;
        let holder = describe(&self.held);
        let suffix = match self.state {
            HolderState::Shared => {
                return format!(
                    "{key} ({scope}) is shared by {holder} and others, which say the same of it, and something \
                     else is said here"
                );
            }
            HolderState::Stored | HolderState::Unknown => "",
            HolderState::Pending { .. } => ", which is not stored (yet)",
            HolderState::Replaced => ", of which a new one of the same name is stored",
        };
        format!("{key} ({scope}) is already taken by {holder}{suffix}")
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let Self { claim: Claim { pointer, .. }, held, name, state } = self;
        let other = match state {
            // After a change it waits for the grace of claims.
            HolderState::Stored => {
                "change or delete that object first, and after a change try again two minutes later"
                    .to_owned()
            }
            HolderState::Pending { seconds } => format!(
                "try again in {seconds} seconds: if that object is not stored by then, its claim is released"
            ),
            HolderState::Shared => {
                "change or delete the others first, and try again two minutes later".to_owned()
            }
            HolderState::Replaced | HolderState::Unknown => {
                format!("see `kubectl describe uniqueclaim {name}` for who holds it")
            }
        };
        let own = if held.pointer.as_deref() == Some(pointer) { "here" } else { pointer.as_str() };
        format!("choose another value {}, or {other}", location(own))
    }
}

fn location(pointer: &str) -> String {
    if pointer == "here" || pointer.is_empty() { "here".into() } else { format!("at {pointer}") }
}

/// A holder as its user knows it: `LinkLocalService prod/metrics (/spec/ip)`.
pub(crate) fn describe(held: &StoredHolder) -> String {
    let StoredHolder { kind, namespace, name, pointer, .. } = held;
    let name = match namespace.as_deref() {
        None | Some("") => name.clone(),
        Some(namespace) => format!("{namespace}/{name}"),
    };
    match pointer.as_deref() {
        None | Some("") => format!("{kind} {name}"),
        Some(pointer) => format!("{kind} {name} ({pointer})"),
    }
}
