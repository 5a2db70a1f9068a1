//! What the features of a worker's halo look like when they have arrived.

use crate::graph::Features;
use crate::model::InputShape;
use crate::net::{Rows, Way};
use crate::sim::Setting;
use crate::strategies::parts::Wire;

/// Own rows, so many values of them stored, and those of others that came through a wire: of each
/// owner the global numbers of its nodes.
///
/// Of sparse rows zeros are not stored, and a codec can make and remove zeros. What is stored is
/// what modelled compute charges for, and what is held.
pub fn arrived<'a>(
    setting: &Setting,
    reader: usize,
    own: usize,
    others: impl Iterator<Item = (usize, &'a [u32])>,
    wire: &Wire,
) -> InputShape {
    let stored = own
        + arrived_rows(setting, reader, others, wire)
            .into_iter()
            .sum::<usize>();
    InputShape::new(stored, setting.dataset.features.is_dense())
}

/// Values that are stored of each row of others, as they come out of a codec; nothing if nobody
/// wants to know.
pub fn arrived_rows<'a>(
    setting: &Setting,
    reader: usize,
    others: impl Iterator<Item = (usize, &'a [u32])>,
    wire: &Wire,
) -> Vec<usize> {
    if !setting.plans_work {
        return Vec::new();
    }
    let features = &setting.dataset.features;
    let message = |(owner, nodes)| stored(features, nodes, owner, reader, wire);
    others.flat_map(message).collect()
}

/// Values that are stored of each row of one message.
fn stored(
    features: &Features,
    nodes: &[u32],
    owner: usize,
    reader: usize,
    wire: &Wire,
) -> Vec<usize> {
    // Where values are in shards alone, rows count as they were before the codec.
    if features.is_dense() || !features.has_values() || wire.codec.is_lossless() {
        return nodes.iter().map(|&node| features.stored_of(node)).collect();
    }
    let (rows, width) = (features.dense_rows(nodes), features.width());
    let wire = wire.between(owner, reader, Way::Forward);
    let message = wire.codec.encode(&Rows::new(&rows, width), wire.key);
    let decoded = wire.codec.decode(&message, [nodes.len(), width], wire.key);
    // What a codec made it can read.
    let decoded = decoded.unwrap_or_default();
    let stored = |row: &[f32]| row.iter().filter(|value| **value != 0.0).count();
    decoded.chunks(width).map(stored).collect()
}
