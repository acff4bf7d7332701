//! Writes the reports on objects where an API for them is installed: one that says already what is so is
//! left alone, one whose object has no finding any more is deleted. What is stored is read once per
//! audit, as metadata; a report is read when it changes, for the times of what was found before.
//! What a report says is in `object_report.rs`.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{ApiResource, DynamicObject, ObjectMeta};
use opensdn_audit_report::{
    API_GROUPS, ApiGroup, FINGERPRINT, MANAGED_BY, MANAGED_BY_LABEL, NAME_PREFIX, PolicyReport,
    PolicyReports, name_of,
};
use opensdn_runtime::apply::{Context, Exactly, apply_as, delete_exactly_as, read_as};
use opensdn_runtime::call::{Call, CallError, Verb};
use opensdn_runtime::discovery::{Resolution, Resource, Snapshot};
use opensdn_runtime::error_chain;
use opensdn_runtime::list::{self, METADATA_LIST};
use serde_json::Value;

use super::object_report::report;
use super::{ATTEMPTS, CALL_TIMEOUT, Error, PAGE, REPORT};
use opensdn_policy_host::stored::{Found, StoredObject};

/// Reports are written one after the other, so that a first audit is no burst of writes; between two,
/// no other is kept waiting for long.
const WRITE_TIMEOUT: Duration = CALL_TIMEOUT;

/// Stored reports that are known. Anyone who may write reports can make any number with our label.
const MOST_STORED: usize = 50_000;
/// Anyone who may write reports can have any number deleted; the summary waits for it. The next audit continues.
const LONGEST_DELETING: Duration = Duration::from_secs(60);
/// So long an audit tries in vain in all: where etcd refuses each write it would be as many calls as there are objects.
const LONGEST_FAILING: Duration = Duration::from_secs(60);
/// Longest fingerprint; what is longer is none of ours.
const FINGERPRINT_BYTES: usize = 64;

/// The reports of one audit.
pub(super) struct ReportWriter {
    client: Client,
    ctx: Context,
    /// Nothing where reports are not written, or not any more.
    target: Option<Target>,
    /// Stored reports whose objects have not come yet in this audit.
    stored: HashMap<Key, StoredReport>,
    /// Fingerprints of the reports that say what is so: a kind whose list was lost comes again.
    current: HashMap<Key, String>,
    /// Versions of stored reports that were seen to say what their fingerprints say.
    verified: Verified,
    /// Groups and kinds of objects whose reports stay, as not all of them could be evaluated.
    kept: BTreeSet<(String, String)>,
    /// Stored reports beyond [`MOST_STORED`].
    unknown: i64,
    /// How long the writes took that failed.
    failing: Duration,
    /// Reports that were due after it was given up.
    untried: i64,
    outcome: PolicyReports,
}

/// Where reports are written.
struct Target {
    group: &'static ApiGroup,
    version: String,
}

/// API group, namespace and name of a report.
type Key = (String, String, String);

/// Reports by their versions that were written or read by this process. Anyone who may write reports can leave
/// the fingerprint and change what is under it.
pub(super) type Verified = HashMap<Key, String>;

/// What is kept of a stored report: what identifies it, what it says, and what it is about.
struct StoredReport {
    kind: Arc<ApiResource>,
    uid: String,
    version: String,
    fingerprint: String,
    /// Group and kind.
    about: Option<(String, String)>,
}

impl ReportWriter {
    /// Reads which reports there are.
    pub(super) async fn open(client: &Client, served: &Snapshot, verified: Verified) -> Self {
        let mut writer = Self::new(client, verified);
        if let Err(why) = writer.read(served).await {
            writer.give_up(why);
        }
        writer
    }

    fn new(client: &Client, verified: Verified) -> Self {
        Self {
            client: client.clone(),
            ctx: Context::new(client.clone(), REPORT).timeout(WRITE_TIMEOUT),
            target: None,
            stored: HashMap::new(),
            current: HashMap::new(),
            verified,
            kept: BTreeSet::new(),
            unknown: 0,
            failing: Duration::ZERO,
            untried: 0,
            outcome: PolicyReports::default(),
        }
    }

    async fn read(&mut self, served: &Snapshot) -> Result<(), String> {
        for group in &API_GROUPS {
            for kind in [group.namespaced, group.cluster] {
                let resource = match served.find(group.group, kind) {
                    Resolution::Served(resource) => resource,
                    Resolution::Absent => continue,
                    // Whether the other group is to be used depends on it.
                    Resolution::Unknown(why) => return Err(why),
                };
                if self.target.is_none() {
                    let version = resource.version.clone();
                    self.outcome.api_version = format!("{}/{version}", group.group);
                    self.target = Some(Target { group, version });
                }
                self.list(&resource).await.map_err(|error| error_chain(&error))?;
            }
        }
        Ok(())
    }

    async fn list(&mut self, resource: &Resource) -> Result<(), Error> {
        let kind = Arc::new(api_resource(resource));
        let mut attempt = 1;
        let (mut next, mut limit) = (String::new(), PAGE);
        loop {
            let list = match self.page(resource, &next, &mut limit).await {
                Err(Error::Call(error)) if attempt < ATTEMPTS && error.is_expired() => {
                    attempt += 1;
                    next.clear();
                    continue;
                }
                list => list?,
            };
            list.next().clone_into(&mut next);
            for object in list.into_objects() {
                self.add_stored(&kind, &object);
            }
            if next.is_empty() {
                return Ok(());
            }
        }
    }

    async fn page(
        &self,
        resource: &Resource,
        next: &str,
        limit: &mut u32,
    ) -> Result<list::List, Error> {
        let (path, label) = (resource.path(), MANAGED_BY_LABEL.replace('/', "%2F"));
        let query = format!("{path}?labelSelector={label}%3D{MANAGED_BY}&continue={next}");
        let call = Call::new(Verb::List, resource.plural.clone()).timeout(CALL_TIMEOUT);
        Ok(call.run(list::page(&self.client, &query, METADATA_LIST, limit)).await?)
    }

    fn add_stored(&mut self, kind: &Arc<ApiResource>, object: &Value) {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (name, uid) = (text("/metadata/name"), text("/metadata/uid"));
        let is_going = object.pointer("/metadata/deletionTimestamp").is_some();
        if !name.starts_with(NAME_PREFIX) || is_going {
            return;
        }
        if self.stored.len() >= MOST_STORED {
            self.unknown += 1;
            return;
        }
        let key = (kind.group.clone(), text("/metadata/namespace").to_owned(), name.to_owned());
        let fingerprint = object
            .pointer("/metadata/annotations")
            .and_then(|annotations| annotations.get(FINGERPRINT)?.as_str())
            .filter(|fingerprint| fingerprint.len() <= FINGERPRINT_BYTES);
        let about = |api_version: &str, kind: &str| {
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            (group.to_owned(), kind.to_owned())
        };
        let owner = ["apiVersion", "kind"].map(|field| {
            object.pointer(&format!("/metadata/ownerReferences/0/{field}")).and_then(Value::as_str)
        });
        let stored = StoredReport {
            kind: Arc::clone(kind),
            uid: uid.to_owned(),
            version: text("/metadata/resourceVersion").to_owned(),
            fingerprint: fingerprint.unwrap_or_default().to_owned(),
            about: match owner {
                [Some(api_version), Some(kind)] => Some(about(api_version, kind)),
                _ => None,
            },
        };
        self.stored.insert(key, stored);
    }

    /// Not all objects of the kind could be evaluated: what was found in the others is not forgotten.
    pub(super) fn keep_kind(&mut self, group: &str, kind: &str) {
        self.kept.insert((group.to_owned(), kind.to_owned()));
    }

    /// The object could not be evaluated.
    pub(super) fn keep(&mut self, object: &StoredObject) {
        let keys = API_GROUPS.map(|group| key(&group, object));
        keys.iter().for_each(|key| drop(self.stored.remove(key)));
    }

    /// Makes the report on an object say what was found in it.
    pub(super) async fn write(&mut self, object: &StoredObject, found: &[Found]) {
        if self.target.is_none() && self.outcome.failure.is_empty() {
            return;
        }
        let now = Timestamp::now().as_second();
        let Some(mut report) = report(object, found, now) else { return };
        let Some(target) = &self.target else {
            self.untried += 1;
            return;
        };
        let key = key(target.group, object);
        let fingerprint = report.fingerprint();
        if self.current.get(&key) == Some(&fingerprint) {
            return;
        }
        let stored = self.stored.remove(&key);
        let exists = stored.is_some() || self.current.contains_key(&key);
        let stored = stored.filter(|stored| stored.fingerprint == fingerprint);
        let begun = Instant::now();
        match write_unless_so(&self.ctx, target, &mut report, stored, &self.verified, exists).await
        {
            Ok((version, is_new)) => {
                *(if is_new { &mut self.outcome.written } else { &mut self.outcome.unchanged }) +=
                    1;
                self.verified.insert(key.clone(), version);
                self.current.insert(key, fingerprint);
            }
            Err(error) => self.failed(&object.title(), &error, begun.elapsed()),
        }
    }

    /// Deletes the reports of objects without a finding. What became of all reports; nothing where
    /// no API for them is installed.
    pub(super) async fn finish(mut self) -> (Option<PolicyReports>, Verified) {
        let verified = std::mem::take(&mut self.verified);
        // Of objects that are gone nothing is kept.
        let current = &self.current;
        let verified = verified.into_iter().filter(|(key, _)| current.contains_key(key)).collect();
        (self.delete_others().await, verified)
    }

    async fn delete_others(mut self) -> Option<PolicyReports> {
        let begun = Instant::now();
        let mut left = 0;
        for ((_, namespace, name), stored) in std::mem::take(&mut self.stored) {
            if self.target.is_none() {
                break;
            }
            let StoredReport { kind, uid, about, .. } = stored;
            if about.is_some_and(|about| self.kept.contains(&about)) {
                continue;
            }
            if begun.elapsed() > LONGEST_DELETING {
                left += 1;
                continue;
            }
            let title = format!("{} {namespace}/{name}", kind.kind);
            let metadata = ObjectMeta {
                name: Some(name),
                namespace: Some(namespace).filter(|namespace| !namespace.is_empty()),
                uid: Some(uid),
                ..ObjectMeta::default()
            };
            let report = DynamicObject { types: None, metadata, data: Value::Null };
            let at = Instant::now();
            match delete_exactly_as(&self.ctx, &*kind, &report, Exactly::ThisObject).await {
                Ok(_) => self.outcome.deleted += 1,
                Err(error) => self.failed(&title, &error, at.elapsed()),
            }
        }
        if self.untried > 0 {
            self.outcome.failure += &format!("; {} more were not tried", self.untried);
        }
        self.outcome.failed += left + self.unknown;
        if left > 0 {
            let limit = LONGEST_DELETING.as_secs();
            self.outcome.failure = format!(
                "{left} reports that are not true any more were not deleted within {limit} s; the next audit \
                 continues"
            );
        }
        if self.unknown > 0 {
            self.outcome.failure = format!(
                "there are {} more reports than the {MOST_STORED} that an audit looks at: delete those that are \
                 not true any more, or the label app.kubernetes.io/managed-by of those that are not of the audit",
                self.unknown
            );
        }
        let PolicyReports { api_version, failure, .. } = &self.outcome;
        if api_version.is_empty() && failure.is_empty() {
            return None;
        }
        log(&self.outcome);
        Some(self.outcome)
    }

    /// One report stays as it is. Where the next would fare alike, none is written any more: with 10,000
    /// objects it would be 10,000 calls in vain. Another server error may be of this report alone: who may write
    /// reports can make it as large as etcd takes, and that must not end the reports of others.
    fn failed(&mut self, about: &str, error: &CallError, took: Duration) {
        self.outcome.failed += 1;
        self.failing += took;
        let why = format!("{about}: {}", error_chain(error));
        let is_of_all = error.missing_grant().is_some()
            || error.status().is_none_or(|status| matches!(status.code, 429 | 502..=504));
        if is_of_all || self.failing > LONGEST_FAILING {
            self.give_up(why);
        } else if self.outcome.failure.is_empty() {
            self.outcome.failure = why;
        }
    }

    fn give_up(&mut self, why: String) {
        self.target = None;
        self.outcome.failure = why;
    }
}

/// The version of the stored report, and whether it was written for that. `stored` is one whose fingerprint is
/// the same; what it says is read once by each process that writes.
async fn write_unless_so(
    ctx: &Context,
    target: &Target,
    report: &mut PolicyReport,
    stored: Option<StoredReport>,
    verified: &Verified,
    exists: bool,
) -> Result<(String, bool), CallError> {
    let kind = kind_of(target, &report.scope.namespace);
    let namespace = Some(report.scope.namespace.as_str()).filter(|one| !one.is_empty());
    let name = name_of(&report.scope.uid);
    let key = (kind.group.clone(), report.scope.namespace.clone(), name.clone());
    if let Some(StoredReport { version, .. }) =
        stored.filter(|one| verified.get(&key) == Some(&one.version))
    {
        return Ok((version, false));
    }
    if exists && let Some(earlier) = read_as::<DynamicObject>(ctx, &kind, namespace, &name).await? {
        if PolicyReport::fingerprint_of(&earlier.data) == Some(report.fingerprint()) {
            return Ok((earlier.metadata.resource_version.unwrap_or_default(), false));
        }
        report.keep_times_of(&earlier.data);
    }
    let object = report.object(target.group, &target.version, &name, MANAGED_BY);
    // It was made as an object, of fields that every object has.
    let Ok(object) = serde_json::from_value::<DynamicObject>(object) else {
        return Ok((String::new(), false));
    };
    let stored = apply_as(ctx, &kind, &object).await?;
    Ok((stored.metadata.resource_version.unwrap_or_default(), true))
}

fn kind_of(target: &Target, namespace: &str) -> ApiResource {
    let Target { group, version } = target;
    let kind = if namespace.is_empty() { group.cluster } else { group.namespaced };
    ApiResource {
        group: group.group.to_owned(),
        version: version.clone(),
        api_version: format!("{}/{version}", group.group),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
    }
}

fn api_resource(resource: &Resource) -> ApiResource {
    let Resource { group, version, kind, plural, .. } = resource;
    ApiResource {
        group: group.clone(),
        version: version.clone(),
        api_version: format!("{group}/{version}"),
        kind: kind.clone(),
        plural: plural.clone(),
    }
}

fn key(group: &ApiGroup, object: &StoredObject) -> Key {
    (group.group.to_owned(), object.namespace.clone(), name_of(&object.uid))
}

fn log(outcome: &PolicyReports) {
    let PolicyReports { api_version, written, unchanged, deleted, failed, failure } = outcome;
    if !failure.is_empty() {
        tracing::warn!(
            api = api_version,
            written,
            failed,
            error = failure,
            "failed to write all reports of the audit"
        );
    } else if written + deleted > 0 {
        tracing::info!(
            api = api_version,
            written,
            unchanged,
            deleted,
            "wrote reports of the audit"
        );
    }
}

#[cfg(test)]
mod tests;
