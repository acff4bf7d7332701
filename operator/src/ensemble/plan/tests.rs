//! The steps on a simulated cluster, which takes its time.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// An ensemble, its StatefulSet, and a scheduler, which do what is asked of them and take their time.
#[derive(Clone)]
struct World {
    wanted: Vec<String>,
    /// What was wanted before, and is not any more: one that has been started there may still come.
    was_wanted: Vec<String>,
    members: Vec<Member>,
    /// By ordinal: the address, once it has one, and whether it serves.
    pods: BTreeMap<i32, Placed>,
    record: Record,
    version: i64,
    random: u64,
    /// Nodes that are lost: what runs there does not serve.
    lost: BTreeSet<String>,
    joins: Joins,
    leaves: Leaves,
}

#[derive(Clone, Default)]
struct Placed {
    address: String,
    serves: bool,
    is_outdated: bool,
    has_lost_data: bool,
    is_stuck: bool,
    /// Its member has left by a command, and the pod runs on.
    has_left: bool,
}

fn addresses(all: &[&str]) -> Vec<String> {
    all.iter().map(|&one| one.to_owned()).collect()
}

impl World {
    fn new(wanted: &[&str], seed: u64) -> Self {
        let wanted = addresses(wanted);
        let record = Record::first(&wanted);
        let member = |(address, id): (&String, &u32)| Member { id: *id, host: address.clone() };
        let pods = wanted.iter().zip(0..).map(|(address, ordinal)| {
            (ordinal, Placed { address: address.clone(), serves: true, ..Placed::default() })
        });
        Self {
            members: record.ids.iter().map(member).collect(),
            pods: pods.collect(),
            record,
            wanted,
            was_wanted: Vec::new(),
            version: 1,
            random: seed,
            lost: BTreeSet::new(),
            joins: Joins::WhenAdded,
            leaves: Leaves::BeforeItsPod,
        }
    }

    /// One whose members come by themselves, and go when their pods have ended.
    fn of_its_own(wanted: &[&str], seed: u64) -> Self {
        Self { joins: Joins::ByItself, leaves: Leaves::AfterItsPod, ..Self::new(wanted, seed) }
    }

    /// One whose members come by themselves while no other is down.
    fn streaming(wanted: &[&str], seed: u64) -> Self {
        Self { joins: Joins::ByStreaming, ..Self::new(wanted, seed) }
    }

    /// And the same where each node has a volume.
    fn and_at_home(self) -> [Self; 2] {
        let homes = self.wanted.iter().map(|address| (address.clone(), address.clone()));
        let record = self.record.clone().at_home(homes.collect());
        [self.clone(), Self { record, ..self }]
    }

    fn chance(&mut self, of: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.random >> 33).unwrap() % of
    }

    /// What the rest of the cluster does meanwhile: some of it, or nothing.
    fn pass_time(&mut self) {
        match self.record.homes.clone() {
            Some(homes) => self.make_pods_at_home(&homes),
            None => self.make_pods(),
        }
        let ordinals: Vec<_> = self.pods.keys().copied().collect();
        for ordinal in ordinals {
            if self.chance(2) == 0 {
                continue;
            }
            let taken: Vec<_> = self.pods.values().map(|pod| pod.address.clone()).collect();
            let free: Vec<_> =
                self.wanted.iter().filter(|one| !taken.contains(one)).cloned().collect();
            let free = (!free.is_empty()).then(|| free[self.chance(free.len())].clone());
            let all_serve = self.members.iter().all(|one| self.serving().contains(&one.host));
            let members: Vec<_> = self.members.iter().map(|one| one.host.clone()).collect();
            let waits_for_all = self.joins == Joins::ByStreaming && !all_serve;
            let pod = self.pods.get_mut(&ordinal).unwrap();
            if pod.address.is_empty() {
                pod.address = free.unwrap_or_default();
            } else {
                pod.serves = !pod.has_lost_data
                    && !pod.is_stuck
                    && !pod.has_left
                    && !self.lost.contains(&pod.address)
                    && (members.contains(&pod.address) || !waits_for_all);
            }
        }
        let is_new = |one: &String| !self.has(one);
        let new: Vec<_> = self.serving().into_iter().filter(is_new).collect();
        if self.joins != Joins::WhenAdded && !new.is_empty() {
            // The scheduler may put pods on two nodes that are wanted again before that of a member that lost its own to them. The
            // service takes in one, and the others come when they are started again.
            assert!(new.len() == 1 || !self.was_wanted.is_empty(), "{new:?} come at once");
            let host = &new[self.chance(new.len())];
            for pod in self.pods.values_mut().filter(|pod| new.contains(&pod.address)) {
                pod.serves = pod.address == *host;
            }
            let may_come = self.wanted.contains(host) || self.was_wanted.contains(host);
            assert!(may_come, "{host} comes where none is wanted");
            let id = self.members.iter().map(|one| one.id).max().unwrap_or_default() + 1;
            self.members.push(Member { id, host: host.clone() });
        }
    }

    fn make_pods(&mut self) {
        while self.pods.len() > usize::try_from(self.record.replicas).unwrap() {
            self.pods.pop_last();
        }
        for ordinal in 0..self.record.replicas {
            self.pods.entry(ordinal).or_default();
        }
    }

    /// One on each node that has a StatefulSet, and runs.
    fn make_pods_at_home(&mut self, homes: &BTreeMap<String, String>) {
        assert_eq!(usize::try_from(self.record.replicas).unwrap(), homes.len());
        self.pods.retain(|_, pod| homes.contains_key(&pod.address));
        for address in homes.keys() {
            let is_there = self.pods.values().any(|pod| pod.address == *address);
            if !is_there && !self.lost.contains(address) && self.chance(2) == 0 {
                let ordinal = self.pods.last_key_value().map_or(0, |(last, _)| last + 1);
                self.pods.insert(ordinal, Placed { address: address.clone(), ..Placed::default() });
            }
        }
    }

    fn has(&self, host: &str) -> bool {
        self.members.iter().any(|one| one.host == host)
    }

    fn serving(&self) -> BTreeSet<String> {
        let serving = self.pods.values().filter(|pod| pod.serves);
        serving.map(|pod| pod.address.clone()).collect()
    }

    /// Of one or two members none can be spared, and a StatefulSet that shrinks takes which it will.
    fn view(&self) -> Option<View> {
        let serving = self.serving();
        let serves = |member: &&Member| serving.contains(&member.host);
        let count = self.members.iter().filter(serves).count();
        let runs = |host: &str| self.pods.values().any(|pod| pod.address == host);
        let has_left = |member: &&Member| {
            self.leaves == Leaves::AfterItsPod
                && !self.wanted.contains(&member.host)
                && !runs(&member.host)
        };
        let left = self.members.iter().filter(has_left).count();
        if count <= (self.members.len() - left) / 2 {
            assert!(self.members.len() < 3, "no quorum: {serving:?} of {:?}", self.members);
            return None;
        }
        let leader = self.members.iter().find(serves)?.host.clone();
        let (version, members) = (self.version, self.members.clone());
        Some(View { version, members, serving, leader, ..View::default() })
    }

    fn step(&mut self) -> Step {
        let Some(view) = self.view() else { return Step::Wait("no quorum".to_owned()) };
        let all: Vec<_> =
            self.wanted.iter().chain(self.pods.values().map(|pod| &pod.address)).cloned().collect();
        let all: Vec<_> = all.into_iter().filter(|address| !address.is_empty()).collect();
        self.record = self.record.clone().as_seen(&view).with(&all);
        let seats: Vec<_> = self
            .pods
            .iter()
            .map(|(ordinal, pod)| Seat {
                pod: ordinal.to_string(),
                address: pod.address.clone(),
                is_outdated: pod.is_outdated,
                has_lost_data: pod.has_lost_data,
                is_going: false,
                is_stuck: pod.is_stuck,
            })
            .collect();
        let (joins, leaves) = (self.joins, self.leaves);
        let left = self.pods.values().filter(|pod| pod.has_left);
        let left = &left.map(|pod| pod.address.clone()).collect();
        let Self { wanted, record, .. } = &*self;
        let (view, pods) = (&view, &seats[..]);
        let step = next(&Situation { wanted, view, pods, record, joins, leaves, left });
        self.act(&step);
        step
    }

    fn act(&mut self, step: &Step) {
        match step {
            Step::Settled | Step::Wait(_) => {}
            Step::Scale(replicas) => {
                assert_eq!(self.record.homes, None, "each node has its own");
                self.record.replicas = *replicas;
            }
            Step::Change(Change::Add(member)) => {
                assert!(self.serving().contains(&member.host), "{member:?} has not caught up");
                assert!(
                    self.members.iter().all(|one| one.id != member.id && one.host != member.host)
                );
                self.members.push(member.clone());
            }
            Step::Change(Change::Remove(member)) => {
                let serving = self.serving();
                let runs = self.pods.values().any(|pod| pod.address == member.host);
                assert!(self.leaves == Leaves::BeforeItsPod || !runs, "{member:?} still runs");
                let stays = self.members.iter().filter(|one| *one != member);
                assert!(stays.clone().all(|one| serving.contains(&one.host)), "{member:?}");
                self.members.retain(|one| one != member);
                for pod in self.pods.values_mut().filter(|pod| pod.address == member.host) {
                    // One that has lost its data joins, as the script has it, unless no files are there for it.
                    pod.has_left = self.joins != Joins::WhenAdded && pod.serves;
                    pod.has_lost_data = false;
                    pod.serves = false;
                }
            }
            Step::Settle(address) => {
                assert!(self.wanted.contains(address), "{address}");
                let mut homes = self.record.homes.take().unwrap();
                assert_eq!(homes.insert(address.clone(), address.clone()), None, "{address}");
                self.record = self.record.clone().at_home(homes);
            }
            Step::Vacate { address, .. } => {
                assert!(!self.wanted.contains(address), "{address}");
                let mut homes = self.record.homes.take().unwrap();
                assert!(homes.remove(address).is_some(), "{address}");
                self.record = self.record.clone().at_home(homes);
            }
            Step::Restart { pod, .. } => {
                let ordinal: i32 = pod.parse().unwrap();
                let pod = self.pods.insert(ordinal, Placed::default()).unwrap();
                if self.record.homes.is_some() || self.wanted.contains(&pod.address) {
                    // The scheduler may choose any that is free, and only one is.
                    self.pods.get_mut(&ordinal).unwrap().address = pod.address;
                }
            }
        }
        self.version += 1;
    }

    /// Until nothing is left to do; the steps that were made.
    fn settle(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..500 {
            self.pass_time();
            match self.step() {
                Step::Settled => {
                    let pods: BTreeSet<_> =
                        self.pods.values().map(|pod| pod.address.clone()).collect();
                    let members: BTreeSet<_> =
                        self.members.iter().map(|one| one.host.clone()).collect();
                    let wanted: BTreeSet<_> = self.wanted.iter().cloned().collect();
                    assert_eq!((&pods, &members), (&wanted, &wanted));
                    return steps;
                }
                Step::Wait(_) => {}
                step => steps.push(step),
            }
        }
        panic!("it does not settle after {steps:?}: {:?} of {:?}", self.serving(), self.members);
    }
}

fn told(steps: &[Step]) -> Vec<String> {
    let told = steps.iter().filter_map(|step| match step {
        Step::Change(Change::Add(member)) => Some(format!("+{}", member.host)),
        Step::Change(Change::Remove(member)) => Some(format!("-{}", member.host)),
        _ => None,
    });
    told.collect()
}

#[test]
fn members_come_and_go_one_at_a_time_with_all_that_stay_serving() {
    for seed in 0..300 {
        for mut world in World::new(&["a", "b", "c"], seed).and_at_home() {
            assert_eq!(world.settle(), []);
            world.wanted = addresses(&["a", "b", "c", "d", "e"]);
            let steps = world.settle();
            assert_eq!(told(&steps).len(), 2, "{steps:?}");
            let has = |step: Step| steps.contains(&step);
            let grows = match world.record.homes {
                None => has(Step::Scale(4)) && has(Step::Scale(5)),
                Some(_) => has(Step::Settle("d".into())) && has(Step::Settle("e".into())),
            };
            assert!(grows, "{steps:?}");
            world.wanted = addresses(&["b", "d", "e"]);
            let steps = world.settle();
            assert_eq!(told(&steps), ["-c", "-a"], "the leader is the last");
            world.wanted = addresses(&["d"]);
            world.settle();
            world.wanted = addresses(&["a", "b", "c"]);
            world.settle();
        }
    }
}

#[test]
fn whatever_is_turned_back_in_the_middle_ends_as_if_it_had_been_wanted_all_the_time() {
    for seed in 0..300 {
        let (three, five) = (["a", "b", "c"], ["a", "b", "c", "d", "e"]);
        let others = ["b", "d", "e"];
        for (first, then) in
            [(&three[..], &five[..]), (&five, &three), (&three, &others), (&five, &others)]
        {
            let all = [
                World::new(first, seed),
                World::of_its_own(first, seed),
                World::streaming(first, seed),
            ];
            for mut world in all.into_iter().flat_map(World::and_at_home) {
                world.wanted = addresses(then);
                for _ in 0..world.chance(24) {
                    world.pass_time();
                    world.step();
                }
                world.was_wanted = std::mem::replace(&mut world.wanted, addresses(first));
                world.settle();
            }
        }
    }
}

#[test]
fn a_member_that_does_not_serve_leaves_before_those_that_do() {
    for seed in 0..300 {
        for mut world in World::new(&["a", "b", "c", "d", "e"], seed).and_at_home() {
            world.lost.insert("e".to_owned());
            world.pods.get_mut(&4).unwrap().serves = false;
            world.wanted = addresses(&["a", "b", "c"]);
            assert_eq!(told(&world.settle()), ["-e", "-d"]);
        }
    }
}

#[test]
fn where_one_that_comes_needs_all_others_one_that_leaves_comes_to_its_end_first() {
    let next_of = |mut world: World, wanted: &[&str]| {
        world.wanted = addresses(wanted);
        let view = View { leaving: ["c".to_owned()].into(), ..world.view().unwrap() };
        let pods: Vec<Seat> = Vec::new();
        let (joins, leaves) = (world.joins, world.leaves);
        let World { wanted, record, .. } = &world;
        let (view, pods, left) = (&view, &pods[..], &BTreeSet::new());
        next(&Situation { wanted, view, pods, record, joins, leaves, left })
    };
    let three = ["a", "b", "c"];
    let gone = next_of(World::streaming(&three, 1), &["a", "b", "d"]);
    assert!(
        matches!(&gone, Step::Change(Change::Remove(member)) if member.host == "c"),
        "{gone:?}"
    );
    assert_eq!(next_of(World::streaming(&three, 1), &["a", "b", "c", "d"]), Step::Settled);
    assert_eq!(next_of(World::new(&three, 1), &["a", "b", "d"]), Step::Scale(4));
}

#[test]
fn where_members_stream_one_that_is_to_leave_is_waited_for_as_long_as_its_pod_may_come_back() {
    for leaving in [BTreeSet::new(), BTreeSet::from(["d".to_owned()])] {
        for mut world in World::streaming(&["a", "b", "c", "d"], 1).and_at_home() {
            world.pods.get_mut(&3).unwrap().serves = false;
            let view = View { leaving: leaving.clone(), ..world.view().unwrap() };
            world.wanted = addresses(&["a", "b", "c"]);
            let seat = |is_stuck| Seat {
                pod: "3".to_owned(),
                address: "d".to_owned(),
                is_outdated: false,
                has_lost_data: false,
                is_going: false,
                is_stuck,
            };
            let step = |pods: &[Seat]| {
                let World { wanted, record, joins, leaves, .. } = &world;
                let (view, left, joins, leaves) = (&view, &BTreeSet::new(), *joins, *leaves);
                next(&Situation { wanted, view, pods, record, joins, leaves, left })
            };
            let Step::Wait(why) = step(&[seat(false)]) else {
                panic!("others would make its copies")
            };
            assert!(why.contains("the member on d, which is to leave"), "{why}");
            let stuck = step(&[seat(true)]);
            assert!(matches!(stuck, Step::Restart { .. } | Step::Vacate { .. }), "{stuck:?}");
            let gone = step(&[]);
            assert!(
                matches!(&gone, Step::Change(Change::Remove(member)) if member.host == "d"),
                "{gone:?}"
            );
        }
    }
}

#[test]
fn a_pod_whose_home_has_another_address_by_now_is_made_again_there() {
    let [_, mut world] = World::streaming(&["a", "b", "c"], 1).and_at_home();
    let homes = [("a", "a"), ("b", "b"), ("new", "c")];
    let homes = homes.map(|(address, node)| (address.to_owned(), node.to_owned()));
    world.record = world.record.clone().at_home(homes.into());
    let pod = world.pods.get_mut(&2).unwrap();
    (pod.is_stuck, pod.serves) = (true, false);
    world.wanted = addresses(&["a", "b", "new"]);
    let step = world.step();
    assert!(matches!(&step, Step::Restart { pod, .. } if pod == "2"), "{step:?}");
}

#[test]
fn one_comes_before_another_goes() {
    for seed in 0..300 {
        for mut world in World::new(&["a", "b", "c"], seed).and_at_home() {
            world.wanted = addresses(&["a", "b", "d"]);
            let steps = world.settle();
            assert_eq!(told(&steps), ["+d", "-c"]);
        }
    }
}

#[test]
fn a_member_on_a_lost_node_is_replaced_when_the_node_is_not_wanted_any_more() {
    let mut world = World::new(&["a", "b", "c"], 7);
    world.lost.insert("c".to_owned());
    world.pods.get_mut(&2).unwrap().serves = false;
    for _ in 0..20 {
        world.pass_time();
        assert_eq!(world.step(), Step::Wait("waits for the member on c to serve".to_owned()));
    }
    world.wanted = addresses(&["a", "b", "d"]);
    assert_eq!(told(&world.settle()), ["+d", "-c"]);
}

#[test]
fn where_none_comes_while_one_is_down_a_member_that_is_gone_for_good_goes_first() {
    for seed in 0..300 {
        for mut world in World::streaming(&["a", "b", "c"], seed).and_at_home() {
            // One that serves stays until the other has come.
            world.wanted = addresses(&["a", "b", "d"]);
            assert_eq!(told(&world.settle()), ["-c"]);
            world.lost.insert("d".to_owned());
            world
                .pods
                .values_mut()
                .filter(|pod| pod.address == "d")
                .for_each(|pod| pod.serves = false);
            world.wanted = addresses(&["a", "b", "e"]);
            for _ in 0..20 {
                world.pass_time();
                let Step::Wait(why) = world.step() else { panic!("its pod may come back") };
                assert!(why.contains("delete the node"), "{why}");
            }
            // The node is deleted, and its pod made again, on another one if there is one by then.
            if world.record.homes.is_some() {
                world.pods.retain(|_, pod| pod.address != "d");
            }
            for pod in world.pods.values_mut().filter(|pod| pod.address == "d") {
                *pod = Placed::default();
            }
            let steps = world.settle();
            assert_eq!(told(&steps), ["-d"], "{steps:?}");
        }
    }
}

#[test]
fn a_pod_that_cannot_start_and_is_to_leave_is_made_again_elsewhere_before_another_comes() {
    for seed in 0..300 {
        for mut world in World::streaming(&["a", "b", "c"], seed).and_at_home() {
            let pod = world.pods.get_mut(&2).unwrap();
            (pod.is_stuck, pod.serves) = (true, false);
            world.wanted = addresses(&["a", "b", "d"]);
            assert_eq!(told(&world.settle()), ["-c"]);
        }
    }
}

#[test]
fn pods_of_another_template_are_started_again_one_by_one_the_leader_last() {
    for seed in 0..300 {
        for mut world in World::new(&["a", "b", "c"], seed).and_at_home() {
            world.settle();
            for pod in world.pods.values_mut() {
                pod.is_outdated = true;
            }
            let restarted: Vec<_> = world
                .settle()
                .iter()
                .map(|step| match step {
                    Step::Restart { pod, .. } => pod.clone(),
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(restarted, ["1", "2", "0"]);
        }
    }
}

#[test]
fn one_that_the_last_template_keeps_from_starting_is_the_only_one_and_is_made_again_when_that_is_undone()
 {
    for seed in 0..100 {
        for mut world in World::new(&["a", "b", "c"], seed).and_at_home() {
            world.settle();
            // The first that was made again does not start.
            world.pods.get_mut(&1).unwrap().is_stuck = true;
            for ordinal in [0, 2] {
                world.pods.get_mut(&ordinal).unwrap().is_outdated = true;
            }
            world.pods.get_mut(&1).unwrap().serves = false;
            for _ in 0..20 {
                world.pass_time();
                assert!(matches!(world.step(), Step::Wait(_)), "the others stay as they are");
            }
            for pod in world.pods.values_mut() {
                pod.is_outdated = pod.is_stuck;
            }
            let steps = world.settle();
            assert!(matches!(&steps[..], [Step::Restart { pod, .. }] if pod == "1"), "{steps:?}");
        }
    }
}

#[test]
fn without_a_quorum_those_that_cannot_start_are_made_again_one_by_one_and_no_others() {
    let seat = |pod: &str, is_stuck, is_outdated| Seat {
        pod: pod.to_owned(),
        address: String::new(),
        is_outdated,
        has_lost_data: false,
        is_going: false,
        is_stuck,
    };
    let none = BTreeSet::new();
    let runs = [seat("0", false, true), seat("1", true, false)];
    assert_eq!(make_stuck_again(&runs, &none), None);
    let mut stuck = [seat("0", true, true), seat("1", true, true)];
    let step = make_stuck_again(&stuck, &none);
    assert!(matches!(step, Some(Step::Restart { pod, .. }) if pod == "0"));
    stuck[0].is_going = true;
    assert_eq!(make_stuck_again(&stuck, &none), None);
}

#[test]
fn who_has_lost_what_was_stored_leaves_and_comes_as_new() {
    for seed in 0..100 {
        for mut world in World::new(&["a", "b", "c"], seed).and_at_home() {
            world.settle();
            let pod = world.pods.get_mut(&1).unwrap();
            (pod.serves, pod.has_lost_data) = (false, true);
            assert_eq!(told(&world.settle()), ["-b", "+b"]);
        }
    }
}

#[test]
fn while_another_is_missing_no_member_is_taken_out_for_lost_data() {
    let mut world = World::new(&["a", "b", "c", "d", "e"], 1);
    let pod = world.pods.get_mut(&1).unwrap();
    (pod.serves, pod.has_lost_data) = (false, true);
    world.pods.get_mut(&2).unwrap().serves = false;
    assert!(matches!(world.step(), Step::Wait(why) if why.contains("member on b")));
}

#[test]
fn pods_that_a_user_took_away_are_given_back_at_once() {
    let mut world = World::new(&["a", "b", "c"], 3);
    world.record.replicas = 2;
    world.pods.pop_last();
    assert_eq!(told(&world.settle()), Vec::<String>::new());
    assert_eq!(world.record.replicas, 3);
}

#[test]
fn members_that_come_by_themselves_and_go_with_their_pods_do_so_one_at_a_time() {
    for seed in 0..300 {
        for mut world in World::of_its_own(&["a", "b", "c"], seed).and_at_home() {
            assert_eq!(world.settle(), []);
            world.wanted = addresses(&["a", "b", "c", "d", "e"]);
            assert_eq!(told(&world.settle()), Vec::<String>::new(), "nobody has to tell");
            world.wanted = addresses(&["b", "d", "e"]);
            let mut told = told(&world.settle());
            told.sort();
            assert_eq!(told, ["-a", "-c"]);
            world.wanted = addresses(&["b", "d", "f"]);
            assert_eq!(self::told(&world.settle()), ["-e"]);
            world.wanted = addresses(&["d"]);
            world.settle();
            world.wanted = addresses(&["a", "b", "d"]);
            world.settle();
        }
    }
}
