//! Operations and bytes of a layer, for modelled compute time.

use derive_more::with_trait::{Add, Mul};

use super::layer::sums_first;
use super::{Aggregation, LayerSpec, ModelKind, ModelSpec};
use crate::graph::Features;

/// Sizes of a [`Block`](super::Block).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockShape {
    /// Rows whose new representation is computed.
    pub outputs: usize,
    /// Rows that are read.
    pub inputs: usize,
    /// Messages that are aggregated.
    pub entries: usize,
    /// Whether they are of neighbours that were drawn.
    pub(crate) sampled: bool,
}

impl BlockShape {
    /// That of a block over so many stored edges: some aggregations add each output's own row.
    pub const fn of(outputs: usize, inputs: usize, edges: usize, aggregation: Aggregation) -> Self {
        let own = if aggregation.has_self() { outputs } else { 0 };
        Self {
            outputs,
            inputs,
            entries: edges + own,
            sampled: false,
        }
    }

    /// Bytes of such a block: column and weight of each entry, forward and transposed.
    pub(crate) const fn bytes(&self) -> u64 {
        16 * self.entries as u64
    }

    /// That of a block in which so many outputs lack their own row, if others have theirs.
    pub(crate) const fn without_own(self, outputs: usize, aggregation: Aggregation) -> Self {
        let own = if aggregation.has_self() { outputs } else { 0 };
        Self {
            entries: self.entries - own,
            ..self
        }
    }

    /// That of a [`Block::sampled`](super::Block::sampled), with so many neighbours drawn.
    pub const fn sampled(
        outputs: usize,
        inputs: usize,
        drawn: usize,
        aggregation: Aggregation,
    ) -> Self {
        Self {
            sampled: true,
            ..Self::of(outputs, inputs, drawn, aggregation)
        }
    }

    /// Whether a layer sums neighbours' rows, if they are dense, before the product that they
    /// share: [`sums_first`].
    pub(crate) const fn sums_first(&self, layer: &LayerSpec) -> bool {
        let shared = matches!(
            layer.kind,
            ModelKind::Gcn | ModelKind::Sage | ModelKind::Gin
        );
        shared && sums_first(self.sampled, layer.inputs, layer.transformed())
    }
}

/// Sizes of an [`Input`](super::Input).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputShape {
    /// Values that are stored.
    pub stored: usize,
    /// Whether these are all values.
    pub dense: bool,
}

impl InputShape {
    /// The features of these nodes.
    pub fn of(features: &Features, nodes: impl Iterator<Item = u32>) -> Self {
        let stored = nodes.map(|node| features.stored_of(node));
        Self::new(stored.sum(), features.is_dense())
    }

    /// So many stored values, which are all where rows are dense.
    pub const fn new(stored: usize, dense: bool) -> Self {
        Self { stored, dense }
    }

    /// Dense rows.
    pub const fn dense(rows: usize, width: usize) -> Self {
        Self {
            stored: rows * width,
            dense: true,
        }
    }
}

/// Arithmetic and memory traffic of a piece of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Add, Mul)]
pub struct Work {
    /// Floating-point operations; a multiply-add is two.
    pub operations: f64,
    /// Bytes read and written, each once per use.
    pub bytes: f64,
    /// Kernels that are started: one for each product, aggregation and pass.
    pub launches: f64,
}

impl Work {
    /// `[rows, inner] × [inner, columns]` of which `stored` values of the left side are there.
    pub fn product(rows: usize, stored: usize, inner: usize, columns: usize) -> Self {
        let values = stored as f64 + (inner * columns) as f64 + (rows * columns) as f64;
        Self::kernel(2.0 * stored as f64 * columns as f64, 4.0 * values)
    }

    /// Aggregation of rows of `width` over `entries` edges into `rows` rows.
    pub fn aggregation(rows: usize, entries: usize, width: usize) -> Self {
        // Of each entry its row, its column's number and its weight are read; of each row the sum
        // is written.
        let values = entries as f64 * (width + 2) as f64 + (rows * width) as f64;
        Self::kernel(2.0 * entries as f64 * width as f64, 4.0 * values)
    }

    /// One pass over `values` numbers that are read and written.
    pub fn pass(values: usize) -> Self {
        // Four bytes read and four written.
        Self::kernel(values as f64, 8.0 * values as f64)
    }

    /// One kernel, which is not started where it has nothing to do.
    fn kernel(operations: f64, bytes: f64) -> Self {
        Self {
            operations,
            bytes,
            launches: if bytes > 0.0 { 1.0 } else { 0.0 },
        }
    }

    /// The sum of so many received values into one's own: two are read and one is written.
    pub fn sum(values: usize) -> Self {
        Self::kernel(values as f64, 12.0 * values as f64)
    }

    /// Forward pass of a layer of a model over a block: its message passing, and the normalisation
    /// behind it.
    pub fn layer(spec: &ModelSpec, layer: usize, block: BlockShape, input: InputShape) -> Self {
        let passing = Self::message_passing(&spec.layer(layer), block, input);
        if !spec.has_norm(layer) {
            return passing;
        }
        passing + Self::norm(block.outputs * spec.widths[layer + 1])
    }

    /// Normalisation of rows of so many values: a pass for the moments, one to apply them.
    pub fn norm(values: usize) -> Self {
        Self::pass(values) * 2.0
    }

    /// Backward pass of what this is the forward pass of: as much again for the gradient of the
    /// parameters and, where the input has a gradient, for that. Features and frozen rows have
    /// none.
    pub fn backward(self, of_input: bool) -> Self {
        self * if of_input { 2.0 } else { 1.0 }
    }

    /// What [`Gnn::transform`](super::Gnn::transform) takes for so many rows of an input.
    pub(crate) fn transform(spec: &LayerSpec, rows: usize, input: InputShape) -> Self {
        let columns = spec.transformed();
        let work =
            Self::product(rows, input.stored, spec.inputs, columns) + Self::pass(input.stored);
        match spec.kind {
            ModelKind::SagePool => work + Self::pass(rows * columns) * 2.0,
            ModelKind::Gcn | ModelKind::Sage | ModelKind::Gat | ModelKind::Gin => work,
        }
    }

    /// What [`Gnn::gather`](super::Gnn::gather) takes, where so many values of the input of the
    /// block's outputs are stored.
    pub fn gather(model: &ModelSpec, layer: usize, block: BlockShape, own: usize) -> Self {
        let spec = &model.layer(layer);
        let sums = Self::aggregation(block.outputs, block.entries, spec.transformed());
        let work = sums + Self::behind(spec, block, own);
        if !model.has_norm(layer) {
            return work;
        }
        work + Self::norm(block.outputs * spec.outputs)
    }

    /// What is left of message passing when rows have been gathered: other products, bias and
    /// activation.
    fn behind(spec: &LayerSpec, block: BlockShape, own: usize) -> Self {
        let (columns, outputs) = (spec.transformed(), block.outputs);
        let first = || Self::product(outputs, own, spec.inputs, spec.outputs);
        let second = || Self::product(outputs, outputs * columns, columns, spec.outputs);
        let activation = Self::pass(outputs * spec.outputs) * 2.0;
        activation
            + match spec.kind {
                ModelKind::Gcn => Self::default(),
                ModelKind::Sage => first(),
                ModelKind::SagePool => first() + second(),
                ModelKind::Gin => second() + Self::pass(outputs * columns) * 2.0,
                // Two scores of each row, and the softmax: three passes over the entries.
                ModelKind::Gat => {
                    Self::pass(block.inputs * columns) * 4.0
                        + Self::pass(block.entries * spec.heads) * 3.0
                }
            }
    }

    /// Forward pass of message passing over a block, with bias and activation.
    pub(crate) fn message_passing(spec: &LayerSpec, block: BlockShape, input: InputShape) -> Self {
        let BlockShape {
            outputs, inputs, ..
        } = block;
        let (stored, inner, columns) = (input.stored, spec.inputs, spec.transformed());
        // As if every row had as many stored values: which rows are the outputs is not known here.
        let own = stored * outputs / inputs.max(1);
        let behind = Self::behind(spec, block, own);
        if input.dense && block.sums_first(spec) {
            return Self::product(outputs, outputs * inner, inner, columns)
                + Self::aggregation(outputs, block.entries, inner)
                + Self::pass(stored)
                + behind;
        }
        Self::transform(spec, inputs, input)
            + Self::aggregation(outputs, block.entries, columns)
            + behind
    }
}
