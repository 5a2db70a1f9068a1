//! Workers of which each does what all others do: one is played for all of them.
//!
//! ```text
//!   worker r sends to r + k what worker 0 sends to k, at the same time
//!     so from −k comes what worker 0 sends to k
//!     and each link carries what the links of worker 0 carry
//! ```
//!
//! In a star of equal links ([`Topology::is_uniform`](crate::net::Topology::is_uniform)) a flow
//! thus gets on the way out of worker 0 what it would get beside all others, and the time of worker
//! 0 is that of all.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::play::Player;
use super::{Course, Exchange, Phase, Planner, Played, Stretch, Timeline, Track};
use crate::net::{AllReduceKind, Bytes, ExchangeKind, Fabric, Lane, Ledger};
use crate::sim::engine::Cluster;
use crate::sim::kernel::Kernel;
use crate::sim::{ComputeTiming, SimError, Trace};

/// As [`play`](super::play) without decisions, with worker 0 in place of all. Nothing if workers do
/// different things, or the network tells them apart.
///
/// Where the workers divide the values of a collective evenly, this is what all of them together
/// take; otherwise its messages are up to a value longer here. The ledger has the messages of all
/// workers as if worker 0 had sent them. O(workers · messages of one) to see
/// that they are alike, and to play no more than one worker's messages.
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
    let workers = cluster.topology.workers();
    let alike = cluster.topology.is_uniform() && timing.is_uniform();
    if !alike || cluster.exchange == ExchangeKind::Hierarchical {
        return Ok(None);
    }
    let fabric = Fabric::new(Arc::clone(&cluster.topology), cluster.framing).of_equals();
    let kernel = Kernel::of_equals(fabric, workers, Trace::new(0));
    let mut player = Player::new(cluster, timing, kernel, 1, course).of_equals();
    let (mut ledger, mut last) = (Ledger::new(), Arc::<Timeline>::default());
    let mut sums = BTreeMap::new();
    let all = player.run(|epoch| {
        let sole = planner.next_of_equals();
        let timeline = sole.unwrap_or_else(|| planner.next(None));
        let again = epoch > 0 && timeline.is_held_as(&last);
        let mut stretches = timeline.stretches.iter();
        if again && !timeline.counts_elsewhere() {
            ledger.repeat(epoch - 1, epoch);
        } else if again
            || stretches.all(|one| are_equal(&one.workers, workers, &cluster.all_reduce))
        {
            record(
                &timeline,
                (&cluster.all_reduce, workers),
                &mut sums,
                &mut ledger,
            );
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
    let one = played.times[0].clone();
    played.times.fill(one);
    Ok(Some(Played { ledger, ..played }))
}

/// Whether each of `size` workers does what worker 0 does, turned to its own place: those of whom
/// it is written down, where the others are known to.
fn are_equal(tracks: &[Track], size: usize, all_reduce: &AllReduceKind) -> bool {
    let Some(first) = tracks.first().map(Track::phases) else {
        return false;
    };
    let alike = |phase: &Phase| match phase {
        Phase::Reduce(collective, _) => collective.steps_of_equals(all_reduce, size).is_some(),
        Phase::ComputeTogether { .. } | Phase::Carry(_) => false,
        _ => true,
    };
    let turned = |(rank, track): (usize, &Track)| {
        let phases = track.phases();
        let mut pairs = first.iter().zip(phases);
        first.len() == phases.len()
            && pairs.all(|(first, other)| is_turned(first, other, rank, size))
    };
    first.iter().all(alike) && tracks.iter().enumerate().all(turned)
}

/// Whether worker `by` does in a phase what worker 0 does.
fn is_turned(first: &Phase, other: &Phase, by: usize, size: usize) -> bool {
    let (Phase::Start(first), Phase::Start(other)) = (first, other) else {
        return first == other;
    };
    let Exchange {
        kind,
        layer,
        to,
        from,
    } = first;
    // Ranks ascend; from this place on they begin again at 0.
    let place = |rank: u32| (rank as usize + by) % size;
    let sent = to.partition_point(|&(peer, _)| (peer as usize) < size - by);
    let sent = to[sent..].iter().chain(&to[..sent]);
    let sent = sent.map(|&(peer, bytes)| (place(peer), bytes));
    let came = from.partition_point(|&peer| (peer as usize) < size - by);
    let came = from[came..].iter().chain(&from[..came]);
    (kind, layer) == (&other.kind, &other.layer)
        && sent.eq((other.to.iter()).map(|&(peer, bytes)| (peer as usize, bytes)))
        && (came.map(|&peer| place(peer))).eq(other.from.iter().map(|&peer| peer as usize))
}

/// Sizes of the messages of all workers in a collective, and how many there are of each.
type Sums = BTreeMap<String, Vec<(Bytes, u64)>>;

/// Adds the messages of all workers, as if worker 0 had sent them.
fn record(
    timeline: &Timeline,
    (all_reduce, size): (&AllReduceKind, usize),
    sums: &mut Sums,
    ledger: &mut Ledger,
) {
    for Stretch { workers, times } in &timeline.stretches {
        let (times, mut epoch) = (*times as u64, timeline.epoch);
        let phases = workers.first().map_or(&[][..], Track::phases);
        for phase in phases {
            match phase {
                Phase::CountUnder(ahead) => epoch = timeline.epoch + ahead,
                Phase::Reduce(collective, kind) => {
                    let sizes = sums.entry(format!("{collective:?}")).or_insert_with(|| {
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
                _ => {
                    for (lane, bytes, count) in phase.sent(all_reduce, 0, size) {
                        ledger.record_many(epoch, lane, bytes, count * times * size as u64);
                    }
                }
            }
        }
    }
}
