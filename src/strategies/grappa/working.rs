//! The graph a worker trains on between two switches: its base chunk, its variable chunk, and their halo.

use super::chunks::{
    Chunk, Switch, decode_halo, encode_halo, local_adjacency, sources, variable_chunk,
};
use crate::graph::{Csr, Features};
use crate::model::Work;
use crate::net::{Message, Outbox, TrafficKind};
use crate::sim::{Activity, SimError, Worker};

/// A working partition.
pub struct WorkingGraph {
    /// Global numbers: base chunk, variable chunk, halo.
    pub nodes: Vec<u32>,
    /// Number of nodes with in-edges: base and variable chunk.
    pub inner: usize,
    /// In-neighbours as rows of `nodes`; none for the halo.
    pub adjacency: Csr,
    /// Degrees in the whole graph.
    pub degrees: Vec<usize>,
    /// Features of `nodes`.
    pub features: Features,
}

/// Nodes that another worker owns, with their degrees and dense features, `[nodes, width]`.
#[derive(Default)]
struct HaloRows {
    nodes: Vec<u32>,
    degrees: Vec<u32>,
    features: Vec<f32>,
}

impl HaloRows {
    fn push(&mut self, node: u32, degree: u32, features: &[f32]) {
        self.nodes.push(node);
        self.degrees.push(degree);
        self.features.extend_from_slice(features);
    }

    fn row(&self, place: usize, width: usize) -> (u32, u32, &[f32]) {
        let features = &self.features[place * width..][..width];
        (self.nodes[place], self.degrees[place], features)
    }

    /// The rows of nodes that `keep` wants.
    fn filtered(&self, width: usize, keep: impl Fn(u32) -> bool) -> Self {
        let mut kept = Self::default();
        for place in (0..self.nodes.len()).filter(|&place| keep(self.nodes[place])) {
            let (node, degree, features) = self.row(place, width);
            kept.push(node, degree, features);
        }
        kept
    }
}

/// What arrived at a switch.
#[derive(Default)]
struct Arrived {
    /// The variable chunk.
    chunk: Option<Chunk>,
    /// Halo rows, in the order of their senders.
    halo: HaloRows,
}

/// Loads working graphs, and keeps what stays from one to the next.
#[derive(Default)]
pub struct Loader {
    base_halo: HaloRows,
}

impl Loader {
    /// Moves what this switch moves and puts the new working graph together.
    ///
    /// # Errors
    /// If communication fails.
    pub fn switch(
        &mut self,
        worker: &mut Worker,
        switch: Switch,
    ) -> Result<WorkingGraph, SimError> {
        let width = worker.shard().features.width();
        let size = |bytes: usize| Work::pass(bytes / 4);
        let owned = size(4 * worker.shard().owned * width);
        let outbox = worker.compute(Activity::Exchange, owned, |worker| pack(worker, switch));
        let inbox = worker.exchange(outbox)?;
        let bytes = inbox.iter().map(|message| message.payload.len()).sum();
        worker.compute(Activity::Exchange, owned + size(bytes), |worker| {
            let arrived = unpack(worker, switch, &inbox)?;
            if switch.super_epoch == 0 {
                let base = &worker.setting().boundary.parts[worker.rank()].halo;
                let mut base = base.clone();
                base.sort_unstable();
                let in_base = |node: u32| base.binary_search(&node).is_ok();
                self.base_halo = arrived.halo.filtered(width, in_base);
            }
            Ok(self.assemble(worker, switch, arrived))
        })
    }

    /// Base chunk, variable chunk, and the halo of both.
    fn assemble(&self, worker: &Worker, switch: Switch, arrived: Arrived) -> WorkingGraph {
        let (shard, setting) = (worker.shard(), worker.setting());
        let width = shard.features.width();
        let variable = variable_chunk(worker.rank(), worker.size(), switch.super_epoch);
        let mut nodes = shard.nodes[..shard.owned].to_vec();
        let mut degrees = shard.degrees[..shard.owned].to_vec();
        let mut sources = sources(shard, true);
        let mut features = shard.features.clone();
        if let (Some(variable), Some(chunk)) = (variable, arrived.chunk) {
            let members = &setting.boundary.parts[variable].owned;
            let mut chunk_sources = chunk.sources;
            // Bridge edges from the base chunk are known here: graphs are stored in both directions.
            for (&node, base_sources) in nodes.iter().zip(&sources) {
                for source in base_sources {
                    if let Ok(row) = members.binary_search(source) {
                        chunk_sources[row].push(node);
                    }
                }
            }
            for row in &mut chunk_sources {
                row.sort_unstable();
                row.dedup();
            }
            nodes.extend(members);
            degrees.extend(chunk.degrees.iter().map(|&degree| degree as usize));
            sources.extend(chunk_sources);
            features.append(&chunk.features);
        }
        let inner = nodes.len();
        let parts = [worker.rank(), variable.unwrap_or(worker.rank())];
        let is_inner = |node: u32| {
            let part = setting.partition.assignment[node as usize] as usize;
            parts.contains(&part)
        };
        let halo = [&self.base_halo, &arrived.halo];
        let mut order: Vec<(u32, usize, usize)> = Vec::new();
        for (source, rows) in halo.iter().enumerate() {
            let outer = rows
                .nodes
                .iter()
                .enumerate()
                .filter(|(_, n)| !is_inner(**n));
            order.extend(outer.map(|(place, &node)| (node, source, place)));
        }
        order.sort_unstable();
        order.dedup_by_key(|(node, ..)| *node);
        for (_, source, place) in order {
            let (node, degree, row) = halo[source].row(place, width);
            nodes.push(node);
            degrees.push(degree as usize);
            features.append(row);
        }
        WorkingGraph {
            inner,
            adjacency: local_adjacency(nodes.len(), &nodes, &sources),
            degrees,
            features,
            nodes,
        }
    }
}

/// What this worker sends at a switch, and from whom it will hear.
fn pack(worker: &Worker, switch: Switch) -> Outbox {
    let (rank, size) = (worker.rank(), worker.size());
    let (shard, boundary) = (worker.shard(), &worker.setting().boundary);
    let width = shard.features.width();
    let mut outbox = Outbox::new(TrafficKind::Repartition, 0);
    let mut chunk: Option<Vec<u8>> = None;
    for peer in (0..size).filter(|&peer| peer != rank) {
        if variable_chunk(peer, size, switch.super_epoch) == Some(rank) {
            let chunk = chunk.get_or_insert_with(|| Chunk::of(shard, switch.halo).encode());
            outbox.messages.push(Message {
                peer,
                payload: chunk.clone(),
            });
        } else {
            let rows = switch.halo_rows(boundary, rank, peer);
            if !rows.is_empty() {
                outbox.messages.push(Message {
                    peer,
                    payload: encode_halo(shard, &rows),
                });
            }
        }
        if switch.payload(boundary, width, peer, rank).is_some() {
            outbox.expect.push(peer);
        }
    }
    outbox
}

/// The other end of [`pack`].
fn unpack(worker: &Worker, switch: Switch, inbox: &[Message]) -> Result<Arrived, SimError> {
    let (rank, size) = (worker.rank(), worker.size());
    let boundary = &worker.setting().boundary;
    let width = worker.shard().features.width();
    let variable = variable_chunk(rank, size, switch.super_epoch);
    let mut arrived = Arrived::default();
    for message in inbox {
        let owned = &boundary.parts[message.peer].owned;
        if variable == Some(message.peer) {
            let chunk = Chunk::decode(&message.payload, owned.len(), width)?;
            if switch.super_epoch == 0 && switch.halo {
                for &row in &boundary.parts[message.peer].sends[rank] {
                    let row = row as usize;
                    let features = &chunk.features[row * width..][..width];
                    arrived.halo.push(owned[row], chunk.degrees[row], features);
                }
            }
            arrived.chunk = Some(chunk);
        } else {
            let rows = switch.halo_rows(boundary, message.peer, rank);
            let (degrees, features) = decode_halo(&message.payload, rows.len(), width)?;
            for (place, &row) in rows.iter().enumerate() {
                let features = &features[place * width..][..width];
                arrived
                    .halo
                    .push(owned[row as usize], degrees[place], features);
            }
        }
    }
    Ok(arrived)
}
