//! What a [`BoundaryShare`] draws in an epoch, in numbers.

use crate::graph::{Csr, Peers};
use crate::model::BlockShape;
use crate::sim::Setting;
use crate::strategies::parts::BoundaryShare;

use super::CrossingPlan;

/// How many edges begin in each halo row of each worker.
pub struct HaloEdges(Vec<Vec<usize>>);

impl HaloEdges {
    /// Those of a setting.
    pub fn new(setting: &Setting) -> Self {
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
}

/// What is drawn of a worker's boundary in one epoch.
pub struct Drawn {
    /// How it crosses.
    pub crossing: CrossingPlan,
    /// Rows that it computes on.
    pub block: BlockShape,
    /// For each owner the global numbers of its nodes that were drawn, ascending.
    pub nodes: Vec<(usize, Vec<u32>)>,
}

impl BoundaryShare {
    /// What every owner draws in an epoch.
    pub fn draws(self, setting: &Setting, epoch: usize) -> Vec<Peers<Vec<u32>>> {
        let parts = setting.boundary.parts.iter().enumerate();
        parts
            .map(|(owner, part)| self.draw(&part.sends, setting.seed, owner, epoch))
            .collect()
    }

    /// What worker `rank` computes on then; messages of others' rows are left out without `edges`.
    pub fn drawn(
        self,
        setting: &Setting,
        edges: Option<&HaloEdges>,
        draws: &[Peers<Vec<u32>>],
        rank: usize,
    ) -> Drawn {
        let (parts, counts) = (&setting.boundary.parts, &setting.counts.parts[rank]);
        let part = &parts[rank];
        let (mut receives, mut nodes) = (Vec::new(), Vec::new());
        let mut entries = counts.internal_edges;
        for (owner, range) in part.receives.iter() {
            let drawn = &draws[owner][rank];
            if drawn.is_empty() {
                continue;
            }
            receives.push((owner as u32, drawn.len()));
            let owned = drawn.iter().map(|&row| parts[owner].owned[row as usize]);
            let owned: Vec<u32> = owned.collect();
            let halo = &part.halo[range.clone()];
            for &node in &owned {
                if let (Some(edges), Ok(place)) = (edges, halo.binary_search(&node)) {
                    entries += edges.0[rank][range.start + place];
                }
            }
            nodes.push((owner, owned));
        }
        let sends = draws[rank].iter();
        let crossing = CrossingPlan {
            made: part.owned.len(),
            own: part.owned.len(),
            sends: sends
                .map(|(reader, rows)| (reader as u32, rows.len()))
                .collect(),
            receives,
            ..CrossingPlan::default()
        };
        let inputs = part.owned.len() + crossing.halo();
        let aggregation = setting.model.aggregation();
        Drawn {
            block: BlockShape::of(part.owned.len(), inputs, entries, aggregation),
            crossing,
            nodes,
        }
    }
}
