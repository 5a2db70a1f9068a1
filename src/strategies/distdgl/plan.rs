//! What the workers of `DistDGL` do, stated in advance.

use std::sync::Arc;

use super::Fetching;
use super::rehearsal::{Draws, NEIGHBOUR_BYTES, Read, Rehearsal, Requests};
use crate::model::{BlockShape, InputShape, Work};
use crate::net::{Bytes, TrafficKind};
use crate::sim::Track;
use crate::strategies::parts::plan::{
    Arrivals, Asks, LayerPlan, PassPlan, PlannedSteps, ask_owners, exchange_features, exchange_of,
};
use crate::strategies::parts::{CodecState, Wire};

/// The steps of a training.
pub struct FetchPlan {
    fetching: Fetching,
    rehearsal: Rehearsal,
    state: CodecState,
    arrivals: Arrivals,
    /// Of each worker the values that are stored of the features that it keeps.
    kept: Vec<Vec<(u32, usize)>>,
    at: (usize, usize),
    requests: Requests,
    /// Of each worker what it reads in the present step.
    inputs: Vec<Option<InputShape>>,
}

impl FetchPlan {
    /// Steps from the first on.
    pub fn new(fetching: Fetching) -> Self {
        let setting = &fetching.setting;
        let (boundary, batches) = (Arc::clone(&setting.boundary), Arc::clone(&fetching.batches));
        Self {
            rehearsal: Rehearsal::new(boundary, batches, fetching.cache),
            state: fetching.wires.state(),
            arrivals: Arrivals::new(Arc::clone(setting)),
            kept: vec![Vec::new(); setting.workers()],
            at: (0, 0),
            requests: Requests::default(),
            inputs: Vec::new(),
            fetching,
        }
    }

    /// What a worker reads, as it lies in memory; what comes is kept as the wire left it.
    fn input(&mut self, rank: usize, wire: &Wire) -> Option<InputShape> {
        let setting = &self.fetching.setting;
        let features = &setting.dataset.features;
        let Read { own, kept, fetched } = &self.requests.read[rank];
        let nodes = || fetched.iter().flat_map(|(_, nodes)| nodes);
        if own.is_empty() && kept.is_empty() && nodes().next().is_none() {
            return None;
        }
        let others = fetched.iter().map(|(owner, nodes)| (owner, &nodes[..]));
        let arrived = self.arrivals.rows(rank, others, wire);
        let mut stored: usize = own.iter().map(|&node| features.stored_of(node)).sum();
        stored += arrived.iter().sum::<usize>();
        let known = &mut self.kept[rank];
        let of = |node: &u32| known.binary_search_by_key(node, |&(node, _)| node);
        let before = kept.iter().filter_map(|node| Some(known[of(node).ok()?].1));
        stored += before.sum::<usize>();
        if self.fetching.cache > 0.0 {
            known.extend(nodes().copied().zip(arrived));
            known.sort_unstable();
        }
        Some(InputShape {
            stored,
            dense: features.is_dense(),
        })
    }

    /// A worker has the neighbours of others' nodes drawn by their owners, and draws for those who
    /// ask it.
    #[allow(clippy::cast_possible_truncation)] // ranks are far below 2³²
    fn draw_remote(&self, track: &mut Track, rank: usize, hop: usize) {
        let (hops, layer) = (&self.requests.hops[hop], self.requests.hops.len() - 1 - hop);
        let by_me: Vec<(u32, Draws)> = hops[rank].asks.iter().map(by_rank).collect();
        let of_me = hops.iter().enumerate();
        let of_me = of_me.map(|(asker, played)| (asker as u32, played.asks[rank]));
        let of_me: Vec<(u32, Draws)> = of_me.filter(|(_, asked)| asked.nodes > 0).collect();
        let nodes = |all: &[(u32, Draws)]| all.iter().map(|&(peer, it)| (peer, it.nodes)).collect();
        ask_owners(
            track,
            layer,
            &Asks {
                by_me: nodes(&by_me),
                of_me: nodes(&of_me),
            },
        );
        track.compute(Work::pass(of_me.iter().map(|(_, it)| it.looked_at).sum()));
        let answer =
            |&(peer, it): &(u32, Draws)| (peer, Bytes((it.neighbours * NEIGHBOUR_BYTES) as u64));
        let to = of_me.iter().map(answer).collect();
        let from = by_me.iter().map(|&(peer, _)| peer).collect();
        track.exchange(exchange_of(TrafficKind::Sample, layer, to, from));
        let bytes: usize = by_me
            .iter()
            .map(|(_, it)| it.neighbours * NEIGHBOUR_BYTES)
            .sum();
        track.compute(Work::pass(bytes / 4));
    }
}

#[allow(clippy::cast_possible_truncation)] // ranks are far below 2³²
const fn by_rank((rank, draws): (usize, &Draws)) -> (u32, Draws) {
    (rank as u32, *draws)
}

impl PlannedSteps for FetchPlan {
    fn begin(&mut self, epoch: usize, step: usize) {
        self.at = (epoch, step);
        self.requests = self.rehearsal.play(epoch, step);
        let wire = self.fetching.wire(self.at, &self.state);
        let ranks = 0..self.fetching.setting.workers();
        self.inputs = ranks.map(|rank| self.input(rank, &wire)).collect();
    }

    #[allow(clippy::cast_possible_truncation)] // ranks are far below 2³²
    fn write(&self, track: &mut Track, rank: usize) {
        let setting = &self.fetching.setting;
        let model = &setting.model;
        if self.at.1 == 0 {
            track.compute(Work::pass(setting.counts.parts[rank].training));
        }
        let mut layers = Vec::with_capacity(model.layers());
        for (hop, played) in self.requests.hops.iter().enumerate() {
            let played = &played[rank];
            track.compute(Work::pass(played.looked_at));
            if hop > 0 {
                self.draw_remote(track, rank, hop);
            }
            track.compute(Work::pass(played.edges));
            let (outputs, inputs) = (played.outputs, played.inputs);
            layers.push(LayerPlan {
                block: BlockShape::of(outputs, inputs, played.edges, model.aggregation()),
                crosses: None,
            });
        }
        layers.reverse();
        let asks = |reader: usize, owner: usize| {
            let rows = self.requests.read[reader].fetched[owner].len();
            (rows > 0).then_some(rows)
        };
        let peers = || (0..setting.workers()).filter(|&peer| peer != rank);
        let asks = Asks {
            by_me: peers()
                .filter_map(|peer| Some((peer as u32, asks(rank, peer)?)))
                .collect(),
            of_me: peers()
                .filter_map(|peer| Some((peer as u32, asks(peer, rank)?)))
                .collect(),
        };
        let width = model.features();
        ask_owners(track, 0, &asks);
        exchange_features(
            track,
            rank,
            &asks,
            width,
            &self.fetching.wire(self.at, &self.state),
        );
        if self.inputs[rank].is_some() {
            let rows = layers[0].block.inputs;
            track.compute(Work::pass(rows * width));
        }
        let pass = PassPlan {
            model,
            layers,
            features: self.inputs[rank],
            by_layer: false,
        };
        pass.write(track, rank);
    }
}
