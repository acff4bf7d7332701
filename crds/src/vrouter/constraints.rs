//! The rules of one Vrouter. Insecure settings and dangerous characters in values are policies;
//! so is whatever needs the Control or the profiles that a Vrouter names.

use schemars::Schema;
use serde_json::json;

use crate::schema::{Fields, HOST, TEXT, VARIABLE};

/// CEL for DPDK by our own fields: a profile may have it.
const OWN_DATA_PLANE: &str = "(has(self.dpdk) || (has(self.profiles) && size(self.profiles) > 0))";

pub(super) fn configuration(schema: &mut Schema) {
    lists(schema);
    addresses(schema);
    numbers(schema);
    environment(schema);
    data_plane(schema);
}

pub(super) fn upgrade_strategy(schema: &mut Schema) {
    let _ = Fields::of(schema)
        .set("maxUnavailable", "minimum", json!(1))
        .set("maxUnavailable", "maximum", json!(1000))
        .rule_at(
            "maxUnavailable",
            "",
            "!has(self.maxUnavailable) || !has(self.type) || self.type != 'OnDelete'",
            "maxUnavailable is of type RollingUpdate: with OnDelete you delete the pods, as many at a time as you like",
        );
}

fn lists(schema: &mut Schema) {
    let _ = Fields::of(schema)
        .most_items(&["profiles"], 16)
        .longest_item("profiles", HOST)
        .most_items(&["encapsulationPriorities"], 3)
        .field(
            "",
            "encapsulationPriorities",
            "self.all(item, self.exists_one(other, other == item))",
            "must name each encapsulation once",
        )
        .longest(&["cloudOrchestrator"], 64);
}

/// That no interface is named twice is a policy: to compare all with all costs more than a rule may.
fn addresses(schema: &mut Schema) {
    let _ = Fields::of(schema)
        .longest(&["vrouterGateway"], 64)
        .networks("OSDN1803", &["dataSubnet"])
        .networks("OSDN1805", &["l3mhCidr"])
        .rule_at(
            "vrouterGateway",
            "OSDN1802",
            "!has(self.vrouterGateway) || self.vrouterGateway == '' || \
             self.vrouterGateway.split(',').all(one, isIP(one))",
            "vrouterGateway must be an IP address, or several separated by commas and nothing else",
        )
        .matches(
            "OSDN1804",
            &["physicalInterface"],
            "^[, ]*[^ /,]{1,15}([, ]+[^ /,]{1,15})*[, ]*$",
            TEXT,
            "names of interfaces separated by commas or spaces: 1 to 15 characters each, no slash",
        );
}

fn numbers(schema: &mut Schema) {
    const PAGES: &str = "OSDN1806";
    let _ = Fields::of(schema)
        .set("cniMTU", "minimum", json!(0))
        .set("cniMTU", "maximum", json!(65535))
        .field(
            "OSDN1808",
            "cniMTU",
            "self == 0 || (self >= 68 && self <= 65535)",
            "must be from 68 to 65535, or 0, which is as if it were unset",
        )
        .at_least(PAGES, &["hugePages2M", "hugePages1G"], 0, "a number of pages, 0 or more");
}

fn environment(schema: &mut Schema) {
    let _ = Fields::of(schema)
        .map("envVariablesConfig", 512, VARIABLE)
        .field(
            "OSDN1810",
            "envVariablesConfig",
            "self.all(key, key.matches('^[A-Za-z_][A-Za-z0-9_]*$'))",
            "has names of environment variables as keys: letters, digits and _, not a digit first",
        )
        .field(
            "OSDN1810",
            "envVariablesConfig",
            "!('POD_IP' in self) && (!('NODE_TYPE' in self) || self['NODE_TYPE'] == 'vrouter')",
            "must not set POD_IP, or NODE_TYPE to anything but vrouter: the operator sets them",
        );
}

fn data_plane(schema: &mut Schema) {
    const VARIABLES: &str = "has(self.envVariablesConfig)";
    let _ = Fields::of(schema)
        .longest(&["agentMode", "sriovVf"], HOST)
        .longest(&["sriovPhysicalInterface", "sriovPhysicalNetwork"], TEXT)
        .required(
            "dpdk",
            "OSDN1814",
            &format!(
                "{OWN_DATA_PLANE} || !{VARIABLES} || !('AGENT_MODE' in self.envVariablesConfig) || \
                 self.envVariablesConfig['AGENT_MODE'].lowerAscii() != 'dpdk'"
            ),
            "AGENT_MODE dpdk alone starts no DPDK process: remove it, and give dpdk, or a profile that has it",
        );
}
