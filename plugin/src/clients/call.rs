//! What a request does, in the words of RBAC, for messages: `list pods in namespace tf`. Read from its method and its
//! path, so that no caller has to say it.

use http::Method;

/// A request, in words.
pub(super) fn described(method: &Method, path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let below = match parts.as_slice() {
        ["api", _, below @ ..] | ["apis", _, _, below @ ..] if !below.is_empty() => below,
        // The version, discovery.
        _ => return format!("{} {path}", method.as_str().to_lowercase()),
    };
    // The namespace itself is an object as any other.
    let (namespace, below) = match below {
        ["namespaces", namespace, below @ ..] if !below.is_empty() => (Some(*namespace), below),
        below => (None, below),
    };
    let (resource, name, subresource) = match below {
        [resource] => (*resource, None, None),
        [resource, name] => (*resource, Some(*name), None),
        [resource, name, subresource, ..] => (*resource, Some(*name), Some(*subresource)),
        [] => ("", None, None),
    };
    let mut text = format!("{} {resource}", verb(method, name.is_some()));
    if let Some(subresource) = subresource {
        text.push_str(&format!("/{subresource}"));
    }
    if let Some(name) = name {
        text.push_str(&format!(" {name}"));
    }
    if let Some(namespace) = namespace {
        text.push_str(&format!(" in namespace {namespace}"));
    }
    text
}

fn verb(method: &Method, has_name: bool) -> &'static str {
    match (method.as_str(), has_name) {
        ("GET", true) => "get",
        ("GET", false) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", _) => "delete",
        _ => "ask for",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_described_in_the_words_of_rbac() {
        let get = |path: &str| described(&Method::GET, path);
        assert_eq!(get("/api/v1/pods"), "list pods");
        assert_eq!(get("/api/v1/namespaces"), "list namespaces");
        assert_eq!(get("/api/v1/namespaces/tf"), "get namespaces tf");
        assert_eq!(get("/api/v1/namespaces/tf/pods"), "list pods in namespace tf");
        assert_eq!(get("/api/v1/namespaces/tf/pods/p/log"), "get pods/log p in namespace tf");
        assert_eq!(get("/apis/apps/v1/deployments"), "list deployments");
        assert_eq!(get("/version"), "get /version");
        assert_eq!(get("/apis"), "get /apis");
        let patch = described(&Method::PATCH, "/apis/a.io/v1/crs/x");
        assert_eq!(patch, "patch crs x");
        assert_eq!(described(&Method::POST, "/api/v1/namespaces"), "create namespaces");
    }
}
