//! Claims about results, and the verdict on each.
//!
//! A claim states what a measure of one cell should be, alone or against another cell. The measure
//! is one number per seed; comparisons pair the two cells seed by seed and keep the seeds that
//! both have finished. Over seeds stands the mean with its interval, and two one-sided p-values: of
//! the condition being broken, and of its being met. The verdict is
//!
//! - `reproduced` if the first is small: the whole interval meets the condition,
//! - `not reproduced` if the second is: no part of it does,
//! - `inconclusive` otherwise, with fewer seeds than `statistics.minimum_seeds`, or without
//!   anything to measure.
//!
//! Small is judged for all claims of a family together, by Holm's correction of twice the smaller
//! of the two; a family is what has the same `source`, or names the same `family`. A claim alone is
//! judged by its interval. "Within" is thereby an equivalence test: a difference too noisy to be
//! told from a large one is inconclusive, not reproduced.
//!
//! A claim about strategies in a swept experiment must hold in every setting of the sweep: it is as
//! good as in its worst setting, whose figures are shown, and broken if one setting breaks it, at a
//! p-value times the number of settings. Settings that break it are worse than those that leave it
//! open, these are worse than those that meet it, and among equals the mean decides. With `over =
//! "best"` ("up to") one setting has to meet it, and all is the other way round; with `over =
//! "mean"` ("on average") the mean over all settings has to, taken seed by seed.
//!
//! A run that never reached the target accuracy has no `seconds_to_target` and `bytes_to_target`,
//! but one knows that they are more than the run took: it is censored, not left out, and a verdict
//! must hold wherever beyond that bound they may be. So with a run that was not evaluated within a
//! budget, whose accuracy there may be anything, and with all accuracies of a run that diverged:
//! what it had reached before is not what its training comes to.

mod compare;
mod evidence;
mod family;
mod sequence;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::rows::{ClaimRow, ClaimVerdict, ColumnKind, Quantity, Row, RunRow, Sweep};
use super::statistics::{Statistics, alike_seeds, detectable, seeds_needed};
use crate::sim::TrainingConfig;
use compare::Over;
use evidence::{Answers, Evidence, Question, answers, is_factor};
use family::{adjusted, first_tail};
use sequence::{Looked, at_looks};

pub use compare::Comparison;
pub(super) use compare::Named;
pub(super) use sequence::{open_cells, seeds_by_rule, seeds_taken};

/// A derived measure: payload of features, activations and their gradients.
const NODE_DATA_BYTES: &str = "node_data_bytes";

/// One `[[claim]]` of an experiment file.
///
/// # Example
/// ```
/// use grapevine::experiment::claims::{ClaimSpec, judge};
/// use grapevine::experiment::statistics::Statistics;
///
/// let claim: ClaimSpec = toml::from_str(
///     "id = 'fewer-bytes'\nsource = 'the paper'\nstatement = 'a tenth of the bytes'\n\
///      measure = 'payload_bytes'\n\
///      compare = { strategy = 'retexo', to = 'full', times_less = 10 }",
/// )
/// .expect("it is TOML");
/// // Without runs there is nothing to judge by.
/// let verdict = &judge(&[claim], &[], &Statistics::default())[0];
/// assert_eq!(verdict.verdict.to_string(), "inconclusive");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimSpec {
    /// A short name, unique in the file.
    pub id: String,
    /// Where the claim is made, for example `arXiv 2406.17611, abstract`.
    pub source: String,
    /// The claim in words.
    pub statement: String,
    /// One of [`measures`].
    pub measure: String,
    /// What the measure should be.
    pub compare: Comparison,
    /// The published value, as the source prints it: shown beside ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<String>,
    /// Claims of one family are corrected together; default: those of one source that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// What a reader of the verdict should know: the reason, where it is known. Shown beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What a claim can be about: the columns of `runs` that hold numbers, and `node_data_bytes`.
pub fn measures() -> Vec<&'static str> {
    RunRow::COLUMNS
        .iter()
        .filter(|column| column.kind != ColumnKind::Text)
        .map(|column| column.name)
        .chain([NODE_DATA_BYTES])
        .collect()
}

/// What a cell's training says of the goal without which a measure is not there, and its key; none
/// of measures that need none.
pub(super) fn goal(measure: &str, training: &TrainingConfig) -> Option<(&'static str, Value)> {
    let (key, value) = match measure {
        "seconds_to_target" | "bytes_to_target" => {
            ("target_accuracy", json!(training.target_accuracy))
        }
        "accuracy_at_byte_budget" => ("byte_budget", json!(training.byte_budget)),
        "accuracy_at_time_budget" => ("time_budget", json!(training.time_budget)),
        _ => return None,
    };
    Some((key, value))
}

/// Whether a measure is an accuracy, which is from 0 to 1.
pub(super) fn is_accuracy(measure: &str) -> bool {
    measure.contains("accuracy")
}

/// Whether a measure has few values: shares of test nodes, and what is known after whole
/// evaluations alone. Equal ones tell little of their spread.
fn is_coarse(measure: &str) -> bool {
    is_accuracy(measure) || measure.ends_with("_to_target") || measure == "best_epoch"
}

/// The measure's value for a run, or the two bounds it lies between: a target that was not reached
/// takes more than the run, and the accuracy of a run that was not evaluated within a budget, or
/// that diverged, may be anything, and so may times that were measured beside other programs.
fn measure(run: &RunRow, name: &str) -> Option<(f64, f64)> {
    let measured = run.measured?;
    if name == NODE_DATA_BYTES {
        let bytes = measured.node_data_bytes() as f64;
        return Some((bytes, bytes));
    }
    // More than the run took is all that is known of a target it never reached.
    let bounds = match name {
        "seconds_to_target" => Some((measured.simulated_seconds, f64::INFINITY)),
        "bytes_to_target" => Some((measured.payload_bytes as f64, f64::INFINITY)),
        "accuracy_at_byte_budget" | "accuracy_at_time_budget" => Some((0.0, 1.0)),
        _ => None,
    };
    if measured.diverged_at.is_some() && is_accuracy(name) {
        return Some((0.0, 1.0));
    }
    if measured.is_noisy() {
        match name {
            "accuracy_at_time_budget" => return Some((0.0, 1.0)),
            _ if name.contains("seconds") => return Some((0.0, f64::INFINITY)),
            _ => {}
        }
    }
    run.number(name).map(|value| (value, value)).or(bounds)
}

impl ClaimSpec {
    /// The key of a text that tables cannot show: it is empty, or has a line break.
    pub(super) fn unreadable(&self) -> Option<&'static str> {
        let texts = [
            ("id", &self.id),
            ("source", &self.source),
            ("statement", &self.statement),
        ];
        let bad = |text: &str| text.trim().is_empty() || text.chars().any(char::is_control);
        let found = texts.into_iter().find(|(_, text)| bad(text));
        found.map(|(key, _)| key)
    }

    /// What its numbers are.
    fn quantity(&self) -> Quantity {
        match self.measure.as_str() {
            _ if is_factor(self) => Quantity::Number,
            measure if measure.contains("bytes") => Quantity::Bytes,
            measure if measure.contains("seconds") => Quantity::Seconds,
            _ => Quantity::Number,
        }
    }

    /// The condition in words, for example `test_accuracy of varco within 0.01 of full`.
    pub(crate) fn expected(&self) -> String {
        let condition = self.compare.in_words(self.quantity());
        format!("{} of {condition}", self.measure)
    }

    /// Whether all that the claim allows lies between two values of what it measures.
    pub(in crate::experiment) fn lies_between(&self, least: f64, most: f64) -> bool {
        Question::of(self).lies_between(least, most)
    }

    /// Whether in all settings, with all seeds, both sides are one training under two names, which
    /// says nothing of what sets them apart.
    fn is_about_one_training(&self, runs: &[RunRow], settings: &[Option<&Sweep>]) -> bool {
        let Some(to) = self.compare.baseline() else {
            return false;
        };
        let of = |setting: Option<&Sweep>, what: &str| {
            let own = runs
                .iter()
                .filter(|run| Named::from(*run).is(setting, what));
            own.map(|run| (run.seed, run)).collect::<BTreeMap<_, _>>()
        };
        let same = |setting: Option<&Sweep>| {
            let (own, to) = (of(setting, self.compare.strategy()), of(setting, to));
            let mut pairs = own
                .iter()
                .filter_map(|(seed, run)| Some((*run, *to.get(seed)?)));
            own.keys().any(|seed| to.contains_key(seed))
                && pairs.all(|(run, other)| run.is_training_of(other))
        };
        !settings.is_empty() && settings.iter().copied().all(same)
    }

    /// All that the finished runs say about the claim, and what was asked of which settings.
    /// Settings of a sweep that have no runs yet are not looked at. One-sided p-values up to `tail`
    /// decide.
    fn evidence(&self, runs: &[RunRow], statistics: &Statistics, tail: f64) -> (String, Evidence) {
        let cells = runs.iter().map(Named::from);
        let settings = self.compare.settings(cells);
        if self.is_about_one_training(runs, &settings) {
            let asked = format!("{} (one training under two names)", self.expected());
            return (asked, Evidence::NOTHING);
        }
        let answers: Vec<Answers> = (settings.iter())
            .map(|setting| answers(self, runs, *setting))
            .collect();
        let of = |answers: &Answers, settings: &[_]| {
            let question = Question::of(self).in_settings(self, runs, settings);
            Evidence::of(answers, question, statistics)
        };
        let asked = self.expected();
        let together = |text: String| match settings.len() {
            0 | 1 => asked.clone(),
            _ => format!("{asked}, {text}"),
        };
        let count = settings.len();
        let best = match self.compare.over {
            Over::Mean => {
                let text = together(format!("on average over {count} settings"));
                return (text, of(&Question::of(self).mean(&answers), &settings));
            }
            Over::Best => true,
            Over::Each => false,
        };
        let all: Vec<Evidence> = (answers.iter().zip(settings.chunks(1)))
            .map(|(answers, setting)| of(answers, setting))
            .collect();
        let Some((told, evidence)) = Evidence::of_settings(&all, best, tail) else {
            return (asked, Evidence::NOTHING);
        };
        let setting = settings[told].map_or(String::new(), ToString::to_string);
        let text = if best {
            format!("in the best of {count} settings ({setting})")
        } else {
            format!("in each of {count} settings (worst: {setting})")
        };
        (together(text), evidence)
    }
}

/// What the runs say of one claim.
#[derive(Clone)]
struct Found {
    /// What was asked of which settings.
    expected: String,
    evidence: Evidence,
    /// Two-sided, and of several looks the least, each divided by its share of the level.
    p_value: Option<f64>,
    /// The verdict, should the p-value be small enough.
    verdict: ClaimVerdict,
    /// None where there is one look.
    looked: Option<Looked>,
}

impl Found {
    /// By all runs at once.
    fn of(claim: &ClaimSpec, runs: &[RunRow], statistics: &Statistics, tail: f64) -> Self {
        let (expected, evidence) = claim.evidence(runs, statistics, tail);
        Self {
            expected,
            p_value: evidence.p_value(),
            verdict: evidence.verdict(),
            evidence,
            looked: None,
        }
    }
}

/// One row of results for each claim: mean and interval over the seeds of finished runs, of
/// strategy − to for `within` and the differences, of the factor to / strategy for `times_less`,
/// and of the measure itself otherwise; and the verdict.
pub fn judge(claims: &[ClaimSpec], runs: &[RunRow], statistics: &Statistics) -> Vec<ClaimRow> {
    let Some(looks) = statistics.looks else {
        let found = claims.iter().map(|claim| {
            let tail = first_tail(claim, claims, statistics);
            Found::of(claim, runs, statistics, tail)
        });
        return rows(claims, runs, found.collect(), statistics);
    };
    let at_looks = at_looks(runs, looks);
    let found = |claim| {
        let tail = first_tail(claim, claims, statistics);
        sequence::found(claim, &at_looks, (looks, tail), statistics)
    };
    let found: Vec<Vec<Found>> = claims.iter().map(found).collect();
    let mut decided_after: Vec<Option<u64>> = vec![None; claims.len()];
    let mut judged = Vec::new();
    for (look, seeds) in looks.counts().into_iter().enumerate() {
        let after = found.iter().map(|after| after[look].clone());
        judged = rows(claims, runs, after.collect(), statistics);
        for (row, decided) in judged.iter().zip(&mut decided_after) {
            if row.verdict != ClaimVerdict::Inconclusive {
                decided.get_or_insert(seeds as u64);
            }
        }
    }
    let all = judged.into_iter().zip(decided_after);
    all.map(|(row, decided_after)| ClaimRow {
        decided_after,
        ..row
    })
    .collect()
}

/// A row for each claim of which this was found.
fn rows(
    claims: &[ClaimSpec],
    runs: &[RunRow],
    found: Vec<Found>,
    statistics: &Statistics,
) -> Vec<ClaimRow> {
    // A claim that nothing is known of yet may be decided by a later look, and counts from the
    // first.
    let unknown = statistics.looks.map(|_| 1.0);
    let p_values: Vec<Option<f64>> = found.iter().map(|one| one.p_value.or(unknown)).collect();
    let adjusted = adjusted(claims, &p_values, statistics.correction);
    let rows = claims.iter().zip(found).zip(adjusted);
    rows.map(|((claim, found), p_adjusted)| ClaimRow {
        repartition_bytes: moved_beside(claim, runs),
        ..row(
            claim,
            found,
            p_adjusted,
            first_tail(claim, claims, statistics),
            statistics,
        )
    })
    .collect()
}

/// The most that repartitioning moved in a finished run of the strategy that a claim about an
/// amount of node data is about. By our count it is none, but graph and features: whoever reads "no
/// node data" sees it beside it.
fn moved_beside(claim: &ClaimSpec, runs: &[RunRow]) -> Option<f64> {
    if claim.measure != NODE_DATA_BYTES || claim.compare.baseline().is_some() {
        return None;
    }
    let settings = claim.compare.settings(runs.iter().map(Named::from));
    let asked = |run: &&RunRow| {
        let named = Named::from(*run);
        let mut settings = settings.iter();
        settings.any(|setting| named.is(*setting, claim.compare.strategy()))
    };
    let moved = |run: &RunRow| Some(run.measured?.repartition_bytes as f64);
    let most = runs.iter().filter(asked).filter_map(moved).reduce(f64::max);
    most.filter(|moved| *moved > 0.0)
}

/// The row of a claim, which one-sided p-values up to `tail` decide.
fn row(
    claim: &ClaimSpec,
    found: Found,
    p_adjusted: Option<f64>,
    tail: f64,
    statistics: &Statistics,
) -> ClaimRow {
    let Found {
        expected,
        evidence,
        p_value,
        verdict,
        looked,
    } = found;
    let p_adjusted = p_value.and(p_adjusted);
    let decided = p_adjusted.is_some_and(|p| p <= 1.0 - statistics.level);
    // Of the last look so far, and of all.
    let now = looked.map_or(1.0, |looked| looked.share);
    let last = statistics
        .looks
        .map_or(1.0, |looks| looks.share(looks.counts().len() - 1));
    let question = Question::of(claim);
    let needed = |distances: [f64; 2], among: usize| {
        let tail = tail * last / among as f64;
        let seeds = seeds_needed(evidence.deviation?, distances, tail)?;
        let alike = if evidence.alike { alike_seeds(tail) } else { 0 };
        Some(seeds.max(alike).max(statistics.minimum_seeds) as u64)
    };
    let found = [evidence.spare.abs(), evidence.far];
    ClaimRow {
        id: claim.id.clone(),
        source: claim.source.clone(),
        statement: claim.statement.clone(),
        expected,
        measured: evidence.mean,
        low: evidence.low,
        high: evidence.high,
        verdict: if decided {
            verdict
        } else {
            ClaimVerdict::Inconclusive
        },
        paper: claim.paper.clone().unwrap_or_default(),
        seeds: evidence.seeds as u64,
        censored: evidence.censored as u64,
        p_value,
        p_adjusted,
        // Values that are all alike by their coarseness do not say how far they scatter.
        detectable: (evidence.deviation.filter(|_| !evidence.alike))
            .map(|deviation| {
                let tail = tail * now / evidence.among as f64;
                let difference = detectable(deviation, evidence.seeds, tail);
                question.as_told(difference, evidence.spare >= 0.0)
            })
            .filter(|difference| difference.is_finite()),
        seeds_needed: needed(found, evidence.among),
        seeds_if_equal: (question.at_equality(claim)).and_then(|equal| needed(equal, 1)),
        looks: looked.map(|looked| looked.count as u64),
        level_spent: looked.map(|looked| (1.0 - statistics.level) * looked.spent),
        decided_after: None,
        repartition_bytes: None,
        quantity: Some(claim.quantity()),
    }
}
