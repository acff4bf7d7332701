//! The loop by which rows are written: read, edit, look whether what was read is still current, record, write, read
//! again until it has settled.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Error, Fought, Outcome, Request, Timing, read, wanted};
use crate::client::{self, ConfigApi};
use crate::edit::{self, Change, Edit, Lost};
use crate::jitter::jittered;
use crate::link_local::{Key, Row, Rows};
use crate::lock::Lock;
use crate::operations::Version;
use crate::ownership::{How, Records};
use crate::vrouter_config::{self, VrouterConfig};

/// One run, under the lock.
pub(super) struct Run<'a> {
    api: &'a ConfigApi,
    request: &'a Request<'a>,
    timing: &'a Timing,
    lock: &'a Lock<'a>,
    /// The rows that we have written last.
    written: Option<Rows>,
    /// What was not as wanted, when it was looked at last.
    last: Step,
    /// Why the last write was refused.
    refused: Option<client::Error>,
    outcome: Outcome,
}

/// What there is to write.
#[derive(Clone, Default)]
struct Step {
    edit: Option<Edit>,
    lost: Vec<Lost>,
}

impl Step {
    fn changes(&self) -> Vec<Change> {
        self.edit.iter().flat_map(|edit| edit.changes.clone()).collect()
    }

    fn vanished(&self) -> Vec<Row> {
        self.lost.iter().map(|lost| lost.row.clone()).collect()
    }
}

/// Whether it is done.
enum Attempt {
    Done(Box<VrouterConfig>, Edit),
    Again,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        api: &'a ConfigApi,
        request: &'a Request<'a>,
        timing: &'a Timing,
        lock: &'a Lock<'a>,
    ) -> Self {
        Self {
            api,
            request,
            timing,
            lock,
            written: None,
            last: Step::default(),
            refused: None,
            outcome: Outcome::default(),
        }
    }

    pub(super) async fn run<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        mut self,
        save: impl AsyncFnOnce(Value) -> Result<String, E>,
    ) -> Result<Outcome, Error> {
        let (read, mut records) = read(self.api, self.request, self.timing).await?;
        let first = edit::edit(&read.rows, &wanted(self.request, &records))?;
        if !first.changes.is_empty() {
            self.outcome.backup =
                Some(save(read.rows.json()).await.map_err(|error| Error::Backup(error.into()))?);
            self.record_intent(&read, &mut records, &first).await?;
        }
        for attempt in 0..self.timing.attempts {
            if attempt > 0 {
                tokio::time::sleep(jittered(self.timing.pause)).await;
                self.lock.extend().await?;
            }
            if let Attempt::Done(read, edit) = self.attempt(&read.uuid, &records).await? {
                return self.finish(&read, &records, edit).await;
            }
        }
        Err(Error::from(Box::new(Fought {
            attempts: self.timing.attempts,
            changes: self.last.changes(),
            vanished: self.last.vanished(),
            backup: self.outcome.backup,
            source: self.refused,
        })))
    }

    /// Before rows are written, the record says that they are ours: a run that is killed in between leaves rows that the
    /// next one knows.
    async fn record_intent(
        &mut self,
        read: &VrouterConfig,
        records: &mut Records,
        edit: &Edit,
    ) -> Result<(), Error> {
        self.outcome.changes = edit.changes.clone();
        let before = records.ours.clone();
        records.ours.rows.extend(edit.held.clone());
        if records.ours != before {
            records.ours.write(self.api, &read.uuid, self.request.cluster).await?;
        }
        Ok(())
    }

    async fn attempt(&mut self, uuid: &str, records: &Records) -> Result<Attempt, Error> {
        let read = vrouter_config::read_by_id(self.api, uuid.to_owned()).await?;
        let Some(edit) = self.step(&read.rows, records)? else {
            return self.settle(uuid, records).await;
        };
        self.outcome.attempts += 1;
        if vrouter_config::version(self.api, &read).await? == Version::Outdated {
            return Ok(Attempt::Again);
        }
        match vrouter_config::write_rows(self.api, uuid, &edit.rows).await {
            Ok(()) => self.refused = None,
            // It may have been done all the same: what is read next says so.
            Err(error) if error.is_passing() => self.refused = Some(error),
            Err(error) => return Err(error.into()),
        }
        self.outcome.put_back.extend(self.last.vanished());
        self.written = Some(edit.rows);
        self.settle(uuid, records).await
    }

    /// Reads until no writer that was at work meanwhile can still come.
    async fn settle(&mut self, uuid: &str, records: &Records) -> Result<Attempt, Error> {
        let mut last = None;
        for time in &self.timing.settle {
            tokio::time::sleep(*time).await;
            let read = vrouter_config::read_by_id(self.api, uuid.to_owned()).await?;
            if self.step(&read.rows, records)?.is_some() {
                return Ok(Attempt::Again);
            }
            last = Some(read);
        }
        let read = match last {
            Some(read) => read,
            None => vrouter_config::read_by_id(self.api, uuid.to_owned()).await?,
        };
        let edit = edit::edit(&read.rows, &wanted(self.request, records))?;
        Ok(Attempt::Done(Box::new(read), edit))
    }

    /// What there is to write; nothing if all is as wanted. Rows of others that are gone are put back where ours are gone
    /// as well, for then a writer has written what it had read before; where ours are there, it has removed them.
    fn step(&mut self, rows: &Rows, records: &Records) -> Result<Option<Edit>, Error> {
        let wanted = wanted(self.request, records);
        let edit = edit::edit(rows, &wanted)?;
        if edit.changes.is_empty() {
            self.last = Step::default();
            return Ok(None);
        }
        let ours: BTreeSet<Key> =
            wanted.ours.keys().copied().chain(wanted.rows.iter().map(Row::key)).collect();
        let lost = self.written.as_ref().map(|written| edit::lost(written, rows, &ours));
        let lost = lost.unwrap_or_default();
        let edit = edit::edit(&edit::put_back(rows, &lost), &wanted)?;
        self.last = Step { edit: Some(edit.clone()), lost };
        Ok(Some(edit))
    }

    /// The record last: what is no longer there is in it until then.
    async fn finish(
        mut self,
        read: &VrouterConfig,
        records: &Records,
        edit: Edit,
    ) -> Result<Outcome, Error> {
        let stored = Records::read(&read.annotations, self.request.cluster)?.ours;
        // It was there before: that it is missing may be the middle of another's write of all annotations.
        let mut ours = if stored.is_empty() { records.ours.clone() } else { stored.clone() };
        ours.rows = edit.held.clone();
        if ours != stored {
            ours.write(self.api, &read.uuid, self.request.cluster).await?;
        }
        let done = outcome_of(&edit);
        self.outcome.adopted = done.adopted;
        self.outcome.shared = done.shared;
        Ok(self.outcome)
    }
}

/// Of an edit that has nothing to write.
pub(super) fn outcome_of(edit: &Edit) -> Outcome {
    let adopted = edit.held.iter().filter(|(_, held)| held.how == How::Adopted);
    Outcome {
        adopted: adopted.map(|(key, _)| *key).collect(),
        shared: edit.shared.clone(),
        ..Outcome::default()
    }
}
