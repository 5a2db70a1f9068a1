//! Working graphs and mini-batches, in numbers.

use super::degrees::HaloDegrees;
use super::layout::Layout;
use crate::graph::sampling::{Population, Reached, frontiers};
use crate::graph::{Csr, ExpectedGraph, SampledLayer, Sampler, View, round};
use crate::model::{Aggregation, BlockShape, InputShape};
use crate::sim::Setting;
use crate::strategies::parts::chunks::local_adjacency;

/// A working graph; see [`WorkingGraph`](super::working::WorkingGraph).
pub(super) struct Working {
    /// Nodes of own chunks, other chunks and halo.
    pub rows: usize,
    /// Those of chunks.
    pub inner: usize,
    /// Edges into the nodes of chunks.
    pub edges: usize,
    /// Nodes that train.
    pub seeds: usize,
    /// Features of all rows.
    pub features: InputShape,
    /// The graph itself, where there is one.
    held: Held,
}

struct Held {
    /// Global numbers: own chunks, other chunks, halo.
    nodes: Vec<u32>,
    adjacency: Csr,
    /// Rows that train, in the order in which they are numbered.
    seeds: Vec<u32>,
}

impl Held {
    /// Where the graph is not.
    fn none() -> Self {
        Self {
            nodes: Vec::new(),
            adjacency: Csr::undirected(0, std::iter::empty()),
            seeds: Vec::new(),
        }
    }
}

impl Working {
    /// That of a worker in an epoch.
    pub(super) fn new(setting: &Setting, layout: &Layout<'_>, rank: usize, epoch: usize) -> Self {
        if let Some(law) = &setting.law {
            return Self::expect(setting, law, layout, rank);
        }
        if !setting.holds_graph() {
            return Self::count(setting, layout, rank);
        }
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
            if layout.carried().labels.is_some() {
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
        let inner = nodes.len();
        nodes.extend(halo);
        let features = &setting.dataset.features;
        let held = Held {
            adjacency: local_adjacency(&nodes, &sources),
            nodes,
            seeds,
        };
        let stored = held.nodes.iter().map(|&node| features.stored_of(node));
        Self {
            rows: held.nodes.len(),
            inner,
            edges: held.adjacency.edges(),
            seeds: held.seeds.len(),
            features: InputShape {
                stored: stored.sum(),
                dense: features.is_dense(),
            },
            held,
        }
    }

    /// That of a worker where nobody has all edges: with a halo as it is, without one with edges
    /// from outside that it does not see.
    fn count(setting: &Setting, layout: &Layout<'_>, rank: usize) -> Self {
        let parts = || layout.held(rank).iter().map(|&chunk| layout.part(chunk));
        let nodes: usize = parts().map(|part| part.owned.len()).sum();
        let trained = layout.trained(rank).iter();
        let rows = nodes + layout.halo_rows(rank);
        Self {
            rows,
            inner: nodes,
            edges: parts()
                .map(|part| part.internal_edges + part.cut_edges)
                .sum(),
            seeds: trained.map(|&chunk| layout.part(chunk).training).sum(),
            features: InputShape::dense(rows, setting.model.features()),
            held: Held::none(),
        }
    }

    /// That of a worker whose chunks are random parts of a graph that is known by its law.
    fn expect(setting: &Setting, law: &ExpectedGraph, layout: &Layout<'_>, rank: usize) -> Self {
        let (held, trained) = (layout.held(rank), layout.trained(rank));
        let sum = |chunks: &[usize], of: &dyn Fn(usize) -> usize| -> usize {
            chunks.iter().map(|&chunk| of(chunk)).sum()
        };
        let nodes = sum(held, &|chunk| layout.nodes(chunk));
        let rows = nodes + layout.halo_rows(rank);
        let ends = sum(held, &|chunk| {
            layout.part(chunk).internal_edges + layout.part(chunk).cut_edges
        }) as f64;
        // Ends of an edge are both inside as often as two of all nodes are.
        let inside = (nodes as f64 - 1.0) / (law.nodes() - 1.0).max(1.0);
        let seen = inside + (1.0 - inside) * outside(layout);
        Self {
            rows,
            inner: nodes,
            edges: round(ends * seen.clamp(0.0, 1.0)),
            seeds: sum(trained, &|chunk| layout.part(chunk).training),
            features: InputShape::dense(rows, setting.model.features()),
            held: Held::none(),
        }
    }

    /// What a layer over all of it computes on.
    pub(super) fn block(&self, aggregation: Aggregation, halo: HaloDegrees) -> BlockShape {
        let alone = if halo.has_own() {
            0
        } else {
            self.rows - self.inner
        };
        let block = BlockShape::of(self.rows, self.rows, self.edges, aggregation);
        block.without_own(alone, aggregation)
    }

    /// Bytes that it takes beside its features: numbers and degrees of rows, and sources of edges.
    pub(super) const fn bytes(&self) -> u64 {
        4 * (2 * self.rows + self.edges) as u64
    }

    /// Rows of training nodes, by their places.
    pub(super) fn rows_of(&self, places: &[u32]) -> Vec<u32> {
        let row = |&place: &u32| self.held.seeds[place as usize];
        places.iter().map(row).collect()
    }
}

/// The share of edges from outside a worker's chunks that it sees.
fn outside(layout: &Layout<'_>) -> f64 {
    let rules = layout.rules();
    if rules.halo { 1.0 } else { rules.sampling }
}

/// Places, from `first` on, of the nodes that train.
fn rows(nodes: &[u32], first: usize, trains: &impl Fn(&u32) -> bool) -> Vec<u32> {
    let places = (first as u32..).zip(nodes);
    places
        .filter(|(_, node)| trains(node))
        .map(|(row, _)| row)
        .collect()
}

/// What is drawn for a mini-batch, in numbers.
pub(super) struct Batch {
    /// From the first layer to the last.
    pub blocks: Vec<BlockShape>,
    /// Neighbours that are looked at, hop by hop.
    pub looked_at: Vec<usize>,
    /// Neighbours drawn in all layers.
    pub edges: usize,
    /// Features of the inputs, if there are any.
    pub features: Option<InputShape>,
}

impl Batch {
    /// What is drawn from a working graph for these rows.
    pub(super) fn draw(
        (setting, halo): (&Setting, HaloDegrees),
        working: &Working,
        seeds: Vec<u32>,
        (epoch, step): (usize, usize),
    ) -> Self {
        let (model, features) = (&setting.model, &setting.dataset.features);
        let (working, inner) = (&working.held, working.inner);
        let fanouts = fanouts(setting);
        let sampler = Sampler::new(setting.seed, epoch, step, fanouts);
        let view = View {
            adjacency: &working.adjacency,
            nodes: &working.nodes,
            own: working.nodes.len(),
        };
        let mut batch = Self::empty();
        let mut outputs = seeds;
        for hop in 0..model.layers() {
            // Where nobody asks for work, it is enough to know whether there are rows.
            let sampled = if setting.plans_work {
                SampledLayer::draw(&sampler, hop, &view, outputs)
            } else {
                SampledLayer::without_neighbours(outputs, view.own, view.nodes.len())
            };
            let edges = sampled.adjacency.edges();
            let (outputs_here, inputs) = (sampled.outputs, sampled.rows.len());
            batch.looked_at.push(sampled.degrees.iter().sum());
            batch.edges += edges;
            let aggregation = model.aggregation();
            let alone = |row: &&u32| !halo.has_own() && **row as usize >= inner;
            let alone = sampled.rows[..outputs_here].iter().filter(alone).count();
            let block = BlockShape::sampled(outputs_here, inputs, edges, aggregation);
            batch.blocks.push(block.without_own(alone, aggregation));
            outputs = sampled.rows;
        }
        batch.blocks.reverse();
        batch.features = (!outputs.is_empty()).then(|| {
            let nodes = outputs.iter().map(|&row| working.nodes[row as usize]);
            InputShape {
                stored: nodes.map(|node| features.stored_of(node)).sum(),
                dense: features.is_dense(),
            }
        });
        batch
    }

    /// A batch of so many training nodes where nobody has all edges, and nobody asks for work: no
    /// message depends on what is drawn.
    pub(super) fn count(setting: &Setting, seeds: usize) -> Self {
        let (model, mut batch) = (&setting.model, Self::empty());
        let block = BlockShape::sampled(seeds, seeds, 0, model.aggregation());
        batch.blocks = vec![block; model.layers()];
        batch.looked_at = vec![0; model.layers()];
        let features = InputShape::dense(seeds, model.features());
        batch.features = (seeds > 0).then_some(features);
        batch
    }

    /// What worker `rank` draws for so many training nodes in a graph that is known by its law.
    /// Rows of the halo have no neighbours there.
    pub(super) fn expect(
        (setting, halo): (&Setting, HaloDegrees),
        law: &ExpectedGraph,
        layout: &Layout<'_>,
        (rank, seeds): (usize, usize),
    ) -> Self {
        let chunks = layout.chunks() as f64;
        let [held, trained] =
            [layout.held(rank), layout.trained(rank)].map(|held| held.len() as f64 / chunks);
        let population = |share: f64, seeds: usize, spreads: bool| Population {
            share,
            seeds: seeds as f64,
            spreads,
        };
        let mut populations = vec![
            population(trained, seeds, true),
            population(held - trained, 0, true),
            population((1.0 - held) * outside(layout), 0, false),
        ];
        populations.retain(|one| one.share > 0.0);
        let met = frontiers(law, &populations, fanouts(setting));
        let sum = |rows: &[Reached], of: fn(&Reached) -> f64| round(rows.iter().map(of).sum());
        let mut batch = Self::empty();
        for pair in met.rows.windows(2) {
            let [outputs, inputs] = [0, 1].map(|at| sum(&pair[at], |rows| rows.nodes));
            let edges = sum(&pair[0], |rows| rows.edges);
            batch.looked_at.push(sum(&pair[0], |rows| rows.looked_at));
            batch.edges += edges;
            let aggregation = setting.model.aggregation();
            let alone = pair[0].iter().zip(&populations);
            let alone = alone.filter(|(_, one)| !halo.has_own() && !one.spreads);
            let alone = round(alone.map(|(rows, _)| rows.nodes).sum());
            let block = BlockShape::sampled(outputs, inputs, edges, aggregation);
            batch
                .blocks
                .insert(0, block.without_own(alone, aggregation));
        }
        let inputs = batch.blocks.first().map_or(0, |block| block.inputs);
        let width = setting.model.features();
        batch.features = (inputs > 0).then(|| InputShape::dense(inputs, width));
        batch
    }

    const fn empty() -> Self {
        Self {
            blocks: Vec::new(),
            looked_at: Vec::new(),
            edges: 0,
            features: None,
        }
    }
}

/// Neighbours drawn at each hop from the batch outwards.
fn fanouts(setting: &Setting) -> &[usize] {
    let batches = setting.batches.as_ref();
    batches.map_or(&[], |batches| &batches.spec.fanouts)
}
