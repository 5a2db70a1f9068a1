//! What the features of a worker's halo look like when they have arrived.

use std::sync::Arc;

use crate::graph::Features;
use crate::model::InputShape;
use crate::net::{Rows, Way};
use crate::sim::Setting;
use crate::strategies::parts::Wire;

/// Feature rows of others, as they come out of a codec: of sparse rows, zeros are not stored, and a
/// codec can make and remove zeros. What is stored is what modelled compute charges for, and what
/// is held.
pub struct Arrivals {
    setting: Arc<Setting>,
    /// Whether anybody wants to know.
    counted: bool,
}

impl Arrivals {
    /// Those of a setting.
    pub fn new(setting: Arc<Setting>) -> Self {
        let counted = setting.plans_work;
        Self { setting, counted }
    }

    /// Own rows, so many values of them stored, and those of others that came through a wire: of
    /// each owner the global numbers of its nodes.
    pub fn input<'a>(
        &self,
        reader: usize,
        own: usize,
        others: impl Iterator<Item = (usize, &'a [u32])>,
        wire: &Wire,
    ) -> InputShape {
        let stored = own + self.rows(reader, others, wire).into_iter().sum::<usize>();
        InputShape::new(stored, self.setting.dataset.features.is_dense())
    }

    /// Values that are stored of each row of others; nothing if nobody wants to know.
    pub fn rows<'a>(
        &self,
        reader: usize,
        others: impl Iterator<Item = (usize, &'a [u32])>,
        wire: &Wire,
    ) -> Vec<usize> {
        if !self.counted {
            return Vec::new();
        }
        let features = &self.setting.dataset.features;
        let message = |(owner, nodes)| stored(features, nodes, owner, reader, wire);
        others.flat_map(message).collect()
    }
}

/// Values that are stored of each row of one message.
fn stored(
    features: &Features,
    nodes: &[u32],
    owner: usize,
    reader: usize,
    wire: &Wire,
) -> Vec<usize> {
    if features.is_dense() || wire.codec.is_lossless() {
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
