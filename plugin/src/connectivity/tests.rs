//! Worlds of each test: one in which all is well, one in which something is not, one in which it cannot be known.

use opensdn_node_probe::{
    By, Contact, NameFinding, NodeFindings, Reached, Reply, Seen, ServiceFinding, TargetFinding,
};

use super::*;
use crate::checks::report::Outcome;
use crate::probe::Answer;
use crate::probe::peers::{OLDER, PORT};
use crate::probe::unseen::unseen;

const API: &str = "10.96.0.1:443";
const SERVICE: &str = "10.96.0.9:24224";
const MARK: &str = "opensdn-probe-1";
const NODES: [(&str, &str); 2] = [("m1", "10.32.0.1"), ("w1", "10.32.0.2")];

fn reached(wanted: &WantedService) -> Reached {
    match wanted.question {
        Question::Line => Reached::Answered(Reply {
            by: By::Plain,
            status: None,
            keys: vec![],
            begins: MARK.to_owned(),
        }),
        _ => Reached::Connected,
    }
}

/// What a pod answers that reaches all that it is asked.
fn good(address: &str, wanted: Wanted) -> Answer {
    let mut findings = unseen(address);
    let finding = |wanted: WantedService| ServiceFinding { reached: reached(&wanted), wanted };
    findings.services = wanted.services.into_iter().map(finding).collect();
    let api: SocketAddr = API.parse().unwrap();
    let named = |name: String| NameFinding { name, addresses: Seen::Is(vec![api.ip()]) };
    findings.names.wanted = wanted.names.into_iter().map(named).collect();
    let made = |target: Target| TargetFinding {
        target,
        contact: Seen::Is(Contact::Made("192.0.2.1".parse().unwrap())),
    };
    findings.targets = wanted.targets.into_iter().map(made).collect();
    findings.listens = wanted.listen.map(|listen| Seen::Is(listen.port));
    Answer { findings, ahead: Seen::Is(0) }
}

/// Pods on two nodes, and a server outside, all of which is reached.
struct Cluster {
    pods: PodAnswers,
    places: Places,
}

impl Cluster {
    fn good() -> Self {
        let outside = Target { host: "keystone.example".to_owned(), port: 5000 };
        let places = Places {
            api: Ok(API.parse().unwrap()),
            service: Ok(SERVICE.parse().unwrap()),
            outside: vec![outside],
        };
        let each = |wanted: &dyn Fn() -> Wanted| -> Answers {
            NODES.map(|(node, at)| (node.to_owned(), Ok(good(at, wanted())))).into()
        };
        let peers = each(&|| crate::probe::peers::listens(MARK));
        let askers = each(&|| places.asked_by_pods(&peers));
        let of_nodes = each(&|| places.asked_by_nodes());
        let pods = PodAnswers { peers, askers, of_nodes, mark: MARK.to_owned() };
        Self { pods, places }
    }

    fn asker(&mut self, node: &str) -> &mut NodeFindings {
        &mut self.pods.askers.get_mut(node).unwrap().as_mut().unwrap().findings
    }

    /// On w1 what is asked of that place ends so.
    fn becomes(&mut self, at: &str, reached: Reached) {
        let at: SocketAddr = at.parse().unwrap();
        let services = &mut self.asker("w1").services;
        services.iter_mut().find(|one| one.wanted.at == at).unwrap().reached = reached;
    }

    fn says(&self, test: Scenario, outcome: Outcome, part: &str) {
        let report = judge(&self.pods, &self.places, &[test]);
        let [one] = &*report.tests else { panic!("{report:#?}") };
        assert_eq!(one.result, outcome, "{one:#?}");
        assert!(one.message.contains(part), "{} in {}", part, one.message);
        assert_eq!(one.fix.is_some(), outcome == Outcome::Fail, "{one:#?}");
    }
}

const ALL: [Scenario; 8] = [
    Scenario::PodAddress,
    Scenario::NodeToApi,
    Scenario::PodToApi,
    Scenario::PodToPodOnNode,
    Scenario::PodToPod,
    Scenario::PodToService,
    Scenario::Dns,
    Scenario::Outside,
];

fn refused() -> Reached {
    Reached::No("Connection refused (os error 111)".to_owned())
}

/// What is said where all is reached, and where pods on w1 do not reach a Service.
pub(crate) fn reports() -> [ConnectivityReport; 2] {
    let (good, mut bad) = (Cluster::good(), Cluster::good());
    bad.becomes(SERVICE, refused());
    [good, bad].map(|one| judge(&one.pods, &one.places, &ALL))
}

#[test]
fn where_all_is_reached_every_test_passes() {
    let cluster = Cluster::good();
    let report = judge(&cluster.pods, &cluster.places, &ALL);
    assert!(report.tests.iter().all(|one| one.result == Outcome::Ok), "{report:#?}");
    assert!(report.tests.iter().all(|one| one.nodes.len() == 2), "{report:#?}");
}

#[test]
fn what_is_not_reached_is_named_with_its_node_and_reason() {
    let at = |address: &str| format!("{address}:{PORT}");
    for (test, place, part) in [
        (
            Scenario::PodToPod,
            at("10.32.0.1"),
            "w1: 1 of 1 not reached: m1 (10.32.0.1:24224): Connection refused",
        ),
        (Scenario::PodToPodOnNode, at("10.32.0.2"), "w1 (10.32.0.2:24224): Connection refused"),
        (Scenario::PodToService, SERVICE.to_owned(), "w1: 10.96.0.9:24224: Connection refused"),
        (Scenario::PodToApi, API.to_owned(), "w1: 10.96.0.1:443: Connection refused"),
    ] {
        let mut cluster = Cluster::good();
        cluster.becomes(&place, refused());
        cluster.says(test, Outcome::Fail, part);
    }
    let mut cluster = Cluster::good();
    let other = Reply { by: By::Plain, status: None, keys: vec![], begins: "another".to_owned() };
    cluster.becomes(SERVICE, Reached::Answered(other));
    cluster.says(Scenario::PodToService, Outcome::Fail, "something else answers");

    let mut cluster = Cluster::good();
    let node = cluster.pods.of_nodes.get_mut("m1").unwrap().as_mut().unwrap();
    node.findings.services[0].reached = refused();
    cluster.says(Scenario::NodeToApi, Outcome::Fail, "m1: 10.96.0.1:443: Connection refused");
}

#[test]
fn a_name_leads_to_the_service_elsewhere_or_nowhere() {
    let with = |addresses: Seen<Vec<std::net::IpAddr>>| {
        let mut cluster = Cluster::good();
        cluster.asker("w1").names.wanted[0].addresses = addresses;
        cluster
    };
    with(Seen::Is(vec![])).says(
        Scenario::Dns,
        Outcome::Fail,
        "kubernetes.default.svc leads nowhere",
    );
    let elsewhere = with(Seen::Is(vec!["192.0.2.7".parse().unwrap()]));
    elsewhere.says(
        Scenario::Dns,
        Outcome::Fail,
        "leads to 192.0.2.7, and the Service has 10.96.0.1",
    );
    let late = with(Seen::Unknown("no answer within 10 s".to_owned()));
    late.says(Scenario::Dns, Outcome::Fail, "no answer within 10 s");
    let mut older = Cluster::good();
    older.asker("w1").names.wanted.clear();
    older.says(Scenario::Dns, Outcome::Uncertain, OLDER);
}

#[test]
fn what_is_outside_is_reached_or_not_and_skipped_where_nothing_is_named() {
    let mut cluster = Cluster::good();
    cluster.asker("w1").targets[0].contact =
        Seen::Is(Contact::Failed("no answer within 2 s".to_owned()));
    cluster.says(
        Scenario::Outside,
        Outcome::Fail,
        "w1: keystone.example:5000: no answer within 2 s",
    );
    cluster.places.outside.clear();
    cluster.says(Scenario::Outside, Outcome::Skipped, "--outside");
}

#[test]
fn a_pod_without_a_network_fails_and_one_without_an_image_is_not_known() {
    let mut cluster = Cluster::good();
    let why = "no answer in 120 s: failed to create pod sandbox: no network";
    cluster.pods.askers.insert("w1".to_owned(), Err(why.to_owned()));
    cluster.says(Scenario::PodAddress, Outcome::Fail, why);
    cluster.says(Scenario::PodToPod, Outcome::Uncertain, why);
    cluster.pods.of_nodes.insert("w1".to_owned(), Err("ImagePullBackOff".to_owned()));
    cluster.says(Scenario::PodAddress, Outcome::Uncertain, why);
    cluster.says(Scenario::NodeToApi, Outcome::Uncertain, "ImagePullBackOff");

    // The one that listens has none, and the one that asks has.
    let mut cluster = Cluster::good();
    cluster.pods.peers.insert("w1".to_owned(), Err(why.to_owned()));
    cluster.says(Scenario::PodAddress, Outcome::Fail, why);
    cluster.says(Scenario::PodToPod, Outcome::Uncertain, "m1: no pod listens there");
}

#[test]
fn what_could_not_be_made_is_not_known_and_of_one_node_there_are_no_others() {
    let mut cluster = Cluster::good();
    cluster.places.service = Err("services is forbidden".to_owned());
    cluster.says(Scenario::PodToService, Outcome::Uncertain, "services is forbidden");
    cluster.places.api = Err("the Service kubernetes may not be read".to_owned());
    cluster.says(Scenario::PodToApi, Outcome::Uncertain, "may not be read");
    let mut cluster = Cluster::good();
    cluster.pods.peers.remove("w1");
    cluster.says(Scenario::PodToPod, Outcome::Skipped, "on one node alone");
}

#[test]
fn where_nothing_answered_one_reason_is_said_once_and_nothing_is_known() {
    let mut cluster = Cluster::good();
    let why = "no answer in 120 s: its pod is not scheduled: no node matches";
    let pods = &mut cluster.pods;
    for answers in [&mut pods.peers, &mut pods.askers, &mut pods.of_nodes] {
        answers.values_mut().for_each(|answer| *answer = Err(why.to_owned()));
    }
    let report = judge(&cluster.pods, &cluster.places, &ALL);
    assert!(report.summary.is_unknown(), "{:?}", report.summary);
    let mut out = Vec::new();
    report.write(false, crate::ui::Layout { width: 200, unicode: false }, &mut out).unwrap();
    let said = anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string();
    assert_eq!(said.matches(why).count(), 1, "{said}");
    assert_eq!(said.matches("for the same reason as pod-address").count(), 7, "{said}");
    assert!(said.ends_with("0 passed, 8 uncertain\n"), "{said}");

    cluster.pods.of_nodes = Cluster::good().pods.of_nodes;
    let report = judge(&cluster.pods, &cluster.places, &ALL);
    assert!(!report.summary.is_unknown(), "nodes reach the API server");
}

#[test]
fn a_report_says_what_to_look_at_in_text_and_in_junits_xml() {
    let mut cluster = Cluster::good();
    cluster.becomes(SERVICE, refused());
    cluster.places.outside.clear();
    let report = judge(&cluster.pods, &cluster.places, &ALL);
    let text = |all: bool| {
        let mut out = Vec::new();
        report.write(all, crate::ui::Layout { width: 80, unicode: false }, &mut out).unwrap();
        anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
    };
    let said = text(false);
    assert!(said.contains("FAIL  pods reach a Service in front of pods  pod-to-service"), "{said}");
    assert!(said.contains("look: kubectl opensdn logs kubemanager --files"), "{said}");
    assert!(said.ends_with("6 passed, 1 failed\n") && !said.contains("--outside"), "{said}");
    assert!(text(true).contains("--outside"));
    let mut out = Vec::new();
    report.write_junit(|one| one.result == Outcome::Fail, &mut out).unwrap();
    let xml = String::from_utf8(out).unwrap();
    assert!(xml.contains(r#"tests="8" failures="1""#), "{xml}");
}
