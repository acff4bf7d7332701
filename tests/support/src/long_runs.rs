//! Tests that go through all there is of something, for which the gate has time for a part only. `make test-lab` has them go through
//! all. Each part is chosen so that it can fail for every reason for which the whole can.

/// Set where all is gone through.
pub const LONG_RUNS: &str = "OPENSDN_LONG_RUNS";

/// Whether all is to be gone through.
#[must_use]
pub fn are_asked_for() -> bool {
    std::env::var_os(LONG_RUNS).is_some_and(|value| !value.is_empty())
}

/// All pairs where long runs are asked for; else of each the pair with one of the others, in turn.
pub fn pairs<A: Clone, B: Clone, const N: usize>(all: Vec<A>, others: [B; N]) -> Vec<(A, B)> {
    pairs_of(all, others, are_asked_for())
}

/// All where long runs are asked for, else every one with a number that `step` divides.
pub fn every<T>(step: usize, all: Vec<T>) -> Vec<T> {
    let step = if are_asked_for() { 1 } else { step };
    all.into_iter().step_by(step).collect()
}

fn pairs_of<A: Clone, B: Clone, const N: usize>(
    all: Vec<A>,
    others: [B; N],
    is_whole: bool,
) -> Vec<(A, B)> {
    let pairs = all.into_iter().enumerate().flat_map(|(number, one)| {
        let others = others.clone().into_iter().enumerate();
        let others = others.filter(move |(other, _)| is_whole || *other == number % N);
        others.map(move |(_, other)| (one.clone(), other))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_there_is_one_pair_and_each_of_the_others_is_in_one() {
        let some = pairs_of(vec![1, 2, 3], ["a", "b"], false);
        assert_eq!(some, [(1, "a"), (2, "b"), (3, "a")]);
        assert_eq!(pairs_of(vec![1, 2], ["a", "b"], true).len(), 4);
    }
}
