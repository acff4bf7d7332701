//! Reads an AdmissionReview.

use std::borrow::Cow;

use bytes::Bytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use opensdn_admission_policy::CLOSED_GROUPS;
use opensdn_policy_host::{
    Claim, Finding, MAX_QUOTED_BYTES, Mode, Operation, Request, Severity, Step, quoted,
    quoted_name,
    scan::{self, Document, Found, ScanError, Slot},
};
use opensdn_runtime::levels;

use super::groups::{Groups, MOST_GROUPS};
use super::{Labels, Purpose, answer, answer::Decision, members::member, unjudged};
use crate::{
    active::{ActiveSet, Places},
    claims::Holder,
    metrics,
};

/// Of an object with more owners than fit into it none is looked for.
const LARGEST_OWNERS: usize = 1 << 16;
/// Levels of lists and maps that a written object may have: with those of the review around it no more than the scan
/// says nothing of. No schema of a resource that a person wrote comes near this.
const MOST_LEVELS: usize = scan::RECURSIVE_LEVELS - 2;
/// With more text than that about who has written what, nothing says that an object comes from an apply. An entry of
/// three bytes is one of a hundred in memory; in a cluster an object as a whole has some 1.5 MB.
pub(super) const LARGEST_MANAGED_FIELDS: usize = 1 << 18;

/// A body that is no review.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) uid: String,
    pub(super) code: u16,
    pub(super) message: String,
}

impl Unreadable {
    pub(super) fn too_large(prefix: &[u8]) -> Self {
        Self {
            uid: uid_in_prefix(prefix),
            code: 413,
            message: "the request is larger than 8 MiB, which is more than the webhook of OpenSDN \
                      reads; make the object smaller"
                .to_owned(),
        }
    }

    fn bad(body: &[u8], message: String) -> Self {
        Self { uid: uid_in_prefix(body), code: 400, message }
    }

    pub(super) fn answer(&self) -> Bytes {
        tracing::warn!(
            uid = self.uid,
            code = self.code,
            "failed to read a review: {}",
            self.message
        );
        answer::refusal(&self.uid, self.code, "BadRequest", &self.message)
    }
}

/// The uid of a review that cannot be parsed. The API server writes it as the first field of the
/// request, so a beginning is enough.
fn uid_in_prefix(body: &[u8]) -> String {
    // Objects have a uid too, so the one that opens the request is meant.
    const FIELD: &[u8] = b"\"request\":{\"uid\":\"";
    let head = body.get(..body.len().min(4096)).unwrap_or_default();
    let start = head.windows(FIELD.len()).position(|window| window == FIELD);
    let rest = start.and_then(|start| head.get(start + FIELD.len()..)).unwrap_or_default();
    let plain = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'-';
    let uid: Vec<u8> = rest.iter().take(MAX_QUOTED_BYTES).take_while(plain).copied().collect();
    String::from_utf8(uid).unwrap_or_default()
}

pub(super) fn scan<'b>(body: &'b [u8], current: &ActiveSet) -> Result<Found<'b>, Unreadable> {
    scan::scan(body, &current.paths).map_err(|error: ScanError| {
        Unreadable::bad(body, format!("the AdmissionReview cannot be read: {error}"))
    })
}

/// A review whose envelope was understood.
pub(super) struct Review<'f> {
    pub(super) uid: Cow<'f, str>,
    operation: Operation,
    group: Cow<'f, str>,
    version: Cow<'f, str>,
    kind: Cow<'f, str>,
    /// What the user wrote; the API server converts it to `kind` and `version`.
    written_kind: Cow<'f, str>,
    written_version: Cow<'f, str>,
    subresource: Cow<'f, str>,
    name: Cow<'f, str>,
    namespace: Cow<'f, str>,
    generate_name: Cow<'f, str>,
    object_uid: Cow<'f, str>,
    user: Cow<'f, str>,
    groups: Vec<String>,
    dry_run: bool,
    is_being_deleted: bool,
    /// Whether the annotation that confirms a loss changes.
    confirms: bool,
    object: Option<Document<'f>>,
    old_object: Option<Document<'f>>,
    /// Whether one of them may have more levels than a written object may.
    is_deep: bool,
}

/// An entry of `managedFields`.
#[derive(serde::Deserialize)]
struct Writer {
    #[serde(default)]
    operation: String,
}

impl<'f> Review<'f> {
    pub(super) fn read(found: &'f Found<'_>, places: &Places) -> Result<Self, Unreadable> {
        let fields = Fields { found };
        let unnamed = |message| Unreadable { uid: String::new(), code: 400, message };
        let uid = fields.required(places.uid, "request.uid").map_err(unnamed)?;
        if uid.len() > MAX_QUOTED_BYTES {
            let message = format!("request.uid is longer than {MAX_QUOTED_BYTES} bytes");
            return Err(unnamed(message));
        }
        // The API server drops an answer, its reasons included, that does not have the uid.
        let bad = |message: String| Unreadable { uid: uid.to_string(), code: 400, message };
        fields.check_version(places).map_err(bad)?;
        let text = |slot, name| fields.optional(slot, name).map_err(bad);
        let groups = found.get(places.groups).unwrap_or("null");
        let groups: Option<Groups> = serde_json::from_str(groups).map_err(|_| {
            bad(format!("request.userInfo.groups is not a list of at most {MOST_GROUPS} names"))
        })?;
        let name = text(places.name, "request.name")?;
        let object_name = text(places.object_name, "request.object.metadata.name")?;
        Ok(Self {
            operation: fields.operation(places.operation).map_err(bad)?,
            group: text(places.group, "request.kind.group")?,
            version: text(places.version, "request.kind.version")?,
            kind: fields.required(places.kind, "request.kind.kind").map_err(bad)?,
            written_kind: text(places.request_kind, "request.requestKind.kind")?,
            written_version: text(places.request_version, "request.requestKind.version")?,
            subresource: text(places.subresource, "request.subResource")?,
            name: if name.is_empty() { object_name } else { name },
            namespace: text(places.namespace, "request.namespace")?,
            generate_name: text(places.generate_name, "request.object.metadata.generateName")?,
            object_uid: text(places.object_uid, "request.object.metadata.uid")?,
            user: text(places.user, "request.userInfo.username")?,
            groups: groups.unwrap_or_default().0,
            dry_run: found.get(places.dry_run) == Some("true"),
            is_being_deleted: found.get(places.deletion).is_some_and(|time| time != "null"),
            confirms: {
                let [before, after] = places.confirmed.map(|slot| found.get(slot));
                before != after
            },
            object: found.document(&places.object),
            old_object: found.document(&places.old_object),
            is_deep: found.is_deep(),
            uid,
        })
    }

    pub(super) fn request<'r>(&'r self, namespace_labels: Option<&'r Labels>) -> Request<'r> {
        Request {
            operation: self.operation,
            group: &self.group,
            version: &self.version,
            kind: &self.kind,
            subresource: &self.subresource,
            name: &self.name,
            namespace: &self.namespace,
            namespace_labels,
            user: &self.user,
            groups: &self.groups,
            dry_run: self.dry_run,
            object: self.object,
            old_object: self.old_object,
        }
    }

    /// The stored object's claims are asked for as if it were created now.
    pub(super) fn request_of_old<'r>(
        &'r self,
        namespace_labels: Option<&'r Labels>,
    ) -> Option<Request<'r>> {
        let object = Some(self.old_object?);
        let request = self.request(namespace_labels);
        Some(Request { operation: Operation::Create, object, old_object: None, ..request })
    }

    /// Whether no policy may refuse the request, because a wrong object could never go then: it waits
    /// for its finalizers and nothing but its metadata changes, or a loss is confirmed and nothing
    /// else, or it is the deletion of an AdmissionPolicy.
    pub(super) fn passes_unjudged(&self) -> bool {
        let (old, new) = match (self.operation, self.old_object, self.object) {
            (Operation::Delete, ..) => return self.is_admission_policy(),
            (Operation::Update, Some(old), Some(new)) => (old.text(), new.text()),
            _ => return false,
        };
        let confirms = self.confirms && CLOSED_GROUPS.contains(&&*self.group);
        (self.is_being_deleted && unjudged::only_metadata_change(old, new))
            || (confirms && unjudged::only_confirms(old, new))
    }

    /// Whether an AdmissionPolicy that refuses requests is to refuse none any more.
    pub(super) fn switches_policy_off(&self) -> bool {
        let is_off = |object: &str| {
            let mode = member(object, "spec").and_then(|spec| member(spec, "mode"));
            matches!(mode, Some("\"warn\"" | "\"audit\""))
        };
        let (old, new) = (self.old_admission_policy(), self.admission_policy());
        old.zip(new).is_some_and(|(old, new)| is_off(new) && !is_off(old))
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(super) fn purpose(&self) -> Purpose {
        match self.operation {
            _ if self.dry_run => Purpose::DryRun,
            Operation::Create if self.subresource.is_empty() && !self.is_applied() => {
                Purpose::Create
            }
            _ => Purpose::Write,
        }
    }

    /// Whether the object comes from a server-side apply, as far as can be known. Of one whose name has been
    /// taken meanwhile the API server makes an update by itself.
    fn is_applied(&self) -> bool {
        let metadata = self.object.and_then(|object| member(object.text(), "metadata"));
        let fields = metadata.and_then(|metadata| member(metadata, "managedFields"));
        let fields = fields.filter(|fields| fields.len() <= LARGEST_MANAGED_FIELDS);
        let entries: Vec<Writer> =
            fields.and_then(|fields| serde_json::from_str(fields).ok()).unwrap_or_default();
        entries.iter().any(|entry| entry.operation == "Apply")
    }

    /// Who would hold a claim: the object that will be stored.
    pub(super) fn holder(&self) -> Option<Holder> {
        self.object?;
        Some(Holder {
            group: self.group.to_string(),
            version: self.version.to_string(),
            kind: self.kind.to_string(),
            namespace: self.namespace.to_string(),
            name: self.name.to_string(),
            uid: self.object_uid.to_string(),
        })
    }

    /// The refusal of a write whose object has more levels than a policy may be asked about. One that is stored may have
    /// them, and be made flatter.
    pub(super) fn too_deep(&self) -> Option<Unreadable> {
        let object = self.object.filter(|_| self.is_deep)?;
        let levels = levels::levels_of_text(object.text());
        (levels > MOST_LEVELS).then(|| Unreadable {
            uid: self.uid.to_string(),
            code: 400,
            message: format!(
                "the object is nested {levels} levels deep, and the webhook of OpenSDN has policies judge no more \
                 than {MOST_LEVELS}; make it flatter"
            ),
        })
    }

    /// Whether a list would show the stored object whole, and would not so after the update.
    pub(super) fn is_no_more_shown_whole(&self) -> bool {
        let is_whole = |object: Document<'_>| levels::check_text(object.text()).is_ok();
        self.object.is_some_and(|object| !is_whole(object)) && self.old_object.is_some_and(is_whole)
    }

    /// The refusal of an object that no list would show whole and that takes a key, or has one by now: which of its
    /// keys it still has would be unknown for ever.
    pub(super) fn why_nothing_is_kept(&self, first: Option<&Claim>) -> Option<Finding> {
        let first = first?;
        let error = levels::check_text(self.object?.text()).err()?;
        Some(Finding {
            policy: first.policy.clone(),
            mode: Mode::Enforce,
            code: first.code.clone(),
            severity: Severity::Deny,
            pointer: String::new(),
            message: format!(
                "{} takes or has what no other object may have ({}), and {error}: whether it still has it could \
                 not be looked at",
                self.subject(),
                quoted(&first.key)
            ),
            hint: "make it flatter".to_owned(),
        })
    }

    /// The UID of the object that controls this one, as it is written.
    pub(super) fn controller_uid(&self) -> Option<String> {
        let metadata = member(self.object?.text(), "metadata")?;
        let owners = member(metadata, "ownerReferences")?;
        if owners.len() > LARGEST_OWNERS {
            return None;
        }
        let owners: Vec<OwnerReference> = serde_json::from_str(owners).ok()?;
        owners.into_iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid)
    }

    /// Whether the update changes who owns the object, or what it waits for, and nothing else.
    pub(super) fn changes_only_owners(&self) -> bool {
        match (self.operation, self.old_object, self.object) {
            (Operation::Update, Some(old), Some(new)) => {
                unjudged::only_owners_change(old.text(), new.text())
            }
            _ => false,
        }
    }

    /// The text of the object, if it is an AdmissionPolicy that is written.
    pub(super) fn admission_policy(&self) -> Option<&'f str> {
        let is_written = matches!(self.operation, Operation::Create | Operation::Update);
        let is_one = is_written && self.is_admission_policy();
        self.object.filter(|_| is_one).map(|object| object.text())
    }

    /// The text of the AdmissionPolicy that is stored.
    pub(super) fn old_admission_policy(&self) -> Option<&'f str> {
        self.old_object.filter(|_| self.is_admission_policy()).map(|object| object.text())
    }

    fn is_admission_policy(&self) -> bool {
        self.group == opensdn_crds::OPENSDN_GROUP
            && self.kind == "AdmissionPolicy"
            && self.subresource.is_empty()
    }

    /// The object as its user knows it: `Manager tf/cluster1`, or `Widget tf/a (judged as v1)` for one
    /// that is written in another version than the policies are about. No name is longer than an API server
    /// takes: a caller may send any.
    pub(super) fn subject(&self) -> String {
        let kind = if self.written_kind.is_empty() { &self.kind } else { &self.written_kind };
        let (kind, version) = (quoted_name(kind), quoted_name(&self.version));
        let judged_as = if self.written_version.is_empty() || self.written_version == self.version {
            String::new()
        } else {
            format!(" (judged as {version})")
        };
        let name = match (&*self.name, &*self.generate_name) {
            ("", "") => String::new(),
            ("", prefix) => format!("{}*", quoted_name(prefix)),
            (name, _) => quoted_name(name).into_owned(),
        };
        match &*quoted_name(&self.namespace) {
            "" => format!("{kind} {name}{judged_as}"),
            namespace => format!("{kind} {namespace}/{name}{judged_as}"),
        }
    }

    pub(super) fn group_and_kind(&self) -> (&str, &str) {
        (&self.group, &self.kind)
    }

    pub(super) fn operation(&self) -> Operation {
        self.operation
    }

    /// One line per refused or unanswered review; allowed ones only at level debug.
    pub(super) fn log(&self, step: Step, verdict: metrics::Verdict, decision: &Decision) {
        let codes =
            || super::text::listed(decision.findings.iter().map(|finding| finding.code.clone()));
        for failure in &decision.failures {
            tracing::error!(
                uid = &*self.uid,
                policy = failure.policy,
                category = failure.reason.category(),
                object = self.subject(),
                "failed to evaluate a policy: {}",
                failure.reason
            );
        }
        let unapplied =
            || super::text::listed(decision.unapplied.iter().map(|one| one.policy.clone()));
        let quiet = matches!(verdict, metrics::Verdict::Allowed);
        if quiet {
            tracing::debug!(uid = &*self.uid, ?step, operation = ?self.operation,
                object = self.subject(), user = &*quoted_name(&self.user), "allowed");
        } else {
            tracing::info!(uid = &*self.uid, ?step, operation = ?self.operation,
                object = self.subject(), user = &*quoted_name(&self.user), dry_run = self.dry_run,
                codes = codes(), unapplied = unapplied(), "{verdict:?}");
        }
    }
}

/// The envelope's fields as text.
struct Fields<'f, 't> {
    found: &'f Found<'t>,
}

impl<'f> Fields<'f, '_> {
    /// An absent field and `null` are the empty text.
    fn optional(&self, slot: Slot, name: &str) -> Result<Cow<'f, str>, String> {
        let Some(raw) = self.found.get(slot).filter(|raw| *raw != "null") else {
            return Ok(Cow::Borrowed(""));
        };
        // The scan has checked the string, so one without an escape is its own value.
        let inner = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        match inner {
            Some(inner) if !inner.contains('\\') => Ok(Cow::Borrowed(inner)),
            Some(_) => serde_json::from_str(raw).map(Cow::Owned).map_err(|error| error.to_string()),
            None => Err(format!("{name} is not a text")),
        }
    }

    fn required(&self, slot: Slot, name: &str) -> Result<Cow<'f, str>, String> {
        let text = self.optional(slot, name)?;
        if text.is_empty() { Err(format!("{name} is missing")) } else { Ok(text) }
    }

    fn check_version(&self, places: &Places) -> Result<(), String> {
        let version = self.optional(places.api_version, "apiVersion")?;
        let kind = self.optional(places.review_kind, "kind")?;
        if (&*version, &*kind) == ("admission.k8s.io/v1", "AdmissionReview") {
            return Ok(());
        }
        Err(format!(
            "this webhook reads AdmissionReview of admission.k8s.io/v1, not {kind} of {version}; \
             set admissionReviewVersions: [v1]",
            kind = quoted_name(&kind),
            version = quoted_name(&version),
        ))
    }

    fn operation(&self, slot: Slot) -> Result<Operation, String> {
        let text = self.optional(slot, "request.operation")?;
        match &*text {
            "CREATE" => Ok(Operation::Create),
            "UPDATE" => Ok(Operation::Update),
            "DELETE" => Ok(Operation::Delete),
            "CONNECT" => Ok(Operation::Connect),
            other => Err(format!("request.operation {:?} is unknown", quoted(other))),
        }
    }
}
