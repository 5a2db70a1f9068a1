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
mod place;
mod play;
mod repeats;
#[cfg(test)]
mod repeats_tests;
mod script;
#[cfg(test)]
mod tests;
mod track;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::net::{AllReduceKind, Bytes, Lane, Ledger, f32_bytes};

pub use decision::{Broadcasts, Decision};
pub use equals::play_equals;
pub use play::{Course, Played, play};
pub(super) use script::{Following, Script};
pub use track::{Exchange, Memory, Phase, Track};

/// Makes the plans of a training, epoch by epoch, from epoch 0 on.
pub trait Planner: Send {
    /// The plan of the next epoch. `decided` is what the training decided for it on its way;
    /// without a decision, and before there is any, the plan is the most that can be sent.
    fn next(&mut self, decided: Option<&Decision>) -> Arc<Timeline>;

    /// The same for worker 0 alone, where all workers do the same without any decision, each turned
    /// to its own place: worker r + k is to worker r as worker k to worker 0. None where that is
    /// not known beforehand, and then no epoch is over.
    fn next_of_equals(&mut self) -> Option<Arc<Timeline>> {
        None
    }
}

/// What every worker does in one epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Number of the epoch.
    pub epoch: usize,
    /// One after the other.
    pub(crate) stretches: Vec<Stretch>,
}

/// What every worker does so many times in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// The phases of each worker, in order. Where worker 0 plays all of them, the others' are
    /// empty.
    pub workers: Arc<[Track]>,
    /// How often.
    pub times: usize,
}

impl Stretch {
    /// These phases, once.
    pub(crate) fn once(workers: impl Into<Arc<[Track]>>) -> Self {
        let workers = workers.into();
        Self { workers, times: 1 }
    }

    /// Whether both are held once.
    fn is_held_as(&self, other: &Self) -> bool {
        self.times == other.times && Arc::ptr_eq(&self.workers, &other.workers)
    }

    /// Adds every message to a ledger, carried out `times` times in an epoch.
    fn record(&self, epoch: usize, times: u64, all_reduce: &AllReduceKind, ledger: &mut Ledger) {
        for (rank, track) in self.workers.iter().enumerate() {
            let mut under = epoch;
            for phase in track.phases() {
                if let Phase::CountUnder(ahead) = phase {
                    under = epoch + ahead;
                }
                for (lane, payload, count) in phase.sent(all_reduce, rank, self.workers.len()) {
                    ledger.record_many(under, lane, payload, count * times);
                }
            }
        }
    }
}

impl Timeline {
    /// The timeline of tracks that are followed once.
    pub(crate) fn once(epoch: usize, tracks: Vec<Track>) -> Self {
        let stretches = vec![Stretch::once(tracks)];
        Self { epoch, stretches }
    }

    /// The timeline in which each of so many workers does what `write` writes down for its rank.
    pub fn of(epoch: usize, workers: usize, mut write: impl FnMut(usize, &mut Track)) -> Self {
        let track = |rank| {
            let mut track = Track::default();
            write(rank, &mut track);
            track
        };
        Self::once(epoch, (0..workers).map(track).collect())
    }

    /// The timeline of tracks that are followed once. Where they are those of the one before, they
    /// are held once.
    pub(crate) fn following(before: &Self, epoch: usize, tracks: Vec<Track>) -> Arc<Self> {
        Self::after(before, epoch, vec![Stretch::once(tracks)])
    }

    /// The timeline of these stretches. Those of the one before are held once.
    pub fn after(before: &Self, epoch: usize, mut stretches: Vec<Stretch>) -> Arc<Self> {
        for (stretch, before) in stretches.iter_mut().zip(&before.stretches) {
            if stretch == before {
                stretch.clone_from(before);
            }
        }
        Arc::new(Self { epoch, stretches })
    }

    /// Whether it is that of another epoch, held once.
    fn is_held_as(&self, other: &Self) -> bool {
        let mut pairs = self.stretches.iter().zip(&other.stretches);
        self.stretches.len() == other.stretches.len() && pairs.all(|(a, b)| a.is_held_as(b))
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        let first = self.stretches.first();
        first.map_or(0, |stretch| stretch.workers.len())
    }

    /// What a worker holds in it.
    pub(crate) fn memory(&self, rank: usize) -> Memory {
        let mut most = Memory::default();
        for stretch in &self.stretches {
            most.join(stretch.workers[rank].memory());
        }
        most
    }

    /// Adds every message to a ledger, in the epoch under which it is counted.
    pub fn traffic(&self, all_reduce: &AllReduceKind, ledger: &mut Ledger) {
        for stretch in &self.stretches {
            stretch.record(self.epoch, stretch.times as u64, all_reduce, ledger);
        }
    }

    /// Whether messages of it are counted under another epoch.
    fn counts_elsewhere(&self) -> bool {
        let elsewhere = |phase: &Phase| matches!(phase, Phase::CountUnder(_));
        let tracks = self.stretches.iter().flat_map(|stretch| &*stretch.workers);
        tracks.flat_map(Track::phases).any(elsewhere)
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
