//! What a [`SummedPass`](super::super::SummedPass) does.

use super::exchange_of;
use super::memory::{self, Held};
use crate::model::{BlockShape, InputShape, ModelSpec, Work};
use crate::net::{TrafficKind, f32_bytes};
use crate::sim::{Exchange, Track};
use crate::strategies::parts::{Lane, forward_lane};

/// So many numbers to each of some workers, and messages from others.
pub(crate) fn exchange_of_lane(
    (kind, layer): Lane,
    to: impl Iterator<Item = (usize, usize)>,
    from: impl Iterator<Item = usize>,
) -> Exchange {
    let to = to.map(|(peer, values)| (peer as u32, f32_bytes(values)));
    let from = from.map(|peer| peer as u32);
    exchange_of(kind, layer, to.collect(), from.collect())
}

/// Both passes over the layers of a worker, in numbers.
pub(crate) struct SummedPlan<'a> {
    /// Sizes of the model.
    pub model: &'a ModelSpec,
    /// Sizes of what the worker sums over; it has a row for each output.
    pub block: BlockShape,
    /// Whether it sums over that before others are asked.
    pub sums: bool,
}

impl SummedPlan<'_> {
    /// Writes them down, with what `total` writes of the totals of a lane.
    pub(crate) fn write(&self, track: &mut Track, total: &dyn Fn(&mut Track, Lane)) {
        let (model, rows) = (self.model, self.block.outputs);
        let features = InputShape::dense(rows, model.features());
        let layers = 0..model.layers();
        let totals = f32_bytes(rows * model.widths[..model.layers()].iter().sum::<usize>()).0;
        let held = layers.clone().map(|_| Held {
            block: self.block,
            made: None,
        });
        let (most, stays) = memory::of(model, held, Some(features));
        track.passes_with(most + totals, stays);
        for layer in layers.clone() {
            track.compute(self.before(layer));
            total(track, forward_lane(layer));
            track.compute(self.behind(layer));
        }
        for layer in layers.rev() {
            track.compute(self.behind(layer).backward(layer > 0));
            if layer > 0 {
                total(track, (TrafficKind::ActivationGradient, layer));
                track.compute(self.before(layer));
            }
        }
    }

    /// Dropout, and sums where they are made before others are asked.
    fn before(&self, layer: usize) -> Work {
        let (rows, width) = (self.block.outputs, self.model.widths[layer]);
        let dropped = Work::pass(rows * width);
        if self.sums {
            return dropped + Work::aggregation(rows, self.block.entries, width);
        }
        dropped
    }

    /// What a layer makes of totals.
    fn behind(&self, layer: usize) -> Work {
        let (model, rows) = (self.model, self.block.outputs);
        let (width, spec) = (model.widths[layer], model.layer(layer));
        let each = BlockShape {
            inputs: rows,
            entries: rows,
            ..self.block
        };
        let input = InputShape::dense(rows, width);
        let rest = Work::pass(input.stored)
            + Work::transform(&spec, rows, input)
            + Work::gather(model, layer, each, input.stored);
        if model.aggregation().has_self() {
            return rest + Work::aggregation(rows, rows, width);
        }
        rest
    }
}
