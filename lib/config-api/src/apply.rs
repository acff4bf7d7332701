//! Writes the rows of a cluster without a loss to others. The Config API has no conditional write, so a write is between
//! a reading that was still current and readings that show it: what another writer then has overwritten is written
//! again, for a bounded number of attempts. Which rows are wanted, and where a backup goes, is not known here.

mod run;

use std::time::Duration;

use serde_json::Value;

use crate::client::ConfigApi;
use crate::edit::{self, Change, Conflicts, Edit, Foreign, Unwanted, Wanted};
use crate::link_local::{Key, Row};
use crate::lock::{self, Lock};
use crate::ownership::{self, ClusterId, Records};
use crate::vrouter_config::{self, ReadError, VrouterConfig};

use run::Run;

/// What is to be.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Whose rows.
    pub cluster: &'a ClusterId,
    /// All rows of the cluster.
    pub rows: &'a [Row],
    /// What becomes of a row of others with a key of ours.
    pub foreign: Foreign,
    /// What becomes of a row that the cluster has and that is not among these.
    pub unwanted: Unwanted,
}

/// How often, and after what time.
#[derive(Clone, Debug)]
pub struct Timing {
    /// After a write it is read after each of these.
    pub settle: Vec<Duration>,
    /// So many writes at most.
    pub attempts: u32,
    /// The longest wait between two of them.
    pub pause: Duration,
    /// Until missing annotations are taken for missing: a writer that replaces all of them removes them first.
    pub confirm: Duration,
    /// The lock.
    pub lock: lock::Timing,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            settle: vec![Duration::ZERO, Duration::from_secs(1), Duration::from_secs(5)],
            attempts: 10,
            pause: Duration::from_millis(500),
            confirm: Duration::from_secs(1),
            lock: lock::Timing::default(),
        }
    }
}

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The differences to what was there; none if nothing was written.
    pub changes: Vec<Change>,
    /// Keys of rows that were there already and are used as they are.
    pub adopted: Vec<Key>,
    /// Keys of rows of ours that stay, since another cluster uses them.
    pub shared: Vec<Key>,
    /// Rows of others that a third writer had dropped, together with ours.
    pub put_back: Vec<Row>,
    /// How often the rows were written, or that was tried.
    pub attempts: u32,
    /// How many requests were sent.
    pub calls: u64,
    /// Where the rows are as they were before.
    pub backup: Option<String>,
}

/// Why it was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Config API does not answer, or refuses.
    #[error(transparent)]
    Api(#[from] crate::client::Error),
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The lock cannot be had.
    #[error(transparent)]
    Lock(#[from] lock::Error),
    /// Rows of others are in the way. Unless they came meanwhile, nothing was written.
    #[error(transparent)]
    Conflicts(#[from] Conflicts),
    /// A record cannot be read.
    #[error(transparent)]
    Ownership(#[from] ownership::Error),
    /// There is no backup; nothing was written.
    #[error("the rows as they are were not saved, so nothing was written")]
    Backup(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Others write faster.
    #[error(transparent)]
    Fought(#[from] Box<Fought>),
}

/// How it ended where others write faster.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.text())]
pub struct Fought {
    /// How often it was tried.
    pub attempts: u32,
    /// What is not as it is wanted.
    pub changes: Vec<Change>,
    /// Rows of others that were there and are not.
    pub vanished: Vec<Row>,
    /// Where the rows are as they were before.
    pub backup: Option<String>,
    /// Why the last write was refused, if it was.
    pub source: Option<crate::client::Error>,
}

impl Fought {
    fn text(&self) -> String {
        let attempts = self.attempts;
        let mut text = match self.source {
            Some(_) => format!(
                "the Config API did not take linklocal_services in any of {attempts} attempts: repair it first"
            ),
            None => format!(
                "linklocal_services was not as it had been written in any of {attempts} attempts: other writers \
                 overwrite it (an open page of the Web UI, provision_linklocal.py, another program; stop them, and try \
                 again), or the clocks of the servers of the Config API differ"
            ),
        };
        let changes = self.changes.iter().map(|change| format!("; not written: {change}"));
        let vanished = self.vanished.iter().map(|row| format!("; vanished, of others: {row}"));
        let backup = self.backup.iter();
        let backup = backup.map(|at| format!("; the rows before the first attempt are in {at}"));
        text.extend(changes.chain(vanished).chain(backup));
        text
    }
}

/// What would be done.
///
/// # Errors
/// Rows of others are in the way, or the Config API does not give them.
pub async fn preview(
    api: &ConfigApi,
    request: &Request<'_>,
    timing: &Timing,
) -> Result<Edit, Error> {
    let (read, records) = read(api, request, timing).await?;
    Ok(edit::edit(&read.rows, &wanted(request, &records))?)
}

/// Makes the rows what they are to be. Where they are, nothing is written. `save` gets the property before the first
/// write and says where it is then.
///
/// # Errors
/// Rows of others are in the way, others write faster, or the Config API does not answer or refuses.
pub async fn apply<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    api: &ConfigApi,
    request: &Request<'_>,
    timing: &Timing,
    save: impl AsyncFnOnce(Value) -> Result<String, E>,
) -> Result<Outcome, Error> {
    let calls = api.calls();
    if let Some(done) = in_place(api, request, timing).await? {
        return Ok(Outcome { calls: api.calls() - calls, ..done });
    }
    let lock = lock::acquire(api, &request.cluster.to_string(), timing.lock).await?;
    let done = apply_under(api, request, timing, &lock, save).await;
    lock.release().await;
    Ok(Outcome { calls: api.calls() - calls, ..done? })
}

/// The same under a lock that is held already, for a caller that changes more than the rows.
///
/// # Errors
/// As of [`apply`].
pub async fn apply_under<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    api: &ConfigApi,
    request: &Request<'_>,
    timing: &Timing,
    lock: &Lock<'_>,
    save: impl AsyncFnOnce(Value) -> Result<String, E>,
) -> Result<Outcome, Error> {
    match in_place(api, request, timing).await? {
        Some(done) => Ok(done),
        None => Run::new(api, request, timing, lock).run(save).await,
    }
}

/// What there is, where nothing has to be written.
async fn in_place(
    api: &ConfigApi,
    request: &Request<'_>,
    timing: &Timing,
) -> Result<Option<Outcome>, Error> {
    let (read, records) = read(api, request, timing).await?;
    let edit = edit::edit(&read.rows, &wanted(request, &records))?;
    let is_done = edit.changes.is_empty() && edit.held == records.ours.rows;
    Ok(is_done.then(|| run::outcome_of(&edit)))
}

/// Reads the object and its records. That there is no annotation at all is believed the second time.
async fn read(
    api: &ConfigApi,
    request: &Request<'_>,
    timing: &Timing,
) -> Result<(VrouterConfig, Records), Error> {
    let is_there = |config: &VrouterConfig| !config.annotations.is_empty();
    let read = vrouter_config::read_confirmed(api, timing.confirm, is_there).await?;
    let records = Records::read(&read.annotations, request.cluster)?;
    Ok((read, records))
}

fn wanted<'a>(request: &Request<'a>, records: &'a Records) -> Wanted<'a> {
    Wanted {
        rows: request.rows,
        ours: &records.ours.rows,
        others: &records.other_keys,
        written: &records.other_written,
        foreign: request.foreign,
        unwanted: request.unwanted,
    }
}
