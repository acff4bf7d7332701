//! Worlds of what is outside of a cluster: Keystone as nodes reach it, and images as registries have them from here.

use opensdn_node_probe::{Contact, MOST_TARGETS, Seen, Target, TargetFinding};
use serde_json::{Value, json};

use super::super::registry::AtRegistry;
use super::super::report::Outcome;
use super::super::surroundings::targets;
use super::super::world::World;
use super::probed::probed;
use super::{but, forbidden, known, says, with_manager};
use crate::snapshot::Read;

const X901: &str = "X901";

/// With what authParameters say, and what came of this target on the second node; the others reached it.
fn keystone(authentication: Value, on_m2: Option<Seen<Contact>>) -> World {
    let mut world = probed(|_| {});
    known(&mut world.managers)[0]["spec"]["commonConfiguration"]["authParameters"] = authentication;
    let wanted = targets(&world);
    for (name, answer) in world.probed.as_mut().unwrap() {
        let good = || Seen::Is(Contact::Made([192, 0, 2, 1].into()));
        let contact = if name == "m2" { on_m2.clone() } else { Some(good()) };
        let found = |target: &Target| {
            Some(TargetFinding { target: target.clone(), contact: contact.clone()? })
        };
        answer.as_mut().unwrap().findings.targets = wanted.iter().filter_map(found).collect();
    }
    world
}

fn asked() -> Value {
    json!({"authMode": "keystone", "keystoneAuthParameters": {"address": "keystone.example.com", "adminPort": 5000}})
}

#[test]
fn keystone_is_reached_from_the_nodes_that_ask_it() {
    let made = Some(Seen::Is(Contact::Made([192, 0, 2, 1].into())));
    says(&keystone(asked(), made), X901, Outcome::Ok, "3/3 nodes");
    let failed = || Some(Seen::Is(Contact::Failed("192.0.2.1: Connection refused".to_owned())));
    says(
        &keystone(asked(), failed()),
        X901,
        Outcome::Fail,
        "m2: Keystone at keystone.example.com port 5000, which Control, Kubemanager, Vrouter on the node asks: \
         192.0.2.1: Connection refused",
    );
    let nowhere = Some(Seen::Unknown("the node finds no address".to_owned()));
    says(&keystone(asked(), nowhere), X901, Outcome::Uncertain, "m2: Keystone at");
    // An image of an older release tries nothing.
    says(&keystone(asked(), None), X901, Outcome::Uncertain, "it was not tried");
    let mut other = keystone(asked(), failed());
    for (kind, list) in [("controls", true), ("kubemanager", false), ("vrouters", true)] {
        let services = &mut known(&mut other.managers)[0]["spec"]["services"];
        let service = if list { &mut services[kind][0] } else { &mut services[kind] };
        service["spec"]["commonConfiguration"] =
            json!({"nodeSelector": {"kubernetes.io/hostname": "m1"}});
    }
    says(&other, X901, Outcome::Ok, "3/3 nodes");
}

#[test]
fn only_a_manager_that_asks_keystone_has_it_tried() {
    let none =
        keystone(json!({"authMode": "noauth", "keystoneAuthParameters": {"address": "a"}}), None);
    says(&none, X901, Outcome::Skipped, "no component asks Keystone");
    assert_eq!(targets(&none), []);
    let unread = but(|world| world.managers = forbidden());
    says(&unread, X901, Outcome::Uncertain, "may not be read");
    // Of a nested cluster kube-manager asks the Keystone of its cloud.
    let mut nested = keystone(asked(), None);
    let services = &mut known(&mut nested.managers)[0]["spec"]["services"];
    *services = json!({"kubemanager": {"metadata": {"name": "k"}, "spec": {"serviceConfiguration": {"nested": {}}}}});
    assert_eq!(targets(&nested), []);
}

#[test]
fn what_is_not_said_of_keystone_is_as_the_operator_has_it() {
    let target = |host: &str, port| Target { host: host.to_owned(), port };
    let of = |authentication: Value, services: Value| {
        targets(&with_manager(|manager| {
            manager["spec"]["commonConfiguration"]["authParameters"] = authentication;
            manager["spec"]["services"] = services;
        }))
    };
    let web =
        || json!({"webui": {"metadata": {"name": "w"}}, "zookeeper": {"metadata": {"name": "z"}}});
    let both =
        || json!({"config": {"metadata": {"name": "c"}}, "webui": {"metadata": {"name": "w"}}});
    let default = json!({"authMode": "keystone"});
    assert_eq!(
        of(default.clone(), both()),
        [target("127.0.0.1", 5000), target("127.0.0.1", 35357)]
    );
    assert_eq!(of(default, web()), [target("127.0.0.1", 5000)], "ZooKeeper asks nothing");
    let none = json!({"authMode": "keystone", "keystoneAuthParameters": {"adminPort": 70000}});
    assert_eq!(of(none, json!({"config": {"metadata": {"name": "c"}}})), []);
    let mut many = probed(|_| {});
    let one = known(&mut many.managers)[0].clone();
    for number in 0..20 {
        let mut other = one.clone();
        other["spec"]["commonConfiguration"]["authParameters"] = json!({"authMode": "keystone",
            "keystoneAuthParameters": {"address": format!("192.0.2.{number}")}});
        known(&mut many.managers).push(other);
    }
    assert_eq!(targets(&many).len(), MOST_TARGETS);
}

#[test]
fn images_are_in_their_registries_or_not_or_that_is_not_known() {
    const IMAGE: &str = "registry.example.com/zookeeper:R24.1";
    let with =
        |answer: AtRegistry| but(|world| world.images = Some([(IMAGE.to_owned(), answer)].into()));
    says(&with(AtRegistry::Present), "I802", Outcome::Ok, "1 image in their registries");
    says(&with(AtRegistry::Absent), "I802", Outcome::Warn, &format!("not there: {IMAGE}"));
    let unknown = AtRegistry::Unknown("registry.example.com cannot be reached".to_owned());
    says(
        &with(unknown),
        "I802",
        Outcome::Uncertain,
        "zookeeper:R24.1: registry.example.com cannot be reached",
    );
    let other = but(|world| world.images = Some([].into()));
    says(&other, "I802", Outcome::Uncertain, "it was not asked for");
    says(&but(|_| {}), "I802", Outcome::Skipped, "registries are asked with --probe");
    says(&but(|world| world.managers = forbidden()), "I802", Outcome::Uncertain, "may not be read");
    says(&but(|world| world.managers = Read::Absent), "I802", Outcome::Skipped, "names an image");
}
