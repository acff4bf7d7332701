//! Names that other services have. Nothing is claimed: vrouters need no unique names, so it is a warning, and two that
//! are created at once may both go without. For the same reason a few are enough to look at: a tenant who makes
//! thousands of one name would end the evaluation of everybody else's.

use opensdn_policy_sdk::{Index, Verdict};

use crate::entries::Table;

pub(crate) const BY_NAME: Index = Index {
    name: "services-by-name",
    group: "opensdn.io",
    kind: "LinkLocalService",
    key: "/spec/name",
    reads: &["/spec/ip", "/spec/name"],
};

/// Whose name is that of the object, unless they say otherwise.
pub(crate) const BY_OBJECT: Index = Index {
    name: "services-by-object",
    group: "opensdn.io",
    kind: "LinkLocalService",
    key: "/metadata/name",
    reads: &["/spec/ip", "/spec/name"],
};

/// Of the services that have a name, so many are compared.
const MOST_COMPARED: u32 = 32;

/// `own` are namespace and name of the object itself. On two ports of one address a name is one.
pub(crate) fn judge(table: &Table, (own_namespace, own_name): (&str, &str), verdict: &mut Verdict) {
    for service in table.services().filter(|service| !service.name.is_empty()) {
        for (index, name) in
            [(BY_NAME, &service.name), (BY_NAME, &service.written_name), (BY_OBJECT, &service.name)]
        {
            // Without a cluster nothing may be known of other services; that is no reason to say nothing else.
            let Ok(others) = index.find_first(name, MOST_COMPARED) else { continue };
            let mut others = others
                .iter()
                .filter(|other| (other.namespace(), other.name()) != (own_namespace, own_name));
            let is_meant = |ip: Option<String>, name: Option<String>| {
                let has_name =
                    index.name == BY_NAME.name || name.is_none_or(|name| name.is_empty());
                has_name && ip.is_some_and(|ip| !service.has_address(&ip))
            };
            let other = others
                .find(|other| is_meant(other.part(0).ok().flatten(), other.part(1).ok().flatten()));
            if let Some(other) = other {
                let text = format!(
                    "LinkLocalService {}/{} has the name {:?}, too, at another address",
                    other.namespace(),
                    other.name(),
                    service.name
                );
                verdict.add(service.shares_its_name(text));
                break;
            }
        }
    }
}
