//! One worker's mini-batches: neighbours drawn here and by their owners, features fetched.

use std::collections::BTreeMap;
use std::ops::Range;

use super::rehearsal::{Cache, NEIGHBOUR_BYTES};
use crate::graph::{Features, Peers, SampledLayer, Sampler, Steps, seeds_of, shuffled};
use crate::model::{Block, Gnn, Input};
use crate::net::{Message, Outbox, TrafficKind};
use crate::sim::{Activity, SimError, Worker};
use crate::strategies::parts::{
    Pass, PassLayer, Step, Wire, ask_owners, batch_targets, exchange_features,
};

/// A neighbour drawn: its global number and its degree in the whole graph.
type Neighbour = (u32, u32);

/// Nodes at which a hop begins, with their degrees and where they belong.
struct Frontier {
    nodes: Vec<u32>,
    degrees: Vec<usize>,
    split: Split,
}

/// One worker's mini-batches.
pub struct FetchingTrainer {
    steps: Steps,
    fanouts: Vec<usize>,
    /// Training rows in the order of an epoch.
    order: Vec<u32>,
    cache: Cache,
    /// Features of own rows, and below them those that were kept.
    stored: Features,
    /// Where the features of remote nodes are that were kept.
    kept: BTreeMap<u32, u32>,
}

impl FetchingTrainer {
    /// The mini-batches of a worker that keeps the features of a share of the remote nodes.
    #[must_use]
    pub fn new(worker: &Worker, fanouts: &[usize], share: f64) -> Self {
        let setting = worker.setting();
        let (graph, owner) = (&setting.dataset.graph, &setting.partition.assignment);
        Self {
            steps: setting.steps(),
            fanouts: fanouts.to_vec(),
            order: Vec::new(),
            cache: Cache::new(graph, owner, worker.rank(), share),
            stored: worker.shard().features.clone(),
            kept: BTreeMap::new(),
        }
    }

    /// Loss and gradient of one step, given how features travel.
    ///
    /// # Errors
    /// If communication fails.
    pub fn step(
        &mut self,
        worker: &mut Worker,
        model: &Gnn,
        wire: &Wire,
        epoch: usize,
        step: usize,
    ) -> Result<Step, SimError> {
        let (seed, rank) = (worker.setting().seed, worker.rank());
        if step == 0 {
            self.order = worker.compute(Activity::Exchange, |worker| {
                shuffled(seed, epoch, rank, &worker.shard().train)
            });
        }
        let seeds = seeds_of(&self.order, &self.steps, rank, step);
        let targets = batch_targets(worker, &self.steps, &seeds, step);
        let fanouts = self.fanouts.clone();
        let sampler = Sampler::new(seed, epoch, step, &fanouts);
        let shard = worker.shard();
        let rows = || seeds.iter().map(|&row| row as usize);
        let mut frontier = Frontier {
            nodes: rows().map(|row| shard.nodes[row]).collect(),
            degrees: rows().map(|row| shard.degrees[row]).collect(),
            split: Split {
                remote: Vec::new(),
                own: seeds.iter().copied().enumerate().collect(),
            },
        };
        let mut layers: Vec<(Block, Vec<u32>)> = Vec::with_capacity(model.layers());
        for hop in 0..model.layers() {
            let drawn = self.draw(worker, &sampler, hop, &frontier)?;
            let block;
            (block, frontier) =
                worker.compute(Activity::Exchange, |worker| next(worker, frontier, &drawn));
            layers.push((block, frontier.nodes.clone()));
        }
        layers.reverse();
        let features = self.features(worker, &frontier, wire)?;
        let layers: Vec<PassLayer<'_>> = layers
            .iter()
            .map(|(block, nodes)| PassLayer {
                block,
                nodes,
                crosses: None,
            })
            .collect();
        let pass = Pass {
            layers: &layers,
            targets: &targets,
            dropout: &worker.dropout(),
            round: (epoch * self.steps.count() + step) as u64,
            buckets: None,
        };
        pass.run(worker, model, features)
    }

    /// The neighbours drawn for each node of a frontier, for remote ones by their owners.
    fn draw(
        &self,
        worker: &mut Worker,
        sampler: &Sampler<'_>,
        hop: usize,
        frontier: &Frontier,
    ) -> Result<Vec<Vec<Neighbour>>, SimError> {
        let mut drawn = vec![Vec::new(); frontier.nodes.len()];
        let Split { remote, own } = &frontier.split;
        let rows: Vec<u32> = own.iter().map(|&(_, row)| row).collect();
        let here = draw_own(worker, sampler, hop, &[&rows]);
        for ((place, _), neighbours) in own.iter().zip(here.into_iter().flatten()) {
            drawn[*place] = neighbours;
        }
        if hop == 0 {
            return Ok(drawn); // a batch is the worker's own, on all workers
        }
        let layer = self.fanouts.len() - 1 - hop;
        let asked = ask_owners(worker, layer, |_| {
            let nodes = remote.iter().map(|&(_, place)| frontier.nodes[place]);
            (nodes.collect(), by_owner(remote))
        })?;
        #[allow(clippy::cast_possible_truncation)] // layers are few
        let mut outbox = Outbox::new(TrafficKind::Sample, layer as u32);
        outbox.expect = asked.by_me.ranks().collect();
        let rows: Vec<&[u32]> = asked.of_me.iter().map(|(_, rows)| &rows[..]).collect();
        let answers = draw_own(worker, sampler, hop, &rows);
        for (peer, answer) in asked.of_me.ranks().zip(answers) {
            let words = answer.iter().flatten().flat_map(|&(u, degree)| [u, degree]);
            let payload = words.flat_map(u32::to_le_bytes).collect();
            outbox.messages.push(Message { peer, payload });
        }
        let inbox = worker.exchange(outbox)?;
        worker.compute(Activity::Exchange, |_| {
            for message in &inbox {
                let mut rest = &message.payload[..];
                for &(_, place) in &remote[asked.by_me[message.peer].clone()] {
                    let count = frontier.degrees[place].min(self.fanouts[hop]);
                    drawn[place] = take(&mut rest, count)?;
                }
            }
            Ok(drawn)
        })
    }

    /// The features of these nodes, of which remote ones that are not kept are fetched; none for no
    /// nodes.
    fn features(
        &mut self,
        worker: &mut Worker,
        frontier: &Frontier,
        wire: &Wire,
    ) -> Result<Option<Input>, SimError> {
        let (nodes, Split { remote, own }) = (&frontier.nodes, &frontier.split);
        let is_missing = |&(_, place): &(usize, usize)| !self.cache.has(nodes[place]);
        let wanted: Vec<(usize, usize)> = remote.iter().copied().filter(is_missing).collect();
        let asked = ask_owners(worker, 0, |_| {
            let nodes = wanted.iter().map(|&(_, place)| nodes[place]);
            (nodes.collect(), by_owner(&wanted))
        })?;
        let arrived = exchange_features(worker, &asked, wire)?;
        if nodes.is_empty() {
            return Ok(None);
        }
        let width = self.stored.width();
        Ok(Some(worker.compute(Activity::Exchange, |worker| {
            // Rows that are here, and below them those that came; then each in its place.
            let mut places = vec![0_u32; nodes.len()];
            let (mut here, mut next) = (Vec::new(), 0_u32..);
            let kept = remote.iter().filter_map(|&(_, place)| {
                let row = self.kept.get(&nodes[place])?;
                Some((place, *row))
            });
            for (place, row) in own.iter().copied().chain(kept) {
                here.push(row);
                places[place] = next.next().unwrap_or(u32::MAX);
            }
            for &(_, place) in &wanted {
                places[place] = next.next().unwrap_or(u32::MAX);
            }
            let mut features = self.stored.select(&here);
            features.append(&arrived);
            for (&(_, place), row) in wanted.iter().zip(arrived.chunks_exact(width)) {
                if self.cache.came(nodes[place]) {
                    let at = u32::try_from(self.stored.rows()).unwrap_or(u32::MAX);
                    self.kept.insert(nodes[place], at);
                    self.stored.append(row);
                }
            }
            Input::from_features(features.select(&places), worker.place())
        })))
    }
}

/// Nodes of a list by where they belong.
#[derive(Default)]
struct Split {
    /// `(owner, place)` of those of others, ascending.
    remote: Vec<(usize, usize)>,
    /// `(place, row)` of own ones.
    own: Vec<(usize, u32)>,
}

fn split(worker: &Worker, nodes: &[u32]) -> Split {
    let owner = &worker.setting().partition.assignment;
    let owned = &worker.shard().nodes[..worker.shard().owned];
    let mut found = Split::default();
    for (place, node) in nodes.iter().enumerate() {
        match owned.binary_search(node) {
            Ok(row) => found
                .own
                .push((place, u32::try_from(row).unwrap_or(u32::MAX))),
            Err(_) => found.remote.push((owner[*node as usize] as usize, place)),
        }
    }
    found.remote.sort_unstable();
    found
}

/// Where those of each owner are.
fn by_owner(remote: &[(usize, usize)]) -> Peers<Range<usize>> {
    let mut found = Peers::default();
    let mut start = 0;
    for group in remote.chunk_by(|one, other| one.0 == other.0) {
        *found.of(group[0].0) = start..start + group.len();
        start += group.len();
    }
    found
}

/// The neighbours drawn for lists of own rows: one piece of work, however many lists there are.
fn draw_own(
    worker: &mut Worker,
    sampler: &Sampler<'_>,
    hop: usize,
    lists: &[&[u32]],
) -> Vec<Vec<Vec<Neighbour>>> {
    worker.compute(Activity::Exchange, |worker| {
        let shard = worker.shard();
        let name = |row: u32| shard.nodes[row as usize];
        let degree = |row: u32| u32::try_from(shard.degrees[row as usize]).unwrap_or(u32::MAX);
        let draw = |&row: &u32| {
            let neighbours = shard.adjacency.neighbours(row as usize);
            let drawn = sampler.draw(hop, name(row), neighbours, name);
            drawn.into_iter().map(|u| (name(u), degree(u))).collect()
        };
        let drawn = |rows: &&[u32]| rows.iter().map(draw).collect();
        lists.iter().map(drawn).collect()
    })
}

/// Takes so many neighbours from the front of an answer.
fn take(bytes: &mut &[u8], count: usize) -> Result<Vec<Neighbour>, SimError> {
    let (front, rest) = bytes
        .split_at_checked(count * NEIGHBOUR_BYTES)
        .ok_or_else(|| {
            SimError::Strategy("an answer with fewer neighbours than were to be drawn".to_owned())
        })?;
    *bytes = rest;
    let (words, _) = front.as_chunks::<4>();
    let words: Vec<u32> = words.iter().map(|&word| u32::from_le_bytes(word)).collect();
    Ok(words
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect())
}

/// The block of a layer whose outputs are a frontier for which these neighbours were drawn, and its
/// inputs, which are the next one.
fn next(worker: &Worker, frontier: Frontier, drawn: &[Vec<Neighbour>]) -> (Block, Frontier) {
    let all = worker.setting().dataset.graph.nodes();
    let mut known: Vec<Neighbour> = drawn.iter().flatten().copied().collect();
    known.sort_unstable();
    known.dedup();
    let numbers = drawn
        .iter()
        .map(|drawn| drawn.iter().map(|&(u, _)| u).collect());
    let numbers: Vec<Vec<u32>> = numbers.collect();
    let outputs = frontier.degrees.clone();
    let layer = SampledLayer::of(frontier.nodes, &numbers, frontier.degrees, all, all);
    let others = layer.rows[layer.outputs..].iter().map(|node| {
        let found = known.binary_search_by_key(node, |&(u, _)| u);
        found.map_or(0, |at| known[at].1 as usize) // it is one of those drawn
    });
    let degrees: Vec<usize> = outputs.into_iter().chain(others).collect();
    let aggregation = worker.setting().model.aggregation();
    let block = Block::sampled(&layer, &degrees, aggregation);
    let nodes = layer.rows;
    let split = split(worker, &nodes);
    let frontier = Frontier {
        nodes,
        degrees,
        split,
    };
    (block, frontier)
}
