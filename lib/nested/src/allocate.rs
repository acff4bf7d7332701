//! Which service address each node of the underlay gets, and the vrouters. In this order: what is given, what our record
//! says, what rows of the cloud lead there already, and what is free in the pool. So no address that is in use ever
//! changes, and the same input and cloud give the same addresses in whatever order they came.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use opensdn_config_api::link_local::{Key, Target};
use opensdn_config_api::ownership::{Held, How, Record};

use crate::input::{Input, Permission, is_host};
use crate::list::{List, Standing};
use crate::live::Live;
use crate::ranges::{Range, Ranges};

/// The target of the vrouters' row, which an agent takes for its own node.
pub(crate) const VROUTERS: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// The service addresses by targets, the vrouters' under [`VROUTERS`].
#[derive(Debug, Default)]
pub(crate) struct Allocation {
    pub(crate) addresses: BTreeMap<Ipv4Addr, Assigned>,
    /// Targets for which none is left.
    pub(crate) missing: Vec<Ipv4Addr>,
}

/// A service address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Assigned {
    pub(crate) address: Ipv4Addr,
    pub(crate) from: Source,
}

/// Where a service address is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Given,
    Recorded,
    Adopted,
    Pool,
}

/// What needs a service address, with the ports of its rows: that of the service and that in the fabric.
struct Party {
    target: Ipv4Addr,
    ports: Vec<(u16, u16)>,
}

/// The control plane's nodes in numeric order where they need one, the vrouters last.
fn parties(input: &Input) -> Vec<Party> {
    let mut all: BTreeMap<Ipv4Addr, Vec<(u16, u16)>> = BTreeMap::new();
    for service in input.services.values().filter(|_| input.is_link_local()) {
        for node in &service.nodes {
            all.entry(*node).or_default().push((service.port, service.fabric_port));
        }
    }
    let vrouters =
        Party { target: VROUTERS, ports: vec![(input.vrouter_port, input.vrouter_port)] };
    let nodes = all.into_iter().filter(|(target, _)| *target != VROUTERS);
    nodes.map(|(target, ports)| Party { target, ports }).chain([vrouters]).collect()
}

/// Assigns them all, as far as the pool has enough.
pub(crate) fn allocate(input: &Input, live: &Live, list: &List) -> Allocation {
    let parties = parties(input);
    let mut allocation = Allocation::default();
    let record = own_record(live);
    for party in &parties {
        let given = given(input, party.target).map(|address| (address, Source::Given));
        let known = given.or_else(|| {
            let recorded = record.and_then(|record| recorded(record, party.target))?;
            Some((recorded, Source::Recorded))
        });
        if let Some((address, from)) = known {
            allocation.addresses.insert(party.target, Assigned { address, from });
        }
    }
    adopt(&parties, list, &mut allocation);
    take(&parties, input, live, list, &mut allocation);
    allocation
}

/// The record of this cluster; none where the records could not be read.
pub(crate) fn own_record(live: &Live) -> Option<&Record> {
    live.records.known().map(|records| &records.ours)
}

fn given(input: &Input, target: Ipv4Addr) -> Option<Ipv4Addr> {
    match target {
        VROUTERS => input.choices.vrouter_address,
        node => input.choices.node_addresses.get(&node).copied(),
    }
}

fn recorded(record: &Record, target: Ipv4Addr) -> Option<Ipv4Addr> {
    let is_it = |recorded: &Target| {
        recorded.hosts.addresses().is_some_and(|all| all.len() == 1 && all.contains(&target))
    };
    let of_target = || record.rows.iter().filter(|(_, held)| is_it(&held.target));
    // One that is to go is what another has taken the place of, where there is another.
    let is_leaving = |held: &Held| held.how == How::Leaving;
    let staying = of_target().filter(|(_, held)| !is_leaving(held));
    let all = staying.chain(of_target().filter(|(_, held)| is_leaving(held)));
    all.filter_map(|(key, _)| v4(*key)).next()
}

fn v4(key: Key) -> Option<Ipv4Addr> {
    match key.ip {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

/// The service address of the first row that leads to a party, where each row of the party fits onto it.
fn adopt(parties: &[Party], list: &List, allocation: &mut Allocation) {
    let mut taken: BTreeMap<Key, Ipv4Addr> = BTreeMap::new();
    for party in parties {
        if let Some(assigned) = allocation.addresses.get(&party.target) {
            note(party, assigned.address, &mut taken);
        }
    }
    for party in parties {
        if allocation.addresses.contains_key(&party.target) {
            continue;
        }
        let Some(address) = first_serving(party, list) else { continue };
        if fits(party, address, list, &taken) {
            note(party, address, &mut taken);
            let assigned = Assigned { address, from: Source::Adopted };
            allocation.addresses.insert(party.target, assigned);
        }
    }
}

fn note(party: &Party, address: Ipv4Addr, taken: &mut BTreeMap<Key, Ipv4Addr>) {
    taken.extend(party.ports.iter().map(|(port, _)| (Key::new(address, *port), party.target)));
}

fn first_serving(party: &Party, list: &List) -> Option<Ipv4Addr> {
    let ports = party.ports.iter();
    let serving = ports.flat_map(|(_, port)| {
        let target = Target::new([party.target], *port);
        list.serving(&target).filter_map(|seen| Some((seen.number, v4(seen.key)?))).min()
    });
    serving.min().map(|(_, address)| address).filter(|address| is_host(*address))
}

fn fits(party: &Party, address: Ipv4Addr, list: &List, taken: &BTreeMap<Key, Ipv4Addr>) -> bool {
    party.ports.iter().all(|(port, fabric_port)| {
        let key = Key::new(address, *port);
        let standing = list.standing(key, &Target::new([party.target], *fabric_port));
        matches!(standing, Standing::Absent | Standing::Served)
            && taken.get(&key).is_none_or(|target| *target == party.target)
    })
}

/// Gives what is left the lowest free addresses of the pool.
fn take(parties: &[Party], input: &Input, live: &Live, list: &List, allocation: &mut Allocation) {
    let used = used(input, live, list, allocation);
    let in_subnets = used.and(subnets(input, live));
    let best = input.pool.free(&in_subnets);
    // Where that is not enough, an address in a subnet is better than none: the finding about it names the subnet.
    let rest = input.pool.free(&used.and(best.iter().copied()));
    let mut free = best.into_iter().chain(rest).flat_map(Range::addresses);
    for party in parties {
        if allocation.addresses.contains_key(&party.target) {
            continue;
        }
        match free.next() {
            Some(address) => {
                let assigned = Assigned { address, from: Source::Pool };
                allocation.addresses.insert(party.target, assigned);
            }
            None => allocation.missing.push(party.target),
        }
    }
}

/// Addresses that something has, and those that no host can have.
fn used(input: &Input, live: &Live, list: &List, allocation: &Allocation) -> Ranges {
    let kubernetes = &input.choices.kubernetes;
    // Records are written before the rows, so that another cluster may be about to write these.
    let records = live.records.known().into_iter();
    let recorded = records.flat_map(|all| all.ours.rows.keys().chain(&all.other_keys)).copied();
    let keys = list.rows.iter().map(|seen| seen.key).chain(recorded);
    let mut used: Vec<Ipv4Addr> = keys.filter_map(v4).collect();
    used.extend(input.choices.node_addresses.values());
    used.extend(input.choices.vrouter_address);
    used.extend(allocation.addresses.values().map(|assigned| assigned.address));
    used.extend(input.control_plane());
    used.extend(live.underlay.known().into_iter().flat_map(BTreeMap::keys));
    used.extend(live.addresses.known().into_iter().flat_map(BTreeMap::keys));
    used.extend(kubernetes.nodes.known().into_iter().flat_map(BTreeMap::values));
    used.extend(kubernetes.api_service.known());
    let no_hosts =
        [(0x0000_0000, 0x00ff_ffff), (0x7f00_0000, 0x7fff_ffff), (0xe000_0000, u32::MAX)];
    let no_hosts = no_hosts.map(|(first, last)| Range { first, last });
    used.into_iter().map(Range::from).chain(no_hosts).collect()
}

/// Networks in which no service address should be.
fn subnets(input: &Input, live: &Live) -> Vec<Range> {
    let of_cloud = live.subnets.known().into_iter().flatten();
    let of_cloud = of_cloud.filter(|used| used.is_of_tenants()).map(|used| used.subnet);
    let is_refused = input.choices.permissions.subnet_overlap == Permission::Refused;
    let of_cloud = of_cloud.filter(|_| is_refused);
    let of_cluster = input.choices.kubernetes.subnets().into_iter().map(|(_, subnet)| subnet);
    of_cloud.chain(of_cluster).map(Range::from).collect()
}

#[cfg(test)]
mod tests;
