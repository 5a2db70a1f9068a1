//! Rows made good by what was predicted of them, and gradients by their errors.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::net::{
    Bits, Buckets, Bytes, Codec, CodecKey, CodecLane, CodecMemory, NetError, RelativeError, Rows,
    Tally, Way, check_length, f32_bytes, floats, to_bytes,
};
use crate::sim::{Restoring, Saving, SimError};

/// What one worker remembers of its messages.
#[derive(Debug, Default)]
pub(super) struct Memory(CodecMemory<Told>);

#[derive(Debug, Default, Serialize, Deserialize)]
struct Told {
    /// Rows forward, as owner and as reader.
    trends: BTreeMap<Place, Trend>,
    /// What quantising lost of the last gradients.
    errors: BTreeMap<(u32, CodecLane), Vec<f32>>,
}

/// Layer, lane, and whether it is the owner's end.
type Place = (u32, CodecLane, bool);

/// Rows as they last travelled whole, and their change in a round.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Trend {
    round: u64,
    last: Vec<f32>,
    change: Vec<f32>,
}

impl Trend {
    /// The trend when whole rows have come.
    fn followed_by(&self, rows: Vec<f32>, round: u64) -> Self {
        // The first ones, or of another number than before: of those nothing is known.
        let change = if self.last.len() == rows.len() {
            let rounds = round.saturating_sub(self.round).max(1) as f32;
            let pairs = rows.iter().zip(&self.last);
            pairs.map(|(now, last)| (now - last) / rounds).collect()
        } else {
            vec![0.0; rows.len()]
        };
        Self {
            round,
            last: rows,
            change,
        }
    }

    fn predicted(&self, round: u64) -> Vec<f32> {
        let rounds = round.saturating_sub(self.round) as f32;
        let pairs = self.last.iter().zip(&self.change);
        pairs.map(|(last, change)| last + rounds * change).collect()
    }
}

/// Sends rows forward whole in every `period`-th round, and quantised between them, with two bits a
/// row that say what the reader takes for it: what was quantised, what it predicts, or the mean of
/// both. Sends gradients back quantised, with what that lost added to those of the next round.
///
/// The rounds of a lane must be encoded and decoded once each and in order, as for
/// [`Difference`](crate::net::Difference). A message without a lane is sent through the quantiser
/// alone.
#[derive(Clone)]
pub(super) struct Compensated {
    /// The quantiser of gradients, and of rows of whose reader nothing else is said.
    pub buckets: Buckets,
    /// Bits of the rows that each worker reads, where they are its own.
    pub readers: Vec<Bits>,
    /// For each worker that reads, how many of its rows were not predicted, and how many there were
    /// in messages that say which: where they are to be counted.
    pub told: Option<Arc<Tally>>,
    /// Rounds from one with whole rows to the next.
    pub period: u64,
    /// This worker's.
    pub memory: Arc<Memory>,
}

/// The number of the choice that takes nothing of what was sent.
const PREDICTED: u8 = 1;

/// Choices in the order in which they are looked at: of equally near ones the prediction counts,
/// then the mean, as in the authors' code (`dgnn_server.cc`), whose messages are shorter by it.
const LOOKED_AT: [u8; 3] = [PREDICTED, 2, 0];

/// What a reader may take for a row.
const CHOICES: [fn(f32, f32) -> f32; 3] = [
    |quantised, _| quantised,
    |_, predicted| predicted,
    |quantised, predicted| 0.5 * (quantised + predicted),
];

impl Memory {
    pub(super) fn save(&self, into: &mut Saving) {
        into.put(&*self.0.lock());
    }

    pub(super) fn restore(&self, from: &mut Restoring<'_>) -> Result<(), SimError> {
        *self.0.lock() = from.saved().take()?;
        Ok(())
    }
}

impl Compensated {
    /// The quantiser of rows for a reader.
    fn for_reader(&self, lane: CodecLane) -> Buckets {
        let bits = self.readers.get(lane.reader as usize);
        bits.map_or(self.buckets, |&bits| Buckets(bits))
    }

    fn is_whole(&self, round: u64) -> bool {
        round.is_multiple_of(self.period)
    }

    /// Bytes that say which of the choices a reader takes for each row.
    const fn choice_bytes(rows: usize) -> usize {
        rows.div_ceil(4)
    }

    fn encode_forward(&self, rows: &Rows<'_>, key: CodecKey, lane: CodecLane) -> Vec<u8> {
        let mut told = self.memory.0.lock();
        let trend = told.trends.entry((key.layer, lane, true)).or_default();
        if self.is_whole(key.round) {
            *trend = trend.followed_by(rows.values().to_vec(), key.round);
            return to_bytes(rows.values());
        }
        let buckets = self.for_reader(lane);
        let quantised = buckets.encode(rows);
        let decoded = buckets.decode(&quantised, rows.rows(), rows.width());
        let predicted = trend.predicted(key.round);
        let mut bytes = vec![0; Self::choice_bytes(rows.rows())];
        let width = rows.width().max(1);
        let mut not_predicted = 0_u32;
        let pairs = decoded.chunks(width).zip(predicted.chunks(width));
        for (at, (row, (quantised, predicted))) in rows.iter().zip(pairs).enumerate() {
            let choice = nearest(row, quantised, predicted);
            bytes[at / 4] |= choice << (2 * (at % 4));
            not_predicted += u32::from(choice != PREDICTED);
        }
        if let Some(told) = &self.told {
            let counts = [not_predicted as f32, rows.rows() as f32];
            told.add(2 * lane.reader as usize, &counts);
        }
        bytes.extend(quantised);
        bytes
    }

    fn decode_forward(
        &self,
        bytes: &[u8],
        [rows, width]: [usize; 2],
        key: CodecKey,
        lane: CodecLane,
    ) -> Vec<f32> {
        let mut told = self.memory.0.lock();
        let trend = told.trends.entry((key.layer, lane, false)).or_default();
        if self.is_whole(key.round) {
            let values: Vec<f32> = floats(bytes).collect();
            *trend = trend.followed_by(values.clone(), key.round);
            return values;
        }
        let (choices, quantised) = bytes.split_at(Self::choice_bytes(rows));
        let mut values = self.for_reader(lane).decode(quantised, rows, width);
        let predicted = trend.predicted(key.round);
        let width = width.max(1);
        let pairs = values.chunks_mut(width).zip(predicted.chunks(width));
        for (at, (row, predicted)) in pairs.enumerate() {
            let choice = usize::from(choices[at / 4] >> (2 * (at % 4)) & 3);
            // No sender says 3; what is quantised stands for it.
            let choice = CHOICES.get(choice).unwrap_or(&CHOICES[0]);
            for (value, predicted) in row.iter_mut().zip(predicted) {
                *value = choice(*value, *predicted);
            }
        }
        values
    }

    fn encode_back(&self, rows: &Rows<'_>, key: CodecKey, lane: CodecLane) -> Vec<u8> {
        let mut told = self.memory.0.lock();
        let error = told.errors.entry((key.layer, lane)).or_default();
        // Rows of another number are others.
        if error.len() != rows.values().len() {
            *error = vec![0.0; rows.values().len()];
        }
        let pairs = rows.values().iter().zip(&*error);
        let sum: Vec<f32> = pairs.map(|(value, error)| value + error).collect();
        let bytes = self.buckets.encode(&Rows::new(&sum, rows.width()));
        let sent = (self.buckets).decode(&bytes, rows.rows(), rows.width());
        let pairs = sum.iter().zip(sent);
        *error = pairs.map(|(sum, sent)| sum - sent).collect();
        bytes
    }
}

/// The number of the choice that is nearest to a row.
fn nearest(row: &[f32], quantised: &[f32], predicted: &[f32]) -> u8 {
    let distance = |choice: &fn(f32, f32) -> f32| -> f64 {
        let pairs = quantised.iter().zip(predicted).zip(row);
        let apart = |((q, p), x): ((&f32, &f32), &f32)| f64::from((choice(*q, *p) - x).abs());
        pairs.map(apart).sum()
    };
    let (mut best, mut least) = (0, f64::INFINITY);
    for number in LOOKED_AT {
        let distance = distance(&CHOICES[usize::from(number)]);
        if distance < least {
            (best, least) = (number, distance);
        }
    }
    best
}

impl Codec for Compensated {
    fn name(&self) -> String {
        let (bits, period) = (self.buckets.0.count(), self.period);
        format!("compensated(bits={bits}, period={period})")
    }

    fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes {
        let most = self.readers.iter().copied().max().map(Buckets);
        let buckets = most.unwrap_or(self.buckets);
        let quantised = buckets.bytes(rows, width).0 + Self::choice_bytes(rows) as u64;
        Bytes(quantised.max(f32_bytes(rows * width).0))
    }

    fn message_bytes(&self, rows: usize, width: usize, key: CodecKey) -> Bytes {
        match key.lane {
            Some(lane) if lane.way == Way::Forward => {
                if self.is_whole(key.round) {
                    return f32_bytes(rows * width);
                }
                let quantised = self.for_reader(lane).bytes(rows, width);
                Bytes(quantised.0 + Self::choice_bytes(rows) as u64)
            }
            _ => self.buckets.bytes(rows, width),
        }
    }

    /// Rows that travelled whole and how they change, on both ends; what quantising gradients lost.
    fn remembers(&self, way: Way) -> [usize; 2] {
        match way {
            Way::Forward => [2, 2],
            Way::Back => [1, 0],
        }
    }

    fn encode(&self, rows: &Rows<'_>, key: CodecKey) -> Vec<u8> {
        match key.lane {
            None => self.buckets.encode(rows),
            Some(lane) if lane.way == Way::Forward => self.encode_forward(rows, key, lane),
            Some(lane) => self.encode_back(rows, key, lane),
        }
    }

    fn decode(&self, bytes: &[u8], shape: [usize; 2], key: CodecKey) -> Result<Vec<f32>, NetError> {
        check_length(self, bytes, shape, key)?;
        Ok(match key.lane {
            Some(lane) if lane.way == Way::Forward => self.decode_forward(bytes, shape, key, lane),
            _ => self.buckets.decode(bytes, shape[0], shape[1]),
        })
    }

    fn is_biased(&self) -> bool {
        true
    }

    /// Without a bound in terms of the row: it depends on what was sent before.
    fn expected_error(&self, _width: usize) -> RelativeError {
        RelativeError::AtMost(f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 8;

    fn coder(period: u64) -> Compensated {
        Compensated {
            buckets: Buckets(Bits::One),
            readers: Vec::new(),
            told: None,
            period,
            memory: Arc::default(),
        }
    }

    fn key(round: u64, way: Way) -> CodecKey {
        CodecKey::new(5, 1, round).between(0, 1, way)
    }

    fn rows(at: f32) -> Vec<f32> {
        (0_u8..48).map(|i| (f32::from(i) * at).sin()).collect()
    }

    fn apart(a: &[f32], b: &[f32]) -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| f64::from((a - b).abs())).sum()
    }

    #[test]
    fn of_equally_near_guesses_the_prediction_is_taken_and_then_the_mean() {
        assert_eq!(nearest(&[1.0, 2.0], &[1.0, 2.0], &[1.0, 2.0]), PREDICTED);
        // The mean is as near as what was quantised, the prediction is farther.
        assert_eq!(nearest(&[3.0], &[2.0], &[6.0]), 2);
        assert_eq!(nearest(&[3.0], &[3.0], &[6.0]), 0);
    }

    /// What arrives of rows in each round.
    fn sent(period: u64, of: impl Fn(u64) -> Vec<f32>, rounds: u64) -> Vec<Vec<f32>> {
        let (sender, reader) = (coder(period), coder(period));
        let one = |round| {
            let (rows, key) = (of(round), key(round, Way::Forward));
            let bytes = sender.encode(&Rows::new(&rows, WIDTH), key);
            let expected = sender.message_bytes(6, WIDTH, key);
            assert_eq!(bytes.len() as u64, expected.0, "round {round}");
            reader.decode(&bytes, [6, WIDTH], key).unwrap()
        };
        (0..rounds).map(one).collect()
    }

    #[test]
    fn rows_that_move_evenly_are_predicted_once_their_trend_is_known() {
        let (start, step) = (rows(0.7), rows(1.3));
        let at = |round: u64| -> Vec<f32> {
            let pairs = start.iter().zip(&step);
            pairs
                .map(|(start, step)| start + 0.01 * round as f32 * step)
                .collect()
        };
        for (round, found) in (0..).zip(sent(5, at, 20)) {
            let error = apart(&found, &at(round));
            if round % 5 == 0 {
                assert!(error == 0.0, "whole: {error}");
            } else if round > 5 {
                assert!(error < 1e-3, "round {round}: {error}");
            }
        }
    }

    #[test]
    fn what_is_taken_is_never_farther_off_than_what_is_quantised() {
        let of = |round: u64| rows(0.3 + round as f32 * 0.37);
        let plain = Buckets(Bits::One);
        for (round, found) in (0..).zip(sent(5, of, 20)) {
            let exact = of(round);
            let bytes = plain.encode(&Rows::new(&exact, WIDTH));
            let quantised = plain.decode(&bytes, 6, WIDTH);
            let each = exact.chunks(WIDTH).zip(found.chunks(WIDTH));
            for ((exact, found), quantised) in each.zip(quantised.chunks(WIDTH)) {
                let (taken, without) = (apart(found, exact), apart(quantised, exact));
                assert!(
                    taken <= without + 1e-5,
                    "round {round}: {taken} > {without}"
                );
            }
        }
    }

    #[test]
    fn errors_of_gradients_stay_bounded_and_are_sent_in_the_end() {
        const ROUNDS: u16 = 400;
        let (sender, reader) = (coder(5), coder(5));
        let gradient = rows(0.9);
        let mut sum = vec![0.0_f64; gradient.len()];
        for round in 0..u64::from(ROUNDS) {
            let key = key(round, Way::Back);
            let bytes = sender.encode(&Rows::new(&gradient, WIDTH), key);
            let decoded = reader.decode(&bytes, [6, WIDTH], key).unwrap();
            sum.iter_mut()
                .zip(decoded)
                .for_each(|(sum, value)| *sum += f64::from(value));
        }
        // With a range r of a row, half a bucket is r/4 of one bit. What is left out widens the
        // range to at most r + 2δ, so that δ ≤ (r + 2δ)/4, and δ ≤ r/2; rounding of the ends aside.
        for (sum, row) in sum.chunks(WIDTH).zip(gradient.chunks(WIDTH)) {
            let low = row.iter().copied().fold(f32::INFINITY, f32::min);
            let high = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            for (sum, value) in sum.iter().zip(row) {
                let left_out = f64::from(ROUNDS) * f64::from(*value) - sum;
                assert!(left_out.abs() <= 0.55 * f64::from(high - low), "{left_out}");
            }
        }
    }

    #[test]
    fn a_message_of_another_size_is_refused() {
        let reader = coder(5);
        for round in [0, 1] {
            let key = key(round, Way::Forward);
            assert!(reader.decode(&[1, 2, 3], [6, WIDTH], key).is_err());
        }
    }
}
