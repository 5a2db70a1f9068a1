//! Everything that one cell and seed is made of.

mod repartition;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use burn::module::Module;
use burn::tensor::Device;

use super::{Cluster, ComputeTiming, Engine, Memory, SimError, TrainingConfig, WorkerDevice};
use crate::graph::{
    Batches, BoundaryCounts, BoundaryPlan, Chunks, Csr, Dataset, ExpectedGraph, Features, Labels,
    PartData, Partition, Peers, Shards, Steps, Task,
};
use crate::model::{GivenWeights, Gnn, ModelSpec, OptimizerConfig};
use crate::net::{AllReduceKind, ExchangeKind, Framing, Topology};

pub use repartition::Repartitioner;

/// A cell with all its parts resolved: data, partition, model, network and devices.
#[derive(Clone)]
pub struct Setting {
    /// The graph that is trained on; training code sees only its worker's shard of it. Without its
    /// nodes where a process has a shard of its own and nothing of the others.
    pub dataset: Arc<Dataset>,
    /// The whole graph, where that is known when models are scored and not in training.
    pub unseen: Option<Arc<Dataset>>,
    /// Where workers have their shards from, if those were cut before.
    pub shards: Option<Arc<Shards>>,
    /// Which worker owns which node.
    pub partition: Arc<Partition>,
    /// Who sends which rows to whom.
    pub boundary: Arc<BoundaryPlan>,
    /// The same in numbers, for plans.
    pub counts: Arc<BoundaryCounts>,
    /// The law of the graph, where it is known by that alone.
    pub law: Option<Arc<ExpectedGraph>>,
    /// A finer division, where the strategy asks for one.
    pub chunks: Option<Arc<Chunks>>,
    /// What deals out nodes anew, where the graph is divided here.
    pub repartitioner: Option<Arc<Repartitioner>>,
    /// Mini-batches, where the run has them.
    pub batches: Option<Arc<Batches>>,
    /// How long this machine took to make partition and boundary plan.
    pub partitioning: Duration,
    /// Sizes of the model.
    pub model: ModelSpec,
    /// What it starts from, where that was given.
    pub weights: Option<Arc<GivenWeights>>,
    /// How parameters are updated.
    pub optimizer: OptimizerConfig,
    /// How long is trained and how often evaluated.
    pub training: TrainingConfig,
    /// The emulated network.
    pub topology: Arc<Topology>,
    /// Headers around messages.
    pub framing: Framing,
    /// How all-reduce is carried out.
    pub all_reduce: AllReduceKind,
    /// How the messages of exchanges travel.
    pub exchange: ExchangeKind,
    /// Of how many epochs a timeline is kept; of none by default.
    pub timeline_epochs: usize,
    /// How computing turns into virtual time.
    pub timing: ComputeTiming,
    /// Whether mini-batches are drawn and gathered beside the workers' devices, in none of their
    /// time.
    pub samples_beside: bool,
    /// Whether somebody asks its plans what workers do and hold, beside what they send: modelled
    /// compute, and whoever plans a training without being in it.
    pub plans_work: bool,
    /// One device per worker.
    pub devices: Vec<WorkerDevice>,
    /// What carries out the run.
    pub engine: Engine,
    /// Seed of everything random in this run.
    pub seed: u64,
}

impl Setting {
    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.partition.parts
    }

    /// The device of worker 0 with automatic differentiation, on which models are made to be looked
    /// at rather than trained.
    pub fn device(&self) -> Device {
        self.devices[0].place.device.clone().autodiff()
    }

    /// The model with its first parameters, the same on every worker.
    pub(crate) fn new_model(&self, device: &Device) -> Gnn {
        let drawn = Gnn::new(&self.model, self.seed, device);
        match &self.weights {
            Some(given) => given.put(drawn, ""),
            None => drawn,
        }
    }

    /// Sub-model `number` of a strategy that trains several, which drew its first parameters: with
    /// those that were given instead, if some were.
    pub(crate) fn with_given<M: Module>(&self, number: usize, drawn: M) -> M {
        match &self.weights {
            Some(given) => given.put(drawn, &format!("{number}.")),
            None => drawn,
        }
    }

    /// The steps of an epoch in which every worker trains the nodes that it owns; one without
    /// mini-batches.
    pub fn steps(&self) -> Steps {
        let size = |batches: &Arc<Batches>| batches.spec.size;
        let training = self.counts.parts.iter().map(|part| part.training);
        Steps::new(
            self.batches.as_ref().map_or(usize::MAX, size),
            training.collect(),
        )
    }

    /// The steps of an epoch in mini-batches, and the fewer that there would be if every worker had
    /// as many training nodes; none if they are as many.
    pub(crate) fn uneven_steps(&self) -> Option<[usize; 2]> {
        let size = self.batches.as_ref()?.spec.size;
        let each = self.training_nodes().div_ceil(self.workers());
        let [steps, equal] = [self.steps(), Steps::new(size, vec![each])].map(|all| all.count());
        (steps > equal).then_some([steps, equal])
    }

    /// The graph on which models are scored.
    pub(crate) fn scored(&self) -> &Arc<Dataset> {
        self.unseen.as_ref().unwrap_or(&self.dataset)
    }

    /// What the model predicts of a node.
    pub fn task(&self) -> Task {
        self.dataset.task()
    }

    /// Whether the graph itself is here, and not its counts alone.
    pub(crate) fn holds_graph(&self) -> bool {
        // A data set that is known in numbers comes with a graph of no nodes.
        self.dataset.graph.nodes() == self.counts.nodes
    }

    /// Nodes that train, of all workers.
    pub fn training_nodes(&self) -> usize {
        self.counts.parts.iter().map(|part| part.training).sum()
    }

    /// Undirected edges between nodes of different workers.
    pub fn edge_cut(&self) -> usize {
        let cut = self.counts.parts.iter().map(|part| part.cut_edges);
        cut.sum::<usize>() / 2
    }

    /// Bytes that a worker holds at most where its plan says this of what it holds: edges of own
    /// nodes with their numbers; their features, if they are in no pass; parameters with gradient
    /// and two moments of an optimiser, and what else goes from step to step.
    pub(crate) fn holds(&self, rank: usize, memory: Memory) -> u64 {
        self.holds_beside_a_pass(rank, memory) + memory.pass + memory.ahead
    }

    /// The same without a pass.
    pub(super) fn holds_beside_a_pass(&self, rank: usize, memory: Memory) -> u64 {
        let part = &self.counts.parts[rank];
        let features = if memory.reads_features {
            0
        } else {
            self.feature_bytes(rank)
        };
        let edges = part.internal_edges + part.cut_edges;
        // Of each row its number and its degree; of each edge its column.
        let words = 2 * (part.owned + part.halo) + edges + 4 * self.model.parameters();
        features + 4 * words as u64 + memory.kept + memory.learner
    }

    /// Bytes of the features of a worker's own nodes.
    pub fn feature_bytes(&self, rank: usize) -> u64 {
        self.bytes_of_values(self.counts.parts[rank].own_values)
    }

    /// Bytes of so many feature values as they are held.
    pub(super) fn bytes_of_values(&self, values: usize) -> u64 {
        // A sparse value has its column's number beside it.
        let value = if self.counts.dense {
            self.dataset.features.value_bytes()
        } else {
            8
        };
        (value * values) as u64
    }

    /// The network of the run, for engines.
    pub fn cluster(&self) -> Cluster {
        Cluster {
            topology: Arc::clone(&self.topology),
            framing: self.framing,
            all_reduce: self.all_reduce.clone(),
            exchange: self.exchange,
            timeline_epochs: self.timeline_epochs,
        }
    }

    /// Whether computing takes the time of a device profile, so that its work matters.
    pub const fn models_compute(&self) -> bool {
        matches!(self.timing, ComputeTiming::Modelled(_))
    }
}

/// What one worker holds: its nodes, its piece of the graph, and the boundary.
///
/// Local rows are the owned nodes first, in ascending global order, then the halo, grouped by
/// owner.
#[derive(Clone, Debug)]
pub struct Shard {
    /// Global numbers of the owned nodes and then of the halo, `[owned + halo]`.
    pub nodes: Vec<u32>,
    /// Number of owned nodes.
    pub owned: usize,
    /// The row that each node of the halo has at its owner, `[halo]`.
    pub halo_rows: Vec<u32>,
    /// For each worker that needs some, the owned rows it needs.
    pub sends: Peers<Vec<u32>>,
    /// For each worker whose rows are in the halo, where.
    pub receives: Peers<Range<usize>>,
    /// In-neighbours of the owned nodes as local rows, `[owned, owned + halo]`.
    pub adjacency: Csr,
    /// Degrees in the whole graph, `[owned + halo]`.
    pub degrees: Vec<usize>,
    /// Features of the owned nodes.
    pub features: Features,
    /// What is known of the owned nodes.
    pub labels: Labels,
    /// Owned rows that train.
    pub train: Vec<u32>,
    /// Owned rows of the validation set.
    pub validation: Vec<u32>,
    /// Owned rows of the test set.
    pub test: Vec<u32>,
}

impl Shard {
    /// The shard of worker `rank`, cut from the graph or read from its folder.
    ///
    /// # Errors
    /// If a file of it is missing or damaged.
    pub fn new(setting: &Setting, rank: usize) -> Result<Self, SimError> {
        let data = match &setting.shards {
            Some(shards) => shards
                .part(rank)
                .map_err(|error| SimError::Input(error.to_string()))?,
            None => PartData::cut(&setting.dataset, &setting.boundary.parts[rank]),
        };
        let part = data.part;
        let (owned, mut nodes) = (part.owned.len(), part.owned);
        nodes.extend(&part.halo);
        Ok(Self {
            nodes,
            owned,
            halo_rows: part.halo_rows,
            sends: part.sends,
            receives: part.receives,
            adjacency: data.adjacency,
            degrees: data.degrees,
            features: data.features,
            labels: data.labels,
            train: data.split.train,
            validation: data.split.validation,
            test: data.split.test,
        })
    }

    /// Number of halo rows.
    pub const fn halo(&self) -> usize {
        self.nodes.len() - self.owned
    }

    /// The owned part of the graph alone: cut edges dropped, degrees counted within.
    pub fn without_halo(&self) -> (Csr, Vec<usize>) {
        let owned: Vec<u32> = (0_u32..).take(self.owned).collect();
        let graph = self.adjacency.induced(&owned);
        let degrees = (0..self.owned).map(|v| graph.degree(v)).collect();
        (graph, degrees)
    }
}
