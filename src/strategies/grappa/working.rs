//! The graph a worker trains on: the chunks it holds, and their halo.

use serde::{Deserialize, Serialize};

use super::layout::Layout;
use crate::graph::{Csr, Features, Label};
use crate::net::{Inbox, Message, Outbox, TrafficKind};
use crate::sim::{Activity, Shard, SimError, Worker};
use crate::strategies::parts::chunks::{
    Chunk, decode_halo, encode_halo, label, local_adjacency, sources,
};

/// A working partition.
pub(super) struct WorkingGraph {
    /// Global numbers: own chunks, other chunks, halo.
    pub nodes: Vec<u32>,
    /// Number of nodes with in-edges: those of chunks.
    pub inner: usize,
    /// In-neighbours as rows of `nodes`; none for the halo.
    pub adjacency: Csr,
    /// Degrees in the whole graph.
    pub degrees: Vec<usize>,
    /// The nodes that train here.
    pub seeds: Vec<Seed>,
}

/// A node that trains.
#[derive(Clone, Debug)]
pub(super) struct Seed {
    /// Its row in the working graph.
    pub row: usize,
    /// Its class or labels.
    pub label: Label,
    /// What its coverage is on average over super-epochs; 1 if nobody asks.
    pub expected: f64,
}

/// Nodes that another worker owns, with their degrees and dense features, `[nodes, width]`.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct HaloRows {
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

    /// Appends rows as they travel.
    fn take(&mut self, bytes: &[u8], nodes: &[u32], width: usize) -> Result<(), SimError> {
        let (degrees, features) = decode_halo(bytes, nodes.len(), width)?;
        self.nodes.extend(nodes);
        self.degrees.extend(degrees);
        self.features.extend(features);
        Ok(())
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

/// Loads working graphs, and keeps what stays from one to the next.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Loader {
    /// Expected coverage of the worker's nodes; empty if nobody asks.
    pub expected: Vec<f32>,
    base_halo: HaloRows,
    chunks: Vec<(usize, Chunk)>,
}

impl Loader {
    /// Moves what a switch moves, and returns the halo rows that came.
    ///
    /// # Errors
    /// If communication fails.
    pub(super) fn switch(
        &mut self,
        worker: &mut Worker,
        layout: &Layout,
    ) -> Result<HaloRows, SimError> {
        let outbox = worker.compute(Activity::Exchange, |worker| self.pack(worker, layout));
        let inbox = worker.exchange(outbox)?;
        worker.compute(Activity::Exchange, |worker| {
            let arrived = self.unpack(worker, layout, &inbox)?;
            if layout.brings_what_is_kept() {
                self.keep_base_halo(worker, layout, &arrived);
            }
            Ok(arrived)
        })
    }

    /// The chunks that are held now, with the halo rows among what is kept, what `arrived`, and
    /// what is the worker's own; and the features of their nodes.
    pub(super) fn assemble(
        &self,
        worker: &Worker,
        layout: &Layout,
        arrived: &HaloRows,
    ) -> (WorkingGraph, Features) {
        let (shard, rank) = (worker.shard(), worker.rank());
        let width = shard.features.width();
        let own = layout
            .held(rank)
            .iter()
            .filter(|&&chunk| layout.home(chunk) == rank);
        let mut nodes: Vec<u32> = own
            .flat_map(|&chunk| layout.part(chunk).owned.clone())
            .collect();
        nodes.sort_unstable();
        let rows = own_rows(shard, &nodes);
        let mut degrees: Vec<usize> = rows
            .iter()
            .map(|&row| shard.degrees[row as usize])
            .collect();
        let mut edges: Vec<Vec<u32>> = rows.iter().map(|&row| sources(shard, row)).collect();
        let mut features = shard.features.select(&rows);
        let mut seeds = Vec::new();
        let mut train = |row: usize, label: Option<Label>, expected: Option<&f32>| {
            let expected = expected.map_or(1.0, |&expected| f64::from(expected));
            seeds.extend(label.map(|label| Seed {
                row,
                label,
                expected,
            }));
        };
        for (place, &row) in rows.iter().enumerate() {
            train(place, label(shard, row), self.expected.get(row as usize));
        }
        for (number, chunk) in &self.chunks {
            for (place, label) in chunk.labels.iter().enumerate() {
                train(
                    nodes.len() + place,
                    label.clone(),
                    chunk.expected.get(place),
                );
            }
            nodes.extend(&layout.part(*number).owned);
            degrees.extend(chunk.degrees.iter().map(|&degree| degree as usize));
            edges.extend_from_slice(&chunk.sources);
        }
        let inner = nodes.len();
        let mut held = nodes.clone();
        held.sort_unstable();
        let local = own_halo(worker, layout);
        let halo = [&self.base_halo, arrived, &local];
        let mut order: Vec<(u32, usize, usize)> = Vec::new();
        for (source, rows) in halo.iter().enumerate() {
            let outer = rows.nodes.iter().enumerate();
            let outer = outer.filter(|(_, node)| held.binary_search(node).is_err());
            order.extend(outer.map(|(place, &node)| (node, source, place)));
        }
        order.sort_unstable();
        order.dedup_by_key(|(node, ..)| *node);
        features.reserve(inner - rows.len() + order.len());
        for (_, chunk) in &self.chunks {
            features.append(&chunk.features);
        }
        for (_, source, place) in order {
            let (node, degree, row) = halo[source].row(place, width);
            nodes.push(node);
            degrees.push(degree as usize);
            features.append(row);
        }
        let graph = WorkingGraph {
            inner,
            adjacency: local_adjacency(&nodes, &edges),
            degrees,
            nodes,
            seeds,
        };
        (graph, features)
    }

    /// What this worker sends at a switch, and from whom it will hear.
    fn pack(&self, worker: &Worker, layout: &Layout) -> Outbox {
        let (rank, shard) = (worker.rank(), worker.shard());
        let width = shard.features.width();
        let mut outbox = Outbox::new(TrafficKind::Repartition, 0);
        for peer in (0..worker.size()).filter(|&peer| peer != rank) {
            let mut payload = Vec::new();
            for chunk in layout.fetched(rank, peer) {
                let members = &layout.part(chunk).owned;
                let keep = |u: u32| layout.all_edges() || members.binary_search(&u).is_ok();
                let rows = own_rows(shard, members);
                Chunk::of(shard, &rows, keep, layout.carried(), &self.expected)
                    .encode(layout.carried(), &mut payload);
            }
            encode_halo(
                shard,
                &own_rows(shard, &layout.halo(rank, peer)),
                &mut payload,
            );
            if !payload.is_empty() {
                outbox.messages.push(Message { peer, payload });
            }
            if layout.payload(width, peer, rank).is_some() {
                outbox.expect.push(peer);
            }
        }
        outbox
    }

    /// The other end of [`Self::pack`]: keeps the chunks and returns the halo rows.
    fn unpack(
        &mut self,
        worker: &Worker,
        layout: &Layout,
        inbox: &Inbox,
    ) -> Result<HaloRows, SimError> {
        let (rank, width) = (worker.rank(), worker.shard().features.width());
        let mut arrived = HaloRows::default();
        self.chunks.clear();
        for message in inbox {
            let mut bytes = &message.payload[..];
            for chunk in layout.fetched(message.peer, rank) {
                let nodes = layout.part(chunk).owned.len();
                let decoded = Chunk::decode(&mut bytes, nodes, width, layout.carried())?;
                self.chunks.push((chunk, decoded));
            }
            arrived.take(bytes, &layout.halo(message.peer, rank), width)?;
        }
        self.chunks.sort_unstable_by_key(|(chunk, _)| *chunk);
        Ok(arrived)
    }

    /// Keeps the halo of the base chunks, which came partly with the variable chunk.
    fn keep_base_halo(&mut self, worker: &Worker, layout: &Layout, arrived: &HaloRows) {
        let width = worker.shard().features.width();
        let mut base = worker.setting().boundary.parts[worker.rank()].halo.clone();
        base.sort_unstable();
        let in_base = |node: u32| base.binary_search(&node).is_ok();
        self.base_halo = arrived.filtered(width, in_base);
        for (number, chunk) in &self.chunks {
            let members = layout.part(*number).owned.iter().enumerate();
            for (row, &node) in members.filter(|(_, node)| in_base(**node)) {
                let features = &chunk.features[row * width..][..width];
                self.base_halo.push(node, chunk.degrees[row], features);
            }
        }
    }
}

/// Fetches an epoch's share of the halo.
///
/// # Errors
/// If communication fails.
pub(super) fn sample(
    worker: &mut Worker,
    layout: &Layout,
    epoch: usize,
) -> Result<HaloRows, SimError> {
    let (rank, seed) = (worker.rank(), worker.setting().seed);
    let width = worker.shard().features.width();
    let peers: Vec<usize> = (0..worker.size()).filter(|&peer| peer != rank).collect();
    let mut outbox = Outbox::new(TrafficKind::Feature, 0);
    outbox.messages = worker.compute(Activity::Exchange, |worker| {
        let sampled = peers.iter().map(|&peer| {
            let mut payload = Vec::new();
            let nodes = layout.sampled(rank, peer, seed, epoch);
            encode_halo(
                worker.shard(),
                &own_rows(worker.shard(), &nodes),
                &mut payload,
            );
            Message { peer, payload }
        });
        sampled
            .filter(|message| !message.payload.is_empty())
            .collect()
    });
    let sends = |&peer: &usize| layout.sampled_payload(width, peer, rank).is_some();
    outbox.expect = peers.iter().copied().filter(sends).collect();
    let inbox = worker.exchange(outbox)?;
    worker.compute(Activity::Exchange, |_| {
        let mut arrived = HaloRows::default();
        for message in &inbox {
            let nodes = layout.sampled(message.peer, rank, seed, epoch);
            arrived.take(&message.payload, &nodes, width)?;
        }
        Ok(arrived)
    })
}

/// Halo rows that the worker stores itself, because it trains other chunks than its own.
fn own_halo(worker: &Worker, layout: &Layout) -> HaloRows {
    let (shard, rank, rules) = (worker.shard(), worker.rank(), layout.rules());
    let mut rows = HaloRows::default();
    if rules.halo || rules.sampling > 0.0 {
        rows.nodes = layout.surroundings(rank, rank);
        let own = own_rows(shard, &rows.nodes);
        let degree = |&row: &u32| u32::try_from(shard.degrees[row as usize]).unwrap_or(u32::MAX);
        rows.degrees = own.iter().map(degree).collect();
        rows.features = shard.features.dense_rows(&own);
    }
    rows
}

/// Rows of global nodes that the worker owns.
fn own_rows(shard: &Shard, nodes: &[u32]) -> Vec<u32> {
    let owned = &shard.nodes[..shard.owned];
    let row = |node: &u32| owned.binary_search(node).ok();
    nodes
        .iter()
        .filter_map(row)
        .map(|row| u32::try_from(row).unwrap_or(u32::MAX))
        .collect()
}
