//! The exchange of `fixed` and `varco`: boundary rows through a codec, at a ratio that may change with the epoch.

use std::sync::Arc;

use super::{CodecChoice, EpochExchange, Wire};
use crate::net::{Codec, CodecKey, DifferenceMemory, Gauge, Measured};
use crate::strategies::Context;
use crate::strategies::full::plain_wire;

/// How boundary rows are compressed, at whatever ratio.
#[derive(Clone, Debug)]
pub struct Compression {
    /// Through which codec.
    pub codec: CodecChoice,
    /// Whether random choices are rescaled, and so unbiased.
    pub rescale: bool,
    /// Whether the features are sent once, whole, instead of compressed in every epoch.
    pub cache_features: bool,
    /// Whether what is lost is measured, for the tables.
    pub measure_error: bool,
}

/// What one worker's codecs keep from epoch to epoch.
#[derive(Debug, Default)]
pub struct CodecState {
    /// What difference coding remembers.
    memory: Arc<DifferenceMemory>,
    /// Where compression errors are measured; nowhere if they are not.
    gauge: Option<Arc<Gauge>>,
    /// Whether all workers need the sum of these errors.
    shares_error: bool,
}

impl Compression {
    /// A fresh state; `shares_error` if what is sent next depends on the error of all workers.
    #[must_use]
    pub fn state(&self, shares_error: bool) -> CodecState {
        CodecState {
            gauge: (self.measure_error || shares_error).then(Arc::default),
            shares_error,
            ..CodecState::default()
        }
    }

    /// What travels in one epoch at a compression `ratio`.
    ///
    /// The input of every layer but the last is compressed, the raw features among them; the last layer's never is. The gradient of a
    /// compressed row goes through the same codec; where its entries are drawn, those are exactly the ones that were sent (VARCO's code).
    #[must_use]
    pub fn exchange(
        &self,
        context: &Context,
        ratio: f64,
        seed: u64,
        epoch: usize,
        state: &CodecState,
    ) -> EpochExchange {
        let codec = measured(
            self.codec.at(ratio, self.rescale, &state.memory),
            state.gauge.as_ref(),
        );
        let wires = (0..context.layers)
            .map(|layer| {
                if layer == 0 && self.cache_features {
                    // In mini-batches, features that were not needed before come in any epoch.
                    return (epoch == 0 || context.mini_batch).then(plain_wire);
                }
                if layer + 1 == context.layers {
                    return Some(plain_wire());
                }
                #[allow(clippy::cast_possible_truncation)] // layers are few
                let key = CodecKey::new(seed, layer as u32, epoch as u64);
                let codec = Arc::clone(&codec);
                Some(Wire { codec, key })
            })
            .collect();
        EpochExchange {
            wires,
            compression_ratio: Some(self.codec.ratio(ratio)),
            gauge: state.gauge.clone(),
            shares_error: state.shares_error,
            keeps_features: self.cache_features,
            ..EpochExchange::default()
        }
    }
}

/// Nothing is to be measured where nothing is lost.
fn measured(codec: Arc<dyn Codec>, gauge: Option<&Arc<Gauge>>) -> Arc<dyn Codec> {
    match gauge {
        Some(gauge) if !codec.is_lossless() => Arc::new(Measured {
            codec,
            gauge: Arc::clone(gauge),
        }),
        _ => codec,
    }
}
