//! The features that the first layer reads: of own nodes, and those that come, in time or late.

use std::sync::Arc;

use super::{Epoch, ExchangePlanner};
use crate::graph::PartCounts;
use crate::model::{InputShape, Work};
use crate::net::{TrafficKind, Way};
use crate::sim::{Setting, Track};
use crate::strategies::parts::Wire;
use crate::strategies::parts::plan::crossing::{
    Wait, exchange, messages, peers, receive_features, send_features,
};
use crate::strategies::parts::plan::{CrossingPlan, arrived};

/// The features of each worker's own nodes.
pub(super) fn own_features(setting: &Setting) -> Vec<InputShape> {
    let own = |part: &PartCounts| InputShape::new(part.own_values, setting.counts.dense);
    setting.counts.parts.iter().map(own).collect()
}

impl ExchangePlanner {
    /// The features of a worker's own nodes and of all its halo; of its own nodes alone, where
    /// their product crosses.
    pub(super) fn all_features(
        &mut self,
        track: &mut Track,
        rank: usize,
        epoch: &Epoch,
    ) -> InputShape {
        if epoch.sent.crosses_after_product(0) {
            return self.features[rank]; // of own nodes: no others' ever come
        }
        let setting = Arc::clone(&self.setting);
        let part = &setting.counts.parts[rank];
        let crossing = self.crossing(rank);
        let wire = epoch.sent.wires[0].as_ref();
        if let (true, Some(wire)) = (self.features_late(), wire) {
            return self.late_features(track, rank, &crossing, wire, epoch.since);
        }
        track.set_up(epoch.sent.keeps_features, |track| {
            self.fetch(track, rank, &crossing, wire, self.ahead);
        });
        if setting.counts.dense || !setting.holds_graph() {
            self.features[rank].stored = part.own_values + part.halo_values;
        } else if let Some(wire) = wire {
            let others = setting.boundary.parts[rank].halo_by_owner();
            self.features[rank] = arrived(&setting, rank, part.own_values, others, wire);
        }
        if let Some(wire) = &epoch.ahead {
            let width = setting.model.features();
            track.compute(Work::pass(crossing.outgoing() * width));
            track.count_under(1);
            let to = messages(wire, rank, Way::Forward, &crossing.sends, width);
            let from = peers(&crossing.receives);
            track.start_exchange(exchange(TrafficKind::Feature, 0, to, from));
            track.count_under(0);
        }
        self.features[rank]
    }

    /// Whether features are used an epoch after they were sent.
    pub(super) fn features_late(&self) -> bool {
        let staleness = self.when.staleness;
        staleness.is_some_and(|staleness| staleness.features)
    }

    /// The features of a worker's own nodes, and of its halo those that were sent in the epoch
    /// before, zeros at first; those of this one, if it is fresh.
    fn late_features(
        &self,
        track: &mut Track,
        rank: usize,
        crossing: &CrossingPlan,
        wire: &Wire,
        since: usize,
    ) -> InputShape {
        let part = &self.setting.counts.parts[rank];
        let width = self.setting.model.features();
        track.compute(Work::pass(crossing.outgoing() * width));
        let to = messages(wire, rank, Way::Forward, &crossing.sends, width);
        let from = peers(&crossing.receives);
        let sent = exchange(TrafficKind::Feature, 0, to, from);
        let wait = Wait::of(self.when.staleness, since);
        wait.write(track, sent);
        let read = match wait {
            Wait::Now | Wait::Both => Some(wire),
            _ => self.late.first().and_then(Option::as_ref),
        };
        track.compute(Work::pass(crossing.halo() * width));
        let dense = self.setting.counts.dense;
        let counted = dense || !self.setting.holds_graph();
        let Some(read) = read.filter(|_| !counted) else {
            // Zeros are stored in dense rows, and only there.
            let there = dense || read.is_some();
            let others = if there { part.halo_values } else { 0 };
            return InputShape::new(part.own_values + others, dense);
        };
        let others = self.setting.boundary.parts[rank].halo_by_owner();
        arrived(&self.setting, rank, part.own_values, others, read)
    }

    /// Features of the rows that cross, if they do in this epoch: those that are under way, or sent
    /// now.
    pub(super) fn fetch(
        &self,
        track: &mut Track,
        rank: usize,
        crossing: &CrossingPlan,
        wire: Option<&Wire>,
        ahead: bool,
    ) {
        let Some(wire) = wire else { return };
        let width = self.setting.model.features();
        if !ahead {
            let ends = [&crossing.sends[..], &crossing.receives];
            send_features(track, rank, ends, width, wire);
        }
        receive_features(track, crossing.halo(), width);
    }
}
