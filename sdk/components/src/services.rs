//! The walk over a Manager's services. What a service is made of is the policy's business.

use std::{fmt, marker::PhantomData};

use opensdn_crds::component::{COMPONENTS, Component, Count};
use opensdn_policy_sdk::Pointer;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};

/// Whether a Cassandra of that name has the analytics data. It is known by its name, as its folder
/// on the nodes is.
#[must_use]
pub fn is_analytics_database(name: &str) -> bool {
    name.starts_with("analyticsdb")
}

/// One component, as a policy judges it.
#[derive(Clone, Debug)]
pub struct ComponentView<'a, S> {
    /// Kind: `Zookeeper`.
    pub kind: &'a str,
    /// Name; empty where none is given yet.
    pub name: &'a str,
    /// Where its spec is: `/spec`, or `/spec/services/zookeeper/spec`.
    pub at: Pointer,
    /// The part of the spec that the policy reads.
    pub spec: &'a S,
}

impl<'a, S> ComponentView<'a, S> {
    /// The component that is an object of its own, with its spec at `/spec`.
    pub fn standalone(kind: &'a str, name: &'a str, spec: &'a S) -> Self {
        Self { kind, name, at: Pointer::from("/spec"), spec }
    }

    /// The field at `path` of its `serviceConfiguration`.
    #[must_use]
    pub fn setting(&self, path: &str) -> Pointer {
        self.at.key("serviceConfiguration").join(path)
    }

    /// The field at `path` of its `commonConfiguration`.
    #[must_use]
    pub fn shared(&self, path: &str) -> Pointer {
        self.at.key("commonConfiguration").join(path)
    }

    /// How a message names it: `Zookeeper zookeeper1`.
    #[must_use]
    pub fn title(&self) -> String {
        if self.name.is_empty() {
            self.kind.to_owned()
        } else {
            format!("{} {}", self.kind, self.name)
        }
    }
}

/// An item under `spec.services`: metadata with a name, and a spec.
#[derive(Clone, Debug, Deserialize)]
pub struct Item<S> {
    metadata: Option<ItemMetadata>,
    spec: Option<S>,
}

#[derive(Clone, Debug, Deserialize)]
struct ItemMetadata {
    name: Option<String>,
}

impl<S> Item<S> {
    /// The item's name; empty where none is given.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata.as_ref().and_then(|metadata| metadata.name.as_deref()).unwrap_or_default()
    }

    /// The item as a component of `kind`; `item` points at the item. `None` without a spec.
    pub fn component<'a>(&'a self, kind: &'a str, item: &Pointer) -> Option<ComponentView<'a, S>> {
        let spec = self.spec.as_ref()?;
        Some(ComponentView { kind, name: self.name(), at: item.key("spec"), spec })
    }
}

/// `spec.services` of a Manager, the spec of each item read as `S`. Unknown keys are passed over.
#[derive(Clone, Debug)]
pub struct Services<S>(Vec<Entry<S>>);

#[derive(Clone, Debug)]
struct Entry<S> {
    rank: usize,
    service: &'static Component,
    index: usize,
    item: Item<S>,
}

impl<S> Default for Services<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S> Services<S> {
    /// Every component that is present with a spec, in the order of [`COMPONENTS`].
    pub fn walk(&self) -> impl Iterator<Item = ComponentView<'_, S>> {
        self.0.iter().filter_map(|entry| {
            entry.item.component(entry.service.kind, &pointer(entry.service, entry.index))
        })
    }

    /// Every component that is present, in the order of [`COMPONENTS`]; `nothing` replaces the
    /// spec of one that has none.
    pub fn walk_all<'a>(&'a self, nothing: &'a S) -> impl Iterator<Item = ComponentView<'a, S>> {
        self.0.iter().map(move |entry| ComponentView {
            kind: entry.service.kind,
            name: entry.item.name(),
            at: pointer(entry.service, entry.index).key("spec"),
            spec: entry.item.spec.as_ref().unwrap_or(nothing),
        })
    }

    /// The components of one kind, as [`Self::walk`] gives them.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = ComponentView<'a, S>> {
        self.walk().filter(move |component| component.kind == kind)
    }
}

fn pointer(service: &Component, index: usize) -> Pointer {
    let place = Pointer::from("/spec/services").key(service.key);
    match service.count {
        Count::Many => place.index(index),
        Count::One => place,
    }
}

impl<'de, S: Deserialize<'de>> Deserialize<'de> for Services<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ServicesVisitor(PhantomData))
    }
}

struct ServicesVisitor<S>(PhantomData<S>);

impl<'de, S: Deserialize<'de>> Visitor<'de> for ServicesVisitor<S> {
    type Value = Services<S>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the services of a Manager")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Services<S>, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let known = COMPONENTS.iter().enumerate().find(|(_, service)| service.key == key);
            let Some((rank, service)) = known else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let items: Vec<Option<Item<S>>> = match service.count {
                Count::Many => {
                    map.next_value::<Option<Vec<Option<Item<S>>>>>()?.unwrap_or_default()
                }
                Count::One => vec![map.next_value()?],
            };
            entries.extend(
                items.into_iter().enumerate().filter_map(|(index, item)| {
                    item.map(|item| Entry { rank, service, index, item })
                }),
            );
        }
        // What a policy says must not depend on the order in which a client writes the keys.
        entries.sort_by_key(|entry| (entry.rank, entry.index));
        Ok(Services(entries))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::Services;

    #[derive(Debug, Deserialize)]
    struct Spec {
        number: Option<u8>,
    }

    fn walked(services: serde_json::Value) -> Vec<(String, String, Option<u8>)> {
        let services: Services<Spec> = serde_json::from_value(services).unwrap();
        services
            .walk()
            .map(|component| {
                (component.title(), component.at.as_str().to_owned(), component.spec.number)
            })
            .collect()
    }

    #[test]
    fn walks_single_services_and_lists() {
        let walked = walked(json!({
            "zookeeper": {"metadata": {"name": "zookeeper1"}, "spec": {"number": 1}},
            "redis": [{"spec": {}}, {"metadata": {"name": "second"}, "spec": {"number": 2}}],
        }));
        let expected = [
            ("Redis", "/spec/services/redis/0/spec", None),
            ("Redis second", "/spec/services/redis/1/spec", Some(2)),
            ("Zookeeper zookeeper1", "/spec/services/zookeeper/spec", Some(1)),
        ];
        let expected = expected.map(|(title, at, number)| (title.into(), at.into(), number));
        assert_eq!(walked, expected);
    }

    #[test]
    fn walks_services_without_a_spec_too() {
        let services: Services<Spec> = serde_json::from_value(json!({
            "zookeeper": {"metadata": {"name": "zookeeper1"}}, "redis": [null, {}],
        }))
        .unwrap();
        let nothing = Spec { number: Some(7) };
        let walked: Vec<_> = services
            .walk_all(&nothing)
            .map(|component| (component.at.as_str().to_owned(), component.spec.number))
            .collect();
        let expected = ["/spec/services/redis/1/spec", "/spec/services/zookeeper/spec"];
        assert_eq!(walked, expected.map(|at| (at.to_owned(), Some(7))));
    }

    #[test]
    fn passes_over_what_is_unknown_or_empty() {
        let walked = walked(json!({
            "zookeepers": [1, 2], "redis": null, "config": {"metadata": {}}, "webui": null,
        }));
        assert_eq!(walked, []);
    }
}
