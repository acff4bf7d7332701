//! `check`: whether OpenSDN can be installed in a cluster and work there. What is checked is in `checks.rs`; here are
//! the arguments and the code at the end.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use kube::Client;

use crate::checks::catalogue::{self, CHECKS};
use crate::checks::planned::Planned;
use crate::checks::registry::images;
use crate::checks::report::{Checked, Outcome};
use crate::checks::world::World;
use crate::checks::{Chosen, Purpose, ask, judge};
use crate::cli::Global;
use crate::clients::AsksCluster;
use crate::commands::upgrade::target::version;
use crate::completion::objects::words;
use crate::completion::releases;
use crate::exit::{Exit, Failure};
use crate::fail_on::FailOn;
use crate::install::values::{Profile, ValuesArgs};
use crate::runtime::Runtime;
use crate::snapshot::Read;
use crate::snapshot::ask::Asker;
use crate::ui::Ui;

mod probe;

use probe::ProbeFlags;

const EXAMPLES: &str = "\
Examples:
  # Can OpenSDN be installed here, and does what is there fit?
  kubectl opensdn check

  # All checks, with what they need; no cluster is asked
  kubectl opensdn check --list

  # Some of them, for CI
  kubectl opensdn check --only K002,N101,S501 -o junit

  # And what only nodes know: ports, interfaces, modules, clocks, disks
  kubectl opensdn check --probe

  # Can nodes pull the images? One node of each kind downloads what it has not yet
  kubectl opensdn check --probe --pull --probe-timeout 10m

  # Can the nodes of a nested cluster run kube-manager and the CNI plugin?
  kubectl opensdn check --nested --probe

  # May the services get another release?
  kubectl opensdn check --upgrade R25.1

  # Does this Manager fit, which is not in the cluster yet?
  kubectl opensdn check -f manager.yaml

  # Can it be installed with these values, from your registry?
  kubectl opensdn check --pre -f prod.yaml --set registry=registry.local/opensdn

  # What is behind a check?
  kubectl opensdn explain S501

Without --probe nothing is created: it reads objects, asks for your rights, and tries by dry
run, which stores nothing, whether a privileged pod would be let in (K006). What may not be read
makes a check uncertain (?), which is no pass and no failure. The Managers and VrouterProfiles
of -f are judged as if they were in the cluster, in the place of those of the same name. With
--pre the values of -f, --set and --profile are those of install: their namespaces, objects,
rights and images are looked at, else those of the defaults. With
--probe, or --only I802, registries are asked whether they have the images, with the logins of
this machine. --upgrade is about all Managers, or with -n about those of a namespace: whether an
upgrade of them can begin, and what speaks against it. With --probe a namespace
opensdn-probe-... with a pod on each node is made for a moment, and removed whatever happens.
The nodes that answer then try to reach each other on the ports that they need (P203; --skip
P203 leaves it out), and how large packets pass between them whole (D304). With --pull nodes
also pull the images that Managers name (I801), in pods that run nothing of them and are removed;
an image that a node has not yet is downloaded, and stays there.

Exit codes: 0 no check fails, 1 one does (as --fail-on says), 3 the cluster cannot be asked,
130 or 143 interrupted: what --probe made is removed.";

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CheckCommand {
    /// Before an installation: the API server is asked as well which objects it would refuse; nothing is stored.
    #[arg(long)]
    pre: bool,
    /// The checks of a nested cluster, on virtual machines of a cloud that has OpenSDN.
    #[arg(long, conflicts_with = "pre")]
    nested: bool,
    /// The checks before an upgrade to this release, such as R25.1.
    #[arg(long, value_name = "VERSION", value_parser = version, add = words(releases), conflicts_with_all = ["pre", "nested"])]
    upgrade: Option<String>,
    /// Managers and VrouterProfiles that are to be installed (repeatable; - is standard input); with --pre also values, as
    /// install takes them.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["nested", "upgrade"])]
    filename: Vec<PathBuf>,
    /// One value of the installation, such as registry=registry.local/opensdn.
    #[arg(long = "set", value_name = "PATH=VALUE", requires = "pre")]
    set: Vec<String>,
    /// How many replicas the installation is to have.
    #[arg(long, value_enum, value_name = "NAME", requires = "pre")]
    profile: Option<Profile>,
    #[command(flatten)]
    probe: ProbeFlags,
    /// Only these checks, by their ids.
    #[arg(long, value_name = "ID", value_delimiter = ',', add = ArgValueCompleter::new(ids))]
    only: Vec<String>,
    /// All checks but these.
    #[arg(long, value_name = "ID", value_delimiter = ',', add = ArgValueCompleter::new(ids))]
    skip: Vec<String>,
    /// Show all checks, how each finds out and how bad it is; the cluster is not asked.
    #[arg(long, conflicts_with_all = ["only", "skip", "pre", "nested", "upgrade", "probe", "filename"])]
    list: bool,
    /// How bad it must be for exit code 1: error is what fails, warning what warns too, info also what is
    /// uncertain.
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "SEVERITY",
        env = "KUBECTL_OPENSDN_CHECK_FAIL_ON",
        hide_env = true
    )]
    fail_on: FailOn,
    /// Exit with 0 whatever is found.
    #[arg(long)]
    exit_zero: bool,
    #[command(flatten)]
    _cluster: AsksCluster,
    /// How the answer is written.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Table,
    /// The same with the checks that were skipped, and how long each took.
    Wide,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
    /// JUnit's XML.
    Junit,
}

impl CheckCommand {
    pub(crate) fn asks_cluster(&self) -> bool {
        !self.list
    }

    pub(crate) fn run(&self, global: &Global, ui: &mut Ui) -> Result<Exit, Failure> {
        let layout = ui.layout();
        if self.list {
            let why = "with --list no cluster is asked";
            global.cluster.must_be_absent(why, "leave one of them out")?;
            let listed = catalogue::listed();
            ui.answer(&listed, |out| listed.write(layout, out))?;
            return Ok(Exit::Done);
        }
        let chosen = self.chosen(global)?;
        let runtime = Runtime::start(global)?;
        let (client, server) = runtime.block_on(global.client_and_server())?;
        ui.progress(&format!("asking {server}"));
        let started = Instant::now();
        let mut world = self.world(&runtime, global, (&client, &server), &chosen, ui)?;
        // They are not of the cluster, and where there is no way to them it takes long.
        let may_ask = self.probe.probe || !self.only.is_empty();
        if may_ask && chosen.asks("I802") {
            ui.progress("asking registries for the images");
            world.images = Some(runtime.block_on(ask::registry(images(&world))));
        }
        world.took = started.elapsed();
        let mut report = judge(&world, &chosen);
        report.cluster = global.cluster.context_in_use();
        report.server = Some(server);
        match self.output {
            Format::Junit => ui.write(|out| report.write_junit(|check| self.fails(check), out))?,
            output => {
                ui.answer(&report, |out| report.write(output == Format::Wide, layout, out))?
            }
        }
        if let Some(first) = report.checks.iter().find(|check| check.result == Outcome::Fail) {
            ui.hint(&format!("why, and what to do: kubectl opensdn explain {}", first.id));
        }
        let is_bad = report.checks.iter().any(|check| self.fails(check));
        let plan = world.upgrade.as_ref().and_then(|upgrade| upgrade.plan_command(|_| true));
        if let Some(plan) = plan.filter(|_| !is_bad) {
            ui.hint(&format!("which services, in which order: {plan}"));
        }
        Ok(if is_bad && !self.exit_zero { Exit::Findings } else { Exit::Done })
    }

    /// Which checks are meant.
    fn chosen(&self, global: &Global) -> Result<Chosen, Failure> {
        let has_effect = self.upgrade.is_some() || !self.filename.is_empty();
        if global.cluster.namespace.is_some() && !has_effect {
            let message = "--namespace has no effect: checks are about the whole cluster";
            return Err(Failure::usage(message, "leave it out"));
        }
        let purpose = match (self.nested, &self.upgrade) {
            (_, Some(_)) => Purpose::Upgrade,
            (true, None) => Purpose::Nested,
            (false, None) => Purpose::Installation,
        };
        let chosen = Chosen { only: self.only.clone(), skip: self.skip.clone(), purpose };
        match chosen.unknown() {
            Some(id) => {
                let hint = "all checks: kubectl opensdn check --list";
                Err(Failure::usage(format!("there is no check {id}"), hint))
            }
            // A pass in which nothing was looked at.
            None if chosen.leaves_nothing() => {
                let message = "--only and --skip leave no check";
                Err(Failure::usage(message, "all checks: kubectl opensdn check --list"))
            }
            None => match chosen.looks_at_nothing(self.probe.probe) {
                Some(hint) => {
                    Err(Failure::usage("none of these checks would look at anything", hint))
                }
                None => Ok(chosen),
            },
        }
    }

    /// The cluster as these checks need it.
    fn world(
        &self,
        runtime: &Runtime,
        global: &Global,
        (client, server): (&Client, &str),
        chosen: &Chosen,
        ui: &mut Ui,
    ) -> Result<World, Failure> {
        let asker = Asker::new(client.clone());
        let planned = self.planned(global, client, ui)?;
        let mut world = runtime.block_on(Box::pin(ask::world(&asker, server, &planned)))?;
        let has_rights =
            matches!(&world.rights, Read::Known(all) if all.iter().all(|(_, has)| *has));
        if self.pre && has_rights && chosen.asks("K003") {
            ui.progress("asking the API server what it would refuse of an installation");
            let (place, values) = (&world.places.webhook, world.values.as_ref());
            let applied = Box::pin(ask::applied(client, place, values));
            world.applied = Some(runtime.block_on(applied));
        }
        if chosen.asks("K006") {
            world.let_in = runtime.block_on(Box::pin(ask::let_in(client, &world)));
        }
        if self.nested {
            world.nested = Some(runtime.block_on(ask::nested(&asker)));
        }
        if let Some(version) = &self.upgrade {
            let (of, webhook) = (global.cluster.namespace.as_deref(), &world.places.webhook);
            let read = Box::pin(ask::upgrade(&asker, version, of, webhook));
            world.upgrade = Some(runtime.block_on(read));
        }
        if self.probe.probe {
            // Of D304 alone the paths between nodes are a part.
            let asks_matrix = chosen.asks("P203") || (!self.only.is_empty() && chosen.asks("D304"));
            let asked = self.probe.ask(client, &world, asks_matrix, ui);
            let probed = runtime.block_on(Box::pin(asked))?;
            (world.probed, world.matrix) = (Some(probed.answers), probed.matrix);
            if chosen.asks("I801") {
                let pull = self.probe.pull(client, &world, ui);
                world.pulled = runtime.block_on(Box::pin(pull))?;
            }
        }
        Ok(world)
    }

    /// What is to be installed besides what is there.
    fn planned(&self, global: &Global, client: &Client, ui: &mut Ui) -> Result<Planned, Failure> {
        let given = global.cluster.namespace.as_deref();
        let planned =
            Planned::read(&self.filename, given.unwrap_or_else(|| client.default_namespace()))?;
        if let Some(file) = planned.values_file().filter(|_| !self.pre) {
            let file = file.display();
            let message = format!("{file} has values of an installation, and no Manager");
            return Err(Failure::usage(message, "before an installation with them: check --pre"));
        }
        let given = ValuesArgs::without_files(self.set.clone(), self.profile);
        let planned = planned.with_values(&given)?;
        for other in planned.not_judged() {
            ui.warn(&format!("{other} is not judged: checks look at Managers and VrouterProfiles"));
        }
        Ok(planned)
    }

    fn fails(&self, check: &Checked) -> bool {
        self.fail_on.is_reached_by(check.result)
    }
}

fn ids(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    // Of a list the last one is being written.
    let (before, last) =
        current.rsplit_once(',').map_or(("", &*current), |(before, last)| (before, last));
    let before = if before.is_empty() { String::new() } else { format!("{before},") };
    let last = last.to_uppercase();
    let fitting = CHECKS.iter().filter(|check| check.id.starts_with(&last));
    fitting
        .map(|check| {
            CompletionCandidate::new(format!("{before}{}", check.id)).help(Some(check.title.into()))
        })
        .collect()
}
