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

mod deal;

use serde::Deserialize;

use super::parts::{Chunking, Pass, PassLayer, gradient_traffic, sum_steps};
use super::{Context, OptionError, OptionInfo, Registration, Strategy, StrategyInfo, options};
use crate::graph::{BoundaryPlan, PartitionSpec};
use crate::model::{Block, Input, Matrix, ModelSpec, Work, targets};
use crate::net::Traffic;
use crate::sim::{Activity, EpochReport, SimError, Worker};
use deal::Deal;

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
        sum_steps(
            worker,
            steps,
            |worker, model, epoch, step| {
                if step == 0 {
                    let work = Work::pass(deal.clusters());
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
            },
            |_, _| EpochReport::default(),
        )
    }
}

/// A batch on its worker.
struct Batch {
    block: Block,
    /// Its nodes, ascending.
    nodes: Vec<u32>,
    features: Input,
    /// Constant side of the loss, `[nodes, classes]`.
    targets: Matrix,
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
            let place = worker.place();
            Self {
                block: Block::new(&graph, &degrees, model.aggregation()),
                features: Input::from_features(shard.features.select(&rows), place),
                targets: targets(rows.len(), model.classes(), weighted, place),
                nodes,
            }
        })
    }
}
