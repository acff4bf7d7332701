//! What is under way: a bounded number of calls at once, one for each key, and what waits for its turn,
//! by urgency. Deliberately not here: what is done, and what follows from it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;

/// Work that is under way, by its keys. It ends with this.
pub(super) struct Running<'k, K, T> {
    most: usize,
    keys: HashSet<K>,
    futures: FuturesUnordered<BoxFuture<'k, (K, T)>>,
}

impl<'k, K: Clone + Eq + Hash + Send + 'k, T: 'k> Running<'k, K, T> {
    /// Nothing yet, and never more than `most` at once.
    pub(super) fn new(most: usize) -> Self {
        Self { most, keys: HashSet::new(), futures: FuturesUnordered::new() }
    }

    pub(super) fn has_room(&self) -> bool {
        self.keys.len() < self.most
    }

    pub(super) fn is_idle(&self) -> bool {
        self.keys.is_empty()
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.keys.contains(key)
    }

    /// Starts work, unless there is some for that key: it is then dropped.
    pub(super) fn start(&mut self, key: K, work: impl Future<Output = T> + Send + 'k) {
        if self.keys.insert(key.clone()) {
            self.futures.push(Box::pin(async move { (key, work.await) }));
        }
    }

    /// What has been done next; never, while nothing is under way.
    pub(super) async fn next(&mut self) -> (K, T) {
        match self.futures.next().await {
            Some((key, output)) => {
                self.keys.remove(&key);
                (key, output)
            }
            None => std::future::pending().await,
        }
    }
}

/// How soon something has to be done about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// Its holder is gone, and a claimant may wait for the key.
    HolderDeleted,
    /// A stored object is without the claim that it makes.
    NotWritten,
    /// No claimant is known to need it: there may be hundreds of these.
    LeftBehind,
}

/// Claims that wait for their turn: the most urgent first, and of those who came first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    places: HashMap<String, (Urgency, u64)>,
    order: BTreeMap<(Urgency, u64), String>,
    count: u64,
}

impl Queue {
    /// Puts it in. Who waits already keeps its place, unless it has become more or less urgent.
    pub(super) fn push(&mut self, name: String, urgency: Urgency) {
        if self.places.get(&name).is_some_and(|(before, _)| *before == urgency) {
            return;
        }
        self.remove(&name);
        self.count += 1;
        let place = (urgency, self.count);
        self.places.insert(name.clone(), place);
        self.order.insert(place, name);
    }

    pub(super) fn pop(&mut self) -> Option<String> {
        let (_, name) = self.order.pop_first()?;
        self.places.remove(&name);
        Some(name)
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some(place) = self.places.remove(name) {
            self.order.remove(&place);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::task::yield_now;

    use super::*;

    #[test]
    fn the_most_urgent_comes_first_and_of_those_who_waits_longest() {
        let mut queue = Queue::default();
        for (name, urgency) in [
            ("orphan-1", Urgency::LeftBehind),
            ("becomes-urgent", Urgency::LeftBehind),
            ("orphan-2", Urgency::LeftBehind),
            ("write", Urgency::NotWritten),
            ("deleted", Urgency::HolderDeleted),
            ("gone", Urgency::HolderDeleted),
            ("becomes-urgent", Urgency::HolderDeleted),
            ("orphan-1", Urgency::LeftBehind),
        ] {
            queue.push(name.to_owned(), urgency);
        }
        queue.remove("gone");
        assert!(queue.contains("write") && !queue.contains("gone"));
        let order: Vec<String> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, ["deleted", "becomes-urgent", "write", "orphan-1", "orphan-2"]);
        assert!(!queue.contains("write"));
    }

    #[tokio::test]
    async fn no_more_runs_at_once_than_may_and_nothing_twice() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = || {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                yield_now().await;
                now.fetch_sub(1, Ordering::Relaxed);
            }
        };
        let mut running = Running::new(3);
        let (mut next, mut done) = (0, Vec::new());
        while done.len() < 10 {
            while running.has_room() && next < 10 {
                running.start(next, work());
                assert!(running.contains(&next));
                // It is under way already.
                running.start(next, work());
                next += 1;
            }
            let (key, ()) = running.next().await;
            assert!(!running.contains(&key));
            done.push(key);
        }
        done.sort_unstable();
        assert_eq!(done, (0..10).collect::<Vec<_>>());
        assert_eq!(most.load(Ordering::Relaxed), 3);
    }
}
