//! What the workers do in an epoch of Grappa, stated in advance.

use std::sync::Arc;

use super::estimators::Weight;
use super::layout::Layout;
use super::{Sweeping, expectation};
use crate::graph::{Csr, SampledLayer, Sampler, View, places, seeds_of, shuffled};
use crate::model::{BlockShape, InputShape, Work};
use crate::net::{Bytes, TrafficKind};
use crate::sim::{Decision, Planner, Setting, Timeline, Track};
use crate::strategies::parts::chunks::local_adjacency;
use crate::strategies::parts::plan::{PassPlan, exchange_of};

/// The plan of a training.
pub struct SweepPlanner {
    sweeping: Sweeping,
    epoch: usize,
    /// Each worker's working graph since the last time that one was loaded.
    working: Vec<Working>,
    last: Arc<Timeline>,
}

/// A working graph, in numbers; see [`WorkingGraph`](super::working::WorkingGraph).
struct Working {
    /// Global numbers: own chunks, other chunks, halo.
    nodes: Vec<u32>,
    adjacency: Csr,
    /// Rows that train, in the order in which they are numbered.
    seeds: Vec<u32>,
    features: InputShape,
}

impl Working {
    /// That of a worker in an epoch.
    fn new(setting: &Setting, layout: &Layout<'_>, rank: usize, epoch: usize) -> Self {
        let owned = |&chunk: &usize| layout.part(chunk).owned.clone();
        let held = layout.held(rank);
        let (own, mut others): (Vec<usize>, Vec<usize>) =
            held.iter().partition(|&&chunk| layout.home(chunk) == rank);
        let mut nodes: Vec<u32> = own.iter().flat_map(owned).collect();
        nodes.sort_unstable();
        others.sort_unstable();
        let train = &setting.dataset.split.train;
        let trains = |node: &u32| train.binary_search(node).is_ok();
        let mut seeds: Vec<u32> = rows(&nodes, 0, &trains);
        for chunk in &others {
            let members = &layout.part(*chunk).owned;
            if layout.carried().classes {
                seeds.extend(rows(members, nodes.len(), &trains));
            }
            nodes.extend(members);
        }
        let mut inside = nodes.clone();
        inside.sort_unstable();
        let mut halo = layout.halo_of(rank, setting.seed, epoch);
        halo.retain(|node| inside.binary_search(node).is_err());
        let graph = &setting.dataset.graph;
        let sources = nodes.iter().map(|&v| graph.neighbours(v as usize).to_vec());
        let sources: Vec<Vec<u32>> = sources.collect();
        nodes.extend(halo);
        Self {
            adjacency: local_adjacency(&nodes, &sources),
            features: InputShape::of(&setting.dataset.features, nodes.iter().copied()),
            nodes,
            seeds,
        }
    }
}

/// Places, from `first` on, of the nodes that train.
fn rows(nodes: &[u32], first: usize, trains: &impl Fn(&u32) -> bool) -> Vec<u32> {
    let places = places(nodes, trains).into_iter();
    places.map(|place| first as u32 + place).collect()
}

impl SweepPlanner {
    /// A plan from epoch 0 on.
    pub fn new(sweeping: Sweeping) -> Self {
        Self {
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
            if *epoch == 0 && sweeping.knows_expected() {
                let (weight, hops) = (sweeping.weighing.weight, sweeping.expected_hops());
                expectation::plan(track, part, weight, hops);
            }
            track.compute(owned);
            let payload = |from, to| layout.payload(width, from, to);
            let came = self.exchange(track, rank, TrafficKind::Repartition, payload);
            track.compute(owned + came);
        }
        if sweeping.rules.sampling > 0.0 {
            track.compute(Work::pass(part.owned));
            let payload = |from, to| layout.sampled_payload(width, from, to);
            let came = self.exchange(track, rank, TrafficKind::Feature, payload);
            track.compute(came);
        }
        let working = &self.working[rank];
        track.compute(owned);
        let edges = Work::pass(working.adjacency.edges() * setting.model.layers());
        track.compute(edges);
        track.compute(edges);
        if setting.batches.is_none() {
            let layers = vec![self.block(working); setting.model.layers()];
            self.norms(track, &layers, working.features);
            sweeping.weighing.plan(track);
        }
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
        let (rows, edges) = (working.nodes.len(), working.adjacency.edges());
        BlockShape::of(rows, rows, edges, self.sweeping.setting.model.aggregation())
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
        let places = seeds_of(order, &layout.steps(sweeping.batch_size()), rank, step);
        let seeds = places.iter().map(|&place| working.seeds[place as usize]);
        let batch = Batch::draw(setting, working, seeds.collect(), (self.epoch, step));
        for looked_at in &batch.looked_at {
            track.compute(Work::pass(*looked_at));
        }
        track.compute(Work::pass(batch.edges));
        track.compute(Work::pass(batch.blocks[0].inputs * model.features()));
        if let Some(features) = batch.features {
            self.norms(track, &batch.blocks, features);
        }
        sweeping.weighing.plan(track);
        self.pass(track, rank, &batch.blocks, batch.features);
    }
}

/// What is drawn for a mini-batch, in numbers.
struct Batch {
    /// From the first layer to the last.
    blocks: Vec<BlockShape>,
    /// Neighbours that are looked at, hop by hop.
    looked_at: Vec<usize>,
    /// Neighbours drawn in all layers.
    edges: usize,
    features: Option<InputShape>,
}

impl Batch {
    fn draw(
        setting: &Setting,
        working: &Working,
        seeds: Vec<u32>,
        (epoch, step): (usize, usize),
    ) -> Self {
        let (model, features) = (&setting.model, &setting.dataset.features);
        let fanouts = setting
            .batches
            .as_ref()
            .map(|batches| batches.spec.fanouts.clone());
        let fanouts = fanouts.unwrap_or_default();
        let sampler = Sampler::new(setting.seed, epoch, step, &fanouts);
        let view = View {
            adjacency: &working.adjacency,
            nodes: &working.nodes,
            own: working.nodes.len(),
        };
        let mut batch = Self {
            blocks: Vec::with_capacity(model.layers()),
            looked_at: Vec::with_capacity(model.layers()),
            edges: 0,
            features: None,
        };
        let mut outputs = seeds;
        for hop in 0..model.layers() {
            // Where nobody asks for work, it is enough to know whether there are rows.
            let sampled = if setting.models_compute() {
                SampledLayer::draw(&sampler, hop, &view, outputs)
            } else {
                SampledLayer::of(outputs, &[], Vec::new(), view.own, view.nodes.len())
            };
            let edges = sampled.adjacency.edges();
            let (outputs_here, inputs) = (sampled.outputs, sampled.rows.len());
            batch.looked_at.push(sampled.degrees.iter().sum());
            batch.edges += edges;
            let block = BlockShape::of(outputs_here, inputs, edges, model.aggregation());
            batch.blocks.push(block);
            outputs = sampled.rows;
        }
        batch.blocks.reverse();
        batch.features = (!outputs.is_empty()).then(|| {
            let nodes = outputs.iter().map(|&row| working.nodes[row as usize]);
            InputShape::of(features, nodes)
        });
        batch
    }
}

impl Planner for SweepPlanner {
    fn next(&mut self, _: Option<&Decision>) -> Arc<Timeline> {
        let sweeping = self.sweeping.clone();
        let setting = &sweeping.setting;
        let epoch = self.epoch;
        let layout = sweeping.layout(epoch);
        let loads = sweeping.loads(epoch);
        if loads {
            let ranks = 0..setting.workers();
            let working = ranks.map(|rank| Working::new(setting, &layout, rank, epoch));
            self.working = working.collect();
        }
        let parameters = setting.model.parameters();
        let mut tracks = vec![Track::default(); setting.workers()];
        for (rank, track) in tracks.iter_mut().enumerate() {
            if loads {
                self.load(track, rank, &layout);
            }
            let working = &self.working[rank];
            let mut order = Vec::new();
            if setting.batches.is_some() {
                let seeds: Vec<u32> = (0..working.seeds.len() as u32).collect();
                track.compute(Work::pass(seeds.len()));
                order = shuffled(setting.seed, epoch, rank, &seeds);
            }
            for step in 0..layout.steps(sweeping.batch_size()).count() {
                if setting.batches.is_some() {
                    self.batch(track, rank, &layout, &order, step);
                } else {
                    let blocks = vec![self.block(working); setting.model.layers()];
                    self.pass(track, rank, &blocks, Some(working.features));
                }
                let sum = usize::from(sweeping.weighing.folds_mean());
                track.all_reduce(parameters + sum, TrafficKind::ParameterGradient);
                track.update(parameters);
            }
        }
        self.epoch += 1;
        self.last = Timeline::following(&self.last, epoch, tracks);
        Arc::clone(&self.last)
    }
}
