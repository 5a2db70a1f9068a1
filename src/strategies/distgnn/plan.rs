//! What a worker does in an epoch, stated in advance.

use super::Fitted;
use super::routes::{Routes, rows};
use crate::graph::Peers;
use crate::model::{BlockShape, Work};
use crate::net::TrafficKind;
use crate::sim::{Planner, Track};
use crate::strategies::parts::gradients::LearnerPlan;
use crate::strategies::parts::plan::{SummedPlan, exchange_of_lane, plan_each};
use crate::strategies::parts::{Lane, forward_lane};

/// The plan of a training.
pub(super) fn planner(fitted: &Fitted) -> Box<dyn Planner> {
    let (fitted, workers) = (fitted.clone(), fitted.setting.workers());
    let epochs = fitted.setting.training.epochs;
    let learner = LearnerPlan::of_model(fitted.options.gradients, &fitted.setting, epochs);
    plan_each(workers, move |epoch, rank, track| {
        let plan = Plan {
            fitted: &fitted,
            rank,
            epoch,
        };
        plan.passes(track);
        learner.write(track, rank, epoch);
        if epoch + 1 == epochs {
            plan.finish(track, epochs);
        }
    })
}

struct Plan<'a> {
    fitted: &'a Fitted,
    rank: usize,
    epoch: usize,
}

impl Plan<'_> {
    fn passes(&self, track: &mut Track) {
        let model = &self.fitted.setting.model;
        let part = &self.fitted.cut.parts[self.rank];
        let (clones, edges) = (part.nodes.len(), part.adjacency.edges());
        let passes = SummedPlan {
            model,
            block: BlockShape::of(clones, clones, edges, model.aggregation()),
            sums: true,
        };
        passes.write(track, &|track, lane| self.total(track, lane));
    }

    /// The totals of partial sums, or of gradients.
    fn total(&self, track: &mut Track, lane: Lane) {
        let Fitted {
            options,
            routes,
            cut,
            setting,
            ..
        } = self.fitted;
        let bins = &routes[self.rank];
        let Routes { clones, own } = &bins[self.epoch % bins.len()];
        let width = setting.model.widths[lane.1];
        let all = cut.parts[self.rank].nodes.len();
        let send = |track: &mut Track, to: &Peers<Vec<u32>>, from: &Peers<Vec<u32>>, delay| {
            let rows = to.iter().map(|(peer, rows)| (peer, rows.len() * width));
            track.start_exchange(exchange_of_lane(lane, rows, from.ranks()));
            if self.epoch >= delay {
                track.finish_exchange(lane.0, lane.1 as u32);
            }
        };
        track.compute(Work::pass((all + rows(clones)) * width));
        send(track, clones, own, options.delay);
        if self.epoch >= options.delay {
            track.compute(Work::pass(2 * rows(own) * width));
            send(track, own, clones, 2 * options.delay);
            if self.epoch >= 2 * options.delay {
                track.compute(Work::pass(rows(clones) * width));
            }
        }
        track.compute(Work::pass(all * width));
    }

    /// Waits for what is under way after the last of so many epochs.
    fn finish(&self, track: &mut Track, epochs: usize) {
        let (layers, delay) = (
            self.fitted.setting.model.layers(),
            self.fitted.options.delay,
        );
        // Partial sums of as many epochs, and totals of as many.
        let left = epochs.min(2 * delay);
        let back = (1..layers).map(|layer| (TrafficKind::ActivationGradient, layer));
        let mut lanes: Vec<Lane> = (0..layers).map(forward_lane).chain(back).collect();
        lanes.sort_unstable();
        for (kind, layer) in lanes {
            (0..left).for_each(|_| track.finish_exchange(kind, layer as u32));
        }
    }
}
