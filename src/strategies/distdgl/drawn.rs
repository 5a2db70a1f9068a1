//! What the workers draw for one step.

use super::sampled_requests::{Draws, Hop};
use crate::graph::Peers;
use crate::model::InputShape;

/// What is drawn, by worker. Where all draw as much, each of those next to it first, worker 0
/// stands for all.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    /// Tells what is drawn differently in a graph that is known by its law.
    pub number: usize,
    /// Number of workers.
    pub workers: usize,
    /// For each hop and worker.
    pub hops: Vec<Vec<Hop>>,
    /// For each worker the rows of features that it fetches, by owner.
    pub fetched: Vec<Peers<usize>>,
    /// For each worker what it reads.
    pub inputs: Vec<Option<InputShape>>,
}

impl Drawn {
    /// What a worker does at a hop. Whom it asks, [`Self::asked`] says.
    pub(super) fn hop(&self, hop: usize, rank: usize) -> &Hop {
        let all = &self.hops[hop];
        &all[rank.min(all.len() - 1)]
    }

    /// What a worker asks another for at a hop.
    pub(super) fn asked(&self, hop: usize, asker: usize, owner: usize) -> Draws {
        let (asker, owner) = self.seen(asker, owner);
        self.hops[hop][asker].asks[owner]
    }

    /// The rows that a worker fetches from another.
    pub(super) fn fetched(&self, asker: usize, owner: usize) -> usize {
        let (asker, owner) = self.seen(asker, owner);
        self.fetched[asker][owner]
    }

    /// What a worker reads.
    pub(super) fn input(&self, rank: usize) -> Option<InputShape> {
        self.inputs[rank.min(self.inputs.len() - 1)]
    }

    /// The other workers.
    pub(super) fn others(&self, rank: usize) -> impl Iterator<Item = usize> {
        (0..self.workers).filter(move |&other| other != rank)
    }

    /// Where it is written down what one worker asks another for.
    fn seen(&self, asker: usize, owner: usize) -> (usize, usize) {
        if self.fetched.len() < self.workers {
            (0, (owner + self.workers - asker) % self.workers)
        } else {
            (asker, owner)
        }
    }
}
