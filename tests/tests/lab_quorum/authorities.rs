//! Another CA for all services at once: it is announced, then used, and the one before forgotten. What members have with
//! each other is looked at the whole time: each accepts all certificates that are in place, and shows none that others do
//! not trust. The operator waits for minutes and days until each has what it needs, and these pass at once (`clock`). What
//! a member trusts is seen by who connects to it, with a certificate of either CA that the test has made.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use opensdn_pki::{Authority, LeafProfile, Usage, bundle, leaf};
use opensdn_testing::kubectl::{read, send};
use opensdn_testing::sandbox::Sandbox;
use opensdn_testing::{Failed, Outcome, lab_image, lab_operator};
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::clock::{decoded, let_pass};
use super::handshakes::{Answer, Handshake, Handshakes, Member};
use super::world::{Service, World, create_manager, entry};
use super::{cassandra, rabbitmq, stories, zookeeper};
use crate::lab_upgrade::watch::Watch;
use crate::operator_given_ca::{authority, secret};

const NODES: [&str; 3] = ["node-1", "node-2", "node-3"];
/// The names of the two CAs, and of a certificate of each that no member shows.
const FIRST: &str = "first";
const SECOND: &str = "second";
/// Between two looks.
const PAUSE: Duration = Duration::from_secs(2);
/// All members, one after the other on two busy cores, or until RabbitMQ has read what a kubelet has brought.
const LONGEST: Duration = Duration::from_secs(600);
/// As in an upgrade: a client waits for another leader, or for a member to count as gone.
const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// Until a pod has what was published, whatever its clock says.
const SETTLED: Duration = Duration::from_secs(11 * 60);
/// Until it is known of all pods what was there before them.
const OLD: Duration = Duration::from_secs(21 * 60);
/// As long as a CA is trusted of which nobody shows a certificate.
const FORGOTTEN: Duration = Duration::from_secs(25 * 60 * 60);

/// Members by their service.
type Count = BTreeMap<&'static str, usize>;

/// The services with their clients, and what is known of their certificates.
struct Services {
    worlds: Vec<World>,
    /// Certificates and keys of the two CAs.
    first: (String, String),
    second: (String, String),
    handshakes: Handshakes,
    watch: Watch,
    /// As it was when it was looked last.
    in_place: Count,
    looks: usize,
    started: Instant,
}

/// What one look has shown.
#[derive(Debug, Default)]
struct Seen {
    /// What pods are to trust.
    bundle: Vec<String>,
    /// Whether it is noted since when one of these is not needed any more.
    is_leaving: bool,
    /// The CA that issues.
    signs: String,
    /// For whom a certificate of the second CA is in place.
    in_place: Count,
    /// Who shows one of it.
    shown: Count,
    /// Who accepts one of the first, and one of the second.
    accept_first: Count,
    accept_second: Count,
    ready: Count,
}

/// As many members of each of these services.
fn are(count: &Count, services: &[&str], number: usize) -> bool {
    services.iter().all(|service| count.get(service).copied().unwrap_or_default() == number)
}

/// Where a member shows its certificate, and wants one to be shown.
fn port(service: &Service) -> u16 {
    match service.word {
        "zookeeper" => 2281,
        "rabbitmq" => 5673,
        _ => 7013,
    }
}

fn reads_certificates_once(service: &Service) -> bool {
    service.word != "rabbitmq"
}

impl Services {
    /// All are Ready with the first CA, which was there before them. No client writes yet.
    async fn start(services: &[Service]) -> Result<Self, Failed> {
        let sandbox = Arc::new(Sandbox::with_real_nodes(3).await?);
        lab_operator::install_alone(&sandbox).await?;
        let (first, second) = (authority(FIRST)?, authority(SECOND)?);
        let handshakes = Handshakes::new()?;
        for (name, (certificate, key)) in [(FIRST, &first), (SECOND, &second)] {
            let profile = LeafProfile {
                usage: Usage::ServerAndClient,
                ..LeafProfile::server("test", vec!["test".to_owned()])
            };
            let ca = Authority::from_pem(certificate, key)?;
            let made = ca.issue(&profile, OffsetDateTime::now_utc())?;
            handshakes.note(name, made.certificate(), made.key())?;
        }
        send(&sandbox, &["create"], &secret(&first.0, &first.1)).await?.success();
        let (mut worlds, mut items) = (Vec::new(), Vec::new());
        for service in services {
            let world = World::of(*service, &sandbox)?;
            let image = lab_image::load(world.lab()?, service.image).await?;
            let settings = match service.word {
                "rabbitmq" => rabbitmq::settings(),
                "cassandra" => cassandra::settings(),
                _ => json!({}),
            };
            items.push(service.item(&image, settings));
            worlds.push(world);
        }
        let (watch, started, in_place) = (Watch::of("none"), Instant::now(), Count::new());
        let all = Self { worlds, first, second, handshakes, watch, in_place, looks: 0, started };
        for node in NODES {
            all.any()?.label(node).await?;
        }
        create_manager(&sandbox, items).await?;
        for world in &all.worlds {
            world.ready_on(&NODES).await?;
        }
        Ok(all)
    }

    fn any(&self) -> Result<&World, Failed> {
        self.worlds.first().ok_or_else(|| "there is no service".into())
    }

    fn words(&self, is_one: impl Fn(&Service) -> bool) -> Vec<&'static str> {
        let services = self.worlds.iter().map(|world| &world.service);
        services.filter(|service| is_one(service)).map(|service| service.word).collect()
    }

    /// Has clients trust what pods trust now, and show a certificate that is in place.
    async fn give(&self) -> Outcome {
        for world in &self.worlds {
            match world.service.word {
                "rabbitmq" => rabbitmq::give(world).await?,
                "cassandra" => cassandra::give(world).await?,
                _ => {}
            }
        }
        Ok(())
    }

    /// One look. Whoever distrusts another, or is the second of a service that is away, ends the test.
    async fn look(&mut self) -> Result<Seen, Failed> {
        let sandbox = Arc::clone(&self.any()?.sandbox);
        let trust = read(&sandbox, &["configmap", "-n=tf", "csr-signer-ca"]).await?;
        let bundle = trust["data"]["ca-bundle.crt"].as_str().unwrap_or_default();
        self.handshakes.trust(bundle)?;
        let ca = read(&sandbox, &["secret", "-n=tf", "opensdn-ca"]).await?;
        let mut seen = Seen {
            bundle: bundle::certificates(bundle),
            is_leaving: !trust["metadata"]["annotations"]["opensdn.io/leaving-since"].is_null(),
            signs: decoded(&ca["data"]["ca.crt"])?,
            ..Seen::default()
        };
        let mut all = Vec::new();
        for world in &self.worlds {
            let name = format!("{}-secret-certificates", world.service.name);
            let secret = read(&sandbox, &["secret", "-n=tf", &name]).await?;
            all.extend(self.handshakes_of(world, &secret["data"], &mut seen)?);
        }
        let lab = sandbox.lab().ok_or("the sandbox has no real nodes")?;
        for one in self.handshakes.with(lab, all)? {
            seen.take(one)?;
        }
        for world in &self.worlds {
            let pods = world.pods().await;
            self.watch.look(&world.service, &pods);
            let is_ready = |pod: &&Value| {
                entry(pod, "Ready")[0] == "True" && pod["metadata"]["deletionTimestamp"].is_null()
            };
            seen.ready.insert(world.service.word, pods.iter().filter(is_ready).count());
        }
        self.watch.only_one_of_each_was_missing();
        for (service, number) in &seen.in_place {
            let before = self.in_place.get(service).copied().unwrap_or_default();
            assert!(*number <= before + 1, "{service}: {number} after {before} at once");
        }
        self.in_place.clone_from(&seen.in_place);
        self.looks += 1;
        Ok(seen)
    }

    /// Each certificate that is in place, and those of the test, with each member.
    fn handshakes_of(
        &self,
        world: &World,
        data: &Value,
        seen: &mut Seen,
    ) -> Result<Vec<(Member, String)>, Failed> {
        let service = world.service.word;
        let (mut pairs, mut by_second) = (vec![FIRST.to_owned(), SECOND.to_owned()], 0);
        let mut members = Vec::new();
        for node in NODES {
            let host = world.address_of(node)?;
            let certificate = decoded(&data[format!("server-{host}.crt")])?;
            let key = decoded(&data[format!("server-key-{host}.pem")])?;
            let pair = format!("{service}-{host}");
            self.handshakes.note(&pair, &certificate, &key)?;
            by_second += usize::from(leaf::is_issued_by(&certificate, &self.second.0)?);
            pairs.push(pair);
            members.push(Member { service, host, port: port(&world.service) });
        }
        seen.in_place.insert(service, by_second);
        let with = |member: &Member| {
            let member = member.clone();
            pairs.iter().map(move |pair| (member.clone(), pair.clone()))
        };
        Ok(members.iter().flat_map(with).collect())
    }

    /// Looks until it is so.
    async fn until(
        &mut self,
        what: &str,
        is_so: impl Fn(&Self, &Seen) -> bool,
    ) -> Result<Seen, Failed> {
        let started = Instant::now();
        loop {
            let why = match self.look().await {
                Ok(seen) if is_so(self, &seen) => {
                    let (took, all) = (started.elapsed(), self.started.elapsed());
                    eprintln!("{what}: after {} s, {} s in all", took.as_secs(), all.as_secs());
                    return Ok(seen);
                }
                Ok(_) if started.elapsed() < LONGEST => {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                Ok(seen) => format!("{what}: not in {} s: {seen:?}", LONGEST.as_secs()),
                Err(error) => format!("{what}: {error}"),
            };
            return Err(self.with_all_there_is(&why).await);
        }
    }

    async fn with_all_there_is(&self, why: &str) -> Failed {
        let mut all = why.to_owned();
        for world in &self.worlds {
            all.push_str(&format!("\n{}", world.seen().await));
            all.push_str(&format!("the client: {}", world.client.complaints()));
        }
        all.into()
    }

    /// As if so much time had passed.
    async fn let_pass(&self, by: Duration) -> Outcome {
        let worlds: Vec<&World> = self.worlds.iter().collect();
        let_pass(&worlds, &[&self.first.0, &self.second.0], by).await
    }

    async fn are_written(&self) -> Outcome {
        for world in &self.worlds {
            world.writes_go_on().await?;
        }
        Ok(())
    }
}

impl Seen {
    /// Counts what a handshake shows.
    fn take(&mut self, one: Handshake) -> Outcome {
        let Handshake { with: Member { service, host, .. }, pair, answer } = one;
        let accept = match &*pair {
            FIRST => Some(&mut self.accept_first),
            SECOND => Some(&mut self.accept_second),
            _ => None,
        };
        match (answer, accept) {
            (Answer::Away, _) => {}
            (Answer::Trusted(_), Some(accept)) => *accept.entry(service).or_default() += 1,
            // To show its own to itself is as good as to show that to another.
            (Answer::Trusted(ca), None) if pair == format!("{service}-{host}") => {
                *self.shown.entry(service).or_default() += usize::from(ca == SECOND);
            }
            (Answer::Trusted(_), None) => {}
            (Answer::Distrusted(why), Some(_)) if !why.contains("it shows") => {}
            (Answer::Distrusted(why), _) => {
                let why = format!("{service} on {host}, with {pair}: distrust {why}: {self:?}");
                return Err(why.into());
            }
        }
        Ok(())
    }
}

/// All have both, and none shows one of the second before.
async fn it_is_announced(services: &mut Services) -> Outcome {
    let (all, number) = (services.words(|_| true), NODES.len());
    let seen = services.until("all trust the first CA alone", |services, seen| {
        let all = services.words(|_| true);
        are(&seen.accept_first, &all, number) && are(&seen.accept_second, &all, 0)
    });
    assert_eq!(seen.await?.bundle.len(), 1);
    let given = secret(&services.second.0, &services.second.1);
    send(&services.any()?.sandbox, &["replace"], &given).await?.success();
    services.until("the second CA is published", |_, seen| seen.bundle.len() == 2).await?;
    services.give().await?;
    services.let_pass(SETTLED).await?;
    let seen = services.until("all members trust both CAs", |services, seen| {
        let all = services.words(|_| true);
        let trust_both =
            are(&seen.accept_first, &all, number) && are(&seen.accept_second, &all, number);
        trust_both && are(&seen.ready, &all, number)
    });
    let seen = seen.await?;
    assert!(are(&seen.in_place, &all, 0) && are(&seen.shown, &all, 0), "{seen:?}");
    services.are_written().await
}

/// One address of each service at a time.
async fn it_is_used(services: &mut Services) -> Outcome {
    services.let_pass(SETTLED).await?;
    let signs = |services: &Services, seen: &Seen| seen.signs.trim() == services.second.0.trim();
    services.until("the second CA issues", signs).await?;
    for number in 1..=NODES.len() {
        services.let_pass(OLD).await?;
        let what = format!("{number} members of each service are issued by the second CA");
        let is_so = |services: &Services, seen: &Seen| {
            let (all, once) = (services.words(|_| true), services.words(reads_certificates_once));
            let in_place = |word: &&str| seen.in_place.get(word).is_some_and(|now| *now >= number);
            all.iter().all(in_place)
                && are(&seen.shown, &once, number)
                && are(&seen.ready, &all, NODES.len())
        };
        services.until(&what, is_so).await?;
        services.are_written().await?;
    }
    let all_show =
        |services: &Services, seen: &Seen| are(&seen.shown, &services.words(|_| true), NODES.len());
    let seen = services.until("all members show one of the second CA", all_show).await?;
    assert!(are(&seen.accept_first, &services.words(|_| true), NODES.len()), "{seen:?}");
    Ok(())
}

/// No member accepts one of the first any more.
async fn the_one_before_is_forgotten(services: &mut Services) -> Outcome {
    services.let_pass(FORGOTTEN).await?;
    // Of the operator's own it is a day since it has signed, and one more since nobody shows one of it.
    let is_leaving = |_: &Services, seen: &Seen| seen.bundle.len() < 2 || seen.is_leaving;
    services.until("the first CA leaves", is_leaving).await?;
    services.let_pass(FORGOTTEN).await?;
    let is_gone = |_: &Services, seen: &Seen| seen.bundle.len() == 1;
    services.until("the second CA alone is published", is_gone).await?;
    services.give().await?;
    let alone = |services: &Services, seen: &Seen| {
        let all = services.words(|_| true);
        let number = NODES.len();
        let second = are(&seen.accept_second, &all, number) && are(&seen.shown, &all, number);
        are(&seen.accept_first, &all, 0) && second && are(&seen.ready, &all, number)
    };
    services.until("all members trust the second CA alone", alone).await?;
    services.are_written().await
}

async fn with(services: &[Service]) -> Outcome {
    let mut services = Services::start(services).await?;
    services.give().await?;
    for world in &mut services.worlds {
        stories::write(world).await?;
    }
    let written: Vec<usize> =
        services.worlds.iter().map(|world| world.client.acknowledged().len()).collect();
    it_is_announced(&mut services).await?;
    it_is_used(&mut services).await?;
    the_one_before_is_forgotten(&mut services).await?;
    eprintln!("looked {} times", services.looks);
    for (world, written) in services.worlds.iter_mut().zip(written) {
        let wait = world.client.longest_wait(written);
        eprintln!("a client of {} waited for {wait:?}", world.service.name);
        assert!(wait < LONGEST_WAIT, "a client of {} waited for {wait:?}", world.service.name);
        match world.service.word {
            "zookeeper" => {
                zookeeper::is_one_ensemble_with_all_that_was_acknowledged(world, &NODES)?;
            }
            "rabbitmq" => {
                rabbitmq::is_one_cluster_with_all_that_was_confirmed(world, &NODES).await?;
            }
            _ => cassandra::is_one_ring_with_all_that_was_acknowledged(world, &NODES)?,
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_ca_is_announced_used_and_the_first_forgotten_and_no_member_distrusts_another()
-> Outcome {
    with(&[zookeeper::ZOOKEEPER, rabbitmq::RABBITMQ, cassandra::CASSANDRA]).await
}
