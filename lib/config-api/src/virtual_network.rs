//! Virtual networks: their fabric SNAT, and the subnets of all of them. Which network
//! is that of the VMs, and what its isolation by SNAT means, is not known here.

use serde_json::{Map, Value};

use crate::client::{ConfigApi, Error};
use crate::fields::{Fields, full_name, items, own_name, text};

const KIND: &str = "virtual-network";
const FABRIC_SNAT: &str = "fabric_snat";
const IPAM_REFS: &str = "network_ipam_refs";
/// The built-in IPAM of service chains: its subnets are all addresses.
const OF_SERVICE_CHAINS: &str = "service-chain-flat-ipam";

/// Whether a network reaches the fabric through the address of each compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snat {
    /// It does.
    On,
    /// It does not.
    Off,
}

impl From<bool> for Snat {
    fn from(is_on: bool) -> Self {
        if is_on { Self::On } else { Self::Off }
    }
}

/// The fabric SNAT of a network; none where there is no such network.
///
/// # Errors
/// The Config API does not answer, or refuses.
pub async fn fabric_snat(api: &ConfigApi, uuid: &str) -> Result<Option<Snat>, Error> {
    let object = api.object(KIND, uuid, &[FABRIC_SNAT]).await?;
    Ok(object.map(|object| snat_of(object.fields.get(FABRIC_SNAT))))
}

/// Absent, null and what else is false to Python is off: the server stores all of them.
fn snat_of(property: Option<&Value>) -> Snat {
    (property == Some(&Value::Bool(true))).into()
}

/// Switches it.
///
/// # Errors
/// The Config API does not answer, or refuses.
pub async fn set_fabric_snat(api: &ConfigApi, uuid: &str, snat: Snat) -> Result<(), Error> {
    let value = Value::Bool(snat == Snat::On);
    let properties: Map<String, Value> = [(FABRIC_SNAT.to_owned(), value)].into_iter().collect();
    api.put(KIND, uuid, properties).await
}

/// The UUID of a network by its names; none where there is no such network.
///
/// # Errors
/// The Config API does not answer, or refuses.
pub async fn id_of(
    api: &ConfigApi,
    domain: &str,
    project: &str,
    name: &str,
) -> Result<Option<String>, Error> {
    api.id_of(KIND, &[domain, project, name]).await
}

/// A subnet that is in use somewhere in the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// What has it: `virtual-network default-domain:demo:vms`.
    pub owner: String,
    /// `10.0.0.0`
    pub prefix: String,
    /// `24`
    pub length: u8,
}

/// A virtual network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its UUID.
    pub uuid: String,
    /// Its fully qualified name, with colons.
    pub full_name: String,
    /// The last part of it.
    pub name: String,
    /// Its subnets; none are those of a flat IPAM.
    pub subnets: Vec<Subnet>,
}

/// All networks.
///
/// # Errors
/// The Config API does not answer, or refuses.
pub async fn all(api: &ConfigApi) -> Result<Vec<Network>, Error> {
    let network = |fields: Fields| {
        Some(Network {
            uuid: text(&fields, "uuid").to_owned(),
            full_name: full_name(&fields),
            name: own_name(&fields),
            subnets: subnets_of(&fields).collect(),
        })
    };
    api.list(KIND, &[IPAM_REFS], &[], network).await
}

/// The subnets of a network, with its field `network_ipam_refs`; none for those of a flat IPAM.
pub fn subnets_of(network: &Fields) -> impl Iterator<Item = Subnet> {
    let all = items(network, IPAM_REFS).flat_map(|one| list_of(one.pointer("/attr/ipam_subnets")));
    all.filter_map(|one| subnet(KIND, network, one))
}

/// The subnets of these networks and of all flat IPAMs.
///
/// # Errors
/// The Config API does not answer, or refuses.
pub async fn subnets(api: &ConfigApi, networks: &[Network]) -> Result<Vec<Subnet>, Error> {
    let kind = "network-ipam";
    let of_ipam = |ipam: Fields| {
        if full_name(&ipam).ends_with(OF_SERVICE_CHAINS) {
            return None;
        }
        let property = ipam.get("ipam_subnets");
        let list = property.map(|property| property.get("subnets").unwrap_or(property));
        let subnets = list_of(list).filter_map(|one| subnet(kind, &ipam, one));
        Some(subnets.collect::<Vec<Subnet>>())
    };
    let of_ipams = api.list(kind, &["ipam_subnets"], &[], of_ipam).await?;
    let of_networks = networks.iter().flat_map(|network| network.subnets.clone());
    Ok(of_networks.chain(of_ipams.into_iter().flatten()).collect())
}

fn subnet(kind: &str, owner: &Fields, of: &Value) -> Option<Subnet> {
    let of = of.get("subnet")?;
    let length = of.get("ip_prefix_len")?.as_u64()?;
    Some(Subnet {
        owner: format!("{kind} {}", full_name(owner)),
        prefix: of.get("ip_prefix")?.as_str()?.to_owned(),
        length: length.try_into().ok()?,
    })
}

fn list_of(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn snat_is_on_only_where_it_is_true() {
        for off in [json!(null), json!(0), json!(""), json!(false), json!("true"), json!(1)] {
            assert_eq!(snat_of(Some(&off)), Snat::Off, "{off}");
        }
        assert_eq!((snat_of(None), snat_of(Some(&json!(true)))), (Snat::Off, Snat::On));
    }
}
