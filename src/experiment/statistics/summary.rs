//! Mean and unbiased standard deviation.

/// A sample's size, mean and spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of values.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Unbiased standard deviation (divisor n − 1); `None` for a single value.
    pub(crate) sd: Option<f64>,
}

impl Summary {
    /// Summarises `values`; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        if values.is_empty() {
            return None;
        }
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let sd = (count > 1).then(|| (squares / (count - 1) as f64).sqrt());
        Some(Self { count, mean, sd })
    }

    /// The standard deviation, or 0 where one value leaves nothing to spread.
    pub(crate) fn spread(&self) -> f64 {
        self.sd.unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_deviation_divides_by_one_less_than_the_count() {
        let summary = Summary::of([2.0, 4.0, 6.0]).unwrap();
        assert_eq!(
            summary,
            Summary {
                count: 3,
                mean: 4.0,
                sd: Some(2.0)
            }
        );
    }

    #[test]
    fn one_value_has_no_deviation_and_none_has_no_summary() {
        assert_eq!(Summary::of([5.0]).unwrap().sd, None);
        assert_eq!(Summary::of([]), None);
    }

    proptest! {
        #[test]
        fn shifting_moves_the_mean_and_leaves_the_deviation(
            values in prop::collection::vec(-1e3..1e3_f64, 2..20), shift in -1e3..1e3_f64,
        ) {
            let before = Summary::of(values.iter().copied()).unwrap();
            let after = Summary::of(values.iter().map(|value| value + shift)).unwrap();
            prop_assert!((after.mean - before.mean - shift).abs() < 1e-8);
            prop_assert!((after.spread() - before.spread()).abs() < 1e-8);
        }
    }
}
