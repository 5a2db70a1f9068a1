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
    kinds: Vec<Kind>,
    /// What is met from so many seeds of a worker of each kind.
    met: BTreeMap<Vec<usize>, Arc<Frontiers>>,
    /// The last step: seeds of each kind with the features it fetches, and what is drawn.
    last: (Vec<Asked>, Arc<StepDraws>),
}

/// Seeds of a worker, and the features of others that it fetches where it keeps them.
type Asked = (usize, Option<usize>);

/// Workers with as many training nodes, which do the same in all steps.
struct Kind {
    ranks: Vec<usize>,
    /// Of workers that keep features: steps so far, how often the last hop began with a node of
    /// each class, on average, and rows of others that came.
    steps: i32,
    read: Vec<f64>,
    rows: f64,
}

impl ExpectedBatches {
    /// Those of a run that has drawn nothing yet.
    pub(super) fn new(
        law: Arc<ExpectedGraph>,
        batches: Arc<Batches>,
        (steps, workers): (Steps, usize),
        form: BatchForm,
    ) -> Self {
        let mut alike: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for rank in 0..workers {
            alike.entry(steps.nodes(rank)).or_default().push(rank);
        }
        let kind = |ranks| Kind {
            ranks,
            steps: 0,
            read: vec![0.0; law.classes.len()],
            rows: 0.0,
        };
        Self {
            kinds: alike.into_values().map(kind).collect(),
            law,
            batches,
            steps,
            workers,
            form,
            met: BTreeMap::new(),
            last: (Vec::new(), Arc::default()),
        }
    }

    /// Number of steps of an epoch.
    pub(super) const fn steps(&self) -> usize {
        self.steps.count()
    }

    /// Whether all workers do the same.
    pub(super) const fn are_equal(&self) -> bool {
        self.kinds.len() == 1
    }

    /// What is drawn in a step, the same as before where that is held already. Where features are
    /// kept, steps are played in their order.
    pub(super) fn play(&mut self, step: usize) -> Arc<StepDraws> {
        let seeds = |kind: &Kind| self.steps.range(kind.ranks[0], step).len();
        let seeds: Vec<usize> = self.kinds.iter().map(seeds).collect();
        let keeps = self.form == BatchForm::KeepingFeatures;
        let fetched = |kind| keeps.then(|| self.fetched(kind, &seeds));
        let fetched: Vec<Option<usize>> = (0..seeds.len()).map(fetched).collect();
        let asked: Vec<Asked> = seeds.into_iter().zip(fetched).collect();
        if self.last.0 != asked {
            let draws = Arc::new(self.drawn(&asked));
            self.last = (asked, draws);
        }
        Arc::clone(&self.last.1)
    }

    /// What workers draw that ask for so much.
    fn drawn(&mut self, asked: &[Asked]) -> StepDraws {
        let layers = self.batches.spec.fanouts.len();
        let mut draws = StepDraws {
            layers: vec![vec![LayerDraw::default(); self.workers]; layers],
        };
        let seeds: Vec<usize> = asked.iter().map(|(seeds, _)| *seeds).collect();
        for (kind, &(own, fetched)) in asked.iter().enumerate() {
            let (met, place, workers) = self.met_by(kind, &seeds);
            for hop in 0..layers {
                let layer = layers - 1 - hop;
                let draw = self.draw(&met, (hop, layer), (place, workers), own);
                let others = draw.inputs - draw.own;
                let asks = fetched.filter(|_| layer == 0).unwrap_or(others);
                for &rank in &self.kinds[kind].ranks {
                    draws.layers[layer][rank] = LayerDraw {
                        asks: Peers::dealt(rank, self.workers, asks),
                        ..draw.clone()
                    };
                }
            }
        }
        draws
    }

    /// What a kind of workers meets, as which population of it, and of how many.
    fn met_by(&mut self, kind: usize, seeds: &[usize]) -> (Arc<Frontiers>, usize, usize) {
        // Within its own part a worker meets nobody else.
        if self.form == BatchForm::Alone {
            return (self.met(&seeds[kind..=kind]), 0, 1);
        }
        (self.met(seeds), kind, self.kinds[kind].ranks.len())
    }

    /// What is met from so many seeds of a worker of each kind; of one that is alone, from its own.
    fn met(&mut self, seeds: &[usize]) -> Arc<Frontiers> {
        if let Some(known) = self.met.get(seeds) {
            return Arc::clone(known);
        }
        let population = |(kind, &seeds): (&Kind, &usize)| {
            let workers = match self.form {
                BatchForm::Alone => 1,
                _ => kind.ranks.len(),
            };
            Population {
                share: workers as f64 / self.workers as f64,
                seeds: (seeds * workers) as f64,
                spreads: true,
            }
        };
        let all: Vec<Population> = self.kinds.iter().zip(seeds).map(population).collect();
        let met = Arc::new(frontiers(&self.law, &all, &self.batches.spec.fanouts));
        self.met.insert(seeds.to_vec(), Arc::clone(&met));
        met
    }

    /// What one worker of a population of so many draws at a hop; asks are left out.
    fn draw(
        &self,
        met: &Frontiers,
        (hop, layer): (usize, usize),
        (place, workers): (usize, usize),
        seeds: usize,
    ) -> LayerDraw {
        let of_one = |all: f64| round(all / workers as f64);
        let (before, after) = (met.rows[hop][place], met.rows[hop + 1][place]);
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
            let classes = self.law.classes.iter().zip(&met.chances[hop][place]);
            for ((class, there), draws) in classes.zip(&met.draws[hop][place]) {
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

    /// Features of others that come to a worker of a kind that keeps them, in a step of so many
    /// seeds of each. To three digits, so that steps that hardly differ are one.
    fn fetched(&mut self, kind: usize, seeds: &[usize]) -> usize {
        let (met, place, _) = self.met_by(kind, seeds);
        // The last hop begins with these, and there is one at least.
        let chances = &met.chances[met.chances.len() - 2][place];
        let own = 1.0 / self.workers as f64;
        let classes = &self.law.classes;
        let fanout = self.batches.spec.fanouts.last().copied().unwrap_or(0);
        let kept = &mut self.kinds[kind];
        kept.steps += 1;
        let mut ends = vec![0.0; classes.len()];
        for ((class, read), chance) in classes.iter().zip(&mut kept.read).zip(chances) {
            *read += chance;
            if class.degree == 0.0 {
                continue;
            }
            let mean = *read / f64::from(kept.steps);
            let edges = class.nodes * own * class.edges_drawn(fanout, mean, kept.steps);
            for (end, neighbours) in ends.iter_mut().zip(&class.neighbours) {
                *end += edges * neighbours / class.degree;
            }
        }
        let came = classes.iter().zip(ends);
        let came = came.map(|(class, ends)| class.nodes * (1.0 - own) * drawn(class, ends));
        let all: f64 = came.sum();
        let new = (all - std::mem::replace(&mut kept.rows, all)).max(0.0);
        let unit = 10_f64.powf((new.max(1.0).log10() - 2.0).floor().max(0.0));
        round((new / unit).round() * unit)
    }
}
