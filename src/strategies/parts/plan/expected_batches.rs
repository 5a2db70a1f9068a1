//! Mini-batches in a graph that is known by its law: what workers draw, and ask each other for, in
//! expectation.
//!
//! All draw together: a worker computes those of its rows that anybody needs. So there is one
//! frontier, of the training nodes of all, and of each hop a worker has its share of the nodes. Its
//! own draws say which rows of others it asks for. Where cut edges are dropped, each worker has a
//! frontier of its own, within its part.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::graph::sampling::{Frontiers, Population, drawn, frontiers};
use crate::graph::{BatchForm, Batches, ExpectedGraph, LayerDraw, Peers, StepDraws, Steps, round};

/// The mini-batches of all workers of a run, step after step.
pub(super) struct ExpectedBatches {
    law: Arc<ExpectedGraph>,
    batches: Arc<Batches>,
    steps: Steps,
    workers: usize,
    form: BatchForm,
    /// What came to workers that keep features, by their training nodes: those with as many are
    /// alike.
    kept: BTreeMap<usize, Kept>,
    /// What is met from so many seeds, by the workers that have them.
    met: BTreeMap<Vec<(usize, usize)>, Arc<Frontiers>>,
}

impl ExpectedBatches {
    /// Those of a run that has drawn nothing yet.
    pub(super) fn new(
        law: Arc<ExpectedGraph>,
        batches: Arc<Batches>,
        (steps, workers): (Steps, usize),
        form: BatchForm,
    ) -> Self {
        Self {
            law,
            batches,
            steps,
            workers,
            form,
            kept: BTreeMap::new(),
            met: BTreeMap::new(),
        }
    }

    /// Number of steps of an epoch.
    pub(super) const fn steps(&self) -> usize {
        self.steps.count()
    }

    /// What is drawn in a step. Where features are kept, steps are played in their order.
    pub(super) fn play(&mut self, step: usize) -> StepDraws {
        let layers = self.batches.spec.fanouts.len();
        // Workers with as many seeds are alike: how many, and how many seeds.
        let mut kinds: BTreeMap<usize, usize> = BTreeMap::new();
        for rank in 0..self.workers {
            *kinds.entry(self.seeds(rank, step)).or_default() += 1;
        }
        let mut draws = StepDraws {
            layers: vec![vec![LayerDraw::default(); self.workers]; layers],
        };
        let kinds: Vec<(usize, usize)> = kinds.into_iter().collect();
        for (kind, &(seeds, workers)) in kinds.iter().enumerate() {
            let alone = self.form == BatchForm::Alone;
            let met = if alone {
                self.met(vec![(seeds, 1)])
            } else {
                self.met(kinds.clone())
            };
            let (place, share) = if alone { (0, 1) } else { (kind, workers) };
            for hop in 0..layers {
                let layer = layers - 1 - hop;
                let draw = self.draw(&met, (hop, layer), (place, share), seeds);
                for rank in 0..self.workers {
                    if self.seeds(rank, step) == seeds {
                        draws.layers[layer][rank] = LayerDraw {
                            asks: Peers::dealt(rank, self.workers, draw.inputs - draw.own),
                            ..draw.clone()
                        };
                    }
                }
            }
            if self.form == BatchForm::KeepingFeatures && layers > 0 {
                self.fetch(
                    &mut draws.layers[0],
                    step,
                    seeds,
                    &met.chances[layers - 1][place],
                );
            }
        }
        draws
    }

    /// Has workers that keep features ask for those alone that did not come before.
    fn fetch(&mut self, layer: &mut [LayerDraw], step: usize, seeds: usize, chances: &[f64]) {
        let mut fetched: BTreeMap<usize, usize> = BTreeMap::new();
        for (rank, draw) in layer.iter_mut().enumerate() {
            if self.seeds(rank, step) == seeds {
                let nodes = self.steps.nodes(rank);
                let rows = match fetched.get(&nodes) {
                    Some(rows) => *rows,
                    None => *fetched.entry(nodes).or_insert(self.keep(nodes, chances)),
                };
                draw.asks = Peers::dealt(rank, self.workers, rows);
            }
        }
    }

    fn seeds(&self, rank: usize, step: usize) -> usize {
        self.steps.range(rank, step).len()
    }

    /// What is met from so many seeds, `(seeds, workers)` of each kind of worker.
    fn met(&mut self, kinds: Vec<(usize, usize)>) -> Arc<Frontiers> {
        let one = 1.0 / self.workers as f64;
        let (law, fanouts) = (&self.law, &self.batches.spec.fanouts);
        let met = self.met.entry(kinds).or_insert_with_key(|kinds| {
            let population = |&(seeds, workers): &(usize, usize)| Population {
                share: workers as f64 * one,
                seeds: (seeds * workers) as f64,
                spreads: true,
            };
            let all: Vec<Population> = kinds.iter().map(population).collect();
            Arc::new(frontiers(law, &all, fanouts))
        });
        Arc::clone(met)
    }

    /// What one worker of a kind, of so many, draws at a hop; asks are left out.
    fn draw(
        &self,
        met: &Frontiers,
        (hop, layer): (usize, usize),
        (kind, workers): (usize, usize),
        seeds: usize,
    ) -> LayerDraw {
        let of_one = |all: f64| round(all / workers as f64);
        let (before, after) = (met.rows[hop][kind], met.rows[hop + 1][kind]);
        let outputs = if hop == 0 {
            seeds
        } else {
            of_one(before.nodes)
        };
        let (own, others) = if self.form == BatchForm::Alone {
            (of_one(after.nodes), 0)
        } else {
            let share = 1.0 / self.workers as f64;
            let (mut own, mut others) = (0.0, 0.0);
            let classes = self.law.classes.iter().zip(&met.chances[hop][kind]);
            for ((class, there), draws) in classes.zip(&met.draws[hop][kind]) {
                let chance = drawn(class, draws / workers as f64);
                own += class.nodes * share * (1.0 - (1.0 - there) * (1.0 - chance));
                others += class.nodes * (1.0 - share) * chance;
            }
            (round(own), round(others))
        };
        let makes = layer > 0 || self.form == BatchForm::Together;
        LayerDraw {
            outputs,
            inputs: own + others,
            own,
            edges: of_one(before.edges),
            looked_at: of_one(before.looked_at),
            made: if makes { of_one(after.nodes) } else { 0 },
            ..LayerDraw::default()
        }
    }

    /// Features of others that come to a worker with so many training nodes that keeps them, in a
    /// step whose last hop begins with these chances of its nodes, by class.
    fn keep(&mut self, nodes: usize, chances: &[f64]) -> usize {
        let own = 1.0 / self.workers as f64;
        let (classes, fanouts) = (&self.law.classes, &self.batches.spec.fanouts);
        let fanout = fanouts.last().copied().unwrap_or(0);
        let none = || Kept {
            steps: 0,
            times: vec![0.0; classes.len()],
            rows: 0.0,
        };
        let kept = self.kept.entry(nodes).or_insert_with(none);
        kept.steps += 1;
        let mut ends = vec![0.0; classes.len()];
        for ((class, times), chance) in classes.iter().zip(&mut kept.times).zip(chances) {
            *times += chance;
            let mean = *times / f64::from(kept.steps);
            let edges = class.nodes * own * class.edges_drawn(fanout, mean, kept.steps);
            // Of those that have no neighbours nothing is drawn.
            for (end, neighbours) in ends.iter_mut().zip(&class.neighbours) {
                *end += edges * neighbours / class.degree.max(f64::MIN_POSITIVE);
            }
        }
        let classes = classes.iter().zip(ends);
        let all: f64 = classes
            .map(|(class, edges)| class.nodes * (1.0 - own) * drawn(class, edges))
            .sum();
        round(all - std::mem::replace(&mut kept.rows, all).min(all))
    }
}

/// What a worker that keeps features has drawn in the last hop until now.
struct Kept {
    /// Steps so far.
    steps: i32,
    /// How often a node of each class was in it, on average.
    times: Vec<f64>,
    /// Rows of others that came.
    rows: f64,
}
