//! The flags of `check --probe`: which nodes are asked, and by which image. What is asked of them is in `crate::probe`.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Args, ValueEnum};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use opensdn_deploy::names;
use opensdn_node_probe::Extent;
use serde_json::Value;

use crate::checks::world::World;
use crate::clients::unanswered;
use crate::exit::{Exit, Failure};
use crate::probe::image::image;
use crate::probe::matrix::{MOST_TIMEOUT, Plan, Tried};
use crate::probe::pull::run::Pulling;
use crate::probe::pull::{AllPulled, On};
use crate::probe::run::{AT_ONCE, Asking, Run, up_to};
use crate::probe::wanted::wanted;
use crate::probe::{Answers, Asked, Network, Nodes, nodes};
use crate::snapshot::{Read, name};
use crate::ui::Ui;

/// No run is longer: what is older was left by one that was killed.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// How nodes are asked.
#[derive(Debug, Args)]
pub(super) struct ProbeFlags {
    /// Also look at each node, by a pod on it that is removed afterwards.
    #[arg(long)]
    pub(super) probe: bool,
    /// The image that looks [default: the operator's of this cluster, else of this release].
    #[arg(long, value_name = "IMAGE", requires = "probe")]
    probe_image: Option<String>,
    /// How long each node has to answer, up to 10m.
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = up_to(LONGEST))]
    probe_timeout: Duration,
    /// Only this node (repeatable).
    #[arg(long, value_name = "NAME", requires = "probe", add = crate::completion::objects::nodes())]
    node: Vec<String>,
    /// Only nodes with these labels.
    #[arg(short = 'l', long, value_name = "LABELS", requires = "probe")]
    selector: Option<String>,
    /// Which nodes try to reach which others [default: full up to 20 nodes, sample above].
    #[arg(long, value_enum, value_name = "EXTENT", requires = "probe")]
    matrix: Option<MatrixFlag>,
    /// Also have nodes pull the images that Managers name: pools is one of those that are alike. What a node has not yet is
    /// downloaded, within --probe-timeout.
    #[arg(
        long,
        value_enum,
        value_name = "NODES",
        requires = "probe",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "pools"
    )]
    pull: Option<PullFlag>,
}

/// Which nodes pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PullFlag {
    /// One of those that are alike and need the same images.
    Pools,
    /// Each, up to 32.
    All,
}

impl From<PullFlag> for On {
    fn from(flag: PullFlag) -> Self {
        match flag {
            PullFlag::Pools => Self::Pools,
            PullFlag::All => Self::All,
        }
    }
}

/// Which nodes try which others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MatrixFlag {
    /// Each tries all others.
    Full,
    /// Each tries some, and the control plane all of itself.
    Sample,
}

impl From<MatrixFlag> for Extent {
    fn from(flag: MatrixFlag) -> Self {
        match flag {
            MatrixFlag::Full => Self::Full,
            MatrixFlag::Sample => Self::Sample,
        }
    }
}

/// What nodes answered: of themselves, and of each other where that was asked.
#[derive(Debug, Default)]
pub(super) struct Probed {
    pub(super) answers: Answers,
    pub(super) matrix: Option<Tried>,
}

impl ProbeFlags {
    /// What the nodes answer; also of each other, if that is asked.
    ///
    /// # Errors
    /// A node that was named is not there, or the user interrupts it.
    pub(super) async fn ask(
        &self,
        client: &Client,
        world: &World,
        asks_matrix: bool,
        ui: &mut Ui,
    ) -> Result<Probed, Failure> {
        let nodes = self.nodes(client, world).await?;
        let installed = world.deployments.get(names::operator::NAME).and_then(Read::known);
        let image = || image(installed, world.values.as_ref());
        let image = self.probe_image.clone().map_or_else(image, Ok)?;
        let run = Run {
            image,
            timeout: self.probe_timeout,
            now: world.date.unwrap_or_else(Timestamp::now),
            needed_by: "--probe",
            at_once: AT_ONCE,
        };
        let asked = Asked {
            name: "opensdn-probe".to_owned(),
            network: Network::Node,
            nodes,
            wanted: wanted(world),
        };
        if !asks_matrix {
            return Ok(Probed { answers: run.ask(client, &asked, ui).await?, matrix: None });
        }
        let done = run.within(client, ui, async |asking, ui| {
            let answers = asking.ask(&asked, ui).await;
            let matrix = Some(self.try_others(asking, world, &answers, ui).await);
            Probed { answers, matrix }
        });
        Ok(done.await?.unwrap_or_else(|why| Probed { answers: asked.none(&why), matrix: None }))
    }

    /// What comes of it where nodes pull images; nothing where they are not to.
    ///
    /// # Errors
    /// A node that was named is not there, or the user interrupts it.
    pub(super) async fn pull(
        &self,
        client: &Client,
        world: &World,
        ui: &mut Ui,
    ) -> Result<Option<AllPulled>, Failure> {
        let Some(pull) = self.pull else { return Ok(None) };
        let nodes = self.nodes(client, world).await?;
        let now = world.date.unwrap_or_else(Timestamp::now);
        let pulling = Pulling { on: pull.into(), timeout: self.probe_timeout, now };
        pulling.run(client, world, &nodes, ui).await.map(Some)
    }

    /// Has those that answered try each other. By then the image is on each of them, so that their pods start together.
    async fn try_others(
        &self,
        asking: &Asking<'_>,
        world: &World,
        answers: &Answers,
        ui: &mut Ui,
    ) -> Tried {
        let extent = self.matrix.map(Extent::from);
        let plan = Plan::of(world, answers, extent, asking.mark());
        let Some(nodes) = plan.nodes() else { return Tried { plan, answers: Answers::new() } };
        let timeout = self.probe_timeout.min(MOST_TIMEOUT);
        let wanted = plan.wanted(timeout);
        let asked = Asked {
            name: "opensdn-probe-matrix".to_owned(),
            network: Network::Node,
            nodes,
            wanted,
        };
        let answers = asking.ask_within(timeout, &asked, ui).await;
        Tried { plan, answers }
    }

    /// The nodes that are meant; of one that cannot answer why.
    async fn nodes(&self, client: &Client, world: &World) -> Result<Nodes, Failure> {
        let selected = self.selected(client).await?;
        let all = match &world.nodes {
            Read::Known(nodes) => nodes.as_slice(),
            // Each check says so: without nodes there is nobody to ask.
            Read::Absent | Read::Unknown(_) => return Ok(Nodes::new()),
        };
        let is_meant = |node: &&Value| {
            let is_named = self.node.is_empty() || self.node.iter().any(|one| one == name(node));
            let is_selected = selected.as_ref().is_none_or(|names| names.contains(name(node)));
            is_named && is_selected
        };
        let found = nodes(all.iter().filter(is_meant));
        let hint = "kubectl get nodes --show-labels";
        if let Some(missing) = self.node.iter().find(|one| !found.contains_key(*one)) {
            let message = format!("there is no Linux node {missing} among those that are meant");
            return Err(Failure::new(Exit::Usage, "no-such-node", message, hint));
        }
        if found.is_empty() && selected.is_some() {
            let message = "no Linux node has the labels of --selector";
            return Err(Failure::new(Exit::Usage, "no-such-node", message, hint));
        }
        Ok(found)
    }

    async fn selected(&self, client: &Client) -> Result<Option<BTreeSet<String>>, Failure> {
        let Some(selector) = &self.selector else { return Ok(None) };
        let params = ListParams::default().labels(selector);
        let listed = Api::<Node>::all(client.clone()).list_metadata(&params).await;
        let listed = listed.map_err(|error| unanswered("list nodes by --selector", &error))?;
        Ok(Some(listed.iter().map(ResourceExt::name_any).collect()))
    }
}
