//! What a page of introspect says (pure): XML of Sandesh, of which only names of elements are looked at, as contrail-status
//! does (tf-container-builder, `containers/status/contrail-status.py:370-416`).

use super::xml::{XmlError, parse};

/// How a daemon is by its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) is_functional: bool,
    /// Why it is not, or what is amiss though it is.
    pub(super) description: String,
    /// Its sessions with control nodes, where it has any: whether each is up.
    pub(super) control_nodes: Vec<bool>,
}

/// Sessions that are up, of those that there are to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sessions {
    pub(super) up: u32,
    pub(super) all: u32,
}

/// More than any control node has.
const MOST_PEERS: u32 = 10_000;
/// Longest description that is kept of a daemon until all were asked, in characters: more than is shown.
const LONGEST: usize = 1024;

fn shortened(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

/// Why a page says nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    #[error(transparent)]
    Xml(#[from] XmlError),
    #[error("the page has no {0}")]
    Lacks(&'static str),
}

/// What the page `NodeStatus` says of the process. The first is the daemon itself.
pub(super) fn process(page: &str) -> Result<Process, PageError> {
    let page = parse(page)?;
    let process = page.first("ProcessStatus").ok_or(PageError::Lacks("ProcessStatus"))?;
    let state = process.text_of("state").ok_or(PageError::Lacks("state"))?;
    // An agent names each `control-node:ADDRESS`; its sessions for DNS are others
    // (tf-controller, `src/vnsw/agent/cmn/agent.cc:67-68`).
    let is_of_control = |name: &str| name.starts_with("control-node:");
    let connections = process.all("ConnectionInfo").into_iter().filter(|one| {
        one.text_of("type") == Some("XMPP") && one.text_of("name").is_some_and(is_of_control)
    });
    Ok(Process {
        is_functional: state == "Functional",
        description: shortened(process.text_of("description").unwrap_or_default()),
        control_nodes: connections.map(|one| one.text_of("status") == Some("Up")).collect(),
    })
}

/// The BGP sessions of a control node, by its page `BgpRouterState` (tf-controller,
/// `src/control-node/sandesh/control_node.sandesh:24-25`). None before it has counted for the first time, which takes
/// it a minute.
pub(super) fn bgp(page: &str) -> Result<Option<Sessions>, PageError> {
    let page = parse(page)?;
    let Some(state) = page.first("BgpRouterState") else { return Ok(None) };
    let number = |name| state.text_of(name).and_then(|text| text.parse().ok());
    let sessions = (number("num_up_bgp_peer"), number("num_bgp_peer"));
    Ok(match sessions {
        // What no control node has hides what others have lost.
        (Some(up), Some(all)) if up <= all && all <= MOST_PEERS => Some(Sessions { up, all }),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Sandesh writes it, with its attributes.
    fn agent(state: &str, sessions: &[(&str, &str)], description: &str) -> String {
        let infos: String = sessions
            .iter()
            .map(|(name, status)| {
                format!(
                    r#"<ConnectionInfo><type type="string" identifier="1">XMPP</type><name type="string" identifier="2">{name}</name><server_addrs type="list" identifier="3"><list type="string" size="1"><element>10.0.0.1:5269</element></list></server_addrs><status type="string" identifier="4">{status}</status><description type="string" identifier="5">OpenSent</description></ConnectionInfo>"#
                )
            })
            .collect();
        format!(
            r#"<__NodeStatusUVE_list type="slist"><NodeStatusUVE type="sandesh"><data type="struct" identifier="1"><NodeStatus><name type="string" identifier="1" key="ObjectVRouter">w1</name><process_status type="list" identifier="4" aggtype="union"><list type="struct" size="1"><ProcessStatus><module_id type="string" identifier="1">contrail-vrouter-agent</module_id><instance_id type="string" identifier="2">0</instance_id><state type="string" identifier="3">{state}</state><connection_infos type="list" identifier="4"><list type="struct" size="1"><ConnectionInfo><type type="string" identifier="1">Collector</type><name type="string" identifier="2"></name><status type="string" identifier="4">Down</status></ConnectionInfo>{infos}</list></connection_infos><description type="string" identifier="5">{description}</description></ProcessStatus></list></process_status></NodeStatus></data></NodeStatusUVE><SandeshUVECacheResp type="sandesh"><returned type="u32" identifier="1">1</returned></SandeshUVECacheResp></__NodeStatusUVE_list>"#
        )
    }

    #[test]
    fn an_agent_says_how_it_is_and_which_control_nodes_it_speaks_with() {
        let sessions = [
            ("control-node:10.0.0.1", "Up"),
            ("control-node:10.0.0.2", "Down"),
            ("dns-server:10.0.0.1", "Up"),
        ];
        let page =
            agent("Functional", &sessions, "Collector, XMPP:control-node:10.0.0.2 connection down");
        let said = process(&page).unwrap();
        assert!(said.is_functional);
        assert_eq!(said.control_nodes, [true, false], "DNS and collectors are others");
        assert_eq!(said.description, "Collector, XMPP:control-node:10.0.0.2 connection down");
        let page = agent("Non-Functional", &[], "No Configuration for self");
        let said = process(&page).unwrap();
        assert!(!said.is_functional && said.control_nodes.is_empty());
        assert_eq!(said.description, "No Configuration for self");
    }

    #[test]
    fn a_control_node_counts_its_bgp_sessions() {
        let page = |fields: &str| {
            format!(
                r#"<__BGPRouterInfo_list type="slist"><BGPRouterInfo type="sandesh"><data type="struct" identifier="1"><BgpRouterState><name type="string" identifier="1" key="ObjectBgpRouter">m1</name>{fields}</BgpRouterState></data></BGPRouterInfo></__BGPRouterInfo_list>"#
            )
        };
        let counted = page(
            r#"<num_bgp_peer type="u32" identifier="8">4</num_bgp_peer><num_up_bgp_peer type="u32" identifier="9">3</num_up_bgp_peer>"#,
        );
        assert_eq!(bgp(&counted).unwrap(), Some(Sessions { up: 3, all: 4 }));
        assert_eq!(bgp(&page("")).unwrap(), None, "it has not counted yet");
        assert_eq!(bgp("<UVE_list/>").unwrap(), None);
        for (up, all) in [("5", "4"), ("4294967295", "4294967295")] {
            let impossible = counted.replace(">4<", &format!(">{all}<"));
            let impossible = impossible.replace(">3<", &format!(">{up}<"));
            assert_eq!(bgp(&impossible).unwrap(), None, "{up} of {all}");
        }
    }

    #[test]
    fn what_is_no_page_of_introspect_is_an_error_and_not_a_state() {
        for page in ["", "<html><body>x</body>", "<a/>", "<ProcessStatus><state>Functional"] {
            assert!(process(page).is_err(), "{page:?}");
        }
        let entities = r#"<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><ProcessStatus><state>&c;</state></ProcessStatus>"#;
        assert!(process(entities).is_err(), "entities are not expanded");
        assert!(process("<ProcessStatus/>").is_err());
    }
}
