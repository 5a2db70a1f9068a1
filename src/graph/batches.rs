//! Mini-batches: which nodes train in which step of an epoch.

use std::ops::Range;
use std::sync::Arc;

use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::{BoundaryPlan, Csr};
use crate::rng::{Purpose, stream};

/// `training.batch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchSpec {
    /// Most training nodes of one worker in a step.
    pub size: usize,
    /// Neighbours drawn for a node at each hop from those that train: the first entry is that of
    /// the last layer.
    pub fanouts: Vec<usize>,
}

/// The mini-batches of a run: who draws what follows from them alone.
#[derive(Clone, Debug)]
pub struct Batches {
    /// How large they are.
    pub spec: BatchSpec,
    /// The whole graph.
    pub graph: Arc<Csr>,
    /// Training nodes of the whole graph, ascending.
    pub train: Vec<u32>,
    /// Seed of the run.
    pub seed: u64,
}

/// The steps of an epoch. All workers take as many, `B = max_i ⌈n_i / size⌉` for `n_i` training
/// nodes each, and a worker uses `⌈n_i / B⌉` of its nodes in each, in its last ones what is left
/// (Grappa's rule, `adjust_bs` in its authors' `t10n/dataloader.py`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    nodes: Vec<usize>,
    steps: usize,
}

impl Steps {
    /// The steps for so many training nodes of each worker.
    pub fn new(size: usize, nodes: Vec<usize>) -> Self {
        let most = nodes.iter().copied().max().unwrap_or(0);
        Self {
            // At least one: losses are divided by the number of steps.
            steps: most.div_ceil(size.max(1)).max(1),
            nodes,
        }
    }

    /// The steps in which every worker trains the nodes that it owns; one without mini-batches.
    pub fn of(boundary: &BoundaryPlan, batches: Option<&Batches>) -> Self {
        let nodes = boundary.parts.iter().map(|part| part.training).collect();
        Self::new(
            batches.map_or(usize::MAX, |batches| batches.spec.size),
            nodes,
        )
    }

    /// Number of steps B.
    pub const fn count(&self) -> usize {
        self.steps
    }

    /// Training nodes of a worker: workers with as many take the same steps.
    pub fn nodes(&self, worker: usize) -> usize {
        self.nodes[worker]
    }

    /// Which of a worker's training nodes, in the order of the epoch, train in a step.
    pub fn range(&self, worker: usize, step: usize) -> Range<usize> {
        let nodes = self.nodes[worker];
        // Rounded up, so that the last steps may have fewer, or none at all.
        let each = nodes.div_ceil(self.steps);
        (step * each).min(nodes)..((step + 1) * each).min(nodes)
    }

    /// Training nodes of all workers in a step.
    pub fn seeds(&self, step: usize) -> usize {
        (0..self.nodes.len())
            .map(|worker| self.range(worker, step).len())
            .sum()
    }
}

/// A worker's training nodes in the order of an epoch.
pub fn shuffled(seed: u64, epoch: usize, worker: usize, train: &[u32]) -> Vec<u32> {
    let mut order = train.to_vec();
    // Keyed by worker and epoch, so that no order depends on who else draws, or when.
    order.shuffle(&mut stream(
        seed,
        Purpose::Sampling,
        worker as u64,
        epoch as u64,
    ));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_take_as_many_steps_and_small_workers_smaller_batches() {
        let steps = Steps::new(4, vec![10, 5, 0]);
        assert_eq!(steps.count(), 3);
        let of = |worker| [0, 1, 2].map(|step| steps.range(worker, step));
        assert_eq!(of(0), [0..4, 4..8, 8..10]);
        assert_eq!(of(1), [0..2, 2..4, 4..5]);
        assert_eq!(of(2), [0..0, 0..0, 0..0]);
        assert_eq!([0, 1, 2].map(|step| steps.seeds(step)), [6, 6, 3]);
    }

    #[test]
    fn epochs_and_workers_have_orders_of_their_own() {
        let train: Vec<u32> = (0..50).collect();
        let base = shuffled(1, 0, 0, &train);
        assert_eq!(base, shuffled(1, 0, 0, &train));
        for other in [(2, 0, 0), (1, 1, 0), (1, 0, 1)] {
            assert_ne!(base, shuffled(other.0, other.1, other.2, &train));
        }
    }

    proptest! {
        #[test]
        fn every_training_node_trains_once_and_no_step_is_empty(
            nodes in prop::collection::vec(0_usize..40, 1..6),
            size in 1_usize..12,
        ) {
            let steps = Steps::new(size, nodes.clone());
            for (worker, &nodes) in nodes.iter().enumerate() {
                let ranges: Vec<_> = (0..steps.count()).map(|step| steps.range(worker, step)).collect();
                prop_assert!(ranges.iter().all(|range| range.len() <= size));
                prop_assert!(ranges.into_iter().flatten().eq(0..nodes));
            }
            if nodes.iter().any(|&n| n > 0) {
                prop_assert!((0..steps.count()).all(|step| steps.seeds(step) > 0));
            }
        }
    }
}
