//! Means over seeds, with intervals.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Rounding that a condition forgives, relative to its bound (absolute below 1): 0.81 − 0.80 is
/// within 0.01.
const ROUNDING: f64 = 1e-12;

/// A mean and, from two values on, its 95 % Student-t interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::experiment) struct Estimate {
    pub(in crate::experiment) mean: f64,
    pub(in crate::experiment) interval: Option<(f64, f64)>,
}

impl Estimate {
    /// `None` without values, or if one of them is no number (a factor of a baseline of zero).
    pub(in crate::experiment) fn over(values: &[f64]) -> Option<Self> {
        let &first = values.first()?;
        if !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let count = values.len() as f64;
        // Around the first value, so that equal values have that value as their exact mean.
        let mean = first + values.iter().map(|value| value - first).sum::<f64>() / count;
        let interval = (values.len() > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let error = (squares / (count - 1.0) / count).sqrt();
            let half = if error > 0.0 {
                t_975(count - 1.0) * error
            } else {
                0.0
            };
            (mean - half, mean + half)
        });
        Some(Self { mean, interval })
    }

    /// How far the interval's worse end, and its better one, are inside the condition; negative
    /// outside.
    pub(in crate::experiment) fn spare(self, low: f64, high: f64) -> (f64, f64) {
        let (from, to) = self.interval.unwrap_or((self.mean, self.mean));
        let slack = |bound: f64| {
            if bound.is_finite() {
                ROUNDING * bound.abs().max(1.0)
            } else {
                0.0
            }
        };
        let (low, high) = (low - slack(low), high + slack(high));
        ((from - low).min(high - to), (to - low).min(high - from))
    }

    /// The estimate of 1 / x for x ≥ 0; what reaches down to 0 reaches up to infinity.
    pub(in crate::experiment) fn inverse(self) -> Self {
        let inverse = |x: f64| if x > 0.0 { 1.0 / x } else { f64::INFINITY };
        Self {
            mean: inverse(self.mean),
            interval: self
                .interval
                .map(|(low, high)| (inverse(high), inverse(low))),
        }
    }
}

/// The 97.5 % quantile of Student's t.
fn t_975(degrees: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees)
        .expect("a t distribution exists for every positive number of degrees of freedom")
        .inverse_cdf(0.975)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_t_agree_with_the_printed_tables() {
        for (degrees, quantile) in [
            (1.0, 12.706_204_736),
            (2.0, 4.302_652_730),
            (9.0, 2.262_157_163),
            (30.0, 2.042_272_456),
        ] {
            assert!(
                (t_975(degrees) - quantile).abs() < 1e-7,
                "{degrees}: {}",
                t_975(degrees)
            );
        }
    }

    #[test]
    fn equal_values_have_that_value_as_mean_and_no_width() {
        let estimate = Estimate::over(&[0.1; 7]).unwrap();
        assert_eq!(
            estimate,
            Estimate {
                mean: 0.1,
                interval: Some((0.1, 0.1))
            }
        );
    }
}
