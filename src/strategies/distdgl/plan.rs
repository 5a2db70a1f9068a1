//! What the workers of `DistDGL` do, stated in advance.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::Fetching;
use super::drawn::Drawn;
use super::expectation::Expectation;
use super::pipeline::Pipeline;
use super::sampled_requests::{Draws, Hop, NEIGHBOUR_BYTES, Read, SampledRequests};
use crate::graph::PartCounts;
use crate::model::{BlockShape, InputShape, Work};
use crate::net::{Bytes, TrafficKind, Way};
use crate::sim::Track;
use crate::strategies::parts::plan::{
    Asks, PassPlan, PlannedSteps, arrived_rows, exchange_of, finish_asking, receive_features,
    send_features, start_asking,
};
use crate::strategies::parts::{CodecState, Wire};

/// The steps of a training.
pub(super) struct FetchPlan {
    fetching: Fetching,
    pipeline: Pipeline,
    sampling: Sampling,
    state: CodecState,
    /// Of each worker the values that are stored of the features that it keeps.
    kept: Vec<BTreeMap<u32, usize>>,
    /// The step that is planned, among all of the training.
    now: usize,
    /// Batches that are under way, from that of this step on.
    batches: VecDeque<Batch>,
}

/// How it is known what will be drawn.
enum Sampling {
    Played(Box<SampledRequests>),
    /// Of a graph that is known by its law.
    Expected(Box<Expectation>),
}

/// A batch, as it will be drawn.
struct Batch {
    /// Its epoch and step.
    at: (usize, usize),
    drawn: Arc<Drawn>,
}

impl FetchPlan {
    /// Steps from the first on.
    pub(super) fn new(fetching: Fetching) -> Self {
        let setting = &fetching.setting;
        let (boundary, batches) = (Arc::clone(&setting.boundary), Arc::clone(&fetching.batches));
        let (rooms, steps) = (&fetching.rooms, setting.steps());
        let sampling = match &setting.law {
            Some(law) => {
                let steps = (steps, setting.model.features());
                let expected = Expectation::new(Arc::clone(law), batches, steps, rooms);
                Sampling::Expected(Box::new(expected))
            }
            None => Sampling::Played(Box::new(SampledRequests::new(boundary, batches, rooms))),
        };
        Self {
            pipeline: fetching.pipeline(),
            sampling,
            state: fetching.wires.state(),
            kept: vec![BTreeMap::new(); setting.workers()],
            now: 0,
            batches: VecDeque::new(),
            fetching,
        }
    }

    /// What the workers draw for a batch and read in it.
    fn batch(&mut self, number: usize) -> Batch {
        let at = (
            number / self.fetching.steps(),
            number % self.fetching.steps(),
        );
        let requests = match &mut self.sampling {
            Sampling::Played(requests) => requests.play(at.0, at.1),
            Sampling::Expected(expectation) => {
                let drawn = expectation.play(at.1);
                return Batch { at, drawn };
            }
        };
        let wire = self.fetching.wire(at, &self.state);
        let ranks = 0..self.fetching.setting.workers();
        let inputs = ranks.map(|rank| self.input(&requests.read[rank], rank, &wire));
        let inputs = inputs.collect();
        let drawn = Arc::new(Drawn {
            number: 0,
            workers: self.fetching.setting.workers(),
            inputs,
            hops: requests.hops,
            fetched: requests.read.iter().map(Read::rows).collect(),
        });
        Batch { at, drawn }
    }

    /// What a worker reads, as it lies in memory; what comes is kept as the wire left it.
    fn input(&mut self, read: &Read, rank: usize, wire: &Wire) -> Option<InputShape> {
        let setting = &self.fetching.setting;
        let features = &setting.dataset.features;
        let Read { own, kept, fetched } = read;
        let nodes = || fetched.iter().flat_map(|(_, nodes)| nodes);
        if own.is_empty() && kept.is_empty() && nodes().next().is_none() {
            return None;
        }
        let others = fetched.iter().map(|(owner, nodes)| (owner, &nodes[..]));
        let arrived = arrived_rows(setting, rank, others, wire);
        let mut stored: usize = own.iter().map(|&node| features.stored_of(node)).sum();
        stored += arrived.iter().sum::<usize>();
        let known = &mut self.kept[rank];
        stored += kept
            .iter()
            .filter_map(|node| known.get(node))
            .sum::<usize>();
        if self.fetching.rooms[rank] > 0 {
            known.extend(nodes().copied().zip(arrived));
        }
        Some(InputShape::new(stored, features.is_dense()))
    }

    /// A worker takes a batch through a stage; see
    /// [`FetchingTrainer`](super::fetching::FetchingTrainer).
    fn advance(&self, track: &mut Track, rank: usize, batch: &Batch, stage: usize) {
        let (hops, width) = (
            batch.drawn.hops.len(),
            self.fetching.setting.model.features(),
        );
        match stage {
            0 => {
                if batch.at.1 == 0 {
                    let training = self.fetching.setting.counts.parts[rank].training;
                    track.compute(Work::pass(training));
                }
                track.compute(Work::pass(batch.drawn.hop(0, rank).looked_at));
                batch.reach(track, rank, 0);
            }
            stage if stage == 2 * hops => {
                receive_features(track, batch.fetches(rank).rows().0, width);
                if batch.drawn.input(rank).is_some() {
                    let rows = batch.drawn.hop(hops - 1, rank).inputs;
                    track.compute(Work::pass(rows * width));
                }
            }
            stage if stage == 2 * hops - 1 => {
                let asks = batch.fetches(rank);
                finish_asking(track, 0, &asks);
                let wire = self.fetching.wire(batch.at, &self.state);
                send_features(track, rank, [&asks.of_me, &asks.by_me], width, &wire);
            }
            stage if stage % 2 == 1 => {
                let hop = stage.div_ceil(2);
                let draws = batch.draws(rank, hop);
                finish_asking(track, hops - 1 - hop, &draws.asks());
                draws.answer(track, hops - 1 - hop);
            }
            stage => {
                let hop = stage / 2;
                track.finish_exchange(TrafficKind::Sample, (hops - 1 - hop) as u32);
                track.compute(Work::pass(batch.draws(rank, hop).heard()));
                batch.reach(track, rank, hop);
            }
        }
    }

    /// Bytes of the features that come to a worker while it computes: those of the next batch.
    fn under_way(&self, rank: usize) -> u64 {
        let Some(next) = self.batches.get(1) else {
            return 0;
        };
        let (wire, width) = (
            self.fetching.wire(next.at, &self.state),
            self.fetching.setting.model.features(),
        );
        let comes = |&(owner, rows): &(u32, usize)| {
            let ends = (owner as usize, rank, Way::Forward);
            wire.bytes(ends, rows, width).0
        };
        next.fetches(rank).by_me.iter().map(comes).sum()
    }
}

impl Batch {
    /// A worker makes the block of a hop and asks on.
    fn reach(&self, track: &mut Track, rank: usize, hop: usize) {
        let (drawn, hops) = (&self.drawn, self.drawn.hops.len());
        track.compute(Work::pass(drawn.hop(hop, rank).edges));
        let next = hop + 1;
        if next < hops {
            track.compute(Work::pass(drawn.hop(next, rank).looked_at));
            start_asking(track, hops - 1 - next, &self.draws(rank, next).asks());
        } else {
            start_asking(track, 0, &self.fetches(rank));
        }
    }

    /// What a worker has drawn at a hop, and what it draws for others.
    fn draws(&self, rank: usize, hop: usize) -> Asked {
        let drawn = &self.drawn;
        let asks = |peer, draws: Draws| (draws.nodes > 0).then_some((peer as u32, draws));
        let by_me = |peer| asks(peer, drawn.asked(hop, rank, peer));
        let of_me = |peer| asks(peer, drawn.asked(hop, peer, rank));
        Asked {
            by_me: drawn.others(rank).filter_map(by_me).collect(),
            of_me: drawn.others(rank).filter_map(of_me).collect(),
        }
    }

    /// How many rows of features a worker fetches, and others from it.
    fn fetches(&self, rank: usize) -> Asks {
        let drawn = &self.drawn;
        let asks = |peer, rows: usize| (rows > 0).then_some((peer as u32, rows));
        let by_me = |peer| asks(peer, drawn.fetched(rank, peer));
        let of_me = |peer| asks(peer, drawn.fetched(peer, rank));
        Asks {
            by_me: drawn.others(rank).filter_map(by_me).collect(),
            of_me: drawn.others(rank).filter_map(of_me).collect(),
        }
    }
}

/// Draws that a worker asks for at a hop, and is asked for.
struct Asked {
    by_me: Vec<(u32, Draws)>,
    of_me: Vec<(u32, Draws)>,
}

impl Asked {
    fn asks(&self) -> Asks {
        let nodes = |all: &[(u32, Draws)]| all.iter().map(|&(peer, it)| (peer, it.nodes)).collect();
        Asks {
            by_me: nodes(&self.by_me),
            of_me: nodes(&self.of_me),
        }
    }

    /// It draws for those who asked, and answers.
    fn answer(&self, track: &mut Track, layer: usize) {
        let looked_at = self.of_me.iter().map(|(_, it)| it.looked_at);
        track.compute(Work::pass(looked_at.sum()));
        let answer =
            |&(peer, it): &(u32, Draws)| (peer, Bytes((it.neighbours * NEIGHBOUR_BYTES) as u64));
        let to = self.of_me.iter().map(answer).collect();
        let from = self.by_me.iter().map(|&(peer, _)| peer).collect();
        track.start_exchange(exchange_of(TrafficKind::Sample, layer, to, from));
    }

    /// Values in the answers that it hears.
    fn heard(&self) -> usize {
        let neighbours: usize = self.by_me.iter().map(|(_, it)| it.neighbours).sum();
        neighbours * NEIGHBOUR_BYTES / 4
    }
}

impl PlannedSteps for FetchPlan {
    fn begin(&mut self, epoch: usize, step: usize) {
        self.now = epoch * self.fetching.steps() + step;
        if self.now > 0 {
            self.batches.pop_front();
        }
        for number in self.now + self.batches.len()..=self.pipeline.last_begun(self.now) {
            let batch = self.batch(number);
            self.batches.push_back(batch);
        }
    }

    fn write(&self, track: &mut Track, rank: usize) {
        let model = &self.fetching.setting.model;
        let epoch = self.now / self.fetching.steps();
        let beside = self.fetching.setting.samples_beside;
        track.work_of_others(beside, |track| {
            for (number, stage) in self.pipeline.before(self.now) {
                let batch = &self.batches[number - self.now];
                let ahead = batch.at.0 - epoch;
                if ahead > 0 {
                    track.count_under(ahead);
                }
                self.advance(track, rank, batch, stage);
                if ahead > 0 {
                    track.count_under(0);
                }
            }
        });
        let counts = &self.fetching.setting.counts;
        let kept = self.fetching.rooms[rank].min(counts.nodes - counts.parts[rank].owned);
        track.keeps(4 * (kept * model.features()) as u64);
        track.hears_ahead(self.under_way(rank));
        let ready = &self.batches[0];
        let block = |hop| {
            let Hop {
                outputs,
                inputs,
                edges,
                ..
            } = *ready.drawn.hop(hop, rank);
            BlockShape::sampled(outputs, inputs, edges, model.aggregation())
        };
        let blocks = (0..ready.drawn.hops.len()).rev().map(block);
        PassPlan::alone(model, blocks, ready.drawn.input(rank)).write(track, rank);
    }

    fn kind(&self) -> Option<Vec<usize>> {
        if matches!(self.sampling, Sampling::Played(_))
            || self.fetching.wires.compression.codec.is_some()
        {
            return None;
        }
        let epoch = self.now / self.fetching.steps();
        let mut kind = vec![self.batches[0].drawn.number];
        for (number, stage) in self.pipeline.before(self.now) {
            let batch = &self.batches[number - self.now];
            let begins = usize::from(batch.at.1 == 0);
            kind.extend([batch.drawn.number, stage, batch.at.0 - epoch, begins]);
        }
        Some(kind)
    }

    fn are_equal(&self) -> bool {
        let (setting, rooms) = (&self.fetching.setting, &self.fetching.rooms);
        let parts = &setting.counts.parts;
        let training = |part: &PartCounts| part.training == parts[0].training;
        setting.law.is_some()
            && self.fetching.wires.compression.codec.is_none()
            && parts.iter().all(training)
            && rooms.iter().all(|room| *room == rooms[0])
    }
}
