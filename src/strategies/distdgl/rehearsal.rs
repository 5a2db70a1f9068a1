//! Sampling played through for all workers at once: who asks whom for what. And what they keep of it.

use std::cmp::Reverse;
use std::sync::Arc;

use rayon::prelude::*;

use crate::graph::{Batches, BoundaryPlan, Csr, Peers, Replay, Sampler, Steps, seeds_of, shuffled};

/// A node that is asked for.
pub const NODE_BYTES: usize = 4;

/// A neighbour drawn: its number and its degree.
pub const NEIGHBOUR_BYTES: usize = 8;

/// What one worker has drawn by another at one hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Draws {
    /// Nodes it asks about.
    pub nodes: usize,
    /// Neighbours drawn for them.
    pub neighbours: usize,
}

/// What the workers ask each other for in one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// For each hop and worker, by owner; the batch itself is the worker's own, so there are none at hop 0.
    pub draws: Vec<Vec<Peers<Draws>>>,
    /// For each worker, how many rows of features it asks of which owner.
    pub features: Vec<Peers<usize>>,
}

/// Those who ask `owner` for something, ascending.
#[must_use]
pub fn askers<T>(asked: &[Peers<T>], owner: usize) -> Vec<usize> {
    let asks = |&rank: &usize| asked[rank].ranks().any(|peer| peer == owner);
    (0..asked.len()).filter(asks).collect()
}

/// The remote nodes whose features a worker keeps.
#[derive(Debug)]
pub struct Cache {
    /// Of all nodes; none where nothing is kept.
    states: Vec<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// To be fetched whenever it is needed.
    Passing,
    /// To be kept when it comes.
    Wanted,
    Kept,
}

impl Cache {
    /// Room for a `share` of the nodes that others own, for those with most neighbours; of equals the one that comes first.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of a count
    pub fn new(graph: &Csr, owner: &[u32], rank: usize, share: f64) -> Self {
        let mut remote: Vec<u32> = (0_u32..)
            .zip(owner)
            .filter(|(_, owner)| **owner as usize != rank)
            .map(|(node, _)| node)
            .collect();
        let room = (share * remote.len() as f64).floor() as usize;
        if room == 0 {
            return Self { states: Vec::new() };
        }
        remote.sort_by_key(|&node| Reverse(graph.degree(node as usize)));
        let mut states = vec![State::Passing; graph.nodes()];
        for &node in &remote[..room] {
            states[node as usize] = State::Wanted;
        }
        Self { states }
    }

    /// Whether the features of a remote node are here.
    #[must_use]
    pub fn has(&self, node: u32) -> bool {
        self.states.get(node as usize) == Some(&State::Kept)
    }

    /// Takes note that features came; says whether they are to be kept.
    pub fn came(&mut self, node: u32) -> bool {
        match self.states.get_mut(node as usize) {
            Some(state @ State::Wanted) => {
                *state = State::Kept;
                true
            }
            _ => false,
        }
    }

    /// Loses all that came.
    fn clear(&mut self) {
        for state in &mut self.states {
            if *state == State::Kept {
                *state = State::Wanted;
            }
        }
    }
}

/// The rehearsal of a run.
pub struct Rehearsal {
    batches: Arc<Batches>,
    players: Players,
    replay: Replay<Requests>,
}

/// All workers of a run.
struct Players {
    steps: Steps,
    /// Of each node.
    owner: Vec<u32>,
    /// For each worker its nodes that train, as own rows, and its cache.
    workers: Vec<(Vec<u32>, Cache)>,
}

impl Rehearsal {
    /// The rehearsal of a run with these mini-batches and caches.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // ranks are few
    pub fn new(boundary: &BoundaryPlan, batches: &Arc<Batches>, share: f64) -> Self {
        let mut owner = vec![0_u32; boundary.nodes];
        for (rank, part) in (0_u32..).zip(&boundary.parts) {
            for &node in &part.owned {
                owner[node as usize] = rank;
            }
        }
        let workers = boundary.parts.iter().enumerate().map(|(rank, part)| {
            let cache = Cache::new(&batches.graph, &owner, rank, share);
            (part.training_rows(&batches.train), cache)
        });
        let (workers, steps) = (workers.collect(), boundary.steps());
        Self {
            batches: Arc::clone(batches),
            replay: Replay::new(steps.count(), share > 0.0),
            players: Players {
                steps,
                owner,
                workers,
            },
        }
    }

    /// Whether it is of the run with these mini-batches.
    #[must_use]
    pub fn is_of(&self, batches: &Arc<Batches>) -> bool {
        Arc::ptr_eq(&self.batches, batches)
    }

    /// What is asked for in a step.
    pub fn go_to(&mut self, boundary: &BoundaryPlan, epoch: usize, step: usize) -> Arc<Requests> {
        let Self {
            batches,
            players,
            replay,
        } = self;
        replay.go_to(epoch, step, |epoch, step| {
            players.play(boundary, batches, epoch, step)
        })
    }
}

impl Players {
    fn play(
        &mut self,
        boundary: &BoundaryPlan,
        batches: &Batches,
        epoch: usize,
        step: usize,
    ) -> Requests {
        let Self {
            steps,
            owner,
            workers,
        } = self;
        let fanouts = &batches.spec.fanouts;
        let sampler = Sampler::new(batches.seed, epoch, step, fanouts);
        let seeds = |(rank, (train, cache)): (usize, &mut (Vec<u32>, Cache))| {
            if (epoch, step) == (0, 0) {
                cache.clear();
            }
            let order = shuffled(batches.seed, epoch, rank, train);
            let seeds = seeds_of(&order, steps, rank, step);
            let owned = &boundary.parts[rank].owned;
            seeds.iter().map(|&row| owned[row as usize]).collect()
        };
        let mut outputs: Vec<Vec<u32>> = workers.par_iter_mut().enumerate().map(seeds).collect();
        let mut requests = Requests::default();
        for hop in 0..fanouts.len() {
            let drawn = Drawn::new(&sampler, hop, &batches.graph, &outputs);
            let asked = |(rank, outputs): (usize, &Vec<u32>)| {
                let mut asked: Peers<Draws> = Peers::default();
                for &node in outputs {
                    let owner = owner[node as usize] as usize;
                    if owner != rank {
                        let asked = asked.of(owner);
                        asked.nodes += 1;
                        asked.neighbours += drawn.of(node).len();
                    }
                }
                asked
            };
            let asked = outputs.par_iter().enumerate().map(asked).collect();
            requests.draws.push(asked);
            outputs
                .par_iter_mut()
                .for_each(|outputs| drawn.reach(outputs));
        }
        let features = |(rank, (outputs, (_, cache))): (usize, (&Vec<u32>, &mut (_, Cache)))| {
            let mut asked: Peers<usize> = Peers::default();
            for &node in outputs {
                let owner = owner[node as usize] as usize;
                if owner != rank && !cache.has(node) {
                    *asked.of(owner) += 1;
                    cache.came(node);
                }
            }
            asked
        };
        let together = outputs.par_iter().zip(workers).enumerate();
        requests.features = together.map(features).collect();
        requests
    }
}

/// The neighbours drawn at one hop. What is drawn for a node is the same for all workers, and drawn once.
struct Drawn {
    /// Of each node its place in `neighbours`; [`NOWHERE`] if nobody asks about it.
    places: Vec<u32>,
    neighbours: Vec<Vec<u32>>,
}

const NOWHERE: u32 = u32::MAX;

impl Drawn {
    /// For all of the workers' `outputs`.
    #[allow(clippy::cast_possible_truncation)] // nodes are numbered by `u32` throughout
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
        let draw = |&node: &u32| sampler.draw(hop, node, graph.neighbours(node as usize), |u| u);
        Self {
            places,
            neighbours: nodes.par_iter().map(draw).collect(),
        }
    }

    /// Those of a node that somebody asks about.
    fn of(&self, node: u32) -> &[u32] {
        &self.neighbours[self.places[node as usize] as usize]
    }

    /// Adds to a worker's nodes what is drawn for them.
    fn reach(&self, nodes: &mut Vec<u32>) {
        let mut known = vec![false; self.places.len()];
        for &node in &*nodes {
            known[node as usize] = true;
        }
        for place in 0..nodes.len() {
            for &neighbour in self.of(nodes[place]) {
                if !std::mem::replace(&mut known[neighbour as usize], true) {
                    nodes.push(neighbour);
                }
            }
        }
    }
}
