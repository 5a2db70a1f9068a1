//! Sampling played through for all workers at once: who asks whom for what.

use std::sync::Arc;

use rayon::prelude::*;

use super::cache::Cache;
use crate::graph::{Batches, BoundaryPlan, Csr, Lists, Peers, Sampler, Steps, seeds_of, shuffled};

/// A neighbour drawn: its number and its degree.
pub(super) const NEIGHBOUR_BYTES: usize = 8;

/// What one worker asks another for at one hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Draws {
    /// Nodes it asks about.
    pub nodes: usize,
    /// Neighbours drawn for them.
    pub neighbours: usize,
    /// Neighbours looked at to draw these.
    pub looked_at: usize,
}

/// What one worker does at one hop of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hop {
    /// Nodes at which it begins.
    pub outputs: usize,
    /// Nodes that these read, with themselves.
    pub inputs: usize,
    /// Neighbours drawn for them.
    pub edges: usize,
    /// Neighbours looked at to draw those of own nodes.
    pub looked_at: usize,
    /// What is drawn by others, by owner; the batch itself is the worker's own: nothing at hop 0.
    pub asks: Peers<Draws>,
}

/// What the workers do in one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Requests {
    /// For each hop and worker.
    pub hops: Vec<Vec<Hop>>,
    /// For each worker the nodes whose features it reads: its own, those that it keeps, and by
    /// owner those that come.
    pub read: Vec<Read>,
}

/// Nodes whose features are read in a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Read {
    /// Own nodes.
    pub own: Vec<u32>,
    /// Nodes of others whose features are here, or come before these do.
    pub kept: Vec<u32>,
    /// Nodes of others whose features come now, by owner, in the order in which they are asked for.
    pub fetched: Peers<Vec<u32>>,
}

impl Read {
    /// Rows that come, by owner.
    pub(super) fn rows(&self) -> Peers<usize> {
        let mut rows = Peers::default();
        for (owner, nodes) in self.fetched.iter().filter(|(_, nodes)| !nodes.is_empty()) {
            *rows.of(owner) = nodes.len();
        }
        rows
    }
}

/// The sampling of all workers of a run, step after step.
pub(super) struct SampledRequests {
    boundary: Arc<BoundaryPlan>,
    batches: Arc<Batches>,
    steps: Steps,
    /// Of each node.
    owner: Vec<u32>,
    /// For each worker its nodes that train, as own rows, and its cache.
    workers: Vec<(Vec<u32>, Cache)>,
}

impl SampledRequests {
    /// The requests of a run with these mini-batches, and caches with room for so many rows each.
    pub(super) fn new(boundary: Arc<BoundaryPlan>, batches: Arc<Batches>, rooms: &[usize]) -> Self {
        let mut owner = vec![0_u32; boundary.nodes];
        for (rank, part) in (0_u32..).zip(&boundary.parts) {
            for &node in &part.owned {
                owner[node as usize] = rank;
            }
        }
        let workers = boundary.parts.iter().enumerate().map(|(rank, part)| {
            let cache = Cache::new(&batches.graph, &owner, rank, rooms[rank]);
            (part.training_rows(&batches.train), cache)
        });
        Self {
            workers: workers.collect(),
            steps: Steps::of(&boundary, Some(&batches)),
            boundary,
            batches,
            owner,
        }
    }

    /// What is done in a step; steps are played in their order, as caches fill.
    pub(super) fn play(&mut self, epoch: usize, step: usize) -> Requests {
        let Self {
            boundary,
            batches,
            steps,
            owner,
            workers,
        } = self;
        let (fanouts, graph) = (&batches.spec.fanouts, &batches.graph);
        let sampler = Sampler::new(batches.seed, epoch, step, fanouts);
        let seeds = |(rank, (train, _)): (usize, &(Vec<u32>, Cache))| {
            let order = shuffled(batches.seed, epoch, rank, train);
            let seeds = seeds_of(&order, steps, rank, step);
            let owned = &boundary.parts[rank].owned;
            seeds.iter().map(|&row| owned[row as usize]).collect()
        };
        let mut outputs: Vec<Vec<u32>> = workers.par_iter().enumerate().map(seeds).collect();
        let mut requests = Requests::default();
        for hop in 0..fanouts.len() {
            let drawn = Drawn::new(&sampler, hop, graph, &outputs);
            let play = |(rank, nodes): (usize, &mut Vec<u32>)| {
                let mut played = Hop {
                    outputs: nodes.len(),
                    ..Hop::default()
                };
                for &node in &*nodes {
                    let owner = owner[node as usize] as usize;
                    let (neighbours, looked_at) =
                        (drawn.of(node).len(), graph.degree(node as usize));
                    played.edges += neighbours;
                    if owner == rank {
                        played.looked_at += looked_at;
                    } else {
                        let asked = played.asks.of(owner);
                        asked.nodes += 1;
                        asked.neighbours += neighbours;
                        asked.looked_at += looked_at;
                    }
                }
                drawn.reach(nodes);
                played.inputs = nodes.len();
                played
            };
            let played = outputs.par_iter_mut().enumerate().map(play).collect();
            requests.hops.push(played);
        }
        let read = |(rank, (nodes, (_, cache))): (usize, (&Vec<u32>, &mut (_, Cache)))| {
            let mut read = Read::default();
            for &node in nodes {
                let owner = owner[node as usize] as usize;
                if owner == rank {
                    read.own.push(node);
                } else if cache.has(node) {
                    read.kept.push(node);
                } else {
                    read.fetched.of(owner).push(node);
                    cache.asks(node);
                }
            }
            read
        };
        let together = outputs.par_iter().zip(workers).enumerate();
        requests.read = together.map(read).collect();
        requests
    }
}

/// The neighbours drawn at one hop. What is drawn for a node is the same for all workers, and drawn
/// once.
struct Drawn {
    /// Of each node its place in `neighbours`; [`NOWHERE`] if nobody asks about it.
    places: Vec<u32>,
    neighbours: Lists,
}

const NOWHERE: u32 = u32::MAX;

impl Drawn {
    /// For all of the workers' `outputs`.
    fn new(sampler: &Sampler<'_>, hop: usize, graph: &Csr, outputs: &[Vec<u32>]) -> Self {
        let mut places = vec![NOWHERE; graph.nodes()];
        let mut nodes = Vec::new();
        for &node in outputs.iter().flatten() {
            let place = &mut places[node as usize];
            if *place == NOWHERE {
                *place = nodes.len() as u32;
                nodes.push(node);
            }
        }
        let near = |at: usize| (nodes[at], graph.neighbours(nodes[at] as usize));
        let neighbours = sampler.draw_each(hop, nodes.len(), near, |u| u);
        Self { places, neighbours }
    }

    /// Those of a node that somebody asks about.
    fn of(&self, node: u32) -> &[u32] {
        let place = self.places[node as usize];
        assert_ne!(place, NOWHERE, "a node that somebody asks about");
        self.neighbours.get(place as usize)
    }

    /// Adds to a worker's nodes what is drawn for them, ascending.
    fn reach(&self, nodes: &mut Vec<u32>) {
        let count = nodes.len();
        let mut known = vec![false; self.places.len()];
        for &node in &*nodes {
            known[node as usize] = true;
        }
        for place in 0..count {
            for &neighbour in self.of(nodes[place]) {
                if !std::mem::replace(&mut known[neighbour as usize], true) {
                    nodes.push(neighbour);
                }
            }
        }
        nodes[count..].sort_unstable();
    }
}
