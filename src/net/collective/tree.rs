//! Collectives along binomial trees, and to and from one worker.

use super::step::{Combine, Step};

/// The bits of `0..size`, smallest first: the distances of a binomial tree's ⌈log₂P⌉ levels.
fn distances(size: usize) -> impl DoubleEndedIterator<Item = usize> {
    (0..usize::BITS - size.saturating_sub(1).leading_zeros()).map(|bit| 1 << bit)
}

/// The steps of worker `rank` of `size` in a broadcast of `len` elements from `root` along a
/// binomial tree (Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005).
///
/// ```text
///   8 workers, root 0:   0 ─▶ 4    then 0 ─▶ 2, 4 ─▶ 6    then 0 ─▶ 1, 2 ─▶ 3, 4 ─▶ 5, 6 ─▶ 7
/// ```
///
/// A worker sends to its children one after another, the one with most descendants first, each
/// when the last has been delivered. With equal links: ⌈log₂P⌉(α + Sβ) seconds. A worker sends S
/// bytes for each child; all together P − 1 messages.
pub(crate) fn broadcast_steps(rank: usize, size: usize, root: usize, len: usize) -> Vec<Step> {
    // Numbers relative to the root.
    let own = (rank + size - root) % size;
    let absolute = |relative: usize| (relative + root) % size;
    let mut steps = Vec::new();
    if own > 0 {
        let parent = own & (own - 1);
        steps.push(Step::receive(absolute(parent), 0..len, Combine::Replace));
    }
    for distance in distances(size).rev() {
        if own.is_multiple_of(2 * distance) && own + distance < size {
            steps.push(Step::deliver(absolute(own + distance), 0..len));
        }
    }
    steps.into_iter().flatten().collect()
}

/// The steps of worker `rank` of `size` in an all-reduce of `len` elements: a reduction to worker
/// 0 along a binomial tree, and a broadcast back.
///
/// At distance d = 1, 2, 4, … worker r with r mod 2d = d sends what it has summed to r − d. All
/// elements are summed in the same order and by worker 0 last: all end with the same bits.
///
/// With equal links and P a power of two: 2 log₂P·(α + Sβ) seconds. Otherwise a reduction of
/// ⌈log₂P⌉ levels takes no longer than that, for workers without a partner in one level send early
/// in the next. A worker sends S to its parent and S to each of its children.
pub(crate) fn tree_all_reduce(rank: usize, size: usize, len: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for distance in distances(size) {
        if rank & distance > 0 {
            steps.push(Step::send(rank - distance, 0..len));
            break;
        }
        if rank + distance < size {
            steps.push(Step::receive(rank + distance, 0..len, Combine::Reduce));
        }
    }
    let back = broadcast_steps(rank, size, 0, len);
    steps.into_iter().flatten().chain(back).collect()
}

/// The steps of worker `rank` of `size` in an all-reduce of `len` elements over worker 0: everybody
/// sends it all, it sums in the order of ranks and sends everybody the result (as the parameter
/// server of Li et al., OSDI 2014, with one server that is a worker too).
///
/// Its link is shared: with equal links 2α + 2(P−1)Sβ seconds. A worker sends S bytes, worker 0
/// (P−1)S.
pub(crate) fn parameter_server_all_reduce(rank: usize, size: usize, len: usize) -> Vec<Step> {
    if rank > 0 {
        let back = Step::receive(0, 0..len, Combine::Replace);
        return Step::send(0, 0..len).into_iter().chain(back).collect();
    }
    let others = || 1..size;
    others()
        .map(|from| Step::receive(from, 0..len, Combine::Reduce))
        .chain(others().map(|to| Step::send(to, 0..len)))
        .flatten()
        .collect()
}

/// The steps of worker `rank` in a gather of `lens[r]` elements of each worker r to `root`, where
/// they end in the order of ranks. Everybody sends at once; the root's link is shared: α plus the
/// time of all bytes but the root's own.
///
/// The root's values are `lens.iter().sum()` elements with its own in their place; those of
/// the others their own alone.
pub(crate) fn gather_steps(rank: usize, root: usize, lens: &[usize]) -> Vec<Step> {
    if rank != root {
        return Step::send(root, 0..lens[rank]).into_iter().collect();
    }
    let mut start = 0;
    let places = lens.iter().enumerate().map(|(from, len)| {
        start += len;
        (from, start - len..start)
    });
    places
        .filter(|(from, _)| *from != root)
        .filter_map(|(from, place)| Step::receive(from, place, Combine::Replace))
        .collect()
}
