//! What `kubectl get -o json` would print, without the tenth of a second of processor time that kubectl takes to start: tests read
//! several times a second. Only what tests read by; where it is not sure that kubectl would understand the arguments alike it says so.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use kube::Client;
use kube::discovery::{ApiResource, Discovery, Scope};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::Failed;
use crate::sandbox::Cluster;

/// What is read, of the kinds in this order.
#[derive(Debug, Default, PartialEq, Eq)]
struct Get<'a> {
    kinds: Vec<&'a str>,
    name: Option<&'a str>,
    /// None: that of the kubeconfig, `default`.
    namespace: Option<&'a str>,
    is_everywhere: bool,
    selector: Option<&'a str>,
}

impl<'a> Get<'a> {
    /// None where it is not understood.
    fn parse(arguments: &[&'a str]) -> Option<Self> {
        let mut get = Self::default();
        let mut places = Vec::new();
        let mut all = arguments.iter().copied();
        while let Some(one) = all.next() {
            let (flag, value) = match one.split_once('=') {
                Some((flag, value)) if flag.starts_with('-') => (flag, Some(value)),
                _ => (one, None),
            };
            match flag {
                "-n" | "--namespace" => get.namespace = Some(value.or_else(|| all.next())?),
                "-l" | "--selector" => get.selector = Some(value.or_else(|| all.next())?),
                "-A" | "--all-namespaces" if value.is_none() => get.is_everywhere = true,
                _ if flag.starts_with('-') => return None,
                _ => places.push(one),
            }
        }
        let [kinds, names @ ..] = places.as_slice() else { return None };
        get.kinds = kinds.split(',').collect();
        get.name = match names {
            [] => None,
            [name] if get.kinds.len() == 1 && !get.is_everywhere => Some(name),
            _ => return None,
        };
        let is_plain = |text: &&str| !text.is_empty() && !text.contains('/');
        let is_known = get.kinds.iter().all(is_plain) && get.name.iter().all(is_plain);
        (is_known && (get.name.is_none() || get.selector.is_none())).then_some(get)
    }

    fn path(&self, resource: &ApiResource, scope: &Scope) -> String {
        let root = if resource.group.is_empty() { "/api" } else { "/apis" };
        let mut path = format!("{root}/{}", resource.api_version);
        if *scope == Scope::Namespaced && !self.is_everywhere {
            path.push_str(&format!("/namespaces/{}", self.namespace.unwrap_or("default")));
        }
        path.push_str(&format!("/{}", resource.plural));
        if let Some(name) = self.name {
            path.push_str(&format!("/{name}"));
        }
        if let Some(selector) = self.selector {
            path.push_str(&format!(
                "?labelSelector={}",
                utf8_percent_encode(selector, NON_ALPHANUMERIC)
            ));
        }
        path
    }
}

/// None where kubectl has to be asked.
///
/// # Errors
/// The API server does not answer, or there is no such object.
pub(crate) async fn get(cluster: &Cluster, arguments: &[&str]) -> Result<Option<Value>, Failed> {
    let Some(get) = Get::parse(arguments) else { return Ok(None) };
    let place = cluster.kubeconfig();
    let known = locked(&CLIENTS).get(&place).cloned();
    if let Some(client) = known {
        match answer(&get, &place, &client).await {
            Ok(answer) => return Ok(answer),
            Err(kube::Error::Api(status)) => return Err(kube::Error::Api(status).into()),
            // It lives as long as the runtime of the test that has made it, and its connections as long as the API server.
            Err(_) => {}
        }
    }
    let client = cluster.client()?;
    let answered = answer(&get, &place, &client).await?;
    locked(&CLIENTS).insert(place, client);
    Ok(answered)
}

async fn answer(get: &Get<'_>, place: &Path, client: &Client) -> kube::Result<Option<Value>> {
    let mut items = Vec::new();
    for kind in &get.kinds {
        let Some((resource, scope)) = resolve(place, client, kind).await? else { return Ok(None) };
        let request = http::Request::get(get.path(&resource, &scope)).body(Vec::new());
        let mut answer: Value = client.request(request.map_err(kube::Error::HttpError)?).await?;
        if get.name.is_some() {
            plain(&mut answer, &resource);
            return Ok(Some(answer));
        }
        let all = answer.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take);
        for mut one in all.unwrap_or_default() {
            plain(&mut one, &resource);
            items.push(one);
        }
    }
    Ok(Some(
        json!({"apiVersion": "v1", "kind": "List", "items": items, "metadata": {"resourceVersion": ""}}),
    ))
}

/// As kubectl prints an object: with its kind, which lists leave out, and without who has written its fields.
fn plain(object: &mut Value, resource: &ApiResource) {
    let Some(object) = object.as_object_mut() else { return };
    object.entry("apiVersion").or_insert_with(|| resource.api_version.as_str().into());
    object.entry("kind").or_insert_with(|| resource.kind.as_str().into());
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

type Resources = Arc<Vec<(ApiResource, Scope)>>;

/// What each cluster serves, by its kubeconfig, as far as it was needed.
static KNOWN: LazyLock<Mutex<HashMap<PathBuf, Resources>>> = LazyLock::new(Mutex::default);
/// So that not each reading begins a connection.
static CLIENTS: LazyLock<Mutex<HashMap<PathBuf, Client>>> = LazyLock::new(Mutex::default);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kind by its name or plural, with its group or without; asked for again where it is not known yet.
async fn resolve(
    place: &Path,
    client: &Client,
    kind: &str,
) -> kube::Result<Option<(ApiResource, Scope)>> {
    let known = locked(&KNOWN).get(place).cloned();
    if let Some(found) = known.and_then(|known| find(&known, kind)) {
        return Ok(Some(found));
    }
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let groups = discovery.groups_alphabetical().into_iter();
    let all = groups.flat_map(kube::discovery::ApiGroup::recommended_resources);
    let all: Resources = Arc::new(all.map(|(resource, can)| (resource, can.scope)).collect());
    let found = find(&all, kind);
    locked(&KNOWN).insert(place.to_owned(), all);
    Ok(found)
}

/// None where several groups have it, and the name does not say which; of Kubernetes' core there is one.
fn find(known: &Resources, kind: &str) -> Option<(ApiResource, Scope)> {
    let (name, group) = kind.split_once('.').unzip();
    let name = name.unwrap_or(kind);
    let is_it = |(resource, _): &&(ApiResource, Scope)| {
        let is_named = resource.plural == name || resource.kind.to_lowercase() == name;
        is_named && group.is_none_or(|group| resource.group == group)
    };
    let found: Vec<_> = known.iter().filter(is_it).collect();
    let of_core = found.iter().find(|(resource, _)| resource.group.is_empty());
    match (found.as_slice(), of_core) {
        (_, Some(found)) | ([found], None) => Some((*found).clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_understood_as_kubectl_does_or_left_to_it() {
        let pods = Get { kinds: vec!["pods"], namespace: Some("tf"), ..Get::default() };
        assert_eq!(Get::parse(&["pods", "-n", "tf"]).as_ref(), Some(&pods));
        assert_eq!(Get::parse(&["-n=tf", "pods"]), Some(pods));
        let one = Get::parse(&["managers.tf.tungsten.io", "--namespace=tf", "cluster1"]).unwrap();
        assert_eq!((one.name, one.namespace), (Some("cluster1"), Some("tf")));
        let some = Get::parse(&["statefulsets,clusterroles", "-A", "-l", "a=b,c"]).unwrap();
        assert_eq!((some.kinds.len(), some.is_everywhere, some.selector), (2, true, Some("a=b,c")));
        for left in [
            &["pods", "a", "b"][..],
            &["pod/a"],
            &["pods,secrets", "a"],
            &["pods", "-w"],
            &["pods", "a", "-l", "b"],
            &["-n", "tf"],
            &[],
        ] {
            assert_eq!(Get::parse(left), None, "{left:?}");
        }
    }

    #[test]
    fn a_path_has_the_group_the_namespace_and_an_escaped_selector() {
        let resource = |group: &str, version: &str, plural: &str| ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: format!("{group}/{version}").trim_start_matches('/').to_owned(),
            kind: String::new(),
            plural: plural.to_owned(),
        };
        let get = Get::parse(&["pods", "-l", "a=b c"]).unwrap();
        let path = get.path(&resource("", "v1", "pods"), &Scope::Namespaced);
        assert_eq!(path, "/api/v1/namespaces/default/pods?labelSelector=a%3Db%20c");
        let get = Get::parse(&["nodes", "a", "-n", "tf"]).unwrap();
        assert_eq!(get.path(&resource("", "v1", "nodes"), &Scope::Cluster), "/api/v1/nodes/a");
        let get = Get::parse(&["sts", "-A"]).unwrap();
        let path = get.path(&resource("apps", "v1", "statefulsets"), &Scope::Namespaced);
        assert_eq!(path, "/apis/apps/v1/statefulsets");
    }
}
