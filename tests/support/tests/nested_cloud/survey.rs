//! What is read of a cloud, and what is said of the parts that it does not give.

use opensdn_config_api::link_local::Row;
use opensdn_nested::plan::Part;
use opensdn_nested::{Live, Plan, Severity, plan};
use opensdn_nested_cloud::survey;
use opensdn_testing::config_api::{Disturbance, Mode, Roles, Service, Settings, Times, User};

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
        interfaces,
        virtual_routers,
        traces,
        aaa_mode,
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
        ("interfaces", why(interfaces)),
        ("virtual_routers", why(virtual_routers)),
        ("traces", why(traces)),
        ("aaa_mode", why(aaa_mode)),
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
        assert_eq!(live.network.known().unwrap().as_ref().unwrap().other_interfaces, 0);
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
    assert_eq!(parts, [&expected[..], &["aaa_mode"]].concat());
    for (part, why) in &unknown {
        assert!(why.contains("Permission Denied for bob"), "{part}: {why}");
    }
    let plan = plan(&example.input, &live);
    assert_eq!(plan.unread, [Part::Network]);
    assert!(!plan.is_applicable());
    let refused = plan.unknown.iter().filter(|one| one.why.contains("Permission Denied"));
    assert!(refused.count() >= 5, "{:#?}", plan.unknown);
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
