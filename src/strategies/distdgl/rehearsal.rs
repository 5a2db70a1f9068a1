//! Sampling played through for all workers at once: who asks whom for what. And what they keep of it.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::graph::{
    Batches, BoundaryPlan, Csr, Peers, Replay, SampledLayer, Sampler, Steps, View, seeds_of,
    shuffled,
};

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
    /// Every node.
    nodes: Vec<u32>,
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
                nodes: (0_u32..).take(boundary.nodes).collect(),
                workers,
                owner,
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
        let fanouts = &batches.spec.fanouts;
        let sampler = Sampler::new(batches.seed, epoch, step, fanouts);
        let view = View {
            adjacency: &batches.graph,
            nodes: &self.nodes,
            own: self.nodes.len(),
        };
        let mut requests = Requests {
            draws: vec![Vec::new(); fanouts.len()],
            features: Vec::new(),
        };
        for (rank, (train, cache)) in self.workers.iter_mut().enumerate() {
            if (epoch, step) == (0, 0) {
                cache.clear();
            }
            let owner = |node: u32| self.owner[node as usize] as usize;
            let order = shuffled(batches.seed, epoch, rank, train);
            let seeds = seeds_of(&order, &self.steps, rank, step);
            let owned = &boundary.parts[rank].owned;
            let mut outputs: Vec<u32> = seeds.iter().map(|&row| owned[row as usize]).collect();
            for (hop, draws) in requests.draws.iter_mut().enumerate() {
                let layer = SampledLayer::draw(&sampler, hop, &view, outputs);
                let mut asked: Peers<Draws> = Peers::default();
                for (place, &node) in layer.rows[..layer.outputs].iter().enumerate() {
                    if owner(node) != rank {
                        let asked = asked.of(owner(node));
                        asked.nodes += 1;
                        asked.neighbours += layer.adjacency.degree(place);
                    }
                }
                draws.push(asked);
                outputs = layer.rows;
            }
            let mut asked: Peers<usize> = Peers::default();
            for node in outputs {
                if owner(node) != rank && !cache.has(node) {
                    *asked.of(owner(node)) += 1;
                    cache.came(node);
                }
            }
            requests.features.push(asked);
        }
        requests
    }
}
