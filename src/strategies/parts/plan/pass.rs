//! What a [`Pass`](super::super::Pass) does.

use super::CrossingPlan;
use super::memory::{self, Held};
use crate::model::{BlockShape, InputShape, ModelSpec, RowForm, Work};
use crate::net::TrafficKind;
use crate::sim::Track;
use crate::strategies::parts::Wire;

/// One forward and backward pass over the layers of a worker, in numbers.
pub struct PassPlan<'a> {
    /// Sizes of the model.
    pub model: &'a ModelSpec,
    /// One per layer.
    pub layers: Vec<LayerPlan<'a>>,
    /// The input of the first layer, none for no rows; of the rows made here alone, where their
    /// product crosses.
    pub features: Option<InputShape>,
    /// Whether gradients of a layer are summed over workers while the layers below go back.
    pub by_layer: bool,
}

/// What one layer of a pass computes on.
pub struct LayerPlan<'a> {
    /// Sizes of its block.
    pub block: BlockShape,
    /// Which of its rows cross the cut, if any do, and how they travel.
    pub crosses: Option<Crosses<'a>>,
}

/// How rows of a layer cross the cut.
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

/// The work of the way through a layer, where there is any.
#[derive(Clone, Copy, Default)]
struct There {
    /// Of the layer, or of what comes after the exchange where that stands after its product.
    layer: Option<Work>,
    /// Of the product before the exchange.
    product: Option<Work>,
}

impl<'a> PassPlan<'a> {
    /// One over these blocks, in which nothing crosses the cut.
    pub fn alone(
        model: &'a ModelSpec,
        blocks: impl IntoIterator<Item = BlockShape>,
        features: Option<InputShape>,
    ) -> Self {
        let crosses = None;
        let layer = |block| LayerPlan { block, crosses };
        Self {
            model,
            layers: blocks.into_iter().map(layer).collect(),
            features,
            by_layer: false,
        }
    }

    /// Writes down what worker `rank` does.
    pub fn write(&self, track: &mut Track, rank: usize) {
        let layers = self.layers.iter().map(|layer| Held {
            block: layer.block,
            made: layer.product().map(|crosses| crosses.plan.made),
        });
        let (most, stays) = memory::of(self.model, layers, self.features);
        track.passes_with(most, stays);
        let mut there: Vec<There> = Vec::with_capacity(self.layers.len());
        for (layer, part) in self.layers.iter().enumerate() {
            let made = match there.last() {
                None => self.features.is_some(),
                Some(below) => below.layer.is_some(),
            };
            there.push(match part.product() {
                Some(crosses) => self.around(track, rank, layer, made, crosses),
                None => self.through(track, rank, layer, made),
            });
        }
        let mut below = false;
        for (layer, there) in there.into_iter().enumerate().rev() {
            let back = |work: Work| work.backward(layer > 0);
            let upstream = layer + 1 == self.layers.len() || std::mem::take(&mut below);
            let part = &self.layers[layer];
            let own = there.layer.filter(|_| upstream);
            if let Some(work) = own {
                track.compute(back(work));
            }
            below = own.is_some();
            if let Some(Crosses {
                plan, back: wire, ..
            }) = part.product()
            {
                let width = self.model.layer(layer).width(RowForm::Product);
                let arrives = plan.backward(track, rank, layer, width, wire, below);
                below = there.product.is_some() && arrives;
                if let Some(work) = there.product.filter(|_| below) {
                    track.compute(back(work));
                }
            }
            below &= layer > 0;
            if self.by_layer {
                let len = self
                    .model
                    .parameter_ranges(layer)
                    .iter()
                    .map(ExactSizeIterator::len)
                    .sum();
                track.start_all_reduce(len, TrafficKind::ParameterGradient);
            }
            if let (1.., Some(Crosses { plan, back, .. })) = (layer, part.input()) {
                let width = self.model.widths[layer];
                below = plan.backward(track, rank, layer, width, back, below);
            }
        }
        if self.by_layer {
            self.layers.iter().for_each(|_| track.finish_collective());
        }
    }

    /// A layer in one piece, given whether there are rows made here.
    fn through(&self, track: &mut Track, rank: usize, layer: usize, made: bool) -> There {
        let (model, part) = (self.model, &self.layers[layer]);
        let input = match part.input() {
            _ if layer == 0 => self.features,
            Some(Crosses { plan, forward, .. }) => plan
                .forward(track, rank, layer, model.widths[layer], forward)
                .then(|| self.dense(layer, part.block.inputs)),
            None => made.then(|| self.dense(layer, part.block.inputs)),
        };
        let input = input.filter(|_| part.block.outputs > 0);
        let work = input.map(|input| Work::layer(model, layer, part.block, input));
        if let Some(work) = work {
            track.compute(work);
        }
        There {
            layer: work,
            product: None,
        }
    }

    /// A layer around its exchange, which stands after its product.
    fn around(
        &self,
        track: &mut Track,
        rank: usize,
        layer: usize,
        made: bool,
        Crosses { plan, forward, .. }: Crosses<'_>,
    ) -> There {
        let (spec, block) = (self.model.layer(layer), self.layers[layer].block);
        let input = match self.features {
            _ if !made || plan.made == 0 => None,
            features if layer == 0 => features,
            _ => Some(self.dense(layer, plan.made)),
        };
        let product = input.map(|input| Work::transform(&spec, plan.made, input));
        if let Some(work) = product {
            track.compute(work);
        }
        let width = spec.width(RowForm::Product);
        let reads = plan.forward(track, rank, layer, width, forward);
        let input = input.filter(|_| reads && block.outputs > 0);
        let work = input.map(|input| {
            let own = input.stored * block.outputs / plan.made.max(1);
            Work::gather(self.model, layer, block, own)
        });
        if let Some(work) = work {
            track.compute(work);
        }
        There {
            layer: work,
            product,
        }
    }

    fn dense(&self, layer: usize, rows: usize) -> InputShape {
        InputShape::dense(rows, self.model.widths[layer])
    }
}

impl<'a> LayerPlan<'a> {
    /// How rows cross after the layer's product, if they do.
    fn product(&self) -> Option<Crosses<'a>> {
        self.crosses
            .filter(|crosses| crosses.forward.takes_product())
    }

    /// How rows cross before the layer's product, if they do.
    fn input(&self) -> Option<Crosses<'a>> {
        self.crosses
            .filter(|crosses| !crosses.forward.takes_product())
    }
}
