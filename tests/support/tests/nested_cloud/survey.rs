//! What is read of a cloud, and what is said of the parts that it does not give.

use opensdn_config_api::link_local::Row;
use opensdn_nested::plan::Part;
use opensdn_nested::{Code, Fact, Live, Permission, Plan, Severity, plan};
use opensdn_nested_cloud::survey;
use opensdn_testing::config_api::{
    Disturbance, Mode, Roles, Service, Settings, Times, User, WorkedExample,
};

use crate::cloud::cluster;
use crate::example::{Example, OPTIONS, worked_example};

/// Which parts are unknown, with the reason.
fn unknown(live: &Live) -> Vec<(&'static str, String)> {
    let Live {
        rows,
        records,
        subnets,
        underlay,
        addresses,
        network,
        pools,
        pools_of_others,
        interfaces,
        virtual_routers,
        traces,
        aaa_mode,
        may_write,
    } = live;
    fn why<T>(fact: &opensdn_nested::Fact<T>) -> Option<String> {
        match fact {
            opensdn_nested::Fact::Known(_) => None,
            opensdn_nested::Fact::Unknown(why) => Some(why.clone()),
        }
    }
    let all = [
        ("rows", why(rows)),
        ("records", why(records)),
        ("subnets", why(subnets)),
        ("underlay", why(underlay)),
        ("addresses", why(addresses)),
        ("network", why(network)),
        ("pools", why(pools)),
        ("pools_of_others", why(pools_of_others)),
        ("interfaces", why(interfaces)),
        ("virtual_routers", why(virtual_routers)),
        ("traces", why(traces)),
        ("aaa_mode", why(aaa_mode)),
        ("may_write", why(&may_write.vrouter_config)),
        ("may_write", why(&may_write.network)),
    ];
    all.into_iter().filter_map(|(part, why)| Some((part, why?))).collect()
}

fn errors(plan: &Plan) -> Vec<String> {
    let errors = plan.findings.iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(|finding| format!("{} {}", finding.code, finding.message)).collect()
}

#[tokio::test]
async fn all_of_the_worked_example_is_known_and_both_options_have_no_error() {
    for option in OPTIONS {
        let cloud = worked_example(Settings::default());
        let (api, example) = (cloud.api(), Example::new("a", option));
        let live = survey(&api, &example.asked()).await.unwrap();
        assert_eq!(unknown(&live), []);
        assert_eq!(live.interfaces.known().unwrap().len(), 3);
        assert_eq!(live.virtual_routers.known().unwrap().len(), 3);
        assert_eq!(live.underlay.known().unwrap().len(), 6);
        assert_eq!(live.network.known().unwrap().as_ref().unwrap().other_interfaces, Some(0));
        let plan = plan(&example.input, &live);
        assert_eq!(errors(&plan), [""; 0]);
        assert!(plan.is_applicable());
        // What no cloud says.
        let unknown = plan.unknown.iter().filter(|one| !one.why.contains("only routed"));
        assert_eq!(unknown.count(), 0, "{:?}", plan.unknown);
    }
}

#[tokio::test]
async fn the_rows_of_the_worked_example_are_in_the_cloud_after_its_plan() {
    let cloud = worked_example(Settings::default());
    Example::new("a", OPTIONS[1]).set_up(&cloud.api()).await;
    let rows = cloud.rows().await.into_iter().map(|row| Row::from(row).to_string());
    let rows: Vec<String> = rows.collect();
    assert_eq!(
        rows,
        [
            r#""metadata" 169.254.169.254:80 -> 192.168.1.100:8775"#,
            r#""Contrail Config" 10.10.10.1:8082 -> 192.168.1.100:8082"#,
            r#""Contrail Analytics 1" 10.10.10.1:8086 -> 192.168.1.100:8086"#,
            r#""Contrail Analytics 2" 10.10.10.2:8086 -> 192.168.1.101:8086"#,
            r#""Contrail Msg Queue" 10.10.10.1:5673 -> 192.168.1.100:5673"#,
            r#""Contrail VNC DB 1" 10.10.10.1:9161 -> 192.168.1.100:9161"#,
            r#""Contrail VNC DB 2" 10.10.10.2:9161 -> 192.168.1.101:9161"#,
            r#""Contrail VNC DB 3" 10.10.10.3:9161 -> 192.168.1.102:9161"#,
            r#""Keystone" 10.10.10.4:35357 -> 192.168.1.200:35357"#,
            r#""K8s-cni-to-agent" 10.10.10.5:9091 -> 127.0.0.1:9091"#,
        ]
    );
}

#[tokio::test]
async fn what_a_cloud_does_not_give_is_unknown_and_says_why() {
    let roles = Roles { readable: vec!["global-vrouter-config".to_owned()], ..Roles::default() };
    let users = vec![User::new("bob", "secret-of-bob", &["member"])];
    let cloud = worked_example(Settings { mode: Mode::Rbac, roles, users, ..Settings::default() });
    let (api, example) = (cloud.api_of("bob", "secret-of-bob"), Example::new("a", OPTIONS[0]));
    let live = survey(&api, &example.asked()).await.unwrap();
    let unknown = unknown(&live);
    let parts: Vec<&str> = unknown.iter().map(|(part, _)| *part).collect();
    let expected =
        ["subnets", "underlay", "addresses", "network", "interfaces", "virtual_routers", "traces"];
    assert_eq!(parts, [&expected[..], &["aaa_mode", "may_write", "may_write"]].concat());
    for (part, why) in &unknown {
        assert!(why.contains("Permission Denied for bob"), "{part}: {why}");
    }
    let plan = plan(&example.input, &live);
    assert_eq!(plan.unread, [Part::Network]);
    assert!(!plan.is_applicable());
    let refused = plan.unknown.iter().filter(|one| one.why.contains("Permission Denied"));
    assert!(refused.count() >= 5, "{:#?}", plan.unknown);
}

fn name_in_use(plan: &Plan) -> Vec<&str> {
    let found = plan.findings.iter().filter(|one| one.code == Code::ClusterNameTaken);
    found.map(|one| one.message.as_str()).collect()
}

#[tokio::test]
async fn a_cluster_of_the_same_name_is_found_as_kube_manager_leaves_it() {
    for parent in [None, Some("0ddba11")] {
        let cloud = worked_example(Settings::default());
        let example = Example::new("a", OPTIONS[0]);
        WorkedExample::pod(cloud.faults(), &example.input.cluster, parent).unwrap();
        let plan = plan(&example.input, &survey(&cloud.api(), &example.asked()).await.unwrap());
        assert_eq!(name_in_use(&plan).len(), 1, "{:?}", plan.findings);
        assert!(!plan.is_applicable());
    }
}

/// Whether something of the name is another's, and why that is not known.
fn name(plan: &Plan) -> (usize, Option<&str>) {
    (name_in_use(plan).len(), plan.whose_name.as_deref())
}

#[tokio::test]
async fn services_and_machines_of_the_name_do_not_say_whose_it_is_but_our_record_does() {
    for kind in ["loadbalancer", "virtual-machine"] {
        let cloud = worked_example(Settings::default());
        let mut example = Example::new("a", OPTIONS[0]);
        WorkedExample::annotated(cloud.faults(), kind, &example.input.cluster).unwrap();
        let first = example.plan(&cloud.api()).await;
        let (errors, why) = name(&first);
        assert_eq!(errors, 0, "{:?}", first.findings);
        assert!(why.unwrap().starts_with(kind), "{why:?}");
        example.input.choices.permissions.adopt_name = Permission::Granted;
        assert_eq!(name(&example.plan(&cloud.api()).await), (0, None));
        example.set_up(&cloud.api()).await;
        example.input.choices.permissions.adopt_name = Permission::Refused;
        assert_eq!(name(&example.plan(&cloud.api()).await), (0, None), "its record has the name");
    }
}

#[tokio::test]
async fn a_running_cluster_whose_nodes_are_not_known_is_not_taken_for_another_one() {
    let cloud = worked_example(Settings::default());
    let mut example = Example::new("a", OPTIONS[0]);
    example.input.choices.kubernetes.nodes = Fact::Unknown("the operator is beside it".to_owned());
    example.set_up(&cloud.api()).await;
    let port = ["default-domain", "admin", "vm-201-port"];
    let port = cloud.faults().read("virtual-machine-interface", &port).unwrap();
    WorkedExample::pod(cloud.faults(), &example.input.cluster, port["uuid"].as_str()).unwrap();
    let live = survey(&cloud.api(), &example.asked()).await.unwrap();
    let parts: Vec<_> = unknown(&live).into_iter().map(|(part, _)| part).collect();
    assert_eq!(parts, ["interfaces"], "no interface is known to be a node's");
    assert_eq!(live.network.known().unwrap().as_ref().unwrap().other_interfaces, None);
    let running = plan(&example.input, &live);
    assert_eq!(name(&running), (0, None), "{:?}", running.findings);
    assert!(running.is_applicable());

    // The same cloud for a cluster without a record.
    example.id = cluster("another");
    example.input.choices.record = example.id.to_string();
    let stranger = example.plan(&cloud.api()).await;
    let (errors, why) = name(&stranger);
    assert!(errors == 0 && why.is_some(), "{why:?} {:?}", stranger.findings);
}

#[tokio::test]
async fn a_name_in_the_record_of_another_is_in_doubt_before_its_first_pod() {
    let cloud = worked_example(Settings::default());
    let (first, mut second) = (Example::new("a", OPTIONS[1]), Example::new("b", OPTIONS[1]));
    first.set_up(&cloud.api()).await;
    assert_eq!(name(&second.plan(&cloud.api()).await), (0, None), "a name of its own");
    second.input.cluster = first.input.cluster.clone();
    let plan = second.plan(&cloud.api()).await;
    let (errors, why) = name(&plan);
    assert!(errors == 0 && why.unwrap().contains(&first.id.to_string()), "{why:?}");
}

#[tokio::test]
async fn the_name_of_a_cluster_is_not_changed_under_its_record() {
    let cloud = worked_example(Settings::default());
    let mut example = Example::new("a", OPTIONS[1]);
    example.set_up(&cloud.api()).await;
    let live = survey(&cloud.api(), &example.asked()).await.unwrap();
    assert_eq!(name_in_use(&plan(&example.input, &live)), [""; 0]);
    example.input.cluster = "k8s-renamed".to_owned();
    let plan = plan(&example.input, &live);
    assert_eq!(name_in_use(&plan).len(), 1, "{:?}", plan.findings);
}

#[tokio::test]
async fn a_cloud_that_does_not_answer_is_one_error_and_not_one_for_each_part() {
    let cloud = worked_example(Settings::default());
    let (api, example) = (
        cloud.limited_api_of("admin", "contrail123", std::time::Duration::from_millis(90)),
        Example::new("a", OPTIONS[0]),
    );
    cloud.faults().disturb(Service::ConfigApi, Disturbance::Cut, Times::Always);
    cloud.faults().forget_calls();
    assert!(survey(&api, &example.asked()).await.is_err());
    assert!(cloud.faults().calls().len() <= 3, "{:?}", cloud.faults().calls());
}
