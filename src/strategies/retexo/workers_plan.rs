//! What the workers of RETEXO do, stated in advance.

use std::sync::Arc;

use super::Workers;
use super::sub_model::SubModel;
use crate::graph::{Csr, SampledLayer, Sampler, View, seeds_of, shuffled};
use crate::model::{BlockShape, InputShape, Work, parameter_shapes};
use crate::sim::{Decision, Planner, Timeline, Track};
use crate::strategies::parts::gradients::LearnerPlan;
use crate::strategies::parts::plan::{
    Arrivals, CrossingPlan, memory_alone, receive_features, send_features, stored,
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
    last: Arc<Timeline>,
}

impl WorkersPlanner {
    /// A plan from epoch 0 on.
    pub(super) fn new(workers: Workers) -> Self {
        let state = workers.wires.state();
        let wire = workers.wire(0, &state);
        let setting = &workers.setting;
        let arrivals = Arrivals::new(Arc::clone(setting));
        let features = &setting.dataset.features;
        // Who asks for work needs the edges that are drawn, and drawing them takes the graph.
        let draws = setting.batches.is_some() && setting.plans_work;
        let local = setting.boundary.parts.iter().filter(|_| draws);
        let rows = |(rank, part): (usize, &crate::graph::Part)| {
            let counts = &setting.counts.parts[rank];
            let counted = setting.counts.dense || !setting.holds_graph();
            if counted && setting.batches.is_none() {
                return vec![counts.own_values + counts.halo_values];
            }
            let own = part.owned.iter().map(|&node| features.stored_of(node));
            let others = arrivals.rows(rank, part.halo_by_owner(), &wire);
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
        let seeds = seeds_of(order, &setting.steps(), rank, step);
        if seeds.is_empty() {
            return None;
        }
        let fanouts = [batches.spec.fanouts[layer]];
        // The key of the training, so that plan and training draw the same neighbours.
        let sampler = Sampler::new(setting.seed, self.epoch, step, &fanouts);
        let part = &setting.boundary.parts[rank];
        let width = self.workers.spec.widths[layer];
        let sampled = if let Some(adjacency) = self.local.get(rank) {
            let nodes = [&part.owned[..], &part.halo].concat();
            let view = View {
                adjacency,
                nodes: &nodes,
                own: part.owned.len(),
            };
            SampledLayer::draw(&sampler, 0, &view, seeds)
        // Nobody asks for edges then, and no message depends on them.
        } else {
            let (own, all) = (part.owned.len(), part.owned.len() + part.halo.len());
            SampledLayer::without_neighbours(seeds, own, all)
        };
        let (inputs, edges) = (sampled.rows.len(), sampled.adjacency.edges());
        track.work_of_others(setting.samples_beside, |track| {
            track.compute(Work::pass(sampled.degrees.iter().sum()));
            track.compute(Work::pass(edges + inputs * width));
        });
        let rows = sampled.rows.iter();
        // Where nobody asks for work, nothing is known of the rows of others.
        let stored = rows.filter_map(|&row| self.features[rank].get(row as usize));
        let input = if layer == 0 {
            InputShape::new(stored.sum(), setting.counts.dense)
        } else {
            InputShape::dense(inputs, width)
        };
        let aggregation = setting.model.aggregation();
        Some((
            BlockShape::sampled(sampled.outputs, inputs, edges, aggregation),
            input,
        ))
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
        let steps = setting.steps().count();
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
        let mut tracks = vec![Track::default(); setting.workers()];
        for (rank, track) in tracks.iter_mut().enumerate() {
            if let Some(below) = layer.checked_sub(1).filter(|_| round == 0) {
                let (block, input) = (self.block(rank), self.input(rank, below));
                track.compute(SubModel::work(model, below, block, input));
            }
            if round == 0 {
                self.receive(track, rank, layer);
            }
            self.hold(track, rank, layer);
            let whole = (self.block(rank), self.input(rank, layer));
            let mut order = Vec::new();
            if let Some(batches) = &setting.batches {
                let rows = setting.boundary.parts[rank].training_rows(&batches.train);
                track.work_of_others(setting.samples_beside, |track| {
                    track.compute(Work::pass(rows.len()));
                });
                order = shuffled(setting.seed, epoch, rank, &rows);
            }
            for step in 0..steps {
                let reads = match setting.batches {
                    None => Some(whole),
                    Some(_) => self.draw(track, rank, layer, &order, step),
                };
                if let Some((block, input)) = reads {
                    let headed = layer + 1 < model.layers();
                    let (most, stays) = memory_alone(model, layer, block, input, headed);
                    track.passes_with(most, stays);
                    let works = SubModel::step_work(model, layer, block, input);
                    for work in works {
                        track.compute(work);
                    }
                }
                if let Some(learner) = &self.learner {
                    learner.write(track, rank, round * steps + step);
                }
            }
            if is_last || setting.training.evaluates(epoch, epochs) {
                // Which parameters are the best depends on it, so every worker waits for the
                // evaluation.
                track.share();
            }
        }
        self.epoch += 1;
        // Most rounds are like the one before, and then held once.
        self.last = Timeline::following(&self.last, epoch, tracks);
        Arc::clone(&self.last)
    }
}
