//! What [`move_nodes`](super::super::move_nodes) does.

use super::exchange_of;
use crate::model::Work;
use crate::net::{Bytes, TrafficKind};
use crate::sim::{Setting, Track};
use crate::strategies::parts::chunks::{Carried, chunk_bytes};
use crate::strategies::parts::repartition::leaving;

/// What moves at one switch, in numbers.
pub(super) struct Moves {
    /// Of each worker, whom it sends how much.
    sends: Vec<Vec<(u32, Bytes)>>,
}

impl Moves {
    /// What has to move for one division of a graph to become another.
    pub(super) fn new(before: &Setting, after: &Setting) -> Self {
        let (graph, width) = (&before.dataset.graph, before.model.features());
        let payload = |rank: usize, rows: &[u32]| {
            let owned = &before.boundary.parts[rank].owned;
            let sources = rows.iter().flat_map(|&row| {
                let node = owned[row as usize] as usize;
                graph.neighbours(node).iter().copied()
            });
            let mut sources: Vec<u32> = sources.collect();
            let edges = sources.len();
            sources.sort_unstable();
            sources.dedup();
            let chunk = chunk_bytes(rows.len(), edges, width, Carried::of_labels(before.task()));
            // Beside the chunk a word of each node's set, and the degree of each source.
            Bytes(chunk.0 + 4 * (rows.len() + sources.len()) as u64)
        };
        let of = |rank| {
            let leaving = leaving(before, after, rank);
            let sends = leaving.iter();
            sends
                .map(|(peer, rows)| (peer as u32, payload(rank, rows)))
                .collect()
        };
        Self {
            sends: (0..before.workers()).map(of).collect(),
        }
    }

    /// What [`move_nodes`](super::super::move_nodes) does, on a worker that then has its part of
    /// `after`.
    pub(super) fn write(&self, track: &mut Track, rank: usize, [before, after]: [&Setting; 2]) {
        let to = self.sends[rank].clone();
        let senders = (0_u32..).zip(&self.sends).filter_map(|(peer, sends)| {
            let mine = sends.iter().find(|(to, _)| *to as usize == rank);
            mine.map(|&(_, bytes)| (peer, bytes))
        });
        let from: Vec<(u32, Bytes)> = senders.collect();
        let sum = |messages: &[(u32, Bytes)]| messages.iter().map(|(_, bytes)| bytes.0).sum();
        let (left, came): (u64, u64) = (sum(&to), sum(&from));
        let part = &after.counts.parts[rank];
        let peers = from.iter().map(|&(peer, _)| peer).collect();
        track.set_up(true, |track| {
            track.compute(Work::pass(left as usize / 4));
            track.exchange(exchange_of(TrafficKind::Repartition, 0, to, peers));
            track.compute(Work::pass(came as usize / 4 + part.own_values));
            track.compute(Work::pass(part.internal_edges + part.cut_edges));
        });
        // Old and new features, and all messages, those that came once more as numbers: between two
        // epochs, when nothing else is there.
        let features = before.feature_bytes(rank) + after.feature_bytes(rank);
        track.passes_with(features + left + 2 * came, 0);
    }
}
