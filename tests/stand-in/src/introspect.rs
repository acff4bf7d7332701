//! Introspect's pages, as far as `contrail-status` and our probes read them: `NodeStatus` with the
//! process' state and its connections, and `ConfigApiWorker`, by which the former finds the Config
//! API's workers. Deliberately not here: the attributes of Sandesh's XML, which neither reads, and
//! any other page.

use std::net::SocketAddr;

use crate::component::Service;
use crate::state::{Connected, Link, down, names};

/// What a page is made of.
#[derive(Debug)]
pub(crate) struct Process<'a> {
    pub(crate) module: &'a str,
    pub(crate) worker: u16,
    /// Where introspect itself is.
    pub(crate) introspect: SocketAddr,
    pub(crate) connections: &'a [Connected],
}

/// The page of a path with its query; none if there is no such page.
pub(crate) fn page(path: &str, query: &str, process: &Process<'_>) -> Option<String> {
    match (path, query) {
        ("/", _) => Some(index(process)),
        ("/Snh_SandeshUVECacheReq", "x=NodeStatus") => Some(node_status(process)),
        ("/Snh_SandeshUVECacheReq", "x=ConfigApiWorker") if process.module == "contrail-api" => {
            Some(config_api_worker(process))
        }
        // Another UVE, of which there is none.
        ("/Snh_SandeshUVECacheReq", _) => Some("<UVE_list/>".into()),
        _ => None,
    }
}

fn index(process: &Process<'_>) -> String {
    format!("<modules><module>{}</module></modules>", escaped(process.module))
}

fn node_status(process: &Process<'_>) -> String {
    let down = down(process.connections);
    let state = if down.is_empty() { "Functional" } else { "Non-Functional" };
    let description = match down.as_slice() {
        [] => String::new(),
        down => format!("{} connection down", down.join(", ")),
    };
    let infos: String = process.connections.iter().map(connection_infos).collect();
    format!(
        "<NodeStatusUVE_list><NodeStatusUVE><data><NodeStatus><process_status><list>\
         <ProcessStatus><module_id>{}</module_id><instance_id>{}</instance_id>\
         <state>{state}</state><connection_infos><list>{infos}</list></connection_infos>\
         <description>{description}</description></ProcessStatus>\
         </list></process_status></NodeStatus></data></NodeStatusUVE></NodeStatusUVE_list>",
        escaped(process.module),
        process.worker,
    )
}

/// One for each service; of control nodes one for each of them, as an agent has it (tf-controller,
/// `src/vnsw/agent/controller/controller_peer.cc:3455-3470`).
fn connection_infos(connected: &Connected) -> String {
    let (kind, name, _) = names(connected.service);
    if connected.service == Service::ControlNode {
        let each = connected.servers.iter().map(|(server, link)| {
            let address = server.rsplit_once(':').map_or(server.as_str(), |(address, _)| address);
            connection_info(kind, &format!("{name}:{address}"), &[server], link)
        });
        return each.collect();
    }
    let servers: Vec<&str> = connected.servers.iter().map(|(server, _)| server.as_str()).collect();
    connection_info(kind, name, &servers, &connected.link())
}

fn connection_info(kind: &str, name: &str, servers: &[&str], link: &Link) -> String {
    let (status, why) = match link {
        Link::Begun => ("Init", ""),
        Link::Up => ("Up", ""),
        Link::Down(why) => ("Down", why.as_str()),
    };
    let servers: String =
        servers.iter().map(|server| format!("<element>{}</element>", escaped(server))).collect();
    format!(
        "<ConnectionInfo><type>{kind}</type><name>{}</name>\
         <server_addrs><list>{servers}</list></server_addrs><status>{status}</status>\
         <description>{}</description></ConnectionInfo>",
        escaped(name),
        escaped(why)
    )
}

fn config_api_worker(process: &Process<'_>) -> String {
    format!(
        "<ConfigApiWorker_list><data><ConfigApiWorker><worker_id>{}</worker_id>\
         <introspect_port>{}</introspect_port></ConfigApiWorker></data></ConfigApiWorker_list>",
        process.worker,
        process.introspect.port()
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(connections: &[Connected]) -> Process<'_> {
        let introspect = ([0, 0, 0, 0], 8084).into();
        Process { module: "contrail-api", worker: 2, introspect, connections }
    }

    fn connected(service: Service, links: &[Link]) -> Connected {
        let servers = links.iter().map(|link| ("10.0.0.1:1".to_owned(), link.clone()));
        Connected { service, servers: servers.collect() }
    }

    /// The first element of that name, as text.
    fn first(page: &str, name: &str) -> String {
        let document = roxmltree::Document::parse(page).unwrap();
        let found = document.descendants().find(|node| node.has_tag_name(name));
        found.unwrap().text().unwrap_or_default().to_owned()
    }

    #[test]
    fn one_server_of_several_is_enough() {
        let (up, down) = (Link::Up, Link::Down("a < b".into()));
        let connections = [
            connected(Service::Cassandra, &[down.clone(), up.clone()]),
            connected(Service::RabbitMq, &[up]),
        ];
        let page = node_status(&process(&connections));
        assert_eq!(first(&page, "state"), "Functional");
        assert_eq!(first(&page, "instance_id"), "2");
        let connections = [
            connected(Service::Cassandra, &[down.clone(), down.clone()]),
            connected(Service::RabbitMq, &[Link::Begun]),
        ];
        let page = node_status(&process(&connections));
        assert_eq!(first(&page, "state"), "Non-Functional");
        assert_eq!(first(&page, "status"), "Down");
        let document = roxmltree::Document::parse(&page).unwrap();
        let mut described = document.descendants().filter(|node| node.has_tag_name("description"));
        let wanted = "Database:Cassandra, Database:RabbitMQ connection down";
        assert_eq!(described.next_back().unwrap().text(), Some(wanted));
    }

    #[test]
    fn of_control_nodes_each_is_a_session_of_its_own() {
        let links = [Link::Up, Link::Down("refused".into())];
        let mut control = connected(Service::ControlNode, &links);
        control.servers[1].0 = "10.0.0.2:5269".to_owned();
        let page = node_status(&process(&[control]));
        let document = roxmltree::Document::parse(&page).unwrap();
        let texts = |name: &str| {
            let infos = document.descendants().filter(|node| node.has_tag_name("ConnectionInfo"));
            let of = |info: roxmltree::Node<'_, '_>| {
                let mut found = info.children().filter(|node| node.has_tag_name(name));
                found.next().unwrap().text().unwrap().to_owned()
            };
            infos.map(of).collect::<Vec<_>>()
        };
        assert_eq!(texts("name"), ["control-node:10.0.0.1", "control-node:10.0.0.2"]);
        assert_eq!(texts("status"), ["Up", "Down"]);
        assert_eq!(first(&page, "state"), "Functional", "one is enough");
    }

    #[test]
    fn pages_are_those_that_are_asked_for() {
        let answer = |path, query| page(path, query, &process(&[]));
        let worker = answer("/Snh_SandeshUVECacheReq", "x=ConfigApiWorker").unwrap();
        assert_eq!(first(&worker, "introspect_port"), "8084");
        assert!(answer("/", "").unwrap().contains("contrail-api"));
        assert_eq!(answer("/elsewhere", ""), None);
        let nothing = answer("/Snh_SandeshUVECacheReq", "x=Other").unwrap();
        assert!(!nothing.contains("NodeStatus"));
    }
}
