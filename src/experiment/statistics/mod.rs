//! Statistics over seeds: means with intervals, the strength of evidence for and against a bound,
//! and its correction where many claims are judged together.

mod holm;
mod looks;
mod power;
mod sample;
mod summary;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use holm::holm;
pub use looks::Looks;
pub(crate) use power::{MOST_SEEDS, alike_p, alike_seeds, seeds_needed};
pub use power::{POWER, detectable};
pub use sample::Sample;
pub use summary::Summary;

/// `[statistics]`: how claims are judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Statistics {
    /// What intervals and p-values come from.
    pub(crate) interval: IntervalMethod,
    /// Confidence of intervals; 1 − `level` is the chance of a wrong verdict that a family of
    /// claims may have.
    pub(crate) level: f64,
    /// Verdicts need this many seeds; with fewer a claim is inconclusive.
    pub minimum_seeds: usize,
    /// What is done about several claims being judged at once.
    pub(crate) correction: Correction,
    /// Looks at the claims while seeds are added; none where all cells have the same. It is no key
    /// of the section: `seeds` of the file says it.
    #[serde(skip)]
    pub looks: Option<Looks>,
}

impl Default for Statistics {
    fn default() -> Self {
        Self {
            interval: IntervalMethod::StudentT,
            level: 0.95,
            minimum_seeds: 3,
            correction: Correction::Holm,
            looks: None,
        }
    }
}

impl Statistics {
    /// Whether it makes sense.
    ///
    /// # Errors
    /// The key that does not, and the rest of a sentence about it.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        if !(self.level > 0.0 && self.level < 1.0) {
            let what = format!("must be between 0 and 1, like 0.95, not {}", self.level);
            return Err(("level", what));
        }
        if self.minimum_seeds == 0 {
            return Err(("minimum_seeds", "must be 1 or more".to_owned()));
        }
        Ok(())
    }
}

impl fmt::Display for Statistics {
    /// As a sentence for captions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = match self.interval {
            IntervalMethod::StudentT => "Student's t",
            IntervalMethod::Bootstrap => "the bootstrap",
        };
        let corrected = match self.correction {
            Correction::Holm => "corrected by Holm's method within a family of claims",
            Correction::None => "not corrected for the number of claims",
        };
        write!(
            f,
            "Intervals of {} % and p-values are those of {method}. P-values are {corrected}. A verdict needs {} seeds.",
            self.level * 100.0,
            self.minimum_seeds
        )?;
        let Some(looks) = self.looks else {
            return Ok(());
        };
        let counts: Vec<String> = looks.counts().iter().map(ToString::to_string).collect();
        write!(
            f,
            " Seeds were added until claims were decided, with looks after {}; a p-value is the least of the looks, each divided by \
             the look's share of seeds. Intervals are those of all seeds, without regard to the looks.",
            counts.join(", ")
        )
    }
}

/// Where intervals and p-values of a mean over seeds come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalMethod {
    /// Student's t: exact for normally distributed values, and good for few seeds.
    StudentT,
    /// Percentiles of the means of 10,000 seeded resamples (Efron, 1979): assumes no distribution,
    /// but is too narrow for fewer than some ten seeds. No p-value is below that of a sign test,
    /// 1/2ⁿ for n seeds.
    Bootstrap,
}

/// How p-values of a family of claims are corrected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Correction {
    /// Holm (1979): keeps the chance that any verdict of the family is wrong near 1 − `level`.
    Holm,
    /// Every claim stands for itself.
    None,
}
