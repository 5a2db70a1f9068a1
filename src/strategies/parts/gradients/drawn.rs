//! A share of all entries, which all workers draw alike.

use super::residual::Residual;
use super::sum::{Round, Sum};
use crate::model::Work;
use crate::net::{Codec, RandomEntries, Reduce, Rows, Selection, TrafficKind, floats, to_bytes};
use crate::sim::{Activity, SimError, Track, Worker};

/// Random-k sparsification (Stich, Cordonnier and Jaggi, *Sparsified SGD with Memory*, `NeurIPS`
/// 2018) from a seed that all workers have, so that no places travel and an all-reduce sums what
/// does (as `UniformRandomSparseReducer` in `paper-code/gradient_reducers.py` of epfml/powersgd).
///
/// With feedback entries are sent as they are, without they are multiplied by n/k, and so unbiased.
///
/// A worker is charged a pass over its values before, and one behind.
pub(super) struct Drawn {
    codec: RandomEntries,
    len: usize,
    seed: u64,
    residual: Residual,
}

impl Drawn {
    pub(super) const fn new(codec: RandomEntries, len: usize, seed: u64, feedback: bool) -> Self {
        Self {
            codec,
            len,
            seed,
            residual: Residual::new(feedback),
        }
    }

    fn kept(&self) -> usize {
        self.codec.kept(self.len)
    }
}

impl Sum for Drawn {
    fn plan(&self, track: &mut Track, _rank: usize, kind: TrafficKind) {
        track.compute(Work::pass(self.len));
        track.all_reduce(self.kept(), kind);
        track.compute(Work::pass(self.len));
    }

    fn sum(
        &mut self,
        worker: &mut Worker,
        mut values: Vec<f32>,
        round: Round,
    ) -> Result<Vec<f32>, SimError> {
        let (codec, len, key) = (self.codec, self.len, round.key(self.seed));
        let mut sent = worker.compute(Activity::Exchange, |_| {
            self.residual.add_to(&mut values);
            let bytes = codec.encode(&Rows::new(&values, len), key);
            let decoded = codec.decode(&bytes, [1, len], key)?;
            self.residual.keep(0, len, &values, &decoded);
            Ok::<Vec<f32>, SimError>(floats(&bytes).collect())
        })?;
        worker.all_reduce(&mut sent, Reduce::Sum, round.kind)?;
        worker.compute(Activity::Exchange, |_| {
            Ok(codec.decode(&to_bytes(&sent), [1, len], key)?)
        })
    }

    fn left_out(&self) -> &[f32] {
        self.residual.values()
    }

    fn kept(&self) -> usize {
        self.residual.kept(self.len)
    }

    fn remember(&mut self, memory: Vec<Vec<f32>>) {
        self.residual.remember(memory);
    }
}
