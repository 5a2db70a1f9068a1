//! Two codecs in a row: one says which entries travel, the other how.

use std::sync::Arc;

use crate::net::codec::check_length;
use crate::net::selection::{join, split};
use crate::net::{Bytes, Codec, CodecKey, NetError, RelativeError, Rows, Selection};

/// Keeps the entries that `first` chooses, and sends their values, as rows of `first.kept(n)`
/// floats, through `second`. The draws of the two are independent.
///
/// With errors e₁ and e₂ of the two, the first not rescaled: what is dropped and what is coarse lie
/// in different entries, so the error is e₁ + e₂ · (the share of ‖x‖² that is kept), at most
/// max(e₂, e₁ + (1 − e₁) e₂) where the share is at least 1 − e₁. Rescaled by f = n/k: e₁ + f e₂ if
/// the second is unbiased, and at most (√e₁ + √(f e₂))² otherwise (both derived).
///
/// Encoded: the index of `first`, then what `second` makes of the values.
#[derive(Clone)]
pub struct Compose {
    /// Which entries travel.
    pub first: Arc<dyn Selection>,
    /// How their values do.
    pub second: Arc<dyn Codec>,
}

impl Compose {
    /// Bytes of the index; none where everything is kept.
    fn index_bytes(&self, rows: usize, width: usize) -> usize {
        if self.first.kept(width) == width {
            return 0;
        }
        self.first.index_bytes(rows, width)
    }
}

impl Codec for Compose {
    fn name(&self) -> String {
        format!("{} · {}", self.first.label(), self.second.name())
    }

    fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes {
        let index = Bytes(self.index_bytes(rows, width) as u64);
        index + self.second.encoded_bytes(rows, self.first.kept(width))
    }

    fn encode(&self, rows: &Rows<'_>, key: CodecKey) -> Vec<u8> {
        let kept = self.first.kept(rows.width());
        if kept == rows.width() {
            return self.second.encode(rows, key.inner());
        }
        let (mut bytes, values) = split(self.first.as_ref(), rows, key);
        bytes.append(&mut self.second.encode(&Rows::new(&values, kept), key.inner()));
        bytes
    }

    fn decode(&self, bytes: &[u8], shape: [usize; 2], key: CodecKey) -> Result<Vec<f32>, NetError> {
        check_length(self, bytes, shape, key)?;
        let [rows, width] = shape;
        let kept = self.first.kept(width);
        let (index, values) = bytes.split_at(self.index_bytes(rows, width));
        // With the inner key where everything is kept, too: one rule for both ends.
        let values = self.second.decode(values, [rows, kept], key.inner())?;
        if kept == width {
            return Ok(values);
        }
        let values = values.into_iter();
        join(self.first.as_ref(), index, values, shape, key)
    }

    fn is_lossless(&self) -> bool {
        self.first.is_whole() && self.second.is_lossless()
    }

    fn is_biased(&self) -> bool {
        !self.first.is_unbiased() || self.second.is_biased()
    }

    fn expected_error(&self, width: usize) -> RelativeError {
        let kept = self.first.kept(width);
        let (first, second) = (self.first.error(width), self.second.expected_error(kept));
        let (e1, e2) = (first.value(), second.value());
        if kept == width {
            return second;
        }
        if e2 == 0.0 {
            return first;
        }
        let factor = f64::from(self.first.factor(width));
        let plain = factor == 1.0;
        let error = match (plain, self.second.is_biased()) {
            // The three cases of the derivation above; the share kept may be all, where e₂ is the
            // larger.
            (true, _) => e2.max(e1 + (1.0 - e1) * e2),
            (false, false) => e1 + factor * e2,
            (false, true) => (e1.sqrt() + (factor * e2).sqrt()).powi(2),
        };
        RelativeError::AtMost(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Bits, Identity, Quantise, RandomColumns, TopK};

    const KEY: CodecKey = CodecKey::new(4, 1, 2);

    #[test]
    fn its_bytes_are_the_index_and_what_the_second_makes_of_the_kept_values() {
        let second = Arc::new(Quantise { bits: Bits::Four });
        let columns = Compose {
            first: Arc::new(RandomColumns {
                ratio: 4.0,
                rescale: false,
            }),
            second: second.clone(),
        };
        // 16 of 64 columns at half a byte, and 8 bytes a row for the grid.
        assert_eq!(columns.encoded_bytes(3, 64), Bytes(3 * (8 + 8)));
        let top = Compose {
            first: Arc::new(TopK::new(4.0)),
            second,
        };
        // 14 values and a map of 64 bits fit in a quarter of 64 floats.
        assert_eq!(top.encoded_bytes(3, 64), Bytes(3 * 8 + 3 * 8 + 3 * 14 / 2));
    }

    #[test]
    fn with_identity_it_is_the_selection_alone() {
        let values: Vec<f32> = (0_u8..128).map(f32::from).collect();
        for first in [
            Arc::new(TopK::new(3.0)) as Arc<dyn Selection>,
            Arc::new(RandomColumns {
                ratio: 3.0,
                rescale: true,
            }),
        ] {
            let second = Arc::new(Identity);
            let composed = Compose { first, second };
            let bytes = composed.encode(&Rows::new(&values, 32), KEY);
            let alone = composed.decode(&bytes, [4, 32], KEY).unwrap();
            let expected = if composed.name().starts_with("top") {
                let codec = TopK::new(3.0);
                codec.decode(&bytes, [4, 32], KEY)
            } else {
                let codec = RandomColumns {
                    ratio: 3.0,
                    rescale: true,
                };
                codec.decode(&bytes, [4, 32], KEY)
            };
            assert_eq!(alone, expected.unwrap());
        }
    }
}
