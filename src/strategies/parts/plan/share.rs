//! What a [`BoundaryShare`] draws in an epoch, in numbers.

use crate::graph::{Csr, Peers};
use crate::model::BlockShape;
use crate::sim::Setting;
use crate::strategies::parts::BoundaryShare;

use super::CrossingPlan;

/// How many edges begin in each halo row of each worker.
pub(crate) struct HaloEdges(Vec<Vec<usize>>);

impl HaloEdges {
    /// Those of a setting.
    pub(crate) fn new(setting: &Setting) -> Self {
        let count = |part: &crate::graph::Part| {
            let local: Csr = part.local_graph(&setting.dataset.graph);
            let mut edges = vec![0; part.halo.len()];
            for (source, _) in local.iter_edges() {
                if let Some(row) = (source as usize).checked_sub(part.owned.len()) {
                    edges[row] += 1;
                }
            }
            edges
        };
        Self(setting.boundary.parts.iter().map(count).collect())
    }

    /// Edges from these nodes, by owner, into the own ones of a worker.
    fn of(&self, setting: &Setting, rank: usize, nodes: &[(usize, Vec<u32>)]) -> usize {
        let part = &setting.boundary.parts[rank];
        let edges = |(owner, nodes): &(usize, Vec<u32>)| -> usize {
            let range = &part.receives[*owner];
            let halo = &part.halo[range.clone()];
            let places = nodes
                .iter()
                .filter_map(|node| halo.binary_search(node).ok());
            places.map(|place| self.0[rank][range.start + place]).sum()
        };
        nodes.iter().map(edges).sum()
    }
}

/// What is drawn of a worker's boundary in one epoch.
pub(crate) struct Drawn {
    /// How it crosses.
    pub crossing: CrossingPlan,
    /// Rows that it computes on.
    pub block: BlockShape,
    /// For each owner the global numbers of its nodes that were drawn, ascending.
    pub nodes: Vec<(usize, Vec<u32>)>,
}

impl BoundaryShare {
    /// How many of these rows are drawn; whoever has none of them is left out.
    pub fn rows(self, all: &[(u32, usize)]) -> Vec<(u32, usize)> {
        let drawn = all.iter().map(|&(peer, rows)| (peer, self.of(rows)));
        drawn.filter(|(_, rows)| *rows > 0).collect()
    }

    /// What every owner draws in an epoch.
    pub fn draws(self, setting: &Setting, epoch: usize) -> Vec<Peers<Vec<u32>>> {
        let parts = setting.boundary.parts.iter().enumerate();
        parts
            .map(|(owner, part)| self.draw(&part.sends, setting.seed, owner, epoch))
            .collect()
    }

    /// What worker `rank` computes on then; messages of others' rows are left out without `edges`.
    /// Of a graph in numbers, rows that are drawn have as many edges as others.
    pub(crate) fn drawn(
        self,
        setting: &Setting,
        edges: Option<&HaloEdges>,
        draws: &[Peers<Vec<u32>>],
        rank: usize,
    ) -> Drawn {
        let counts = &setting.counts.parts[rank];
        let crossing = CrossingPlan {
            made: counts.owned,
            own: counts.owned,
            sends: self.rows(&counts.sends),
            receives: self.rows(&counts.receives),
            ..CrossingPlan::default()
        };
        let nodes = nodes(setting, draws, rank);
        let entries = match edges {
            Some(edges) => edges.of(setting, rank, &nodes),
            None if setting.holds_graph() => 0,
            None => share_of(counts.cut_edges, crossing.halo(), counts.halo),
        };
        let inputs = counts.owned + crossing.halo();
        let aggregation = setting.model.aggregation();
        let entries = counts.internal_edges + entries;
        Drawn {
            block: BlockShape::of(counts.owned, inputs, entries, aggregation),
            crossing,
            nodes,
        }
    }
}

/// The nodes that worker `rank` reads of each owner; none of a graph in numbers.
fn nodes(setting: &Setting, draws: &[Peers<Vec<u32>>], rank: usize) -> Vec<(usize, Vec<u32>)> {
    let parts = &setting.boundary.parts;
    let owners = parts[rank].receives.iter();
    let drawn = owners.map(|(owner, _)| (owner, &draws[owner][rank]));
    let drawn = drawn.filter(|(_, rows)| !rows.is_empty());
    let nodes = |(owner, rows): (usize, &Vec<u32>)| {
        let owned = &parts[owner].owned;
        (owner, rows.iter().map(|&row| owned[row as usize]).collect())
    };
    drawn.map(nodes).collect()
}

/// `part` of `whole` of so many.
pub(super) fn share_of(all: usize, part: usize, whole: usize) -> usize {
    (all as f64 * part as f64 / whole.max(1) as f64).round() as usize
}
