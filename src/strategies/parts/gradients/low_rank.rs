//! Two factors of each matrix.

use std::ops::Range;

use rand::Rng;

use super::residual::Residual;
use super::sum::{Round, Sum};
use crate::model::Work;
use crate::net::{Reduce, TrafficKind};
use crate::rng::{Purpose, mix, stream};
use crate::sim::{Activity, SimError, Track, Worker};

/// `PowerSGD` (Vogels, Karimireddy and Jaggi, `NeurIPS` 2019, algorithms 1 and 2): a matrix `M`,
/// `[rows, columns]`, of every worker, with what was left out of it before, and a factor `Q`,
/// `[columns, rank]`, which is the same on all of them:
///
/// 1. `P = M Q` is summed over workers, and its columns made orthonormal;
/// 2. `Q' = Mᵀ P` is summed. The sum of all `M` is taken to be `P Q'ᵀ`, and `Q'` is the `Q` of the
///    next step (the warm start);
/// 3. each worker keeps `M − P (Mᵀ P)ᵀ`, what its own matrix has beside `P`
///    (`BasicPowerSGD.aggregate` in `powersgd/powersgd.py` of epfml/powersgd; in the older
///    `paper-code` it takes off what the mean of all comes to).
///
/// What all workers keep together is bounded. What one keeps need not be: `P` knows nothing of what
/// workers have with opposite signs, and that piles up in them.
///
/// Vectors, and matrices that have no more values than their factors, travel whole beside `P`: two
/// all-reduces in all. A column of `P` that is none of the matrix's, but rounding, is left out, and
/// its column of `Q` is drawn anew; so is the first `Q`.
///
/// A worker is charged the products `M Q`, `Mᵀ P` and those of `P` with both `Q'`, and
/// `2 · rows · rank²` operations for making `P` orthonormal.
pub(super) struct LowRank {
    matrices: Vec<Matrix>,
    /// Where values lie that travel whole.
    whole: Vec<Range<usize>>,
    len: usize,
    seed: u64,
    residual: Residual,
}

/// A matrix among all parameters.
struct Matrix {
    place: Range<usize>,
    rows: usize,
    columns: usize,
    rank: usize,
    /// `Q`, `[columns, rank]`; empty before the first sum.
    q: Vec<f32>,
}

/// Smaller than this share of a column, what is left of it beside other columns is rounding.
const ROUNDING: f64 = 1e-5;

impl LowRank {
    pub(super) fn new(rank: usize, shapes: &[Vec<usize>], seed: u64, feedback: bool) -> Self {
        let (mut matrices, mut whole, mut start) = (Vec::new(), Vec::new(), 0);
        for shape in shapes {
            let len = shape.iter().product::<usize>();
            let place = start..start + len;
            start += len;
            match shape[..] {
                [rows, columns] if rank * (rows + columns) < len => matrices.push(Matrix {
                    place,
                    rows,
                    columns,
                    rank,
                    q: Vec::new(),
                }),
                _ => whole.push(place),
            }
        }
        Self {
            matrices,
            whole,
            len: start,
            seed,
            residual: Residual::new(feedback),
        }
    }

    /// Values of the first all-reduce and of the second.
    fn lens(&self) -> [usize; 2] {
        let whole: usize = self.whole.iter().map(ExactSizeIterator::len).sum();
        let ps = self.matrices.iter().map(|matrix| matrix.rows * matrix.rank);
        let qs = self
            .matrices
            .iter()
            .map(|matrix| matrix.columns * matrix.rank);
        [whole + ps.sum::<usize>(), qs.sum()]
    }

    /// What is done before the first all-reduce, between them, and behind the second.
    fn work(&self) -> [Work; 3] {
        let mut works = [Work::pass(self.len), Work::default(), Work::default()];
        for &Matrix {
            rows,
            columns,
            rank,
            ..
        } in &self.matrices
        {
            let all = rows * columns;
            works[0] = works[0] + Work::product(rows, all, columns, rank);
            let orthonormal = Work::pass(rows * rank) * (2.0 * rank as f64);
            works[1] = works[1] + orthonormal + Work::product(columns, all, rows, rank);
            works[2] = works[2] + Work::product(rows, rows * rank, rank, columns) * 2.0;
        }
        works
    }
}

impl LowRank {
    /// The sum that the factors and the whole values make, where `own` factors are those of this
    /// worker's matrices; keeps what these leave out.
    fn join(&mut self, values: &[f32], [ps, qs, own]: [&[f32]; 3]) -> Vec<f32> {
        let mut sum = vec![0.0; self.len];
        let (mut p_start, mut q_start) = (0, 0);
        for matrix in &mut self.matrices {
            let (rows, columns) = (matrix.rows * matrix.rank, matrix.columns * matrix.rank);
            let (p, q) = (&ps[p_start..][..rows], &qs[q_start..][..columns]);
            let sent = matrix.product(p, &own[q_start..][..columns]);
            let place = matrix.place.clone();
            let mine = &values[place.clone()];
            self.residual.keep(place.start, self.len, mine, &sent);
            sum[place].copy_from_slice(&matrix.product(p, q));
            matrix.q = q.to_vec();
            (p_start, q_start) = (p_start + rows, q_start + columns);
        }
        for place in &self.whole {
            sum[place.clone()].copy_from_slice(&ps[p_start..][..place.len()]);
            p_start += place.len();
        }
        sum
    }
}

impl Matrix {
    /// Draws the columns of `Q` that are nothing, and all at first: a start in all directions.
    fn refresh(&mut self, number: usize, seed: u64, round: u64) {
        let first = self.q.is_empty();
        self.q.resize(self.columns * self.rank, 0.0);
        for column in 0..self.rank {
            let mut entries = self.q.iter().skip(column).step_by(self.rank);
            if !first && entries.any(|value| *value != 0.0) {
                continue;
            }
            // The same on all workers.
            let place = mix(number as u64, column as u64);
            let mut random = stream(seed, Purpose::Codec, place, mix(u64::from(u32::MAX), round));
            for value in self.q.iter_mut().skip(column).step_by(self.rank) {
                *value = (f64::from(random.next_u32()) / f64::from(u32::MAX) * 2.0 - 1.0) as f32;
            }
        }
    }

    /// `M Q`, `[rows, rank]`.
    fn times_q(&self, m: &[f32]) -> Vec<f32> {
        let mut p = Vec::with_capacity(self.rows * self.rank);
        for row in m.chunks_exact(self.columns) {
            let mut sums = vec![0.0_f64; self.rank];
            for (value, q) in row.iter().zip(self.q.chunks_exact(self.rank)) {
                add(&mut sums, q, *value);
            }
            p.extend(sums.into_iter().map(|sum| sum as f32));
        }
        p
    }

    /// `Mᵀ P`, `[columns, rank]`.
    fn transposed_times(&self, m: &[f32], p: &[f32]) -> Vec<f32> {
        let mut sums = vec![0.0_f64; self.columns * self.rank];
        for (row, p) in m.chunks_exact(self.columns).zip(p.chunks_exact(self.rank)) {
            for (value, sums) in row.iter().zip(sums.chunks_exact_mut(self.rank)) {
                add(sums, p, *value);
            }
        }
        sums.into_iter().map(|sum| sum as f32).collect()
    }

    /// `P Qᵀ`, `[rows, columns]`.
    fn product(&self, p: &[f32], q: &[f32]) -> Vec<f32> {
        let row = |p: &[f32]| {
            let entry = |q: &[f32]| {
                let pairs = p.iter().zip(q);
                let sum: f64 = pairs.map(|(p, q)| f64::from(*p) * f64::from(*q)).sum();
                sum as f32
            };
            q.chunks_exact(self.rank).map(entry).collect::<Vec<f32>>()
        };
        p.chunks_exact(self.rank).flat_map(row).collect()
    }
}

/// Adds a row times a factor to sums.
fn add(sums: &mut [f64], row: &[f32], factor: f32) {
    for (sum, value) in sums.iter_mut().zip(row) {
        *sum += f64::from(*value) * f64::from(factor);
    }
}

/// Makes the columns of `[rows, rank]` orthonormal, one after the other (Gram and Schmidt, twice,
/// for the rounding of the first time); a column that the others make up becomes zeros.
fn orthonormalise(p: &mut [f32], rank: usize) {
    let mut done: Vec<Vec<f64>> = Vec::with_capacity(rank);
    for column in 0..rank {
        let entries = p.iter().skip(column).step_by(rank);
        let mut values: Vec<f64> = entries.map(|&value| f64::from(value)).collect();
        let before = length(&values);
        for _ in 0..2 {
            for other in &done {
                let along: f64 = values.iter().zip(other).map(|(a, b)| a * b).sum();
                let pairs = values.iter_mut().zip(other);
                pairs.for_each(|(value, other)| *value -= along * other);
            }
        }
        let left = length(&values);
        let scale = if left > ROUNDING * before {
            1.0 / left
        } else {
            0.0
        };
        for value in &mut values {
            *value *= scale;
        }
        for (entry, value) in p.iter_mut().skip(column).step_by(rank).zip(&values) {
            *entry = *value as f32;
        }
        done.push(values);
    }
}

fn length(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

impl Sum for LowRank {
    fn plan(&self, track: &mut Track, _rank: usize, kind: TrafficKind) {
        let ([first, second], [before, between, behind]) = (self.lens(), self.work());
        track.compute(before);
        track.all_reduce(first, kind);
        track.compute(between);
        track.all_reduce(second, kind);
        track.compute(behind);
    }

    fn sum(
        &mut self,
        worker: &mut Worker,
        mut values: Vec<f32>,
        round: Round,
    ) -> Result<Vec<f32>, SimError> {
        let seed = self.seed;
        let mut ps = worker.compute(Activity::Exchange, |_| {
            self.residual.add_to(&mut values);
            let mut ps = Vec::new();
            for (number, matrix) in self.matrices.iter_mut().enumerate() {
                matrix.refresh(number, seed, round.number);
                ps.extend(matrix.times_q(&values[matrix.place.clone()]));
            }
            let whole = self.whole.iter().flat_map(|place| &values[place.clone()]);
            ps.extend(whole);
            ps
        });
        worker.all_reduce(&mut ps, Reduce::Sum, round.kind)?;
        let own = worker.compute(Activity::Exchange, |_| {
            let (mut own, mut start) = (Vec::new(), 0);
            for matrix in &self.matrices {
                let p = &mut ps[start..start + matrix.rows * matrix.rank];
                start += p.len();
                orthonormalise(p, matrix.rank);
                own.extend(matrix.transposed_times(&values[matrix.place.clone()], p));
            }
            own
        });
        let mut qs = own.clone();
        worker.all_reduce(&mut qs, Reduce::Sum, round.kind)?;
        Ok(worker.compute(Activity::Exchange, |_| self.join(&values, [&ps, &qs, &own])))
    }

    fn left_out(&self) -> &[f32] {
        self.residual.values()
    }

    fn kept(&self) -> usize {
        let factors = self.matrices.iter();
        let factors = factors.map(|matrix| matrix.columns * matrix.rank);
        self.residual.kept(self.len) + factors.sum::<usize>()
    }

    fn memory(&self) -> Vec<&[f32]> {
        let factors = self.matrices.iter().map(|matrix| &matrix.q[..]);
        std::iter::once(self.residual.values())
            .chain(factors)
            .collect()
    }

    fn remember(&mut self, memory: Vec<Vec<f32>>) {
        let mut memory = memory.into_iter();
        self.residual.remember(memory.next().into_iter().collect());
        for (matrix, q) in self.matrices.iter_mut().zip(memory) {
            matrix.q = q;
        }
    }
}
