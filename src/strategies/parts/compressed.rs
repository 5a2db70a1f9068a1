//! The exchange of `fixed` and `varco`: columns of boundary rows, at a ratio that may change with the epoch.

use std::sync::Arc;

use super::{EpochExchange, Wire};
use crate::net::{CodecKey, RandomColumns};
use crate::strategies::full::plain_wire;

/// What travels in one epoch at a compression `ratio`.
///
/// The input of every layer but the last is compressed, the raw features among them; the last layer's never is. The gradient of a
/// compressed row carries exactly the columns that were sent (VARCO's code). With `cache_features` the features are sent once, whole.
#[must_use]
pub fn compressed_exchange(
    layers: usize,
    ratio: f64,
    rescale: bool,
    cache_features: bool,
    seed: u64,
    epoch: usize,
) -> EpochExchange {
    let wires = (0..layers)
        .map(|layer| {
            if layer == 0 && cache_features {
                return (epoch == 0).then(plain_wire);
            }
            if layer + 1 == layers {
                return Some(plain_wire());
            }
            #[allow(clippy::cast_possible_truncation)] // layers are few
            let key = CodecKey {
                seed,
                layer: layer as u32,
                round: epoch as u64,
            };
            Some(Wire {
                codec: Arc::new(RandomColumns { ratio, rescale }),
                key,
            })
        })
        .collect();
    EpochExchange {
        wires,
        compression_ratio: Some(ratio),
    }
}
