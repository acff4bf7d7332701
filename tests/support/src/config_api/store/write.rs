//! What changes objects.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::{
    Body, Change, Elements, Object, Operation, Parent, Refusal, Store, elements_of, is_reference,
    names, new_uuid,
};
use crate::config_api::schema::{Kind, Others, Property, Storage};
use crate::config_api::{python, validate};

/// Fields of a body that are no properties.
const IDENTITY: [&str; 10] = [
    "uuid",
    "fq_name",
    "name",
    "href",
    "parent_type",
    "parent_uuid",
    "parent_href",
    "id_perms",
    "perms2",
    "display_name",
];

impl Store {
    /// `POST` of a collection. The name is taken from here on, or was taken before.
    pub(in crate::config_api) fn create(
        &mut self,
        kind: &'static Kind,
        mut body: Body,
    ) -> Result<String, Refusal> {
        let fq_name = checked_name(&body)?;
        validate::properties(kind.typed(), &mut body)
            .map_err(|text| Refusal::bad(format!("Bad property in create: {text}")))?;
        if let Some(other) = self.by_name(kind, &fq_name) {
            let text =
                format!("{} already exists with uuid: {}", python::list(&fq_name), other.uuid);
            return Err(Refusal::new(StatusCode::CONFLICT, text));
        }
        check_parent_type(kind, &body, &fq_name)?;
        let uuid = self.free_uuid(&body)?;
        let parent = self.parent(&body, &fq_name)?;
        let stamp = self.stamp();
        let object = Object {
            kind,
            owner: self.owner(kind, &uuid, parent.as_ref()),
            uuid: uuid.clone(),
            fq_name,
            parent,
            created: stamp.clone(),
            last_modified: stamp,
            properties: Map::new(),
            elements: Default::default(),
            relaxed: Default::default(),
        };
        let shown = body.remove("display_name").filter(|name| !name.is_null());
        let shown = shown.unwrap_or_else(|| json!(object.name()));
        self.objects.push(object);
        if let Err(refusal) = self.write(&uuid, body) {
            self.objects.pop();
            return Err(refusal);
        }
        if let Some(object) = self.objects.last_mut() {
            object.properties.insert("display_name".to_owned(), shown);
        }
        self.changes.push(Change { operation: Operation::Create, kind, uuid: uuid.clone() });
        Ok(uuid)
    }

    fn free_uuid(&self, body: &Body) -> Result<String, Refusal> {
        let Some(wanted) = body.get("uuid").and_then(Value::as_str) else { return Ok(new_uuid()) };
        match self.by_uuid(wanted) {
            None => Ok(wanted.to_owned()),
            Some(other) => {
                let name = python::list(&other.fq_name);
                let text = format!("{wanted} already exists with fq_name: {name}");
                Err(Refusal::new(StatusCode::CONFLICT, text))
            }
        }
    }

    /// Only a body that says `parent_type` gets a parent, whatever its name says.
    fn parent(&self, body: &Body, fq_name: &[String]) -> Result<Option<Parent>, Refusal> {
        let name = body.get("parent_type").and_then(Value::as_str);
        let Some(name) = name.filter(|name| *name != "config-root") else { return Ok(None) };
        let kind = Kind::find(name).ok_or_else(|| unknown_kind(name))?;
        let above = fq_name.get(..fq_name.len() - 1).unwrap_or_default();
        match self.by_name(kind, above) {
            Some(parent) => Ok(Some(Parent { kind, uuid: parent.uuid.clone() })),
            None if name == "domain" => {
                let above = python::list(above);
                Err(Refusal::bad(format!("Parent {above} type {name} does not exist")))
            }
            None => Err(Refusal::missing(format!("Name{} not found", python::list(above)))),
        }
    }

    fn owner(&self, kind: &Kind, uuid: &str, parent: Option<&Parent>) -> String {
        let above = parent.filter(|parent| parent.kind.name != "domain");
        let above = above.and_then(|parent| self.by_uuid(&parent.uuid));
        match above {
            _ if kind.name == "project" => uuid.replace('-', ""),
            Some(parent) => parent.owner.clone(),
            None => "cloud-admin".to_owned(),
        }
    }

    /// `PUT` of an object. What is named is replaced whole; the rest stays.
    pub(in crate::config_api) fn update(
        &mut self,
        kind: &Kind,
        uuid: &str,
        mut body: Body,
    ) -> Result<(), Refusal> {
        let object = self.by_uuid(uuid).filter(|object| object.kind.name == kind.name);
        let object = object.ok_or_else(|| unknown_id(uuid))?;
        validate::properties(object.kind.typed(), &mut body)
            .map_err(|text| Refusal::bad(format!("Bad property in http_put: {text}")))?;
        self.write(uuid, body)?;
        self.touch(uuid);
        Ok(())
    }

    /// Writes what is named, or nothing where that fails.
    fn write(&mut self, uuid: &str, body: Body) -> Result<(), Refusal> {
        let object = self.by_uuid(uuid).ok_or_else(|| unknown_id(uuid))?;
        let kind = object.kind;
        let (mut properties, mut elements) = (object.properties.clone(), object.elements.clone());
        for (field, value) in body {
            let property = kind.property(&field);
            let is_known =
                property.is_some() || is_reference(&field) || kind.others == Others::Kept;
            let is_property = field == "display_name" || !IDENTITY.contains(&field.as_str());
            match property {
                _ if !is_known || !is_property => {}
                Some(property) if !matches!(property.storage, Storage::Whole) => {
                    elements.insert(property.name, whole_collection(property, &value)?);
                }
                // What was there is removed; where nothing was, a null is written.
                _ if value.is_null() && properties.contains_key(&field) => {
                    properties.remove(&field);
                }
                _ => {
                    let value = self.resolve(&field, value);
                    properties.insert(field, value);
                }
            }
        }
        if let Some(object) = self.by_uuid_mut(uuid) {
            object.properties = properties;
            object.elements = elements;
        }
        Ok(())
    }

    /// `DELETE` of an object.
    pub(in crate::config_api) fn delete(
        &mut self,
        kind: &Kind,
        uuid: &str,
        base: &str,
    ) -> Result<(), Refusal> {
        let object = self.by_uuid(uuid);
        let object = object.ok_or_else(|| Refusal::missing(format!("ID {uuid} does not exist")))?;
        if object.kind.name != kind.name {
            return Err(other_kind(kind, uuid));
        }
        let deleted = object.kind;
        let href = |object: &Object| format!("{base}/{}/{}", object.kind.name, object.uuid);
        let children: Vec<String> = self.children(uuid).map(href).collect();
        let holds = |other: &&Object| !object.relaxed.contains(&other.uuid);
        let referrers: Vec<String> = self.referrers(uuid).filter(holds).map(href).collect();
        let (reason, holders) = match children.is_empty() {
            false => ("children still present", children),
            true => ("resource still referred", referrers),
        };
        if !holders.is_empty() {
            let text = format!("Delete when {reason}: {}", python::list(&holders));
            return Err(Refusal::new(StatusCode::CONFLICT, text));
        }
        self.objects.retain(|object| object.uuid != uuid);
        self.objects.iter_mut().for_each(|other| other.forget(uuid));
        let uuid = uuid.to_owned();
        self.changes.push(Change { operation: Operation::Delete, kind: deleted, uuid });
        Ok(())
    }

    /// `POST /ref-relax-for-delete`: the reference of the one no longer keeps the other from being deleted.
    pub(in crate::config_api) fn relax(&mut self, body: &Value) -> Result<Value, Refusal> {
        let uuid = |name: &str| body.get(name).and_then(Value::as_str);
        let (Some(from), Some(to)) = (uuid("uuid"), uuid("ref-uuid")) else {
            return Err(Refusal::bad("Bad Request: Both uuid and ref-uuid should be specified"));
        };
        let missing = || Refusal::missing(format!("uuid {from} not found"));
        self.by_uuid(from).ok_or_else(missing)?;
        self.by_uuid_mut(to).ok_or_else(missing)?.relaxed.insert(from.to_owned());
        Ok(json!({"uuid": from}))
    }

    /// `POST /prop-collection-update`: elements of lists and maps, one by one.
    pub(in crate::config_api) fn update_collection(&mut self, body: &Value) -> Result<(), Refusal> {
        let fields = body.as_object().ok_or_else(Refusal::internal)?;
        let uuid = fields.get("uuid").and_then(Value::as_str).filter(|uuid| !uuid.is_empty());
        let uuid = uuid
            .ok_or_else(|| Refusal::bad("Error: prop_collection_update needs obj_uuid"))?
            .to_owned();
        let object = self.by_uuid(&uuid);
        let object = object.ok_or_else(|| Refusal::missing(format!("Object Not Found: {uuid}")))?;
        let updates = fields.get("updates").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut elements = object.elements.clone();
        for update in &updates {
            let field = update.get("field").and_then(Value::as_str).unwrap_or("None");
            let property = object.kind.property(field);
            let property = property.filter(|one| !matches!(one.storage, Storage::Whole));
            let property = property.ok_or_else(|| {
                Refusal::bad(format!("{field} neither \"ListProperty\" nor \"MapProperty\""))
            })?;
            one_update(property, update, elements.entry(property.name).or_default())?;
        }
        if updates.is_empty() {
            return Ok(());
        }
        if let Some(object) = self.by_uuid_mut(&uuid) {
            object.elements = elements;
        }
        self.touch(&uuid);
        Ok(())
    }
}

fn checked_name(body: &Body) -> Result<Vec<String>, Refusal> {
    let absent = || Refusal::bad("Bad Request, no fq_name in POST body");
    let value = body.get("fq_name").filter(|name| !python::is_falsy(name)).ok_or_else(absent)?;
    let fq_name = names(value).ok_or_else(Refusal::internal)?;
    if fq_name.last().is_some_and(|name| name.contains(':')) {
        return Err(Refusal::bad("Bad Request, name has one of invalid chars {':'}"));
    }
    Ok(fq_name)
}

fn check_parent_type(kind: &Kind, body: &Body, fq_name: &[String]) -> Result<(), Refusal> {
    let given = body.get("parent_type").and_then(Value::as_str);
    let allowed: Vec<String> = kind.parents.iter().map(ToString::to_string).collect();
    let allowed_text = python::list(&allowed);
    let parent = match (given, kind.parents) {
        (Some(given), parents) if !parents.contains(&given) => {
            let text = format!("Invalid parent type: {given}. Allowed types: {allowed_text}");
            return Err(Refusal::bad(text));
        }
        (Some(given), _) => given,
        (None, [only]) => only,
        (None, parents) if parents.contains(&"config-root") => "config-root",
        (None, _) => {
            let text = format!("Missing parent type: None. Allowed types: {allowed_text}");
            return Err(Refusal::bad(text));
        }
    };
    let shown = python::list(fq_name);
    if parent == "config-root" && fq_name.len() != 1 {
        let text = format!("Invalid fq-name of an object with no parent: {shown}");
        return Err(Refusal::bad(text));
    }
    if parent != "config-root" && fq_name.len() < 2 {
        let text = format!("Invalid fq-name for object with parent_type {parent}: {shown}");
        return Err(Refusal::bad(text));
    }
    Ok(())
}

/// A list by position, a map by its key.
fn whole_collection(property: &Property, value: &Value) -> Result<Elements, Refusal> {
    let items = elements_of(value)?.into_iter().enumerate();
    items
        .map(|(position, item)| match property.storage {
            Storage::Map { key, .. } => {
                let key = item.get(key).map(python::text).ok_or_else(|| {
                    let text = format!("KeyError: '{key}'");
                    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, text)
                })?;
                Ok((key, item))
            }
            _ => Ok((position.to_string(), item)),
        })
        .collect()
}

fn one_update(property: &Property, update: &Value, elements: &mut Elements) -> Result<(), Refusal> {
    let operation = update.get("operation").and_then(Value::as_str);
    let operation = operation.ok_or_else(Refusal::internal)?;
    let mut value = update.get("value").cloned().unwrap_or(Value::Null);
    if let Some(class) = property.element().filter(|_| !value.is_null()) {
        validate::complex_value(class, &mut value).map_err(Refusal::bad)?;
    }
    let given = update.get("position").filter(|position| !python::is_falsy(position));
    let position = given.map(python::text);
    match (property.storage, operation.to_lowercase().as_str()) {
        (Storage::Map { key, .. }, "set") => {
            let key = value.get(key).map(python::text).ok_or_else(Refusal::internal)?;
            elements.insert(key, value);
        }
        (Storage::List { .. }, "add") if !value.is_null() => {
            elements.insert(position.unwrap_or_else(new_uuid), value);
        }
        (Storage::List { .. }, "modify") if !value.is_null() => {
            elements.insert(position.ok_or_else(Refusal::internal)?, value);
        }
        (_, "delete") => {
            elements.remove(&position.ok_or_else(Refusal::internal)?);
        }
        _ => {
            let text = format!("Unsupported operation {operation} in request {update}");
            return Err(Refusal::bad(text));
        }
    }
    Ok(())
}

pub(in crate::config_api) fn unknown_id(uuid: &str) -> Refusal {
    Refusal::missing(format!("Unknown id: {uuid}"))
}

pub(in crate::config_api) fn other_kind(kind: &Kind, uuid: &str) -> Refusal {
    Refusal::missing(format!("No {} object found for id {uuid}", kind.name))
}

pub(in crate::config_api) fn unknown_kind(name: &str) -> Refusal {
    Refusal::missing(format!("Resource type '{name}' not found"))
}
