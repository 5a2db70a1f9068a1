//! What workers will do, stated in advance: the plan of an epoch is a timeline.
//!
//! ```text
//!   worker 0   compute ── send ──────────── receive ── compute ── all-reduce ─┐
//!   worker 1   compute ────────── send ──── receive ── compute ── all-reduce ─┘
//! ```
//!
//! A strategy's [`Planner`] makes one [`Timeline`] after the other. Three things follow from it,
//! and nothing else says them a second time:
//!
//! 1. every message, which the ledger of a run must equal ([`Timeline::traffic`]);
//! 2. the time of a run without training: [`play`] takes the phases on the simulation's own kernel,
//!    with sizes in place of values;
//! 3. the work that modelled compute charges: a [`Worker`](super::Worker) that trains follows its
//!    [`Track`], and a program that does something else than its plan fails there.

mod decision;
mod equals;
#[cfg(test)]
mod equals_tests;
mod play;
mod script;
#[cfg(test)]
mod tests;
mod track;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::net::{AllReduceKind, Bytes, Lane, Ledger, f32_bytes};

pub use decision::Decision;
pub use equals::play_equals;
pub use play::{Played, play};
pub(super) use script::{Following, Script};
pub use track::{Exchange, Memory, Phase, Track};

/// Makes the plans of a training, epoch by epoch, from epoch 0 on.
pub trait Planner: Send {
    /// The plan of the next epoch. `decided` is what the training decided for it on its way;
    /// without a decision, and before there is any, the plan is the most that can be sent.
    fn next(&mut self, decided: Option<&Decision>) -> Arc<Timeline>;
}

/// What every worker does in one epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Number of the epoch.
    pub epoch: usize,
    /// The phases of each worker, in order. Where worker 0 plays all of them, the others' are
    /// empty.
    pub workers: Arc<[Track]>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            epoch: 0,
            workers: Arc::new([]),
        }
    }
}

impl Timeline {
    /// The timeline in which each of so many workers does what `write` writes down for its rank.
    pub fn of(epoch: usize, workers: usize, mut write: impl FnMut(usize, &mut Track)) -> Self {
        let track = |rank| {
            let mut track = Track::default();
            write(rank, &mut track);
            track
        };
        Self {
            epoch,
            workers: (0..workers).map(track).collect(),
        }
    }

    /// The timeline of these tracks. Where they are those of the one before, they are held once.
    pub fn following(before: &Self, epoch: usize, tracks: Vec<Track>) -> Arc<Self> {
        let workers = if *before.workers == *tracks {
            Arc::clone(&before.workers)
        } else {
            tracks.into()
        };
        Arc::new(Self { epoch, workers })
    }

    /// Adds every message to a ledger, in the epoch under which it is counted.
    pub fn traffic(&self, all_reduce: &AllReduceKind, ledger: &mut Ledger) {
        for (rank, track) in self.workers.iter().enumerate() {
            let mut epoch = self.epoch;
            for phase in track.phases() {
                if let Phase::CountUnder(other) = phase {
                    epoch = *other;
                }
                for (lane, payload, count) in phase.sent(all_reduce, rank, self.workers.len()) {
                    ledger.record_many(epoch, lane, payload, count);
                }
            }
        }
    }

    /// Whether messages of it are counted under another epoch.
    fn counts_elsewhere(&self) -> bool {
        let elsewhere = |phase: &Phase| matches!(phase, Phase::CountUnder(_));
        (self.workers.iter()).any(|track| track.phases().iter().any(elsewhere))
    }
}

impl Phase {
    /// The messages that worker `rank` of `size` sends in this phase, with how many there are of
    /// each.
    fn sent(
        &self,
        all_reduce: &AllReduceKind,
        rank: usize,
        size: usize,
    ) -> Vec<(Lane, Bytes, u64)> {
        let lane = |layer, to, kind| Lane::new(layer, rank, to, kind);
        match self {
            Self::Start(sent) => {
                let lane = |peer: u32| lane(sent.layer, peer as usize, sent.kind);
                let to = sent.to.iter();
                to.map(|&(peer, payload)| (lane(peer), payload, 1))
                    .collect()
            }
            Self::Reduce(collective, kind) => {
                let mut messages: BTreeMap<(usize, usize), u64> = BTreeMap::new();
                for (to, range) in collective
                    .steps(all_reduce, rank, size)
                    .filter_map(|step| step.send)
                {
                    *messages.entry((to, range.len())).or_default() += 1;
                }
                // Collectives belong to no layer, and tables say 0 for that.
                let messages = messages.into_iter();
                messages
                    .map(|((to, len), count)| (lane(0, to, *kind), f32_bytes(len), count))
                    .collect()
            }
            Self::Carry(traffic) => traffic.iter().collect(),
            _ => Vec::new(),
        }
    }
}
