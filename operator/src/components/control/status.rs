//! What the status of a Control shows besides what all have. tf-operator shows what the fields of ports say instead of
//! the ports in use.

use opensdn_crds::control::ControlConfiguration;
use serde_json::{Map, Value, json};

use super::super::shared::fields;
use super::{ASN, DNS, DNS_INTROSPECT};

const BGP: u16 = 179;
const XMPP: u16 = 5269;

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
