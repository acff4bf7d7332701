//! Plans of small Managers: their order, and what speaks against them.

use super::*;
use crate::health::Pod;
use opensdn_crds::upgrade::Image;

fn manager(images: &[(&str, &str, &str)]) -> Value {
    let mut services = serde_json::Map::new();
    for (key, container, image) in images {
        let containers = json!([{"name": container, "image": image}]);
        let item = json!({"metadata": {"name": "a"}, "spec": {"serviceConfiguration": {"containers": containers}}});
        let is_list = ["cassandras", "controls", "redis", "vrouters"].contains(key);
        services.insert((*key).to_owned(), if is_list { json!([item]) } else { item });
    }
    json!({ "services": services })
}

fn ready(ids: &[&str]) -> Vec<health::Service> {
    let pod =
        |number: usize| Pod { name: format!("pod-{number}"), is_ready: true, ..Pod::default() };
    let service = |id: &&str| health::Service {
        id: (*id).to_owned(),
        is_ready: true,
        pods: vec![pod(0), pod(1)],
        ..health::Service::default()
    };
    ids.iter().map(service).collect()
}

const THREE: [(&str, &str, &str); 3] = [
    ("vrouters", "vrouteragent", "contrail-vrouter-agent:R24.1"),
    ("webui", "webuiweb", "contrail-controller-webui-web:R24.1"),
    ("config", "api", "contrail-controller-config-api:R24.1"),
];
const READY: [&str; 3] = ["Vrouter/a", "Webui/a", "Config/a"];

fn planned(images: &[(&str, &str, &str)], ids: &[&str], spec: &UpgradeSpec) -> Plan {
    let (manager, services) = (manager(images), ready(ids));
    plan(&Input {
        spec,
        manager: &manager,
        paused: None,
        release: None,
        ziu_state: None,
        services: &services,
    })
}

fn version(tag: &str) -> UpgradeSpec {
    UpgradeSpec { version: Some(tag.to_owned()), ..UpgradeSpec::default() }
}

fn codes(plan: &Plan) -> Vec<String> {
    plan.remarks.iter().map(|one| format!("{} {}", one.code, one.severity)).collect()
}

#[test]
fn steps_are_in_the_order_of_the_waves_and_only_of_what_changes() {
    let plan = planned(&THREE, &READY, &version("R24.1.1"));
    let steps: Vec<_> = plan.steps.iter().map(|one| (&*one.wave, &*one.id)).collect();
    assert_eq!(steps, [("config", "Config/a"), ("web-ui", "Webui/a"), ("vrouters", "Vrouter/a")]);
    assert_eq!((&*plan.from, &*plan.to, plan.pods()), ("R24.1", "R24.1.1", 6));
    assert_eq!(codes(&plan), ["OSDN5018 Warning", "OSDN5013 Warning"]);
    assert!(plan.may_begin());
    let nothing = planned(&THREE, &READY, &version("R24.1"));
    assert!(nothing.steps.is_empty() && nothing.waves.is_empty() && nothing.may_begin());
}

#[test]
fn pods_that_are_not_named_are_counted() {
    let (manager, mut services) = (manager(&THREE), ready(&READY));
    let many = (0..1000).map(|number| Pod { name: format!("vrouter-{number}"), ..Pod::default() });
    services[0].pods = many.collect();
    let spec = version("R24.1.1");
    let input = Input {
        spec: &spec,
        manager: &manager,
        paused: None,
        release: None,
        ziu_state: None,
        services: &services,
    };
    let plan = plan(&input);
    let vrouters = plan.steps.iter().find(|step| step.id == "Vrouter/a").unwrap();
    assert_eq!(
        (vrouters.pods.as_ref().map(Vec::len), pod_count(vrouters)),
        (Some(256), Some(1000))
    );
    assert_eq!(plan.pods(), 1004);
    // As operators of before have written it.
    let earlier = Step { pod_count: None, ..vrouters.clone() };
    assert_eq!(pod_count(&earlier), Some(256));
}

#[test]
fn what_can_be_forced_is_what_the_plan_lets_pass() {
    let source = include_str!("../plan.rs");
    let forced = source.split("unless_forced(\"").skip(1).filter_map(|rest| rest.get(..8));
    let forced: BTreeSet<&str> = forced.collect();
    assert_eq!(forced.into_iter().collect::<Vec<_>>(), FORCEABLE);
}

#[test]
fn the_hash_is_of_what_would_be_done_and_not_of_how_the_cluster_is() {
    let hash = |ids: &[&str], tag: &str| planned(&THREE, ids, &version(tag)).hash();
    assert_eq!(hash(&READY, "R24.1.1"), hash(&[], "R24.1.1"));
    assert_ne!(hash(&READY, "R24.1.1"), hash(&READY, "R24.1.2"));
    assert_eq!(hash(&READY, "R24.1.1").len(), 10);
}

#[test]
fn a_way_that_upstream_has_not_tried_is_refused_by_its_code() {
    let of = |from: &str, to: &str, force: &[&str]| {
        let image = format!("contrail-controller-config-api:{from}");
        let force = Some(force.iter().map(|one| (*one).to_owned()).collect());
        let spec = UpgradeSpec { force, ..version(to) };
        let plan = planned(&[("config", "api", &image)], &["Config/a"], &spec);
        (codes(&plan), plan.may_begin())
    };
    let is = |found: (Vec<String>, bool), expected: &[&str], may: bool| {
        assert_eq!(
            (found.0, found.1),
            (expected.iter().map(|one| (*one).to_owned()).collect(), may)
        );
    };
    const REWRITES: &str = "OSDN5018 Warning";
    is(of("R21.4", "R24.1", &[]), &[REWRITES], true);
    is(of("R24.1", "R25.1", &[]), &["OSDN5011 Warning", REWRITES], true);
    is(of("R21.3", "R24.1", &[]), &["OSDN5006 Skippable", REWRITES], false);
    is(of("R21.3", "R24.1", &["OSDN5006"]), &["OSDN5006 Forced", REWRITES], true);
    is(of("R24.1.2", "R24.1.1", &[]), &["OSDN5005 Skippable", REWRITES], false);
    is(of("R24.1", "R21.4", &["OSDN5005"]), &["OSDN5005 Refused", REWRITES], false);
    is(of("R25.1", "R26.1", &[]), &["OSDN5009 Skippable", REWRITES], false);
    is(of("R24.1", "nightly", &[]), &["OSDN5004 Skippable", REWRITES], false);
    is(of("latest", "R24.1", &[]), &["OSDN5004 Skippable", REWRITES], false);
    is(of("2008", "R21.4", &[]), &["OSDN5006 Skippable", REWRITES], false);
}

#[test]
fn a_service_that_is_not_ready_refuses_it_and_one_that_stays_does_not() {
    let plan = planned(&THREE, &["Webui/a", "Vrouter/a"], &version("R24.1.1"));
    assert_eq!(codes(&plan), ["OSDN5008 Skippable", "OSDN5018 Warning", "OSDN5013 Warning"]);
    assert!(plan.remarks[0].message.contains("Config/a is not ready: it does not run yet"));
    let image = |container: &str, image: &str| Image {
        kind: None,
        container: container.to_owned(),
        image: image.to_owned(),
    };
    let spec =
        UpgradeSpec { images: Some(vec![image("webuiweb", "b:2")]), ..UpgradeSpec::default() };
    assert_eq!(codes(&planned(&THREE, &["Webui/a"], &spec)), [""; 0]);
    let typo =
        UpgradeSpec { images: Some(vec![image("webuiwep", "b:2")]), ..UpgradeSpec::default() };
    assert_eq!(codes(&planned(&THREE, &READY, &typo)), ["OSDN5003 Refused"]);
}

#[test]
fn what_no_schema_finds_is_refused_with_its_field() {
    let spec = UpgradeSpec {
        registry: Some("https://registry.example.com".to_owned()),
        pause_before: Some(vec!["vrouters".to_owned(), "vrouter".to_owned()]),
        images: Some(vec![Image {
            kind: None,
            container: "webuiweb".to_owned(),
            image: "a b".to_owned(),
        }]),
        ..version("R24.1.1")
    };
    let plan = planned(&THREE, &READY, &spec);
    let wrong = plan.remarks.iter().filter(|one| one.code == "OSDN5002");
    let fields: Vec<_> = wrong.map(|one| one.message.split(':').next().unwrap()).collect();
    assert_eq!(fields, ["registry", "images", "pauseBefore"]);
    assert!(!plan.may_begin());
}

#[test]
fn a_manager_that_is_paused_refuses_it() {
    let (manager, services, spec) = (manager(&THREE), ready(&READY), version("R24.1.1"));
    let input = Input {
        spec: &spec,
        manager: &manager,
        paused: Some("annotation"),
        release: None,
        ziu_state: None,
        services: &services,
    };
    assert!(codes(&plan(&input)).contains(&"OSDN5007 Refused".to_owned()));
}

#[test]
fn the_point_of_no_return_is_the_wave_whose_data_earlier_ones_do_not_read() {
    let way = |kind: &str, key: &str, container: &str, from: &str, to: &str| {
        let spec = UpgradeSpec {
            images: Some(vec![Image {
                kind: None,
                container: container.to_owned(),
                image: to.to_owned(),
            }]),
            ..UpgradeSpec::default()
        };
        let plan = planned(&[(key, container, from)], &[kind], &spec);
        plan.waves.iter().all(|wave| wave.no_way_back.is_none())
    };
    let back = |from: &str, to: &str| way("Cassandra/a", "cassandras", "cassandra", from, to);
    assert!(back("cassandra:3.11.3", "cassandra:3.11.19"));
    assert!(!back("cassandra:3.11.3", "cassandra:4.1.5"));
    assert!(!back("cassandra:3.0.1", "cassandra:3.11.3"));
    assert!(
        back("contrail-external-cassandra:R21.4", "opensdn-external-cassandra:R25.1"),
        "3.11 in all"
    );
    assert!(back("contrail-external-cassandra:R24.1", "cassandra:3.11.19"));
    assert!(!back("contrail-external-cassandra:R24.1", "cassandra:4.0"));
    assert!(!back("cassandra@sha256:12", "cassandra:3.11"));
    let back = |from: &str, to: &str| way("Rabbitmq/a", "rabbitmq", "rabbitmq", from, to);
    assert!(
        !back("contrail-external-rabbitmq:R21.4", "contrail-external-rabbitmq:R24.1"),
        "3.7 or 3.10"
    );
    assert!(back("contrail-external-rabbitmq:R21.3", "contrail-external-rabbitmq:R21.4.1"));
    assert!(back("contrail-external-rabbitmq:R24.1", "contrail-external-rabbitmq:R24.1.1"));
    assert!(!back("contrail-external-rabbitmq:R21.4", "contrail-external-rabbitmq:R21.4.1"));
    assert!(!back("contrail-external-rabbitmq:R21.3", "contrail-external-rabbitmq:R21.4"));
    assert!(!back("contrail-external-rabbitmq:R24.1", "opensdn-external-rabbitmq:R25.1"));
    assert!(back("opensdn-external-rabbitmq:R25.1", "rabbitmq:3.10.7-management"));
    assert!(!back("rabbitmq:3.10.7-management", "rabbitmq:3.13.7"));
}

#[test]
fn an_image_of_an_older_release_is_a_downgrade_also_where_it_is_given() {
    let image = "contrail-controller-config-api:R24.1";
    let spec = UpgradeSpec {
        images: Some(vec![Image {
            kind: None,
            container: "api".to_owned(),
            image: "contrail-controller-config-api:R21.4".to_owned(),
        }]),
        ..UpgradeSpec::default()
    };
    assert_eq!(
        codes(&planned(&[("config", "api", image)], &["Config/a"], &spec)),
        ["OSDN5005 Refused", "OSDN5018 Warning"]
    );
}

#[test]
fn a_cassandra_that_is_older_or_skips_a_major_version_is_refused_where_both_tags_say_it() {
    let of = |from: &str, to: &str, force: &[&str]| {
        let spec = UpgradeSpec {
            images: Some(vec![Image {
                kind: None,
                container: "cassandra".to_owned(),
                image: to.to_owned(),
            }]),
            force: Some(force.iter().map(|one| (*one).to_owned()).collect()),
            ..UpgradeSpec::default()
        };
        let plan = planned(&[("cassandras", "cassandra", from)], &["Cassandra/a"], &spec);
        let codes = codes(&plan).into_iter().filter(|code| !code.starts_with("OSDN5012"));
        codes.collect::<Vec<_>>().join(", ")
    };
    // What is skipped, or older.
    for (from, to) in [
        ("cassandra:3.11.19", "cassandra:5.0"),
        ("cassandra:3.11.19", "cassandra:5"),
        ("contrail-external-cassandra:R24.1", "cassandra:5.0.2"),
    ] {
        assert_eq!(of(from, to, &[]), "OSDN5019 Skippable, OSDN5006 Skippable");
    }
    let forced = of("cassandra:3.11", "cassandra:5.0", &["OSDN5006", "OSDN5019"]);
    assert_eq!(forced, "OSDN5019 Forced, OSDN5006 Forced");
    assert_eq!(of("cassandra:3.11.19", "cassandra:3.0.30", &["OSDN5005"]), "OSDN5005 Refused");
    // What the operator does not configure never worked: it has written nothing.
    assert_eq!(of("cassandra:4.1.5", "cassandra:3.11.19", &["OSDN5005"]), "OSDN5005 Forced");
    let packed = of("cassandra:4.1", "opensdn-external-cassandra:R25.1", &[]);
    assert!(packed.ends_with("OSDN5005 Skippable"), "{packed}");
    assert_eq!(
        of("cassandra:4.1", "cassandra:4.0.13", &[]),
        "OSDN5019 Skippable, OSDN5005 Refused"
    );
    assert_eq!(of("cassandra:3.11.19", "cassandra:3.11.3", &[]), "OSDN5005 Skippable");
    // One after the other.
    assert_eq!(of("cassandra:3.11.3", "cassandra:3.11.19", &[]), "");
    // Which the operator does not configure.
    assert_eq!(of("cassandra:3.11.19", "cassandra:4.1.5", &[]), "OSDN5019 Skippable");
    assert_eq!(of("cassandra:4.0", "cassandra:5.0", &[]), "OSDN5019 Skippable");
    assert_eq!(of("cassandra:3.11", "cassandra:3.11.3", &[]), "");
    // A tag that says none: the wave is without a way back, as before.
    for (from, to) in [
        ("cassandra@sha256:12", "cassandra:3.11"),
        ("cassandra:latest", "cassandra:3.11"),
        ("cassandra:4.1", "cassandra:nightly"),
        ("cassandra:20240101", "cassandra:3.11.19"),
    ] {
        assert_eq!(of(from, to, &[]), "", "{from} {to}");
    }
}

#[test]
fn versions_of_rabbitmq_that_cannot_be_mixed_refuse_it() {
    let image = "contrail-external-rabbitmq:R24.1";
    let plan = planned(&[("rabbitmq", "rabbitmq", image)], &["Rabbitmq/a"], &version("R25.1"));
    assert!(codes(&plan).contains(&"OSDN5014 Skippable".to_owned()), "{:?}", codes(&plan));
}

#[test]
fn a_zookeeper_or_a_kafka_that_is_older_or_not_configured_is_refused_unless_it_is_forced() {
    let of = |key: &str, kind: &str, container: &str, from: &str, to: &str| {
        let image = opensdn_crds::upgrade::Image {
            kind: None,
            container: container.to_owned(),
            image: to.to_owned(),
        };
        let spec = UpgradeSpec {
            manager: "m".to_owned(),
            images: Some(vec![image]),
            ..UpgradeSpec::default()
        };
        codes(&planned(&[(key, container, from)], &[&format!("{kind}/a")], &spec)).join(", ")
    };
    let zookeeper = |from: &str, to: &str| of("zookeeper", "Zookeeper", "zookeeper", from, to);
    assert_eq!(zookeeper("zookeeper:3.7.1", "zookeeper:3.8.4"), "");
    assert_eq!(zookeeper("zookeeper:3.7.1", "zookeeper:3.7.0"), "");
    assert_eq!(zookeeper("zookeeper:3.7.1", "zookeeper:3.6.2"), "OSDN5005 Skippable");
    let both = "OSDN5019 Skippable, OSDN5005 Skippable";
    assert_eq!(zookeeper("zookeeper:3.7.1", "zookeeper:3.4.14"), both);
    assert_eq!(zookeeper("zookeeper:latest", "zookeeper:20240101"), "");
    let kafka = |from: &str, to: &str| of("analyticsAlarm", "AnalyticsAlarm", "kafka", from, to);
    assert_eq!(kafka("kafka:2.6.3", "kafka:3.9.1"), "");
    assert_eq!(kafka("kafka:3.9.1", "kafka:2.6.3"), "", "what it stores ends with its container");
    assert_eq!(kafka("kafka:3.9.1", "kafka:4.0.0"), "OSDN5019 Skippable");
    assert_eq!(kafka("kafka:3.9.1", "kafka:4"), "OSDN5019 Skippable");
    assert_eq!(kafka("kafka:3.9.1", "wurstmeister/kafka:2.13-4.0.0"), "OSDN5019 Skippable");
    assert_eq!(kafka("kafka:3.9.1", "wurstmeister/kafka:2.13-2.8.1"), "");
    assert_eq!(kafka("kafka:3.9.1", "confluentinc/cp-kafka:7.6.0"), "", "that is Kafka 3.6");
    // What is in the images of a release its tag says.
    assert_eq!(
        zookeeper("x/contrail-external-zookeeper:R24.1", "zookeeper:3.6.4"),
        "OSDN5005 Skippable"
    );
    assert_eq!(zookeeper("x/contrail-external-zookeeper:R24.1", "zookeeper:3.8.4"), "");
    assert_eq!(
        kafka("x/contrail-external-kafka:R24.1", "apache/kafka:4.1.0"),
        "OSDN5019 Skippable"
    );
}

#[test]
fn a_rabbitmq_that_cannot_follow_the_one_before_says_what_is_missing() {
    let of = |from: &str, to: &str| {
        let (from, to) = (format!("rabbitmq:{from}"), format!("rabbitmq:{to}"));
        let image = opensdn_crds::upgrade::Image {
            kind: None,
            container: "rabbitmq".to_owned(),
            image: to,
        };
        let spec = UpgradeSpec {
            manager: "m".to_owned(),
            images: Some(vec![image]),
            ..UpgradeSpec::default()
        };
        let plan = planned(&[("rabbitmq", "rabbitmq", &from)], &["Rabbitmq/a"], &spec);
        let found = plan.remarks.into_iter().find(|one| one.code == "OSDN5014");
        found.map_or_else(String::new, |one| format!("{} {}", one.severity, one.message))
    };
    assert_eq!(of("3.10.7", "3.10.8"), "");
    for (from, to, part) in [
        ("3.10", "3.11.2", "enable_feature_flag all"),
        ("3.10", "3.13", "one minor version after the other"),
        ("3.10", "4.0", "no mirrored queues"),
        ("3.13", "4.1", "no mirrored queues"),
        ("3.7", "3.10", "3.7 and 3.10"),
        ("R24.1", "3.11", "enable_feature_flag all before; rabbitmqctl version says what runs"),
        ("R24.1", "3.13.7", "one minor version after the other"),
        ("R24.1", "4.0.5", "no mirrored queues"),
        ("R24.1", "4", "no mirrored queues"),
    ] {
        let said = of(from, to);
        assert!(said.starts_with("Skippable ") && said.contains(part), "{from} {to}: {said}");
    }
    assert!(!of("3.10", "3.11").contains("one minor"));
}

#[test]
fn what_a_config_of_another_version_rewrites_is_known_before() {
    let plan = planned(&THREE, &READY, &version("R25.1"));
    let remark = plan.remarks.iter().find(|one| one.code == "OSDN5018").unwrap();
    let (from, to) =
        ("contrail-controller-config-api:R24.1", "opensdn-controller-config-api:R25.1");
    assert!(
        remark.message.starts_with("Config/a: ") && remark.message.contains(from),
        "{}",
        remark.message
    );
    assert!(remark.message.contains(to) && plan.may_begin(), "{}", remark.message);
    let of = |version: UpgradeSpec| {
        let plan = planned(&THREE, &READY, &version);
        plan.remarks.iter().any(|one| one.code == "OSDN5018")
    };
    assert!(of(version("R24.1.1")), "its API walks through all objects for a patch, too");
    let registry = Some("other.example.com".to_owned());
    assert!(!of(UpgradeSpec { registry, ..version("R24.1") }), "the same from another registry");
}

#[test]
fn an_annotation_that_says_another_release_refuses_it() {
    let (manager, services, spec) = (manager(&THREE), ready(&READY), version("R25.1"));
    let with = |release| {
        let input = Input {
            spec: &spec,
            manager: &manager,
            paused: None,
            release,
            ziu_state: None,
            services: &services,
        };
        codes(&plan(&input)).contains(&"OSDN5015 Refused".to_owned())
    };
    assert!(with(Some("R24.1")) && with(Some("new")));
    assert!(!with(Some("R25.1")) && !with(None));
}

#[test]
fn an_upgrade_of_tf_operator_that_has_not_ended_is_a_warning() {
    let (manager, services, spec) = (manager(&THREE), ready(&READY), version("R24.1.1"));
    let with = |ziu_state| {
        let (manager, services) = (&manager, &services);
        let input =
            Input { spec: &spec, manager, paused: None, release: None, ziu_state, services };
        codes(&plan(&input)).contains(&"OSDN5016 Warning".to_owned())
    };
    assert!(with(Some(1)) && with(Some(12)));
    assert!(!with(None) && !with(Some(0)) && !with(Some(-1)));
}
