//! What the workers do in an epoch of Grappa, stated in advance.

use std::sync::Arc;

use super::estimators::Weight;
use super::layout::{Layout, Schedule};
use super::planned::{Batch, Working};
use super::{Sweeping, expectation};
use crate::graph::{Part, shuffled};
use crate::model::{BlockShape, InputShape, Work};
use crate::net::{Bytes, TrafficKind};
use crate::sim::{Decision, Planner, Timeline, Track};
use crate::strategies::parts::gradients::LearnerPlan;
use crate::strategies::parts::plan::{PassPlan, Stretches, exchange_of, stored};

/// The plan of a training.
pub(super) struct SweepPlanner {
    sweeping: Sweeping,
    epoch: usize,
    /// Each worker's working graph since the last time that one was loaded.
    working: Vec<Working>,
    learner: LearnerPlan,
    /// Steps of the epochs before.
    taken: usize,
    last: Arc<Timeline>,
}

impl SweepPlanner {
    /// A plan from epoch 0 on.
    pub(super) fn new(sweeping: Sweeping) -> Self {
        let gradients = sweeping.options.gradients;
        Self {
            learner: LearnerPlan::of_model(gradients, &sweeping.setting, sweeping.steps()),
            taken: 0,
            sweeping,
            epoch: 0,
            working: Vec::new(),
            last: Arc::default(),
        }
    }

    /// What a worker does before an epoch in which its working graph changes.
    fn load(&self, track: &mut Track, rank: usize, layout: &Layout<'_>) {
        let Self {
            sweeping, epoch, ..
        } = self;
        let setting = &sweeping.setting;
        let (part, width) = (&setting.counts.parts[rank], setting.model.features());
        let owned = Work::pass(part.owned * width);
        if sweeping.switches(*epoch) {
            track.set_up(true, |track| {
                if *epoch == 0 && sweeping.knows_expected() {
                    let (weight, hops) = (sweeping.weighing.weight, sweeping.expected_hops());
                    expectation::plan(track, part, weight, hops);
                }
                track.compute(owned);
                let payload = |from, to| layout.payload(width, from, to);
                let came = self.exchange(track, rank, TrafficKind::Repartition, payload);
                track.compute(owned + came);
            });
        }
        if sweeping.rules.sampling > 0.0 {
            track.compute(Work::pass(part.owned));
            let payload = |from, to| layout.sampled_payload(width, from, to);
            let came = self.exchange(track, rank, TrafficKind::Feature, payload);
            track.compute(came);
        }
        let working = &self.working[rank];
        // What is sampled anew in each epoch makes this part of each.
        track.set_up(sweeping.rules.sampling == 0.0, |track| {
            track.compute(owned);
            let edges = Work::pass(working.edges * setting.model.layers());
            track.compute(edges);
            track.compute(edges);
            if setting.batches.is_none() {
                let layers = vec![self.block(working); setting.model.layers()];
                self.norms(track, &layers, working.features);
                sweeping.weighing.plan(track);
            }
        });
    }

    /// Messages of these sizes among all workers; the work of reading what came.
    fn exchange(
        &self,
        track: &mut Track,
        rank: usize,
        kind: TrafficKind,
        payload: impl Fn(usize, usize) -> Option<Bytes>,
    ) -> Work {
        let peers = || (0..self.sweeping.setting.workers()).filter(|&peer| peer != rank);
        let sent = peers().filter_map(|peer| Some((peer as u32, payload(rank, peer)?)));
        let came = peers().filter_map(|peer| Some((peer as u32, payload(peer, rank)?)));
        let came: Vec<(u32, Bytes)> = came.collect();
        let from = came.iter().map(|&(peer, _)| peer).collect();
        track.exchange(exchange_of(kind, 0, sent.collect(), from));
        let bytes: u64 = came.iter().map(|(_, bytes)| bytes.0).sum();
        Work::pass((bytes / 4) as usize)
    }

    /// A forward pass without dropout, where weights need the norms of gradients.
    fn norms(&self, track: &mut Track, blocks: &[BlockShape], features: InputShape) {
        if self.sweeping.weighing.weight != Weight::BatchGram {
            return;
        }
        let model = &self.sweeping.setting.model;
        let mut input = features;
        for (layer, &block) in blocks.iter().enumerate() {
            track.compute(Work::layer(model, layer, block, input));
            input = InputShape::dense(block.outputs, model.widths[layer + 1]);
        }
    }

    fn block(&self, working: &Working) -> BlockShape {
        let sweeping = &self.sweeping;
        let aggregation = sweeping.setting.model.aggregation();
        working.block(aggregation, sweeping.options.halo_degrees)
    }

    fn pass(
        &self,
        track: &mut Track,
        rank: usize,
        blocks: &[BlockShape],
        features: Option<InputShape>,
    ) {
        let model = &self.sweeping.setting.model;
        PassPlan::alone(model, blocks.iter().copied(), features).write(track, rank);
    }

    /// A step with a mini-batch of a worker's seeds, which train in this order.
    fn batch(
        &self,
        track: &mut Track,
        rank: usize,
        layout: &Layout<'_>,
        order: &[u32],
        step: usize,
    ) {
        let (sweeping, working) = (&self.sweeping, &self.working[rank]);
        let setting = &sweeping.setting;
        let model = &setting.model;
        let halo = sweeping.options.halo_degrees;
        let range = layout.steps(sweeping.batch_size()).range(rank, step);
        let batch = if let Some(law) = &setting.law {
            Batch::expect((setting, halo), law, layout, (rank, range.len()))
        } else if !setting.holds_graph() {
            Batch::count(setting, range.len())
        } else {
            let range = range.start.min(order.len())..range.end.min(order.len());
            let mut places = order[range].to_vec();
            places.sort_unstable();
            let seeds = working.rows_of(&places);
            Batch::draw((setting, halo), working, seeds, (self.epoch, step))
        };
        track.work_of_others(setting.samples_beside, |track| {
            for looked_at in &batch.looked_at {
                track.compute(Work::pass(*looked_at));
            }
            track.compute(Work::pass(batch.edges));
            track.compute(Work::pass(batch.blocks[0].inputs * model.features()));
        });
        if let Some(features) = batch.features {
            self.norms(track, &batch.blocks, features);
        }
        sweeping.weighing.plan(track);
        self.pass(track, rank, &batch.blocks, batch.features);
    }
}

impl SweepPlanner {
    /// What a worker does before the steps of an epoch; the order in which its seeds train, where
    /// it is known who they are.
    fn begin(&self, track: &mut Track, rank: usize, layout: &Layout<'_>) -> Vec<u32> {
        let (setting, working) = (&self.sweeping.setting, &self.working[rank]);
        let halo = setting.counts.parts[rank].halo;
        let kept = layout.kept(setting.model.features(), rank, halo).0 + working.bytes();
        if setting.batches.is_none() {
            // Its features are part of the pass.
            track.keeps(kept);
            return Vec::new();
        }
        track.keeps(kept + stored(working.features));
        track.work_of_others(setting.samples_beside, |track| {
            track.compute(Work::pass(working.seeds));
        });
        if setting.law.is_some() {
            return Vec::new();
        }
        let seeds: Vec<u32> = (0..working.seeds as u32).collect();
        shuffled(setting.seed, self.epoch, rank, &seeds)
    }

    /// Steps of an epoch with equal numbers of seeds of each worker are the same, where they are
    /// known by a law.
    fn kind(&self, layout: &Layout<'_>, step: usize) -> Option<Vec<usize>> {
        let setting = &self.sweeping.setting;
        let steps = layout.steps(self.sweeping.batch_size());
        let seeds = |rank| steps.range(rank, step).len();
        let known = setting.law.is_some() && setting.batches.is_some();
        let sums = || usize::from(self.learner.sums_after(self.taken + step));
        known.then(|| (0..setting.workers()).map(seeds).chain([sums()]).collect())
    }

    fn step(
        &self,
        track: &mut Track,
        rank: usize,
        layout: &Layout<'_>,
        (order, step): (&[u32], usize),
    ) {
        let (sweeping, working) = (&self.sweeping, &self.working[rank]);
        let (setting, parameters) = (&sweeping.setting, sweeping.setting.model.parameters());
        if setting.batches.is_some() {
            self.batch(track, rank, layout, order, step);
        } else {
            let blocks = vec![self.block(working); setting.model.layers()];
            self.pass(track, rank, &blocks, Some(working.features));
        }
        if sweeping.options.gradients.are_plain() {
            let sum = usize::from(sweeping.weighing.folds_mean());
            track.all_reduce(parameters + sum, TrafficKind::ParameterGradient);
            self.learner.write_update(track);
        } else {
            self.learner.write(track, rank, self.taken + step);
        }
    }

    /// The next epoch of the first so many workers.
    fn plan(&mut self, workers: usize) -> Arc<Timeline> {
        let sweeping = self.sweeping.clone();
        let setting = &sweeping.setting;
        let epoch = self.epoch;
        let layout = sweeping.layout(epoch);
        let loads = sweeping.loads(epoch);
        if loads {
            let ranks = 0..workers;
            let working = ranks.map(|rank| Working::new(setting, &layout, rank, epoch));
            self.working = working.collect();
        }
        let mut written = Stretches::of(workers);
        let mut orders = Vec::new();
        for (rank, track) in written.tracks.iter_mut().enumerate() {
            if loads {
                self.load(track, rank, &layout);
            }
            orders.push(self.begin(track, rank, &layout));
        }
        let mut last = None;
        let steps = layout.steps(sweeping.batch_size()).count();
        for step in 0..steps {
            let kind = self.kind(&layout, step);
            if kind.is_some() {
                if kind == last && written.again() {
                    continue;
                }
                written.cut();
            }
            for (rank, track) in written.tracks.iter_mut().enumerate() {
                self.step(track, rank, &layout, (&orders[rank], step));
            }
            last = kind;
        }
        self.epoch += 1;
        self.taken += steps;
        self.last = written.after(&self.last, epoch);
        Arc::clone(&self.last)
    }

    /// Whether all workers do the same: their parts are alike, and chunks go round.
    fn are_equal(&self) -> bool {
        let setting = &self.sweeping.setting;
        let layout = self.sweeping.layout(0);
        let first = layout.part(0);
        let alike = |chunk| {
            let Part {
                internal_edges,
                cut_edges,
                training,
                ..
            } = layout.part(chunk);
            (internal_edges, cut_edges, training)
                == (&first.internal_edges, &first.cut_edges, &first.training)
                && layout.nodes(chunk) == layout.nodes(0)
        };
        let parts = &setting.counts.parts;
        setting.law.is_some()
            && self.learner.is_equal()
            && layout.rules().schedule != Schedule::Regroup
            && parts.iter().all(|part| part.owned == parts[0].owned)
            && (0..layout.chunks()).all(alike)
    }
}

impl Planner for SweepPlanner {
    fn next(&mut self, _: Option<&Decision>) -> Arc<Timeline> {
        self.plan(self.sweeping.setting.workers())
    }

    fn next_of_equals(&mut self) -> Option<Arc<Timeline>> {
        self.are_equal().then(|| self.plan(1))
    }
}
