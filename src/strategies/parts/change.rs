//! Who sends rows and gradients anew when they have changed enough, as SANCUS decides it: those of
//! whose rows the others keep copies that are too far from what they are.
//!
//! ```text
//!   epoch t      each worker: c = ‖what it would send − what it sent last‖ / ‖what it sent last‖
//!   its end      all tell each other, of each layer and way
//!   epoch t + 1  those send whose c is at least the threshold, or whose copies would be too old
//! ```
//!
//! A worker must know when an epoch begins whom it will hear, so `c` is of the epoch before.

use std::sync::Arc;

use super::{Bound, EpochExchange, Senders};
use crate::net::{Tally, Way};
use crate::sim::{Broadcasts, Decision, Restoring, Saving, SimError};

/// Who sends in which epoch, by how much rows and gradients change.
pub(crate) struct ByChange {
    bound: Bound,
    threshold: f64,
    /// Of each layer and way, how old what each worker sent last is in this epoch.
    ages: Vec<((u32, Way), Vec<usize>)>,
    /// What all workers tell of this epoch.
    changes: Option<Arc<Tally>>,
}

impl ByChange {
    /// That of so many workers; nothing is sent yet.
    pub(crate) fn new(
        (bound, threshold): (Bound, f64),
        lanes: impl Iterator<Item = (u32, Way)>,
        workers: usize,
    ) -> Self {
        Self {
            bound,
            threshold,
            ages: lanes
                .map(|lane| (lane, vec![usize::MAX; workers]))
                .collect(),
            changes: None,
        }
    }

    /// Who sends in the next epoch.
    fn next(&mut self) -> Broadcasts {
        let changes = self.changes.take().map(|changes| changes.values());
        let mut changes = changes.into_iter().flatten();
        let (bound, threshold) = (self.bound.0, self.threshold);
        let mut each = |age: &mut usize| {
            let change = changes.next().map_or(f64::INFINITY, f64::from);
            // What is no number has changed.
            let changed = change.is_nan() || change >= threshold;
            let sends = changed || *age >= bound;
            *age = if sends { 0 } else { *age + 1 };
            sends
        };
        let of = |(lane, ages): &mut ((u32, Way), Vec<usize>)| {
            let sends = ages.iter_mut().map(&mut each);
            (*lane, sends.collect())
        };
        self.ages.iter_mut().map(of).collect()
    }

    /// Adds to what travels in the next epoch who sends in it; `goes_on` says whether another
    /// follows.
    pub(crate) fn decide(&mut self, sent: &mut EpochExchange, goes_on: bool) {
        let those = self.next();
        let workers = self.ages.first().map_or(0, |(_, ages)| ages.len());
        self.changes = goes_on.then(|| Self::tally(those.len(), workers)).flatten();
        sent.tally.clone_from(&self.changes);
        sent.decided = Some(Decision::Broadcasts(those.clone()));
        sent.senders = Senders::These(Arc::new(those));
    }

    /// Saves how old everything is, and what all told last.
    pub(super) fn save(&self, into: &mut Saving) {
        let changes = self.changes.as_ref().map(|changes| changes.values());
        into.put(&self.ages);
        into.put(&changes);
    }

    /// Takes back what was saved.
    pub(super) fn restore(&mut self, from: &mut Restoring<'_>) -> Result<(), SimError> {
        self.ages = from.saved().take()?;
        let changes: Option<Vec<f32>> = from.saved().take()?;
        self.changes = changes.map(Tally::of);
        Ok(())
    }

    /// Where changes are told, of so many layers and ways, and workers; nowhere if of none.
    pub(crate) fn tally(lanes: usize, workers: usize) -> Option<Arc<Tally>> {
        (lanes > 0).then(|| Arc::new(Tally::new(lanes * workers)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LANES: [(u32, Way); 2] = [(1, Way::Forward), (1, Way::Back)];

    proptest! {
        #[test]
        fn nothing_is_older_than_the_bound_and_nothing_that_changed_is_kept(
            bound in 0_usize..6, threshold in 0.0_f64..1.0,
            told in prop::collection::vec(prop::collection::vec(0.0_f32..1.0, 6), 1..30),
        ) {
            let mut rule = ByChange::new((Bound(bound), threshold), LANES.into_iter(), 3);
            let mut sent_in = [[None; 3]; 2];
            for epoch in 0..=told.len() {
                let before = epoch.checked_sub(1).map(|before| &told[before]);
                let mut exchange = EpochExchange::default();
                rule.decide(&mut exchange, true);
                exchange.tally.expect("it asks").set(0, &told[epoch.min(told.len() - 1)]);
                for (at, (layer, way)) in LANES.into_iter().enumerate() {
                    for worker in 0..3 {
                        let sends = exchange.senders.sends(layer as usize, way, worker);
                        let last: &mut Option<usize> = &mut sent_in[at][worker];
                        let age = last.map(|last| epoch - last);
                        let told = before.map(|told| f64::from(told[3 * at + worker]));
                        let changed = told.is_none_or(|told| told >= threshold);
                        prop_assert_eq!(sends, changed || age.is_none_or(|age| age > bound));
                        if sends {
                            *last = Some(epoch);
                        }
                        prop_assert!(epoch - last.expect("all send in the first epoch") <= bound);
                    }
                }
            }
        }

        #[test]
        fn a_threshold_of_nothing_never_skips(
            told in prop::collection::vec(0.0_f32..1.0, 6), bound in 0_usize..6,
        ) {
            let mut rule = ByChange::new((Bound(bound), 0.0), LANES.into_iter(), 3);
            for _ in 0..4 {
                let mut exchange = EpochExchange::default();
                rule.decide(&mut exchange, true);
                exchange.tally.expect("it asks").set(0, &told);
                for (layer, way) in LANES {
                    let sends = |worker| exchange.senders.sends(layer as usize, way, worker);
                    prop_assert!((0..3).all(sends));
                }
            }
        }
    }
}
