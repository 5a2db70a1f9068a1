//! Difference coding: only what the receiver does not know yet is compressed.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::net::memory::CodecMemory;
use crate::net::{Bytes, Codec, CodecKey, CodecLane, NetError, RelativeError, Rows, Way};

/// What the messages of one worker have told so far, by layer, lane and end.
///
/// A worker has one for all its messages in a run, which codecs of different ratios may share. It
/// holds one copy of all rows that the worker sends and receives: as many floats as one
/// uncompressed exchange.
#[derive(Debug, Default)]
pub struct DifferenceMemory(CodecMemory<BTreeMap<Place, Vec<f32>>>);

/// The layer, the lane and the end of what is remembered.
type Place = (u32, CodecLane, End);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Sender,
    Receiver,
}

/// What one end of a lane holds of the other's rows.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldRows {
    /// Whose rows: their model layer, their lane, and whether this worker sends them.
    pub place: (u32, CodecLane, bool),
    /// Their values, row after row.
    pub values: Vec<f32>,
}

impl DifferenceMemory {
    /// All that is remembered, for [`Self::remember`].
    pub fn held_rows(&self) -> Vec<HeldRows> {
        let rows = |(&(layer, lane, end), values): (&Place, &Vec<f32>)| HeldRows {
            place: (layer, lane, end == End::Sender),
            values: values.clone(),
        };
        self.0.lock().iter().map(rows).collect()
    }

    /// Remembers this and nothing else.
    pub fn remember(&self, rows: Vec<HeldRows>) {
        let entry = |HeldRows { place, values }| {
            let (layer, lane, sends) = place;
            let end = if sends { End::Sender } else { End::Receiver };
            ((layer, lane, end), values)
        };
        *self.0.lock() = rows.into_iter().map(entry).collect();
    }

    /// What the receiver of a message holds, zeros before the first; none for a message without a
    /// lane.
    fn held(&self, key: CodecKey, end: End, values: usize) -> Option<(Place, Vec<f32>)> {
        let place = (key.layer, key.lane?, end);
        // Copied, so that the lock is not held while a codec works; a lane has one message at a
        // time.
        let held = self.0.lock().get(&place).cloned();
        // Rows of another number or width are others, on both ends.
        let held = held.filter(|held| held.len() == values);
        Some((place, held.unwrap_or_else(|| vec![0.0; values])))
    }
}

/// Sends C(x − x̂) through another codec C, where x̂ is what the receiver holds; both ends then
/// take x̂ + C(x − x̂) for x̂, which is what is decoded. (For activations: Wang et al.,
/// *Fine-tuning Language Models over Slow Networks using Activation Quantization with Guarantees*,
/// `NeurIPS` 2022; for gradients: EF21, Richtárik, Sokolov and Fatkhullin, `NeurIPS` 2021.)
///
/// If C loses a share e < 1 of ‖·‖² and x stands still, the error falls as eᵗ; entries that
/// [`TopK`](super::TopK) passes over wait until their difference is among the largest. A codec with
/// e > 1, such as a rescaled one, makes it grow without bound. Biased if and only if C is; never
/// lossless, as x̂ + (x − x̂) is rounded.
///
/// The round of a lane's messages must be encoded and decoded once each and in order, which a
/// [`Communicator`](crate::net::Communicator) sees to. A message whose key has no lane is sent
/// through C alone.
///
/// Encoded: as C does, to the byte.
#[derive(Clone)]
pub struct Difference {
    /// C.
    pub codec: Arc<dyn Codec>,
    /// This worker's.
    pub memory: Arc<DifferenceMemory>,
}

fn sum(held: &[f32], change: &[f32]) -> Vec<f32> {
    held.iter().zip(change).map(|(a, b)| a + b).collect()
}

impl Codec for Difference {
    fn name(&self) -> String {
        format!("difference({})", self.codec.name())
    }

    fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes {
        self.codec.encoded_bytes(rows, width)
    }

    /// What the receiver holds, on both ends.
    fn remembers(&self, way: Way) -> [usize; 2] {
        self.codec.remembers(way).map(|copies| copies + 1)
    }

    fn encode(&self, rows: &Rows<'_>, key: CodecKey) -> Vec<u8> {
        let values = rows.values();
        let Some((place, held)) = self.memory.held(key, End::Sender, values.len()) else {
            return self.codec.encode(rows, key);
        };
        let news: Vec<f32> = values.iter().zip(&held).map(|(x, held)| x - held).collect();
        let bytes = self.codec.encode(&Rows::new(&news, rows.width()), key);
        // What a codec makes, it can read.
        // What the receiver will decode, not the rows: both ends must hold the same bits.
        if let Ok(change) = self.codec.decode(&bytes, [rows.rows(), rows.width()], key) {
            self.memory.0.lock().insert(place, sum(&held, &change));
        }
        bytes
    }

    fn decode(&self, bytes: &[u8], shape: [usize; 2], key: CodecKey) -> Result<Vec<f32>, NetError> {
        let change = self.codec.decode(bytes, shape, key)?;
        let Some((place, held)) = self.memory.held(key, End::Receiver, change.len()) else {
            return Ok(change);
        };
        let decoded = sum(&held, &change);
        self.memory.0.lock().insert(place, decoded.clone());
        Ok(decoded)
    }

    fn is_biased(&self) -> bool {
        self.codec.is_biased()
    }

    /// Without a bound in terms of the row: it depends on what was sent before.
    fn expected_error(&self, _width: usize) -> RelativeError {
        RelativeError::AtMost(f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Bits, Quantise, TopK, Way};

    fn coder(codec: Arc<dyn Codec>) -> Difference {
        Difference {
            codec,
            memory: Arc::default(),
        }
    }

    fn key(round: u64) -> CodecKey {
        CodecKey::new(5, 1, round).between(0, 1, Way::Forward)
    }

    fn squares(values: impl Iterator<Item = f32>) -> f64 {
        values.map(|value| f64::from(value).powi(2)).sum()
    }

    #[test]
    fn what_stands_still_arrives_in_the_end() {
        let rows: Vec<f32> = (0_u8..64).map(|i| (f32::from(i) * 0.7).sin()).collect();
        for codec in [
            Arc::new(TopK::new(8.0)) as Arc<dyn Codec>,
            Arc::new(Quantise { bits: Bits::One }),
        ] {
            let (sender, receiver) = (coder(codec.clone()), coder(codec));
            let mut before = f64::INFINITY;
            for round in 0..40 {
                let bytes = sender.encode(&Rows::new(&rows, 16), key(round));
                assert_eq!(bytes.len() as u64, sender.encoded_bytes(4, 16).0);
                let decoded = receiver.decode(&bytes, [4, 16], key(round)).unwrap();
                let left = squares(decoded.iter().zip(&rows).map(|(a, b)| a - b));
                // Each round keeps at most the share e of the difference, by the codec's bound.
                let bound = sender.codec.expected_error(16).value() * before;
                assert!(
                    // Rounding aside.
                    left <= bound * 1.0001 + 1e-10,
                    "round {round}: {left} > {bound}"
                );
                before = left;
            }
            assert!(before < 1e-6 * squares(rows.iter().copied()), "{before}");
        }
    }

    #[test]
    fn lanes_ways_and_layers_are_remembered_apart_and_may_share_one_memory() {
        let codec = coder(Arc::new(TopK::new(2.0)));
        let lanes = [
            key(0),
            CodecKey { layer: 2, ..key(0) },
            CodecKey::new(5, 1, 0).between(1, 0, Way::Forward),
            CodecKey::new(5, 1, 0).between(0, 1, Way::Back),
        ];
        for round in 0..6 {
            for (number, lane) in (0_u8..).zip(lanes) {
                let key = CodecKey { round, ..lane };
                let rows = [f32::from(number) + 1.0; 8];
                let bytes = codec.encode(&Rows::new(&rows, 8), key);
                let decoded = codec.decode(&bytes, [1, 8], key).unwrap();
                if round == 5 {
                    assert_eq!(decoded, rows, "lane {number}");
                }
            }
        }
    }

    #[test]
    fn without_a_lane_nothing_is_remembered_and_a_corrupt_message_changes_nothing() {
        let plain = TopK::new(4.0);
        let codec = coder(Arc::new(plain));
        let rows: Vec<f32> = (0_u8..16).map(f32::from).collect();
        let rows = Rows::new(&rows, 16);
        let no_lane = CodecKey::new(5, 1, 0);
        for _ in 0..2 {
            assert_eq!(codec.encode(&rows, no_lane), plain.encode(&rows, no_lane));
        }
        let bytes = codec.encode(&rows, key(0));
        assert!(codec.decode(&bytes[1..], [1, 16], key(0)).is_err());
        let decoded = codec.decode(&bytes, [1, 16], key(0)).unwrap();
        assert_eq!(decoded, plain.decode(&bytes, [1, 16], key(0)).unwrap());
    }
}
