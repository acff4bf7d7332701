//! Changes one after the other, as a user makes them, on components and on whole Managers. After each the oracles hold. What they come to
//! is what a fresh deployment of the same comes to, in whatever order they were made; undone one after the other they leave what was
//! there before.
//!
//! `seeds.yaml` has the sequences that once found something, each as short as it still finds it: they come first. Then there are as many
//! random ones as the gate has time for, always the same, so that no change fails for what another one brought; `OPENSDN_LONG_RUNS=1`
//! makes them many, and of other seeds each time. A failure says its seed, the shortest sequence, and how to run just that.

use std::time::{SystemTime, UNIX_EPOCH};

use proptest::collection::vec;
use proptest::sample::select;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use serde::{Deserialize, Serialize};

use super::changes::{Change, changes};
use super::oracles::{Verdict, are_same, of_state, of_step};
use super::world::{Of, World, worlds};

/// A number: only the sequence of that seed is run.
const SEED: &str = "OPENSDN_CAMPAIGN_SEED";
/// A sequence, as a failure prints it: only that is run.
const SEQUENCE: &str = "OPENSDN_CAMPAIGN_SEQUENCE";
/// As `opensdn_testing::long_runs` has it.
const LONG_RUNS: &str = "OPENSDN_LONG_RUNS";
const MOST_CHANGES: usize = 4;
/// More say no more, and each takes its time to be shortened.
const MOST_FOUND: usize = 5;
/// Of the gate, and of a long run.
const COMPONENTS: [u64; 2] = [174, 4_000];
const MANAGERS: [u64; 2] = [8, 150];
const SEEDS: &str = include_str!("seeds.yaml");

/// Changes of what a golden file begins with.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Sequence {
    /// The folder of that file.
    case: String,
    changes: Vec<Change>,
}

/// One that once found something.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    /// What.
    found: String,
    case: String,
    changes: Vec<Change>,
}

fn known() -> Vec<Known> {
    serde_saphyr::from_str(SEEDS).unwrap()
}

/// Runs a sequence.
///
/// # Errors
/// What does not hold.
fn run(world: &World, changes: &[Change]) -> Verdict {
    let mut world = world.clone();
    world.settle()?;
    let first = world.clone();
    of_state(&world, &[])?;
    let mut specs = Vec::new();
    let mut made: Vec<&Change> = Vec::new();
    for change in changes {
        // What the API server does not store, the operator does not see.
        let Ok(spec) = world.after(change) else { continue };
        let before = world.clone();
        specs.push(world.subject()["spec"].clone());
        made.push(change);
        world.write(spec);
        step(&before, &mut world, &made).map_err(|why| format!("after {change:?}: {why}"))?;
    }
    is_as_fresh(&world, &made)?;
    is_as_in_another_order(&first, &world, &made)?;
    while let Some(spec) = specs.pop() {
        let before = world.clone();
        let undone = made.pop();
        world.write(spec);
        // One that is refused while another is undone is so for one of those that are left.
        step(&before, &mut world, &made)
            .map_err(|why| format!("without {undone:?} again: {why}"))?;
    }
    let refused = world.components.values().find_map(|one| one.refused.clone());
    let was_refused = first.components.values().any(|one| one.refused.is_some());
    if let Some(refused) = refused.filter(|_| !was_refused) {
        return Err(format!("with all undone: {refused}"));
    }
    // A service that was given another name runs on under that, until its loss is confirmed.
    world.components.retain(|key, _| first.components.contains_key(key));
    are_same("with all undone", &first.snapshot(), &world.snapshot())
}

fn step(before: &World, world: &mut World, made: &[&Change]) -> Verdict {
    // The last of its passes has written nothing.
    world.settle()?;
    of_state(world, made)?;
    of_step(before, world)
}

/// What was there before does not show in what is there now.
fn is_as_fresh(world: &World, made: &[&Change]) -> Verdict {
    if changes_nodes(made) {
        return Ok(());
    }
    let mut fresh = world.afresh();
    fresh.settle()?;
    // A service that is gone from its Manager runs on, and what others say to one that has not started waits.
    let is_refused = |world: &World| world.components.values().any(|one| one.refused.is_some());
    let are_others = fresh.components.keys().ne(world.components.keys());
    if is_refused(world) || is_refused(&fresh) || are_others || !fresh.has_started() {
        return Ok(());
    }
    are_same("beside a fresh deployment of the same", &world.snapshot(), &fresh.snapshot())
}

/// Members come and go one after the other, which none does here; and what has no node any more stays as it was.
fn changes_nodes(made: &[&Change]) -> bool {
    made.iter().any(|change| change.pointer.contains("nodeSelector"))
}

fn is_as_in_another_order(first: &World, world: &World, made: &[&Change]) -> Verdict {
    let clash = |at: usize, one: &Change| made[..at].iter().any(|other| other.overlaps(one));
    if changes_nodes(made) || made.iter().enumerate().any(|(at, one)| clash(at, one)) {
        return Ok(());
    }
    let mut other = first.clone();
    for change in made.iter().rev() {
        let Ok(spec) = other.after(change) else { return Ok(()) };
        other.write(spec);
        other.pass();
    }
    other.settle()?;
    let is_refused = |world: &World| world.components.values().any(|one| one.refused.is_some());
    if is_refused(world) || is_refused(&other) {
        return Ok(());
    }
    are_same("in another order", &world.snapshot(), &other.snapshot())
}

/// The sequence of a seed, and why it fails, shortened.
fn failing(all: &[(String, World)], seed: u64) -> Option<(Sequence, String)> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { failure_persistence: None, max_shrink_iters: 150, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let (case, world) = &all[usize::try_from(seed).unwrap() % all.len()];
    let strategy = vec(select(changes(world.subject())), 1..=MOST_CHANGES);
    let tree = strategy.new_tree(&mut runner).unwrap();
    let sequence = |changes| Sequence { case: case.clone(), changes };
    match runner.run_one(tree, |changes| run(world, &changes).map_err(TestCaseError::fail)) {
        Ok(_) => None,
        Err(TestError::Fail(why, changes)) => Some((sequence(changes), why.message().to_owned())),
        Err(TestError::Abort(why)) => Some((sequence(Vec::new()), why.message().to_owned())),
    }
}

/// Runs the sequences of one kind: those that found something, then random ones.
fn campaign(test: &str, of: Of, [in_gate, in_long_run]: [u64; 2]) {
    let all = worlds(of);
    let world_of = |case: &str| all.iter().find(|(name, _)| name == case).map(|(_, world)| world);
    let command = format!("cargo test -p opensdn-operator --test descriptions {test}");
    if let Ok(sequence) = std::env::var(SEQUENCE) {
        let sequence: Sequence = serde_json::from_str(&sequence).unwrap();
        if let Some(world) = world_of(&sequence.case) {
            run(world, &sequence.changes).unwrap();
        }
        return;
    }
    let only: Option<u64> = std::env::var(SEED).ok().map(|seed| seed.parse().unwrap());
    if only.is_none() {
        for Known { found, case, changes } in known() {
            let Some(world) = world_of(&case) else { continue };
            if let Err(why) = run(world, &changes) {
                let text = serde_json::to_string(&Sequence { case, changes }).unwrap();
                panic!("{found}: {why}\nRun it alone: {SEQUENCE}='{text}' {command}");
            }
        }
    }
    let is_long = std::env::var_os(LONG_RUNS).is_some_and(|value| !value.is_empty());
    let begin = if is_long {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() << 16
    } else {
        0
    };
    let number = if is_long { in_long_run } else { in_gate };
    let mut found = Vec::new();
    for seed in only.map_or(begin..begin + number, |only| only..only + 1) {
        let Some((sequence, why)) = failing(&all, seed) else { continue };
        found.push(format!(
            "{why}\nShortest sequence, for operator/tests/campaign/seeds.yaml with what it found: {}\nRun it again: {SEED}={seed} {command}",
            serde_json::to_string(&sequence).unwrap()
        ));
        if found.len() == MOST_FOUND {
            break;
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

#[test]
fn changes_of_a_component_one_after_the_other() {
    let test = "campaign::sequences::changes_of_a_component_one_after_the_other";
    campaign(test, Of::Components, COMPONENTS);
}

#[test]
fn changes_of_a_manager_one_after_the_other() {
    let test = "campaign::sequences::changes_of_a_manager_one_after_the_other";
    campaign(test, Of::Managers, MANAGERS);
}

/// Else a case could be renamed, and its sequences would be passed over.
#[test]
fn every_sequence_that_found_something_is_of_a_case() {
    let cases: Vec<String> =
        [Of::Components, Of::Managers].into_iter().flat_map(worlds).map(|(name, _)| name).collect();
    for Known { found, case, changes } in known() {
        assert!(found.len() > 20 && !changes.is_empty(), "{found}");
        assert!(cases.contains(&case), "there is no case {case}");
    }
}
