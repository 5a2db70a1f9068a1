//! What a [`Pass`](super::super::Pass) does.

use super::CrossingPlan;
use crate::model::{BlockShape, InputShape, ModelSpec, Work};
use crate::net::TrafficKind;
use crate::sim::Track;
use crate::strategies::parts::Wire;

/// One forward and backward pass over the layers of a worker, in numbers.
pub struct PassPlan<'a> {
    /// Sizes of the model.
    pub model: &'a ModelSpec,
    /// One per layer.
    pub layers: Vec<LayerPlan<'a>>,
    /// The input of the first layer, none for no rows.
    pub features: Option<InputShape>,
    /// Whether gradients of a layer are summed over workers while the layers below go back.
    pub by_layer: bool,
}

/// What one layer of a pass computes on.
pub struct LayerPlan<'a> {
    /// Sizes of its block.
    pub block: BlockShape,
    /// Which rows of its input cross the cut, if any do, and how they travel.
    pub crosses: Option<Crosses<'a>>,
}

/// How rows of a layer's input cross the cut.
#[derive(Clone, Copy)]
pub struct Crosses<'a> {
    /// Which, and when they are waited for.
    pub plan: &'a CrossingPlan,
    /// How they travel forward.
    pub forward: &'a Wire,
    /// How the gradient of those that are read goes back: as they came, which with late rows was an
    /// epoch ago.
    pub back: &'a Wire,
}

impl PassPlan<'_> {
    /// Writes down what worker `rank` does.
    pub fn write(&self, track: &mut Track, rank: usize) {
        let model = self.model;
        // Of each layer the work of the way there, where there is any.
        let mut there: Vec<Option<Work>> = Vec::with_capacity(self.layers.len());
        for (layer, part) in self.layers.iter().enumerate() {
            let input = match there.last() {
                None => self.features,
                Some(below) => self
                    .reads(track, rank, layer, below.is_some())
                    .then(|| InputShape::dense(part.block.inputs, model.widths[layer])),
            };
            let computes = input.filter(|_| part.block.outputs > 0);
            let work = computes.map(|input| Work::layer(model, layer, part.block, input));
            if let Some(work) = work {
                track.compute(work);
            }
            there.push(work);
        }
        let mut below = false;
        for (layer, there) in there.into_iter().enumerate().rev() {
            let back = there.map(|work| work.backward(layer > 0));
            let mut upstream = std::mem::take(&mut below);
            match self.layers.get(layer + 1) {
                None => upstream = true, // the loss
                Some(LayerPlan {
                    crosses: Some(Crosses { plan, back, .. }),
                    ..
                }) => {
                    let width = model.widths[layer + 1];
                    upstream = plan.backward(track, rank, layer + 1, width, back, upstream);
                }
                Some(_) => {}
            }
            if let Some(back) = back.filter(|_| upstream) {
                track.compute(back);
                below = layer > 0;
            }
            if self.by_layer {
                let len = model
                    .parameter_ranges(layer)
                    .iter()
                    .map(ExactSizeIterator::len)
                    .sum();
                track.start_all_reduce(len, TrafficKind::ParameterGradient);
            }
        }
        if self.by_layer {
            self.layers.iter().for_each(|_| track.finish_collective());
        }
    }

    /// Whether a layer above the first has an input, given whether the layer below has an output.
    fn reads(&self, track: &mut Track, rank: usize, layer: usize, below: bool) -> bool {
        match self.layers[layer].crosses {
            None => below,
            Some(Crosses { plan, forward, .. }) => {
                plan.forward(track, rank, layer, self.model.widths[layer], forward)
            }
        }
    }
}
