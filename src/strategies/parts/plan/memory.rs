//! What a pass over the layers holds at its fullest moment.
//!
//! That is on the way back, in the layer where what is still there of the way forward and the
//! gradients of that moment are most together. With i inputs (of a layer whose product crosses the
//! cut: the rows made here), o outputs, widths w and w', rows of width t between product and
//! aggregation and of width g in the aggregation (w where it stands first, else t), a layer keeps
//!
//! ```text
//!   its input               i · w     features as they are stored; of the layer below only where
//!                                     others' rows stand beside its own
//!   the same after dropout  i · w     where there is dropout; above the first layer of the rows
//!                                     made here alone, for others' come as they are to be read
//!   its output              o · w'
//!   sums                    o · w     where the aggregation stands first
//!   with attention          i · t and the entries' scores by head, with dropout three times these
//!   of two products         o · t     between them (`gin`)
//!   its block, both ways    16 bytes an entry; equal blocks are held once
//! ```
//!
//! of 4 bytes a value, and on the way back, when what the layers above kept is gone, gradients of
//! the output, of the rows that are gathered, and of the input; with attention twice the scores.
//!
//! `docs/scale.md` holds it against what was allocated.

use crate::model::{BlockShape, InputShape, ModelKind, ModelSpec};

const VALUE: u64 = 4;

/// Bytes of these features as they lie in memory: values, and their columns where they are sparse.
pub fn stored(features: InputShape) -> u64 {
    let each = if features.dense { VALUE } else { 2 * VALUE };
    features.stored as u64 * each
}

/// A layer of a pass.
#[derive(Clone, Copy)]
pub(super) struct Held {
    /// Sizes of its block.
    pub(super) block: BlockShape,
    /// The rows made here, where their product crosses the cut.
    pub(super) made: Option<usize>,
}

/// Bytes that a pass over these layers holds at most, and those of them that the next one reads
/// again: features and blocks.
pub(super) fn of(
    model: &ModelSpec,
    layers: impl Iterator<Item = Held>,
    features: Option<InputShape>,
) -> (u64, u64) {
    let (mut kept, mut most, mut last) = (0, 0, BlockShape::default());
    let mut graph = 0;
    for (layer, held) in layers.enumerate() {
        if held.block != last {
            graph += held.block.bytes();
        }
        let rows = held.made.unwrap_or(held.block.inputs);
        let constant = features.filter(|_| layer == 0);
        let bytes = of_layer(model, layer, held, last.outputs, constant);
        // Rows of the layer below are read where they lie.
        let there = last.outputs == rows && last.outputs > 0;
        kept += if there { 0 } else { bytes.input } + bytes.kept;
        most = most.max(kept + bytes.gradients);
        kept += bytes.output;
        last = held.block;
    }
    (graph + most.max(kept), graph + features.map_or(0, stored))
}

/// Bytes that a layer holds that is trained alone on rows which are held anyway, with a
/// normalisation, an activation and a linear head on its output where `headed`; those of its block.
pub(crate) fn alone(
    model: &ModelSpec,
    layer: usize,
    block: BlockShape,
    input: InputShape,
    headed: bool,
) -> (u64, u64) {
    let held = Held { block, made: None };
    let bytes = of_layer(model, layer, held, block.inputs, Some(input));
    let above = if headed { 3 * bytes.output } else { 0 };
    let graph = block.bytes();
    (
        graph + bytes.kept + bytes.output + above.max(bytes.gradients),
        graph,
    )
}

/// Bytes of a layer.
struct Layer {
    input: u64,
    /// What is kept for the way back beside it, and beside the output.
    kept: u64,
    output: u64,
    gradients: u64,
}

/// Of a layer above one that made so many rows.
fn of_layer(
    model: &ModelSpec,
    layer: usize,
    Held { block, made }: Held,
    below: usize,
    constant: Option<InputShape>,
) -> Layer {
    let bytes = |rows: usize, width: usize| (rows * width) as u64 * VALUE;
    let (spec, rows) = (model.layer(layer), made.unwrap_or(block.inputs));
    let learned = layer > 0 && constant.is_none();
    let input = match constant {
        Some(rows) => stored(rows),
        None if learned => bytes(rows, spec.inputs),
        None => 0,
    };
    let dropout = if layer == 0 {
        model.input_dropout
    } else {
        model.dropout
    };
    let dropped = match constant {
        _ if dropout == 0.0 => 0,
        // Rows of others come as they are to be read.
        None if learned => bytes(below, spec.inputs),
        _ => input,
    };
    let output = bytes(block.outputs, spec.outputs);
    let between = spec.transformed();
    let dense = learned || constant.is_some_and(|rows| rows.dense);
    let sums_first = made.is_none() && dense && block.sums_first(&spec);
    // What is not learned, as features, has no gradient, nor have its sums.
    let (of_input, gathered) = match (learned, sums_first) {
        (false, true) => (0, 0),
        (false, false) => (0, bytes(block.inputs, between)),
        (true, true) => (input, bytes(block.outputs, spec.inputs)),
        (true, false) => (input, bytes(block.inputs, between)),
    };
    let sums = if sums_first {
        bytes(block.outputs, spec.inputs)
    } else {
        0
    };
    let scores = bytes(block.entries, model.attention_heads());
    let kept = match spec.kind {
        ModelKind::Gcn | ModelKind::Sage | ModelKind::SagePool => sums,
        ModelKind::Gat => {
            let scores = scores * if model.attention_dropout > 0.0 { 3 } else { 1 };
            bytes(block.inputs, between) + scores
        }
        ModelKind::Gin => sums + bytes(block.outputs, between),
    };
    Layer {
        input,
        kept: dropped + kept,
        output,
        gradients: output + gathered + of_input + 2 * scores,
    }
}
