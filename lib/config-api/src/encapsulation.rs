//! `encapsulation_priorities` of global-vrouter-config, by which agents choose their tunnels: one value for the whole
//! network, so it has one owner, with a record in an annotation. Deliberately not here: what is done about a conflict.

mod record;
mod value;

use std::fmt;

use serde_json::{Map, Value};

use crate::apply::Timing;
use crate::client::{ConfigApi, Error as ApiError};
use crate::jitter::jittered;
use crate::lock::{self, Lock};
use crate::operations::Version;
use crate::ownership::ClusterId;
use crate::pairs;
use crate::vrouter_config::{ANNOTATIONS, KIND, NAME, annotate, remove_annotation};

pub use record::{Record, Unreadable};
pub use value::{Encapsulation, NotPriorities, Priorities, Stored};

use record::State;

const FIELD: &str = "encapsulation_priorities";

/// As it was read.
#[derive(Clone, Debug)]
pub struct Current {
    /// The value.
    pub stored: Stored,
    /// Who has set it, where that is recorded.
    pub record: Option<Record>,
    uuid: String,
    etag: String,
}

/// What is to be.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Whose value it is then.
    pub owner: &'a ClusterId,
    /// The value.
    pub wanted: &'a Priorities,
    /// What becomes of a value that is another's.
    pub others: Others,
}

/// What becomes of a value that another owner has set, or that was changed since we have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// It is a conflict, and nothing is written.
    Respect,
    /// It is replaced by ours.
    TakeOver,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is as wanted, and ours; the value was not written.
    AsWanted,
    /// It is as wanted, but another's, who wants the same; nothing was written.
    Shared {
        /// The other.
        owner: String,
    },
    /// It was written.
    Written {
        /// What was there.
        before: Stored,
    },
    /// It is not as wanted.
    Conflict(Conflict),
}

/// Why the value is not as wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// It is another's.
    OtherOwner {
        /// The other.
        owner: String,
        /// What it has set.
        set: Priorities,
        /// What is there.
        found: Stored,
    },
    /// It was changed since we set it, by a writer that leaves no record.
    Changed {
        /// What we had set.
        set: Priorities,
        /// What is there.
        found: Stored,
    },
    /// It was not there after any of our writes: another overwrites it, or the clocks of the servers differ.
    Overwritten {
        /// How often it was written.
        attempts: u32,
        /// What is there.
        found: Stored,
    },
}

impl fmt::Display for Conflict {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherOwner { owner, set, found } => {
                write!(to, "{FIELD} belong to {owner}, which has set {set}, and are {found}")
            }
            Self::Changed { set, found } => {
                write!(to, "{FIELD} were set to {set}, and another writer has made them {found}")
            }
            Self::Overwritten { attempts, found } => write!(
                to,
                "{FIELD} were {found} after each of {attempts} writes: another writer overwrites them, or the clocks of \
                 the servers of the Config API differ"
            ),
        }
    }
}

/// Why it is neither as wanted nor known not to be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Config API does not answer, or refuses.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The lock cannot be had.
    #[error(transparent)]
    Lock(#[from] lock::Error),
    /// The record cannot be read.
    #[error(transparent)]
    Record(#[from] Unreadable),
}

/// Reads it. That there is no annotation at all is believed the second time, after `timing.confirm`.
///
/// # Errors
/// The Config API does not give it, or the record cannot be read.
pub async fn read(api: &ConfigApi, timing: &Timing) -> Result<Current, Error> {
    let uuid = api.id_of(KIND, &NAME).await?.ok_or(ApiError::NoVrouterConfig)?;
    read_by_id(api, uuid, timing).await
}

async fn read_by_id(api: &ConfigApi, uuid: String, timing: &Timing) -> Result<Current, Error> {
    let mut is_confirmed = false;
    loop {
        let object = api.object(KIND, &uuid, &[FIELD, ANNOTATIONS]).await?;
        let object = object.ok_or(ApiError::NoVrouterConfig)?;
        let annotations = pairs::read(object.fields.get(ANNOTATIONS));
        if annotations.is_empty() && !is_confirmed {
            is_confirmed = true;
            tokio::time::sleep(timing.confirm).await;
            continue;
        }
        let stored = Stored::read(object.fields.get(FIELD));
        return Ok(Current { stored, record: Record::of(&annotations)?, uuid, etag: object.etag });
    }
}

/// Makes it what is wanted, unless another's value is in the way. Where it is, nothing is written but the record that it
/// is ours.
///
/// # Errors
/// The Config API does not answer or refuses, or the record cannot be read.
pub async fn ensure(
    api: &ConfigApi,
    request: &Request<'_>,
    timing: &Timing,
) -> Result<Outcome, Error> {
    let current = read(api, timing).await?;
    if let Step::Done(outcome) = step(request, &current) {
        return Ok(outcome);
    }
    let lock = lock::acquire(api, &request.owner.to_string(), timing.lock).await?;
    let done = ensure_under(api, request, timing, &lock).await;
    lock.release().await;
    done
}

/// Gives up the record, where it is ours; the value stays, since the network depends on it.
///
/// # Errors
/// The Config API does not answer or refuses, or the record cannot be read.
pub async fn release(api: &ConfigApi, owner: &ClusterId, timing: &Timing) -> Result<(), Error> {
    let current = read(api, timing).await?;
    if current.record.is_some_and(|record| record.is_of(owner)) {
        remove_annotation(api, &current.uuid, record::ANNOTATION).await?;
    }
    Ok(())
}

/// What is to be done next.
enum Step {
    Done(Outcome),
    /// The value is as wanted, and is ours from now on.
    Claim,
    Write,
}

fn step(request: &Request<'_>, current: &Current) -> Step {
    let is_wanted = current.stored.is(request.wanted);
    let found = || current.stored.clone();
    match &current.record {
        Some(record) if !record.is_of(request.owner) => {
            let owner = record.owner.clone();
            match (request.others, is_wanted && record.set == *request.wanted) {
                (_, true) => Step::Done(Outcome::Shared { owner }),
                (Others::TakeOver, _) if is_wanted => Step::Claim,
                (Others::TakeOver, _) => Step::Write,
                (Others::Respect, _) => {
                    let set = record.set.clone();
                    let conflict = Conflict::OtherOwner { owner, set, found: found() };
                    Step::Done(Outcome::Conflict(conflict))
                }
            }
        }
        Some(record) if is_wanted => match (record.state, record.set == *request.wanted) {
            (State::Written, true) => Step::Done(Outcome::AsWanted),
            _ => Step::Claim,
        },
        Some(record) => {
            // A run that was killed between its record and its write is continued.
            let is_as_set = record.state == State::Writing || current.stored.is(&record.set);
            match (request.others, is_as_set) {
                (Others::Respect, false) => {
                    let (set, found) = (record.set.clone(), found());
                    Step::Done(Outcome::Conflict(Conflict::Changed { set, found }))
                }
                _ => Step::Write,
            }
        }
        None if is_wanted => Step::Claim,
        // Without a record it is the provisioner's default, or an administrator's value of before.
        None => Step::Write,
    }
}

async fn ensure_under(
    api: &ConfigApi,
    request: &Request<'_>,
    timing: &Timing,
    lock: &Lock<'_>,
) -> Result<Outcome, Error> {
    let current = read(api, timing).await?;
    match step(request, &current) {
        Step::Done(outcome) => Ok(outcome),
        Step::Claim => {
            record(api, request, &current.uuid, State::Written).await?;
            Ok(Outcome::AsWanted)
        }
        Step::Write => {
            // What is recorded before it is written is never taken for another's.
            record(api, request, &current.uuid, State::Writing).await?;
            write(api, request, timing, lock, current).await
        }
    }
}

/// Writes the value until it stays, but not more often than is allowed.
async fn write(
    api: &ConfigApi,
    request: &Request<'_>,
    timing: &Timing,
    lock: &Lock<'_>,
    before: Current,
) -> Result<Outcome, Error> {
    let (uuid, before) = (before.uuid, before.stored);
    let mut found = before.clone();
    let mut failed = None;
    for attempt in 0..timing.attempts {
        if attempt > 0 {
            tokio::time::sleep(jittered(timing.pause)).await;
            lock.extend().await?;
        }
        let current = read_by_id(api, uuid.clone(), timing).await?;
        if current.record.as_ref().is_some_and(|record| !record.is_of(request.owner)) {
            // Another has claimed it without the lock: one claim is enough.
            let respect = Request { others: Others::Respect, ..*request };
            if let Step::Done(outcome) = step(&respect, &current) {
                return Ok(outcome);
            }
        }
        failed = put(api, request, &current).await?;
        match settled(api, request, &uuid, timing).await? {
            None => {
                record(api, request, &uuid, State::Written).await?;
                return Ok(Outcome::Written { before });
            }
            Some(other) => found = other,
        }
    }
    if let Some(error) = failed {
        return Err(error.into());
    }
    // So that the next run finds a conflict, and does not begin from the start.
    record(api, request, &uuid, State::Written).await?;
    Ok(Outcome::Conflict(Conflict::Overwritten { attempts: timing.attempts, found }))
}

/// Writes the value if it differs and what was read is still current; the error, if it may have been done all the same.
async fn put(
    api: &ConfigApi,
    request: &Request<'_>,
    current: &Current,
) -> Result<Option<ApiError>, ApiError> {
    let is_outdated = api.version(KIND, &current.uuid, &current.etag).await? == Version::Outdated;
    if is_outdated || current.stored.is(request.wanted) {
        return Ok(None);
    }
    let properties: Map<String, Value> =
        [(FIELD.to_owned(), request.wanted.json())].into_iter().collect();
    match api.put(KIND, &current.uuid, properties).await {
        Ok(()) => Ok(None),
        Err(error) if error.is_passing() => Ok(Some(error)),
        Err(error) => Err(error),
    }
}

/// What is there instead of the wanted value, after the waits in which others overwrite it.
async fn settled(
    api: &ConfigApi,
    request: &Request<'_>,
    uuid: &str,
    timing: &Timing,
) -> Result<Option<Stored>, ApiError> {
    for wait in &timing.settle {
        tokio::time::sleep(*wait).await;
        let object = api.object(KIND, uuid, &[FIELD]).await?.ok_or(ApiError::NoVrouterConfig)?;
        let stored = Stored::read(object.fields.get(FIELD));
        if !stored.is(request.wanted) {
            return Ok(Some(stored));
        }
    }
    Ok(None)
}

async fn record(
    api: &ConfigApi,
    request: &Request<'_>,
    uuid: &str,
    state: State,
) -> Result<(), ApiError> {
    let (owner, set) = (request.owner.to_string(), request.wanted.clone());
    let text = Record { owner, set, state }.json();
    annotate(api, uuid, record::ANNOTATION, &text).await
}

#[cfg(test)]
mod tests;
