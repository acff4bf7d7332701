//! `nested import`: a common.env of the old scripts as a NestedCluster, with the commands that follow from it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use opensdn_crds::nested_cluster::Connectivity;
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::nested::common_env::{CommonEnv, Imported, import};
use crate::nested::flags::{How, pair};
use crate::output::DocumentFormat;
use crate::policy::objects;
use crate::shell::quoted;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  # Its addresses are those of nodes in the fabric
  kubectl opensdn nested import common.env --connectivity fabric-snat > nested-cluster.yaml

  # They are service addresses, with these nodes behind them
  kubectl opensdn nested import common.env --connectivity link-local \\
    --node-address 192.168.1.100=10.10.10.1 > nested-cluster.yaml

The file is read and never run: what a shell would compute is an error. Only the NestedCluster
is on standard output; on standard error is what has no place in it, and the next commands.
Passwords are not taken over.

Exit codes: 0 printed, 2 the arguments or the file.";

/// Arguments of `nested import`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct ImportCommand {
    /// The common.env of the old scripts, or - for standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// How nodes reach the services of the underlay, which the file does not say.
    #[arg(long, value_enum, value_name = "HOW")]
    connectivity: How,
    /// Which node of the fabric is behind a service address of the file, such as 192.168.1.100=10.10.10.1.
    #[arg(long, value_name = "NODE=IP", value_parser = pair, value_delimiter = ',')]
    node_address: Vec<(Ipv4Addr, Ipv4Addr)>,
    /// Namespace of the NestedCluster.
    #[arg(long, value_name = "NAME", default_value = "tf")]
    target_namespace: String,
    /// How it is written [default: yaml].
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
}

/// How the object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// YAML.
    Yaml,
    /// JSON.
    Json,
}

impl ImportCommand {
    pub(super) fn run(&self, ui: &mut Ui) -> Result<Exit, Failure> {
        let how = Connectivity::from(self.connectivity);
        if how == Connectivity::FabricSnat && !self.node_address.is_empty() {
            let message = "with --connectivity fabric-snat nodes have no service addresses";
            return Err(Failure::usage(message, "leave --node-address out, or is it link-local?"));
        }
        let env = CommonEnv::parse(&objects::text(&self.file)?);
        if env.is_empty() {
            let message = format!("{} sets no variable", self.file.display());
            let hint = "a common.env has lines such as CONFIG_NODES=192.168.1.100";
            return Err(Failure::new(Exit::Usage, "no-common-env", message, hint));
        }
        let nodes: BTreeMap<Ipv4Addr, Ipv4Addr> = self.node_address.iter().copied().collect();
        let imported = import(&env, how, &nodes).map_err(|errors| {
            let message = format!("{} cannot be taken as it is", self.file.display());
            let hint = "put these right in a copy of it; what a flag is named for, by that flag";
            let mut failure = Failure::new(Exit::Usage, "unreadable-common-env", message, hint);
            failure.causes = errors;
            failure
        })?;
        let object = self.object(&imported);
        let format = match self.output {
            None | Some(Format::Yaml) => DocumentFormat::Yaml,
            Some(Format::Json) => DocumentFormat::Json,
        };
        ui.write(|out| format.write_value(&object, out))?;
        imported.notes.iter().for_each(|note| ui.note(note));
        next(&imported).iter().for_each(|command| ui.hint(command));
        Ok(Exit::Done)
    }

    fn object(&self, imported: &Imported) -> Value {
        let cluster = &imported.spec.cluster_name;
        json!({"apiVersion": "opensdn.io/v1alpha1", "kind": "NestedCluster",
            "metadata": {"name": object_name(cluster), "namespace": self.target_namespace},
            "spec": imported.spec})
    }
}

/// A name that an object can have.
fn object_name(cluster: &str) -> String {
    let lower = cluster.to_ascii_lowercase();
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let name = lower.replace(|letter: char| !is_plain(letter), "-");
    let name = name.trim_matches('-');
    if name.is_empty() { "nested".to_owned() } else { name.to_owned() }
}

/// The commands that follow from it.
fn next(imported: &Imported) -> Vec<String> {
    let words =
        |words: &[String]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let Imported { plan, manifest, needs_keystone, .. } = imported;
    let mut next = vec![format!(
        "what it needs of its cloud: kubectl opensdn nested plan -f nested-cluster.yaml --out plan.json {}",
        words(plan)
    )];
    if *needs_keystone {
        let command =
            "kubectl -n kube-system create secret generic keystone --from-file=password=/dev/stdin";
        next.push(format!("the password of kube-manager's user: {command}"));
    }
    next.push(format!(
        "what runs in the cluster: kubectl opensdn nested manifest --plan plan.json {}",
        words(manifest)
    ));
    next
}

#[cfg(test)]
mod tests {
    use super::object_name;

    #[test]
    fn the_name_of_the_cluster_becomes_one_that_an_object_can_have() {
        for (cluster, name) in
            [("k8s-a", "k8s-a"), ("K8S_b", "k8s-b"), ("_a.b_", "a-b"), ("___", "nested")]
        {
            assert_eq!(object_name(cluster), name);
        }
    }
}
