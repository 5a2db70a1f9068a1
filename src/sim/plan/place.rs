//! Where a worker is in a plan that is played.

use std::sync::Arc;

use super::Timeline;
use crate::net::{Seconds, Snapshot};
use crate::sim::kernel::Expected;

/// One worker's place in its plan.
#[derive(Default)]
pub(super) struct Place {
    pub timeline: Arc<Timeline>,
    /// The stretch, and how often it was followed to its end.
    pub stretch: usize,
    pub followed: usize,
    pub next: usize,
    /// The epoch it goes to next, of those that are played.
    pub epoch: usize,
    /// Since when it does what its plan calls set-up, if it does.
    sets_up_since: Option<Seconds>,
    /// Whom it expects messages from, by exchange: the oldest of a kind and layer is waited for
    /// first.
    pub expects: Vec<Expected>,
    /// Collectives that it started, and the next one it waits for.
    pub started: u64,
    pub collected: u64,
}

impl Place {
    /// Adds where the worker is, as seen from another.
    pub(super) fn snapshot(&self, from: &Self, into: &mut Snapshot) {
        for count in [
            self.epoch.wrapping_sub(from.epoch),
            self.stretch,
            self.followed.wrapping_sub(from.followed),
            self.next,
            self.started.wrapping_sub(from.started) as usize,
            self.collected.wrapping_sub(from.started) as usize,
            self.expects.len(),
        ] {
            into.count(count);
        }
        for expected in &self.expects {
            into.counts([expected.kind as usize, expected.layer as usize]);
            into.count(expected.from.len());
            for &peer in &expected.from {
                into.count(peer);
            }
        }
    }

    /// How long worker `rank` has done set-up, if that ends here, where its clock shows this.
    pub(super) fn set_up_until(&mut self, rank: usize, clock: Seconds) -> Option<Seconds> {
        let stretch = self.timeline.stretches.get(self.stretch);
        if stretch.is_some_and(|stretch| stretch.workers[rank].sets_up(self.next)) {
            self.sets_up_since.get_or_insert(clock);
            return None;
        }
        self.sets_up_since.take().map(|since| clock - since)
    }
}
