//! All-reduce by recursive halving and doubling.

use super::step::{Combine, Step, chunks};

/// The steps of worker `rank` of `size` in an all-reduce of `len` elements by recursive halving
/// (reduce-scatter) and recursive doubling (all-gather): Rabenseifner's algorithm (Thakur,
/// Rabenseifner and Gropp, *Optimization of collective communication operations in MPICH*, IJHPCA
/// 19(1), 2005).
///
/// ```text
///   halving, 4 workers:   0 ◀─ half ─▶ 2    then   0 ◀─ quarter ─▶ 1     doubling: the same back
///                         1 ◀─ half ─▶ 3           2 ◀─ quarter ─▶ 3
/// ```
///
/// Let P' be the largest power of two up to P. The P − P' workers beyond it first send all they
/// have to worker r − P' and receive the result from it at the end. Among the P', in the halving
/// step of distance d = P'/2, …, 2, 1 workers r and r ⊕ d exchange halves of what both still
/// hold and reduce what comes; worker r ends with the sum of chunk r. Doubling takes the same way
/// back. Each element is summed by one worker in each step and then copied: all end with the same
/// bits.
///
/// An exchange of halves lasts until both have arrived, so that nobody is a step ahead of its
/// partner and two of its messages share its link.
///
/// With equal links and P = P' that divides the elements: 2 log₂P·α + 2(P−1)/P·Sβ seconds, and
/// 2(P−1)/P·S bytes sent by each worker. Otherwise folding adds 2(α + Sβ), and up to Sβ more, for
/// workers that have nobody to fold in start halving at once and share links with what is folded.
pub(crate) fn halving_doubling_all_reduce(rank: usize, size: usize, len: usize) -> Vec<Step> {
    let core = 1 << size.ilog2();
    if rank >= core {
        let partner = rank - core;
        return [
            Step::send(partner, 0..len),
            Step::receive(partner, 0..len, Combine::Replace),
        ]
        .into_iter()
        .flatten()
        .collect();
    }
    let folded = Some(rank + core).filter(|&extra| extra < size);
    let mut steps: Vec<Option<Step>> = Vec::new();
    steps.extend(folded.map(|extra| Step::receive(extra, 0..len, Combine::Reduce)));
    // At distance d a worker holds the 2d chunks that start at its rank without the lowest bits.
    let held = |rank: usize, distance: usize| {
        let first = rank & !(distance - 1);
        chunks(first, first + distance, core, len)
    };
    let distances: Vec<usize> = (0..core.ilog2()).rev().map(|bit| 1 << bit).collect();
    for &distance in &distances {
        let partner = rank ^ distance;
        steps.push(Step::swap(
            Some((partner, held(partner, distance))),
            Some((partner, held(rank, distance), Combine::Reduce)),
        ));
    }
    for &distance in distances.iter().rev() {
        let partner = rank ^ distance;
        steps.push(Step::swap(
            Some((partner, held(rank, distance))),
            Some((partner, held(partner, distance), Combine::Replace)),
        ));
    }
    steps.extend(folded.map(|extra| Step::send(extra, 0..len)));
    steps.into_iter().flatten().collect()
}
