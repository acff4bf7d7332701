//! What both sides say of a case, without a program each time: the API server is asked by its API, with
//! `dryRun=All`, and answers what kubectl would print; files are judged by the library that
//! `kubectl opensdn validate` is. (The samples go through both programs.)

use std::path::{Path, PathBuf};

use http::{Request, Response};
use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject, PostParams, Request as Requests};
use kube::client::Body;
use opensdn_crds::unique_claim::UniqueClaimSpec;
use opensdn_policy_host::{Cache, Engine, Metering};
use opensdn_testing::kubectl::Said;
use opensdn_validate::{
    Answer, Cluster, Listed, Loader, ObjectName, Operator, Page, Task, validate,
};
use serde_json::Value;

use super::kinds::Kinds;
use super::{Failed, World};

/// A write that is judged and not stored.
#[derive(Clone, Copy)]
pub(crate) enum Write<'a> {
    Create,
    Replace,
    /// As this user; as the administrator if it has no name.
    Delete(&'a str),
}

pub(crate) struct Direct {
    kinds: Kinds,
    engine: Engine,
    cache: Cache,
}

impl Direct {
    pub(crate) fn of(world: &World) -> Result<Self, Failed> {
        Ok(Self {
            kinds: Kinds::of(world.sandbox.client()?),
            engine: Engine::start_metered(4, Metering::Off)?,
            cache: Cache::open(world.folder.path().join("compiled"))?,
        })
    }

    /// What the API server says of the write, in the words of kubectl.
    pub(crate) async fn wire(&mut self, write: Write<'_>, object: &Value) -> Result<Said, Failed> {
        let mut object: DynamicObject = serde_json::from_value(object.clone())?;
        let api = match self.kinds.api(&object).await {
            Ok(api) => api,
            Err(error) => return no_such_kind(error),
        };
        let name = object.name_any();
        let requests = Requests::new(api.resource_url());
        let params = PostParams { dry_run: true, ..PostParams::default() };
        let request = match write {
            Write::Create => requests.create(&params, serde_json::to_vec(&object)?)?,
            Write::Replace => {
                let stored = api.get(&name).await?;
                object.metadata.resource_version = stored.metadata.resource_version;
                requests.replace(&name, &params, serde_json::to_vec(&object)?)?
            }
            Write::Delete(user) => {
                let params = DeleteParams { dry_run: true, ..DeleteParams::default() };
                as_user(requests.delete(&name, &params)?, user)?
            }
        };
        said(self.kinds.client().send(request.map(Body::from)).await?).await
    }

    /// The report of `validate -o json` on these files.
    pub(crate) async fn report(
        &self,
        names: &[PathBuf],
        settings: PathBuf,
    ) -> Result<Value, Failed> {
        let loader = Loader { engine: &self.engine, cache: Some(&self.cache), compiler: None };
        let settings = Some(settings);
        let operator = Operator::TfOperator;
        let policies = vec![Path::new(super::ROOT).join(super::SECRET_KEYS)];
        let task = Task { names: names.to_vec(), settings, operator, policies, ..Task::default() };
        let validated = Box::pin(validate(loader, &task, Some(&NothingElse))).await?;
        Ok(serde_json::to_value(&validated.report)?)
    }
}

/// A cluster that has what is in the files: what is not there is not there.
struct NothingElse;

impl Cluster for NothingElse {
    fn kinds<'a>(&'a self, _: &'a str) -> Answer<'a, Vec<String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn page<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: Option<&'a str>,
        _: Option<String>,
    ) -> Answer<'a, Page> {
        Box::pin(async { Ok(Listed::Objects(Vec::new()).into()) })
    }

    fn get<'a>(&'a self, _: ObjectName<'a>) -> Answer<'a, Option<Value>> {
        Box::pin(async { Ok(None) })
    }

    fn claims(&self) -> Answer<'_, Vec<UniqueClaimSpec>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// There is no server to ask.
fn no_such_kind(error: Failed) -> Result<Said, Failed> {
    match error.downcast_ref() {
        Some(kube::Error::Discovery(missing)) => {
            Ok(Said { ok: false, out: String::new(), err: missing.to_string() })
        }
        _ => Err(error),
    }
}

fn as_user(mut request: Request<Vec<u8>>, user: &str) -> Result<Request<Vec<u8>>, Failed> {
    if !user.is_empty() {
        let headers = request.headers_mut();
        headers.insert("Impersonate-User", user.parse()?);
        headers.insert("Impersonate-Group", "system:masters".parse()?);
    }
    Ok(request)
}

async fn said(response: Response<Body>) -> Result<Said, Failed> {
    let warnings = response.headers().get_all("warning").iter();
    let mut err = String::new();
    for warning in warnings {
        err.push_str(&format!(
            "Warning: {}\n",
            warning_text(std::str::from_utf8(warning.as_bytes())?)?
        ));
    }
    let ok = response.status().is_success();
    let body = response.into_body().collect_bytes().await?;
    if !ok {
        let status: Value = serde_json::from_slice(&body)?;
        err.push_str(status["message"].as_str().ok_or("a status without a message")?);
    }
    Ok(Said { ok, out: String::new(), err })
}

/// The text of `299 - "text"`, in which quotes and backslashes are escaped.
fn warning_text(header: &str) -> Result<String, Failed> {
    let quoted = header.split_once('"').and_then(|(_, rest)| rest.strip_suffix('"'));
    let mut characters = quoted.ok_or("a warning without a text")?.chars();
    let mut text = String::new();
    while let Some(character) = characters.next() {
        text.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    Ok(text)
}
