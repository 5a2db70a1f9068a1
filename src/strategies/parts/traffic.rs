//! Traffic of the shared parts, stated in advance.

use super::Wire;
use crate::graph::BoundaryPlan;
use crate::model::ModelSpec;
use crate::net::{AllReduceKind, Lane, Traffic, TrafficKind, all_reduce_traffic};

/// Messages of one epoch's halo exchange: `wires[l]` says how the input of layer `l` travels, if it does. Every layer but
/// the first sends gradients back the same way.
#[must_use]
#[allow(clippy::cast_possible_truncation)] // layers and ranks are few
pub fn halo_traffic(boundary: &BoundaryPlan, model: &ModelSpec, wires: &[Option<Wire>]) -> Traffic {
    let mut traffic = Traffic::new();
    let workers = boundary.workers();
    for (layer, wire) in wires.iter().enumerate() {
        let Some(wire) = wire else { continue };
        for from in 0..workers {
            for to in 0..workers {
                let rows = boundary.rows(from, to);
                if rows == 0 {
                    continue;
                }
                let bytes = wire.codec.encoded_bytes(rows, model.widths[layer]);
                let lane = |from: usize, to: usize, kind| Lane {
                    layer: layer as u32,
                    from: from as u32,
                    to: to as u32,
                    kind,
                };
                if layer == 0 {
                    traffic.add(lane(from, to, TrafficKind::Feature), bytes);
                } else {
                    traffic.add(lane(from, to, TrafficKind::Activation), bytes);
                    traffic.add(lane(to, from, TrafficKind::ActivationGradient), bytes);
                }
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
