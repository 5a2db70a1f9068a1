//! All-reduce around a ring.

use super::step::{Combine, Step, chunks};

/// The steps of worker `rank` of `size` in a ring all-reduce of `len` elements (Patarasuk and Yuan,
/// *Bandwidth optimal all-reduce algorithms for clusters of workstations*, JPDC 2009).
///
/// ```text
///   0 ─▶ 1 ─▶ 2 ─▶ … ─▶ P−1 ─▶ 0      everybody sends to the right and receives from the left
/// ```
///
/// * P − 1 steps of reduce-scatter: in step s worker r sends chunk r − s and reduces chunk r − s −
///   1, after which it holds the sum of chunk r + 1 (all modulo P);
/// * P − 1 steps of all-gather: in step s worker r sends chunk r + 1 − s and replaces chunk r − s.
///
/// Each chunk is summed in one order and then copied, so all workers end with the same bits. With
/// equal links, S bytes that P divides, latency α and β seconds a byte: 2(P−1)α + 2(P−1)/P·Sβ
/// seconds. Worker r sends every chunk twice, but chunks r + 1 and r + 2 once: 2(P−1)/P·S bytes
/// when P divides the elements.
///
/// One worker has nothing to do.
pub(crate) fn ring_all_reduce(
    rank: usize,
    size: usize,
    len: usize,
) -> impl Iterator<Item = Step> + Send + use<> {
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    let step = move |sent: usize, received: usize, combine: Combine| {
        let chunk = |index: usize| chunks(index % size, index % size + 1, size, len);
        Step::both(
            Some((right, chunk(sent))),
            Some((left, chunk(received), combine)),
        )
    };
    let rounds = || 0..size - 1;
    let scatter =
        rounds().map(move |s| step(rank + size - s, rank + size - s - 1, Combine::Reduce));
    let gather =
        rounds().map(move |s| step(rank + 1 + size - s, rank + size - s, Combine::Replace));
    scatter.chain(gather).flatten()
}
