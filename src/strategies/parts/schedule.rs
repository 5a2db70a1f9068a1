//! Compression ratios that fall during training.

use serde::{Deserialize, Serialize};

use crate::strategies::OptionError;

/// A compression ratio by epoch. Non-increasing, and within `[to, from]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Schedule {
    /// `max(from − slope·t·(from − to)/(T − 2), to)`: the schedule of VARCO's code, reaching `to` after 1/slope of the training.
    Linear {
        /// Ratio at the start. Default 128.
        #[serde(default = "start")]
        from: f64,
        /// Ratio at the end. Default 1.
        #[serde(default = "end")]
        to: f64,
        /// How many times faster than the whole training it falls. Default 5.
        #[serde(default = "slope")]
        slope: f64,
    },
    /// `from·(to/from)^(t/(T − 2))`.
    Exponential {
        /// Ratio at the start. Default 128.
        #[serde(default = "start")]
        from: f64,
        /// Ratio at the end. Default 1.
        #[serde(default = "end")]
        to: f64,
    },
    /// Half a cosine from `from` to `to`.
    Cosine {
        /// Ratio at the start. Default 128.
        #[serde(default = "start")]
        from: f64,
        /// Ratio at the end. Default 1.
        #[serde(default = "end")]
        to: f64,
    },
    /// `2^⌈(T − t)/every⌉`, within `[to, from]`: the last step has ratio 2.
    Steps {
        /// Ratio at most. Default 128.
        #[serde(default = "start")]
        from: f64,
        /// Ratio at least. Default 1.
        #[serde(default = "end")]
        to: f64,
        /// Epochs of each step.
        every: usize,
    },
    /// Divided by `factor` whenever the validation accuracy has not exceeded the best so far by more than `tolerance` in `patience`
    /// evaluations in a row. (Evaluation gives accuracies, so accuracy stands for the validation loss.)
    AdaptiveValidation {
        /// Ratio at the start. Default 128.
        #[serde(default = "start")]
        from: f64,
        /// Ratio at least. Default 1.
        #[serde(default = "end")]
        to: f64,
        /// What the ratio is divided by. Default 2.
        #[serde(default = "factor")]
        factor: f64,
        /// Evaluations to wait. Default 5.
        #[serde(default = "patience")]
        patience: usize,
        /// Accuracy gained that counts. Default 0.001.
        #[serde(default = "tolerance")]
        tolerance: f64,
    },
    /// Divided by `factor` whenever the relative compression error of all rows sent forward, over layers and workers, has not fallen below the least
    /// so far by more than `tolerance` in `patience` epochs in a row. Measuring it takes an all-reduce of two numbers in every epoch.
    AdaptiveError {
        /// Ratio at the start. Default 128.
        #[serde(default = "start")]
        from: f64,
        /// Ratio at least. Default 1.
        #[serde(default = "end")]
        to: f64,
        /// What the ratio is divided by. Default 2.
        #[serde(default = "factor")]
        factor: f64,
        /// Epochs to wait. Default 5.
        #[serde(default = "patience")]
        patience: usize,
        /// Relative error lost that counts. Default 0.001.
        #[serde(default = "tolerance")]
        tolerance: f64,
    },
}

/// What a past epoch showed, the same on all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Validation accuracy after it, if it was evaluated.
    pub validation: Option<f64>,
    /// Relative compression error ‖x̃ − x‖² / ‖x‖² of all rows sent forward in it, if it was measured.
    pub error: Option<f64>,
}

const fn start() -> f64 {
    128.0
}
const fn end() -> f64 {
    1.0
}
const fn slope() -> f64 {
    5.0
}
const fn factor() -> f64 {
    2.0
}
const fn patience() -> usize {
    5
}
const fn tolerance() -> f64 {
    1e-3
}

impl Default for Schedule {
    fn default() -> Self {
        Self::Linear {
            from: start(),
            to: end(),
            slope: slope(),
        }
    }
}

impl Schedule {
    const fn bounds(&self) -> (f64, f64) {
        match *self {
            Self::Linear { from, to, .. }
            | Self::Exponential { from, to }
            | Self::Cosine { from, to }
            | Self::Steps { from, to, .. }
            | Self::AdaptiveValidation { from, to, .. }
            | Self::AdaptiveError { from, to, .. } => (from, to),
        }
    }

    /// Whether the figures make a schedule.
    ///
    /// # Errors
    /// If a ratio is below 1, the end lies above the start, or the pace makes no sense.
    pub fn check(&self) -> Result<(), OptionError> {
        let (from, to) = self.bounds();
        let range = to >= 1.0 && from >= to && from.is_finite();
        let pace = match *self {
            Self::Linear { slope, .. } => slope > 0.0 && slope.is_finite(),
            Self::Steps { every, .. } => every > 0,
            Self::Exponential { .. } | Self::Cosine { .. } => true,
            Self::AdaptiveValidation {
                factor,
                patience,
                tolerance,
                ..
            }
            | Self::AdaptiveError {
                factor,
                patience,
                tolerance,
                ..
            } => {
                factor > 1.0
                    && factor.is_finite()
                    && patience > 0
                    && tolerance >= 0.0
                    && tolerance.is_finite()
            }
        };
        if range && pace {
            return Ok(());
        }
        Err(OptionError::key(
            "schedule",
            "must have from ≥ to ≥ 1, and a positive slope, steps of at least one epoch, or a factor above 1 with a patience of at least 1 and a tolerance of at least 0",
        ))
    }

    /// The ratio in epoch `epoch` of `epochs`, after what the epochs before it showed. What is in `seen` matters to the adaptive
    /// schedules only.
    #[must_use]
    pub fn ratio(&self, epoch: usize, epochs: usize, seen: &[Seen]) -> f64 {
        let (from, to) = self.bounds();
        let t = epoch as f64;
        let last = epochs.saturating_sub(2).max(1) as f64;
        let ratio = match *self {
            Self::Linear { slope, .. } => from - slope * t * (from - to) / last,
            Self::Exponential { .. } => from * (to / from).powf(t / last),
            Self::Cosine { .. } => {
                let phase = (t / last).min(1.0) * std::f64::consts::PI;
                to + (from - to) * (1.0 + phase.cos()) / 2.0
            }
            Self::Steps { every, .. } => {
                let steps = epochs.saturating_sub(epoch).div_ceil(every);
                2.0_f64.powi(count(steps))
            }
            Self::AdaptiveValidation {
                factor,
                patience,
                tolerance,
                ..
            } => {
                let accuracies = seen.iter().filter_map(|epoch| epoch.validation);
                from / factor.powi(stalls(accuracies, patience, tolerance))
            }
            Self::AdaptiveError {
                factor,
                patience,
                tolerance,
                ..
            } => {
                let falls = seen.iter().filter_map(|epoch| epoch.error).map(|e| -e);
                from / factor.powi(stalls(falls, patience, tolerance))
            }
        };
        ratio.clamp(to, from)
    }

    /// The lowest ratio that epoch `epoch` of `epochs` can have: of an adaptive schedule, that of a training in which nothing ever
    /// improves; of the others, the ratio. Plans in advance take it, and so are never too low.
    #[must_use]
    pub fn least_ratio(&self, epoch: usize, epochs: usize) -> f64 {
        let hopeless = Seen {
            validation: Some(f64::NAN),
            error: Some(f64::NAN),
        };
        if self.is_adaptive() {
            self.ratio(epoch, epochs, &vec![hopeless; epoch])
        } else {
            self.ratio(epoch, epochs, &[])
        }
    }

    /// Whether the ratio depends on how the training goes.
    #[must_use]
    pub const fn is_adaptive(&self) -> bool {
        matches!(
            self,
            Self::AdaptiveValidation { .. } | Self::AdaptiveError { .. }
        )
    }

    /// Whether [`Seen::error`] is needed.
    #[must_use]
    pub const fn needs_error(&self) -> bool {
        matches!(self, Self::AdaptiveError { .. })
    }

    /// Whether [`Seen::validation`] is needed.
    #[must_use]
    pub const fn needs_validation(&self) -> bool {
        matches!(self, Self::AdaptiveValidation { .. })
    }
}

/// How often `patience` values in a row failed to exceed the best so far by more than `tolerance`; after each time the wait
/// starts anew. What is not a number exceeds nothing.
fn stalls(values: impl Iterator<Item = f64>, patience: usize, tolerance: f64) -> i32 {
    let (mut best, mut waited, mut stalls) = (f64::NEG_INFINITY, 0, 0);
    for value in values {
        if value > best + tolerance {
            best = value;
            waited = 0;
            continue;
        }
        waited += 1;
        if waited == patience {
            waited = 0;
            stalls += 1;
        }
    }
    count(stalls)
}

fn count(steps: usize) -> i32 {
    i32::try_from(steps).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn schedules() -> impl Strategy<Value = Schedule> {
        let pace = (1.01..9.0_f64, 1..9_usize, 0.0..0.1_f64);
        (
            1.0..8.0_f64,
            0.0..200.0_f64,
            0.1..9.0_f64,
            1..50_usize,
            pace,
            0..6_u8,
        )
            .prop_map(|(to, above, slope, every, pace, kind)| {
                let from = to + above;
                let (factor, patience, tolerance) = pace;
                match kind {
                    0 => Schedule::Linear { from, to, slope },
                    1 => Schedule::Exponential { from, to },
                    2 => Schedule::Cosine { from, to },
                    3 => Schedule::Steps { from, to, every },
                    4 => Schedule::AdaptiveValidation {
                        from,
                        to,
                        factor,
                        patience,
                        tolerance,
                    },
                    _ => Schedule::AdaptiveError {
                        from,
                        to,
                        factor,
                        patience,
                        tolerance,
                    },
                }
            })
    }

    /// What a training may show: rises, falls, gaps, and what is not a number.
    fn trainings() -> impl Strategy<Value = Vec<Seen>> {
        let value = || {
            prop_oneof![
                6 => (0.0..1.0_f64).prop_map(Some),
                1 => Just(None),
                1 => Just(Some(f64::NAN)),
            ]
        };
        let seen = (value(), value()).prop_map(|(validation, error)| Seen { validation, error });
        prop::collection::vec(seen, 1..120)
    }

    proptest! {
        #[test]
        fn every_schedule_falls_or_stays_and_keeps_its_bounds_whatever_the_training_shows(
            schedule in schedules(),
            seen in trainings(),
        ) {
            let (from, to) = schedule.bounds();
            let epochs = seen.len();
            let ratio = |t: usize| schedule.ratio(t, epochs, &seen[..t]);
            let ratios: Vec<f64> = (0..epochs).map(ratio).collect();
            prop_assert!(schedule.check().is_ok());
            prop_assert!(ratios.windows(2).all(|pair| pair[1] <= pair[0]), "{ratios:?}");
            prop_assert!(ratios.iter().all(|r| (to..=from).contains(r)));
        }

        #[test]
        fn no_training_takes_a_ratio_below_the_least(schedule in schedules(), seen in trainings()) {
            let epochs = seen.len();
            for t in 0..epochs {
                let (ratio, least) = (schedule.ratio(t, epochs, &seen[..t]), schedule.least_ratio(t, epochs));
                prop_assert!(ratio >= least);
                prop_assert!(schedule.is_adaptive() || ratio == least);
            }
        }
    }

    /// Ratios of a schedule that halves from 8, waits for two, and looks for more than 0.01.
    fn halved(validation: &[f64]) -> Vec<f64> {
        let seen: Vec<Seen> = validation
            .iter()
            .map(|&accuracy| Seen {
                validation: Some(accuracy),
                error: Some(1.0 - accuracy),
            })
            .collect();
        let ratios = |schedule: Schedule| -> Vec<f64> {
            (0..=seen.len())
                .map(|t| schedule.ratio(t, 100, &seen[..t]))
                .collect()
        };
        let (from, to, factor, patience, tolerance) = (8.0, 1.0, 2.0, 2, 0.01);
        let by_validation = ratios(Schedule::AdaptiveValidation {
            from,
            to,
            factor,
            patience,
            tolerance,
        });
        let by_error = ratios(Schedule::AdaptiveError {
            from,
            to,
            factor,
            patience,
            tolerance,
        });
        // An error that falls is an accuracy that rises.
        assert_eq!(by_validation, by_error);
        by_validation
    }

    #[test]
    fn an_adaptive_schedule_stays_while_there_is_progress_and_falls_when_there_is_none() {
        assert_eq!(halved(&[0.2, 0.3, 0.4, 0.5]), [8.0; 5]);
        // 0.505 is not progress enough, and 0.4 is none; then the wait starts anew.
        assert_eq!(
            halved(&[0.5, 0.505, 0.4, 0.4, 0.4, 0.6, 0.6, 0.6]),
            [8.0, 8.0, 8.0, 4.0, 4.0, 2.0, 2.0, 2.0, 1.0]
        );
    }

    #[test]
    fn without_measurements_an_adaptive_schedule_stays() {
        let schedule = Schedule::AdaptiveError {
            from: 8.0,
            to: 1.0,
            factor: 2.0,
            patience: 1,
            tolerance: 0.0,
        };
        assert_eq!(schedule.ratio(50, 100, &[Seen::default(); 50]), 8.0);
    }

    #[test]
    fn the_linear_schedule_takes_the_values_of_the_authors_code() {
        let schedule = Schedule::default();
        for (epoch, expected) in [
            (0, 128.0),
            (10, 106.7),
            (20, 85.4),
            (30, 64.1),
            (40, 42.8),
            (50, 21.5),
            (55, 10.8),
            (58, 4.41),
            (59, 2.28),
            (60, 1.0),
        ] {
            let ratio = schedule.ratio(epoch, 300, &[]);
            assert!(
                (ratio - expected).abs() < 0.06,
                "epoch {epoch}: {ratio} ≠ {expected}"
            );
        }
    }

    /// Ratios in some epochs, by hand.
    fn assert_ratios(schedule: Schedule, epochs: usize, expected: &[(usize, f64)]) {
        for &(epoch, expected) in expected {
            let ratio = schedule.ratio(epoch, epochs, &[]);
            assert!(
                (ratio - expected).abs() < 1e-3,
                "{schedule:?}, epoch {epoch} of {epochs}: {ratio} ≠ {expected}"
            );
        }
    }

    #[test]
    fn the_exponential_schedule_takes_the_values_of_its_formula() {
        // 128 · exp(−t · ln(128 / 2) / 100): a quarter of the way 128 / 64^¼ = 128 / 2√2, half-way 128 / 8.
        let schedule = Schedule::Exponential {
            from: 128.0,
            to: 2.0,
        };
        let quarter = 128.0 / (2.0 * 2.0_f64.sqrt());
        let expected = [
            (0, 128.0),
            (25, quarter),
            (50, 16.0),
            (100, 2.0),
            (101, 2.0),
        ];
        assert_ratios(schedule, 102, &expected);
        // 128 · 2^(−7 t / 298).
        let schedule = Schedule::Exponential {
            from: 128.0,
            to: 1.0,
        };
        let expected = [(0, 128.0), (149, 128.0_f64.sqrt()), (298, 1.0), (299, 1.0)];
        assert_ratios(schedule, 300, &expected);
    }

    #[test]
    fn the_cosine_schedule_takes_the_values_of_its_formula() {
        // 2 + 126 · (1 + cos(π t / 100)) / 2: at an eighth of a turn 2 + 63 · (1 + √½), half-way the mean.
        let schedule = Schedule::Cosine {
            from: 128.0,
            to: 2.0,
        };
        let expected = [
            (0, 128.0),
            (25, 109.5477),
            (50, 65.0),
            (75, 20.4523),
            (100, 2.0),
            (101, 2.0),
        ];
        assert_ratios(schedule, 102, &expected);
    }

    #[test]
    fn the_schedule_of_steps_takes_the_values_of_its_formula() {
        // 2^⌈(300 − t) / 50⌉.
        let schedule = |from, to| Schedule::Steps {
            from,
            to,
            every: 50,
        };
        let expected = [
            (0, 64.0),
            (49, 64.0),
            (50, 32.0),
            (149, 16.0),
            (150, 8.0),
            (151, 8.0),
            (249, 4.0),
            (250, 2.0),
            (299, 2.0),
        ];
        assert_ratios(schedule(128.0, 1.0), 300, &expected);
        // Within bounds.
        let expected = [(0, 20.0), (99, 20.0), (100, 16.0), (200, 4.0), (299, 3.0)];
        assert_ratios(schedule(20.0, 3.0), 300, &expected);
    }

    #[test]
    fn a_rising_schedule_or_a_ratio_below_one_is_refused() {
        assert!(Schedule::Cosine { from: 2.0, to: 4.0 }.check().is_err());
        assert!(Schedule::Cosine { from: 2.0, to: 0.5 }.check().is_err());
        assert!(
            Schedule::Linear {
                from: 2.0,
                to: 1.0,
                slope: 0.0
            }
            .check()
            .is_err()
        );
        let adaptive = |factor, patience| Schedule::AdaptiveError {
            from: 2.0,
            to: 1.0,
            factor,
            patience,
            tolerance: 0.0,
        };
        assert!(adaptive(1.0, 1).check().is_err());
        assert!(adaptive(2.0, 0).check().is_err());
        assert!(Schedule::default().check().is_ok());
    }
}
