//! Random columns without repetition.

use rand::Rng;

/// Makes the first `kept` of `order` a random choice among all, in random order (Fisher and Yates).
/// Whatever order it held before, every ordered choice is equally likely.
pub(super) fn shuffle_front(order: &mut [u32], kept: usize, random: &mut impl Rng) {
    let width = order.len();
    for at in 0..kept {
        // A fixed way from 64 random bits to a number below n: a published seed must give the same
        // columns with every version of every library.
        let left = (width - at) as u128;
        let pick = ((u128::from(random.next_u64()) * left) >> 64) as usize; // below `left`
        order.swap(at, at + pick);
    }
}

/// All columns of a row, ascending.
pub(super) fn all_columns(width: usize) -> Vec<u32> {
    (0_u32..).take(width).collect()
}
