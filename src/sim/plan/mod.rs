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
    #[must_use]
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
                for sent in phase.sent(all_reduce, rank, self.workers.len()) {
                    ledger.record_many(epoch, sent.lane, sent.payload, sent.count);
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

/// Equal messages of a phase.
struct Sent {
    lane: Lane,
    payload: Bytes,
    count: u64,
}

impl Phase {
    /// The messages that worker `rank` of `size` sends in this phase.
    #[allow(clippy::cast_possible_truncation)] // ranks are far below 2³²
    fn sent(&self, all_reduce: &AllReduceKind, rank: usize, size: usize) -> Vec<Sent> {
        let lane = |layer, to, kind| Lane {
            layer,
            from: rank as u32,
            to,
            kind,
        };
        let one = |lane, payload| Sent {
            lane,
            payload,
            count: 1,
        };
        match self {
            Self::Start(Exchange {
                kind, layer, to, ..
            }) => {
                let message = |&(peer, payload)| one(lane(*layer, peer, *kind), payload);
                to.iter().map(message).collect()
            }
            Self::Reduce(collective, kind) => {
                let mut messages: BTreeMap<(u32, usize), u64> = BTreeMap::new();
                for (to, range) in collective
                    .steps(all_reduce, rank, size)
                    .filter_map(|step| step.send)
                {
                    *messages.entry((to as u32, range.len())).or_default() += 1;
                }
                let message = |((to, len), count)| Sent {
                    // Collectives belong to no layer, and tables say 0 for that.
                    lane: lane(0, to, *kind),
                    payload: f32_bytes(len),
                    count,
                };
                messages.into_iter().map(message).collect()
            }
            Self::Carry(traffic) => {
                let message = |(lane, payload, count)| Sent {
                    lane,
                    payload,
                    count,
                };
                traffic.iter().map(message).collect()
            }
            _ => Vec::new(),
        }
    }
}
