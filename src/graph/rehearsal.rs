//! Cooperative sampling played through for all workers at once: who asks whom for how many rows.

use std::sync::{Arc, PoisonError};

use rayon::prelude::*;

use super::batches::{Batches, Steps, shuffled};
use super::replay::Replay;
use super::{BoundaryPlan, Csr, Part, Peers, SampledLayer, Sampler, View};

/// What the workers ask each other for in one step of cooperative sampling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// For each layer whose input is asked for and each worker, how many rows it asks of which owner.
    pub rows: Vec<Vec<Peers<usize>>>,
    /// For each layer and owner who asks, in ascending order.
    pub askers: Vec<Vec<Vec<usize>>>,
}

/// The rehearsal of a run.
#[derive(Debug)]
pub(super) struct Rehearsal {
    players: Players,
    replay: Replay<Requests>,
}

/// All workers of a run.
#[derive(Debug)]
struct Players {
    workers: Vec<Rehearsed>,
    steps: Steps,
    keeps: bool,
}

/// What is known of one worker.
#[derive(Debug)]
struct Rehearsed {
    adjacency: Csr,
    nodes: Vec<u32>,
    train: Vec<u32>,
    /// Halo rows whose features were received.
    known: Vec<bool>,
}

impl BoundaryPlan {
    /// The steps of an epoch in which every worker trains the nodes it owns; one where there are no mini-batches.
    #[must_use]
    pub fn steps(&self) -> Steps {
        let nodes = self.parts.iter().map(|part| part.training).collect();
        let size = self.batches.as_ref().map_or(usize::MAX, |b| b.spec.size);
        Steps::new(size, nodes)
    }

    /// What the workers ask each other for in a step of cooperative sampling; nothing without mini-batches. If features are kept, those
    /// that came in an earlier step are not asked for again.
    ///
    /// Sampling is a pure function of the seed, so this says in advance what will be sent. One step costs what it costs to sample; with features kept,
    /// steps are to be asked for in order, as an earlier one begins anew.
    #[must_use]
    pub fn requests(&self, epoch: usize, step: usize, keeps_features: bool) -> Arc<Requests> {
        let Some(batches) = &self.batches else {
            return Arc::default();
        };
        // What a thread that panicked left is replaced when it does not fit.
        let mut slot = batches
            .rehearsal
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let rehearsal = match slot.take() {
            Some(rehearsal) if rehearsal.players.keeps == keeps_features => rehearsal,
            _ => Rehearsal::new(self, batches, keeps_features),
        };
        let Rehearsal { players, replay } = slot.insert(rehearsal);
        replay.go_to(epoch, step, |epoch, step| {
            players.play(self, batches, epoch, step)
        })
    }
}

impl Rehearsal {
    fn new(boundary: &BoundaryPlan, batches: &Batches, keeps: bool) -> Self {
        let workers = boundary.parts.iter().map(|part| Rehearsed {
            adjacency: part.local_graph(&batches.graph),
            nodes: part.owned.iter().chain(&part.halo).copied().collect(),
            train: part.training_rows(&batches.train),
            known: vec![false; part.halo.len()],
        });
        let steps = boundary.steps();
        Self {
            replay: Replay::new(steps.count(), keeps),
            players: Players {
                workers: workers.collect(),
                steps,
                keeps,
            },
        }
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
        if (epoch, step) == (0, 0) {
            for worker in &mut self.workers {
                worker.known.fill(false);
            }
        }
        let fanouts = &batches.spec.fanouts;
        let sampler = Sampler::new(batches.seed, epoch, step, fanouts);
        let (layers, count) = (fanouts.len(), self.workers.len());
        let seeds = |(rank, worker): (usize, &Rehearsed)| {
            let order = shuffled(batches.seed, epoch, rank, &worker.train);
            seeds_of(&order, &self.steps, rank, step)
        };
        let mut outputs: Vec<Vec<u32>> = self.workers.iter().enumerate().map(seeds).collect();
        let mut requests = Requests {
            rows: vec![Vec::new(); layers],
            askers: vec![vec![Vec::new(); count]; layers],
        };
        for layer in (0..layers).rev() {
            let hop = layers - 1 - layer;
            let draw = |((outputs, worker), part): ((&mut Vec<u32>, &Rehearsed), &Part)| {
                let view = View {
                    adjacency: &worker.adjacency,
                    nodes: &worker.nodes,
                    own: part.owned.len(),
                };
                SampledLayer::draw(&sampler, hop, &view, std::mem::take(outputs))
            };
            let all = outputs.par_iter_mut().zip(&self.workers);
            let drawn: Vec<SampledLayer> = all.zip(&boundary.parts).map(draw).collect();
            let mut asked: Vec<Peers<Vec<u32>>> = vec![Peers::default(); count];
            for (rank, sampled) in drawn.iter().enumerate() {
                let (worker, part) = (&mut self.workers[rank], &boundary.parts[rank]);
                let own = part.owned.len();
                let mut wanted = sampled.others().to_vec();
                if layer == 0 && self.keeps {
                    wanted.retain(|&row| {
                        !std::mem::replace(&mut worker.known[row as usize - own], true)
                    });
                }
                let mut rows = Peers::default();
                for (owner, range) in SampledLayer::by_owner(&wanted, own, &part.receives).iter() {
                    *rows.of(owner) = range.len();
                    requests.askers[layer][owner].push(rank);
                    let ids = wanted[range.clone()].iter();
                    let ids: Vec<u32> = ids.map(|&row| worker.nodes[row as usize]).collect();
                    *asked[owner].of(rank) = boundary.parts[owner].rows_of(&ids);
                }
                requests.rows[layer].push(rows);
            }
            for (rank, sampled) in drawn.iter().enumerate().filter(|_| layer > 0) {
                outputs[rank] = sampled.below(&asked[rank]).0;
            }
        }
        requests
    }
}

/// The rows of a worker's order of training that train in a step, ascending.
#[must_use]
pub fn seeds_of(order: &[u32], steps: &Steps, worker: usize, step: usize) -> Vec<u32> {
    let mut seeds = order[steps.range(worker, step)].to_vec();
    seeds.sort_unstable();
    seeds
}
