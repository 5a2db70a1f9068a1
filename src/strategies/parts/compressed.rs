//! The exchange of `fixed` and `varco`: boundary rows through a codec, at a ratio that may change with the epoch.

use std::sync::Arc;

use super::{CodecChoice, EpochExchange, Wire};
use crate::net::{Codec, CodecKey, DifferenceMemory, Gauge, Measured};
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
}

/// What one worker's codecs keep from epoch to epoch.
#[derive(Debug, Default)]
pub struct CodecState {
    /// What difference coding remembers.
    memory: Arc<DifferenceMemory>,
    /// Where compression errors are measured; nowhere if they are not.
    gauge: Option<Arc<Gauge>>,
}

impl CodecState {
    /// A fresh state, with a gauge or without.
    #[must_use]
    pub fn new(measures: bool) -> Self {
        Self {
            gauge: measures.then(Arc::default),
            ..Self::default()
        }
    }
}

impl Compression {
    /// What travels in one epoch at a compression `ratio`.
    ///
    /// The input of every layer but the last is compressed, the raw features among them; the last layer's never is. The gradient of a
    /// compressed row goes through the same codec; where its entries are drawn, those are exactly the ones that were sent (VARCO's code).
    #[must_use]
    pub fn exchange(
        &self,
        layers: usize,
        ratio: f64,
        seed: u64,
        epoch: usize,
        state: &CodecState,
    ) -> EpochExchange {
        let codec = measured(
            self.codec.at(ratio, self.rescale, &state.memory),
            state.gauge.as_ref(),
        );
        let wires = (0..layers)
            .map(|layer| {
                if layer == 0 && self.cache_features {
                    return (epoch == 0).then(plain_wire);
                }
                if layer + 1 == layers {
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
