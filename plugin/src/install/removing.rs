//! The steps of a removal. Every object is read before, and deleted only if it has our label, and only as the one that was
//! read. What is gone already is passed over, so that the same command takes up what another run has left.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{ApiResource, GroupVersionKind};
use opensdn_deploy::Values;
use opensdn_deploy::names::{operator, webhook};
use serde_json::Value;

use super::deleting::Deleting;
use super::in_the_way::shortened;
use super::inventory::{self, Entry, Inventory};
use super::object::{ObjectKey, is_member};
use super::removal::{
    Data, Kept, Stage, is_held_by_others, is_left_to_others, is_looked_at, is_of_webhook,
    left_in_namespace, left_to, of_others, stage, webhook_configurations,
};
use super::requests::Requests;
use super::survey::{CONCURRENT, rendered};
use super::waiting::Deadline;
use crate::exit::{Exit, Failure};
use crate::ui::Ui;

/// What a removal will do.
#[derive(Default)]
pub(crate) struct Removal {
    /// What is deleted, in stages.
    pub(crate) stages: BTreeMap<Stage, Vec<Value>>,
    /// The webhook configurations that are there.
    pub(crate) configurations: Vec<Value>,
    /// Custom resources of our kinds.
    pub(crate) custom_resources: Vec<Value>,
    /// Whether these are deleted.
    pub(crate) data: Option<Data>,
    /// What stays, and why.
    pub(crate) kept: Vec<(ObjectKey, Kept)>,
    /// What has a name of ours and not our label, and stays.
    pub(crate) foreign: Vec<ObjectKey>,
    /// Objects of others in namespaces of ours, which stay with them.
    pub(crate) of_others: Vec<ObjectKey>,
    /// What our pods have left in namespaces that stay, and the inventory.
    pub(crate) left: Vec<Value>,
    /// Namespaces that stay and have labels of ours.
    released: Vec<ObjectKey>,
    namespace: String,
    pull_secrets: Vec<String>,
    /// The UIDs of all that was in namespaces that go.
    seen: BTreeSet<String>,
}

impl Removal {
    /// Looks at what there is of the installation in this namespace. Without an inventory, as when its namespace was
    /// deleted by hand, it is what the default values would install and has our label.
    ///
    /// # Errors
    /// The cluster does not answer, or not this user.
    pub(crate) async fn of(
        requests: &Requests,
        namespace: &str,
        inventory: Option<&Inventory>,
        data: Data,
    ) -> Result<Self, Failure> {
        let installation = inventory::installation(namespace);
        let default = Values { namespace: namespace.to_owned(), ..Values::default() };
        let values = inventory.map_or(&default, |inventory| &inventory.values);
        // Also what the inventory does not name any more: who may edit ConfigMaps there may have shortened it.
        let named = inventory.map(|inventory| inventory.entries.clone()).unwrap_or_default();
        let known: BTreeSet<ObjectKey> = named.iter().map(|entry| entry.key.clone()).collect();
        let more = default_entries(values, &installation)?.into_iter();
        let entries = named.into_iter().chain(more.filter(|entry| !known.contains(&entry.key)));
        let mut removal = Self {
            data: Some(data),
            namespace: namespace.to_owned(),
            pull_secrets: values.image_pull_secrets.clone(),
            ..Self::default()
        };
        let mut definitions = Vec::new();
        for (entry, stored) in stored(requests, entries.collect()).await? {
            if !is_member(&stored, &installation) {
                removal.foreign.push(entry.key);
                continue;
            }
            if entry.key.kind == "CustomResourceDefinition" {
                definitions.push(stored.clone());
            }
            let own = [namespace, values.operator.namespace.as_str()];
            match stage(&entry, own, data) {
                // Where the inventory does not name it, it is not known whose it is.
                Ok(Stage::Namespaces) if !known.contains(&entry.key) => {
                    removal.keep(entry.key, Kept::Unknown)
                }
                Ok(Stage::Namespaces) if own.contains(&entry.key.name.as_str()) => {
                    let all = in_namespace(requests, &entry.key.name).await?;
                    removal.seen.extend(all.iter().filter_map(uid_of));
                    let others = of_others(&all, &installation, &removal.pull_secrets);
                    if others.is_empty() {
                        removal.stages.entry(Stage::Namespaces).or_default().push(stored);
                    } else {
                        removal.of_others.extend(others);
                        removal.keep(entry.key, Kept::Others);
                    }
                }
                Ok(stage) => removal.stages.entry(stage).or_default().push(stored),
                Err(kept) => removal.keep(entry.key, kept),
            }
        }
        // What pods have written has no label of an installation: where nothing else is of this one it is another's.
        let is_there =
            inventory.is_some() || !removal.stages.is_empty() || !removal.kept.is_empty();
        removal.look_at_configurations(requests, is_there).await?;
        removal.look_at_custom_resources(requests, &definitions).await?;
        removal.keep_namespaces_with_data();
        if is_there {
            removal.look_at_what_is_left(requests, &values.operator.namespace).await?;
        }
        Ok(removal)
    }

    fn keep(&mut self, key: ObjectKey, kept: Kept) {
        if matches!(kept, Kept::Existed | Kept::Others) {
            self.released.push(key.clone());
        }
        self.kept.push((key, kept));
    }

    async fn look_at_configurations(
        &mut self,
        requests: &Requests,
        is_there: bool,
    ) -> Result<(), Failure> {
        for key in webhook_configurations() {
            match requests.get(&key).await? {
                Some(stored) if is_there && is_of_webhook(&stored, &self.namespace) => {
                    self.configurations.push(stored);
                }
                Some(_) => self.foreign.push(key),
                None => {}
            }
        }
        Ok(())
    }

    async fn look_at_custom_resources(
        &mut self,
        requests: &Requests,
        definitions: &[Value],
    ) -> Result<(), Failure> {
        let listed = stream::iter(definitions.iter().filter_map(resource))
            .map(async |resource| requests.list(&resource, None, "").await);
        let listed: Vec<Vec<Value>> = listed.buffered(CONCURRENT).try_collect().await?;
        let removed = self.stages.get(&Stage::Policies).into_iter().flatten();
        let removed: Vec<ObjectKey> = removed.map(ObjectKey::of).collect();
        let all = listed.into_iter().flatten();
        self.custom_resources =
            all.filter(|stored| !removed.contains(&ObjectKey::of(stored))).collect();
        Ok(())
    }

    /// A namespace of our own programs goes, and all in it: not where a user has custom resources there.
    fn keep_namespaces_with_data(&mut self) {
        if self.data == Some(Data::Purge) {
            return;
        }
        let of_data: BTreeSet<String> =
            self.custom_resources.iter().filter_map(|one| ObjectKey::of(one).namespace).collect();
        let namespaces = self.stages.remove(&Stage::Namespaces).unwrap_or_default();
        for stored in namespaces {
            let key = ObjectKey::of(&stored);
            if of_data.contains(&key.name) {
                self.keep(key, Kept::Data);
            } else {
                self.stages.entry(Stage::Namespaces).or_default().push(stored);
            }
        }
    }

    /// In namespaces that stay.
    async fn look_at_what_is_left(
        &mut self,
        requests: &Requests,
        of_operator: &str,
    ) -> Result<(), Failure> {
        let deleted: Vec<String> = self
            .stages
            .get(&Stage::Namespaces)
            .into_iter()
            .flatten()
            .map(|stored| ObjectKey::of(stored).name)
            .collect();
        let mut keys = Vec::new();
        if !deleted.contains(&self.namespace) {
            keys.extend(left_in_namespace(&self.namespace));
            let leases =
                ApiResource::from_gvk(&GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease"));
            let leases = requests.list(&leases, Some(&self.namespace), "").await?;
            let is_replica = |lease: &Value| {
                ObjectKey::of(lease).name.starts_with(webhook::REPLICA_LEASE_PREFIX)
            };
            self.left.extend(leases.into_iter().filter(is_replica));
            keys.push(inventory::key(&self.namespace));
        }
        if !deleted.iter().any(|name| name == of_operator) {
            keys.push(ObjectKey::within(
                of_operator,
                "coordination.k8s.io/v1",
                "Lease",
                operator::LEADER_LEASE,
            ));
        }
        for key in keys {
            self.left.extend(requests.get(&key).await?);
        }
        Ok(())
    }

    /// Everything that is deleted, in order.
    pub(crate) fn removed(&self) -> Vec<ObjectKey> {
        let data = self.custom_resources.iter().filter(|_| self.data == Some(Data::Purge));
        let all = self
            .configurations
            .iter()
            .chain(data)
            .chain(self.stages.values().flatten())
            .chain(&self.left);
        all.map(ObjectKey::of).collect()
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_done(&self) -> bool {
        self.removed().is_empty() && self.released.is_empty()
    }

    /// That this user may delete all of it: half of an installation without the other is worse than all of it.
    ///
    /// # Errors
    /// He may not, or the cluster does not answer.
    pub(crate) async fn refuse_missing_rights(&self, requests: &Requests) -> Result<(), Failure> {
        let data = self.custom_resources.iter().filter(|_| self.data == Some(Data::Purge));
        let all = self.configurations.iter().chain(self.stages.values().flatten());
        let all = all.chain(&self.left).chain(data.take(1));
        let asked = stream::iter(all).map(async |stored| requests.may_not_delete(stored).await);
        let asked: Vec<Option<String>> = asked.buffered(CONCURRENT).try_collect().await?;
        let causes: Vec<String> = asked.into_iter().flatten().collect();
        if causes.is_empty() {
            return Ok(());
        }
        let message = "nothing has been deleted: you may not delete all of it";
        let hint = "remove it as who may install it, such as cluster-admin";
        let mut failure = Failure::new(Exit::Refused, "may-not-delete", message, hint);
        failure.causes = shortened(causes);
        Err(failure)
    }

    /// Carries it out. Returns when all of it is gone.
    ///
    /// # Errors
    /// The cluster does not answer, or something is not gone in time.
    pub(crate) async fn run(
        &self,
        requests: &Requests,
        deadline: Deadline,
        ui: &mut Ui,
    ) -> Result<(), Failure> {
        let work = Deleting { requests, deadline, namespace: &self.namespace };
        self.stage(&work, Stage::Writer, ui).await?;
        work.delete(&self.configurations, ui).await?;
        work.gone("webhook configurations", &self.configurations, ui).await?;
        ui.note(&format!("webhook configurations: {} deleted", self.configurations.len()));
        if self.data == Some(Data::Purge) {
            // While the operator runs, which may have to let them go. What others hold goes with the CRDs, or holds these.
            work.delete(&self.custom_resources, ui).await?;
            work.gone_or("custom resources", &self.custom_resources, is_left_to_others, ui).await?;
            let held = self.custom_resources.iter().filter(|one| is_held_by_others(one)).count();
            let number = self.custom_resources.len() - held;
            ui.note(&format!("custom resources: {number} deleted{}", left_to(held)));
        }
        for stage in [Stage::Programs, Stage::Policies, Stage::Access, Stage::Definitions] {
            self.stage(&work, stage, ui).await?;
        }
        // A pod on a node that is lost may have restored them before it lost the right.
        work.restored().await?;
        let is_inventory =
            |stored: &Value| ObjectKey::of(stored) == inventory::key(&self.namespace);
        let (inventory, left): (Vec<Value>, Vec<Value>) =
            self.left.iter().cloned().partition(is_inventory);
        work.delete(&left, ui).await?;
        self.namespaces(&work, ui).await?;
        // Before the inventory goes, which says that they are not ours, and after all that may take long: by these labels the
        // next run, and an install, know the inventory for one.
        for key in &self.released {
            requests.release(key).await?;
        }
        // Where its namespace stays it is the last: without it the next run knows no namespace as ours.
        work.delete(&inventory, ui).await?;
        work.gone("the inventory", &inventory, ui).await
    }

    async fn stage(&self, work: &Deleting<'_>, stage: Stage, ui: &mut Ui) -> Result<(), Failure> {
        let Some(objects) = self.stages.get(&stage) else { return Ok(()) };
        let what = match stage {
            Stage::Writer => "what writes the webhook configurations",
            Stage::Programs => "programs",
            Stage::Policies => "policies",
            Stage::Access => "rights",
            Stage::Definitions => "CRDs",
            Stage::Namespaces => "namespaces",
        };
        work.delete(objects, ui).await?;
        work.gone(what, objects, ui).await?;
        ui.note(&format!("{what}: {} deleted", objects.len()));
        Ok(())
    }

    /// That of the inventory last.
    async fn namespaces(&self, work: &Deleting<'_>, ui: &mut Ui) -> Result<(), Failure> {
        let all = self.stages.get(&Stage::Namespaces).map(Vec::as_slice).unwrap_or_default();
        let is_last = |stored: &&Value| ObjectKey::of(stored).name == self.namespace;
        let (last, others): (Vec<&Value>, Vec<&Value>) = all.iter().partition(is_last);
        for objects in [others, last] {
            let objects: Vec<Value> = objects.into_iter().cloned().collect();
            for namespace in &objects {
                self.refuse_what_came(work.requests, namespace).await?;
            }
            work.delete(&objects, ui).await?;
            work.gone("namespaces", &objects, ui).await?;
        }
        ui.note(&format!("namespaces: {} deleted", all.len()));
        Ok(())
    }

    /// Between the first look and the end of the programs minutes may be, and all in a namespace goes with it.
    async fn refuse_what_came(
        &self,
        requests: &Requests,
        namespace: &Value,
    ) -> Result<(), Failure> {
        let key = ObjectKey::of(namespace);
        let installation = inventory::installation(&self.namespace);
        let mut all = in_namespace(requests, &key.name).await?;
        // What was there is known, and what that has made since goes with it.
        let is_seen = |uid: Option<&Value>| {
            uid.and_then(Value::as_str).is_some_and(|uid| self.seen.contains(uid))
        };
        all.retain(|one| {
            !is_seen(one.pointer("/metadata/uid"))
                && !is_seen(one.pointer("/metadata/ownerReferences/0/uid"))
        });
        let found = of_others(&all, &installation, &self.pull_secrets);
        if found.is_empty() {
            return Ok(());
        }
        requests.release(&key).await?;
        let message = format!("{key} stays: objects of others have come into it meanwhile");
        let hint = "all else of it is removed; move them, or delete the namespace yourself";
        let mut failure = Failure::new(Exit::Refused, "objects-of-others", message, hint);
        failure.causes = found.iter().map(ToString::to_string).collect();
        Err(failure)
    }
}

/// What the values install.
fn default_entries(values: &Values, installation: &str) -> Result<Vec<Entry>, Failure> {
    let objects = rendered(values, installation)?.into_iter();
    let keys = objects.map(|(_, object)| ObjectKey::of(&object));
    Ok(keys.map(|key| Entry { key, existed: false }).collect())
}

/// Those that are there.
async fn stored(requests: &Requests, entries: Vec<Entry>) -> Result<Vec<(Entry, Value)>, Failure> {
    let stored = stream::iter(entries).map(async |entry| {
        let stored = requests.get(&entry.key).await?;
        Ok::<_, Failure>(stored.map(|stored| (entry, stored)))
    });
    let stored: Vec<Option<(Entry, Value)>> = stored.buffered(CONCURRENT).try_collect().await?;
    Ok(stored.into_iter().flatten().collect())
}

/// All objects in a namespace of ours that may be somebody else's.
async fn in_namespace(requests: &Requests, namespace: &str) -> Result<Vec<Value>, Failure> {
    let kinds = requests.kinds_in_namespaces().await?.into_iter();
    let kinds: Vec<ApiResource> =
        kinds.filter(|kind| is_looked_at(&kind.group, &kind.kind)).collect();
    let listed =
        stream::iter(&kinds).map(async |kind| requests.list(kind, Some(namespace), "").await);
    let listed: Vec<Vec<Value>> = listed.buffered(CONCURRENT).try_collect().await?;
    Ok(listed.into_iter().flatten().collect())
}

fn uid_of(stored: &Value) -> Option<String> {
    stored.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned)
}

/// What a CRD defines, in the version in which it is stored.
fn resource(definition: &Value) -> Option<ApiResource> {
    let text = |value: &Value, pointer: &str| {
        value.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
    };
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array)?;
    let stored =
        versions.iter().find(|one| one.get("storage").and_then(Value::as_bool) == Some(true))?;
    let kind = GroupVersionKind::gvk(
        &text(definition, "/spec/group")?,
        &text(stored, "/name")?,
        &text(definition, "/spec/names/kind")?,
    );
    Some(ApiResource::from_gvk_with_plural(&kind, &text(definition, "/spec/names/plural")?))
}
