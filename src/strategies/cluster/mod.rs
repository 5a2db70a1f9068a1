//! `cluster`: Cluster-GCN with its clusters dealt to workers (Chiang, Liu, Si, Li, Bengio and Hsieh, *Cluster-GCN: An Efficient Algorithm for
//! Training Deep and Large Graph Convolutional Networks*, KDD 2019).
//!
//! The graph is cut into `c` clusters, equally many for each worker, which keeps them. In every epoch each worker shuffles its own and takes `q` of them
//! at a time: a batch is the graph among their nodes, with all edges inside and none out of it. Gradients of the mean loss over the training nodes of
//! all workers' batches of a step are summed. With `m = c/P` clusters of each of `P` workers an epoch has `m/q` steps, and moves the bytes of as
//! many all-reduces. No node data travels.
//!
//! An edge inside a cluster is seen in every epoch, one between two clusters of a worker with probability `(q − 1)/(m − 1)`, and one between workers
//! never; what is missing is not corrected for, as in the paper. So with `q = m` this is `isolated`, and for one worker training on all nodes.
//! Degrees, by which a model divides, are those in the batch (the paper's section 3.2 normalises anew after putting clusters together).
//! The normalisation itself stays the model's, `1/√((d_v + 1)(d_u + 1))` for `gcn`, so that training and evaluation agree: the paper's is
//! `(D + I)⁻¹(A + I)`, for very deep models with `λ` times its diagonal added, which we leave out.

use serde::Deserialize;

use super::parts::{Chunking, Pass, PassLayer, gradient_traffic, sum_steps};
use super::{Context, OptionError, OptionInfo, Registration, Strategy, StrategyInfo, options};
use crate::graph::{BoundaryPlan, PartitionSpec, shuffled};
use crate::model::{Aggregation, Block, Input, ModelSpec, Work, targets};
use crate::net::Traffic;
use crate::sim::{Activity, SimError, Worker};

/// How experiments name and make it.
pub const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "cluster",
        paper: "Chiang, Liu, Si, Li, Bengio and Hsieh, Cluster-GCN: An Efficient Algorithm for Training Deep and Large Graph Convolutional Networks (KDD 2019, arXiv 1905.07953)",
        sends: "parameter gradients only; a batch sees the edges inside its clusters",
        options: &[
            OptionInfo {
                name: "clusters",
                default: "10 for each worker",
                meaning: "Number of clusters of the whole graph, a multiple of the workers (the paper: 50 for PPI, 1500 for Reddit, 15000 for Amazon2M, on one machine).",
            },
            OptionInfo {
                name: "clusters_per_batch",
                default: "2",
                meaning: "Clusters that a worker puts together for a step, of which its number of clusters is a multiple (the paper: 1 for PPI, 20 for Reddit, 10 for Amazon2M).",
            },
            OptionInfo {
                name: "chunking",
                default: "\"metis\"",
                meaning: "How nodes are dealt into clusters: metis (the paper's), random (its rival there), or partition: as [partition] says (a given file then numbers clusters, those of one worker in a row).",
            },
        ],
    },
    build,
};

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    clusters: Option<usize>,
    clusters_per_batch: usize,
    chunking: Chunking,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clusters: None,
            clusters_per_batch: 2,
            chunking: Chunking::Metis,
        }
    }
}

/// Clusters of a worker where the experiment says nothing.
const EACH: usize = 10;

struct Cluster {
    options: Options,
    context: Context,
}

fn build(table: &toml::Table, context: &Context) -> Result<Box<dyn Strategy>, OptionError> {
    let options: Options = options(table)?;
    for (key, value) in [
        ("clusters", options.clusters),
        ("clusters_per_batch", Some(options.clusters_per_batch)),
    ] {
        if value == Some(0) {
            return Err(OptionError::key(key, "must be at least 1"));
        }
    }
    Ok(Box::new(Cluster {
        options,
        context: *context,
    }))
}

/// Who has which clusters, and when it trains on them.
struct Deal<'a> {
    /// The plan as if each cluster were a worker's.
    plan: &'a BoundaryPlan,
    workers: usize,
    per_batch: usize,
}

impl<'a> Deal<'a> {
    fn new(boundary: &'a BoundaryPlan, per_batch: usize) -> Self {
        let chunks = boundary.chunks.as_deref();
        Self {
            plan: chunks.map_or(boundary, |chunks| &chunks.plan),
            workers: boundary.workers(),
            per_batch,
        }
    }

    /// Clusters of each worker.
    const fn each(&self) -> usize {
        self.plan.workers() / self.workers
    }

    const fn steps(&self) -> usize {
        self.each().div_ceil(self.per_batch)
    }

    /// The clusters of each step of an epoch of a worker.
    #[allow(clippy::cast_possible_truncation)] // clusters are numbered by u32
    fn batches(&self, seed: u64, epoch: usize, worker: usize) -> Vec<Vec<u32>> {
        let (first, each) = ((worker * self.each()) as u32, self.each());
        let own: Vec<u32> = (first..).take(each).collect();
        let order = shuffled(seed, epoch, worker, &own);
        order.chunks(self.per_batch).map(<[u32]>::to_vec).collect()
    }

    /// Nodes of a batch, ascending.
    fn nodes(&self, batch: &[u32]) -> Vec<u32> {
        let parts = batch.iter().map(|&c| &self.plan.parts[c as usize].owned);
        let mut nodes: Vec<u32> = parts.flatten().copied().collect();
        nodes.sort_unstable();
        nodes
    }

    /// Training nodes of all workers in each step of an epoch.
    fn training(&self, seed: u64, epoch: usize) -> Vec<usize> {
        let mut nodes = vec![0; self.steps()];
        for worker in 0..self.workers {
            for (sum, batch) in nodes.iter_mut().zip(self.batches(seed, epoch, worker)) {
                let parts = batch.iter().map(|&c| &self.plan.parts[c as usize]);
                *sum += parts.map(|part| part.training).sum::<usize>();
            }
        }
        nodes
    }
}

/// What one epoch of a worker trains on.
#[derive(Default)]
struct Epoch {
    batches: Vec<Vec<u32>>,
    /// Training nodes of all workers, by step.
    training: Vec<usize>,
}

impl Strategy for Cluster {
    fn partition(&self, asked: &PartitionSpec) -> PartitionSpec {
        let clusters = self.options.clusters.unwrap_or(EACH * asked.workers);
        self.options.chunking.divide(asked, clusters)
    }

    fn check(&self, context: &Context) -> Result<(), OptionError> {
        let (workers, per_batch) = (context.workers, self.options.clusters_per_batch);
        if workers == usize::MAX {
            return Ok(()); // not known yet
        }
        let clusters = self.options.clusters.unwrap_or(EACH * workers);
        if !clusters.is_multiple_of(workers) {
            let what = format!("must be a multiple of the {workers} workers, not {clusters}");
            return Err(OptionError::key("clusters", what));
        }
        let each = clusters / workers;
        if !each.is_multiple_of(per_batch) {
            let what = format!(
                "must divide the {each} clusters of each worker, so that all batches have as many; {per_batch} does not"
            );
            return Err(OptionError::key("clusters_per_batch", what));
        }
        Ok(())
    }

    fn plan(&self, boundary: &BoundaryPlan, model: &ModelSpec, _epoch: usize) -> Traffic {
        let (kind, workers) = (self.context.all_reduce, boundary.workers());
        let deal = Deal::new(boundary, self.options.clusters_per_batch);
        gradient_traffic(kind, workers, model.parameters()).times(deal.steps())
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let setting = worker.setting().clone();
        let deal = Deal::new(&setting.boundary, self.options.clusters_per_batch);
        let (seed, rank, steps) = (setting.seed, worker.rank(), deal.steps());
        let dropout = worker.dropout();
        let mut now = Epoch::default();
        sum_steps(worker, steps, |worker, model, epoch, step| {
            if step == 0 {
                let work = Work::pass(deal.plan.workers());
                now = worker.compute(Activity::Exchange, work, |_| Epoch {
                    batches: deal.batches(seed, epoch, rank),
                    training: deal.training(seed, epoch),
                });
            }
            let batch = Batch::new(worker, deal.nodes(&now.batches[step]), now.training[step]);
            let layer = || PassLayer {
                block: &batch.block,
                nodes: &batch.nodes,
                crosses: None,
            };
            let layers: Vec<PassLayer<'_>> = (0..model.layers()).map(|_| layer()).collect();
            let pass = Pass {
                layers: &layers,
                targets: &batch.targets,
                dropout: &dropout,
                round: (epoch * steps + step) as u64,
                buckets: None,
            };
            pass.run(worker, model, Some(batch.features))
        })
    }
}

/// A batch on its worker.
struct Batch {
    block: Block,
    /// Its nodes, ascending.
    nodes: Vec<u32>,
    features: Input,
    targets: burn::tensor::Tensor<2>,
}

impl Batch {
    /// The graph among own nodes, whose loss is part of the mean over `training` nodes.
    fn new(worker: &mut Worker, nodes: Vec<u32>, training: usize) -> Self {
        let shard = worker.shard();
        let rows = worker.setting().boundary.parts[worker.rank()].rows_of(&nodes);
        let degree = |&row: &u32| shard.adjacency.degree(row as usize);
        let entries = rows.iter().map(degree).sum::<usize>();
        let work = Work::pass(entries + rows.len() * shard.features.width());
        worker.compute(Activity::Exchange, work, |worker| {
            let (shard, model) = (worker.shard(), &worker.setting().model);
            let graph = shard.adjacency.induced(&rows);
            let degrees: Vec<usize> = (0..rows.len()).map(|v| graph.degree(v)).collect();
            #[allow(clippy::cast_possible_truncation)] // loss weights are single precision
            let weight = (1.0 / training.max(1) as f64) as f32;
            let trains = |row: u32| shard.train.binary_search(&row).is_ok();
            let weighted = rows.iter().enumerate().filter(|(_, row)| trains(**row));
            let weighted =
                weighted.filter_map(|(v, &row)| Some((v, shard.labels[row as usize]?, weight)));
            let device = worker.plain_device();
            Self {
                block: Block::new(&graph, &degrees, Aggregation::from(model.kind)),
                features: Input::from_features(shard.features.select(&rows), device),
                targets: targets(rows.len(), model.classes(), weighted, device),
                nodes,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Csr, Partition};
    use crate::strategies::grappa::estimators::Inclusion;
    use proptest::prelude::*;

    fn plan(nodes: usize, clusters: usize, workers: usize) -> BoundaryPlan {
        let graph = Csr::undirected(nodes, (1_u32..).take(nodes - 1).map(|v| (v - 1, v)));
        #[allow(clippy::cast_possible_truncation)] // clusters are few
        let assignment = (0..nodes).map(|v| (v * 7 % nodes % clusters) as u32);
        let partition = Partition {
            parts: clusters,
            assignment: assignment.collect(),
        };
        BoundaryPlan::of_chunks(&graph, &partition, workers, 1)
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
            // The same as of chunks that are dealt to so many workers as there are batches.
            let units = clusters as usize;
            let inclusion = Inclusion::Balanced {
                units,
                workers: units / per_batch,
            };
            assert!((inclusion.pair(false) - rate).abs() < 1e-12);
        }
    }

    #[test]
    fn shuffled_clusters_meet_equally_often() {
        let plan = plan(24, 6, 1);
        let deal = Deal::new(&plan, 2);
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
            let plan = plan(40, each * workers, workers);
            let train: Vec<u32> = (0..40).step_by(3).collect();
            let plan = plan.with_training(&train);
            let deal = Deal::new(&plan, per_batch);
            let mut training = vec![0; deal.steps()];
            for (rank, part) in plan.parts.iter().enumerate() {
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
