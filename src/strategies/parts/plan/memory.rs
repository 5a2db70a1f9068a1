//! What a pass over the layers holds at its fullest moment.
//!
//! That is when the way back begins: all that it needs of the way forward is there, and the
//! gradients of the widest layer come on top. With i inputs, o outputs, widths w and w', and rows
//! of width d between product and aggregation, a layer keeps
//!
//! ```text
//!   its input                    i · w      features as they are stored; of the layer below only
//!                                           where others' rows stand beside its own
//!   the same after dropout       i · w      where there is dropout
//!   its output                   o · w'
//!   with attention               heads      for each entry of the block, and its product and
//!                                           output once more
//!   of two products (`gin`)      o · h      between them
//!   its block, both directions   16 bytes an entry; equal blocks are held once
//! ```
//!
//! of 4 bytes a value. Gradients take as much as its input, product and output together; with
//! attention, or where a layer adds own rows to what is gathered, as much as three outputs. What a
//! product makes on its way to the sum over neighbours is let go.
//!
//! `docs/scale.md` holds it against what runs took.

use crate::model::{BlockShape, InputShape, ModelKind, ModelSpec};

/// Column and weight of an entry, forward and transposed.
const ENTRY: u64 = 16;
const VALUE: u64 = 4;

/// Bytes of these features as they lie in memory: values, and their columns where they are sparse.
pub fn stored(features: InputShape) -> u64 {
    let each = if features.dense { VALUE } else { 2 * VALUE };
    features.stored as u64 * each
}

/// Bytes that a pass over these blocks holds.
pub fn of(
    model: &ModelSpec,
    blocks: impl Iterator<Item = BlockShape>,
    features: Option<InputShape>,
) -> u64 {
    let (mut kept, mut most, mut last) = (0, 0, BlockShape::default());
    for (layer, block) in blocks.enumerate() {
        if block != last {
            kept += block.entries as u64 * ENTRY;
        }
        let layer = of_layer(model, layer, block, features);
        // Rows of the layer below are read where they lie.
        let there = last.outputs == block.inputs && last.outputs > 0;
        kept += if there { 0 } else { layer.input } + layer.kept;
        most = most.max(layer.gradients);
        last = block;
    }
    kept + most
}

/// Bytes of a layer.
struct Layer {
    input: u64,
    /// What is kept for the way back beside it.
    kept: u64,
    gradients: u64,
}

fn of_layer(
    model: &ModelSpec,
    layer: usize,
    block: BlockShape,
    features: Option<InputShape>,
) -> Layer {
    let bytes = |rows: usize, width: usize| (rows * width) as u64 * VALUE;
    let (input, dropout) = if layer == 0 {
        (features.map_or(0, stored), model.input_dropout)
    } else {
        (bytes(block.inputs, model.widths[layer]), model.dropout)
    };
    let dropped = if dropout > 0.0 { input } else { 0 };
    let product = bytes(block.inputs, model.layer(layer).transformed());
    let output = bytes(block.outputs, model.widths[layer + 1]);
    let attention = match model.attention_heads() {
        0 => 0,
        heads => bytes(block.entries, heads) + product + output,
    };
    let between = match model.kind {
        ModelKind::Gin => bytes(block.outputs, model.hidden()),
        _ => 0,
    };
    let sums = matches!(
        model.kind,
        ModelKind::Sage | ModelKind::SagePool | ModelKind::Gat
    );
    // Features have no gradient.
    let of_input = if layer == 0 { 0 } else { input };
    Layer {
        input,
        kept: dropped + output + attention + between,
        gradients: of_input + product + output * if sums { 3 } else { 1 },
    }
}
