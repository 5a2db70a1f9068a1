//! `cluster`: Cluster-GCN with its clusters dealt to workers (Chiang, Liu, Si, Li, Bengio and
//! Hsieh, *Cluster-GCN: An Efficient Algorithm for Training Deep and Large Graph Convolutional
//! Networks*, KDD 2019).
//!
//! The graph is cut into `c` clusters, equally many for each worker, which keeps them. In every
//! epoch each worker shuffles its own and takes `q` of them at a time: a batch is the graph among
//! their nodes, with all edges inside and none out of it. Gradients of the mean loss over the
//! training nodes of all workers' batches of a step are summed. With `m = c/P` clusters of each of
//! `P` workers an epoch has `m/q` steps, and moves the bytes of as many all-reduces. No node data
//! travels.
//!
//! An edge inside a cluster is seen in every epoch, one between two clusters of a worker with
//! probability `(q − 1)/(m − 1)`, and one between workers never; what is missing is not corrected
//! for, as in the paper. So with `q = m` this is `isolated`, and for one worker training on all
//! nodes. Degrees, by which a model divides, are those in the batch (the paper's section 3.2
//! normalises anew after putting clusters together). The normalisation itself stays the model's,
//! `1/√((d_v + 1)(d_u + 1))` for `gcn`, so that training and evaluation agree: the paper's is
//! `(D + I)⁻¹(A + I)`, for very deep models with `λ` times its diagonal added, which we leave out.
//!
//! The authors' code (`google-research/cluster_gcn`) also has each first layer read the features'
//! sums over all training edges, which it makes once in advance (`precalc`, on by default). Here
//! nobody reads features of others, so that the first layer, too, misses the edges out of a batch:
//! fewer bytes than theirs would move over the cut, and less accuracy.

mod deal;

use std::sync::Arc;

use super::parts::gradients::LearnerPlan;
use super::parts::options::{GRADIENTS, at_least_one, option_struct};
use super::parts::plan::{PassPlan, plan_each};
use super::parts::{Chunking, Gradients, run_alone, sum_steps};
use super::{
    BatchUse, Needs, OptionError, Registration, Strategy, StrategyInfo, Training, options,
};
use crate::graph::{BoundaryPlan, PartitionSpec};
use crate::model::{Block, BlockShape, Gnn, Input, InputShape, Targets, Work, mean_targets};
use crate::sim::{Activity, Planner, Setting, SimError, Track, Worker};
use deal::Deal;

/// How experiments name and make it.
pub(super) const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "cluster",
        paper: "Chiang, Liu, Si, Li, Bengio and Hsieh, Cluster-GCN: An Efficient Algorithm for Training Deep and Large Graph Convolutional Networks (KDD 2019, arXiv 1905.07953)",
        sends: "parameter gradients only; a batch sees the edges inside its clusters",
        options: Options::INFO,
    },
    read,
};

option_struct! {
    #[derive(Clone, Copy, Debug)]
    struct Options {
        clusters: Option<usize> = None, "10 for each worker", "Number of clusters of the whole graph, a multiple of the workers (the paper: 50 for PPI, 1500 for Reddit, 15000 for Amazon2M, on one machine).";
        clusters_per_batch: usize = 2, "Clusters that a worker puts together for a step, of which its number of clusters is a multiple (the paper: 1 for PPI, 20 for Reddit, 10 for Amazon2M).";
        chunking: Chunking = Chunking::Metis, "\"metis\"", "How nodes are dealt into clusters: metis (the paper's), random (its rival there), or partition: as [partition] says (a given file then numbers clusters, those of one worker in a row).";
        gradients: Gradients = Gradients::PLAIN, GRADIENTS;
    }
}

/// Clusters of a worker where the experiment says nothing.
const EACH: usize = 10;

struct Cluster(Options);

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let options: Options = options(table)?;
    at_least_one("clusters", options.clusters)?;
    at_least_one("clusters_per_batch", Some(options.clusters_per_batch))?;
    Ok(Box::new(Cluster(options)))
}

impl Options {
    fn clusters(&self, workers: usize) -> usize {
        self.clusters.unwrap_or(EACH * workers)
    }
}

impl Strategy for Cluster {
    fn needs(&self, asked: &PartitionSpec) -> Result<Needs, OptionError> {
        let (workers, per_batch) = (asked.workers, self.0.clusters_per_batch);
        let clusters = self.0.clusters(workers);
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
        // More parts than workers: the parts are the clusters, and each worker owns as many.
        let partition = self.0.chunking.divide(asked, clusters);
        Ok(Needs::of(partition, BatchUse::Never))
    }

    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
        let (workers, per_batch) = (setting.workers(), self.0.clusters_per_batch);
        Ok(Box::new(Clusters {
            deal: Deal::new(clusters_of(setting), workers, per_batch),
            gradients: self.0.gradients,
            setting: Arc::clone(setting),
        }))
    }
}

/// The boundary plan as if each cluster were a worker's.
fn clusters_of(setting: &Setting) -> Arc<BoundaryPlan> {
    let chunks = setting.chunks.as_ref();
    // With as many clusters as workers there is no finer partition than theirs.
    Arc::clone(chunks.map_or(&setting.boundary, |chunks| &chunks.plan))
}

/// Cluster-GCN in its setting.
#[derive(Clone)]
struct Clusters {
    deal: Deal,
    gradients: Gradients,
    setting: Arc<Setting>,
}

impl Training for Clusters {
    fn setting(&self) -> &Arc<Setting> {
        &self.setting
    }

    fn planner(&self) -> Box<dyn Planner> {
        let (clusters, setting) = (self.clone(), Arc::clone(&self.setting));
        let steps = self.deal.steps();
        let all = steps * setting.training.epochs;
        let learner = LearnerPlan::of_model(self.gradients, &setting, all);
        plan_each(setting.workers(), move |epoch, rank, track| {
            track.compute(Work::pass(clusters.deal.clusters()));
            let batches = clusters.deal.batches(setting.seed, epoch, rank);
            for (step, batch) in batches.iter().enumerate() {
                clusters.write(track, batch, rank);
                learner.write(track, rank, epoch * steps + step);
            }
        })
    }

    fn notes(&self) -> Vec<String> {
        let late = self
            .gradients
            .note(&self.setting, self.epochs() * self.deal.steps());
        late.into_iter().collect()
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let (deal, seed, rank) = (&self.deal, self.setting.seed, worker.rank());
        // Batches of the epoch, in its order, and training nodes of all workers in each step.
        let mut dealt = (Vec::new(), Vec::new());
        let mut step = |worker: &mut Worker, model: &Gnn, epoch: usize, step: usize| {
            // All batches of an epoch are drawn at once; the plan has this work in the first step.
            if step == 0 {
                dealt = worker.compute(Activity::Exchange, |_| {
                    (deal.batches(seed, epoch, rank), deal.training(seed, epoch))
                });
            }
            let batch = Batch::new(worker, deal.nodes(&dealt.0[step]), dealt.1[step]);
            let layers = (0..model.layers()).map(|_| (&batch.block, &batch.nodes[..]));
            // Each step has dropout masks of its own.
            let round = (epoch * deal.steps() + step) as u64;
            let features = Some(batch.features);
            run_alone(worker, model, layers, &batch.targets, round, features)
        };
        sum_steps(worker, self.gradients, deal.steps(), &mut step)
    }

    fn saves(&self) -> Result<(), String> {
        Ok(())
    }
}

impl Clusters {
    /// What a worker does in a step with this batch, in numbers.
    fn write(&self, track: &mut Track, batch: &[u32], rank: usize) {
        let Self { deal, setting, .. } = self;
        let model = &setting.model;
        let nodes = deal.nodes(batch);
        let (graph, features) = (&setting.dataset.graph, &setting.dataset.features);
        // Finding the edges inside takes a look at all neighbours, those outside the batch too.
        let degrees = nodes.iter().map(|&v| graph.degree(v as usize));
        let seen: usize = degrees.sum();
        track.compute(Work::pass(seen + nodes.len() * model.features()));
        let inside = |u: &&u32| nodes.binary_search(u).is_ok();
        let among = |&v: &u32| graph.neighbours(v as usize).iter().filter(inside).count();
        // Who asks for work needs the edges, and counting them passes over the graph.
        let edges = if setting.plans_work {
            nodes.iter().map(among).sum()
        } else {
            0
        };
        let block = BlockShape::of(nodes.len(), nodes.len(), edges, model.aggregation());
        let input = InputShape::of(features, nodes.iter().copied());
        PassPlan::alone(model, vec![block; model.layers()], Some(input)).write(track, rank);
    }
}

/// A batch on its worker.
struct Batch {
    block: Block,
    /// Its nodes, ascending.
    nodes: Vec<u32>,
    features: Input,
    /// Constant side of the loss, `[nodes, classes]`.
    targets: Targets,
}

impl Batch {
    /// The graph among own nodes, whose loss is part of the mean over `training` nodes.
    fn new(worker: &mut Worker, nodes: Vec<u32>, training: usize) -> Self {
        let rows = worker.setting().boundary.parts[worker.rank()].rows_of(&nodes);
        worker.compute(Activity::Exchange, |worker| {
            let (shard, model) = (worker.shard(), &worker.setting().model);
            let graph = shard.adjacency.induced(&rows);
            // Degrees within the batch, for which the paper normalises anew (section 3.2).
            let degrees: Vec<usize> = (0..rows.len()).map(|v| graph.degree(v)).collect();
            let trains = |row: u32| shard.train.binary_search(&row).is_ok();
            let labelled = rows.iter().enumerate().filter(|(_, row)| trains(**row));
            let labelled = labelled.map(|(v, &row)| (v, shard.labels.of(row as usize)));
            let (task, place) = (worker.setting().task(), worker.place());
            Self {
                block: Block::new(&graph, &degrees, model.aggregation()),
                features: Input::from_features(shard.features.select(&rows), place),
                // A step without training nodes has no loss.
                targets: mean_targets(rows.len(), task, labelled, training, place),
                nodes,
            }
        })
    }
}
