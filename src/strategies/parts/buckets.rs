//! Gradients that are summed layer by layer while the layers below still compute.

use std::ops::Range;

use crate::model::ModelSpec;
use crate::net::{PendingCollective, Reduce, TrafficKind};
use crate::sim::{SimError, Worker};

/// The parameters of each layer among all, flat.
pub(crate) struct Buckets {
    layers: Vec<[Range<usize>; 2]>,
}

/// An all-reduce under way for each layer that has its gradient, the last layer's first.
#[derive(Default)]
pub(crate) struct Started {
    layers: Vec<(usize, PendingCollective)>,
}

impl Buckets {
    /// A bucket for each layer of a model.
    pub(crate) fn new(model: &ModelSpec) -> Self {
        let layers = 0..model.layers();
        Self {
            layers: layers.map(|layer| model.parameter_ranges(layer)).collect(),
        }
    }

    /// Starts to sum the gradients of all layers from `layer` upwards that are not under way yet.
    ///
    /// # Errors
    /// If communication fails.
    pub(crate) fn start(
        &self,
        worker: &mut Worker,
        layer: usize,
        gradient: &[f32],
        started: &mut Started,
    ) -> Result<(), SimError> {
        for layer in (layer..self.layers.len() - started.layers.len()).rev() {
            let parts = self.layers[layer].iter();
            let bucket: Vec<f32> = parts
                .flat_map(|range| &gradient[range.clone()])
                .copied()
                .collect();
            let kind = TrafficKind::ParameterGradient;
            let pending = worker.start_all_reduce(bucket, Reduce::Sum, kind)?;
            started.layers.push((layer, pending));
        }
        Ok(())
    }

    /// Waits for all sums and puts them in the place of this worker's gradient.
    ///
    /// # Errors
    /// If communication fails.
    pub(crate) fn finish(
        &self,
        worker: &mut Worker,
        gradient: &mut [f32],
        started: Started,
    ) -> Result<(), SimError> {
        for (layer, pending) in started.layers {
            let sum = worker.finish_collective(pending)?;
            let [weights, norm] = &self.layers[layer];
            let (first, second) = sum.split_at(weights.len());
            gradient[weights.clone()].copy_from_slice(first);
            gradient[norm.clone()].copy_from_slice(second);
        }
        Ok(())
    }
}
