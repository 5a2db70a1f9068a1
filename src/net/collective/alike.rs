//! Collectives in which the first workers take the steps of all, each as far from its peers.

use super::step::{Step, Steps};
use super::{AllReduceKind, Collective, all_reduce_steps};

impl Collective {
    /// The steps of worker `rank` of the first `period` of `size`, where what these do stands for
    /// all others in blocks of as many: worker r + k · period sends to s + k · period what worker r
    /// sends to s. Chunks are rounded up to one length.
    ///
    /// Around a ring that is so, and in groups that fit a block. In halving and doubling partners
    /// are equally far from each other, and of those in other blocks only the length of their
    /// messages matters: each comes from the other side. Nothing for collectives in which blocks do
    /// different things: those with a root, trees, and halving with workers beyond a power of two.
    pub(crate) fn steps_of_first(
        &self,
        all_reduce: &AllReduceKind,
        (rank, period): (usize, usize),
        size: usize,
    ) -> Option<Steps> {
        let (len, chosen) = match self {
            Self::AllReduce(len) => (*len, all_reduce.chosen(*len)),
            Self::AllGather(lens) => (lens.iter().sum(), all_reduce.chosen_to_gather(lens)),
            Self::Broadcast { .. } | Self::Gather { .. } => return None,
        };
        let summed = matches!(self, Self::AllReduce(_));
        match &chosen {
            AllReduceKind::Ring => {}
            AllReduceKind::HalvingDoubling if halves(size, period) => {}
            // Groups gather around one ring.
            AllReduceKind::Hierarchical(_) if !summed => {}
            AllReduceKind::Hierarchical(levels) => {
                let group = levels.group_size()?;
                let between = (size / group, period / group);
                let fits = period.is_multiple_of(group);
                if !fits || levels.is_halving() && !halves(between.0, between.1) {
                    return None;
                }
            }
            _ => return None,
        }
        // Whoever sends to the k-th block on hears from the k-th before it.
        let turned = move |step: Step| {
            let (Some((to, _)), Some((from, range, combine))) = (&step.send, &step.receive) else {
                return step;
            };
            if to != from {
                return step;
            }
            let other_side = (size - to / period * period + to % period) % size;
            Step {
                receive: Some((other_side, range.clone(), *combine)),
                ..step
            }
        };
        let len = len.next_multiple_of(size);
        let steps = if summed {
            all_reduce_steps(&chosen, rank, size, len)
        } else {
            let equal = Self::AllGather(vec![len / size; size].into());
            equal.steps(&chosen, rank, size)
        };
        Some(Box::new(steps.map(turned)))
    }
}

/// Whether partners of so many that halve and double are within a block of `period`, all of a step,
/// or all in other blocks.
const fn halves(size: usize, period: usize) -> bool {
    size.is_power_of_two() && period.is_power_of_two()
}
