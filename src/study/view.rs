//! What a worker aggregates in one outcome: sparse rows over nodes for the hop next to the features
//! and for the one next to the loss.

use super::Problem;
use crate::graph::Csr;

/// Sparse rows, one for each node; those of nodes that a worker does not hold are empty.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    ends: Vec<usize>,
    entries: Vec<(u32, f64)>,
}

impl Rows {
    fn new(rows: impl Iterator<Item = Vec<(u32, f64)>>) -> Self {
        let (mut ends, mut entries) = (Vec::new(), Vec::new());
        for row in rows {
            entries.extend(row);
            ends.push(entries.len());
        }
        Self { ends, entries }
    }

    /// Sources of a node and what each is multiplied by.
    pub(super) fn row(&self, node: usize) -> &[(u32, f64)] {
        let start = node.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.entries[start..self.ends[node]]
    }

    /// The number of nodes.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }
}

/// The aggregations of the two layers.
#[derive(Clone, Debug)]
pub(super) struct Operators {
    /// Features to hidden rows: the hop farthest from the loss.
    pub last_hop: Rows,
    /// Hidden rows to outputs; only rows of nodes that the worker holds are read.
    pub first_hop: Rows,
}

/// One worker's part of the graph.
pub(super) struct View<'a> {
    problem: &'a Problem,
    /// Which nodes it holds with their in-edges.
    inner: &'a [bool],
    /// Whether it also has the features of their other neighbours, without in-edges.
    halo: bool,
}

impl<'a> View<'a> {
    pub(super) fn new(problem: &'a Problem, inner: &'a [bool], halo: bool) -> Self {
        Self {
            problem,
            inner,
            halo,
        }
    }

    fn is_inner(&self, node: u32) -> bool {
        self.inner[node as usize]
    }

    fn neighbours(&self, node: u32) -> &'a [u32] {
        self.problem.graph.neighbours(node as usize)
    }

    /// How many neighbours of a node that it holds it sees.
    pub(super) fn seen(&self, node: u32) -> usize {
        self.neighbours(node)
            .iter()
            .filter(|&&u| self.halo || self.is_inner(u))
            .count()
    }

    /// The edges between nodes that it holds.
    pub(super) fn local_graph(&self) -> Csr {
        let nodes = self.inner.len();
        let held = (0_u32..).zip(self.inner).filter(|(_, inner)| **inner);
        let edges = held.flat_map(|(v, _)| {
            self.neighbours(v)
                .iter()
                .filter(|&&u| self.is_inner(u))
                .map(move |&u| (u, v))
        });
        Csr::from_edges(nodes, edges)
    }

    /// The mean over what is seen, as a worker computes that knows no better: halo nodes have no
    /// in-edges and are themselves, if they have self-loops.
    pub(super) fn mean_operators(&self) -> Operators {
        let row = |v: u32| {
            let neighbours = if self.is_inner(v) {
                self.neighbours(v)
            } else {
                &[]
            };
            let seen = neighbours
                .iter()
                .copied()
                .filter(|&u| self.halo || self.is_inner(u));
            let sources: Vec<u32> = seen.chain(self.problem.self_loop.then_some(v)).collect();
            // Of no sources this is infinite, and nobody takes it.
            let share = 1.0 / sources.len() as f64;
            sources.into_iter().map(|u| (u, share)).collect()
        };
        let rows = Rows::new((0_u32..).take(self.inner.len()).map(row));
        Operators {
            last_hop: rows.clone(),
            first_hop: rows,
        }
    }

    /// Sums over what is seen, each message by its share of the global degree times
    /// `weight(destination, source)`. With the halo the last hop is complete, and the first one
    /// takes only nodes that have it.
    pub(super) fn weighted_operators(&self, weight: impl Fn(u32, u32) -> f64) -> Operators {
        let hop = |complete: bool| {
            let row = |v: u32| {
                if !self.is_inner(v) {
                    return Vec::new();
                }
                let own = self.problem.self_loop.then_some(v);
                let share = 1.0 / (self.neighbours(v).len() + usize::from(own.is_some())) as f64;
                let seen = self
                    .neighbours(v)
                    .iter()
                    .filter(|&&u| complete || self.is_inner(u));
                let weighted = seen.map(|&u| {
                    (
                        u,
                        // Where all neighbours are seen, nothing is missing that a weight could
                        // correct.
                        if complete {
                            share
                        } else {
                            share * weight(v, u)
                        },
                    )
                });
                weighted.chain(own.map(|v| (v, share))).collect()
            };
            Rows::new((0_u32..).take(self.inner.len()).map(row))
        };
        Operators {
            last_hop: hop(self.halo),
            first_hop: hop(false),
        }
    }
}
