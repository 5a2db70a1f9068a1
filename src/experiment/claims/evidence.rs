//! What finished runs say for and against a claim.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::compare::{Condition, Form, Named};
use super::{ClaimSpec, measure};
use crate::experiment::rows::{ClaimRow, RunRow, Sweep};
use crate::experiment::statistics::{Sample, Statistics};

/// Rounding that a condition forgives, relative to its bound (absolute below 1): 0.81 − 0.80 is
/// within 0.01.
const ROUNDING: f64 = 1e-12;

/// What the runs of one setting say of a condition low ≤ mean ≤ high.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    /// The mean over seeds; none if there is nothing to measure, or of some seeds a bound alone is
    /// known.
    pub mean: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// Seeds that were measured.
    pub seeds: usize,
    /// Those of them of which a bound alone is known.
    pub censored: usize,
    /// Whether there were enough seeds to judge by.
    pub judged: bool,
    /// P-value of the condition being broken: small if the runs show that it holds.
    pub holds: f64,
    /// P-value of the condition being met: small if the runs show that it fails.
    pub fails: f64,
    /// How far the mean is inside the condition; negative outside.
    pub spare: f64,
}

/// What a seed's value lies between.
type Bounds = (f64, f64);

impl Evidence {
    /// Nothing to measure.
    pub(super) const NOTHING: Self = Self {
        mean: None,
        low: None,
        high: None,
        seeds: 0,
        censored: 0,
        judged: false,
        holds: 1.0,
        fails: 1.0,
        spare: f64::NEG_INFINITY,
    };

    /// What the runs of one setting of the sweep say about a claim.
    pub(super) fn of(
        claim: &ClaimSpec,
        runs: &[RunRow],
        setting: Option<&Sweep>,
        statistics: &Statistics,
    ) -> Self {
        let values = |what: &str| values(claim, runs, setting, what);
        let own = values(claim.compare.strategy());
        let (form, to, by) = match &claim.compare.condition {
            Condition::Relative { form, to, by } => (form, values(to), *by),
            Condition::Between { low, high } => {
                let own: Vec<Bounds> = own.into_values().collect();
                return Self::between(&own, *low, *high, statistics);
            }
        };
        let paired = |of: fn(Bounds, Bounds) -> Bounds| -> Vec<Bounds> {
            let pairs = own
                .iter()
                .filter_map(|(seed, &x)| Some((x, *to.get(seed)?)));
            pairs.map(|(x, to)| of(x, to)).collect()
        };
        let (low, high) = match form {
            Form::Within => (-by, by),
            Form::AtMostBelow => (-by, f64::INFINITY),
            Form::AtLeastAbove => (by, f64::INFINITY),
            Form::AtLeastBelow => (f64::NEG_INFINITY, -by),
            Form::TimesLess => {
                // The least quotient has the most below, and the largest the least.
                let quotients = paired(|x, to| (x.0 / to.1, x.1 / to.0));
                let most = 1.0 / by;
                return Self::between(&quotients, f64::NEG_INFINITY, most, statistics).inverse();
            }
        };
        let differences = paired(|x, to| (x.0 - to.1, x.1 - to.0));
        Self::between(&differences, low, high, statistics)
    }

    /// What values, or bounds of them, say about low ≤ mean ≤ high.
    fn between(values: &[Bounds], low: f64, high: f64, statistics: &Statistics) -> Self {
        let censored = values.iter().filter(|(from, to)| from < to).count();
        let side = |of: fn(&Bounds) -> f64| {
            statistics.sample(&values.iter().map(of).collect::<Vec<f64>>())
        };
        // The mean is nowhere below the one and nowhere above the other; they are one where nothing is censored.
        let (least, most) = (side(|bounds| bounds.0), side(|bounds| bounds.1));
        let enough = values.len() >= statistics.minimum_seeds;
        if least.is_none() && most.is_none() {
            // Nothing but bounds is known of a seed, which is a measurement too: the claim takes
            // part in the correction, with a p-value of 1.
            return Self {
                seeds: values.len(),
                censored,
                judged: enough && censored > 0,
                ..Self::NOTHING
            };
        }
        let end = |sample: &Option<Sample>, of: fn((f64, f64)) -> f64| {
            let interval = sample.as_ref()?.interval(statistics.level)?;
            Some(of(interval))
        };
        let mean = match (&least, &most) {
            (Some(least), Some(_)) if censored == 0 => Some(least.mean),
            _ => None,
        };
        let ends = (end(&least, |ends| ends.0), end(&most, |ends| ends.1));
        // By the mean, not by the interval's end, which would put the noisiest setting first. Without a bound that is
        // known, the mean may be anywhere.
        let of = |sample: &Option<Sample>| sample.as_ref().map(|sample| sample.mean);
        let (from, to) = (
            of(&least).unwrap_or(f64::NEG_INFINITY),
            of(&most).unwrap_or(f64::INFINITY),
        );
        let evidence = Self {
            mean,
            low: ends.0,
            high: ends.1,
            seeds: values.len(),
            censored,
            spare: (from - low).min(high - to),
            ..Self::NOTHING
        };
        if !enough {
            return evidence;
        }
        let slack = |bound: f64| ROUNDING * bound.abs().max(1.0);
        // Both bounds have to hold, so that the larger p-value counts. To break one is enough:
        // there the smaller counts.
        let (mut holds, mut fails) = (0.0_f64, 1.0_f64);
        if low.is_finite() {
            let low = low - slack(low);
            holds = holds.max(least.as_ref().map_or(1.0, |least| least.not_above(low)));
            fails = fails.min(most.as_ref().map_or(1.0, |most| most.not_below(low)));
        }
        if high.is_finite() {
            let high = high + slack(high);
            holds = holds.max(most.as_ref().map_or(1.0, |most| most.not_below(high)));
            fails = fails.min(least.as_ref().map_or(1.0, |least| least.not_above(high)));
        }
        Self {
            judged: true,
            holds,
            fails,
            ..evidence
        }
    }

    /// The same of 1 / x for x ≥ 0; what reaches down to 0 reaches up to infinity. How it meets the
    /// condition stays as it is.
    fn inverse(self) -> Self {
        let inverse = |x: f64| if x > 0.0 { 1.0 / x } else { f64::INFINITY };
        Self {
            mean: self.mean.map(inverse),
            low: self.high.map(inverse),
            high: self.low.map(inverse),
            ..self
        }
    }

    /// Two-sided p-value of what the runs speak for; `None` if there is nothing to measure or there
    /// are too few seeds.
    pub(super) fn p_value(&self) -> Option<f64> {
        self.judged
            .then(|| (2.0 * self.holds.min(self.fails)).min(1.0))
    }

    /// What the runs speak for, should they be enough.
    pub(super) fn verdict(&self) -> &'static str {
        if self.holds <= self.fails {
            ClaimRow::REPRODUCED
        } else {
            ClaimRow::NOT_REPRODUCED
        }
    }

    /// Orders from worst to best: what fails at this one-sided p-value, what neither does, what
    /// holds; among these by the mean.
    pub(super) fn compare(&self, other: &Self, tail: f64) -> Ordering {
        let place = |one: &Self| match (one.fails <= tail, one.holds <= tail) {
            (true, _) => 0,
            (_, true) => 2,
            _ => 1,
        };
        let by_verdict = place(self).cmp(&place(other));
        by_verdict.then(self.spare.total_cmp(&other.spare))
    }
}

/// The measure of the finished runs of a strategy in a setting, or of a cell, by seed.
fn values(
    claim: &ClaimSpec,
    runs: &[RunRow],
    setting: Option<&Sweep>,
    what: &str,
) -> BTreeMap<u64, Bounds> {
    // In the order of seeds, so that sums round alike whatever the order of the rows.
    runs.iter()
        .filter(|run| Named::from(*run).is(setting, what))
        .filter_map(|run| Some((run.seed, measure(run, &claim.measure)?)))
        .collect()
}
