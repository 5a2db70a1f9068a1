//! What the clients of RETEXO do, stated in advance: worker 0 plays all of them.

use std::sync::Arc;

use super::Clients;
use super::perceptron::{Perceptron, aggregation};
use crate::graph::{BoundaryCounts, SampledLayer, Sampler, View, places, shuffled};
use crate::model::{BlockShape, InputShape, Work};
use crate::net::{Lane, Traffic, TrafficKind, f32_bytes};
use crate::sim::{Decision, Planner, Setting, Timeline, Track};

/// The client that is also the server.
const SERVER: usize = 0;

/// The plan of a training.
pub(super) struct ClientsPlanner {
    clients: Clients,
    epoch: usize,
}

impl ClientsPlanner {
    /// A plan from epoch 0 on.
    pub(super) const fn new(clients: Clients) -> Self {
        Self { clients, epoch: 0 }
    }

    /// What the sub-model of a stage reads of all nodes.
    fn input(&self, stage: usize) -> InputShape {
        let Setting { model, counts, .. } = &*self.clients.setting;
        if stage > 0 {
            return InputShape::dense(counts.nodes, model.classes());
        }
        let stored = counts.parts.iter().map(|part| part.own_values);
        InputShape::new(stored.sum(), counts.dense)
    }

    /// The graph of all nodes.
    fn whole(&self) -> BlockShape {
        let Setting { model, counts, .. } = &*self.clients.setting;
        BlockShape::of(counts.nodes, counts.nodes, counts.edges, aggregation(model))
    }

    /// Before the first round of a stage above the first: finished parameters to everybody, the
    /// logits that follow, and these along the edges.
    fn listen(&self, track: &mut Track, stage: usize) {
        let setting = &self.clients.setting;
        let (model, workers) = (&setting.model, setting.workers());
        let before = stage - 1;
        track.carry(finished(workers, Perceptron::parameters(model, before)));
        let all: Vec<usize> = (0..workers).collect();
        let work = Perceptron::work(model, before, self.whole(), self.input(before));
        track.compute_together(work, &all);
        track.carry(logits(&setting.counts, model.classes(), stage));
    }

    /// What the clients that train in a round compute on, after they drew it.
    fn draw(
        &self,
        track: &mut Track,
        stage: usize,
        training: &[usize],
    ) -> (BlockShape, InputShape) {
        let setting = &self.clients.setting;
        let Setting { model, dataset, .. } = &**setting;
        let seeds = seeds(setting, training);
        let width = if stage == 0 {
            model.features()
        } else {
            model.classes()
        };
        let edges: usize = seeds
            .iter()
            .map(|&v| dataset.graph.degree(v as usize))
            .sum();
        track.work_of_others(setting.samples_beside, |track| {
            track.compute_together(Work::pass(edges + seeds.len() * width), training);
        });
        let all: Vec<u32> = (0_u32..).take(dataset.graph.nodes()).collect();
        let sampled = sample(setting, stage, self.epoch, &all, seeds);
        let (inputs, drawn) = (sampled.rows.len(), sampled.adjacency.edges());
        let input = if stage == 0 {
            InputShape::of(&dataset.features, sampled.rows.iter().copied())
        } else {
            InputShape::dense(inputs, width)
        };
        (
            BlockShape::sampled(sampled.outputs, inputs, drawn, aggregation(model)),
            input,
        )
    }
}

impl Planner for ClientsPlanner {
    fn next(&mut self, _: Option<&Decision>) -> Arc<Timeline> {
        let setting = &self.clients.setting;
        let (model, workers) = (&setting.model, setting.workers());
        let (stage, round) = self.clients.rounds.at(self.epoch);
        let parameters = Perceptron::parameters(model, stage);
        let mut track = Track::default();
        if stage > 0 && round == 0 {
            track.set_up(true, |track| self.listen(track, stage));
        }
        let training = training(setting, self.epoch);
        let upload = upload(&training, parameters);
        let senders = upload.iter().count();
        track.carry(download(&training, parameters));
        let (mut block, mut input) = (self.whole(), self.input(stage));
        let mut busy: Vec<usize> = (0..workers).collect();
        if setting.batches.is_some() {
            (block, input) = self.draw(&mut track, stage, &training);
            busy = training;
        }
        for work in Perceptron::step_work(model, stage, block, input) {
            track.compute_together(work, &busy);
        }
        track.carry(upload);
        // The server's alone: the sum of the gradients and the step.
        track.compute(Work::pass(parameters) * (senders + 6) as f64);
        // Each gradient is read once. The other 6 are those of `Track::update`: gradient, parameter
        // and two moments read, three of them written.
        let epoch = self.epoch;
        self.epoch += 1;
        // Worker 0 plays all clients: the tracks of the others stay empty.
        let mut tracks = vec![Track::default(); workers];
        tracks[SERVER] = track;
        Arc::new(Timeline::once(epoch, tracks))
    }
}

/// The training nodes of clients, in the order of nodes, whichever clients hold them.
pub(super) fn seeds(setting: &Setting, clients: &[usize]) -> Vec<u32> {
    let trains = |node: &u32| setting.dataset.split.train.binary_search(node).is_ok();
    let parts = &setting.boundary.parts;
    let nodes = clients.iter().flat_map(|&rank| &parts[rank].owned);
    let mut seeds: Vec<u32> = nodes.copied().filter(trains).collect();
    seeds.sort_unstable();
    seeds
}

/// The neighbours, among the `nodes` of the graph, that these seeds draw in an epoch; in the first
/// stage they hear nobody. Plan and training draw the same.
pub(super) fn sample(
    setting: &Setting,
    stage: usize,
    epoch: usize,
    nodes: &[u32],
    seeds: Vec<u32>,
) -> SampledLayer {
    let batches = setting.batches.as_ref();
    let fanout = batches.and_then(|all| Some(all.spec.fanouts[stage.checked_sub(1)?]));
    let fanouts = [fanout.unwrap_or(0)];
    let view = View {
        adjacency: &setting.dataset.graph,
        nodes,
        own: nodes.len(),
    };
    let sampler = Sampler::new(setting.seed, epoch, 0, &fanouts);
    SampledLayer::draw(&sampler, 0, &view, seeds)
}

/// The clients that train in a round, ascending: all that can, or as many of them as a batch has.
pub(super) fn training(setting: &Setting, epoch: usize) -> Vec<usize> {
    // The others have no gradient to send.
    let mut able = places(&setting.counts.parts, |part| part.training > 0);
    if let Some(batches) = &setting.batches {
        // Keyed by the server's rank: one draw for all clients.
        able = shuffled(batches.seed, epoch, SERVER, &able);
        able.truncate(batches.spec.size);
        // Phases name their workers in ascending order.
        able.sort_unstable();
    }
    able.into_iter().map(|rank| rank as usize).collect()
}

/// Parameters to the clients that train; the server has them.
pub(super) fn download(training: &[usize], parameters: usize) -> Traffic {
    let lane = |rank| Lane::new(0, SERVER, rank, TrafficKind::Parameter);
    to_each(others(training).map(lane), parameters)
}

/// Gradients back from them.
pub(super) fn upload(training: &[usize], parameters: usize) -> Traffic {
    let lane = |rank| Lane::new(0, rank, SERVER, TrafficKind::ParameterGradient);
    to_each(others(training).map(lane), parameters)
}

fn others(training: &[usize]) -> impl Iterator<Item = usize> {
    let ranks = training.iter().copied();
    ranks.filter(|&rank| rank != SERVER)
}

/// Parameters to all clients, when a sub-model is finished.
pub(super) fn finished(workers: usize, parameters: usize) -> Traffic {
    let lane = |rank| Lane::new(0, SERVER, rank, TrafficKind::Parameter);
    to_each((SERVER + 1..workers).map(lane), parameters)
}

/// Logits along the edges, the input of sub-model `stage`.
pub(super) fn logits(counts: &BoundaryCounts, classes: usize, stage: usize) -> Traffic {
    let mut traffic = Traffic::new();
    for (reader, part) in counts.parts.iter().enumerate() {
        for &(owner, rows) in &part.receives {
            let kind = TrafficKind::Activation;
            let lane = Lane::new(stage as u32, owner as usize, reader, kind);
            traffic.add(lane, f32_bytes(rows * classes));
        }
    }
    traffic
}

fn to_each(lanes: impl Iterator<Item = Lane>, parameters: usize) -> Traffic {
    let mut traffic = Traffic::new();
    for lane in lanes {
        traffic.add(lane, f32_bytes(parameters));
    }
    traffic
}
