//! A lock for programs that write link-local services: the Config API gives the name of an object to one creator only,
//! whichever of its servers is asked. Writers that do not know of it are not held up by it. What is done under it is not
//! known here.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use tokio::time::Instant;

use crate::client::{ConfigApi, Error as ApiError, Refusal};
use crate::jitter::{jittered, random};
use crate::operations::{Created, Element};
use crate::pairs;

/// A kind that can be made by its name alone, and of which nothing else depends.
const KIND: &str = "namespace";
const DOMAIN: &str = "default-domain";
const NAME: &str = "kubectl-opensdn-link-local-services";
const OWNER: &str = "owner";
/// In seconds since 1970, by the clock of the Config API.
const DEADLINE: &str = "deadline";

/// How long is waited for the lock, and how long it is held.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Until it is given up.
    pub wait: Duration,
    /// Between two attempts.
    pub poll: Duration,
    /// After this without an extension others may break it.
    pub hold: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(180),
            poll: Duration::from_millis(500),
            hold: Duration::from_secs(120),
        }
    }
}

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Config API does not answer, or refuses.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// Another run has it.
    #[error(
        "the lock for link-local services, the namespace {DOMAIN}:{NAME} of the Config API, is held by {owner}: wait for \
         that run; if there is none, {remedy}"
    )]
    Held {
        /// Who has it.
        owner: String,
        /// What ends it.
        remedy: String,
    },
}

/// The lock, while it is held.
pub struct Lock<'a> {
    api: &'a ConfigApi,
    uuid: String,
    hold: Duration,
}

/// Who has it, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Holder {
    uuid: String,
    owner: String,
    deadline: Option<SystemTime>,
}

impl Lock<'_> {
    /// Gives it back. What was done under it is not undone by a lock that stays: its deadline ends it, and who waits for
    /// it says so.
    pub async fn release(self) {
        let _ = self.api.delete(KIND, &self.uuid).await;
    }

    /// Moves its deadline. That it has been broken meanwhile is no error: rows are written by a loop that does without.
    ///
    /// # Errors
    /// The Config API does not answer, or refuses.
    pub(crate) async fn extend(&self) -> Result<(), ApiError> {
        let deadline = seconds(self.api.server_time() + self.hold);
        let value = json!({"key": DEADLINE, "value": deadline});
        let element =
            Element::Put { field: "annotations", operation: "set", position: DEADLINE, value };
        match self.api.update(&self.uuid, &[element]).await {
            Err(ApiError::Refused { refusal: Refusal::NotFound(_), .. }) => Ok(()),
            other => other,
        }
    }
}

/// Waits for the lock. It has to be released however the work under it ends; a program that is killed leaves it until
/// its deadline.
///
/// # Errors
/// It cannot be had in time.
pub async fn acquire<'a>(
    api: &'a ConfigApi,
    cluster: &str,
    timing: Timing,
) -> Result<Lock<'a>, Error> {
    let owner = format!("{cluster} ({:016x})", random());
    let end = Instant::now() + timing.wait;
    loop {
        if let Created::New { uuid } = create(api, &owner, timing.hold).await? {
            return Ok(Lock { api, uuid, hold: timing.hold });
        }
        let Some(holder) = holder(api).await? else {
            continue_until(end, timing, None, api.server_time()).await?;
            continue;
        };
        // The answer to our own creation was lost, and the repetition found it.
        if holder.owner == owner {
            return Ok(Lock { api, uuid: holder.uuid, hold: timing.hold });
        }
        if is_over(&holder, api.server_time()) {
            break_lock(api, &holder).await?;
        }
        continue_until(end, timing, Some(&holder), api.server_time()).await?;
    }
}

async fn create(api: &ConfigApi, owner: &str, hold: Duration) -> Result<Created, ApiError> {
    let deadline = seconds(api.server_time() + hold);
    let object = json!({
        "fq_name": [DOMAIN, NAME],
        "parent_type": "domain",
        "annotations": pairs::json([(OWNER, owner), (DEADLINE, &deadline)]),
    });
    api.create(KIND, object).await
}

async fn holder(api: &ConfigApi) -> Result<Option<Holder>, ApiError> {
    let Some(uuid) = api.id_of(KIND, &[DOMAIN, NAME]).await? else { return Ok(None) };
    let Some(object) = api.object(KIND, &uuid, &["annotations"]).await? else { return Ok(None) };
    let mut annotations = pairs::read(object.fields.get("annotations"));
    let deadline = annotations.remove(DEADLINE).and_then(|text| text.parse().ok());
    Ok(Some(Holder {
        uuid,
        owner: annotations.remove(OWNER).unwrap_or_default(),
        deadline: deadline.and_then(|seconds| read_deadline(seconds, api.server_time())),
    }))
}

/// None of ours is further away than this: what says so has no deadline that is worth waiting for.
const FURTHEST: Duration = Duration::from_secs(3600);

fn read_deadline(seconds: u64, now: SystemTime) -> Option<SystemTime> {
    let deadline = UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
    Some(deadline).filter(|deadline| *deadline <= now + FURTHEST)
}

/// One without a deadline is not ours to break.
fn is_over(holder: &Holder, now: SystemTime) -> bool {
    holder.deadline.is_some_and(|deadline| deadline < now)
}

/// Deletes the lock of a holder whose deadline is over, if it still is that holder's. A lock that another has made
/// meanwhile has another UUID, so that it is never the one that is deleted. What is left is a holder that extends its
/// own between our reading and our deleting: two then write at a time, which the loop of the writers withstands.
async fn break_lock(api: &ConfigApi, holder: &Holder) -> Result<(), ApiError> {
    if self::holder(api).await?.as_ref() == Some(holder) {
        api.delete(KIND, &holder.uuid).await?;
    }
    Ok(())
}

/// Waits until the next attempt, or ends all of them.
async fn continue_until(
    end: Instant,
    timing: Timing,
    holder: Option<&Holder>,
    now: SystemTime,
) -> Result<(), Error> {
    if Instant::now() + timing.poll < end {
        tokio::time::sleep(jittered(timing.poll)).await;
        return Ok(());
    }
    let owner = holder.map_or("another run", |holder| &holder.owner);
    let remedy = remedy(holder.and_then(|holder| holder.deadline), now);
    Err(Error::Held { owner: owner.escape_debug().to_string(), remedy })
}

/// A deadline that is further away than any run of ours sets may be one of a clock that is wrong.
fn remedy(deadline: Option<SystemTime>, now: SystemTime) -> String {
    let delete = format!("delete the {KIND} {DOMAIN}:{NAME} in the Config API");
    let left = deadline.map(|deadline| deadline.duration_since(now).unwrap_or_default());
    match left {
        None => delete,
        Some(left) if left <= Timing::default().hold => {
            "it ends by itself within minutes".to_owned()
        }
        Some(left) => {
            let minutes = left.as_secs().div_ceil(60);
            format!(
                "it ends in {minutes} minutes, which none of ours takes; if no run is at work: {delete}"
            )
        }
    }
}

fn seconds(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_over_by_the_servers_clock_and_never_without_a_deadline() {
        let now = UNIX_EPOCH + Duration::from_secs(1000);
        let over = |deadline: Option<u64>| {
            let deadline = deadline.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
            is_over(&Holder { uuid: String::new(), owner: String::new(), deadline }, now)
        };
        assert_eq!(
            (over(Some(999)), over(Some(1000)), over(Some(1001)), over(None)),
            (true, false, false, false)
        );
        assert_eq!(seconds(now), "1000");
    }

    #[test]
    fn who_waits_for_a_lock_learns_when_it_ends_and_what_to_do_where_it_does_not() {
        let now = UNIX_EPOCH + Duration::from_secs(1000);
        let of = |seconds: u64| remedy(Some(now + Duration::from_secs(seconds)), now);
        assert_eq!(of(90), "it ends by itself within minutes");
        assert!(of(3000).starts_with("it ends in 50 minutes") && of(3000).contains("delete the"));
        assert!(remedy(None, now).starts_with("delete the"));
    }

    #[test]
    fn a_deadline_that_no_run_of_ours_sets_is_none() {
        let now = UNIX_EPOCH + Duration::from_secs(1000);
        assert_eq!(read_deadline(900, now), Some(UNIX_EPOCH + Duration::from_secs(900)));
        assert!(read_deadline(1120, now).is_some());
        for far in [1000 + 3601, 99_999_999_999, u64::MAX] {
            assert_eq!(read_deadline(far, now), None, "{far}");
        }
    }
}
