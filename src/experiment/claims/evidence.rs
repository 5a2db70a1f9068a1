//! What finished runs say for and against a claim.

use std::collections::BTreeMap;

use super::compare::{Condition, Form, Named};
use super::{ClaimSpec, is_accuracy, is_coarse, measure};
use crate::experiment::rows::{ClaimVerdict, RunRow, Sweep};
use crate::experiment::statistics::{Sample, Statistics, alike_p};

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
    /// How far the other end of the condition is from a mean inside.
    pub far: f64,
    /// The number of settings that a p-value of what the runs speak for is multiplied with.
    pub among: usize,
    /// Standard deviation over seeds; none where of some a bound alone is known.
    pub deviation: Option<f64>,
    /// Whether they are all equal, and say nothing of their spread, as they are coarse.
    pub alike: bool,
}

/// What a seed's value lies between.
type Bounds = (f64, f64);

/// What is compared, by seed: the measure itself, a difference, or the quotient of which a factor
/// is the inverse.
pub(super) type Answers = BTreeMap<u64, Bounds>;

/// A condition as a question about a mean: does it lie from `low` to `high`?
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    low: f64,
    high: f64,
    /// Whether answers are quotients, and their inverse is told.
    inverse: bool,
    /// Whether a mean at the bound does not meet it: more by a margin of 0 is more.
    strict: bool,
    grain: Grain,
}

/// How many values answers may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grain {
    /// Any number of them.
    Fine,
    /// Few, as accuracies and targets have, and what is asked of has the same in all seeds.
    Coarse,
    /// Few, another in another seed, and more than the largest class: two that are equal seed by
    /// seed are trainings that came to the same, where both may have learnt nothing otherwise.
    Varied,
}

impl Question {
    /// What a claim asks.
    pub(super) fn of(claim: &ClaimSpec) -> Self {
        let (low, high) = match claim.compare.condition {
            Condition::Between { low, high } => (low, high),
            Condition::Relative { form, by, .. } => match form {
                Form::Within => (-by, by),
                Form::AtMostBelow => (-by, f64::INFINITY),
                Form::AtLeastAbove => (by, f64::INFINITY),
                Form::AtLeastBelow => (f64::NEG_INFINITY, -by),
                Form::TimesLess => (f64::NEG_INFINITY, 1.0 / by),
            },
        };
        let strict = matches!(
            claim.compare.condition,
            Condition::Relative { form: Form::AtLeastAbove | Form::AtLeastBelow, by, .. } if by == 0.0
        );
        Self {
            low,
            high,
            inverse: is_factor(claim),
            strict,
            grain: if is_coarse(&claim.measure) {
                Grain::Coarse
            } else {
                Grain::Fine
            },
        }
    }

    /// The same, asked of these settings.
    pub(super) fn in_settings(
        self,
        claim: &ClaimSpec,
        runs: &[RunRow],
        settings: &[Option<&Sweep>],
    ) -> Self {
        let own = |setting: Option<&Sweep>| {
            let own = values(claim, runs, setting, claim.compare.strategy());
            own.into_values().collect::<Vec<Bounds>>()
        };
        let varies = |values: Vec<Bounds>| values.iter().any(|value| *value != values[0]);
        let of = claim.compare.strategy();
        let learnt = |setting: Option<&Sweep>| {
            let own = runs.iter().filter(|run| Named::from(*run).is(setting, of));
            let mut known = own.filter_map(RunRow::learnt_nothing).peekable();
            // Of tables that do not say it nothing is held against them.
            known.peek().is_none() || known.any(|nothing| !nothing)
        };
        let tells = |setting| varies(own(setting)) && learnt(setting);
        // What a target took is a multiple of the time between evaluations, for any two trainings.
        let varied = is_accuracy(&claim.measure) && settings.iter().all(|one| tells(*one));
        Self {
            grain: if varied { Grain::Varied } else { self.grain },
            ..self
        }
    }

    /// Whether both bounds lie between these two values. A claim with one bound never does.
    pub(super) fn lies_between(self, least: f64, most: f64) -> bool {
        least < self.low && self.high < most
    }

    /// How far what is equal lies from the nearer bound, and from the other if it is between them;
    /// none for claims about a number.
    pub(super) fn at_equality(self, claim: &ClaimSpec) -> Option<[f64; 2]> {
        claim.compare.baseline()?;
        let equal = self.equality();
        let spares = [equal - self.low, self.high - equal];
        let nearest = spares[0].min(spares[1]);
        Some(if nearest < 0.0 {
            [-nearest, f64::INFINITY]
        } else {
            [nearest, spares[0].max(spares[1])]
        })
    }

    /// A difference from the bound in the unit in which the mean is told: of a quotient that is the
    /// bound, towards smaller factors, or towards larger ones where the mean is there; infinite
    /// where no factor is so large.
    pub(super) fn as_told(self, difference: f64, inside: bool) -> f64 {
        let factor = |quotient: f64| {
            if quotient > 0.0 {
                1.0 / quotient
            } else {
                f64::INFINITY
            }
        };
        match (self.inverse, inside) {
            (false, _) => difference,
            (true, false) => factor(self.high) - factor(self.high + difference),
            (true, true) => factor(self.high - difference) - factor(self.high),
        }
    }

    /// Whether values say which side of a bound they are on and nothing about their spread: all are
    /// equal, though they are coarse. Two trainings that came to the same are what they are.
    fn finds_alike(self, values: &[Bounds]) -> bool {
        let Some(&(first, _)) = values.first() else {
            return false;
        };
        let slack = ROUNDING * first.abs().max(1.0);
        let equal = |x: f64| (x - first).abs() <= slack;
        let alike = values.iter().all(|&(from, to)| equal(from) && equal(to));
        let same = self.grain == Grain::Varied && equal(self.equality());
        self.grain != Grain::Fine && alike && values.len() > 1 && !same
    }

    /// The answer of two sides that are equal: of a difference 0, of a quotient 1.
    fn equality(self) -> f64 {
        f64::from(u8::from(self.inverse))
    }

    /// The mean of what several settings answer, for each seed that all of them have: the
    /// arithmetic one, and of quotients the geometric one (Fleming and Wallace, CACM 1986).
    pub(super) fn mean(self, settings: &[Answers]) -> Answers {
        let Some((first, others)) = settings.split_first() else {
            return Answers::new();
        };
        let count = settings.len() as f64;
        let mean = |of: &dyn Fn(&Bounds) -> f64, all: &[Bounds]| {
            if self.inverse {
                (all.iter().map(|bounds| of(bounds).ln()).sum::<f64>() / count).exp()
            } else {
                all.iter().map(of).sum::<f64>() / count
            }
        };
        let of_seed = |(seed, &bounds): (&u64, &Bounds)| {
            let rest = others.iter().map(|setting| setting.get(seed).copied());
            let all: Option<Vec<Bounds>> = std::iter::once(Some(bounds)).chain(rest).collect();
            let all = all?;
            Some((*seed, (mean(&|b| b.0, &all), mean(&|b| b.1, &all))))
        };
        first.iter().filter_map(of_seed).collect()
    }
}

pub(super) const fn is_factor(claim: &ClaimSpec) -> bool {
    matches!(
        claim.compare.condition,
        Condition::Relative {
            form: Form::TimesLess,
            ..
        }
    )
}

/// What the finished runs of one setting answer, seed by seed; of a comparison, the seeds that both
/// cells have.
pub(super) fn answers(claim: &ClaimSpec, runs: &[RunRow], setting: Option<&Sweep>) -> Answers {
    let own = values(claim, runs, setting, claim.compare.strategy());
    let Some(to) = claim.compare.baseline() else {
        return own;
    };
    let to = values(claim, runs, setting, to);
    let factor = is_factor(claim);
    // Of two that have nothing neither has less.
    let quotient = |x: f64, to: f64| if x == 0.0 && to == 0.0 { 1.0 } else { x / to };
    let pairs = own
        .iter()
        .filter_map(|(&seed, x)| Some((seed, x, to.get(&seed)?)));
    pairs
        .map(|(seed, x, to)| {
            // The least has the most of the baseline, and the largest the least.
            let answer = if factor {
                (quotient(x.0, to.1), quotient(x.1, to.0))
            } else {
                (x.0 - to.1, x.1 - to.0)
            };
            (seed, answer)
        })
        .collect()
}

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
        far: f64::INFINITY,
        among: 1,
        deviation: None,
        alike: false,
    };

    /// What answers say to a question.
    pub(super) fn of(answers: &Answers, question: Question, statistics: &Statistics) -> Self {
        let values: Vec<Bounds> = answers.values().copied().collect();
        let evidence = Self::between(&values, question, statistics);
        if question.inverse {
            evidence.inverse()
        } else {
            evidence
        }
    }

    /// What values, or bounds of them, say about low ≤ mean ≤ high.
    fn between(values: &[Bounds], question: Question, statistics: &Statistics) -> Self {
        let Question { low, high, .. } = question;
        let censored = values.iter().filter(|(from, to)| from < to).count();
        let side = |of: fn(&Bounds) -> f64| {
            statistics.sample(&values.iter().map(of).collect::<Vec<f64>>())
        };
        // The mean is nowhere below the one and nowhere above the other; they are one where nothing
        // is censored.
        let (least, most) = (side(|bounds| bounds.0), side(|bounds| bounds.1));
        let enough = values.len() >= statistics.minimum_seeds;
        if least.is_none() && most.is_none() {
            // Nothing but bounds is known of a seed, which is a measurement too: the claim takes
            // part in the correction, with a p-value of 1.
            return Self {
                seeds: values.len(),
                censored,
                judged: enough && !values.is_empty(),
                ..Self::boundless(values, question, enough)
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
        // By the mean, not by the interval's end, which would put the noisiest setting first.
        // Without a bound that is known, the mean may be anywhere.
        let of = |sample: &Option<Sample>| sample.as_ref().map(|sample| sample.mean);
        let (from, to) = (
            of(&least).unwrap_or(f64::NEG_INFINITY),
            of(&most).unwrap_or(f64::INFINITY),
        );
        let spares = [from - low, high - to];
        let spare = spares[0].min(spares[1]);
        let evidence = Self {
            mean,
            low: ends.0,
            high: ends.1,
            seeds: values.len(),
            censored,
            spare,
            far: if spare < 0.0 {
                f64::INFINITY
            } else {
                spares[0].max(spares[1])
            },
            deviation: (least.as_ref().filter(|_| censored == 0)).and_then(Sample::deviation),
            ..Self::NOTHING
        };
        if !enough {
            return evidence;
        }
        let forgiven = if question.strict { -ROUNDING } else { ROUNDING };
        let slack = |bound: f64| forgiven * bound.abs().max(1.0);
        let alike = question.finds_alike(values);
        let least_p = if alike { alike_p(values.len()) } else { 0.0 };
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
            holds: holds.max(least_p),
            fails: fails.max(least_p),
            alike,
            ..evidence
        }
    }

    /// What values say of which the baseline has nothing in every seed: they are above any bound.
    fn boundless(values: &[Bounds], question: Question, enough: bool) -> Self {
        if values.is_empty() || values.iter().any(|&(from, _)| from != f64::INFINITY) {
            return Self::NOTHING;
        }
        let end = (values.len() > 1).then_some(f64::INFINITY);
        Self {
            mean: Some(f64::INFINITY),
            low: end,
            high: end,
            fails: if enough && question.high.is_finite() {
                0.0
            } else {
                1.0
            },
            ..Self::NOTHING
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
    pub(super) fn verdict(&self) -> ClaimVerdict {
        if self.holds <= self.fails {
            ClaimVerdict::Reproduced
        } else {
            ClaimVerdict::NotReproduced
        }
    }

    /// What several settings say of a claim about the best of them, or about each; and the setting
    /// whose figures are told, given the one-sided p-value that decides alone.
    ///
    /// That one of them is shown to be so is shown where any of them shows it: the smallest p-value
    /// counts, times their number. That each is so, only where all of them show it: the largest
    /// counts, and needs no correction.
    pub(super) fn of_settings(all: &[Self], best: bool, tail: f64) -> Option<(usize, Self)> {
        let count = all.len();
        // What one of them can show, and what all of them must.
        let of_one = |one: &Self| if best { one.holds } else { one.fails };
        let of_each = |one: &Self| if best { one.fails } else { one.holds };
        let least = all.iter().map(of_one).fold(1.0, f64::min);
        let one = (least * count as f64).min(1.0);
        let each = all.iter().map(of_each).fold(0.0, f64::max);
        // Those that decide come first, then those that leave it open. Where the claim hangs on one
        // of these, that one does: it may decide at a later step of a correction, which is milder.
        let place = |evidence: &Self| {
            let first = if one < each {
                of_one(evidence) <= least
            } else {
                of_each(evidence) > tail
            };
            match (of_one(evidence) <= tail / count as f64, first) {
                (true, _) => 0,
                (_, true) => 1,
                _ => 2,
            }
        };
        // Of equals the first.
        let told = (0..count).min_by(|&a, &b| {
            let (a, b) = (&all[a], &all[b]);
            let by_mean = a.spare.total_cmp(&b.spare);
            let by_mean = if best { by_mean.reverse() } else { by_mean };
            place(a).cmp(&place(b)).then(by_mean)
        })?;
        let (holds, fails) = if best { (one, each) } else { (each, one) };
        // More seeds would show what its mean says.
        let shown_by_one = best == (all[told].spare >= 0.0);
        let evidence = Self {
            holds,
            fails,
            among: if shown_by_one { count } else { 1 },
            judged: all.iter().any(|one| one.judged),
            ..all[told]
        };
        Some((told, evidence))
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
