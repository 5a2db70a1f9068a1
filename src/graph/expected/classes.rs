//! Classes of exchangeable nodes, and what a random partition makes of them.

use crate::graph::{BoundaryCounts, PartCounts};

/// From so many of a thing for each worker on, all get the same number of them, so that workers are
/// alike and one to plan for. Rounding changes what all have by less than a thousandth, and among
/// more workers than can well be played each by itself by less than half a hundredth.
const fn many(workers: usize) -> f64 {
    if workers > 64 { 100.0 } else { 1_000.0 }
}

/// A class of exchangeable nodes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodeClass {
    /// Nodes in it.
    pub nodes: f64,
    /// Expected number of distinct neighbours of one of them, itself left out.
    pub degree: f64,
    /// Expected neighbours of one of them in each class; adds up to `degree`.
    pub neighbours: Vec<f64>,
    /// The other nodes by the chance that one of them is a neighbour: `(nodes, chance)`.
    pub chances: Vec<(f64, f64)>,
}

/// A graph in expectation: undirected, without self-loops or repeated edges.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedGraph {
    /// Its classes. Those without neighbours are there too.
    pub(crate) classes: Vec<NodeClass>,
}

impl ExpectedGraph {
    /// Number of nodes.
    pub fn nodes(&self) -> f64 {
        self.classes.iter().map(|class| class.nodes).sum()
    }

    /// Number of stored, directed edges: each undirected one twice.
    pub(crate) fn edges(&self) -> f64 {
        let ends = self.classes.iter();
        ends.map(|class| class.nodes * class.degree).sum()
    }

    /// Boundary rows of a random partition into `workers` equal parts, over all workers: the sum
    /// over nodes of the expected number of other workers with one of its neighbours.
    ///
    /// Each node is on each worker with the same chance, 1 / `workers`. A node with neighbours v,
    /// each there with chance q(v), is in the halo of another worker with chance
    /// 1 − Π (1 − q(v) / `workers`).
    pub(crate) fn boundary_rows(&self, workers: usize) -> f64 {
        let others = workers as f64 - 1.0;
        let rows = |(class, read): (&NodeClass, f64)| class.nodes * others * read;
        let read = self.read_by(1.0 / workers as f64);
        self.classes.iter().zip(read).map(rows).sum()
    }

    /// The chance that a node has a neighbour in a random `share` of all nodes, by class.
    pub(crate) fn read_by(&self, share: f64) -> Vec<f64> {
        let read = |class: &NodeClass| {
            // Logarithms: a node may have more chances to be missed than a product can hold.
            let absent = |&(nodes, chance): &(f64, f64)| {
                // Of no nodes none is missed, however sure one would be a neighbour.
                let each = || (-chance * share).ln_1p();
                if nodes > 0.0 { nodes * each() } else { 0.0 }
            };
            let absent: f64 = class.chances.iter().map(absent).sum();
            -absent.exp_m1()
        };
        self.classes.iter().map(read).collect()
    }

    /// How many nodes have a neighbour in a random `share` of all nodes.
    pub fn read(&self, share: f64) -> f64 {
        let rows = |(class, read): (&NodeClass, f64)| class.nodes * read;
        self.classes.iter().zip(self.read_by(share)).map(rows).sum()
    }

    /// What one of equal random `parts` holds, without what it sends and receives.
    pub(crate) fn part(
        &self,
        parts: usize,
        number: usize,
        training: f64,
        columns: usize,
    ) -> PartCounts {
        let (nodes, edges) = (self.nodes(), self.edges());
        // Ends of an edge are in one part as often as two of all nodes are.
        let own = nodes / parts as f64;
        let together = ((own - 1.0) / (nodes - 1.0).max(1.0)).clamp(0.0, 1.0);
        let owned = share(nodes, parts, number);
        let ends = share(edges, parts, number);
        let internal_edges = if parts == 1 {
            ends
        } else {
            round(ends as f64 * together)
        };
        PartCounts {
            owned,
            internal_edges,
            // What is left, so that both together are all edges.
            cut_edges: ends - internal_edges,
            training: share(training, parts, number),
            own_values: owned * columns,
            ..PartCounts::default()
        }
    }

    /// What each of `workers` equal random parts holds, sends and receives, rounded to whole
    /// numbers. Large parts are alike: worker r + k stands to worker r as worker k to worker 0.
    /// What there is little of is dealt out to the last one, and parts differ by one.
    ///
    /// `training` nodes are spread like all others. Features are dense rows of `columns` values.
    pub fn counts(&self, workers: usize, training: f64, columns: usize) -> BoundaryCounts {
        let pairs = workers * (workers - 1);
        let rows = self.boundary_rows(workers);
        let part = |rank: usize| {
            let peers = (0..workers).filter(|&peer| peer != rank);
            // Rows of ordered pairs of workers, the same both ways.
            let rows = |peer: usize| {
                if rows >= many(workers) * workers as f64 {
                    around(rows / workers as f64, workers, rank, peer)
                } else {
                    dealt(rows, pairs, pair(rank, peer, workers))
                }
            };
            let cross: Vec<(u32, usize)> = peers
                .map(|peer| (u32::try_from(peer).unwrap_or(u32::MAX), rows(peer)))
                // As in a real partition, who needs nothing is not listed.
                .filter(|(_, rows)| *rows > 0)
                .collect();
            // Of the rounded numbers, so that halo and messages agree.
            let halo: usize = cross.iter().map(|(_, rows)| rows).sum();
            PartCounts {
                halo,
                halo_values: halo * columns,
                sends: cross.clone(),
                receives: cross,
                ..self.part(workers, rank, training, columns)
            }
        };
        BoundaryCounts {
            parts: (0..workers).map(part).collect(),
            nodes: round(self.nodes()),
            edges: round(self.edges()),
            dense: true,
        }
    }
}

/// A number that is the same for both orders of a pair, below `workers · (workers − 1)`.
fn pair(one: usize, other: usize, workers: usize) -> usize {
    let (low, high) = (one.min(other), one.max(other));
    // Even numbers alone: each stands for both orders of its pair, so all is dealt out.
    2 * (low * (2 * workers - low - 1) / 2 + high - low - 1)
}

/// What a worker gets of things that are dealt out evenly; the same as all others of many.
fn share(all: f64, workers: usize, rank: usize) -> usize {
    let each = all / workers as f64;
    if each >= many(workers) {
        round(each)
    } else {
        dealt(all, workers, rank)
    }
}

/// What a worker with so many rows for all others has for one of them. It depends on how far apart
/// the two are, and not on the direction.
fn around(rows: f64, workers: usize, rank: usize, peer: usize) -> usize {
    let (rows, others) = (round(rows), workers - 1);
    let ahead = (peer + workers - rank) % workers;
    let near = ahead.min(workers - ahead);
    // One ahead, one back, two ahead, two back, …: what is left over goes to both sides alike.
    let place = 2 * (near - 1) + usize::from(ahead > near);
    let more = rows % others;
    rows / others + usize::from(place < more - more % 2)
}

/// What place `place` of `places` gets of a whole number of things that are dealt out evenly.
fn dealt(all: f64, places: usize, place: usize) -> usize {
    let all = round(all);
    all / places + usize::from(place < all % places)
}

/// The nearest whole number; what is counted by a law is never negative.
pub(crate) fn round(value: f64) -> usize {
    value.round() as usize
}
