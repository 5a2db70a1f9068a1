//! Compression ratios that fall during training.

use serde::{Deserialize, Serialize};

use crate::strategies::OptionError;

/// Highest compression ratio: nobody has so many columns.
pub(crate) const HIGHEST_RATIO: f64 = 1e9;

/// A compression ratio by epoch. Non-increasing, and within `[to, from]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Schedule {
    /// The same throughout, which experiment files call `ratio`.
    #[serde(skip)]
    Constant(f64),
    /// `max(from − slope·t·(from − to)/(T − 2), to)`: the schedule of VARCO's code, reaching `to`
    /// after 1/slope of the training.
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
    /// Divided by `factor` whenever the validation loss has not fallen below the least so far by
    /// more than `tolerance` in `patience` evaluations in a row; or the accuracy has not risen so.
    AdaptiveValidation {
        /// What stalls. Default: the loss.
        #[serde(default)]
        measure: ValidationMeasure,
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
        /// Loss lost, or accuracy gained, that counts. Default 0.001.
        #[serde(default = "tolerance")]
        tolerance: f64,
    },
    /// Divided by `factor` whenever the relative compression error of all rows sent forward, over
    /// layers and workers, has not fallen below the least so far by more than `tolerance` in
    /// `patience` epochs in a row. Measuring it takes an all-reduce of two numbers in every epoch.
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

/// What [`Schedule::AdaptiveValidation`] watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValidationMeasure {
    /// Mean cross-entropy of the validation nodes.
    #[default]
    Loss,
    /// Share of them that is classified right.
    Accuracy,
}

/// What a past epoch showed, the same on all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Feedback {
    /// Validation accuracy after it, if it was evaluated.
    pub accuracy: Option<f64>,
    /// Validation loss after it, if it was evaluated.
    pub loss: Option<f64>,
    /// Relative compression error ‖x̃ − x‖² / ‖x‖² of all rows sent forward in it, if it was
    /// measured.
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
            Self::Constant(ratio) => (ratio, ratio),
            Self::Linear { from, to, .. }
            | Self::Exponential { from, to }
            | Self::Cosine { from, to }
            | Self::Steps { from, to, .. }
            | Self::AdaptiveValidation { from, to, .. }
            | Self::AdaptiveError { from, to, .. } => (from, to),
        }
    }

    /// Whether there is ever a ratio above 1.
    pub(crate) fn is_more_than_one(&self) -> bool {
        self.bounds().0 > 1.0
    }

    /// Whether the figures make a schedule.
    ///
    /// # Errors
    /// If a ratio is below 1, the end lies above the start, or the pace makes no sense.
    pub(crate) fn check(&self) -> Result<(), OptionError> {
        let (from, to) = self.bounds();
        let range = to >= 1.0 && from >= to && from <= HIGHEST_RATIO;
        let pace = match *self {
            Self::Linear { slope, .. } => slope > 0.0 && slope.is_finite(),
            Self::Steps { every, .. } => every > 0,
            Self::Constant(_) | Self::Exponential { .. } | Self::Cosine { .. } => true,
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
            "must have 10⁹ ≥ from ≥ to ≥ 1, and a positive slope, steps of at least one epoch, or a factor above 1 with a patience of at least 1 and a tolerance of at least 0",
        ))
    }

    /// The ratio in epoch `epoch` of `epochs`, after what the epochs before it showed. What is in
    /// `seen` matters to the adaptive schedules only.
    pub fn ratio(&self, epoch: usize, epochs: usize, seen: &[Feedback]) -> f64 {
        let (from, to) = self.bounds();
        let t = epoch as f64;
        // VARCO's code divides by T − 2; a training of two epochs or fewer must not divide by zero.
        let last = epochs.saturating_sub(2).max(1) as f64;
        let ratio = match *self {
            Self::Constant(ratio) => ratio,
            Self::Linear { slope, .. } => from - slope * t * (from - to) / last,
            Self::Exponential { .. } => from * (to / from).powf(t / last),
            Self::Cosine { .. } => {
                // The last epoch lies beyond T − 2, where a cosine would rise again.
                let phase = (t / last).min(1.0) * std::f64::consts::PI;
                to + (from - to) * (1.0 + phase.cos()) / 2.0
            }
            Self::Steps { every, .. } => {
                let steps = epochs.saturating_sub(epoch).div_ceil(every);
                2.0_f64.powi(count(steps))
            }
            Self::AdaptiveValidation {
                measure,
                factor,
                patience,
                tolerance,
                ..
            } => {
                // A loss that falls is progress: with its sign changed, more is better for both
                // measures. Epochs that were not evaluated are left out, so patience counts
                // evaluations.
                let good = seen.iter().filter_map(|epoch| match measure {
                    ValidationMeasure::Loss => epoch.loss.map(|loss| -loss),
                    ValidationMeasure::Accuracy => epoch.accuracy,
                });
                from / factor.powi(stalls(good, patience, tolerance))
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
        // The last epoch lies beyond T − 2, and steps and divisions know no bounds: all end here.
        ratio.clamp(to, from)
    }

    /// The lowest ratio that epoch `epoch` of `epochs` can have: of an adaptive schedule, that of a
    /// training in which nothing ever improves; of the others, the ratio. Plans in advance take it,
    /// and so are never too low.
    pub(crate) fn least_ratio(&self, epoch: usize, epochs: usize) -> f64 {
        // Values that are no numbers, not missing ones: only what was seen can fail to improve.
        let hopeless = Feedback {
            accuracy: Some(f64::NAN),
            loss: Some(f64::NAN),
            error: Some(f64::NAN),
        };
        if self.is_adaptive() {
            self.ratio(epoch, epochs, &vec![hopeless; epoch])
        } else {
            self.ratio(epoch, epochs, &[])
        }
    }

    /// Whether the ratio depends on how the training goes.
    pub(crate) const fn is_adaptive(&self) -> bool {
        matches!(
            self,
            Self::AdaptiveValidation { .. } | Self::AdaptiveError { .. }
        )
    }

    /// Whether [`Feedback::error`] is needed.
    pub(crate) const fn needs_error(&self) -> bool {
        matches!(self, Self::AdaptiveError { .. })
    }

    /// Whether [`Feedback::accuracy`] and [`Feedback::loss`] are needed.
    pub(crate) const fn needs_validation(&self) -> bool {
        matches!(self, Self::AdaptiveValidation { .. })
    }
}

/// How often `patience` values in a row failed to exceed the best so far by more than `tolerance`;
/// after each time the wait starts anew. What is not a number exceeds nothing.
fn stalls(values: impl Iterator<Item = f64>, patience: usize, tolerance: f64) -> i32 {
    let (mut best, mut waited, mut stalls) = (f64::NEG_INFINITY, 0, 0);
    for value in values {
        // Progress below the tolerance leaves the best as it was, so that slow progress adds up.
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
    // A factor to so high a power is infinite either way, and bounded afterwards.
    i32::try_from(steps).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
