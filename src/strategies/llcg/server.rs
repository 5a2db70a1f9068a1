//! The server that has the whole graph: it corrects the mean of the models.

use crate::graph::Csr;
use crate::model::{Block, Gnn, Input, Optimizer, Work, mean_targets};
use crate::net::{Message, Outbox, TrafficKind, f32_bytes, to_bytes};
use crate::sim::{Activity, Setting, SimError, Track, Worker};
use crate::strategies::parts::chunks::{Carried, Chunk, chunk_bytes};
use crate::strategies::parts::server::{SERVER, others, plan_to_server, unpacked};
use crate::strategies::parts::{LayerwiseTrainer, LocalGraph};

/// What a worker does in [`Server::new`]: its structure and its features travel.
pub(super) fn plan_gathering(track: &mut Track, setting: &Setting, rank: usize) {
    let (counts, width) = (&setting.counts, setting.model.features());
    let part = &counts.parts[rank];
    let edges = part.internal_edges + part.cut_edges;
    track.compute(Work::pass(part.owned * width + edges));
    let structure = chunk_bytes(part.owned, edges, 0, Carried::of_labels(setting.task()));
    let features = f32_bytes(part.owned * width);
    for (kind, bytes) in [
        (TrafficKind::Repartition, structure),
        (TrafficKind::Feature, features),
    ] {
        plan_to_server(track, kind, rank, counts.workers(), bytes);
    }
    if rank == SERVER {
        track.compute(Work::pass(counts.nodes * width + counts.edges));
    }
}

/// What the server trains on.
pub(super) struct Server {
    trainer: LayerwiseTrainer,
    features: Input,
    optimizer: Optimizer,
}

impl Server {
    /// Sends a worker's part of the graph to the server, which puts them together; none on the
    /// other workers.
    ///
    /// # Errors
    /// If communication fails.
    pub(super) fn new(
        worker: &mut Worker,
        learning_rate: Option<f64>,
    ) -> Result<Option<Self>, SimError> {
        let rank = worker.rank();
        let carried = Carried::of_labels(worker.setting().task());
        let (own, payloads) = worker.compute(Activity::Exchange, |worker| {
            let shard = worker.shard();
            let rows: Vec<u32> = (0_u32..).take(shard.owned).collect();
            let mut own = Chunk::of(shard, &rows, |_| true, carried, &[]);
            // Features are another kind of traffic than structure, and so a message of their own.
            let features = to_bytes(&std::mem::take(&mut own.features));
            let mut structure = Vec::new();
            own.encode(carried, &mut structure);
            (own, [structure, features])
        });
        let kinds = [TrafficKind::Repartition, TrafficKind::Feature];
        let mut inboxes = Vec::with_capacity(kinds.len());
        for (kind, payload) in kinds.into_iter().zip(payloads) {
            let mut outbox = Outbox::new(kind, 0);
            if rank == SERVER {
                outbox.expect = others(&vec![true; worker.size()]);
            } else {
                let peer = SERVER;
                outbox.messages.push(Message { peer, payload });
            }
            inboxes.push(worker.exchange(outbox)?);
        }
        if rank != SERVER {
            return Ok(None);
        }
        let width = worker.shard().features.width();
        let (graph, features) = worker.compute(Activity::Exchange, |worker| {
            let mut parts = vec![own];
            // Both inboxes are in ascending order of workers.
            for (structure, features) in inboxes[0].iter().zip(&inboxes[1]) {
                let count = worker.setting().boundary.parts[structure.peer].owned.len();
                let mut chunk = Chunk::decode(&mut &structure.payload[..], count, 0, carried)?;
                chunk.features = unpacked(features, count * width)?;
                parts.push(chunk);
            }
            Ok::<_, SimError>(whole(worker, parts))
        })?;
        let config = worker.setting().optimizer;
        let config = learning_rate.map_or(config, |rate| config.with_learning_rate(rate));
        Ok(Some(Self {
            trainer: LayerwiseTrainer::new(worker, graph),
            features,
            optimizer: Optimizer::new(&config),
        }))
    }

    /// The model after one step, and the loss before it; `round` is the number of the step in the
    /// training, for dropout.
    ///
    /// # Errors
    /// If the step fails.
    pub(super) fn step(
        &mut self,
        worker: &mut Worker,
        model: Gnn,
        round: usize,
    ) -> Result<(Gnn, f64), SimError> {
        let Self {
            trainer,
            features,
            optimizer,
        } = self;
        let step = trainer.local_step(worker, &model, features, round)?;
        let model = worker.update(optimizer, model, &step.gradient);
        Ok((model, step.loss))
    }
}

/// The whole graph from the parts of all workers, in their order; nodes in ascending order, as the
/// experiment has them.
fn whole(worker: &Worker, parts: Vec<Chunk>) -> (LocalGraph, Input) {
    let boundary = &worker.setting().boundary;
    let count = boundary.nodes;
    let mut features = worker.shard().features.clone(); // the server's own are the first
    // Features stand part after part; `order` says where the row of each node is among them.
    let mut order = vec![0_u32; count];
    let mut degrees = vec![0; count];
    let mut labels = vec![None; count];
    let mut edges = Vec::with_capacity(boundary.edges);
    let mut row = 0_u32..;
    // In the order of workers, of whom the server is the first.
    for (rank, chunk) in parts.into_iter().enumerate() {
        if rank != SERVER {
            features.append(&chunk.features);
        }
        let sources = chunk.sources.into_iter().zip(chunk.degrees);
        let carried = sources.zip(chunk.labels);
        for (&node, ((sources, degree), label)) in boundary.parts[rank].owned.iter().zip(carried) {
            let v = node as usize;
            order[v] = row.next().unwrap_or(u32::MAX);
            (degrees[v], labels[v]) = (degree as usize, label);
            edges.extend(sources.into_iter().map(|u| (u, node)));
        }
    }
    let graph = Csr::from_edges(count, edges.iter().copied());
    let (labelled, training) = (labels.into_iter().enumerate(), worker.training_nodes());
    let (setting, place) = (worker.setting(), worker.place());
    let local = LocalGraph {
        block: Block::new(&graph, &degrees, setting.model.aggregation()),
        upper: None,
        nodes: (0_u32..).take(count).collect(),
        targets: mean_targets(count, setting.task(), labelled, training, place),
    };
    let features = Input::from_features(features.select(&order), place);
    (local, features)
}
