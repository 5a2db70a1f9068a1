//! Designs: the random experiments whose outcome is what each worker trains on and sees.

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::outcomes::{
    assignments, balanced_assignments, balanced_sizes, count_of_balanced_assignments,
};
use crate::names::named;
use crate::strategies::grappa::estimators::Inclusion;
use crate::strategies::grappa::variable_chunk;

named! {
    /// Kinds of designs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub(crate) enum DesignKind {
        /// Each node to any worker, independently.
        Independent = "independent",
        /// Nodes dealt to workers, as many to each as can be.
        Random = "random",
        /// Chunks, drawn once, dealt to workers: the schedule `regroup`.
        Grouping = "grouping",
        /// One chunk a worker, drawn once, and a super-epoch of the sweep.
        Sweep = "sweep",
    }
}

impl DesignKind {
    /// Whether chunks are dealt and not nodes.
    pub(crate) const fn has_chunks(self) -> bool {
        matches!(self, Self::Grouping | Self::Sweep)
    }
}

/// A design over the nodes of one graph.
#[derive(Clone, Debug)]
pub(crate) struct Design {
    kind: DesignKind,
    workers: usize,
    /// The unit of each node.
    unit: Vec<u32>,
    units: usize,
}

/// What one worker has, by unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Worker {
    /// Its training nodes are here.
    pub base: Vec<bool>,
    /// It sees these, halo apart.
    pub sees: Vec<bool>,
}

impl Design {
    /// A design whose units are the nodes: `Independent` or `Random`.
    pub(crate) fn of_nodes(kind: DesignKind, nodes: usize, workers: usize) -> Self {
        Self {
            kind,
            workers,
            unit: (0_u32..).take(nodes).collect(),
            units: nodes,
        }
    }

    /// A design whose units are chunks, given the chunk of each node: `Grouping`, or `Sweep` with
    /// as many chunks as workers.
    pub(crate) fn of_chunks(
        kind: DesignKind,
        chunk: Vec<u32>,
        chunks: usize,
        workers: usize,
    ) -> Self {
        Self {
            kind,
            workers,
            unit: chunk,
            units: chunks,
        }
    }

    /// Its inclusion probabilities.
    pub(crate) fn inclusion(&self) -> Inclusion {
        let (units, workers) = (self.units, self.workers);
        match self.kind {
            DesignKind::Independent => Inclusion::Independent { workers },
            DesignKind::Random | DesignKind::Grouping => Inclusion::Balanced { units, workers },
            DesignKind::Sweep => Inclusion::Sweep { chunks: workers },
        }
    }

    /// The unit of each node.
    pub(crate) fn units(&self) -> &[u32] {
        &self.unit
    }

    /// The probability that v's worker sees u.
    pub(super) fn pair(&self, v: u32, u: u32) -> f64 {
        self.inclusion()
            .pair(self.unit[v as usize] == self.unit[u as usize])
    }

    /// How many outcomes there are; all are equally likely. A float, for it is soon large.
    pub(crate) fn outcomes(&self) -> f64 {
        match self.kind {
            DesignKind::Independent => (self.workers as f64).powf(self.units as f64),
            DesignKind::Random | DesignKind::Grouping => {
                count_of_balanced_assignments(&balanced_sizes(self.units, self.workers))
            }
            // One worker has no chunk to sweep over, and so one outcome.
            DesignKind::Sweep => self.workers.saturating_sub(1).max(1) as f64,
        }
    }

    /// Every outcome.
    pub(super) fn all(&self) -> Box<dyn Iterator<Item = Vec<Worker>> + '_> {
        match self.kind {
            DesignKind::Independent => {
                Box::new(assignments(self.units, self.workers).map(|a| self.dealt(&a)))
            }
            DesignKind::Random | DesignKind::Grouping => {
                let sizes = balanced_sizes(self.units, self.workers);
                Box::new(balanced_assignments(&sizes).map(|a| self.dealt(&a)))
            }
            DesignKind::Sweep => {
                Box::new((0..self.workers.saturating_sub(1).max(1)).map(|s| self.swept(s)))
            }
        }
    }

    /// One outcome.
    pub(super) fn draw(&self, random: &mut impl Rng) -> Vec<Worker> {
        match self.kind {
            DesignKind::Independent => {
                let workers = self.workers as u32;
                let assignment: Vec<u32> = (0..self.units)
                    .map(|_| random.random_range(0..workers))
                    .collect();
                self.dealt(&assignment)
            }
            DesignKind::Random | DesignKind::Grouping => {
                // As the partitioner deals nodes: shuffled ranks in turn.
                let mut assignment: Vec<u32> =
                    (0..self.workers as u32).cycle().take(self.units).collect();
                assignment.shuffle(random);
                self.dealt(&assignment)
            }
            DesignKind::Sweep => {
                self.swept(random.random_range(0..self.workers.saturating_sub(1).max(1)))
            }
        }
    }

    /// By node what is given by unit.
    pub(super) fn nodes(&self, of_units: &[bool]) -> Vec<bool> {
        self.unit
            .iter()
            .map(|&unit| of_units[unit as usize])
            .collect()
    }

    fn dealt(&self, assignment: &[u32]) -> Vec<Worker> {
        (0..self.workers as u32)
            .map(|worker| {
                let mine: Vec<bool> = assignment.iter().map(|&owner| owner == worker).collect();
                Worker {
                    base: mine.clone(),
                    sees: mine,
                }
            })
            .collect()
    }

    fn swept(&self, super_epoch: usize) -> Vec<Worker> {
        (0..self.workers)
            .map(|worker| {
                let variable = variable_chunk(worker, self.workers, 1, super_epoch);
                Worker {
                    base: (0..self.units).map(|chunk| chunk == worker).collect(),
                    sees: (0..self.units)
                        .map(|chunk| chunk == worker || Some(chunk) == variable)
                        .collect(),
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};

    fn designs() -> Vec<Design> {
        vec![
            Design::of_nodes(DesignKind::Independent, 5, 2),
            Design::of_nodes(DesignKind::Random, 5, 2),
            Design::of_chunks(DesignKind::Grouping, vec![0, 1, 2, 3, 0], 4, 2),
            Design::of_chunks(DesignKind::Sweep, vec![0, 1, 2, 2, 1], 3, 3),
            Design::of_chunks(DesignKind::Sweep, vec![0; 5], 1, 1),
        ]
    }

    #[test]
    fn all_outcomes_are_counted_and_draws_are_among_them() {
        for design in designs() {
            let all: Vec<Vec<Worker>> = design.all().collect();
            assert_eq!(all.len() as f64, design.outcomes());
            for sample in 0..50 {
                let drawn = design.draw(&mut stream(1, Purpose::Study, 0, sample));
                assert!(all.contains(&drawn));
            }
        }
    }

    #[test]
    fn every_node_trains_once_in_every_outcome() {
        for design in designs() {
            for outcome in design.all() {
                for node in 0..5 {
                    let owners = outcome
                        .iter()
                        .filter(|worker| design.nodes(&worker.base)[node]);
                    assert_eq!(owners.count(), 1);
                }
                assert!(outcome.iter().all(|w| {
                    w.base
                        .iter()
                        .zip(&w.sees)
                        .all(|(base, sees)| !base || *sees)
                }));
            }
        }
    }
}
