//! The graph a worker trains on between two switches: its base chunk, its variable chunk, and their halo.

use std::collections::BTreeMap;

use super::chunks::{
    Chunk, Switch, decode_halo, dense_rows, encode_halo, local_adjacency, variable_chunk,
};
use crate::graph::{Csr, Features};
use crate::net::{Message, Outbox, TrafficKind};
use crate::sim::{SimError, Worker};

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

/// Degree and features of a node that another worker owns.
type HaloRow = (u32, Vec<f32>);

/// Loads working graphs, and keeps what stays from one to the next.
#[derive(Default)]
pub struct Loader {
    base_halo: BTreeMap<u32, HaloRow>,
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
        let (rank, size) = (worker.rank(), worker.size());
        let boundary = &worker.setting().boundary.clone();
        let shard = worker.shard();
        let width = shard.features.width();
        let mut outbox = Outbox::new(TrafficKind::Repartition, 0);
        let mut own_chunk: Option<Vec<u8>> = None;
        for peer in (0..size).filter(|&peer| peer != rank) {
            if variable_chunk(peer, size, switch.super_epoch) == Some(rank) {
                let payload =
                    own_chunk.get_or_insert_with(|| Chunk::of(shard, switch.halo).encode());
                outbox.messages.push(Message {
                    peer,
                    payload: payload.clone(),
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
        let inbox = worker.exchange(outbox)?;

        let variable = variable_chunk(rank, size, switch.super_epoch);
        let mut chunk = None;
        let mut fresh: BTreeMap<u32, HaloRow> = BTreeMap::new();
        for message in inbox {
            let owned = &boundary.parts[message.peer].owned;
            let mut keep = |row: u32, degree: u32, features: &[f32]| {
                fresh.insert(owned[row as usize], (degree, features.to_vec()));
            };
            if variable == Some(message.peer) {
                let arrived = Chunk::decode(&message.payload, owned.len(), width)?;
                if switch.super_epoch == 0 && switch.halo {
                    for &row in &boundary.parts[message.peer].sends[rank] {
                        let features = &arrived.features[row as usize * width..][..width];
                        keep(row, arrived.degrees[row as usize], features);
                    }
                }
                chunk = Some(arrived);
            } else {
                let rows = switch.halo_rows(boundary, message.peer, rank);
                let (degrees, features) = decode_halo(&message.payload, rows.len(), width)?;
                for (place, &row) in rows.iter().enumerate() {
                    keep(row, degrees[place], &features[place * width..][..width]);
                }
            }
        }
        if switch.super_epoch == 0 {
            let base = &boundary.parts[rank].halo;
            let in_base = |node: &u32| base.contains(node);
            self.base_halo = fresh
                .iter()
                .filter(|(n, _)| in_base(n))
                .map(clone_entry)
                .collect();
        }
        Ok(self.assemble(worker, variable, chunk, fresh))
    }

    fn assemble(
        &self,
        worker: &Worker,
        variable: Option<usize>,
        chunk: Option<Chunk>,
        fresh: BTreeMap<u32, HaloRow>,
    ) -> WorkingGraph {
        let shard = worker.shard();
        let width = shard.features.width();
        let boundary = &worker.setting().boundary;
        let own = Chunk::of(shard, true);
        let (mut nodes, mut degrees, mut sources) = (
            shard.nodes[..shard.owned].to_vec(),
            own.degrees,
            own.sources,
        );
        let mut features = dense_rows(
            &shard.features,
            &(0_u32..).take(shard.owned).collect::<Vec<_>>(),
        );
        if let (Some(variable), Some(chunk)) = (variable, chunk) {
            let members = &boundary.parts[variable].owned;
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
            degrees.extend(chunk.degrees);
            sources.extend(chunk_sources);
            features.extend(chunk.features);
        }
        let inner = nodes.len();
        let mut halo: BTreeMap<u32, HaloRow> = self.base_halo.iter().map(clone_entry).collect();
        halo.extend(fresh);
        for node in &nodes {
            halo.remove(node);
        }
        for (node, (degree, row)) in halo {
            nodes.push(node);
            degrees.push(degree);
            features.extend(row);
        }
        WorkingGraph {
            inner,
            adjacency: local_adjacency(nodes.len(), &nodes, &sources),
            degrees: degrees.into_iter().map(|degree| degree as usize).collect(),
            features: like(&shard.features, features, width),
            nodes,
        }
    }
}

fn clone_entry((node, row): (&u32, &HaloRow)) -> (u32, HaloRow) {
    (*node, row.clone())
}

/// Dense rows stored as `model` is: sparse if that is.
fn like(model: &Features, values: Vec<f32>, width: usize) -> Features {
    if matches!(model, Features::Dense { .. }) {
        return Features::Dense { width, values };
    }
    let rows = values.chunks_exact(width.max(1)).map(|row| {
        let stored = (0_u32..).zip(row).filter(|(_, value)| **value != 0.0);
        stored.map(|(column, &value)| (column, value)).collect()
    });
    Features::from_rows(width, rows)
}
