//! Collectives in which all workers take the same steps, but for whom they send to.

use super::step::{Step, Steps};
use super::{AllReduceKind, Collective, all_reduce_steps};

impl Collective {
    /// The steps of worker 0 of `size`, as if worker r sent to r + k what worker 0 sends to k: it
    /// receives each message from its other side. Chunks are rounded up to one length.
    ///
    /// Around a ring that is so. In halving and doubling partners are equally far from each other,
    /// and only the length of their messages matters where all links are alike. Nothing for
    /// collectives in which workers do different things: those with a root, trees, and halving with
    /// workers beyond a power of two.
    pub(crate) fn steps_of_equals(&self, all_reduce: &AllReduceKind, size: usize) -> Option<Steps> {
        let (len, chosen) = match self {
            Self::AllReduce(len) => (*len, all_reduce.chosen(*len)),
            Self::AllGather(lens) => (lens.iter().sum(), all_reduce.chosen_to_gather(lens)),
            Self::Broadcast { .. } | Self::Gather { .. } => return None,
        };
        match chosen {
            AllReduceKind::Ring => {}
            AllReduceKind::HalvingDoubling if size.is_power_of_two() => {}
            _ => return None,
        }
        let turned = move |step: Step| {
            let to = step.send.as_ref().map_or(0, |(to, _)| *to);
            let receive = step.receive;
            Step {
                receive: receive.map(|(_, range, combine)| ((size - to) % size, range, combine)),
                ..step
            }
        };
        let len = len.next_multiple_of(size);
        let steps = match self {
            Self::AllGather(_) => {
                let equal = Self::AllGather(vec![len / size; size].into());
                equal.steps(&chosen, 0, size)
            }
            _ => all_reduce_steps(&chosen, 0, size, len),
        };
        Some(Box::new(steps.map(turned)))
    }
}
