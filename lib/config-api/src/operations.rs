//! What the Config API is asked, in general: objects by name and UUID, lists, properties, collections. What the
//! properties mean is not known here.

use std::collections::BTreeSet;

use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use crate::client::{Answer, Call, ConfigApi, Error, Login, Reading, Refusal, Repeat};

/// The most of an answer about one object.
const MOST: u64 = 32 << 20;
/// The most of a list of a whole cloud.
const MOST_OF_LIST: u64 = 64 << 20;
/// What may be in a query as it is.
const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b',');

/// An object, as much of it as was asked for.
#[derive(Clone, Debug, Default)]
pub struct Object {
    /// Its properties.
    pub fields: Map<String, Value>,
    /// Its version, which any change moves.
    pub etag: String,
}

/// Whether a version is the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// It is.
    Newest,
    /// The object has changed since.
    Outdated,
}

/// What has become of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// Nothing.
    Same,
    /// It has another version.
    Changed {
        /// The version without quotation marks; empty where it says none.
        last_modified: String,
    },
    /// It is not there.
    Gone,
}

/// What came of an object that was to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Created {
    /// It has been made.
    New {
        /// Its UUID.
        uuid: String,
    },
    /// There was one of this name.
    Exists,
}

/// A change of one element of a property that is a list or a map.
pub(crate) enum Element<'a> {
    /// Sets an element of a list or map.
    Put { field: &'a str, operation: &'a str, position: &'a str, value: Value },
    /// Removes it.
    Delete { field: &'a str, position: &'a str },
}

/// How the Config API decides what a user may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AaaMode {
    /// Everyone may do everything.
    NoAuth,
    /// The role `admin` may do everything, others nothing.
    CloudAdmin,
    /// By rules.
    Rbac,
    /// One that is not known here.
    Other(String),
}

impl ConfigApi {
    /// What it can do, by the names of the links of its first page: `watch`, `prop-collection-update`. No login is needed.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn features(&self) -> Result<BTreeSet<String>, Error> {
        let call = Call { login: Login::Never, ..Call::new(Method::GET, "/") };
        let page = self.value(&call).await?;
        let links = page.get("links").and_then(Value::as_array).into_iter().flatten();
        let names = links.filter_map(|link| link.pointer("/link/name")?.as_str());
        Ok(names.map(str::to_owned).collect())
    }

    /// The mode of authorisation.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub async fn aaa_mode(&self) -> Result<AaaMode, Error> {
        let answer = self.value(&Call::new(Method::GET, "/aaa-mode")).await?;
        let mode = answer.get("aaa-mode").and_then(Value::as_str).unwrap_or_default();
        Ok(match mode {
            "no-auth" => AaaMode::NoAuth,
            "cloud-admin" => AaaMode::CloudAdmin,
            "rbac" => AaaMode::Rbac,
            other => AaaMode::Other(other.to_owned()),
        })
    }

    /// Whether this login may write an object, by the permissions of the object; what rules of `rbac` say of its kind is not
    /// among it. The answer has the token in it, and goes no further.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub async fn may_write(&self, uuid: &str) -> Result<bool, Error> {
        let path = format!("/obj-perms?uuid={}", escaped(uuid));
        let answer = self.value(&Call::new(Method::GET, &path)).await?;
        let permissions = answer.get("permissions").and_then(Value::as_str);
        permissions.map(|all| all.contains('W')).ok_or_else(|| Error::Unreadable {
            address: "that was asked".to_owned(),
            what: "GET /obj-perms".to_owned(),
            why: "no permissions".to_owned(),
        })
    }

    /// The UUID of an object by its name; none if there is none.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub async fn id_of(&self, kind: &str, name: &[&str]) -> Result<Option<String>, Error> {
        let body = json!({"type": kind, "fq_name": name});
        let call = Call { body: Some(&body), ..Call::new(Method::POST, "/fqname-to-id") };
        let answer = self.value(&call).await;
        Ok(present(answer)?.and_then(|answer| Some(answer.get("uuid")?.as_str()?.to_owned())))
    }

    /// An object with these fields; none if there is none.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub async fn object(
        &self,
        kind: &str,
        uuid: &str,
        fields: &[&str],
    ) -> Result<Option<Object>, Error> {
        let path = format!("/{kind}/{}?fields={}", escaped(uuid), escaped(&fields.join(",")));
        self.one(kind, &path).await
    }

    async fn one(&self, kind: &str, path: &str) -> Result<Option<Object>, Error> {
        match present(self.call(&Call::new(Method::GET, path)).await)? {
            Some(Answer::Body { mut value, etag }) => {
                let object = value.get_mut(kind).map(Value::take);
                let Some(Value::Object(fields)) = object else { return Ok(None) };
                Ok(Some(Object { fields, etag: etag.unwrap_or_default() }))
            }
            _ => Ok(None),
        }
    }

    /// Whether a version of an object is the newest. One that is gone is outdated.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub async fn version(&self, kind: &str, uuid: &str, etag: &str) -> Result<Version, Error> {
        Ok(match self.since(kind, uuid, Some(etag)).await? {
            Since::Same => Version::Newest,
            Since::Changed { .. } | Since::Gone => Version::Outdated,
        })
    }

    /// What has become of an object since a version of it.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub(crate) async fn since(
        &self,
        kind: &str,
        uuid: &str,
        etag: Option<&str>,
    ) -> Result<Since, Error> {
        let path = format!("/{kind}/{}?fields=id_perms", escaped(uuid));
        let call = Call { etag, ..Call::new(Method::GET, &path) };
        Ok(match present(self.call(&call).await)? {
            Some(Answer::NotModified) => Since::Same,
            Some(Answer::Body { value, .. }) => {
                let object = value.get(kind).and_then(Value::as_object);
                Since::Changed { last_modified: object.map(last_modified).unwrap_or_default() }
            }
            Some(Answer::List(_) | Answer::Events(_)) | None => Since::Gone,
        })
    }

    /// An object with all that it has and all that refers to it; none if there is none.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub(crate) async fn whole(&self, kind: &str, uuid: &str) -> Result<Option<Object>, Error> {
        let path = format!("/{kind}/{}?exclude_hrefs=1", escaped(uuid));
        self.one(kind, &path).await
    }

    /// What `take` makes of each object of a kind with these fields; `query` narrows them down. An object at a time is in
    /// memory, and what is made of it.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub async fn list<T>(
        &self,
        kind: &str,
        fields: &[&str],
        query: &[(&str, &str)],
        mut take: impl FnMut(Map<String, Value>) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let fields = fields.join(",");
        let all = [("detail", "true"), ("exclude_hrefs", "1"), ("fields", &fields)];
        let query = all.iter().chain(query).map(|(key, value)| format!("{key}={}", escaped(value)));
        let path = format!("/{kind}s?{}", query.collect::<Vec<String>>().join("&"));
        let reading = Reading::List;
        let call = Call { most: MOST_OF_LIST, reading, ..Call::new(Method::GET, &path) };
        let mut taken = Vec::new();
        if let Answer::List(list) = self.call(&call).await? {
            list.each(&format!("{kind}s"), |mut one| {
                if let Some(Value::Object(fields)) = one.get_mut(kind).map(Value::take) {
                    taken.extend(take(fields));
                }
            })?;
        }
        Ok(taken)
    }

    /// Replaces properties whole; others stay. It is not repeated where it may have been done: what has been read before
    /// it may be outdated then.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub(crate) async fn put(
        &self,
        kind: &str,
        uuid: &str,
        properties: Map<String, Value>,
    ) -> Result<(), Error> {
        let path = format!("/{kind}/{}", escaped(uuid));
        let body = wrapped(kind, properties.into());
        let call =
            Call { body: Some(&body), repeat: Repeat::Unsafe, ..Call::new(Method::PUT, &path) };
        self.value(&call).await.map(|_| ())
    }

    /// Makes an object, unless there is one of its name.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub(crate) async fn create(&self, kind: &str, object: Value) -> Result<Created, Error> {
        let path = format!("/{kind}s");
        let body = wrapped(kind, object);
        let call = Call { body: Some(&body), ..Call::new(Method::POST, &path) };
        match self.value(&call).await {
            Ok(answer) => {
                let uuid = answer.pointer(&format!("/{kind}/uuid")).and_then(Value::as_str);
                Ok(Created::New { uuid: uuid.unwrap_or_default().to_owned() })
            }
            Err(Error::Refused { refusal: Refusal::Conflict(_), .. }) => Ok(Created::Exists),
            Err(error) => Err(error),
        }
    }

    /// Deletes an object; that it is not there is no error.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub(crate) async fn delete(&self, kind: &str, uuid: &str) -> Result<(), Error> {
        let path = format!("/{kind}/{}", escaped(uuid));
        present(self.value(&Call::new(Method::DELETE, &path)).await).map(|_| ())
    }

    /// Changes elements of properties that are lists or maps, without the other elements; that there is no such
    /// object is an error.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub(crate) async fn update(&self, uuid: &str, elements: &[Element<'_>]) -> Result<(), Error> {
        let updates: Vec<Value> = elements.iter().map(Element::json).collect();
        let body = json!({"uuid": uuid, "updates": updates});
        let call = Call { body: Some(&body), ..Call::new(Method::POST, "/prop-collection-update") };
        self.value(&call).await.map(|_| ())
    }

    async fn value(&self, call: &Call<'_>) -> Result<Value, Error> {
        Ok(match self.call(call).await? {
            Answer::Body { value, .. } => value,
            Answer::NotModified | Answer::List(_) | Answer::Events(_) => Value::Null,
        })
    }
}

impl Element<'_> {
    fn json(&self) -> Value {
        match self {
            Self::Put { field, operation, position, value } => json!({
                "field": field, "operation": operation, "position": position, "value": value,
            }),
            Self::Delete { field, position } => {
                json!({"field": field, "operation": "delete", "position": position})
            }
        }
    }
}

impl<'a> Call<'a> {
    pub(crate) fn new(method: Method, path: &'a str) -> Self {
        Self {
            method,
            path,
            body: None,
            etag: None,
            repeat: Repeat::Safe,
            login: Login::WhereConfigured,
            most: MOST,
            reading: Reading::Whole,
        }
    }
}

fn wrapped(kind: &str, value: Value) -> Value {
    Value::Object([(kind.to_owned(), value)].into_iter().collect())
}

/// The version of an object as its properties have it: that of its `Etag` without quotation marks.
pub(crate) fn last_modified(object: &Map<String, Value>) -> String {
    let time = object.get("id_perms").and_then(|perms| perms.get("last_modified")?.as_str());
    time.unwrap_or_default().to_owned()
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, &PLAIN).to_string()
}

/// That something is not there is an answer.
fn present<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Error::Refused { refusal: Refusal::NotFound(_), .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
