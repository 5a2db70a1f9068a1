//! Blocks of workers of which each does what all others do: the first is played for all of them.
//!
//! ```text
//!   a block is one worker in a star, a machine where workers share machines, a rack
//!   worker r + k·block sends to s + k·block what worker r sends to s, at the same time
//!     so from k blocks before comes what the first sends k blocks on
//!     and each link carries what the like link of the first block carries
//! ```
//!
//! In a network that is the same from every block ([`Topology::period`](crate::net::Topology)) a
//! flow thus gets what it would get beside all others, and the times of the first block are those
//! of all.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::play::Player;
use super::{Course, Exchange, Phase, Planner, Played, Stretch, Timeline, Track};
use crate::net::{AllReduceKind, Bytes, Fabric, Lane, Ledger};
use crate::sim::engine::Cluster;
use crate::sim::kernel::Kernel;
use crate::sim::{ComputeTiming, SimError, Trace};

/// As [`play`](super::play) without decisions, with the first block of workers in place of all.
/// Nothing if blocks do different things, or the network tells them apart.
///
/// Where the workers divide the values of a collective evenly, this is what all of them together
/// take; otherwise its messages are up to a value longer here. The ledger has the messages of all
/// workers as if the first block had sent them. O(workers · messages of one) to see
/// that they are alike, and to play no more than the messages of one block.
///
/// # Errors
/// As [`play`](super::play).
pub fn play_equals(
    cluster: &Cluster,
    timing: &ComputeTiming,
    planner: &mut dyn Planner,
    course: Course,
    mut progress: impl FnMut(usize),
) -> Result<Option<Played>, SimError> {
    let topology = &cluster.topology;
    let period = topology.period();
    let Some(period) = period.filter(|period| timing.repeats(period.workers)) else {
        return Ok(None);
    };
    let blocks = Blocks {
        first: period.workers,
        workers: topology.workers(),
        all_reduce: &cluster.all_reduce,
    };
    let fabric = Fabric::new(Arc::clone(topology), cluster.framing);
    let kernel = Kernel::of_first(fabric, period, blocks.workers, Trace::new(0));
    let mut player = Player::new(cluster, timing, kernel, blocks.first, course).of_first();
    let (mut ledger, mut last) = (Ledger::new(), Arc::<Timeline>::default());
    let (mut sums, mut turned) = (Sums::new(), Turned::default());
    let all = player.run(|epoch| {
        let sole = planner.next_of_equals();
        let timeline = match sole {
            Some(sole) => turned.timeline(sole, &blocks),
            None => planner.next(None),
        };
        let again = epoch > 0 && timeline.is_held_as(&last);
        let mut stretches = timeline.stretches.iter();
        if again && !timeline.counts_elsewhere() {
            ledger.repeat(epoch - 1, epoch);
        } else if again || stretches.all(|one| blocks.are_equal(&one.workers)) {
            blocks.record(&timeline, &mut sums, &mut ledger);
        } else {
            return None;
        }
        progress(epoch);
        last = Arc::clone(&timeline);
        Some(timeline)
    })?;
    if !all {
        return Ok(None);
    }
    let mut played = player.into_played();
    for rank in blocks.first..blocks.workers {
        played.times[rank] = played.times[rank % blocks.first].clone();
    }
    Ok(Some(Played { ledger, ..played }))
}

/// Blocks of workers, of which the first is played.
struct Blocks<'a> {
    /// Workers in each.
    first: usize,
    /// Workers in all.
    workers: usize,
    all_reduce: &'a AllReduceKind,
}

impl Blocks<'_> {
    /// Whether each block does what the first does, turned to its own place: those of whom it is
    /// written down, where the others are known to.
    fn are_equal(&self, tracks: &[Track]) -> bool {
        let Some(first) = tracks.get(..self.first) else {
            return false;
        };
        let of_block = |(rank, track): (usize, &Track)| {
            let alike = |phase: &Phase| match phase {
                Phase::Reduce(collective, _) => collective
                    .steps_of_first(self.all_reduce, (rank, self.first), self.workers)
                    .is_some(),
                Phase::ComputeTogether { .. } | Phase::Carry(_) => false,
                _ => true,
            };
            track.phases().iter().all(alike)
        };
        let turned = |(rank, track): (usize, &Track)| {
            let (first, phases) = (first[rank % self.first].phases(), track.phases());
            let by = rank - rank % self.first;
            let mut pairs = first.iter().zip(phases);
            first.len() == phases.len()
                && pairs.all(|(first, other)| is_turned(first, other, by, self.workers))
        };
        first.iter().enumerate().all(of_block)
            && tracks.iter().enumerate().skip(self.first).all(turned)
    }

    /// Adds the messages of all workers, as if the first block had sent them.
    fn record(&self, timeline: &Timeline, sums: &mut Sums, ledger: &mut Ledger) {
        let (size, all_reduce) = (self.workers, self.all_reduce);
        let blocks = (size / self.first) as u64;
        for Stretch { workers, times } in &timeline.stretches {
            let times = *times as u64;
            for (rank, track) in workers.iter().enumerate().take(self.first) {
                let mut epoch = timeline.epoch;
                for phase in track.phases() {
                    match phase {
                        Phase::CountUnder(ahead) => epoch = timeline.epoch + ahead,
                        // Of all at once, whose messages may differ by a value.
                        Phase::Reduce(collective, kind) if rank == 0 => {
                            let sizes =
                                sums.entry(format!("{collective:?}")).or_insert_with(|| {
                                    let mut sizes: BTreeMap<Bytes, u64> = BTreeMap::new();
                                    let of = |rank| phase.sent(all_reduce, rank, size);
                                    for (_, bytes, count) in (0..size).flat_map(of) {
                                        *sizes.entry(bytes).or_default() += count;
                                    }
                                    sizes.into_iter().collect()
                                });
                            let lane = Lane::new(0, 0, 1 % size, *kind);
                            for &(bytes, count) in &*sizes {
                                ledger.record_many(epoch, lane, bytes, count * times);
                            }
                        }
                        Phase::Reduce(..) => {}
                        _ => {
                            for (lane, bytes, count) in phase.sent(all_reduce, rank, size) {
                                ledger.record_many(epoch, lane, bytes, count * times * blocks);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What the first block does where all workers do what worker 0 does: that, turned to each place.
#[derive(Default)]
struct Turned {
    /// What worker 0 does, and what that comes to, of the timeline before.
    sole: Vec<Arc<[Track]>>,
    all: Vec<Arc<[Track]>>,
}

impl Turned {
    fn timeline(&mut self, sole: Arc<Timeline>, blocks: &Blocks) -> Arc<Timeline> {
        if blocks.first == 1 {
            return sole;
        }
        let (mut held, mut all) = (Vec::new(), Vec::new());
        for stretch in &sole.stretches {
            // What was held once is held once here, too.
            let before = self
                .sole
                .iter()
                .position(|one| Arc::ptr_eq(one, &stretch.workers));
            all.push(before.map_or_else(
                || {
                    let track = &stretch.workers[0];
                    let of = |rank| track.turned(rank, blocks.workers);
                    (0..blocks.first).map(of).collect()
                },
                |at| Arc::clone(&self.all[at]),
            ));
            held.push(Arc::clone(&stretch.workers));
        }
        (self.sole, self.all) = (held, all);
        let stretches = sole.stretches.iter().zip(&self.all);
        let stretches = stretches.map(|(stretch, workers)| Stretch {
            workers: Arc::clone(workers),
            times: stretch.times,
        });
        Arc::new(Timeline {
            epoch: sole.epoch,
            stretches: stretches.collect(),
        })
    }
}

/// Sizes of the messages of all workers in a collective, and how many there are of each.
type Sums = BTreeMap<String, Vec<(Bytes, u64)>>;

/// Whether a worker so many ranks on does in a phase what the first does.
fn is_turned(first: &Phase, other: &Phase, by: usize, size: usize) -> bool {
    let (Phase::Start(first), Phase::Start(other)) = (first, other) else {
        return first == other;
    };
    let Exchange {
        kind,
        layer,
        to,
        from,
    } = other;
    (kind, layer) == (&first.kind, &first.layer)
        && first.receivers_of(by, size).eq(to.iter().copied())
        && first.senders_of(by, size).eq(from.iter().copied())
}
