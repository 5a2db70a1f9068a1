//! What an evaluation holds where each worker evaluates its own nodes.

use crate::model::{BlockShape, ModelKind};
use crate::net::f32_bytes;
use crate::sim::{Memory, Setting};

/// Bytes that worker `rank` holds at most while all evaluate a model, each its own nodes, where its
/// plan says this of what it holds: what is there between passes, its block, and of the layer where
/// that is most, with i inputs, h of them from others, o outputs, and widths w and w',
///
/// ```text
///   while rows are put together   own rows o · w, those that came h · w, both i · w
///   while it computes             i · w, what stands between product and sums, o · w', and as
///                                 many rows as came, h · w, that it sent: they stay until they
///                                 have left
/// ```
///
/// of 4 bytes a value. A graph that is not trained on is divided among nobody, so that nothing is
/// known of what it takes.
pub(crate) fn held_in_evaluation(setting: &Setting, rank: usize, memory: Memory) -> u64 {
    if setting.unseen.is_some() {
        return setting.holds(rank, memory);
    }
    let (part, model) = (&setting.counts.parts[rank], &setting.model);
    let (own, inputs) = (part.owned, part.owned + part.halo);
    let edges = part.internal_edges + part.cut_edges;
    let block = BlockShape::of(own, inputs, edges, model.aggregation());
    let bytes = |rows: usize, width: usize| f32_bytes(rows * width).0;
    let of_layer = |layer: usize| {
        let spec = model.layer(layer);
        let dense = layer > 0 || setting.counts.dense;
        let [own_rows, others, all] = if layer == 0 {
            // Own features are there in any case.
            let values = [0, part.halo_values, part.own_values + part.halo_values];
            values.map(|values| setting.bytes_of_values(values))
        } else {
            [own, part.halo, inputs].map(|rows| bytes(rows, spec.inputs))
        };
        let between = if dense && block.sums_first(&spec) {
            bytes(own, spec.inputs)
        } else {
            bytes(inputs, spec.transformed())
        };
        let inner = match spec.kind {
            ModelKind::Gin => bytes(own, spec.inner),
            _ => bytes(block.entries, spec.attention_heads()),
        };
        let computing = all + between + inner + bytes(own, spec.outputs) + others;
        computing.max(own_rows + others + all)
    };
    let fullest = (0..model.layers()).map(of_layer).max().unwrap_or(0);
    // Blocks of a batch are gone with it.
    let stays = match setting.batches {
        None => memory.stays,
        Some(_) => 0,
    };
    setting.holds_beside_a_pass(rank, memory) + stays + block.bytes() + fullest
}
