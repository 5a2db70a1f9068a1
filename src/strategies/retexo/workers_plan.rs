//! What the workers of RETEXO do, stated in advance.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Workers;
use super::sub_model::SubModel;
use crate::graph::sampling::{Population, frontiers};
use crate::graph::{
    BoundaryCounts, Csr, ExpectedGraph, Part, SampledLayer, Sampler, Steps, View, round, seeds_of,
    shuffled,
};
use crate::model::{BlockShape, InputShape, Work, parameter_shapes};
use crate::sim::{Decision, Planner, Timeline, Track};
use crate::strategies::parts::gradients::LearnerPlan;
use crate::strategies::parts::plan::{
    CrossingPlan, Stretches, arrived_rows, memory_alone, receive_features, send_features, stored,
};

/// The plan of a training.
pub(super) struct WorkersPlanner {
    workers: Workers,
    /// Of the sub-model that is trained now.
    learner: Option<LearnerPlan>,
    epoch: usize,
    /// Of each worker the values that are stored of each row that the first sub-model reads; of all
    /// together where all rows are dense and always read.
    features: Vec<Vec<usize>>,
    /// Of each worker its piece of the graph, where batches are drawn from it.
    local: Vec<Csr>,
    steps: Steps,
    /// A worker of each number of training nodes.
    kinds: Vec<usize>,
    last: Arc<Timeline>,
}

impl WorkersPlanner {
    /// A plan from epoch 0 on.
    pub(super) fn new(workers: Workers) -> Self {
        let state = workers.wires.state();
        let wire = workers.wire(0, &state);
        let setting = &workers.setting;
        let features = &setting.dataset.features;
        // Who asks for work needs the edges that are drawn, and drawing them takes the graph.
        let draws = setting.batches.is_some() && setting.plans_work && setting.law.is_none();
        let local = setting.boundary.parts.iter().filter(|_| draws);
        let parts = setting.counts.parts.iter().enumerate();
        let kinds: BTreeMap<usize, usize> =
            parts.map(|(rank, part)| (part.training, rank)).collect();
        let rows = |(rank, part): (usize, &Part)| {
            let counts = &setting.counts.parts[rank];
            let counted = setting.counts.dense || !setting.holds_graph();
            if counted && (setting.batches.is_none() || setting.law.is_some()) {
                return vec![counts.own_values + counts.halo_values];
            }
            let own = part.owned.iter().map(|&node| features.stored_of(node));
            let others = arrived_rows(setting, rank, part.halo_by_owner(), &wire);
            own.chain(others).collect()
        };
        Self {
            features: setting
                .boundary
                .parts
                .iter()
                .enumerate()
                .map(rows)
                .collect(),
            local: local
                .map(|part| part.local_graph(&setting.dataset.graph))
                .collect(),
            kinds: kinds.into_values().collect(),
            steps: setting.steps(),
            workers,
            learner: None,
            epoch: 0,
            last: Arc::default(),
        }
    }

    /// What a sub-model reads of all rows that are there.
    fn input(&self, rank: usize, layer: usize) -> InputShape {
        let setting = &self.workers.setting;
        let part = &setting.counts.parts[rank];
        if layer > 0 {
            let width = self.workers.spec.widths[layer];
            return InputShape::dense(part.owned + part.halo, width);
        }
        InputShape::new(self.features[rank].iter().sum(), setting.counts.dense)
    }

    fn block(&self, rank: usize) -> BlockShape {
        let setting = &self.workers.setting;
        let part = &setting.counts.parts[rank];
        let (inputs, edges) = (part.owned + part.halo, part.internal_edges + part.cut_edges);
        BlockShape::of(part.owned, inputs, edges, setting.model.aggregation())
    }

    /// What a worker holds while it trains a sub-model: the features of all rows that are there
    /// from the beginning to the end, and above the first the rows that are read.
    fn hold(&self, track: &mut Track, rank: usize, layer: usize) {
        let features = stored(self.input(rank, 0));
        let rows = if layer > 0 {
            stored(self.input(rank, layer))
        } else {
            0
        };
        track.reads_features();
        track.keeps(features + rows);
    }

    /// The rows of a sub-model's input, once.
    fn receive(&self, track: &mut Track, rank: usize, layer: usize) {
        let setting = &self.workers.setting;
        let crossing = CrossingPlan::whole(&setting.counts.parts[rank]);
        let wire = self.workers.wire(layer, &self.workers.wires.state());
        let width = self.workers.spec.widths[layer];
        if layer > 0 {
            crossing.forward(track, rank, layer, width, &wire);
            return;
        }
        let ends = [&crossing.sends[..], &crossing.receives];
        send_features(track, rank, ends, width, &wire);
        receive_features(track, crossing.halo(), width);
    }

    /// The nodes of each worker that train in an epoch, in the order of their steps; of a graph in
    /// numbers nobody knows them.
    fn orders(&self) -> Vec<Vec<u32>> {
        let setting = &self.workers.setting;
        let Some(batches) = setting.batches.as_ref().filter(|_| setting.law.is_none()) else {
            return vec![Vec::new(); setting.workers()];
        };
        let of = |(rank, part): (usize, &Part)| {
            let rows = part.training_rows(&batches.train);
            shuffled(setting.seed, self.epoch, rank, &rows)
        };
        setting.boundary.parts.iter().enumerate().map(of).collect()
    }

    /// How many nodes train in a step, of each kind of workers.
    fn seeds(&self, step: usize) -> Vec<usize> {
        let seeds = |&rank: &usize| self.steps.range(rank, step).len();
        self.kinds.iter().map(seeds).collect()
    }

    /// What a worker's batch reads in a step, after it drew it; none if no node of it trains.
    fn draw(
        &self,
        track: &mut Track,
        rank: usize,
        layer: usize,
        order: &[u32],
        step: usize,
    ) -> Option<(BlockShape, InputShape)> {
        let setting = &self.workers.setting;
        let batches = setting.batches.as_ref()?;
        let seeds = self.steps.range(rank, step).len();
        if seeds == 0 {
            return None;
        }
        let width = self.workers.spec.widths[layer];
        let fanouts = [batches.spec.fanouts[layer]];
        let reads = if let Some(law) = &setting.law {
            expected(law, &setting.counts, seeds, fanouts[0])
        } else {
            let seeds = seeds_of(order, &self.steps, rank, step);
            self.played(rank, &fanouts, seeds, step)
        };
        let Reads {
            outputs,
            inputs,
            edges,
            looked_at,
            ..
        } = reads;
        track.work_of_others(setting.samples_beside, |track| {
            track.compute(Work::pass(looked_at));
            track.compute(Work::pass(edges + inputs * width));
        });
        let input = match reads.stored.filter(|_| layer == 0) {
            Some(stored) => InputShape::new(stored, setting.counts.dense),
            None => InputShape::dense(inputs, width),
        };
        let aggregation = setting.model.aggregation();
        let block = BlockShape::sampled(outputs, inputs, edges, aggregation);
        Some((block, input))
    }

    /// What is drawn for these seeds, as the training draws it.
    fn played(&self, rank: usize, fanouts: &[usize], seeds: Vec<u32>, step: usize) -> Reads {
        // The key of the training, so that plan and training draw the same neighbours.
        let sampler = Sampler::new(self.workers.setting.seed, self.epoch, step, fanouts);
        let part = &self.workers.setting.boundary.parts[rank];
        let own = part.owned.len();
        let sampled = if let Some(adjacency) = self.local.get(rank) {
            let nodes = [&part.owned[..], &part.halo].concat();
            let view = View {
                adjacency,
                nodes: &nodes,
                own,
            };
            SampledLayer::draw(&sampler, 0, &view, seeds)
        // Nobody asks for edges then, and no message depends on them.
        } else {
            SampledLayer::without_neighbours(seeds, own, own + part.halo.len())
        };
        let rows = sampled.rows.iter();
        // Where nobody asks for work, nothing is known of the rows of others.
        let stored = rows.filter_map(|&row| self.features[rank].get(row as usize));
        Reads {
            outputs: sampled.outputs,
            inputs: sampled.rows.len(),
            edges: sampled.adjacency.edges(),
            looked_at: sampled.degrees.iter().sum(),
            stored: Some(stored.sum()),
        }
    }

    /// What a worker does before its first step of an epoch.
    fn open(&self, track: &mut Track, rank: usize, (layer, round): (usize, usize)) {
        let Workers { setting, spec, .. } = &self.workers;
        if round == 0 {
            track.set_up(true, |track| {
                if let Some(below) = layer.checked_sub(1) {
                    let (block, input) = (self.block(rank), self.input(rank, below));
                    track.compute(SubModel::work(spec, below, block, input));
                }
                self.receive(track, rank, layer);
            });
        }
        self.hold(track, rank, layer);
        if setting.batches.is_some() {
            let training = setting.counts.parts[rank].training;
            track.work_of_others(setting.samples_beside, |track| {
                track.compute(Work::pass(training));
            });
        }
    }

    /// What a worker does in a step of an epoch, the `taken`th of its sub-model.
    fn step(
        &self,
        track: &mut Track,
        rank: usize,
        layer: usize,
        order: &[u32],
        [step, taken]: [usize; 2],
    ) {
        let Workers { setting, spec, .. } = &self.workers;
        let reads = match setting.batches {
            None => Some((self.block(rank), self.input(rank, layer))),
            Some(_) => self.draw(track, rank, layer, order, step),
        };
        if let Some((block, input)) = reads {
            let headed = layer + 1 < spec.layers();
            let (most, stays) = memory_alone(spec, layer, block, input, headed);
            track.passes_with(most, stays);
            for work in SubModel::step_work(spec, layer, block, input) {
                track.compute(work);
            }
        }
        if let Some(learner) = &self.learner {
            learner.write(track, rank, taken);
        }
    }
}

/// What one batch of a worker reads.
struct Reads {
    outputs: usize,
    inputs: usize,
    edges: usize,
    looked_at: usize,
    /// Values of its features, where it is known which they are.
    stored: Option<usize>,
}

/// What so many seeds of a worker read in a graph that is known by its law: frozen rows of all
/// neighbours are there, so that they are drawn across the cut.
fn expected(law: &ExpectedGraph, counts: &BoundaryCounts, seeds: usize, fanout: usize) -> Reads {
    let populations = Population::of_one(counts.parts.len(), seeds);
    let met = frontiers(law, &populations, &[fanout]);
    let [before, after] = [&met.rows[0], &met.rows[1]];
    Reads {
        outputs: seeds,
        inputs: round(after.iter().map(|one| one.nodes).sum()),
        edges: round(before[0].edges),
        looked_at: round(before[0].looked_at),
        stored: None,
    }
}

impl Planner for WorkersPlanner {
    fn next(&mut self, _: Option<&Decision>) -> Arc<Timeline> {
        let Workers {
            rounds,
            setting,
            spec: model,
            ..
        } = &self.workers;
        let epoch = self.epoch;
        let (layer, round) = rounds.at(epoch);
        let is_last = round + 1 == rounds.of(layer);
        let epochs = rounds.first(model.layers());
        let steps = self.steps.count();
        if round == 0 {
            let parameters = SubModel::parameters(model, layer);
            let sizes = [parameters, rounds.of(layer) * steps];
            let gradients = self.workers.gradients;
            self.learner = Some(LearnerPlan::new(gradients, setting, sizes, || {
                parameter_shapes(&SubModel::new(
                    model,
                    layer,
                    setting.seed,
                    &setting.device(),
                ))
            }));
        }
        let in_numbers = setting.law.is_some() && setting.batches.is_some();
        let orders = self.orders();
        let mut written = Stretches::of(setting.workers());
        for (rank, track) in written.tracks.iter_mut().enumerate() {
            self.open(track, rank, (layer, round));
        }
        for step in 0..steps {
            let taken = round * steps + step;
            let sums = |taken| self.learner.as_ref().map(|one| one.sums_after(taken));
            // In numbers a step is like the one before but for the last ones. The first is behind
            // what opens the epoch.
            let again = in_numbers
                && step > 1
                && self.seeds(step) == self.seeds(step - 1)
                && sums(taken) == sums(taken - 1);
            if again && written.again() {
                continue;
            }
            for (rank, track) in written.tracks.iter_mut().enumerate() {
                self.step(track, rank, layer, &orders[rank], [step, taken]);
            }
            if in_numbers {
                written.cut();
            }
        }
        if is_last || setting.training.evaluates(epoch, epochs) {
            // Which parameters are the best depends on it, so every worker waits for the
            // evaluation.
            written.tracks.iter_mut().for_each(Track::share);
        }
        self.epoch += 1;
        // Most rounds are like the one before, and then held once.
        self.last = written.after(&self.last, epoch);
        Arc::clone(&self.last)
    }
}
