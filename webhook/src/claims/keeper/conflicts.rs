//! Who lost a key to an older object, and whom that has still to be told.

use std::collections::{BTreeSet, HashMap};

use opensdn_crds::unique_claim::Holder as Held;
use opensdn_policy_host::Claim;

use crate::claims::ledger::{Ledger, Place, Wanter};
use crate::claims::report::Losses;
use crate::metrics::BackgroundMetrics;

/// The conflicts that are known.
pub(super) struct Conflicts {
    metrics: BackgroundMetrics,
    losses: HashMap<Place, Losses>,
    /// By claim: its scope, and the objects that lost it.
    losers: HashMap<String, (String, Vec<Place>)>,
    untold: BTreeSet<Place>,
}

/// However a session ends, the next one, here or elsewhere, counts them all anew.
impl Drop for Conflicts {
    fn drop(&mut self) {
        self.metrics.forget_conflicts();
    }
}

impl Conflicts {
    pub(super) fn new(metrics: BackgroundMetrics) -> Self {
        let (losses, losers) = (HashMap::new(), HashMap::new());
        Self { metrics, losses, losers, untold: BTreeSet::new() }
    }

    /// What this object has been told may not hold any more.
    pub(super) fn doubt(&mut self, place: Place) {
        self.untold.insert(place);
    }

    /// The objects that have to be told, with what they lost; none: that all is well again.
    pub(super) fn untold(&mut self) -> Vec<(Place, Losses)> {
        let untold = std::mem::take(&mut self.untold);
        self.losses.retain(|_, losses| !losses.is_empty());
        let losses = |place: Place| {
            let losses = self.losses.get(&place).cloned().unwrap_or_default();
            (place, losses)
        };
        untold.into_iter().map(losses).collect()
    }

    /// Brings up to date who lost this key, which `holder` has.
    pub(super) fn note(&mut self, ledger: &Ledger, name: &str, holder: Option<&Place>) {
        if let Some((scope, places)) = self.losers.remove(name) {
            self.metrics.conflicts(&scope).dec();
            for place in places {
                if let Some(losses) = self.losses.get_mut(&place) {
                    losses.remove(name);
                }
                self.untold.insert(place);
            }
        }
        let lost = losses_of(ledger, name, holder);
        let Some((_, (claim, _))) = lost.first() else { return };
        let scope = claim.scope.clone();
        self.metrics.conflicts(&scope).inc();
        let mut places = Vec::new();
        for (place, loss) in lost {
            self.losses.entry(place.clone()).or_default().insert(name.to_owned(), loss);
            self.untold.insert(place.clone());
            places.push(place);
        }
        self.losers.insert(name.to_owned(), (scope, places));
    }
}

fn losses_of(ledger: &Ledger, name: &str, holder: Option<&Place>) -> Vec<(Place, (Claim, Held))> {
    let Some(eldest) = ledger.eldest(name, holder) else { return Vec::new() };
    let Some(known) = ledger.known(&eldest.place) else { return Vec::new() };
    let pointer = ledger.wants(&eldest.place, name).map(|claim| claim.pointer.as_str());
    let older = eldest.place.held(known, pointer);
    let loss = |loser: &Wanter| {
        let claim = ledger.wants(&loser.place, name)?.clone();
        Some((loser.place.clone(), (claim, older.clone())))
    };
    ledger.wanters(name).filter(|wanter| *wanter != eldest).filter_map(loss).collect()
}
