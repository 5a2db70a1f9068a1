//! Bias, variance and error of an estimator from its estimates, relative to the length of what it
//! estimates.

use serde::Serialize;

use super::optima::gradient_lambda;

/// Groups of outcomes that standard errors compare.
const BLOCKS: usize = 20;

/// What is known of an estimator. Lengths are in lengths of the full gradient; standard errors are
/// by the jackknife over 20 groups of outcomes, and 0 if the number is exact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Summary {
    /// `‖E ĝ − g‖/‖g‖`; of a sample, the noise in the mean is subtracted.
    pub bias: f64,
    /// Its standard error.
    pub bias_error: f64,
    /// `√(E‖ĝ − E ĝ‖²)/‖g‖`.
    pub sd: f64,
    /// Its standard error.
    pub sd_error: f64,
    /// `√(E‖ĝ − g‖²)/‖g‖`.
    pub rmse: f64,
    /// Its standard error.
    pub rmse_error: f64,
    /// Cosine of the angle between `E ĝ` and `g`, which a change of scale (Adam's business) leaves
    /// alone.
    pub cosine: f64,
    /// The error after the best constant factor, `√(1 − ⟨g, E ĝ⟩²/(‖g‖² E‖ĝ‖²))`.
    pub scaled_rmse: f64,
    /// The best λ for mixing the estimate with the unweighted one.
    pub best_lambda: f64,
    /// The error with it.
    pub best_rmse: f64,
}

/// Sums over the outcomes of one group.
#[derive(Clone, Debug, Default)]
struct Sums {
    count: f64,
    /// Σ e, of the errors e = ĝ − g.
    error: Vec<f64>,
    /// Σ ‖e‖², and the same of the unweighted estimate and of their products.
    square: f64,
    plain_square: f64,
    product: f64,
}

impl Sums {
    fn plus(&mut self, other: &Self, sign: f64) {
        self.count += sign * other.count;
        self.square += sign * other.square;
        self.plain_square += sign * other.plain_square;
        self.product += sign * other.product;
        for (sum, value) in self.error.iter_mut().zip(&other.error) {
            *sum += sign * value;
        }
    }
}

/// Gathers the estimates of one estimator.
pub(super) struct Moments<'a> {
    target: &'a [f64],
    blocks: Vec<Sums>,
}

impl<'a> Moments<'a> {
    /// Of estimates of `target`.
    pub(super) fn new(target: &'a [f64]) -> Self {
        let sums = Sums {
            error: vec![0.0; target.len()],
            ..Sums::default()
        };
        Self {
            target,
            blocks: vec![sums; BLOCKS],
        }
    }

    /// One outcome's estimate, and the unweighted one.
    pub(super) fn add(&mut self, outcome: usize, estimate: &[f64], plain: &[f64]) {
        // Dealt in turn, so that groups are alike in size whatever the number of samples.
        let block = &mut self.blocks[outcome % BLOCKS];
        block.count += 1.0;
        for (i, goal) in self.target.iter().enumerate() {
            let (error, other) = (estimate[i] - goal, plain[i] - goal);
            block.error[i] += error;
            block.square += error * error;
            block.plain_square += other * other;
            block.product += error * other;
        }
    }

    /// The numbers: of all outcomes there are, or estimated from a sample.
    pub(super) fn summary(&self, exact: bool) -> Summary {
        let mut total = Sums {
            error: vec![0.0; self.target.len()],
            ..Sums::default()
        };
        for block in &self.blocks {
            total.plus(block, 1.0);
        }
        let [bias, sd, rmse] = self.lengths(&total, exact);
        let [bias_error, sd_error, rmse_error] = if exact {
            [0.0; 3]
        } else {
            self.jackknife(&total)
        };
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let size = product(self.target, self.target);
        let mean: Vec<f64> = total
            .error
            .iter()
            .zip(self.target)
            .map(|(sum, goal)| goal + sum / total.count)
            .collect();
        let along = product(&mean, self.target);
        // ‖ĝ‖² = ‖e‖² + 2⟨g, ĝ⟩ − ‖g‖², so its mean follows from the sums that are kept.
        let square = total.square / total.count + 2.0 * along - size;
        let share = |value: f64, of: f64| if of > 0.0 { value / of } else { 0.0 };
        let (m00, m01, m11) = (total.plain_square, total.product, total.square);
        // Sums do as well as means: λ is a ratio of them.
        let lambda = gradient_lambda(m00, m01, m11);
        let mixed = (1.0 - lambda).powi(2) * m00
            + 2.0 * lambda * (1.0 - lambda) * m01
            + lambda * lambda * m11;
        Summary {
            bias,
            bias_error,
            sd,
            sd_error,
            rmse,
            rmse_error,
            cosine: share(along, (size * product(&mean, &mean)).sqrt()),
            scaled_rmse: (1.0 - share(along * along, size * square)).max(0.0).sqrt(),
            best_lambda: lambda,
            best_rmse: (mixed.max(0.0) / total.count / size).sqrt(),
        }
    }

    /// Bias, standard deviation and root mean squared error.
    fn lengths(&self, sums: &Sums, exact: bool) -> [f64; 3] {
        let size: f64 = self.target.iter().map(|value| value * value).sum();
        let n = sums.count;
        let square = sums.square / n;
        let of_mean: f64 = sums.error.iter().map(|sum| (sum / n).powi(2)).sum();
        // Rounding may take it below zero.
        let spread = (square - of_mean).max(0.0);
        let (bias, variance) = if exact || n < 2.0 {
            (of_mean, spread)
        } else {
            let variance = spread * n / (n - 1.0);
            // The mean of a sample is off by its own noise, whose square would pass for bias.
            (of_mean - variance / n, variance)
        };
        [bias, variance, square].map(|value| (value.max(0.0) / size).sqrt())
    }

    /// Standard errors of [`Moments::lengths`] by leaving out one group after the other.
    fn jackknife(&self, total: &Sums) -> [f64; 3] {
        let without = |block: &Sums| {
            let mut rest = total.clone();
            // Taking one group away is cheaper than adding up all others.
            rest.plus(block, -1.0);
            self.lengths(&rest, false)
        };
        let used: Vec<[f64; 3]> = self
            .blocks
            .iter()
            // Of fewer samples than groups some groups have none.
            .filter(|block| block.count > 0.0)
            .map(without)
            .collect();
        let count = used.len() as f64;
        std::array::from_fn(|i| {
            let mean = used.iter().map(|values| values[i]).sum::<f64>() / count;
            let squares = used
                .iter()
                .map(|values| (values[i] - mean).powi(2))
                .sum::<f64>();
            ((count - 1.0) / count * squares).sqrt()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};
    use rand::RngExt;

    #[test]
    fn known_estimates_give_known_moments() {
        // g = (2, 0); estimates (3, 1) and (3, −1): bias 1, deviation 1, error √2, in units of 2.
        let target = [2.0, 0.0];
        let mut moments = Moments::new(&target);
        for (outcome, estimate) in [[3.0, 1.0], [3.0, -1.0]].iter().enumerate() {
            moments.add(outcome, estimate, &[1.0, 0.0]);
        }
        let found = moments.summary(true);
        assert_eq!((found.bias, found.sd, found.bias_error), (0.5, 0.5, 0.0));
        assert!((found.rmse - 0.5_f64.sqrt()).abs() < 1e-15);
        assert!((found.cosine - 1.0).abs() < 1e-15);
        // E‖ĝ‖² = 10, ⟨g, E ĝ⟩ = 6: 1 − 36/40.
        assert!((found.scaled_rmse - 0.1_f64.sqrt()).abs() < 1e-12);
        // Errors (1, ±1) and (−1, 0): m00 = 1, m01 = −1, m11 = 2, λ = 2/5, with an error of (1 −
        // λ)² − 2λ(1 − λ) + 2λ² = 0.2.
        assert!((found.best_lambda - 0.4).abs() < 1e-15);
        assert!((found.best_rmse - (0.2_f64 / 4.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn standard_errors_hold_the_truth_about_as_often_as_they_should() {
        // Estimates of 1 that are uniform around 1.3: bias 0.3, deviation 1/√12.
        let truth = [0.3, (1.0_f64 / 12.0).sqrt(), (0.09_f64 + 1.0 / 12.0).sqrt()];
        let (mut held, trials) = ([0; 3], 400);
        for trial in 0..trials {
            let mut random = stream(3, Purpose::Study, 0, trial);
            let mut moments = Moments::new(&[1.0]);
            for sample in 0..200 {
                moments.add(sample, &[0.8 + random.random::<f64>()], &[1.0]);
            }
            let found = moments.summary(false);
            let measured = [
                (found.bias, found.bias_error),
                (found.sd, found.sd_error),
                (found.rmse, found.rmse_error),
            ];
            for (held, ((value, error), truth)) in held.iter_mut().zip(measured.iter().zip(truth)) {
                *held += u64::from((value - truth).abs() < 2.0 * error);
            }
        }
        // 95 % expected; of 400 trials with a standard deviation of 1.1 %, 90 % is 4.6 of them
        // away.
        assert!(
            held.iter().all(|&held| held * 10 > trials * 9),
            "{held:?} of {trials}"
        );
    }

    #[test]
    fn noise_in_the_mean_is_no_bias() {
        // 50 coordinates of variance 1/12, the first one off by 0.2: without the correction, 100
        // samples would say √(0.04 + 50/1200) = 0.29.
        let target = [1.0; 50];
        let mut sum = 0.0;
        for trial in 0..100 {
            let mut random = stream(4, Purpose::Study, 0, trial);
            let mut moments = Moments::new(&target);
            for sample in 0..100 {
                let mut estimate: Vec<f64> = target
                    .iter()
                    .map(|goal| goal - 0.5 + random.random::<f64>())
                    .collect();
                estimate[0] += 0.2;
                moments.add(sample, &estimate, &target);
            }
            sum += moments.summary(false).bias * 50.0_f64.sqrt();
        }
        assert!((sum / 100.0 - 0.2).abs() < 0.02, "{}", sum / 100.0);
    }
}
