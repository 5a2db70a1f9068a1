//! Claims about results, and the verdict on each.
//!
//! A claim states what a measure of one cell should be, alone or against another cell. The measure
//! is one number per seed; comparisons pair the two cells seed by seed and keep the seeds that
//! both have finished. Over seeds stands the mean with its 95 % Student-t interval. The verdict is
//!
//! - `reproduced` if the whole interval meets the condition,
//! - `not reproduced` if no part of it does,
//! - `inconclusive` otherwise, or if there is nothing to measure.
//!
//! A claim about strategies in a swept experiment must hold in every setting of the sweep: the
//! worst setting's verdict is the claim's, and its figures are the ones shown.
//!
//! A single seed has no interval: the value itself decides, and `low` and `high` stay null. Equal
//! values make an interval of no width. "Within" is thereby an equivalence test: a difference too
//! noisy to be told from a large one is inconclusive, not reproduced.

mod compare;
mod estimate;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::rows::{ClaimRow, ColumnKind, Row, RunRow};
use compare::Condition;
pub(in crate::experiment) use estimate::Estimate;

pub use compare::Comparison;

/// A derived measure: payload of features, activations and their gradients.
const NODE_DATA_BYTES: &str = "node_data_bytes";

/// One `[[claim]]` of an experiment file.
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

fn measure(run: &RunRow, name: &str) -> Option<f64> {
    if name == NODE_DATA_BYTES {
        return Some(run.node_data_bytes() as f64);
    }
    run.number(name)
}

impl ClaimSpec {
    /// The condition in words, for example `test_accuracy of varco within 0.01 of full`.
    pub fn expected(&self) -> String {
        format!("{} of {}", self.measure, self.compare)
    }

    /// The claim's row of results: mean and 95 % interval over the seeds of finished runs, of
    /// strategy − to for `within` and `at_most_below`, of the factor to / strategy for
    /// `times_less`, and of the measure itself otherwise; and the verdict. Settings of a sweep that
    /// have no runs yet are not looked at.
    pub fn judge(&self, runs: &[RunRow]) -> ClaimRow {
        let cells = runs
            .iter()
            .map(|run| (run.cell.as_str(), run.strategy.as_str()));
        let settings = self.compare.settings(cells);
        let judged = settings
            .iter()
            .map(|setting| (*setting, self.judge_setting(runs, setting)));
        // The first of the worst: `min_by` keeps the first of equals.
        let worst = judged.min_by(|(_, a), (_, b)| a.compare(*b));
        let (setting, judgement) = worst.unwrap_or(("", Judgement::NOTHING));
        let expected = match settings.len() {
            0 | 1 => self.expected(),
            count => format!(
                "{}, in each of {count} settings (worst: {})",
                self.expected(),
                setting.trim_end()
            ),
        };
        let estimate = judgement.estimate;
        ClaimRow {
            id: self.id.clone(),
            source: self.source.clone(),
            statement: self.statement.clone(),
            expected,
            measured: estimate.map(|found| found.mean),
            low: estimate.and_then(|found| Some(found.interval?.0)),
            high: estimate.and_then(|found| Some(found.interval?.1)),
            verdict: judgement.verdict().to_owned(),
        }
    }

    fn judge_setting(&self, runs: &[RunRow], setting: &str) -> Judgement {
        let own = self.values(runs, &format!("{setting}{}", self.compare.strategy()));
        let paired = |to: &str, of: fn(f64, f64) -> f64| -> Vec<f64> {
            let base = self.values(runs, &format!("{setting}{to}"));
            own.iter()
                .filter_map(|(seed, &x)| Some(of(x, *base.get(seed)?)))
                .collect()
        };
        let (values, low, high) = match &self.compare.condition {
            Condition::Within { to, margin } => (paired(to, |x, to| x - to), -margin, *margin),
            Condition::AtMostBelow { to, margin } => {
                (paired(to, |x, to| x - to), -margin, f64::INFINITY)
            }
            Condition::TimesLess { to, factor } => {
                (paired(to, |x, to| x / to), f64::NEG_INFINITY, 1.0 / factor)
            }
            Condition::Between { low, high } => (own.into_values().collect(), *low, *high),
        };
        let Some(estimate) = Estimate::over(&values) else {
            return Judgement::NOTHING;
        };
        let spare = estimate.spare(low, high);
        let estimate = match self.compare.condition {
            Condition::TimesLess { .. } => estimate.inverse(),
            _ => estimate,
        };
        Judgement {
            estimate: Some(estimate),
            spare,
        }
    }

    fn values(&self, runs: &[RunRow], cell: &str) -> BTreeMap<u64, f64> {
        runs.iter()
            .filter(|run| run.cell == cell && run.is_ok())
            .filter_map(|run| Some((run.seed, measure(run, &self.measure)?)))
            .collect()
    }
}

/// What the runs of one setting say about a claim.
#[derive(Clone, Copy)]
struct Judgement {
    estimate: Option<Estimate>,
    /// See [`Estimate::spare`].
    spare: (f64, f64),
}

impl Judgement {
    /// Nothing to measure: the interval may be anywhere.
    const NOTHING: Self = Self {
        estimate: None,
        spare: (f64::NEG_INFINITY, f64::INFINITY),
    };

    fn verdict(self) -> &'static str {
        let (worse, better) = self.spare;
        if worse >= 0.0 {
            ClaimRow::REPRODUCED
        } else if better < 0.0 {
            ClaimRow::NOT_REPRODUCED
        } else {
            ClaimRow::INCONCLUSIVE
        }
    }

    /// Orders from worst to best: by verdict, then by what is to spare.
    fn compare(self, other: Self) -> Ordering {
        let by_verdict = self.refuted_first().cmp(&other.refuted_first());
        by_verdict.then(self.spare.0.total_cmp(&other.spare.0))
    }

    fn refuted_first(self) -> u8 {
        match self.verdict() {
            ClaimRow::NOT_REPRODUCED => 0,
            ClaimRow::INCONCLUSIVE => 1,
            _ => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(measure: &str, compare: &str) -> Result<ClaimSpec, String> {
        let text = format!(
            "id = 'c'\nsource = 's'\nstatement = 'x'\nmeasure = '{measure}'\ncompare = {compare}"
        );
        toml::from_str(&text).map_err(|error: toml::de::Error| error.message().to_owned())
    }

    /// One run per value, with seeds from 0.
    fn runs(cell: &str, accuracies: &[f64], bytes: &[u64]) -> Vec<RunRow> {
        let run = |(seed, (&accuracy, &bytes)): (usize, (&f64, &u64))| RunRow {
            cell: cell.to_owned(),
            strategy: cell.rsplit(' ').next().unwrap_or_default().to_owned(),
            seed: seed as u64,
            test_accuracy: Some(accuracy),
            feature_bytes: bytes,
            status: RunRow::OK.to_owned(),
            ..RunRow::default()
        };
        accuracies.iter().zip(bytes).enumerate().map(run).collect()
    }

    fn judge(measure: &str, compare: &str, runs: &[RunRow]) -> ClaimRow {
        claim(measure, compare).unwrap().judge(runs)
    }

    fn close(found: Option<f64>, expected: f64) {
        let found = found.unwrap();
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }

    #[test]
    fn the_interval_is_of_the_differences_paired_by_seed() {
        let mut rows = runs("full", &[0.80, 0.82, 0.84], &[0; 3]);
        rows.extend(runs("varco", &[0.79, 0.82, 0.83], &[0; 3]));
        let row = judge(
            "test_accuracy",
            "{ strategy = 'varco', to = 'full', within = 0.03 }",
            &rows,
        );
        // Differences −0.01, 0, −0.01: mean −1/150, sd 1/√30000, half width t(2)·sd/√3 = t(2)/300.
        close(row.measured, -1.0 / 150.0);
        close(row.low, -1.0 / 150.0 - 4.302_652_729_911 / 300.0);
        close(row.high, -1.0 / 150.0 + 4.302_652_729_911 / 300.0);
        assert_eq!(row.verdict, "reproduced");
        assert_eq!(row.expected, "test_accuracy of varco within 0.03 of full");
    }

    #[test]
    fn part_of_the_interval_is_inconclusive_and_none_of_it_not_reproduced() {
        let mut rows = runs("full", &[0.80, 0.82, 0.84], &[0; 3]);
        rows.extend(runs("varco", &[0.79, 0.82, 0.83], &[0; 3]));
        let verdict = |compare: &str| judge("test_accuracy", compare, &rows).verdict;
        let compare = "{ strategy = 'varco', to = 'full', within = 0.01 }";
        assert_eq!(verdict(compare), "inconclusive");
        assert_eq!(
            verdict("{ strategy = 'varco', at_least = 0.9 }"),
            "not reproduced"
        );
        assert_eq!(
            verdict("{ strategy = 'varco', at_most = 0.9 }"),
            "reproduced"
        );
        assert_eq!(
            verdict("{ strategy = 'varco', between = [0.7, 0.9] }"),
            "reproduced"
        );
        let compare = "{ strategy = 'varco', to = 'full', at_most_below = 0.03 }";
        assert_eq!(verdict(compare), "reproduced");
    }

    #[test]
    fn one_seed_decides_by_its_value_and_shows_no_interval() {
        let mut rows = runs("full", &[0.81], &[0]);
        rows.extend(runs("varco", &[0.80], &[0]));
        let compare = "{ strategy = 'varco', to = 'full', within = 0.01 }";
        let row = judge("test_accuracy", compare, &rows);
        assert_eq!((row.low, row.high), (None, None));
        assert_eq!(
            row.verdict, "reproduced",
            "0.81 − 0.80 is 0.01 whatever binary says"
        );
    }

    #[test]
    fn times_less_is_the_baseline_over_the_strategy() {
        let mut rows = runs("full", &[0.0; 2], &[1000, 1000]);
        rows.extend(runs("retexo", &[0.0; 2], &[100, 100]));
        rows.extend(runs("grappa", &[0.0; 2], &[0, 0]));
        let judge = |strategy: &str, to: &str| {
            let compare = format!("{{ strategy = '{strategy}', to = '{to}', times_less = 10 }}");
            judge("node_data_bytes", &compare, &rows)
        };
        let row = judge("retexo", "full");
        assert_eq!(
            (row.measured, row.low, row.high),
            (Some(10.0), Some(10.0), Some(10.0))
        );
        assert_eq!(row.verdict, "reproduced");
        assert_eq!(judge("full", "retexo").verdict, "not reproduced");
        let row = judge("grappa", "full");
        assert_eq!(
            (row.measured, row.verdict.as_str()),
            (Some(f64::INFINITY), "reproduced")
        );
        let row = judge("full", "grappa");
        assert_eq!((row.measured, row.verdict.as_str()), (None, "inconclusive"));
    }

    #[test]
    fn only_seeds_that_both_have_finished_count() {
        let mut rows = runs("full", &[0.8, 0.8, 0.8], &[0; 3]);
        rows.extend(runs("varco", &[0.8, 0.1], &[0; 2]));
        rows[4].status = "failed: out of memory".to_owned();
        let compare = "{ strategy = 'varco', to = 'full', within = 0 }";
        let row = judge("test_accuracy", compare, &rows);
        assert_eq!((row.measured, row.low), (Some(0.0), None));
        let row = judge("test_accuracy", "{ strategy = 'bns', equals = 0 }", &rows);
        assert_eq!((row.measured, row.verdict.as_str()), (None, "inconclusive"));
        let row = judge(
            "bytes_to_target",
            "{ strategy = 'full', equals = 0 }",
            &rows,
        );
        assert_eq!(row.measured, None, "null is not zero");
    }

    #[test]
    fn a_claim_about_strategies_must_hold_in_every_setting_of_a_sweep() {
        let mut rows = runs("workers=2 full", &[0.8], &[0]);
        rows.extend(runs("workers=2 varco", &[0.8], &[0]));
        rows.extend(runs("workers=4 full", &[0.8], &[0]));
        rows.extend(runs("workers=4 varco", &[0.7], &[0]));
        let row = judge(
            "test_accuracy",
            "{ strategy = 'varco', to = 'full', within = 0.01 }",
            &rows,
        );
        assert_eq!(row.verdict, "not reproduced");
        close(row.measured, -0.1);
        assert_eq!(
            row.expected,
            "test_accuracy of varco within 0.01 of full, in each of 2 settings (worst: workers=4)"
        );
        let row = judge(
            "test_accuracy",
            "{ strategy = 'varco', to = 'full', within = 0.2 }",
            &rows,
        );
        assert_eq!(row.verdict, "reproduced");
        close(row.measured, -0.1);
        let compare = "{ strategy = 'workers=2 varco', to = 'workers=4 full', within = 0 }";
        let row = judge("test_accuracy", compare, &rows);
        assert_eq!(
            row.verdict, "reproduced",
            "cells may be named across settings"
        );
        assert_eq!(
            row.expected,
            "test_accuracy of workers=2 varco within 0 of workers=4 full"
        );
    }

    #[test]
    fn a_setting_without_a_finished_run_leaves_a_claim_open_but_does_not_hide_a_refutation() {
        let mut rows = runs("workers=2 full", &[0.8], &[0]);
        rows.extend(runs("workers=4 full", &[0.8], &[0]));
        rows[0].status = "failed: out of memory".to_owned();
        let verdict = |compare: &str| judge("test_accuracy", compare, &rows).verdict;
        assert_eq!(
            verdict("{ strategy = 'full', at_least = 0.5 }"),
            "inconclusive"
        );
        assert_eq!(
            verdict("{ strategy = 'full', at_least = 0.9 }"),
            "not reproduced"
        );
    }

    #[test]
    fn measures_are_the_number_columns_and_node_data() {
        let measures = measures();
        assert!(measures.contains(&"test_accuracy") && measures.contains(&"node_data_bytes"));
        assert!(!measures.contains(&"strategy"));
    }
}
