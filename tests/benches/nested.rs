//! What nested mode costs in a cloud with 100 clusters, 1,000 rows, networks and addresses: a plan, then what is written
//! and taken away for one cluster more, with the number of calls. The fake Config API is asked over HTTP; its work is in
//! the times, and is said as well. What the client waits on purpose is measured apart: once as shipped, and else left out. Deliberately not
//! here: the start of the plugin, which `plugin` measures.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use opensdn_config_api::ConfigApi;
use opensdn_config_api::apply::{self as rows, Timing};
use opensdn_config_api::edit::{Foreign, Unwanted};
use opensdn_config_api::link_local::{Key, Row as Service, Target};
use opensdn_config_api::ownership::ClusterId;
use opensdn_crds::nested::VirtualNetwork;
use opensdn_crds::nested_cluster::{Connectivity, FabricService, NestedClusterSpec, Services};
use opensdn_http_client::{HttpClient, Trust};
use opensdn_nested::input::{Choices, Driver, Input, Kubernetes, Permissions};
use opensdn_nested::{Fact, Live, Naming, Plan, Profile, plan};
use opensdn_nested_cloud::{Asked, apply, remove, survey};
use opensdn_testing::Failed;
use opensdn_testing::config_api::{FakeConfigApi, Settings, WorkedExample};
use opensdn_testing::measure::{Row, Sample, report};
use serde_json::{Value, json};

type Outcome<T> = Result<T, Failed>;

const CLUSTERS: u8 = 100;
const ROWS_EACH: u16 = 10;
const NETWORKS: u16 = 1_000;
/// Of each measurement.
const RUNS: usize = 15;
const LIMIT: Duration = Duration::from_secs(60);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome<()> {
    let cloud = Cloud::start().await?;
    let mut rows = Vec::new();
    for (option, connectivity) in
        [("option 1", Connectivity::FabricSnat), ("option 2", Connectivity::LinkLocal)]
    {
        let cluster = Cluster::new("measured", connectivity)?;
        rows.extend(plans(&cloud, &cluster, option).await?);
        rows.extend(changes(&cloud, &cluster, option).await?);
        rows.extend(as_shipped(&cloud, &cluster, option).await?);
    }
    rows.extend(planner(&cloud).await?);
    report("nested", &rows)?;
    Ok(())
}

/// The cloud of the worked example, crowded.
struct Cloud {
    fake: FakeConfigApi,
    api: ConfigApi,
}

impl Cloud {
    async fn start() -> Outcome<Self> {
        let fake = FakeConfigApi::start(Settings::default())?;
        WorkedExample::fill(&fake)?;
        let http = HttpClient::new(Trust::unverified(), LIMIT)?;
        let api = ConfigApi::new(http, &[fake.url().to_owned()], None, LIMIT)?;
        let cloud = Self { fake, api };
        for number in 0..NETWORKS {
            cloud.add_network(number)?;
        }
        for number in 0..CLUSTERS {
            cloud.add_cluster(number).await?;
        }
        Ok(cloud)
    }

    /// A network with a subnet, and an address in it.
    fn add_network(&self, number: u16) -> Outcome<()> {
        let ipam = ["default-domain", "default-project", "default-network-ipam"];
        let prefix = format!("10.{}.{}", 200 + number / 250, number % 250);
        let subnet = json!({"subnet": {"ip_prefix": format!("{prefix}.0"), "ip_prefix_len": 24}});
        let name = format!("network-{number}");
        let network = json!({"fq_name": ["default-domain", "admin", name], "parent_type": "project",
            "network_ipam_refs": [{"to": ipam, "attr": {"ipam_subnets": [subnet]}}]});
        let network = self.fake.create("virtual-network", network)?;
        let address = json!({"fq_name": [format!("ip-{number}")],
            "instance_ip_address": format!("{prefix}.3"),
            "virtual_network_refs": [{"uuid": network}]});
        self.fake.create("instance-ip", address)?;
        Ok(())
    }

    /// The rows and the record of a cluster of option 2, which leads to nodes of its own.
    async fn add_cluster(&self, number: u8) -> Outcome<()> {
        let id = ClusterId::new(&format!("bench-{number}"))?;
        let row = |port: u16| {
            let key = Key::new(Ipv4Addr::new(198, 18, number, 1), port);
            let target = Target::new([Ipv4Addr::new(192, 168, 2, number)], port);
            Service::new(&format!("other-{number}-{port}"), key, &target)
        };
        let all: Vec<Service> = (0..ROWS_EACH).map(|at| row(8_080 + at)).collect();
        let (foreign, unwanted) = (Foreign::Respect, Unwanted::Remove);
        let request = rows::Request { cluster: &id, rows: &all, foreign, unwanted };
        rows::apply(&self.api, &request, &at_once(), save).await?;
        Ok(())
    }

    /// Where others have made port pools, a plan need not look twice whether there are none.
    fn set_pools(&self, pools: &Value) -> Outcome<()> {
        let property = json!({"port_translation_pools": {"port_translation_pool": pools}});
        Ok(self.fake.update(&self.fake.global_vrouter_config(), property)?)
    }
}

/// The same calls as with the default, without its waits.
fn at_once() -> Timing {
    let default = Timing::default();
    Timing {
        settle: vec![Duration::ZERO; default.settle.len()],
        pause: Duration::ZERO,
        confirm: Duration::ZERO,
        ..default
    }
}

async fn save(_: Value) -> Result<String, Infallible> {
    Ok("backup".to_owned())
}

/// The worked example with the services of current releases.
struct Cluster {
    id: ClusterId,
    input: Input,
}

impl Cluster {
    fn new(name: &str, connectivity: Connectivity) -> Outcome<Self> {
        let nodes = |ends: &[u8]| FabricService {
            addresses: ends.iter().map(|end| format!("192.168.1.{end}")).collect(),
            port: None,
        };
        let spec = NestedClusterSpec {
            cluster_name: name.to_owned(),
            connectivity: Some(connectivity),
            cluster_network: VirtualNetwork {
                domain: None,
                project: "admin".to_owned(),
                name: "k8s-vms".to_owned(),
            },
            config_api: Default::default(),
            services: Services {
                config: nodes(&[100]),
                analytics: Some(nodes(&[100, 101])),
                config_database: Some(nodes(&[100, 101, 102])),
                rabbitmq: Some(nodes(&[100])),
                zookeeper: Some(nodes(&[100, 101, 102])),
                keystone: Some(nodes(&[200])),
                vrouter_port: None,
            },
            service_addresses: vec!["10.10.10.0/24".to_owned()],
        };
        let id = ClusterId::new(name)?;
        let input = Input::new(&spec, choices(&id)?);
        Ok(Self { id, input })
    }

    async fn survey(&self, cloud: &Cloud) -> Outcome<Live> {
        let asked = Asked {
            id: &self.id,
            cluster: &self.input.cluster,
            network: &self.input.network,
            nodes: &self.input.choices.kubernetes.nodes,
        };
        Ok(survey(&cloud.api, &asked).await?)
    }

    async fn plan(&self, cloud: &Cloud) -> Outcome<Plan> {
        let plan = plan(&self.input, &self.survey(cloud).await?);
        if plan.is_applicable() { Ok(plan) } else { Err(format!("{:#?}", plan.findings).into()) }
    }
}

fn choices(id: &ClusterId) -> Outcome<Choices> {
    let nodes = [("vm-201", 4), ("vm-202", 5), ("vm-203", 6)];
    let nodes = nodes.map(|(name, end)| (name.to_owned(), Ipv4Addr::new(10, 0, 0, end)));
    Ok(Choices {
        record: id.to_string(),
        profile: Profile::Cql,
        naming: Naming::Scoped,
        node_addresses: BTreeMap::new(),
        vrouter_address: None,
        permissions: Permissions::default(),
        kubernetes: Kubernetes {
            pod_subnets: vec!["10.32.0.0/12".parse()?],
            service_subnets: vec!["10.96.0.0/12".parse()?],
            fabric_subnets: vec!["10.64.0.0/12".parse()?],
            not_given: opensdn_nested::NotGiven::OfImage,
            nodes: Fact::Known(nodes.into()),
            api_service: Fact::Known(Ipv4Addr::new(10, 96, 0, 1)),
        },
        driver: Some(Fact::Known(Driver::Cql)),
        certificates: BTreeMap::new(),
        percent_passwords: Some(Fact::Known(Vec::new())),
    })
}

/// Times and calls of the same work.
#[derive(Default)]
struct Measured {
    times: Vec<Duration>,
    calls: usize,
    /// Processor time of the fake, of all runs.
    fake: Duration,
}

impl Measured {
    async fn add<T>(
        &mut self,
        cloud: &Cloud,
        work: impl Future<Output = Outcome<T>>,
    ) -> Outcome<T> {
        cloud.fake.forget_calls();
        let (begun, before) = (Instant::now(), time_of_fake()?);
        let done = work.await?;
        self.times.push(begun.elapsed());
        self.fake += time_of_fake()?.saturating_sub(before);
        self.calls = cloud.fake.calls().len();
        Ok(done)
    }

    fn rows(self, what: &str) -> [Row; 3] {
        #[allow(clippy::cast_precision_loss, reason = "there are few")]
        let calls = self.calls as f64;
        #[allow(clippy::cast_precision_loss, reason = "there are few")]
        let fake = self.fake.as_secs_f64() * 1_000.0 / RUNS as f64;
        let p50 = Sample::new(self.times).percentile(0.5) / 1_000.0;
        [
            Row::new(format!("{what}, p50 of {RUNS}"), p50, "ms"),
            Row::new(format!("{what}: of that the fake's processor time, mean"), fake, "ms"),
            Row::new(format!("{what}: calls"), calls, ""),
        ]
    }
}

/// How long the thread of the fake has had a processor.
fn time_of_fake() -> Outcome<Duration> {
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if fs::read_to_string(task.join("comm"))?.trim() == "config-api" {
            let spent = fs::read_to_string(task.join("schedstat"))?;
            let nanoseconds = spent.split_whitespace().next().ok_or("it has no time")?;
            return Ok(Duration::from_nanos(nanoseconds.parse()?));
        }
    }
    Err("the fake has no thread".into())
}

/// A plan, and what it waits where there are no port pools.
async fn plans(cloud: &Cloud, cluster: &Cluster, option: &str) -> Outcome<Vec<Row>> {
    cloud.set_pools(&json!([
        {"protocol": "tcp", "port_range": {"start_port": 56_000, "end_port": 57_023}},
        {"protocol": "udp", "port_range": {"start_port": 57_024, "end_port": 58_047}},
    ]))?;
    let mut planned = Measured::default();
    for _ in 0..RUNS {
        planned.add(cloud, cluster.plan(cloud)).await?;
    }
    cloud.set_pools(&json!([]))?;
    let begun = Instant::now();
    cluster.plan(cloud).await?;
    let what = format!("{option}: plan where there are no port pools, which are looked for twice");
    let rows = planned.rows(&format!("{option}: plan"));
    Ok(rows.into_iter().chain([seconds(&what, begun)]).collect())
}

fn seconds(what: &str, begun: Instant) -> Row {
    Row::new(what, begun.elapsed().as_secs_f64(), "s")
}

/// What is written, found in place, and taken away, without waits.
async fn changes(cloud: &Cloud, cluster: &Cluster, option: &str) -> Outcome<Vec<Row>> {
    let timing = at_once();
    let [mut first, mut again, mut removal]: [Measured; 3] = Default::default();
    for _ in 0..RUNS {
        let plan = cluster.plan(cloud).await?;
        let write = async || Ok(apply(&cloud.api, &plan, Foreign::Respect, &timing, save).await?);
        let done = first.add(cloud, write()).await?;
        if done.rows.changes.len() != plan.rows.len() {
            return Err(format!("{} of {} rows", done.rows.changes.len(), plan.rows.len()).into());
        }
        let done = again.add(cloud, write()).await?;
        if !done.rows.changes.is_empty() {
            return Err("what was in place was written again".into());
        }
        let take_away = async { Ok(remove(&cloud.api, &cluster.id, &timing, save).await?) };
        removal.add(cloud, take_away).await?;
    }
    let first = first.rows(&format!("{option}: apply"));
    let again = again.rows(&format!("{option}: apply with nothing to do"));
    let removal = removal.rows(&format!("{option}: remove"));
    Ok([first, again, removal].into_iter().flatten().collect())
}

/// Once with the waits in which another writer would be noticed.
async fn as_shipped(cloud: &Cloud, cluster: &Cluster, option: &str) -> Outcome<[Row; 2]> {
    let timing = Timing::default();
    let plan = cluster.plan(cloud).await?;
    let begun = Instant::now();
    apply(&cloud.api, &plan, Foreign::Respect, &timing, save).await?;
    let applied = seconds(&format!("{option}: apply with its waits"), begun);
    let begun = Instant::now();
    remove(&cloud.api, &cluster.id, &timing, save).await?;
    Ok([applied, seconds(&format!("{option}: remove with its waits"), begun)])
}

/// The planner by itself, in the cloud as it was read once.
async fn planner(cloud: &Cloud) -> Outcome<[Row; 2]> {
    let all = (0..CLUSTERS)
        .map(|number| Cluster::new(&format!("planned-{number}"), Connectivity::LinkLocal));
    let all = all.collect::<Outcome<Vec<Cluster>>>()?;
    let first = all.first().ok_or("no cluster")?;
    let live = first.survey(cloud).await?;
    let one = Sample::of(100, || drop(plan(&first.input, &live))).percentile(0.5);
    let hundred = Sample::of(RUNS, || all.iter().for_each(|one| drop(plan(&one.input, &live))));
    let what = format!("option 2: the planner alone, {CLUSTERS} clusters, p50 of {RUNS}");
    Ok([
        Row::new("option 2: the planner alone, one cluster, p50 of 100", one / 1_000.0, "ms"),
        Row::new(what, hundred.percentile(0.5) / 1_000.0, "ms"),
    ])
}
