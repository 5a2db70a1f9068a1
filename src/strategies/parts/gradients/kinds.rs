//! Which sum an experiment asks for.

use super::coded::Coded;
use super::drawn::Drawn;
use super::gathered::Gathered;
use super::low_rank::LowRank;
use super::residual::Residual;
use super::split::Split;
use super::sum::{Round, Sum};
use super::{GradientCodec, Gradients};
use crate::net::{BF16, F16, Qsgd, RandomEntries, Reduce, Signs, TopK, TrafficKind};
use crate::sim::{SimError, Track, Worker};

impl Gradients {
    /// The sum that this asks for, of parameters of these shapes; `workers` share it.
    pub fn sum(&self, workers: usize, seed: u64, shapes: &[Vec<usize>]) -> Box<dyn Sum> {
        let len = shapes.iter().map(|shape| shape.iter().product::<usize>());
        new(self, workers, seed, len.sum(), || shapes.to_vec())
    }
}

/// As [`Gradients::sum`], of so many values, whose shapes are asked for where they matter.
pub(super) fn new(
    gradients: &Gradients,
    workers: usize,
    seed: u64,
    len: usize,
    shapes: impl FnOnce() -> Vec<Vec<usize>>,
) -> Box<dyn Sum> {
    if workers == 1 {
        return Box::new(Whole(len));
    }
    let feedback = gradients.feedback;
    let coded = |codec| Coded {
        codec,
        workers,
        len,
        seed,
        residual: Residual::new(feedback),
    };
    let split = |codec| Box::new(Split(coded(codec)));
    match gradients.codec {
        GradientCodec::Identity {} => Box::new(Whole(len)),
        GradientCodec::TopK { ratio } => Box::new(Gathered(coded(Box::new(TopK::new(ratio))))),
        GradientCodec::RandomK { ratio } => {
            // Unbiased by itself where nothing makes up for what is missing.
            let rescale = !feedback;
            let codec = RandomEntries { ratio, rescale };
            Box::new(Drawn::new(codec, len, seed, feedback))
        }
        GradientCodec::Qsgd { levels, bucket } => split(Box::new(Qsgd { levels, bucket })),
        GradientCodec::Sign {} => split(Box::new(Signs)),
        GradientCodec::F16 {} => split(Box::new(F16)),
        GradientCodec::Bf16 {} => split(Box::new(BF16)),
        GradientCodec::PowerSgd { rank } => Box::new(LowRank::new(rank, &shapes(), seed, feedback)),
    }
}

/// An all-reduce of so many values.
struct Whole(usize);

impl Sum for Whole {
    fn plan(&self, track: &mut Track, _rank: usize, kind: TrafficKind) {
        track.all_reduce(self.0, kind);
    }

    fn sum(
        &mut self,
        worker: &mut Worker,
        mut values: Vec<f32>,
        round: Round,
    ) -> Result<Vec<f32>, SimError> {
        worker.all_reduce(&mut values, Reduce::Sum, round.kind)?;
        Ok(values)
    }

    fn left_out(&self) -> &[f32] {
        &[]
    }

    fn kept(&self) -> usize {
        0
    }

    fn remember(&mut self, _: Vec<Vec<f32>>) {}
}
