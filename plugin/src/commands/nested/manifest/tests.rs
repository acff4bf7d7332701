//! Which plan is taken, and which is refused.

use clap::Parser;
use opensdn_nested::{Fact, Live, Plan, plan};

use super::{ManifestCommand, contradiction};
use crate::exit::Exit;
use crate::nested::plan_file::NestedPlan;

const WORKLOADS: &str = "--api-server 10.0.0.10 --registry registry.example/opensdn --tag R25.1";
const EXAMPLE: &str = "--cluster-name k8s-a --cluster-network admin:vms --config-nodes 192.168.1.100 \
    --analytics-nodes 192.168.1.100,192.168.1.101 --service-addresses 10.10.10.0/24";

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    manifest: ManifestCommand,
}

fn read(lines: &[&str]) -> ManifestCommand {
    let words = lines.iter().flat_map(|line| line.split_whitespace());
    Line::try_parse_from(["it"].into_iter().chain(words)).unwrap().manifest
}

/// As of a cloud that has no link-local service yet.
fn planned(lines: &[&str]) -> Plan {
    let command = read(&[&[WORKLOADS], lines].concat());
    let input = command.input(&command.spec.spec().unwrap());
    let mut plan = plan(&input, &Live { rows: Fact::Known(Vec::new()), ..Live::unknown("") });
    plan.unread.clear();
    plan
}

fn differs(plan: &Plan, lines: &[&str]) -> Option<&'static str> {
    let command = read(&[&[WORKLOADS], lines].concat());
    let spec = command.spec.given().unwrap();
    contradiction(plan, &spec, &command.input(&spec))
}

#[test]
fn what_is_said_besides_a_plan_must_be_the_same() {
    for how in ["--connectivity link-local", "--connectivity fabric-snat"] {
        let plan = planned(&[EXAMPLE, how]);
        for (besides, expected) in [
            ("", None),
            (EXAMPLE, None),
            ("--cluster-network admin:vms", None),
            ("--cluster-name k8s-b", Some("another cluster")),
            ("--cluster-network admin:others", Some("another network")),
            ("--vrouter-address 10.10.10.77", Some("another vrouter address")),
            ("--config-nodes 192.168.1.100", Some("other services")),
        ] {
            assert_eq!(differs(&plan, &[besides]), expected, "{how}: {besides}");
        }
    }
    let plan = planned(&[EXAMPLE]);
    assert_eq!(differs(&plan, &["--connectivity link-local"]), Some("another connectivity"));
}

#[test]
fn a_plan_that_could_not_be_applied_gives_no_workloads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    let write = |plan: Plan| NestedPlan { config_api: Vec::new(), plan }.write(&path).unwrap();
    let command = read(&[WORKLOADS]);
    write(planned(&[EXAMPLE]));
    assert!(command.planned(&path).is_ok());

    let mut unread = planned(&[EXAMPLE]);
    unread.unread.push(opensdn_nested::plan::Part::Rows);
    write(unread);
    let failure = command.planned(&path).unwrap_err();
    assert_eq!((failure.exit, failure.code), (Exit::Usage, "not-applicable"));

    // The address is in the networks of pods.
    write(planned(&[EXAMPLE, "--vrouter-address 10.32.0.5"]));
    let failure = command.planned(&path).unwrap_err();
    assert!(failure.causes.iter().any(|cause| cause.contains("OSDN3004")), "{failure:?}");
}

#[test]
fn without_a_plan_only_fabric_snat_with_a_vrouter_address_is_known() {
    let command = read(&[WORKLOADS, EXAMPLE, "--connectivity link-local"]);
    assert!(command.plan_of_flags().unwrap_err().message.contains("a plan is needed"));
    let failure = read(&[WORKLOADS, EXAMPLE]).plan_of_flags().unwrap_err();
    assert!(failure.message.contains("--vrouter-address missing"), "{failure:?}");
    let command = read(&[WORKLOADS, EXAMPLE, "--vrouter-address 10.10.10.5"]);
    let plan = command.plan_of_flags().unwrap();
    assert_eq!(plan.environment["KUBERNESTES_NESTED_VROUTER_VIP"], "10.10.10.5");
    assert_eq!(plan.environment["ANALYTICS_NODES"], "192.168.1.100,192.168.1.101");
}
