//! Which proxy leads to an API server. kube takes `HTTPS_PROXY` for every server and compares
//! `NO_PROXY` with the proxy's own address, so that a cluster on this machine would be asked through
//! a proxy; kubectl, as every Go program, asks it directly. Deliberately not here: the connection.

use std::net::IpAddr;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;

/// The proxy to use for `server`, where `configured` is what kube found: that of the kubeconfig, or
/// else that of the environment. What is said in the kubeconfig holds; the environment's proxy
/// is not for this machine, nor for what `NO_PROXY` names.
#[must_use]
pub fn for_server(server: &Uri, configured: Option<Uri>) -> Option<Uri> {
    by_environment(server, configured, |name| std::env::var(name).ok())
}

fn by_environment(
    server: &Uri,
    configured: Option<Uri>,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<Uri> {
    let either = |upper: &str, lower: &str| {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        set(upper).or_else(|| set(lower))
    };
    let proxy = configured?;
    let of_environment = either("HTTPS_PROXY", "https_proxy")
        .and_then(|value| value.parse::<Uri>().ok())
        .is_some_and(|environment| environment == proxy);
    if !of_environment {
        return Some(proxy);
    }
    let not = either("NO_PROXY", "no_proxy").unwrap_or_default();
    let matcher = Matcher::builder().all(proxy.to_string()).no(not).build();
    let is_used = !is_this_machine(server) && matcher.intercept(server).is_some();
    is_used.then_some(proxy)
}

fn is_this_machine(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::by_environment;

    const PROXY: &str = "http://proxy.example:3128";

    /// Which proxy leads to the server, with these variables set.
    fn proxy(server: &str, configured: Option<&str>, set: &[(&str, &str)]) -> Option<String> {
        let variable = |name: &str| {
            set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned())
        };
        let configured = configured.map(|proxy| proxy.parse().unwrap());
        let found = by_environment(&server.parse().unwrap(), configured, variable);
        found.map(|proxy| proxy.to_string().trim_end_matches('/').to_owned())
    }

    #[test]
    fn what_runs_on_this_machine_is_never_asked_through_the_environments_proxy() {
        for server in ["https://127.0.0.1:6443", "https://localhost:6443", "https://[::1]:6443"] {
            for name in ["HTTPS_PROXY", "https_proxy"] {
                assert_eq!(proxy(server, Some(PROXY), &[(name, PROXY)]), None, "{server} {name}");
            }
        }
        let elsewhere = proxy("https://10.0.0.1:6443", Some(PROXY), &[("HTTPS_PROXY", PROXY)]);
        assert_eq!(elsewhere.as_deref(), Some(PROXY));
    }

    #[test]
    fn no_proxy_names_servers_and_not_the_proxy() {
        let cases = [
            ("https://10.0.0.1:6443", "10.0.0.0/8", false),
            ("https://api.corp.example:6443", ".corp.example", false),
            ("https://api.corp.example:6443", "corp.example", false),
            ("https://api.corp.example:6443", "*", false),
            ("https://api.corp.example:6443", "other.example", true),
            ("https://api.corp.example:6443", "proxy.example", true),
        ];
        for (server, not, is_used) in cases {
            let set = [("HTTPS_PROXY", PROXY), ("no_proxy", not)];
            assert_eq!(proxy(server, Some(PROXY), &set).is_some(), is_used, "{server} {not}");
        }
    }

    #[test]
    fn the_proxy_of_the_kubeconfig_holds_for_every_server() {
        let set = [("HTTPS_PROXY", "http://other.example:1"), ("NO_PROXY", "*")];
        assert_eq!(proxy("https://127.0.0.1:6443", Some(PROXY), &set).as_deref(), Some(PROXY));
        assert_eq!(proxy("https://127.0.0.1:6443", None, &set), None);
    }
}
