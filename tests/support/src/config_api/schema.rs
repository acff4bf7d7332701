//! The types of objects: whose child each is, which properties are lists or maps, and how values are typed. As the
//! generated `resource_common.py` and `resource_xsd.py` have it, for what is used around nested mode.
//! Deliberately not here: the check of a value (`validate`).

/// A type of object.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) parents: &'static [&'static str],
    /// Typed properties, beside those of every object.
    pub(super) properties: &'static [Property],
    pub(super) others: Others,
}

/// What becomes of a property that is not listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    /// It is no property of the type.
    Ignored,
    /// It may be one: the list is not complete.
    Kept,
}

#[derive(Debug)]
pub(super) struct Property {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) storage: Storage,
}

/// How the database has it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Storage {
    /// In one column, replaced whole.
    Whole,
    /// One column for each element: a `ListProperty`.
    List { wrapper: &'static str },
    /// One column for each element, by a field of it: a `MapProperty`.
    Map { wrapper: &'static str, key: &'static str },
}

#[derive(Debug)]
pub(super) enum Shape {
    Integer(Option<(i64, i64)>),
    /// One of these; any, where there are none.
    Text(&'static [&'static str]),
    Boolean,
    Class(&'static Class),
    /// An object whose fields are not known here.
    AnyObject,
}

#[derive(Debug)]
pub(super) struct Class {
    pub(super) name: &'static str,
    pub(super) fields: &'static [Field],
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) count: Count,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    One,
    Many,
}

const TEXT: Shape = Shape::Text(&[]);
const INTEGER: Shape = Shape::Integer(None);
const PORT: Shape = Shape::Integer(Some((-1, 65535)));

const fn one(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, count: Count::One }
}

const fn many(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, count: Count::Many }
}

const fn whole(name: &'static str, shape: Shape) -> Property {
    Property { name, shape, storage: Storage::Whole }
}

static LINKLOCAL_SERVICE_ENTRY: Class = Class {
    name: "LinklocalServiceEntryType",
    fields: &[
        one("linklocal_service_name", TEXT),
        one("linklocal_service_ip", TEXT),
        one("linklocal_service_port", INTEGER),
        one("ip_fabric_DNS_service_name", TEXT),
        one("ip_fabric_service_port", INTEGER),
        many("ip_fabric_service_ip", TEXT),
    ],
};
static LINKLOCAL_SERVICES: Class = Class {
    name: "LinklocalServicesTypes",
    fields: &[many("linklocal_service_entry", Shape::Class(&LINKLOCAL_SERVICE_ENTRY))],
};
static PORT_RANGE: Class =
    Class { name: "PortType", fields: &[one("start_port", PORT), one("end_port", PORT)] };
static PORT_TRANSLATION_POOL: Class = Class {
    name: "PortTranslationPool",
    fields: &[
        one("protocol", TEXT),
        one("port_range", Shape::Class(&PORT_RANGE)),
        one("port_count", TEXT),
    ],
};
static PORT_TRANSLATION_POOLS: Class = Class {
    name: "PortTranslationPools",
    fields: &[many("port_translation_pool", Shape::Class(&PORT_TRANSLATION_POOL))],
};
static KEY_VALUE_PAIR: Class =
    Class { name: "KeyValuePair", fields: &[one("key", TEXT), one("value", TEXT)] };
static KEY_VALUE_PAIRS: Class = Class {
    name: "KeyValuePairs",
    fields: &[many("key_value_pair", Shape::Class(&KEY_VALUE_PAIR))],
};
static FLOW_AGING_TIMEOUT: Class = Class {
    name: "FlowAgingTimeout",
    fields: &[one("protocol", TEXT), one("port", INTEGER), one("timeout_in_seconds", INTEGER)],
};
static FLOW_AGING_TIMEOUTS: Class = Class {
    name: "FlowAgingTimeoutList",
    fields: &[many("flow_aging_timeout", Shape::Class(&FLOW_AGING_TIMEOUT))],
};
static TUNNEL_ENDPOINT: Class =
    Class { name: "EncryptionTunnelEndpoint", fields: &[one("tunnel_remote_ip_address", TEXT)] };
static TUNNEL_ENDPOINTS: Class = Class {
    name: "EncryptionTunnelEndpointList",
    fields: &[many("endpoint", Shape::Class(&TUNNEL_ENDPOINT))],
};
static ENCAPSULATIONS: Class = Class {
    name: "EncapsulationPrioritiesType",
    fields: &[many("encapsulation", Shape::Text(&["MPLSoGRE", "MPLSoUDP", "VXLAN"]))],
};

/// What every object has.
static OF_ALL: [Property; 2] = [
    whole("display_name", TEXT),
    Property {
        name: "annotations",
        shape: Shape::Class(&KEY_VALUE_PAIRS),
        storage: Storage::Map { wrapper: "key_value_pair", key: "key" },
    },
];

static OF_GLOBAL_VROUTER_CONFIG: [Property; 10] = [
    whole("linklocal_services", Shape::Class(&LINKLOCAL_SERVICES)),
    Property {
        name: "port_translation_pools",
        shape: Shape::Class(&PORT_TRANSLATION_POOLS),
        storage: Storage::List { wrapper: "port_translation_pool" },
    },
    Property {
        name: "encryption_tunnel_endpoints",
        shape: Shape::Class(&TUNNEL_ENDPOINTS),
        storage: Storage::List { wrapper: "endpoint" },
    },
    whole("flow_aging_timeout_list", Shape::Class(&FLOW_AGING_TIMEOUTS)),
    whole("encapsulation_priorities", Shape::Class(&ENCAPSULATIONS)),
    whole("vxlan_network_identifier_mode", Shape::Text(&["configured", "automatic"])),
    whole("flow_export_rate", INTEGER),
    whole("forwarding_mode", Shape::Text(&["l2_l3", "l2", "l3"])),
    whole("encryption_mode", Shape::Text(&["none", "all"])),
    whole("enable_security_logging", Shape::Boolean),
];
static OF_VIRTUAL_NETWORK: [Property; 4] = [
    whole("fabric_snat", Shape::Boolean),
    whole("is_shared", Shape::Boolean),
    whole("is_provider_network", Shape::Boolean),
    whole("virtual_network_properties", Shape::AnyObject),
];
static OF_NETWORK_IPAM: [Property; 1] = [Property {
    name: "ipam_subnets",
    shape: Shape::AnyObject,
    storage: Storage::List { wrapper: "subnets" },
}];

const fn kind(name: &'static str, parents: &'static [&'static str]) -> Kind {
    Kind { name, parents, properties: &[], others: Others::Kept }
}

pub(super) static GLOBAL_VROUTER_CONFIG: &str = "global-vrouter-config";

static KINDS: [Kind; 30] = [
    kind("global-system-config", &["config-root"]),
    Kind {
        name: GLOBAL_VROUTER_CONFIG,
        parents: &["global-system-config"],
        properties: &OF_GLOBAL_VROUTER_CONFIG,
        others: Others::Ignored,
    },
    kind("domain", &["config-root"]),
    kind("project", &["domain"]),
    Kind {
        name: "virtual-network",
        parents: &["project"],
        properties: &OF_VIRTUAL_NETWORK,
        others: Others::Kept,
    },
    Kind {
        name: "network-ipam",
        parents: &["project"],
        properties: &OF_NETWORK_IPAM,
        others: Others::Kept,
    },
    kind("instance-ip", &["config-root"]),
    kind("floating-ip-pool", &["virtual-network"]),
    kind("floating-ip", &["floating-ip-pool", "instance-ip"]),
    kind("alias-ip-pool", &["virtual-network"]),
    kind("alias-ip", &["alias-ip-pool"]),
    kind("virtual-machine", &["config-root"]),
    kind("loadbalancer", &["project"]),
    kind("virtual-machine-interface", &["virtual-machine", "project", "virtual-router"]),
    kind("virtual-router", &["global-system-config"]),
    kind("routing-instance", &["virtual-network"]),
    kind("bgp-router", &["routing-instance"]),
    kind("config-node", &["global-system-config"]),
    kind("analytics-node", &["global-system-config"]),
    kind("config-database-node", &["global-system-config"]),
    kind("database-node", &["global-system-config"]),
    kind("analytics-alarm-node", &["global-system-config"]),
    kind("analytics-snmp-node", &["global-system-config"]),
    kind("webui-node", &["global-system-config"]),
    kind("sub-cluster", &["global-system-config"]),
    kind("physical-router", &["global-system-config"]),
    kind("namespace", &["domain"]),
    kind("logical-router", &["project"]),
    kind("policy-management", &["config-root", "project"]),
    kind("application-policy-set", &["policy-management", "project"]),
];

impl Kind {
    /// By its name in paths, or by that of its fields: `virtual-network`, `virtual_network`.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name || kind.field() == name)
    }

    /// By the last part of the path of its collection: `virtual-networks`.
    pub(super) fn of_collection(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| name.strip_suffix('s') == Some(kind.name))
    }

    pub(super) fn all() -> impl Iterator<Item = &'static Self> {
        KINDS.iter()
    }

    /// `virtual_network`, of which `virtual_network_refs` is made.
    pub(super) fn field(&self) -> String {
        self.name.replace('-', "_")
    }

    /// A property that is typed.
    pub(super) fn property(&self, name: &str) -> Option<&'static Property> {
        self.typed().find(|property| property.name == name)
    }

    /// All that are typed.
    pub(super) fn typed(&self) -> impl Iterator<Item = &'static Property> {
        OF_ALL.iter().chain(self.properties)
    }
}

impl Property {
    /// The type of one element of a list or a map.
    pub(super) fn element(&self) -> Option<&'static Class> {
        let Shape::Class(Class { fields: [Field { shape: Shape::Class(element), .. }], .. }) =
            &self.shape
        else {
            return None;
        };
        Some(element)
    }
}
