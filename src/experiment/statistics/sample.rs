//! One value per seed, and what follows about their mean.

use rand::RngExt;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{IntervalMethod, Statistics};
use crate::rng::{Purpose, stream};

/// Number of resamples of a bootstrap.
const RESAMPLES: usize = 10_000;

/// Values of the seeds, with their mean and what is known of the mean's error.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Arithmetic mean.
    pub mean: f64,
    deviation: Option<f64>,
    error: Error,
}

/// What is known of the error of a mean.
#[derive(Clone, Debug, PartialEq)]
enum Error {
    /// Nothing: there is one value.
    Unknown,
    /// There is none: all values are equal.
    None,
    /// Student's t, with its scale and degrees of freedom.
    T { scale: f64, degrees: f64 },
    /// Means of resamples of so many values, in ascending order.
    Resampled { means: Vec<f64>, count: usize },
}

impl Sample {
    /// `None` without values, or if one of them is no number (a factor of a baseline of zero).
    pub fn of(values: &[f64], method: IntervalMethod) -> Option<Self> {
        let &first = values.first()?;
        if !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        // Around the first value, so that equal values have that value as their exact mean.
        let shifts: Vec<f64> = values.iter().map(|value| value - first).collect();
        let count = values.len() as f64;
        let shift = shifts.iter().sum::<f64>() / count;
        let squares: f64 = shifts.iter().map(|x| (x - shift).powi(2)).sum();
        let variance = squares / (count - 1.0);
        let error = if values.len() == 1 {
            Error::Unknown
        } else if shifts.iter().all(|&shift| shift == 0.0) {
            Error::None
        } else {
            match method {
                IntervalMethod::StudentT => Error::T {
                    scale: (variance / count).sqrt(),
                    degrees: count - 1.0,
                },
                IntervalMethod::Bootstrap => Error::Resampled {
                    means: resampled(first, &shifts),
                    count: shifts.len(),
                },
            }
        };
        Some(Self {
            mean: first + shift,
            deviation: (values.len() > 1).then(|| variance.sqrt()),
            error,
        })
    }

    /// Unbiased standard deviation of the values; none for a single value.
    pub(crate) const fn deviation(&self) -> Option<f64> {
        self.deviation
    }

    /// The mean's interval with this confidence; none for a single value.
    pub(crate) fn interval(&self, level: f64) -> Option<(f64, f64)> {
        let tail = (1.0 - level) / 2.0;
        Some(match &self.error {
            Error::Unknown => return None,
            Error::None => (self.mean, self.mean),
            Error::T { scale, degrees } => {
                let half = t(*degrees).inverse_cdf(1.0 - tail) * scale;
                (self.mean - half, self.mean + half)
            }
            Error::Resampled { means, .. } => {
                let at = |share: f64| means[(share * (means.len() - 1) as f64).round() as usize];
                (at(tail), at(1.0 - tail))
            }
        })
    }

    /// One-sided p-value of the mean not being above the bound: small where it clearly is. A value,
    /// or equal values, decide by themselves.
    pub(crate) fn not_above(&self, bound: f64) -> f64 {
        self.beyond(self.mean - bound, |mean| mean <= bound)
    }

    /// One-sided p-value of the mean not being below the bound.
    pub(crate) fn not_below(&self, bound: f64) -> f64 {
        self.beyond(bound - self.mean, |mean| mean >= bound)
    }

    fn beyond(&self, distance: f64, against: impl Fn(f64) -> bool) -> f64 {
        match &self.error {
            _ if distance == f64::INFINITY => 0.0,
            Error::Unknown | Error::None => f64::from(u8::from(distance < 0.0)),
            Error::T { scale, degrees } => t(*degrees).sf(distance / scale),
            Error::Resampled { means, count } => {
                let against = means.iter().filter(|&&mean| against(mean)).count();
                // One more in both, the sample itself: resamples alone would at times give a
                // p-value of 0 (Davison and Hinkley, 1997).
                let p = (against + 1) as f64 / (means.len() + 1) as f64;
                // Few values that all lie on one side say no more than their signs.
                p.max(0.5_f64.powi(i32::try_from(*count).unwrap_or(i32::MAX)))
            }
        }
    }
}

impl Statistics {
    /// The sample of one value per seed; see [`Sample::of`].
    pub(crate) fn sample(&self, values: &[f64]) -> Option<Sample> {
        Sample::of(values, self.interval)
    }
}

/// Means of resamples with replacement of as many values, ascending. What is drawn depends on the
/// number of values alone.
fn resampled(first: f64, shifts: &[f64]) -> Vec<f64> {
    // Seed 0, whatever the experiment's: `verify` judges again, and must come to the same numbers.
    let mut random = stream(0, Purpose::Statistics, 0, shifts.len() as u64);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let draws = (0..shifts.len()).map(|_| shifts[random.random_range(0..shifts.len())]);
            first + draws.sum::<f64>() / shifts.len() as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    means
}

pub(super) fn t(degrees: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, degrees)
        .expect("a t distribution exists for every positive number of degrees of freedom")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    const METHODS: [IntervalMethod; 2] = [IntervalMethod::StudentT, IntervalMethod::Bootstrap];

    #[test]
    fn intervals_agree_with_the_printed_tables_of_t() {
        for (values, quantile) in [
            (vec![-1.0, 1.0], 12.706_204_736),
            (vec![-1.0, 0.0, 1.0], 4.302_652_730),
        ] {
            let sample = Sample::of(&values, IntervalMethod::StudentT).unwrap();
            let (low, high) = sample.interval(0.95).unwrap();
            let error = (2.0 / (values.len() - 1) as f64 / values.len() as f64).sqrt();
            assert!((high - quantile * error).abs() < 1e-7 && (low + high).abs() < 1e-12);
        }
    }

    #[test]
    fn a_bootstrap_of_few_values_is_as_wrong_as_the_documentation_says() {
        let mut random = stream(4, Purpose::Study, 0, 0);
        for (count, expected) in [(10, 0.09), (20, 0.07)] {
            let wrong = (0..1000).filter(|_| {
                let values: Vec<f64> = (0..count)
                    .map(|_| StandardNormal.sample(&mut random))
                    .collect();
                let sample = Sample::of(&values, IntervalMethod::Bootstrap).unwrap();
                sample.not_above(0.0).min(sample.not_below(0.0)) <= 0.025
            });
            let wrong = wrong.count() as f64 / 1000.0;
            // Three deviations of a share of a thousand.
            assert!((wrong - expected).abs() < 0.027, "{count}: {wrong}");
        }
    }

    #[test]
    fn equal_values_have_no_width_and_one_value_no_interval() {
        for method in METHODS {
            let equal = Sample::of(&[0.1; 7], method).unwrap();
            assert_eq!((equal.mean, equal.interval(0.95)), (0.1, Some((0.1, 0.1))));
            assert_eq!((equal.not_above(0.1), equal.not_above(0.2)), (0.0, 1.0));
            let one = Sample::of(&[0.1], method).unwrap();
            assert_eq!((one.interval(0.95), one.not_below(0.0)), (None, 1.0));
            assert_eq!(Sample::of(&[], method), None);
            assert_eq!(Sample::of(&[1.0, f64::NAN], method), None);
        }
    }

    #[test]
    fn three_resampled_seeds_never_decide_by_themselves() {
        let sample = Sample::of(&[0.8, 0.81, 0.82], IntervalMethod::Bootstrap).unwrap();
        assert!((sample.not_above(0.1) - 0.125).abs() < 1e-12);
        assert!(sample.not_below(0.1) > 0.99);
    }

    #[test]
    fn the_bootstrap_covers_a_known_mean_about_as_often_as_it_says() {
        // 300 samples of 20 uniform values; 95 % intervals; the percentile bootstrap is known to
        // cover a little less.
        let mut random = stream(1, Purpose::Study, 0, 0);
        let covered = (0..300)
            .filter(|_| {
                let values: Vec<f64> = (0..20).map(|_| random.random::<f64>()).collect();
                let sample = Sample::of(&values, IntervalMethod::Bootstrap).unwrap();
                let (low, high) = sample.interval(0.95).unwrap();
                low <= 0.5 && 0.5 <= high
            })
            .count();
        assert!((264..=297).contains(&covered), "{covered} of 300");
    }

    proptest! {
        #[test]
        fn a_p_value_is_small_exactly_where_the_interval_is_beyond_the_bound(
            values in prop::collection::vec(-1.0..1.0_f64, 2..12), bound in -1.0..1.0_f64,
        ) {
            let sample = Sample::of(&values, IntervalMethod::StudentT).unwrap();
            let (low, high) = sample.interval(0.95).unwrap();
            prop_assume!((low - bound).abs() > 1e-6 && (high - bound).abs() > 1e-6);
            prop_assert_eq!(sample.not_above(bound) < 0.025, low > bound);
            prop_assert_eq!(sample.not_below(bound) < 0.025, high < bound);
            prop_assert!((sample.not_above(bound) + sample.not_below(bound) - 1.0).abs() < 1e-9);
        }
    }
}
