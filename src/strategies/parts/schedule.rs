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
    /// `2^⌈(T − t)/every⌉`, within `[to, from]`.
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
            | Self::Steps { from, to, .. } => (from, to),
        }
    }

    /// Whether the figures make a schedule.
    ///
    /// # Errors
    /// If a ratio is below 1, the end lies above the start, or the slope or step is not positive.
    pub fn check(&self) -> Result<(), OptionError> {
        let (from, to) = self.bounds();
        let range = to >= 1.0 && from >= to && from.is_finite();
        let pace = match *self {
            Self::Linear { slope, .. } => slope > 0.0 && slope.is_finite(),
            Self::Steps { every, .. } => every > 0,
            Self::Exponential { .. } | Self::Cosine { .. } => true,
        };
        if range && pace {
            return Ok(());
        }
        Err(OptionError::key(
            "schedule",
            "must have from ≥ to ≥ 1, and a positive slope or steps of at least one epoch",
        ))
    }

    /// The ratio in epoch `epoch` of `epochs`.
    #[must_use]
    pub fn ratio(&self, epoch: usize, epochs: usize) -> f64 {
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
                2.0_f64.powi(i32::try_from(steps).unwrap_or(i32::MAX))
            }
        };
        ratio.clamp(to, from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn schedules() -> impl Strategy<Value = Schedule> {
        (
            1.0..8.0_f64,
            0.0..200.0_f64,
            0.1..9.0_f64,
            1..50_usize,
            0..4_u8,
        )
            .prop_map(|(to, above, slope, every, kind)| {
                let from = to + above;
                match kind {
                    0 => Schedule::Linear { from, to, slope },
                    1 => Schedule::Exponential { from, to },
                    2 => Schedule::Cosine { from, to },
                    _ => Schedule::Steps { from, to, every },
                }
            })
    }

    proptest! {
        #[test]
        fn every_schedule_falls_or_stays_and_keeps_its_bounds(
            schedule in schedules(),
            epochs in 1..400_usize,
        ) {
            let (from, to) = schedule.bounds();
            let ratios: Vec<f64> = (0..epochs).map(|t| schedule.ratio(t, epochs)).collect();
            prop_assert!(ratios.windows(2).all(|pair| pair[1] <= pair[0]));
            prop_assert!(ratios.iter().all(|r| (to..=from).contains(r)));
        }
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
            let ratio = schedule.ratio(epoch, 300);
            assert!(
                (ratio - expected).abs() < 0.06,
                "epoch {epoch}: {ratio} ≠ {expected}"
            );
        }
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
        assert!(Schedule::default().check().is_ok());
    }
}
