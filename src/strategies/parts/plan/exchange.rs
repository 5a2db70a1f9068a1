//! What [`partition_parallel`](super::super::partition_parallel) does.

mod inputs;

use std::sync::Arc;

use super::batches::BatchPlan;
use super::crossing::{Wait, exchange, peers};
use super::moves::Moves;
use super::share::{Drawn, HaloEdges, share_of};
use super::{Crosses, CrossingPlan, LayerPlan, PassPlan, Stretches, arrived};
use crate::graph::{BatchForm, Peers};
use crate::model::{BlockShape, InputShape, Work};
use crate::net::{TrafficKind, Way, f32_bytes};
use crate::sim::{Decision, Planner, Setting, Timeline, Track};
use crate::strategies::parts::gradients::LearnerPlan;
use crate::strategies::parts::{BoundaryShare, EpochExchange, When, Wire};
use inputs::own_features;

/// What travels, as a plan knows it.
pub struct Sending {
    /// Whether features that came once are kept; see [`EpochExchange::keeps_features`].
    pub keeps_features: bool,
    /// What travels in an epoch, given its number and what was decided for it. Asked for each epoch
    /// once in their order, and for the next one's features besides.
    pub exchange: Exchanges,
}

/// See [`Sending::exchange`].
pub type Exchanges = Box<dyn FnMut(usize, Option<&Decision>) -> EpochExchange + Send>;

/// Plans a training that exchanges boundary rows and sums gradients.
pub struct ExchangePlanner {
    /// With the first parts.
    first: Arc<Setting>,
    /// With those of the epoch.
    setting: Arc<Setting>,
    epochs: usize,
    epoch: usize,
    /// None if nothing ever travels but gradients.
    sending: Option<Sending>,
    when: When,
    batches: Option<BatchPlan>,
    learner: LearnerPlan,
    /// Each worker's features with those of its halo, as received last.
    features: Vec<InputShape>,
    /// Whether the features of this epoch were sent in the one before.
    ahead: bool,
    halo_edges: Option<HaloEdges>,
    /// How the rows came that are read an epoch late, and so how their gradients go back.
    late: Vec<Option<Wire>>,
    last: Arc<Timeline>,
}

/// What is the same for all workers in an epoch.
struct Epoch {
    number: usize,
    /// Epochs since nodes were dealt out.
    since: usize,
    /// Whether it is the last with these parts.
    ends: bool,
    sent: EpochExchange,
    /// How the features of the next epoch travel during this one, if they do.
    ahead: Option<Wire>,
    /// What every owner draws of its boundary, and what follows from it.
    drawn: Option<(BoundaryShare, Vec<Peers<Vec<u32>>>)>,
}

impl ExchangePlanner {
    /// The plan of a training in which travels what `sending` says.
    pub fn new(setting: &Arc<Setting>, sending: Option<Sending>, when: When) -> Self {
        let form = match &sending {
            None => BatchForm::Alone,
            Some(sending) if sending.keeps_features => BatchForm::KeepingFeatures,
            Some(_) => BatchForm::Together,
        };
        let batches = BatchPlan::new(setting, form, when.gradients_overlap);
        let steps = setting.training.epochs * batches.as_ref().map_or(1, BatchPlan::steps);
        Self {
            epochs: setting.training.epochs,
            epoch: 0,
            when,
            batches,
            learner: LearnerPlan::of_model(when.gradients, setting, steps),
            features: own_features(setting),
            sending,
            ahead: false,
            halo_edges: None,
            late: Vec::new(),
            last: Arc::default(),
            first: Arc::clone(setting),
            setting: Arc::clone(setting),
        }
    }

    /// Nodes are dealt out anew, if they are in the next epoch: what moves, and the parts before.
    fn repartition(&mut self) -> Option<(Moves, Arc<Setting>)> {
        let repartition = self.when.repartition;
        if !repartition.begins(self.epoch) {
            return None;
        }
        // What can be wrong with a division is wrong with the first; if not, the program says so.
        let after = self.first.repartitioned(repartition.round(self.epoch));
        let before = std::mem::replace(&mut self.setting, after.ok()?);
        self.features = own_features(&self.setting);
        (self.halo_edges, self.late) = (None, Vec::new());
        Some((Moves::new(&before, &self.setting), before))
    }

    /// What travels in the next epoch.
    fn begin(&mut self, decided: Option<&Decision>) -> Epoch {
        let number = self.epoch;
        let repartition = self.when.repartition;
        let ends = repartition.ends(number, self.epochs);
        let mut epoch = Epoch {
            number,
            since: repartition.since(number),
            ends,
            sent: EpochExchange::default(),
            ahead: None,
            drawn: None,
        };
        let Some(sending) = &mut self.sending else {
            return epoch;
        };
        epoch.sent = (sending.exchange)(number, decided);
        if self.when.features_ahead && epoch.sent.gauge.is_none() && !ends {
            epoch.ahead = (sending.exchange)(number + 1, None).features();
        }
        if let Some(share) = epoch.sent.share {
            let draws = share.draws(&self.setting, number);
            epoch.drawn = Some((share, draws));
            let counts_edges = self.setting.plans_work && self.setting.holds_graph();
            if self.halo_edges.is_none() && counts_edges {
                self.halo_edges = Some(HaloEdges::new(&self.setting));
            }
        }
        epoch
    }

    /// The one step of an epoch in which all nodes train at once.
    fn whole(&mut self, track: &mut Track, rank: usize, epoch: &Epoch) {
        let setting = Arc::clone(&self.setting);
        let (part, model) = (&setting.counts.parts[rank], &setting.model);
        let aggregation = model.aggregation();
        let wires = &epoch.sent.wires;
        let whole = BlockShape::of(
            part.owned,
            part.owned + part.halo,
            part.internal_edges + part.cut_edges,
            aggregation,
        );
        let (blocks, features, crossing) = if self.sending.is_none() {
            let owned = part.owned;
            let block = BlockShape::of(owned, owned, part.internal_edges, aggregation);
            ([block; 2], self.features[rank], CrossingPlan::default())
        } else if let Some((share, draws)) = &epoch.drawn {
            let drawn = self.cross(track, rank, *share, draws);
            if epoch.sent.keeps_features {
                let features = self.all_features(track, rank, epoch);
                ([whole, drawn.block], features, drawn.crossing)
            } else if epoch.sent.crosses_after_product(0) {
                let features = self.features[rank]; // of own nodes: no others' ever come
                ([drawn.block; 2], features, drawn.crossing)
            } else {
                self.fetch(track, rank, &drawn.crossing, wires[0].as_ref(), false);
                let halo = drawn.crossing.halo();
                let features = if setting.counts.dense {
                    InputShape::new(part.own_values + halo * model.features(), true)
                } else if !setting.holds_graph() {
                    // As many values as rows of the halo have on average.
                    let others = share_of(part.halo_values, halo, part.halo);
                    InputShape::new(part.own_values + others, false)
                } else {
                    let others = drawn.nodes.iter();
                    let others = others.map(|(owner, nodes)| (*owner, &nodes[..]));
                    let wire = wires[0].clone().unwrap_or_else(Wire::plain);
                    arrived(&setting, rank, part.own_values, others, &wire)
                };
                ([drawn.block; 2], features, drawn.crossing)
            }
        } else {
            let features = self.all_features(track, rank, epoch);
            let crossing = CrossingPlan {
                wait: Wait::of(self.when.staleness, epoch.since),
                senders: epoch.sent.senders.clone(),
                looks: (self.when.kept).is_some_and(|keeping| keeping.threshold.is_some()),
                ..self.crossing(rank)
            };
            ([whole; 2], features, crossing)
        };
        self.pass(track, rank, blocks, features, &crossing, wires);
    }

    /// The rows that cross between a worker and the others, where no share of them is drawn.
    fn crossing(&self, rank: usize) -> CrossingPlan {
        let counts = &self.setting.counts;
        if self.when.blocks {
            return CrossingPlan::of_blocks(counts, rank);
        }
        CrossingPlan::whole(&counts.parts[rank])
    }

    /// A worker draws its part of the boundary, tells the others, and hears what they drew.
    fn cross(
        &self,
        track: &mut Track,
        rank: usize,
        share: BoundaryShare,
        draws: &[Peers<Vec<u32>>],
    ) -> Drawn {
        let part = &self.setting.counts.parts[rank];
        track.compute(Work::pass(part.sent_rows()));
        let ids = |(reader, rows): (u32, usize)| (reader, BoundaryShare::id_bytes(rows));
        let to = share.rows(&part.sends).into_iter().map(ids).collect();
        let from = peers(&share.rows(&part.receives));
        track.exchange(exchange(TrafficKind::Sample, 0, to, from));
        track.compute(Work::pass(part.internal_edges + part.cut_edges));
        share.drawn(&self.setting, self.halo_edges.as_ref(), draws, rank)
    }

    fn pass<'a>(
        &'a self,
        track: &mut Track,
        rank: usize,
        [first, above]: [BlockShape; 2],
        features: InputShape,
        crossing: &'a CrossingPlan,
        wires: &'a [Option<Wire>],
    ) {
        let wire = |wires: &'a [Option<Wire>], layer| wires.get(layer).and_then(Option::as_ref);
        let layer = |layer: usize| LayerPlan {
            block: if layer == 0 { first } else { above },
            crosses: wire(wires, layer).map(|forward| Crosses {
                plan: crossing,
                forward,
                back: wire(&self.late, layer).unwrap_or(forward),
            }),
        };
        let model = &self.setting.model;
        let pass = PassPlan {
            model,
            layers: (0..model.layers()).map(layer).collect(),
            features: Some(features),
            by_layer: self.when.gradients_overlap,
        };
        track.reads_features();
        pass.write(track, rank);
        self.keep(track, rank, crossing, wires);
    }

    /// What is held beside a pass.
    fn keep(
        &self,
        track: &mut Track,
        rank: usize,
        crossing: &CrossingPlan,
        wires: &[Option<Wire>],
    ) {
        let (mut kept, mut replaced) = (0, 0_u64);
        if self
            .sending
            .as_ref()
            .is_some_and(|sending| !sending.keeps_features)
        {
            // Features that are sent anew are gathered once.
            let rows = self.setting.counts.parts[rank].sent_rows();
            kept += f32_bytes(rows * self.setting.model.features()).0;
        }
        if self.when.staleness.is_some() {
            // Until they are waited for, which is an epoch later.
            let late = [TrafficKind::Activation, TrafficKind::ActivationGradient];
            kept += track.sends(&late);
        }
        for (layer, wire) in wires.iter().enumerate() {
            let Some(wire) = wire else { continue };
            let (width, both) = (
                self.setting.model.layer(layer).width(wire.form),
                layer > 0 || wire.takes_product(),
            );
            let ways = [
                (Way::Forward, &crossing.sends, &crossing.receives),
                (Way::Back, &crossing.receives, &crossing.sends),
            ];
            for (way, sends, receives) in ways.into_iter().take(if both { 2 } else { 1 }) {
                // What a codec goes by.
                for (copies, rows) in wire.codec.remembers(way).into_iter().zip([sends, receives]) {
                    let rows = rows.iter().map(|&(_, rows)| rows).sum::<usize>();
                    kept += f32_bytes(copies * rows * width).0;
                }
                if self.when.kept.is_some() && both {
                    // What came last, to be used again until the next has come.
                    let came = receives.iter().map(|&(peer, rows)| {
                        let ends = match way {
                            Way::Forward => (peer as usize, rank, way),
                            Way::Back => (rank, peer as usize, way),
                        };
                        wire.bytes(ends, rows, width).0
                    });
                    let came = came.sum();
                    kept += came;
                    replaced = replaced.max(came);
                }
            }
        }
        track.keeps(kept + replaced);
    }

    /// The sum of gradients, if it is not part of the pass, and the update.
    fn update(&self, track: &mut Track, rank: usize, step: usize) {
        if self.when.gradients_overlap {
            self.learner.write_update(track);
        } else {
            self.learner.write(track, rank, step);
        }
    }

    /// What is done after the last step of an epoch.
    fn end(&self, track: &mut Track, epoch: &Epoch) {
        let (sent, layers) = (&epoch.sent, self.setting.model.layers());
        let late = self.when.staleness;
        if epoch.ends && late.is_some_and(|late| !late.is_fresh(epoch.since)) {
            let first = usize::from(!sent.crosses_after_product(0));
            if self.features_late() && first == 1 {
                track.finish_exchange(TrafficKind::Feature, 0);
            }
            for kind in [TrafficKind::Activation, TrafficKind::ActivationGradient] {
                (first..layers).for_each(|layer| track.finish_exchange(kind, layer as u32));
            }
        }
        if sent.gauge.is_some() && sent.shares_error {
            track.all_reduce(2, TrafficKind::Control);
        }
        if let Some(tally) = &sent.tally {
            track.all_reduce(tally.len(), TrafficKind::Control);
        }
        let evaluates = self.setting.training.evaluates(epoch.number, self.epochs);
        if sent.shares_scores && evaluates {
            track.share();
        }
    }
}

impl ExchangePlanner {
    /// The next epoch of the first so many workers.
    fn plan(&mut self, decided: Option<&Decision>, workers: usize) -> Arc<Timeline> {
        let moved = self.repartition();
        let epoch = self.begin(decided);
        let late = self.when.staleness;
        if late.is_some_and(|late| late.is_fresh(epoch.since)) {
            self.late.clear();
        }
        let mut written = Stretches::of(workers);
        if let Some(mut batches) = self.batches.take() {
            for step in 0..batches.steps() {
                let taken = epoch.number * batches.steps() + step;
                let sums = |taken| self.learner.sums_after(taken);
                let again = batches.begin(epoch.number, step) && sums(taken) == sums(taken - 1);
                if again && written.again() {
                    continue;
                }
                for (rank, track) in written.tracks.iter_mut().enumerate() {
                    batches.write(track, rank, &epoch.sent);
                    self.update(track, rank, taken);
                }
                if batches.in_numbers() {
                    written.cut();
                }
            }
            for (rank, track) in written.tracks.iter_mut().enumerate() {
                track.keeps(batches.kept_bytes(rank));
            }
            self.batches = Some(batches);
        } else {
            for (rank, track) in written.tracks.iter_mut().enumerate() {
                if let Some((moves, before)) = &moved {
                    moves.write(track, rank, [before, &self.setting]);
                }
                self.whole(track, rank, &epoch);
                self.update(track, rank, epoch.number);
            }
        }
        for track in &mut written.tracks {
            self.end(track, &epoch);
        }
        if self.when.staleness.is_some() {
            self.late.clone_from(&epoch.sent.wires);
        }
        self.ahead = epoch.ahead.is_some();
        self.epoch += 1;
        self.last = written.after(&self.last, epoch.number);
        Arc::clone(&self.last)
    }
}

impl Planner for ExchangePlanner {
    fn next(&mut self, decided: Option<&Decision>) -> Arc<Timeline> {
        self.plan(decided, self.setting.workers())
    }

    fn next_of_equals(&mut self) -> Option<Arc<Timeline>> {
        let equal = self.batches.as_ref().is_some_and(BatchPlan::are_equal);
        (equal && self.learner.is_equal()).then(|| self.plan(None, 1))
    }
}
