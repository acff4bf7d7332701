//! The Control that a component names.

use crate::component::{Given, SettingsError};
use crate::peers::Peer;

/// The one of that name, else the only one.
pub(in crate::components) fn control<'a>(
    given: &Given<'a>,
    name: Option<&str>,
) -> Result<Option<&'a Peer>, SettingsError> {
    let all: Vec<_> = given.peers.of_kind("Control").collect();
    let unfit = |what: String| {
        let there: Vec<_> = all.iter().map(|one| one.name.as_str()).collect();
        SettingsError::Unfit {
            reason: "ControlUnknown",
            message: format!(
                "spec.serviceConfiguration.controlInstance {what}: give it the name of a Control ({})",
                there.join(", ")
            ),
        }
    };
    match name.filter(|name| !name.is_empty()) {
        Some(name) => {
            let named = all.iter().copied().find(|one| one.name == name);
            named.map(Some).ok_or_else(|| unfit(format!("is {name:?}, which is none")))
        }
        None if all.len() > 1 => Err(unfit("is not set, and there are several".to_owned())),
        None => Ok(all.first().copied()),
    }
}

#[cfg(test)]
mod tests {
    use opensdn_crds::pod::PodConfiguration;
    use opensdn_runtime::watch::Event;
    use serde_json::json;

    use super::*;
    use crate::cache::{Cache, Feed};
    use crate::cluster::Cluster;
    use crate::components::workload_of;
    use crate::kind::Kind;
    use crate::peers::Peers;
    use crate::release::Release;

    #[test]
    fn it_is_the_named_one_or_the_only_one() {
        let object = |name: &str| json!({"kind": "Control", "apiVersion": "a/v1", "metadata": {"name": name, "namespace": "tf"}});
        let chosen = |names: &[&str], name: Option<&str>| {
            let cache = Cache::default();
            for name in names {
                let mut feed = Feed::new(Kind::Component("Control"), "tf");
                feed.take(&cache, Event::Apply(object(name)));
            }
            let of = serde_json::from_value(object("w")).unwrap();
            let peers = Peers::read(&cache, &of, &[], workload_of);
            let common = PodConfiguration::default();
            let (settings, cluster) = (json!({}), Cluster::default());
            let given = Given {
                name: "w",
                settings: &settings,
                common: &common,
                peers: &peers,
                cluster: &cluster,
                release: Release::default(),
                profiles: &[],
            };
            let chosen = control(&given, name).map_err(|error| error.to_string());
            chosen.map(|one| one.map(|one| one.name.clone()).unwrap_or_default())
        };
        assert_eq!(chosen(&["a", "b"], Some("b")).unwrap(), "b");
        assert_eq!(chosen(&["a"], Some("")).unwrap(), "a");
        let wrong = chosen(&["a", "b"], Some("c")).unwrap_err();
        assert!(wrong.contains("is \"c\", which is none") && wrong.contains("(a, b)"), "{wrong}");
        assert!(chosen(&["a", "b"], None).unwrap_err().contains("there are several"));
    }
}
