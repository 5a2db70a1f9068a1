//! Clusters, who has them, and in which step they train.

use std::sync::Arc;

use crate::graph::{BoundaryPlan, shuffled};

/// Who has which clusters, and when it trains on them.
#[derive(Clone)]
pub(super) struct Deal {
    /// The plan as if each cluster were a worker's.
    plan: Arc<BoundaryPlan>,
    workers: usize,
    per_batch: usize,
}

impl Deal {
    /// The deal of a run, with so many clusters in a batch.
    pub(super) const fn new(plan: Arc<BoundaryPlan>, workers: usize, per_batch: usize) -> Self {
        Self {
            plan,
            workers,
            per_batch,
        }
    }

    /// Number of clusters.
    pub(super) fn clusters(&self) -> usize {
        self.plan.workers()
    }

    /// Clusters of each worker.
    fn each(&self) -> usize {
        self.clusters() / self.workers
    }

    /// Steps of an epoch.
    pub(super) fn steps(&self) -> usize {
        self.each().div_ceil(self.per_batch)
    }

    /// The clusters of each step of an epoch of a worker.
    pub(super) fn batches(&self, seed: u64, epoch: usize, worker: usize) -> Vec<Vec<u32>> {
        // Clusters of one worker are numbered in a row.
        let (first, each) = ((worker * self.each()) as u32, self.each());
        let own: Vec<u32> = (first..).take(each).collect();
        let order = shuffled(seed, epoch, worker, &own);
        order.chunks(self.per_batch).map(<[u32]>::to_vec).collect()
    }

    /// Nodes of a batch, ascending.
    pub(super) fn nodes(&self, batch: &[u32]) -> Vec<u32> {
        let parts = batch.iter().map(|&c| &self.plan.parts[c as usize].owned);
        let mut nodes: Vec<u32> = parts.flatten().copied().collect();
        // In ascending order, as `induced` takes them, and as the plan looks nodes up.
        nodes.sort_unstable();
        nodes
    }

    /// Training nodes of all workers in each step of an epoch.
    pub(super) fn training(&self, seed: u64, epoch: usize) -> Vec<usize> {
        let mut nodes = vec![0; self.steps()];
        // Batches follow from the seed, so nobody has to ask the others for theirs.
        for worker in 0..self.workers {
            for (sum, batch) in nodes.iter_mut().zip(self.batches(seed, epoch, worker)) {
                let parts = batch.iter().map(|&c| &self.plan.parts[c as usize]);
                *sum += parts.map(|part| part.training).sum::<usize>();
            }
        }
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Csr, Partition};
    use proptest::prelude::*;

    /// A path dealt into clusters: the plan of these, and what it is made of.
    fn plan(nodes: usize, clusters: usize) -> (BoundaryPlan, (Csr, Partition)) {
        let graph = Csr::undirected(nodes, (1_u32..).take(nodes - 1).map(|v| (v - 1, v)));
        let assignment = (0..nodes).map(|v| (v * 7 % nodes % clusters) as u32);
        let partition = Partition {
            parts: clusters,
            assignment: assignment.collect(),
        };
        (BoundaryPlan::new(&graph, &partition), (graph, partition))
    }

    /// All orders of these.
    fn orders(of: &[u32]) -> Vec<Vec<u32>> {
        let Some((&first, rest)) = of.split_first() else {
            return vec![Vec::new()];
        };
        let insert = |order: Vec<u32>| {
            (0..=order.len()).map(move |at| {
                let mut order = order.clone();
                order.insert(at, first);
                order
            })
        };
        orders(rest).into_iter().flat_map(insert).collect()
    }

    #[test]
    fn two_clusters_meet_at_the_hypergeometric_rate() {
        for (clusters, per_batch) in [(4_u32, 2), (6, 2), (6, 3), (6, 1), (5, 5)] {
            let orders = orders(&(0..clusters).collect::<Vec<_>>());
            let meet = |order: &&Vec<u32>| {
                let mut batches = order.chunks(per_batch);
                batches.any(|batch| batch.contains(&0) && batch.contains(&1))
            };
            let rate = orders.iter().filter(meet).count() as f64 / orders.len() as f64;
            let expected = (per_batch - 1) as f64 / f64::from(clusters - 1);
            assert!((rate - expected).abs() < 1e-12, "{clusters}, {per_batch}");
        }
    }

    #[test]
    fn shuffled_clusters_meet_equally_often() {
        let deal = Deal::new(Arc::new(plan(24, 6).0), 1, 2);
        let mut met = [[0_i32; 6]; 6];
        let epochs = 4000;
        for epoch in 0..epochs {
            for batch in deal.batches(3, epoch, 0) {
                let (a, b) = (batch[0].min(batch[1]), batch[0].max(batch[1]));
                met[a as usize][b as usize] += 1;
            }
        }
        // A pair meets with probability 1/5; five standard deviations are 126.
        for (a, b) in (0..6).flat_map(|a| (a + 1..6).map(move |b| (a, b))) {
            assert!((met[a][b] - 800).abs() < 127, "{a} and {b}: {}", met[a][b]);
        }
    }

    proptest! {
        #[test]
        fn every_node_is_in_one_batch_of_its_worker_in_every_epoch(
            each in 1_usize..5, workers in 1_usize..4, per_batch in 1_usize..5, epoch in 0_usize..9,
        ) {
            let per_batch = per_batch.min(each);
            let (clusters, graph) = plan(40, each * workers);
            let train: Vec<u32> = (0..40).step_by(3).collect();
            let of_workers = BoundaryPlan::new(&graph.0, &graph.1.merged(workers));
            let deal = Deal::new(Arc::new(clusters.with_training(&train)), workers, per_batch);
            let mut training = vec![0; deal.steps()];
            for (rank, part) in of_workers.parts.iter().enumerate() {
                let batches = deal.batches(5, epoch, rank);
                prop_assert_eq!(batches.len(), deal.steps());
                let mut all = Vec::new();
                for (step, batch) in batches.iter().enumerate() {
                    prop_assert!(batch.len() <= per_batch);
                    let nodes = deal.nodes(batch);
                    training[step] += nodes.iter().filter(|v| train.contains(v)).count();
                    all.extend(nodes);
                }
                all.sort_unstable();
                prop_assert_eq!(&all, &part.owned);
            }
            prop_assert_eq!(deal.training(5, epoch), training);
        }
    }
}
