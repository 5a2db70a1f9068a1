//! Traffic of the shared parts, stated in advance.

use super::{BoundaryShare, EpochExchange, Wire};
use crate::graph::BoundaryPlan;
use crate::model::ModelSpec;
use crate::net::{AllReduceKind, Bytes, Lane, Traffic, TrafficKind, Way, all_reduce_traffic};

/// Messages of one epoch of [`partition_parallel`](super::partition_parallel): what `exchange` says travels, and parameter gradients, by layer with `overlap`. In mini-batches it
/// samples as the training will, for all workers.
#[must_use]
pub fn exchange_traffic(
    kind: AllReduceKind,
    boundary: &BoundaryPlan,
    model: &ModelSpec,
    epoch: usize,
    exchange: &EpochExchange,
    overlap: bool,
) -> Traffic {
    let steps = boundary.steps().count();
    let mut traffic = Traffic::new();
    if boundary.batches.is_none() {
        let share = |layer: usize, rows: usize| match exchange.share {
            Some(share) if layer > 0 || !exchange.keeps_features => share.of(rows),
            _ => rows,
        };
        let whole = rows_traffic(boundary, model, &exchange.wires, share);
        traffic.merge(&whole);
        if let Some(share) = exchange.share {
            for (owner, reader, rows) in pairs(boundary) {
                if share.of(rows) > 0 {
                    let ids = BoundaryShare::id_bytes(share.of(rows));
                    traffic.add(lane(0, owner, reader, TrafficKind::Sample), ids);
                }
            }
        }
    } else {
        for step in 0..steps {
            let requests = boundary.requests(epoch, step, exchange.keeps_features);
            for (layer, wire) in exchange.wires.iter().enumerate() {
                let Some(wire) = wire else { continue };
                for (reader, rows) in requests.rows[layer].iter().enumerate() {
                    for (owner, &rows) in rows.iter() {
                        let ids = Bytes(4 * rows as u64);
                        traffic.add(lane(layer, reader, owner, TrafficKind::Sample), ids);
                        let ends = (owner, reader);
                        add_rows(&mut traffic, wire, layer, ends, rows, model.widths[layer]);
                    }
                }
            }
        }
    }
    if let Some(sums) = &exchange.sums {
        let sum = all_reduce_traffic(kind, boundary.workers(), sums.len(), TrafficKind::Control);
        traffic.merge(&sum);
    }
    let gradients = model_gradient_traffic(kind, boundary.workers(), model, overlap);
    traffic.merge(&gradients.times(steps));
    traffic
}

/// Rows of a layer's input from their owner to a reader, and the gradient back.
fn add_rows(
    traffic: &mut Traffic,
    wire: &Wire,
    layer: usize,
    (owner, reader): (usize, usize),
    rows: usize,
    width: usize,
) {
    let bytes = |way| wire.bytes((owner, reader, way), rows, width);
    let forward = bytes(Way::Forward);
    if layer == 0 {
        traffic.add(lane(layer, owner, reader, TrafficKind::Feature), forward);
    } else {
        let there = lane(layer, owner, reader, TrafficKind::Activation);
        traffic.add(there, forward);
        let back = lane(layer, reader, owner, TrafficKind::ActivationGradient);
        traffic.add(back, bytes(Way::Back));
    }
}

/// Where a message belongs.
#[must_use]
#[allow(clippy::cast_possible_truncation)] // layers and ranks are few
pub const fn lane(layer: usize, from: usize, to: usize, kind: TrafficKind) -> Lane {
    Lane {
        layer: layer as u32,
        from: from as u32,
        to: to as u32,
        kind,
    }
}

/// Messages of one epoch's halo exchange with all training nodes at once: `wires[l]` says how the input of layer `l` travels, if it does. Every layer but
/// the first sends gradients back the same way.
#[must_use]
pub fn halo_traffic(boundary: &BoundaryPlan, model: &ModelSpec, wires: &[Option<Wire>]) -> Traffic {
    rows_traffic(boundary, model, wires, |_, rows| rows)
}

/// Owner, reader and number of rows of every ordered pair of workers with a boundary.
pub fn pairs(boundary: &BoundaryPlan) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
    let readers = boundary.parts.iter().enumerate();
    readers.flat_map(|(reader, part)| {
        let owners = part.receives.iter();
        owners.map(move |(owner, range)| (owner, reader, range.len()))
    })
}

/// As [`halo_traffic`], of what `crosses` at a layer of a pair's boundary rows.
fn rows_traffic(
    boundary: &BoundaryPlan,
    model: &ModelSpec,
    wires: &[Option<Wire>],
    crosses: impl Fn(usize, usize) -> usize,
) -> Traffic {
    let mut traffic = Traffic::new();
    for (layer, wire) in wires.iter().enumerate() {
        let Some(wire) = wire else { continue };
        for (owner, reader, rows) in pairs(boundary) {
            let rows = crosses(layer, rows);
            if rows > 0 {
                let width = model.widths[layer];
                add_rows(&mut traffic, wire, layer, (owner, reader), rows, width);
            }
        }
    }
    traffic
}

/// Messages of one all-reduce of a measured compression error: what was lost and what there was.
#[must_use]
pub fn error_traffic(kind: AllReduceKind, workers: usize) -> Traffic {
    all_reduce_traffic(kind, workers, 2, TrafficKind::Control)
}

/// Messages of the sum of a model's gradients, by layer if that overlaps with computing.
#[must_use]
pub fn model_gradient_traffic(
    kind: AllReduceKind,
    workers: usize,
    model: &ModelSpec,
    overlap: bool,
) -> Traffic {
    if !overlap {
        return gradient_traffic(kind, workers, model.parameters());
    }
    let mut traffic = Traffic::new();
    for layer in 0..model.layers() {
        traffic.merge(&gradient_traffic(
            kind,
            workers,
            model.layer_parameters(layer),
        ));
    }
    traffic
}

/// Messages of one all-reduce of `parameters` gradients.
#[must_use]
pub fn gradient_traffic(kind: AllReduceKind, workers: usize, parameters: usize) -> Traffic {
    all_reduce_traffic(kind, workers, parameters, TrafficKind::ParameterGradient)
}
