//! One worker's mini-batches: neighbours drawn here and by their owners, features fetched.
//!
//! A batch is made ready in stages, which its [`Pipeline`] spreads over the steps before its own.

mod saved;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::cache::Cache;
use super::degrees::BlockDegrees;
use super::pipeline::Pipeline;
use super::sampled_requests::NEIGHBOUR_BYTES;
use crate::graph::{Features, Lists, Peers, SampledLayer, Sampler, Steps};
use crate::model::{Block, Gnn, Input, Targets};
use crate::net::{Message, Outbox, TrafficKind};
use crate::sim::{Activity, PendingExchange, SimError, Worker};
use crate::strategies::parts::{
    Asked, EpochOrder, PendingRequests, Step, Wire, batch_targets, finish_asking, receive_features,
    run_alone, send_features, start_asking,
};

/// A neighbour drawn: its global number and its degree in the whole graph.
type Neighbour = (u32, u32);

/// How the features of the batch of an epoch and step travel.
pub(super) type Wires<'a> = &'a dyn Fn(usize, usize) -> Wire;

/// Nodes at which a hop begins, with their degrees and where they belong.
#[derive(Default)]
struct Frontier {
    nodes: Vec<u32>,
    degrees: Vec<usize>,
    split: Split,
}

/// A batch that is made ready.
struct Preparing {
    /// Its epoch and step.
    at: (usize, usize),
    targets: Targets,
    frontier: Frontier,
    /// What is drawn for the nodes of the frontier.
    drawn: Vec<Vec<Neighbour>>,
    /// The hops so far.
    layers: Vec<Hop>,
    /// What it waits for.
    waits: Waits,
    /// Remote inputs whose features are fetched, as `(owner, place)`, and whether they are kept.
    wanted: Vec<((usize, usize), bool)>,
    /// The features of its inputs, once they are all here; none for no inputs.
    features: Option<Input>,
}

/// A hop of a batch.
struct Hop {
    block: Block,
    /// What the block was made of: its inputs by global numbers, and their degrees.
    sampled: SampledLayer,
    degrees: Vec<usize>,
}

/// What a batch waits for between two stages.
enum Waits {
    /// To hear who else asks.
    Asks(PendingRequests),
    /// For neighbours that others draw.
    Neighbours(Asked, PendingExchange),
    /// For features.
    Features(Asked, PendingExchange),
    Nothing,
}

/// One worker's mini-batches.
pub(super) struct FetchingTrainer {
    steps: Steps,
    fanouts: Vec<usize>,
    degrees: BlockDegrees,
    pipeline: Pipeline,
    /// Of the epoch of the latest batch.
    order: EpochOrder,
    /// From that of the present step on.
    batches: VecDeque<Preparing>,
    cache: Cache,
    /// Features of own rows, and below them those that were kept.
    stored: Features,
    /// Where the features of remote nodes are that were kept.
    kept: BTreeMap<u32, u32>,
}

impl FetchingTrainer {
    /// The mini-batches of a worker that keeps the features of so many remote nodes.
    pub(super) fn new(
        worker: &Worker,
        (fanouts, degrees): (&[usize], BlockDegrees),
        pipeline: Pipeline,
        room: usize,
    ) -> Self {
        let setting = worker.setting();
        let (graph, owner) = (&setting.dataset.graph, &setting.partition.assignment);
        Self {
            steps: setting.steps(),
            fanouts: fanouts.to_vec(),
            degrees,
            pipeline,
            order: EpochOrder::default(),
            batches: VecDeque::new(),
            cache: Cache::new(graph, owner, worker.rank(), room),
            stored: worker.shard().features.clone(),
            kept: BTreeMap::new(),
        }
    }

    /// Loss and gradient of one step, given how features travel.
    ///
    /// # Errors
    /// If communication fails.
    pub(super) fn step(
        &mut self,
        worker: &mut Worker,
        model: &Gnn,
        wires: Wires<'_>,
        epoch: usize,
        step: usize,
    ) -> Result<Step, SimError> {
        let now = epoch * self.steps.count() + step;
        for (batch, stage) in self.pipeline.before(now) {
            let of = batch / self.steps.count();
            if of != epoch {
                worker.count_under(of)?;
            }
            self.advance(worker, (now, batch, stage), wires)?;
            if of != epoch {
                worker.count_under(epoch)?;
            }
        }
        let Some(ready) = self.batches.pop_front() else {
            return Err(SimError::Strategy(format!(
                "no batch was made for step {now}"
            )));
        };
        let layers = ready.layers.iter().rev();
        let layers = layers.map(|hop| (&hop.block, &hop.sampled.rows[..]));
        let (targets, features) = (&ready.targets, ready.features);
        run_alone(worker, model, layers, targets, now as u64, features)
    }

    /// Takes a batch through a stage: what it waits for, computing, and what it sends.
    fn advance(
        &mut self,
        worker: &mut Worker,
        (now, number, stage): (usize, usize, usize),
        wires: Wires<'_>,
    ) -> Result<(), SimError> {
        if stage == 0 {
            let batch = self.begin(worker, number)?;
            self.batches.push_back(batch);
            return Ok(());
        }
        // Batches wait in the order in which they were begun, the first one for this step.
        let place = number - now;
        let Some(mut batch) = self.batches.remove(place) else {
            return Err(SimError::Strategy(format!("batch {number} was not begun")));
        };
        let wire = || wires(batch.at.0, batch.at.1);
        let waits = std::mem::replace(&mut batch.waits, Waits::Nothing);
        match waits {
            Waits::Asks(asking) => {
                let asked = finish_asking(worker, asking)?;
                batch.waits = if batch.layers.len() < self.fanouts.len() {
                    let pending = self.answer(worker, &batch, &asked)?;
                    Waits::Neighbours(asked, pending)
                } else {
                    let pending = send_features(worker, &asked, &wire())?;
                    Waits::Features(asked, pending)
                };
            }
            Waits::Neighbours(asked, pending) => {
                self.hear(worker, &mut batch, &asked, pending)?;
                self.reach(worker, &mut batch)?;
            }
            Waits::Features(asked, pending) => {
                let arrived = receive_features(worker, pending, &asked, &wire())?;
                self.assemble(worker, &mut batch, &arrived);
            }
            Waits::Nothing => {
                let what = format!("batch {number} has no stage {stage}");
                return Err(SimError::Strategy(what));
            }
        }
        self.batches.insert(place, batch);
        Ok(())
    }

    /// Draws for the seeds of a batch, and asks on.
    fn begin(&mut self, worker: &mut Worker, number: usize) -> Result<Preparing, SimError> {
        let at = (number / self.steps.count(), number % self.steps.count());
        let seeds = self.order.seeds(worker, &self.steps, at);
        let shard = worker.shard();
        let rows = || seeds.iter().map(|&row| row as usize);
        let frontier = Frontier {
            nodes: rows().map(|row| shard.nodes[row]).collect(),
            degrees: rows().map(|row| shard.degrees[row]).collect(),
            split: Split {
                remote: Vec::new(),
                own: seeds.iter().copied().enumerate().collect(),
            },
        };
        let targets = batch_targets(worker, &self.steps, &seeds, at.1);
        let mut batch = Preparing {
            at,
            targets,
            frontier,
            drawn: Vec::new(),
            layers: Vec::new(),
            waits: Waits::Nothing,
            wanted: Vec::new(),
            features: None,
        };
        self.draw_own(worker, &mut batch);
        self.reach(worker, &mut batch)?;
        Ok(batch)
    }

    /// Draws for the nodes of a frontier that are here.
    fn draw_own(&self, worker: &mut Worker, batch: &mut Preparing) {
        let own = &batch.frontier.split.own;
        let rows: Vec<u32> = own.iter().map(|&(_, row)| row).collect();
        let here = self.draw(worker, batch, &[&rows]);
        let mut drawn = vec![Vec::new(); batch.frontier.nodes.len()];
        for ((place, _), neighbours) in own.iter().zip(here.into_iter().flatten()) {
            drawn[*place] = neighbours;
        }
        batch.drawn = drawn;
    }

    /// Makes the block of a hop for which all is drawn, and asks about its inputs: their
    /// neighbours, or their features after the last hop.
    fn reach(&mut self, worker: &mut Worker, batch: &mut Preparing) -> Result<(), SimError> {
        let (frontier, drawn) = (
            std::mem::take(&mut batch.frontier),
            std::mem::take(&mut batch.drawn),
        );
        let rule = self.degrees;
        let hop;
        (hop, batch.frontier) = worker.compute(Activity::Exchange, |worker| {
            next(worker, frontier, &drawn, rule)
        });
        batch.layers.push(hop);
        let hop = batch.layers.len();
        let asking = if hop < self.fanouts.len() {
            self.draw_own(worker, batch);
            let Frontier { nodes, split, .. } = &batch.frontier;
            start_asking(worker, self.fanouts.len() - 1 - hop, |_| {
                let asked = split.remote.iter().map(|&(_, place)| nodes[place]);
                (asked.collect(), by_owner(split.remote.iter().copied()))
            })?
        } else {
            let Frontier { nodes, split, .. } = &batch.frontier;
            let missing = split.remote.iter().copied();
            let missing = missing.filter(|&(_, place)| !self.cache.has(nodes[place]));
            let missing: Vec<(usize, usize)> = missing.collect();
            let wanted = missing.into_iter();
            let wanted = wanted.map(|at| (at, self.cache.asks(nodes[at.1])));
            let wanted: Vec<((usize, usize), bool)> = wanted.collect();
            let asking = start_asking(worker, 0, |_| {
                let asked = wanted.iter().map(|&((_, place), _)| nodes[place]);
                (asked.collect(), by_owner(wanted.iter().map(|&(at, _)| at)))
            })?;
            batch.wanted = wanted;
            asking
        };
        batch.waits = Waits::Asks(asking);
        Ok(())
    }

    /// Draws for those who asked, and sends them what is drawn.
    fn answer(
        &self,
        worker: &mut Worker,
        batch: &Preparing,
        asked: &Asked,
    ) -> Result<PendingExchange, SimError> {
        let layer = self.fanouts.len() - 1 - batch.layers.len();
        let mut outbox = Outbox::new(TrafficKind::Sample, layer as u32);
        outbox.expect = asked.by_me.ranks().collect();
        let rows: Vec<&[u32]> = asked.of_me.iter().map(|(_, rows)| &rows[..]).collect();
        let answers = self.draw(worker, batch, &rows);
        for (peer, answer) in asked.of_me.ranks().zip(answers) {
            let words = answer.iter().flatten().flat_map(|&(u, degree)| [u, degree]);
            let payload = words.flat_map(u32::to_le_bytes).collect();
            outbox.messages.push(Message { peer, payload });
        }
        worker.start_exchange(outbox)
    }

    /// Reads what others drew.
    fn hear(
        &self,
        worker: &mut Worker,
        batch: &mut Preparing,
        asked: &Asked,
        pending: PendingExchange,
    ) -> Result<(), SimError> {
        let inbox = worker.finish_exchange(pending)?;
        let fanout = self.fanouts[batch.layers.len()];
        let Frontier { degrees, split, .. } = &batch.frontier;
        let drawn = &mut batch.drawn;
        worker.compute(Activity::Exchange, |_| {
            for message in &inbox {
                let mut rest = &message.payload[..];
                for &(_, place) in &split.remote[asked.by_me[message.peer].clone()] {
                    drawn[place] = take(&mut rest, degrees[place].min(fanout))?;
                }
            }
            Ok(())
        })
    }

    /// Puts the features of a batch together, of which those that were missing `arrived`, and keeps
    /// what is to be kept.
    fn assemble(&mut self, worker: &mut Worker, batch: &mut Preparing, arrived: &[f32]) {
        let (nodes, Split { remote, own }) = (&batch.frontier.nodes, &batch.frontier.split);
        if nodes.is_empty() {
            return;
        }
        let wanted = &batch.wanted;
        let width = self.stored.width();
        batch.features = Some(worker.compute(Activity::Exchange, |worker| {
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
            for &((_, place), _) in wanted {
                places[place] = next.next().unwrap_or(u32::MAX);
            }
            let mut features = self.stored.select(&here);
            features.append(arrived);
            for (&((_, place), keeps), row) in wanted.iter().zip(arrived.chunks_exact(width)) {
                if keeps {
                    let at = u32::try_from(self.stored.rows()).unwrap_or(u32::MAX);
                    self.kept.insert(nodes[place], at);
                    self.stored.append(row);
                }
            }
            Input::from_features(features.select(&places), worker.place())
        }));
    }

    /// The neighbours drawn at a batch's present hop for lists of own rows: one piece of work,
    /// however many lists there are.
    fn draw(
        &self,
        worker: &mut Worker,
        batch: &Preparing,
        lists: &[&[u32]],
    ) -> Vec<Vec<Vec<Neighbour>>> {
        let ((epoch, step), hop) = (batch.at, batch.layers.len());
        let sampler = Sampler::new(worker.setting().seed, epoch, step, &self.fanouts);
        worker.compute(Activity::Exchange, |worker| {
            let shard = worker.shard();
            let name = |row: u32| shard.nodes[row as usize];
            let degree = |row: u32| u32::try_from(shard.degrees[row as usize]).unwrap_or(u32::MAX);
            let neighbour = |&u: &u32| (name(u), degree(u));
            let drawn = |rows: &&[u32]| {
                let near = |at: usize| {
                    let row = rows[at];
                    (name(row), shard.adjacency.neighbours(row as usize))
                };
                let drawn = sampler.draw_each(hop, rows.len(), near, name);
                let each = (0..rows.len()).map(|at| drawn.get(at));
                each.map(|drawn| drawn.iter().map(neighbour).collect())
                    .collect()
            };
            lists.iter().map(drawn).collect()
        })
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

/// Where those of each owner are, who come one after another.
fn by_owner(remote: impl Iterator<Item = (usize, usize)>) -> Peers<Range<usize>> {
    let mut found: Peers<Range<usize>> = Peers::default();
    for (place, (owner, _)) in remote.enumerate() {
        let range = found.of(owner);
        if range.end == 0 {
            range.start = place;
        }
        range.end = place + 1;
    }
    found
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

/// The hop whose outputs are a frontier for which these neighbours were drawn, and its
/// inputs, which are the next frontier.
fn next(
    worker: &Worker,
    frontier: Frontier,
    drawn: &[Vec<Neighbour>],
    rule: BlockDegrees,
) -> (Hop, Frontier) {
    let all = worker.setting().dataset.graph.nodes();
    let mut known: Vec<Neighbour> = drawn.iter().flatten().copied().collect();
    known.sort_unstable();
    known.dedup();
    let numbers = drawn.iter().map(|drawn| drawn.iter().map(|&(u, _)| u));
    let numbers: Lists = numbers.collect();
    let outputs = frontier.degrees.clone();
    let layer = SampledLayer::of(frontier.nodes, &numbers, frontier.degrees, all, all);
    let others = layer.rows[layer.outputs..].iter().map(|node| {
        let found = known.binary_search_by_key(node, |&(u, _)| u);
        found.map_or(0, |at| known[at].1 as usize) // it is one of those drawn
    });
    let degrees: Vec<usize> = outputs.into_iter().chain(others).collect();
    let aggregation = worker.setting().model.aggregation();
    let block = rule.block(&layer, &degrees, aggregation);
    let nodes = layer.rows.clone();
    let split = split(worker, &nodes);
    let frontier = Frontier {
        nodes,
        degrees: degrees.clone(),
        split,
    };
    let hop = Hop {
        block,
        sampled: layer,
        degrees,
    };
    (hop, frontier)
}
