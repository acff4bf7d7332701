//! What the status of a Control shows besides what all have. tf-operator shows what the fields of ports say instead of
//! the ports in use.

use opensdn_crds::control::ControlConfiguration;
use serde_json::{Map, Value, json};

use super::super::shared::fields;
use super::{ASN, DNS, DNS_INTROSPECT, ROW};

const BGP: u16 = ROW.port_of_field("bgpPort");
const XMPP: u16 = ROW.port_of_field("xmppPort");

pub(super) fn status(settings: &ControlConfiguration) -> Map<String, Value> {
    fields(&json!({
        "ports": {
            "bgpPort": BGP.to_string(),
            "xmppPort": XMPP.to_string(),
            "dnsPort": DNS.to_string(),
            "dnsIntrospectPort": DNS_INTROSPECT.to_string(),
        },
        "subcluster": settings.subcluster,
        "asnNumber": settings.asn_number.unwrap_or(ASN).to_string(),
    }))
}
