//! The server: it has the whole graph, averages models and corrects their mean.

use crate::graph::{Csr, Task};
use crate::model::{
    Block, Gnn, Input, Optimizer, Work, mean_targets, parameter_count, parameters, with_parameters,
};
use crate::net::{Bytes, Message, Outbox, TrafficKind, f32_bytes, floats, to_bytes};
use crate::sim::{Activity, Setting, SimError, Track, Worker};
use crate::strategies::parts::chunks::{Carried, Chunk, chunk_bytes};
use crate::strategies::parts::plan::exchange_of;
use crate::strategies::parts::{LayerwiseTrainer, LocalGraph};

/// The worker that is the server as well.
pub const SERVER: usize = 0;

/// What travels of each node besides its degree, edges and features.
const fn carried(task: Task) -> Carried {
    Carried {
        labels: Some(task),
        expected: false,
    }
}

/// What a worker does in [`Server::new`]: its structure and its features travel.
pub fn plan_gathering(track: &mut Track, setting: &Setting, rank: usize) {
    let (counts, width) = (&setting.counts, setting.model.features());
    let part = &counts.parts[rank];
    let edges = part.internal_edges + part.cut_edges;
    track.compute(Work::pass(part.owned * width + edges));
    let structure = chunk_bytes(part.owned, edges, 0, carried(setting.task()));
    let features = f32_bytes(part.owned * width);
    for (kind, bytes) in [
        (TrafficKind::Repartition, structure),
        (TrafficKind::Feature, features),
    ] {
        to_server(track, kind, rank, counts.workers(), bytes);
    }
    if rank == SERVER {
        track.compute(Work::pass(counts.nodes * width + counts.edges));
    }
}

/// What a worker does in [`average`].
pub fn plan_average(track: &mut Track, rank: usize, workers: usize, parameters: usize) {
    if rank != SERVER {
        track.compute(Work::pass(parameters)); // packing
    }
    to_server(
        track,
        TrafficKind::Parameter,
        rank,
        workers,
        f32_bytes(parameters),
    );
    if rank == SERVER {
        track.compute(Work::pass(parameters * workers));
    }
}

/// What a worker does in [`hand_out`].
pub fn plan_handing_out(track: &mut Track, rank: usize, workers: usize, parameters: usize) {
    let kind = TrafficKind::Parameter;
    if rank == SERVER {
        let peers = 1..workers as u32;
        peers
            .clone()
            .for_each(|_| track.compute(Work::pass(parameters)));
        let to = peers.map(|peer| (peer, f32_bytes(parameters))).collect();
        track.exchange(exchange_of(kind, 0, to, Vec::new()));
    } else {
        track.exchange(exchange_of(kind, 0, Vec::new(), vec![SERVER as u32]));
        track.compute(Work::pass(parameters));
    }
}

/// A message of everybody else to the server.
fn to_server(track: &mut Track, kind: TrafficKind, rank: usize, workers: usize, bytes: Bytes) {
    let (to, from) = if rank == SERVER {
        (Vec::new(), (1..workers as u32).collect())
    } else {
        (vec![(SERVER as u32, bytes)], Vec::new())
    };
    track.exchange(exchange_of(kind, 0, to, from));
}

/// What the server trains on.
pub struct Server {
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
    pub fn new(worker: &mut Worker, learning_rate: Option<f64>) -> Result<Option<Self>, SimError> {
        let rank = worker.rank();
        let carried = carried(worker.setting().task());
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
                outbox.expect = others(worker);
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
    pub fn step(
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

/// On the server the mean of all models, weighted by training nodes; elsewhere the worker's own.
///
/// # Errors
/// If communication fails.
pub fn average(worker: &mut Worker, model: Gnn) -> Result<Gnn, SimError> {
    let mut outbox = Outbox::new(TrafficKind::Parameter, 0);
    if worker.rank() != SERVER {
        outbox.messages.push(packed(worker, &model, SERVER));
        worker.exchange(outbox)?;
        return Ok(model);
    }
    outbox.expect = others(worker);
    let inbox = worker.exchange(outbox)?;
    worker.compute(Activity::Exchange, |worker| {
        let all = worker.training_nodes() as f64;
        let parts = &worker.setting().boundary.parts;
        let share = |rank: usize| parts[rank].training as f64 / all;
        // In double precision, so that the mean is rounded once.
        let mut mean: Vec<f64> = parameters(&model)
            .into_iter()
            .map(|value| share(SERVER) * f64::from(value))
            .collect();
        for message in &inbox {
            let values = unpacked(message, mean.len())?;
            for (sum, value) in mean.iter_mut().zip(values) {
                *sum += share(message.peer) * f64::from(value);
            }
        }
        let mean: Vec<f32> = mean.into_iter().map(|value| value as f32).collect();
        Ok(with_parameters(model, &mean))
    })
}

/// The server's model, on all workers.
///
/// # Errors
/// If communication fails.
pub fn hand_out(worker: &mut Worker, model: Gnn) -> Result<Gnn, SimError> {
    let mut outbox = Outbox::new(TrafficKind::Parameter, 0);
    if worker.rank() == SERVER {
        let peers = others(worker).into_iter();
        outbox.messages = peers.map(|peer| packed(worker, &model, peer)).collect();
        worker.exchange(outbox)?;
        return Ok(model);
    }
    outbox.expect = vec![SERVER];
    let inbox = worker.exchange(outbox)?;
    let count = parameter_count(&model);
    worker.compute(Activity::Exchange, |_| {
        let values = unpacked(&inbox[0], count)?; // one message was expected
        Ok(with_parameters(model, &values))
    })
}

/// A model on its way to `peer`.
fn packed(worker: &mut Worker, model: &Gnn, peer: usize) -> Message {
    worker.compute(Activity::Exchange, |_| Message {
        peer,
        payload: to_bytes(&parameters(model)),
    })
}

/// So many numbers as they arrived.
fn unpacked(message: &Message, count: usize) -> Result<Vec<f32>, SimError> {
    let values: Vec<f32> = floats(&message.payload).collect();
    if values.len() == count {
        return Ok(values);
    }
    Err(SimError::Strategy(
        "a message of another size arrived".to_owned(),
    ))
}

/// All workers but the server's.
fn others(worker: &Worker) -> Vec<usize> {
    (0..worker.size()).filter(|&peer| peer != SERVER).collect()
}
