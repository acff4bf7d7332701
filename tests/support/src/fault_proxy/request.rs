//! What a request asks for, as far as faults are chosen by it.

use http::{Method, Uri};

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// `PATCH`.
    pub method: Method,
    /// Without the query.
    pub path: String,
    /// What is behind the question mark.
    pub query: String,
    /// `statefulsets`; empty where it is about none.
    pub resource: String,
    /// Empty where it is about all of them, or the resource is in none.
    pub namespace: String,
    /// Empty where it is about all of them.
    pub name: String,
    /// `status`; mostly empty.
    pub subresource: String,
}

impl Asked {
    pub(super) fn new(method: &Method, uri: &Uri) -> Self {
        let path = uri.path().to_owned();
        let segments: Vec<&str> = path.split('/').filter(|one| !one.is_empty()).collect();
        let rest = match segments.as_slice() {
            ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
            _ => &[],
        };
        // A namespace is a resource, too, with a status of its own.
        let (namespace, rest) = match rest {
            ["namespaces", name, resource, rest @ ..]
                if !["status", "finalize"].contains(resource) =>
            {
                (*name, [&[*resource], rest].concat())
            }
            rest => ("", rest.to_vec()),
        };
        let part = |number: usize| rest.get(number).copied().unwrap_or_default().to_owned();
        let (resource, name, subresource) = (part(0), part(1), part(2));
        let query = uri.query().unwrap_or_default().to_owned();
        let (method, namespace) = (method.clone(), namespace.to_owned());
        Self { method, path, query, resource, namespace, name, subresource }
    }

    /// A value of the query, as it is written there.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Whether nothing is changed by it.
    #[must_use]
    pub fn is_read(&self) -> bool {
        [Method::GET, Method::HEAD, Method::OPTIONS].contains(&self.method)
    }

    /// Whether it is a watch.
    #[must_use]
    pub fn is_watch(&self) -> bool {
        self.is_read()
            && self.parameter("watch").is_some_and(|watch| ["true", "1"].contains(&watch))
    }

    /// Whether it reads all of them, or a page.
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.is_read() && !self.is_watch() && !self.resource.is_empty() && self.name.is_empty()
    }

    /// Whether it is by what a Lease is held, which no fault is about.
    #[must_use]
    pub fn is_of_lease(&self) -> bool {
        self.resource == "leases"
    }

    /// Whether it stores nothing, though it is no read.
    pub(super) fn stores_nothing(&self) -> bool {
        let reviews = ["/authorization.k8s.io/", "/authentication.k8s.io/"];
        reviews.iter().any(|group| self.path.contains(group)) || self.parameter("dryRun").is_some()
    }

    /// The same of each list and watch by which one client follows the same objects.
    pub(super) fn follows(&self) -> String {
        let mut selectors: Vec<&str> =
            self.query.split('&').filter(|pair| pair.contains("Selector=")).collect();
        selectors.sort_unstable();
        format!("{}?{}", self.path, selectors.join("&"))
    }

    /// Path and query with these values in the place of others; one without a value is left out.
    pub(super) fn with(&self, path: &str, parameters: &[(&str, Option<&str>)]) -> String {
        let is_kept = |pair: &&str| {
            let key = pair.split('=').next().unwrap_or_default();
            !pair.is_empty() && parameters.iter().all(|(name, _)| *name != key)
        };
        let kept = self.query.split('&').filter(is_kept).map(str::to_owned);
        let new =
            parameters.iter().filter_map(|(name, value)| Some(format!("{name}={}", (*value)?)));
        format!("{path}?{}", kept.chain(new).collect::<Vec<_>>().join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(uri: &str) -> Asked {
        Asked::new(&Method::GET, &uri.parse().unwrap())
    }

    #[test]
    fn a_path_says_which_object_of_which_resource_is_meant() {
        let of = |uri: &str| {
            let Asked { resource, namespace, name, subresource, .. } = asked(uri);
            [resource, namespace, name, subresource].join(",")
        };
        assert_eq!(
            of("/apis/apps/v1/namespaces/tf/statefulsets/a/status"),
            "statefulsets,tf,a,status"
        );
        assert_eq!(of("/api/v1/namespaces/tf/pods?limit=1"), "pods,tf,,");
        assert_eq!(of("/api/v1/nodes/a"), "nodes,,a,");
        assert_eq!(of("/apis/tf.tungsten.io/v1alpha1/redis"), "redis,,,");
        assert_eq!(of("/api/v1/namespaces/tf"), "namespaces,,tf,");
        assert_eq!(of("/api/v1/namespaces/tf/finalize"), "namespaces,,tf,finalize");
        assert_eq!(of("/version"), ",,,");
    }

    #[test]
    fn a_watch_a_list_and_one_object_are_distinguished() {
        let pods = asked("/api/v1/pods?watch=true&resourceVersion=7");
        assert!(
            pods.is_watch() && !pods.is_list() && pods.parameter("resourceVersion") == Some("7")
        );
        assert!(asked("/api/v1/pods?watch=false").is_list());
        assert!(!asked("/api/v1/namespaces/tf/pods/a").is_list());
        assert!(!asked("/version").is_list());
    }

    #[test]
    fn what_is_asked_is_changed_where_that_is_wanted_and_nowhere_else() {
        let pods = asked("/api/v1/pods?limit=5&resourceVersion=7&continue=");
        let changed =
            pods.with("/api/v1/pods", &[("resourceVersion", Some("3")), ("continue", None)]);
        assert_eq!(changed, "/api/v1/pods?limit=5&resourceVersion=3");
    }
}
