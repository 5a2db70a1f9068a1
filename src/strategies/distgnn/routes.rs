//! Which rows of a worker cross in an epoch.

use crate::graph::{CutPart, Peers, VertexCut};

/// The rows of one worker that cross while a bin is on.
pub(super) struct Routes {
    /// Its clones, for each of their owners.
    pub clones: Peers<Vec<u32>>,
    /// Its own rows, for each worker that has clones of them.
    pub own: Peers<Vec<u32>>,
}

impl Routes {
    /// Those of a part whose nodes are on.
    fn of(part: &CutPart, is_on: impl Fn(u32) -> bool) -> Self {
        let on = |all: &Peers<Vec<u32>>| {
            let mut found = Peers::default();
            for (peer, rows) in all.iter() {
                let rows = rows.iter().copied();
                let rows: Vec<u32> = rows
                    .filter(|&row| is_on(part.nodes[row as usize]))
                    .collect();
                if !rows.is_empty() {
                    *found.of(peer) = rows;
                }
            }
            found
        };
        Self {
            clones: on(&part.owners),
            own: on(&part.holders),
        }
    }
}

/// The routes of all workers, by bin. Split nodes are dealt to bins in turn.
pub(super) fn all(cut: &VertexCut, delay: usize) -> Vec<Vec<Routes>> {
    let bins = delay.max(1);
    let bin = |node: u32| cut.split.partition_point(|&other| other < node) % bins;
    let of = |part: &CutPart| {
        let bins = 0..bins;
        bins.map(|on| Routes::of(part, |node| bin(node) == on))
            .collect()
    };
    cut.parts.iter().map(of).collect()
}

/// Rows of all peers.
pub(super) fn rows(peers: &Peers<Vec<u32>>) -> usize {
    peers.iter().map(|(_, rows)| rows.len()).sum()
}
