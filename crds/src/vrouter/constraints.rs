//! The rules of one Vrouter. Insecure settings and dangerous characters in values are policies;
//! so is whatever needs the Control or the profiles that a Vrouter names.

use schemars::Schema;

use crate::schema::{Fields, HOST, TEXT, given};

/// CEL for DPDK or SR-IOV by our own fields.
const OWN_DATA_PLANE: &str =
    "(has(self.dpdk) || has(self.sriov) || (has(self.profiles) && size(self.profiles) > 0))";

pub(super) fn configuration(schema: &mut Schema) {
    lists(schema);
    addresses(schema);
    numbers(schema);
    environment(schema);
    data_plane(schema);
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
        .matches(
            "OSDN1706",
            &["cloudOrchestrator"],
            "^(kubernetes|openshift)$",
            64,
            "kubernetes or openshift",
        );
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
             (isIP(self.vrouterGateway) && has(self.dataSubnet) && isCIDR(self.dataSubnet) && \
             cidr(self.dataSubnet).containsIP(self.vrouterGateway))",
            "vrouterGateway must be an IP address within dataSubnet, which must be set too: \
             correct one of them, or remove vrouterGateway",
        )
        .matches(
            "OSDN1804",
            &["physicalInterface"],
            "^[^ /,]{1,15}(,[^ /,]{1,15})*$",
            TEXT,
            "names of interfaces separated by commas: 1 to 15 characters each, no space or slash",
        );
}

fn numbers(schema: &mut Schema) {
    const PAGES: &str = "OSDN1806";
    let _ = Fields::of(schema)
        .range("OSDN1808", &["cniMTU"], 1280, 9100, "from 1280 to 9100")
        .at_least(PAGES, &["hugePages2M", "hugePages1G"], 0, "a number of pages, 0 or more")
        .rule(
            PAGES,
            "self.?hugePages2M.orValue(0) <= 0 || self.?hugePages1G.orValue(0) <= 0",
            "only one of hugePages2M and hugePages1G may be above 0: set the other to 0 or \
             remove it",
        );
}

fn environment(schema: &mut Schema) {
    let [ids, bandwidths, schedulings] =
        ["PRIORITY_ID", "PRIORITY_BANDWIDTH", "PRIORITY_SCHEDULING"]
            .map(|name| format!("('{name}' in self ? size(self['{name}'].split(',')) : 0)"));
    let _ = Fields::of(schema)
        .map("envVariablesConfig", 128, TEXT)
        .field(
            "OSDN1810",
            "envVariablesConfig",
            "self.all(key, key.matches('^[A-Za-z_][A-Za-z0-9_]*$'))",
            "has names of environment variables as keys: letters, digits and _, not a digit first",
        )
        .field(
            "OSDN1810",
            "envVariablesConfig",
            "self.all(key, !(key in ['POD_IP', 'NODE_TYPE', 'LOG_LEVEL', 'VROUTER_HOSTNAME', \
             'CONTROL_NODES', 'CONFIG_NODES']))",
            "must not set POD_IP, NODE_TYPE, LOG_LEVEL, VROUTER_HOSTNAME, CONTROL_NODES or \
             CONFIG_NODES, which the operator sets",
        )
        .field(
            "OSDN1813",
            "envVariablesConfig",
            &format!("{ids} == {bandwidths} && {ids} == {schedulings}"),
            "must give PRIORITY_ID, PRIORITY_BANDWIDTH and PRIORITY_SCHEDULING the same number \
             of items, separated by commas, or none of them",
        );
}

fn data_plane(schema: &mut Schema) {
    let interfaces = given("sriovPhysicalInterface");
    let networks = given("sriovPhysicalNetwork");
    let functions = given("sriovVf");
    let _ = Fields::of(schema)
        .longest(&["agentMode", "sriovVf"], HOST)
        .longest(&["sriovPhysicalInterface", "sriovPhysicalNetwork"], TEXT)
        .required(
            "dpdk",
            "OSDN1814",
            &format!(
                "{OWN_DATA_PLANE} || ((!has(self.agentMode) || \
                 self.agentMode.lowerAscii() != 'dpdk') && \
                 (!has(self.envVariablesConfig) || \
                 !('AGENT_MODE' in self.envVariablesConfig) || \
                 self.envVariablesConfig['AGENT_MODE'].lowerAscii() != 'dpdk'))"
            ),
            "agent mode dpdk alone does nothing: set dpdk, or profiles with a VrouterProfile \
             for DPDK",
        )
        .rule_at(
            "sriovPhysicalNetwork",
            "OSDN1815",
            &format!(
                "{interfaces} == {networks} && (!{interfaces} || \
                 size(self.sriovPhysicalInterface.split(',')) == \
                 size(self.sriovPhysicalNetwork.split(',')))"
            ),
            "sriovPhysicalInterface and sriovPhysicalNetwork belong together and must have the \
             same number of items, separated by commas",
        )
        .required(
            "sriovVf",
            "OSDN1815",
            &format!(
                "!{interfaces} || {OWN_DATA_PLANE} || {functions} || \
                 (has(self.envVariablesConfig) && 'SRIOV_VF' in self.envVariablesConfig)"
            ),
            "sriovPhysicalInterface needs the number of virtual functions: set SRIOV_VF in \
             envVariablesConfig, or sriov.numberOfVfs",
        );
}
