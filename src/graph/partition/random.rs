//! Balanced and uniformly random: sizes differ by at most one.

use rand::Rng;
use rand::seq::SliceRandom;

/// Deals shuffled nodes to the workers in turn. All balanced assignments are equally likely, up to
/// which workers get the one node more. O(nodes).
pub(super) fn partition(nodes: usize, workers: usize, random: &mut impl Rng) -> Vec<u32> {
    // There are at most as many workers as nodes, and node numbers fit.
    let mut assignment: Vec<u32> = (0_u32..).take(workers).cycle().take(nodes).collect();
    assignment.shuffle(random);
    assignment
}
