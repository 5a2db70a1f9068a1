//! Everybody's largest entries, sent to everybody.

use super::residual::Residual;
use super::sum::{Round, Sum};
use crate::model::Work;
use crate::net::{Codec, Rows, TrafficKind, Way, floats, to_bytes};
use crate::sim::{Activity, SimError, Track, Worker};

/// Top-k sparsification (Stich, Cordonnier and Jaggi, `NeurIPS` 2018) of all parameters as one
/// vector: each worker's entries are others, so they are not summed on the way but gathered, with
/// their places, by all (as `GlobalTopKReducer` in `paper-code/gradient_reducers.py` of
/// epfml/powersgd), and summed in the order of ranks.
///
/// A message is filled up to whole 4-byte words, in which collectives count.
///
/// A worker is charged a pass over its values before, and one over its values and all that came
/// behind.
pub(super) struct Gathered {
    codec: Box<dyn Codec>,
    workers: usize,
    len: usize,
    seed: u64,
    residual: Residual,
}

impl Gathered {
    pub(super) const fn new(
        codec: Box<dyn Codec>,
        [workers, len]: [usize; 2],
        seed: u64,
        feedback: bool,
    ) -> Self {
        Self {
            codec,
            workers,
            len,
            seed,
            residual: Residual::new(feedback),
        }
    }

    fn bytes(&self) -> usize {
        self.codec.encoded_bytes(1, self.len).0 as usize
    }
}

/// 4-byte words that hold so many bytes.
pub(super) const fn words(bytes: usize) -> usize {
    bytes.div_ceil(4)
}

/// Bytes as the words of a collective that copies and never computes with them.
pub(super) fn to_words(mut bytes: Vec<u8>) -> Vec<f32> {
    bytes.resize(4 * words(bytes.len()), 0);
    floats(&bytes).collect()
}

impl Sum for Gathered {
    fn plan(&self, track: &mut Track, _rank: usize, kind: TrafficKind) {
        let words = words(self.bytes());
        track.compute(Work::pass(self.len));
        track.all_gather(&vec![words; self.workers], kind);
        track.compute(Work::pass(self.len + words * self.workers));
    }

    fn sum(
        &mut self,
        worker: &mut Worker,
        mut values: Vec<f32>,
        round: Round,
    ) -> Result<Vec<f32>, SimError> {
        let Self { codec, len, .. } = self;
        let (len, bytes) = (*len, codec.encoded_bytes(1, *len).0 as usize);
        let all = round.key(self.seed);
        let key = |rank: usize| all.between(rank, rank, Way::Forward);
        let own = worker.rank();
        let sent = worker.compute(Activity::Exchange, |_| {
            self.residual.add_to(&mut values);
            let bytes = codec.encode(&Rows::new(&values, len), key(own));
            let decoded = codec.decode(&bytes, [1, len], key(own))?;
            self.residual.keep(0, len, &values, &decoded);
            Ok::<Vec<f32>, SimError>(to_words(bytes))
        })?;
        let lens = vec![words(bytes); self.workers];
        let came = worker.all_gather(&sent, &lens, round.kind)?;
        worker.compute(Activity::Exchange, |_| {
            let mut sum = vec![0.0; len];
            for (rank, words) in came.chunks(words(bytes).max(1)).enumerate() {
                let words = to_bytes(words);
                let decoded = codec.decode(&words[..bytes], [1, len], key(rank))?;
                let pairs = sum.iter_mut().zip(decoded);
                pairs.for_each(|(sum, value)| *sum += value);
            }
            Ok(sum)
        })
    }

    fn left_out(&self) -> &[f32] {
        self.residual.values()
    }

    fn remember(&mut self, memory: Vec<Vec<f32>>) {
        self.residual.remember(memory);
    }
}
