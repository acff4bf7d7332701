//! Virtual networks: their fabric SNAT, the subnets of all of them, and which address is on which compute. Which network
//! is that of the VMs, and what its isolation by SNAT means, is not known here.

use serde_json::{Map, Value};

use crate::client::{ConfigApi, Error};
use crate::pairs;

const KIND: &str = "virtual-network";
const FABRIC_SNAT: &str = "fabric_snat";
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

/// The subnets of all networks and of flat IPAMs.
///
/// # Errors
/// The Config API does not answer, or refuses.
pub async fn subnets(api: &ConfigApi) -> Result<Vec<Subnet>, Error> {
    let mut found = Vec::new();
    for network in api.list(KIND, &["network_ipam_refs"], &[]).await? {
        let refs = list_of(network.get("network_ipam_refs"));
        let all = refs.flat_map(|one| list_of(one.pointer("/attr/ipam_subnets")));
        found.extend(all.filter_map(|one| subnet(KIND, &network, one)));
    }
    let kind = "network-ipam";
    for ipam in api.list(kind, &["ipam_subnets"], &[]).await? {
        if name_of(&ipam).ends_with(OF_SERVICE_CHAINS) {
            continue;
        }
        let property = ipam.get("ipam_subnets");
        let list = property.map(|property| property.get("subnets").unwrap_or(property));
        found.extend(list_of(list).filter_map(|one| subnet(kind, &ipam, one)));
    }
    Ok(found)
}

fn subnet(kind: &str, owner: &Map<String, Value>, of: &Value) -> Option<Subnet> {
    let of = of.get("subnet")?;
    let length = of.get("ip_prefix_len")?.as_u64()?;
    Some(Subnet {
        owner: format!("{kind} {}", name_of(owner)),
        prefix: of.get("ip_prefix")?.as_str()?.to_owned(),
        length: length.try_into().ok()?,
    })
}

/// An address of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceIp {
    /// `10.0.0.3`
    pub address: String,
    /// The compute of its interface, where it is bound to one.
    pub host: Option<String>,
}

/// The addresses that are in use in a network, each with its compute.
///
/// # Errors
/// The Config API does not answer, or refuses.
pub async fn instance_ips(api: &ConfigApi, network: &str) -> Result<Vec<InstanceIp>, Error> {
    let of_network = [("back_ref_id", network)];
    let (bindings, refs) = ("virtual_machine_interface_bindings", "virtual_machine_interface_refs");
    let interfaces = api.list("virtual-machine-interface", &[bindings], &of_network).await?;
    let host = |uuid: &str| {
        let is_it = |one: &&Map<String, Value>| one.get("uuid").is_some_and(|own| own == uuid);
        pairs::read(interfaces.iter().find(is_it)?.get(bindings)).remove("host_id")
    };
    let ips = api.list("instance-ip", &["instance_ip_address", refs], &of_network).await?;
    let ip = |one: Map<String, Value>| {
        let address = one.get("instance_ip_address")?.as_str()?.to_owned();
        let of = list_of(one.get(refs)).filter_map(|one| one.get("uuid")?.as_str());
        let host = of.filter_map(host).find(|host| !host.is_empty() && host != "null");
        Some(InstanceIp { address, host })
    };
    Ok(ips.into_iter().filter_map(ip).collect())
}

fn list_of(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// `default-domain:demo:vms`
pub(crate) fn name_of(object: &Map<String, Value>) -> String {
    let parts = list_of(object.get("fq_name")).filter_map(Value::as_str);
    parts.collect::<Vec<&str>>().join(":")
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
