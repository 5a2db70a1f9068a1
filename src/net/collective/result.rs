//! What becomes of the values of an all-reduce, without its messages.

use super::AllReduceKind;
use super::step::chunks;

/// The result of an all-reduce of everybody's values, `[workers, elements]`: combined once, in the
/// order in which its steps combine them, so to the last bit what every worker ends with.
pub(crate) fn all_reduce_result<T: Copy>(
    kind: &AllReduceKind,
    values: Vec<Vec<T>>,
    combine: impl Fn(T, T) -> T,
) -> Vec<T> {
    let len = values.first().map_or(0, Vec::len);
    if len == 0 {
        // Nothing is sent for nothing, so that the first to ask may be alone here.
        return Vec::new();
    }
    match kind.chosen(len) {
        AllReduceKind::Hierarchical(levels) => {
            let between = if levels.is_halving() {
                AllReduceKind::HalvingDoubling
            } else {
                AllReduceKind::Ring
            };
            let chunk =
                |owner| in_one_level(&between, levels.sums(owner, &values, &combine), &combine);
            (0..levels.chunks()).flat_map(chunk).collect()
        }
        kind => in_one_level(&kind, values, &combine),
    }
}

/// As [`all_reduce_result`], of all kinds but the hierarchical one.
fn in_one_level<T: Copy>(
    kind: &AllReduceKind,
    mut values: Vec<Vec<T>>,
    combine: &impl Fn(T, T) -> T,
) -> Vec<T> {
    let size = values.len();
    let len = values.first().map_or(0, Vec::len);
    if size == 0 || len == 0 {
        return Vec::new();
    }
    let mut add = |into: usize, from: usize| {
        if let Ok([into, from]) = values.get_disjoint_mut([into, from]) {
            let pairs = into.iter_mut().zip(from.iter());
            pairs.for_each(|(own, received)| *own = combine(*own, *received));
        }
    };
    match kind {
        AllReduceKind::HalvingDoubling => {
            let core = 1 << size.ilog2();
            (core..size).for_each(|extra| add(extra - core, extra));
            // At distance d workers r and r ⊕ d have the same sums of what both still hold.
            for bit in (0..core.ilog2()).rev() {
                (0..1 << bit).for_each(|rank| add(rank, rank + (1 << bit)));
            }
        }
        AllReduceKind::Tree => {
            for bit in 0..usize::BITS - (size - 1).leading_zeros() {
                let distance = 1 << bit;
                let parents = (0..size - distance).step_by(2 * distance);
                parents.for_each(|rank| add(rank, rank + distance));
            }
        }
        AllReduceKind::ParameterServer => (1..size).for_each(|rank| add(0, rank)),
        AllReduceKind::Ring | AllReduceKind::Auto(_) | AllReduceKind::Hierarchical(_) => {
            // Chunk c starts with worker c and goes round.
            let mut result = values[0].clone();
            for first in 0..size {
                let chunk = chunks(first, first + 1, size, len);
                let result = &mut result[chunk.clone()];
                result.copy_from_slice(&values[first][chunk.clone()]);
                for rank in (first + 1..size).chain(0..first) {
                    let own = &values[rank][chunk.clone()];
                    let pairs = result.iter_mut().zip(own);
                    pairs.for_each(|(sum, own)| *sum = combine(*own, *sum));
                }
            }
            return result;
        }
    }
    values.swap_remove(0)
}
