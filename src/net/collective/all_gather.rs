//! All-gather: everybody gets everybody's values.

use std::ops::Range;

use super::AllReduceKind;
use super::step::{Combine, Step};
use super::tree::broadcast_steps;

/// The steps of worker `rank` in an all-gather of `lens[r]` elements of each worker `r`, by the
/// second half of an all-reduce of this kind. Everybody's values are `lens.iter().sum()` elements
/// with its own in their place, in the order of ranks.
///
/// * Halving and doubling, where workers are a power of two: by doubling, in `log₂P` steps, of
///   which the one of distance `d` swaps the `d` pieces that each side has by then. `log₂P·α +
///   (P−1)/P·Sβ` seconds for `S` bytes in all.
/// * A tree, or a parameter server: all pieces to worker 0, from there to everybody along a
///   binomial tree, or at once.
/// * All others around a ring: in step s worker r sends the piece of r − s to the right and gets
///   that of r − s − 1 from the left. `(P−1)α + (P−1)/P·Sβ` seconds for equal pieces.
///
/// Around a ring and by doubling a worker sends every piece that it does not get last once: with
/// equal pieces `(P−1)/P·S` bytes.
pub(crate) fn all_gather_steps(kind: &AllReduceKind, rank: usize, lens: &[usize]) -> Vec<Step> {
    let size = lens.len();
    match kind.chosen_to_gather(lens) {
        AllReduceKind::HalvingDoubling if size.is_power_of_two() => doubling(rank, lens),
        AllReduceKind::Tree => over_one(rank, lens, true),
        AllReduceKind::ParameterServer => over_one(rank, lens, false),
        _ => around_a_ring(rank, lens),
    }
}

/// Where the pieces of these workers lie.
fn pieces(workers: Range<usize>, lens: &[usize]) -> Range<usize> {
    let start: usize = lens[..workers.start].iter().sum();
    start..start + lens[workers].iter().sum::<usize>()
}

fn around_a_ring(rank: usize, lens: &[usize]) -> Vec<Step> {
    let size = lens.len();
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    let piece = |worker: usize| pieces(worker % size..worker % size + 1, lens);
    let step = |s: usize| {
        let received = piece(rank + size - s - 1);
        Step::both(
            Some((right, piece(rank + size - s))),
            Some((left, received, Combine::Replace)),
        )
    };
    (0..size - 1).filter_map(step).collect()
}

fn doubling(rank: usize, lens: &[usize]) -> Vec<Step> {
    let held = |rank: usize, distance: usize| {
        let first = rank & !(distance - 1);
        pieces(first..first + distance, lens)
    };
    let step = |bit: u32| {
        let distance = 1 << bit;
        let partner = rank ^ distance;
        Step::swap(
            Some((partner, held(rank, distance))),
            Some((partner, held(partner, distance), Combine::Replace)),
        )
    };
    (0..lens.len().ilog2()).filter_map(step).collect()
}

/// All to worker 0 and from there back.
fn over_one(rank: usize, lens: &[usize], tree: bool) -> Vec<Step> {
    let (size, all) = (lens.len(), lens.iter().sum());
    let piece = |worker: usize| pieces(worker..worker + 1, lens);
    let there: Vec<Option<Step>> = if rank == 0 {
        let received = |from| Step::receive(from, piece(from), Combine::Replace);
        (1..size).map(received).collect()
    } else {
        vec![Step::send(0, piece(rank))]
    };
    let back = if tree {
        broadcast_steps(rank, size, 0, all)
    } else if rank == 0 {
        (1..size).filter_map(|to| Step::send(to, 0..all)).collect()
    } else {
        let back = Step::receive(0, 0..all, Combine::Replace);
        back.into_iter().collect()
    };
    there.into_iter().flatten().chain(back).collect()
}
