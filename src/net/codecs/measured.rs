//! What was lost, measured where it is sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::net::memory::CodecMemory;
use crate::net::{Bytes, Codec, CodecKey, CodecLane, NetError, RelativeError, Rows, Way};

/// Squared norms of what was lost and of what there was; those of several messages add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CodingError {
    /// ‖x̃ − x‖².
    pub lost: f64,
    /// ‖x‖².
    pub sent: f64,
}

impl CodingError {
    /// Of one message: its rows, and what is decoded of them.
    pub fn of(rows: &[f32], decoded: &[f32]) -> Self {
        let square = |value: f64| value * value;
        rows.iter()
            .zip(decoded)
            .map(|(&x, &y)| Self {
                // In double precision, as a difference of close floats squared may vanish in
                // single.
                lost: square(f64::from(y) - f64::from(x)),
                sent: square(f64::from(x)),
            })
            .fold(Self::default(), Self::plus)
    }

    /// Of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            lost: self.lost + other.lost,
            sent: self.sent + other.sent,
        }
    }

    /// ‖x̃ − x‖² / ‖x‖²; 0 where there was nothing to lose.
    pub(crate) fn relative(self) -> f64 {
        // Nothing lost of nothing would be 0/0. Something lost of nothing is infinite, and stays
        // so.
        if self.lost == 0.0 {
            return 0.0;
        }
        self.lost / self.sent
    }
}

/// Errors by layer and lane.
pub(crate) type CodingErrors = BTreeMap<(u32, CodecLane), CodingError>;

/// The errors of one worker's messages since they were last taken. Messages whose key has no lane
/// do not count.
#[derive(Debug, Default)]
pub struct Gauge(CodecMemory<CodingErrors>);

impl Gauge {
    /// All of them; the gauge is empty afterwards.
    pub(crate) fn take(&self) -> CodingErrors {
        std::mem::take(&mut *self.0.lock())
    }

    fn add(&self, key: CodecKey, error: CodingError) {
        let Some(lane) = key.lane else { return };
        let mut errors = self.0.lock();
        let so_far = errors.entry((key.layer, lane)).or_default();
        *so_far = so_far.plus(error);
    }
}

/// What looks at each message as it is encoded.
pub(crate) trait Watcher: Send + Sync {
    /// These rows became these bytes.
    fn sees(&self, codec: &dyn Codec, rows: &Rows<'_>, bytes: &[u8], key: CodecKey);
}

/// The error is measured as a codec encodes: what it makes is decoded on the spot, which takes the
/// time that it takes.
impl Watcher for Gauge {
    fn sees(&self, codec: &dyn Codec, rows: &Rows<'_>, bytes: &[u8], key: CodecKey) {
        // What a codec makes, it can read.
        if let Ok(decoded) = codec.decode(bytes, [rows.rows(), rows.width()], key) {
            self.add(key, CodingError::of(rows.values(), &decoded));
        }
    }
}

/// A codec whose messages are looked at; they are its own.
#[derive(Clone)]
pub(crate) struct Watched {
    /// The codec.
    pub codec: Arc<dyn Codec>,
    /// Who looks: this worker's.
    pub(crate) watcher: Arc<dyn Watcher>,
}

impl Codec for Watched {
    fn name(&self) -> String {
        self.codec.name()
    }

    fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes {
        self.codec.encoded_bytes(rows, width)
    }

    fn message_bytes(&self, rows: usize, width: usize, key: CodecKey) -> Bytes {
        self.codec.message_bytes(rows, width, key)
    }

    fn remembers(&self, way: Way) -> [usize; 2] {
        self.codec.remembers(way)
    }

    fn encode(&self, rows: &Rows<'_>, key: CodecKey) -> Vec<u8> {
        let bytes = self.codec.encode(rows, key);
        self.watcher.sees(self.codec.as_ref(), rows, &bytes, key);
        bytes
    }

    fn decode(&self, bytes: &[u8], shape: [usize; 2], key: CodecKey) -> Result<Vec<f32>, NetError> {
        self.codec.decode(bytes, shape, key)
    }

    fn is_lossless(&self) -> bool {
        self.codec.is_lossless()
    }

    fn is_biased(&self) -> bool {
        self.codec.is_biased()
    }

    fn expected_error(&self, width: usize) -> RelativeError {
        self.codec.expected_error(width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Difference, FirstColumns, TopK, Way};

    #[test]
    fn what_is_lost_is_added_up_by_layer_and_way() {
        let gauge = Arc::new(Gauge::default());
        let codec = Watched {
            codec: Arc::new(FirstColumns { ratio: 2.0 }),
            watcher: gauge.clone(),
        };
        for way in [Way::Forward, Way::Back] {
            let key = CodecKey::new(0, 1, 0).between(0, 1, way);
            let row: [f32; 2] = if way == Way::Back {
                [3.0, 0.0]
            } else {
                [3.0, 4.0]
            };
            for _ in 0..2 {
                drop(codec.encode(&Rows::new(&row, 2), key));
            }
        }
        let errors = gauge.take();
        let lane = |way| CodecLane {
            owner: 0,
            reader: 1,
            way,
        };
        let forward = errors[&(1, lane(Way::Forward))];
        assert_eq!((forward.lost, forward.sent), (32.0, 50.0));
        assert_eq!(errors[&(1, lane(Way::Back))].relative(), 0.0);
        assert!(gauge.take().is_empty());
    }

    #[test]
    fn measuring_at_the_sender_does_not_disturb_what_it_remembers() {
        let difference = |gauge: &Arc<Gauge>| Watched {
            codec: Arc::new(Difference {
                codec: Arc::new(TopK::new(4.0)),
                memory: Arc::default(),
            }),
            watcher: gauge.clone(),
        };
        let gauge = Arc::new(Gauge::default());
        let (sender, receiver) = (difference(&gauge), difference(&Arc::default()));
        let row: Vec<f32> = (1_u8..17).map(f32::from).collect();
        for round in 0..8 {
            let key = CodecKey::new(0, 1, round).between(0, 1, Way::Forward);
            let bytes = sender.encode(&Rows::new(&row, 16), key);
            let decoded = receiver.decode(&bytes, [1, 16], key).unwrap();
            let errors = gauge.take();
            let measured = errors.values().copied().next().unwrap();
            assert_eq!(measured, CodingError::of(&row, &decoded));
        }
    }
}
