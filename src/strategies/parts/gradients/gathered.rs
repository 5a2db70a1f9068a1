//! Everybody's largest entries, sent to everybody.

use super::coded::{Coded, to_words, words};
use super::sum::{Round, Sum};
use crate::model::Work;
use crate::net::{TrafficKind, Way, to_bytes};
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
pub(super) struct Gathered(pub Coded);

impl Sum for Gathered {
    fn plan(&self, track: &mut Track, _rank: usize, kind: TrafficKind) {
        let Coded { workers, len, .. } = self.0;
        let words = words(self.0.bytes(len));
        track.compute(Work::pass(len));
        track.all_gather(&vec![words; workers], kind);
        track.compute(Work::pass(len + words * workers));
    }

    fn sum(
        &mut self,
        worker: &mut Worker,
        mut values: Vec<f32>,
        round: Round,
    ) -> Result<Vec<f32>, SimError> {
        let coded = &mut self.0;
        let (len, bytes) = (coded.len, coded.bytes(coded.len));
        let all = round.key(coded.seed);
        let key = |rank: usize| all.between(rank, rank, Way::Forward);
        let own = worker.rank();
        let sent = worker.compute(Activity::Exchange, |_| {
            coded.residual.add_to(&mut values);
            coded.encode(0, &values, key(own)).map(to_words)
        })?;
        let lens = vec![words(bytes); coded.workers];
        let came = worker.all_gather(&sent, &lens, round.kind)?;
        worker.compute(Activity::Exchange, |_| {
            let mut sum = vec![0.0; len];
            for (rank, words) in came.chunks(words(bytes).max(1)).enumerate() {
                coded.add(&to_bytes(words)[..bytes], &mut sum, key(rank))?;
            }
            Ok(sum)
        })
    }

    fn left_out(&self) -> &[f32] {
        self.0.residual.values()
    }

    fn kept(&self) -> usize {
        self.0.residual.kept(self.0.len)
    }

    fn remember(&mut self, memory: Vec<Vec<f32>>) {
        self.0.residual.remember(memory);
    }
}
