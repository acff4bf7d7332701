//! Drives a target for a bounded number of inputs: the seeds as they are, then mutations of them.
//! An input that took a way through the code that none before it took becomes a seed itself.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    Signature, Target, Violation,
    mutate::{Rng, mutate},
};

/// Longer inputs find nothing new and cost more.
const LONGEST: usize = 5000;
/// Seeds that the run itself found are kept up to here.
const MOST_SEEDS: usize = 400;

/// How long, and by which rng.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Mutated inputs.
    pub inputs: usize,
    /// The same number gives the same inputs.
    pub seed: u64,
}

impl Bounds {
    /// These, unless `OPENSDN_FUZZ_INPUTS` and `OPENSDN_FUZZ_SEED` say otherwise.
    #[must_use]
    pub fn from_environment(inputs: usize) -> Self {
        let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse().ok());
        Self {
            inputs: number("OPENSDN_FUZZ_INPUTS")
                .and_then(|number: u64| usize::try_from(number).ok())
                .unwrap_or(inputs),
            seed: number("OPENSDN_FUZZ_SEED").unwrap_or(1),
        }
    }
}

/// What a run that found nothing wrong has seen.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Every way that an input took.
    pub signatures: HashSet<Signature>,
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The seeds cannot be read.
    #[error("read the seeds in {}", .0.display())]
    Seeds(PathBuf, #[source] std::io::Error),
    /// There is nothing to begin with.
    #[error("find a seed in {}", .0.display())]
    NoSeed(PathBuf),
    /// An input breaks a property.
    #[error("hold a property of {target}; the input is in {}, keep it in fuzz/corpus/{target}: {violation}", .input.display())]
    Violation {
        /// The target.
        target: &'static str,
        /// The file with the input, or where it would have been written to.
        input: PathBuf,
        /// Which property.
        violation: Violation,
    },
}

/// Runs the target; an input that breaks it is written to `scratch`.
///
/// # Errors
/// There are no seeds, or an input breaks a property.
pub fn run<T: Target>(target: &T, bounds: Bounds, scratch: &Path) -> Result<Seen, RunError> {
    let mut seeds = seeds(T::NAME)?;
    let mut seen = Seen { signatures: HashSet::new() };
    for input in &seeds {
        seen.signatures.insert(check(target, input, scratch)?);
    }
    let mut rng = Rng::new(bounds.seed);
    for _ in 0..bounds.inputs {
        let none = Vec::new();
        let seed = rng.pick(&seeds).unwrap_or(&none);
        let other = rng.pick(&seeds).unwrap_or(&none);
        let input = mutate(seed, other, LONGEST, &mut rng);
        if seen.signatures.insert(check(target, &input, scratch)?) && seeds.len() < MOST_SEEDS {
            seeds.push(input);
        }
    }
    Ok(seen)
}

fn check<T: Target>(target: &T, input: &[u8], scratch: &Path) -> Result<Signature, RunError> {
    target.check(input).map_err(|violation| {
        let file = scratch.join(format!("{}-broken-by", T::NAME));
        // The property that is violation is the news, also where its input cannot be kept.
        let _kept = fs::write(&file, input);
        RunError::Violation { target: T::NAME, input: file, violation }
    })
}

/// In the order of their names, so that a run can be repeated.
fn seeds(target: &str) -> Result<Vec<Vec<u8>>, RunError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let read = || -> std::io::Result<Vec<Vec<u8>>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&folder)? {
            files.push(entry?.path());
        }
        files.sort();
        files.iter().map(fs::read).collect()
    };
    let seeds = read().map_err(|error| RunError::Seeds(folder.clone(), error))?;
    if seeds.is_empty() { Err(RunError::NoSeed(folder)) } else { Ok(seeds) }
}
