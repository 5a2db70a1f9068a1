//! How good predictions are: accuracy, ROC-AUC, micro-F1.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::graph::{Labels, Metric, Several};

/// The class of the largest logit; the first of several equal ones.
fn largest(row: &[f32]) -> u32 {
    let mut best = 0;
    for (class, value) in row.iter().enumerate() {
        // Not a number compares as smaller: a row of such has class 0, which counts as right by
        // chance only.
        if *value > row[best] {
            best = class;
        }
    }
    best as u32
}

/// How good the `logits`, `[rows, outputs]` row by row, are for these nodes, in 0 to 1. `None`
/// where nothing can be said: of no nodes, and of ROC-AUC where all nodes have the same labels.
pub fn score(
    metric: Metric,
    logits: &[f32],
    outputs: usize,
    labels: &Labels,
    nodes: &[u32],
) -> Option<f64> {
    PartScore::new(metric, logits, outputs, labels, nodes).score()
}

/// What some nodes say of how good predictions are. Put together, those of all nodes say what
/// [`score`] does, to the bit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PartScore {
    /// Nodes that count.
    nodes: u64,
    /// What is right, of what: nodes, or for micro-F1 2 TP of 2 TP + FP + FN.
    right: u64,
    of: u64,
    /// For ROC-AUC, which ranks all nodes, logits and labels of these.
    ranked: Option<(Vec<f32>, Several)>,
}

impl PartScore {
    /// That of these nodes; arguments as for [`score`].
    pub(crate) fn new(
        metric: Metric,
        logits: &[f32],
        outputs: usize,
        labels: &Labels,
        nodes: &[u32],
    ) -> Self {
        let row = |v: u32| &logits[v as usize * outputs..][..outputs];
        match (labels, metric) {
            (Labels::Classes(classes), _) => {
                // Nodes without a label count as wrong.
                let right = |v: &&u32| classes[**v as usize] == Some(largest(row(**v)));
                Self {
                    nodes: nodes.len() as u64,
                    right: nodes.iter().filter(right).count() as u64,
                    of: nodes.len() as u64,
                    ranked: None,
                }
            }
            (Labels::Several(several), Metric::RocAuc) => {
                let logits = nodes.iter().flat_map(|&v| row(v)).copied().collect();
                Self {
                    ranked: Some((logits, several.select(nodes))),
                    ..Self::default()
                }
            }
            (Labels::Several(several), _) => overlap(logits, several, nodes),
        }
    }

    /// With the nodes of another.
    #[must_use]
    pub(crate) fn plus(mut self, other: Self) -> Self {
        self.nodes += other.nodes;
        self.right += other.right;
        self.of += other.of;
        self.ranked = match (self.ranked, other.ranked) {
            (Some((mut logits, mut labels)), Some((more, theirs))) => {
                logits.extend(more);
                labels.append(theirs);
                Some((logits, labels))
            }
            (one, other) => one.or(other),
        };
        self
    }

    /// The score of all nodes, in 0 to 1; `None` as of [`score`].
    pub(crate) fn score(&self) -> Option<f64> {
        if let Some((logits, labels)) = &self.ranked {
            let nodes: Vec<u32> = (0_u32..).take(labels.nodes()).collect();
            return roc_auc(logits, labels, &nodes);
        }
        // Where no node has a label and none is said to, nothing is right of nothing: 0.
        (self.nodes > 0).then(|| self.right as f64 / self.of.max(1) as f64)
    }
}

/// The nodes of which labels are known.
fn known<'a>(several: &'a Several, nodes: &'a [u32]) -> impl Iterator<Item = usize> + 'a {
    let nodes = nodes.iter().map(|&v| v as usize);
    nodes.filter(|&v| several.is_known(v))
}

/// The mean over labels that some of the nodes have and others have not, of the area under the
/// receiver operating characteristic, by the sum of ranks (Mann and Whitney, 1947). Nodes of which
/// nothing is known do not count.
fn roc_auc(logits: &[f32], several: &Several, nodes: &[u32]) -> Option<f64> {
    let labels = several.labels();
    let of_label = |label: usize| {
        let of = |v: usize| (logits[v * labels + label], several.has(v, label));
        area(known(several, nodes).map(of).collect())
    };
    let areas: Vec<Option<f64>> = (0..labels).into_par_iter().map(of_label).collect();
    // In the order of labels, whichever thread was done first.
    let areas: Vec<f64> = areas.into_iter().flatten().collect();
    (!areas.is_empty()).then(|| areas.iter().sum::<f64>() / areas.len() as f64)
}

/// The chance that a positive has a higher score than a negative, ties counted half.
fn area(mut scored: Vec<(f32, bool)>) -> Option<f64> {
    // Unstable is enough: what ties is counted together below.
    scored.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut ranks, mut positives, mut before) = (0.0, 0_usize, 0_usize);
    // Equal scores share the mean of their ranks; 0 and −0 are equal and stand together.
    for tied in scored.chunk_by(|a, b| a.0 == b.0) {
        let rank = before as f64 + (tied.len() + 1) as f64 / 2.0;
        let here = tied.iter().filter(|(_, positive)| *positive).count();
        ranks += rank * here as f64;
        positives += here;
        before += tied.len();
    }
    let negatives = scored.len() - positives;
    let lowest = positives as f64 * (positives + 1) as f64 / 2.0;
    (positives > 0 && negatives > 0)
        .then(|| (ranks - lowest) / (positives as f64 * negatives as f64))
}

/// `2 TP` of `2 TP + FP + FN` over nodes of which labels are known; their share is 0 where none is
/// there and none is predicted, as scikit-learn has it.
fn overlap(logits: &[f32], several: &Several, nodes: &[u32]) -> PartScore {
    let labels = several.labels();
    let mut sum = PartScore::default();
    for v in known(several, nodes) {
        sum.nodes += 1;
        for (label, &logit) in logits[v * labels..][..labels].iter().enumerate() {
            // A logit above 0 is a chance above one half.
            let (is, said) = (several.has(v, label), logit > 0.0);
            sum.right += 2 * u64::from(is && said);
            // 2 TP + FP + FN: true positives are in both sums, so they count twice.
            sum.of += u64::from(is) + u64::from(said);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: usize = 60;
    const LABELS: usize = 5;

    /// Logits of 17 values and more, so that many are equal, and labels of which the fourth is
    /// nobody's and the fifth everybody's.
    fn drawn() -> (Vec<f32>, Labels) {
        let mut state = 7_u32;
        let mut draw = || {
            // The generator of Numerical Recipes, which a line of Python repeats for scikit-learn.
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        let count = NODES * LABELS;
        let mut logits: Vec<f32> = (0..count)
            .map(|_| (draw() % 17) as f32 / 4.0 - 2.0)
            .collect();
        let mut has: Vec<bool> = (0..count).map(|_| draw() % 5 < 2).collect();
        for (logit, has) in logits.iter_mut().zip(&has) {
            *logit += if *has { 0.75 } else { 0.0 };
        }
        let mut several = Several::new(LABELS);
        for has in has.chunks_exact_mut(LABELS) {
            (has[3], has[4]) = (false, true);
            several.push(Some(has));
        }
        (logits, several.into())
    }

    fn near(found: Option<f64>, expected: f64) {
        let found = found.expect("there is a score");
        assert!(
            (found - expected).abs() < 1e-12,
            "{found} is not {expected}"
        );
    }

    #[test]
    fn scores_of_several_labels_are_those_of_scikit_learn() {
        // scikit-learn 1.9.1: the mean of roc_auc_score over the three labels with both kinds of
        // nodes, and f1_score(has, logits > 0, average="micro").
        let (logits, labels) = drawn();
        let of = |metric, nodes: &[u32]| score(metric, &logits, LABELS, &labels, nodes);
        let all: Vec<u32> = (0..60).collect();
        near(of(Metric::RocAuc, &all), 0.635_097_661_667_71);
        near(of(Metric::MicroF1, &all), 0.583_050_847_457_627_1);
        let some: Vec<u32> = (10..40).collect();
        near(of(Metric::RocAuc, &some), 0.628_337_802_357_410_2);
        near(of(Metric::MicroF1, &some), 0.628_930_817_610_062_9);
    }

    #[test]
    fn each_area_is_that_of_scikit_learn() {
        let (logits, labels) = drawn();
        let several = labels.several().unwrap();
        let of_label = |label: usize| {
            let scored = (0..NODES).map(|v| (logits[v * LABELS + label], several.has(v, label)));
            area(scored.collect())
        };
        near(of_label(0), 0.514_652_014_652_014_6);
        near(of_label(1), 0.701_527_614_570_929);
        near(of_label(2), 0.689_113_355_780_022_4);
        assert_eq!((of_label(3), of_label(4)), (None, None));
    }

    #[test]
    fn ties_count_half_whatever_the_sign_of_zero() {
        near(area(vec![(2.0, false), (2.0, true), (2.0, true)]), 0.5);
        near(area(vec![(0.0, false), (-0.0, true)]), 0.5);
        near(area(vec![(-1.0, false), (1.0, true)]), 1.0);
        near(area(vec![(1.0, false), (-1.0, true)]), 0.0);
    }

    #[test]
    fn what_is_not_known_does_not_count_and_nothing_has_no_score() {
        let mut several = Several::new(1);
        several.push(Some(&[true]));
        several.push(None);
        several.push(Some(&[false]));
        let labels = several.into();
        let logits = [1.0, -5.0, 0.0];
        let of = |metric, nodes: &[u32]| score(metric, &logits, 1, &labels, nodes);
        assert_eq!(of(Metric::RocAuc, &[0, 1, 2]), Some(1.0));
        assert_eq!(of(Metric::MicroF1, &[0, 1, 2]), Some(1.0));
        assert_eq!(of(Metric::RocAuc, &[0, 1]), None);
        assert_eq!(
            (of(Metric::MicroF1, &[1]), of(Metric::MicroF1, &[])),
            (None, None)
        );
        // Nobody has it and nobody is said to: scikit-learn's 0.
        assert_eq!(of(Metric::MicroF1, &[2]), Some(0.0));
    }

    #[test]
    fn accuracy_is_the_share_of_largest_logits_that_are_the_class() {
        let labels = Labels::from(vec![Some(1), Some(0), None]);
        let logits = [0.0, 1.0, 2.0, 2.0, 9.0, 0.0];
        let of = |nodes: &[u32]| score(Metric::Accuracy, &logits, 2, &labels, nodes);
        assert_eq!(of(&[0, 1]), Some(1.0));
        assert_eq!(of(&[0, 1, 2]), Some(2.0 / 3.0));
        assert_eq!(of(&[]), None);
    }
}
