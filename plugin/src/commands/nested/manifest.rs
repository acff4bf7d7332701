//! `nested manifest`: the objects of kube-manager and the CNI agent, for kubectl. Neither the cluster nor the Config API is
//! asked: what the cloud has for the cluster comes from a plan.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use opensdn_crds::nested_cluster::{Connectivity, NestedClusterSpec};
use opensdn_nested::{Endpoint, Fact, Input, Live, Plan, Role, Severity, plan};
use opensdn_nested_workloads::Workloads;
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::nested::cluster::NestedFacts;
use crate::nested::flags::SpecFlags;
use crate::nested::plan_file::NestedPlan;
use crate::nested::workload_advice::{Networks, before, consequences};
use crate::nested::workload_flags::WorkloadFlags;
use crate::nested::workloads::workloads;
use crate::nested::world;
use crate::output::DocumentFormat;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # With the addresses of a plan
  kubectl opensdn nested plan -f nested-cluster.yaml --out plan.json
  kubectl opensdn nested manifest --plan plan.json --api-server 10.0.0.10:6443 \\
    --registry registry.example.com/opensdn --tag R25.1 \\
    --keystone-secret keystone --rabbitmq-secret rabbitmq | kubectl apply --server-side -f -

  # With fabric SNAT a plan is not needed, where the vrouters' service address is known
  kubectl opensdn nested manifest --cluster-name k8s-a --cluster-network admin:vms \\
    --config-nodes 192.168.1.100 --vrouter-address 10.10.10.5 --api-server 10.0.0.10 \\
    --registry registry.example.com/opensdn --tag R25.1

  # The password of Keystone's user, which is no argument of any command here
  kubectl -n kube-system create secret generic keystone --from-file=password=/dev/stdin

Only the objects are on standard output. What has to be there before, and what they open, is on
standard error. Apply them when nested apply has written its part into the cloud: kube-manager
needs it at its start.

No cluster is asked. With --plan all of the cluster comes from the plan but its networks,
--pod-subnets, --service-subnets and --fabric-subnets; a NestedCluster or flags besides must say
the same.

Exit codes: 0 printed, 2 the arguments, the file or the plan.";

/// Arguments of `nested manifest`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct ManifestCommand {
    /// A plan of nested plan --out; needed for link-local services.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    plan: Option<PathBuf>,
    /// How the objects are written [default: a YAML document for each].
    // Without a default of clap's, so that an error is a document only where one was asked for.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    spec: SpecFlags,
    #[command(flatten)]
    workloads: WorkloadFlags,
}

/// How the objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A YAML document for each object.
    Yaml,
    /// One List.
    Json,
}

impl ManifestCommand {
    pub(super) fn run(&self, ui: &mut Ui) -> Result<Exit, Failure> {
        if let Some(tag) = self.workloads.tag_of_thrift() {
            let message = format!(
                "images of {tag} speak Thrift to the config database, and this manifest configures CQL, which they do not read"
            );
            let hint = "take images of R24.1 or later; for earlier ones upstream's own manifest is the way, with the variables \
                        in environment of nested plan -o json";
            return Err(Failure::usage(message, hint));
        }
        let plan = match &self.plan {
            Some(path) => self.planned(path)?,
            None => self.plan_of_flags()?,
        };
        let subnets = self.spec.choices().subnets();
        let (inputs, workloads) = workloads(&plan, subnets, &self.workloads)?;
        self.write(&workloads, ui)?;
        let [pods, services, _] = subnets;
        let networks = match pods.is_empty() || services.is_empty() {
            true => Networks::Default,
            false => Networks::Given,
        };
        consequences(&plan, &inputs).iter().for_each(|text| ui.note(text));
        before(&inputs, networks).iter().for_each(|text| ui.hint(text));
        Ok(Exit::Done)
    }

    fn write(&self, workloads: &Workloads, ui: &mut Ui) -> Result<(), Failure> {
        let objects = workloads.objects();
        match self.output {
            None | Some(Format::Yaml) => ui.write(|out| {
                objects.iter().try_for_each(|object| {
                    writeln!(out, "---")?;
                    DocumentFormat::Yaml.write_value(object, out)
                })
            }),
            Some(Format::Json) => {
                let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
                ui.write(|out| DocumentFormat::Json.write_value(&list, out))
            }
        }
    }

    /// The plan of a file, if file and flags say the same where they say anything.
    fn planned(&self, path: &Path) -> Result<Plan, Failure> {
        let plan = NestedPlan::read(path)?.plan;
        let spec = self.spec.given()?;
        if let Some(what) = contradiction(&plan, &spec, &self.input(&spec)) {
            let message = format!("{} is of {what} than the file or the flags say", path.display());
            let hint = "plan again, or leave out what the plan says anyway";
            return Err(Failure::new(Exit::Usage, "other-plan", message, hint));
        }
        if !plan.unread.is_empty() {
            let message =
                format!("{} was made while the Config API could not be read", path.display());
            let hint = "plan again: its addresses may be in use";
            return Err(Failure::new(Exit::Usage, "not-applicable", message, hint));
        }
        without_errors(plan)
    }

    /// What a plan for fabric SNAT says that depends on nothing in the cloud.
    fn plan_of_flags(&self) -> Result<Plan, Failure> {
        if self.spec.given()?.connectivity == Some(Connectivity::LinkLocal) {
            let message = "for link-local services a plan is needed, which has their addresses";
            let hint = "kubectl opensdn nested plan --out plan.json, and then --plan plan.json";
            return Err(Failure::usage(message, hint));
        }
        let spec = self.spec.spec_with_vrouter_address()?;
        without_errors(plan(&self.input(&spec), &Live::unknown(NOT_ASKED)))
    }

    fn input(&self, spec: &NestedClusterSpec) -> Input {
        let unknown = || NOT_ASKED.to_owned();
        let facts = NestedFacts {
            id: String::new(),
            nodes: Fact::Unknown(unknown()),
            api_service: Fact::Unknown(unknown()),
        };
        world::input(spec, self.spec.choices(), facts)
    }
}

const NOT_ASKED: &str = "neither the cluster nor the Config API is asked";

fn without_errors(plan: Plan) -> Result<Plan, Failure> {
    let errors = plan.findings.iter().filter(|one| one.severity == Severity::Error);
    let causes: Vec<String> =
        errors.map(|one| format!("[{}] {} -> {}", one.code, one.message, one.hint)).collect();
    if causes.is_empty() {
        return Ok(plan);
    }
    let message = format!("{} cannot be planned so", plan.cluster);
    let hint = "correct what these say; what a code means: kubectl opensdn explain CODE";
    let mut failure = Failure::new(Exit::Usage, "not-applicable", message, hint);
    failure.causes = causes;
    Err(failure)
}

/// In what the plan differs from the file and the flags.
fn contradiction(plan: &Plan, spec: &NestedClusterSpec, input: &Input) -> Option<&'static str> {
    let network = &spec.cluster_network.name;
    let vrouters = input.choices.vrouter_address.map(|address| address.to_string());
    let planned = plan.environment.get("KUBERNESTES_NESTED_VROUTER_VIP");
    let differs = [
        ("another cluster", !spec.cluster_name.is_empty() && input.cluster != plan.cluster),
        ("another network", !network.is_empty() && input.network != plan.network),
        ("another connectivity", spec.connectivity.is_some_and(|how| how != plan.connectivity)),
        ("another vrouter address", vrouters.is_some_and(|address| planned != Some(&address))),
        (
            "other services",
            !spec.services.config.addresses.is_empty() && !same_services(plan, input),
        ),
    ];
    differs.into_iter().find(|(_, differs)| *differs).map(|(what, _)| what)
}

/// By the addresses in the fabric, which a plan has in the environment or as targets of its rows.
fn same_services(planned: &Plan, input: &Input) -> bool {
    if planned.connectivity == Connectivity::FabricSnat {
        let now = plan(input, &Live::unknown(NOT_ASKED)).environment;
        let is_of_vrouter = |name: &str| name.contains("VROUTER");
        return planned
            .environment
            .iter()
            .filter(|(name, _)| !is_of_vrouter(name))
            .eq(now.iter().filter(|(name, _)| !is_of_vrouter(name)));
    }
    let rows = planned.rows.iter().filter(|row| row.role != Role::Vrouter);
    let rows: BTreeSet<(Role, Endpoint)> = rows.map(|row| (row.role, row.target)).collect();
    let wanted = input.services.iter().flat_map(|(role, service)| {
        let target = |node: &_| Endpoint { address: *node, port: service.fabric_port };
        service.nodes.iter().map(move |node| (*role, target(node)))
    });
    rows == wanted.collect()
}

#[cfg(test)]
mod tests;
