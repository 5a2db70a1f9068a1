//! What a small test set can tell: claims about a point, where chance alone is more than that.

use std::collections::BTreeMap;

use super::claims::{ClaimSpec, Named, is_accuracy};
use super::rows::{RunRow, distinct};
use super::statistics::Summary;
use crate::graph::Metric;

/// Test sets of so many nodes are large enough for a claim about a point.
const ENOUGH: usize = 5_000;

/// Margins up to this are about a point.
const FINE: f64 = 0.02;

/// The standard normal distribution has 95 % within so many deviations.
const WITHIN: f64 = 1.96;

/// The difference of two accuracies near `accuracy` on `nodes` test nodes that chance alone does
/// not exceed in 95 % of such sets, where the models err independently: 1.96 √(2 p (1 − p) / n).
/// Models that err on the same nodes differ less.
fn resolved(accuracy: f64, nodes: usize) -> f64 {
    WITHIN * (2.0 * accuracy * (1.0 - accuracy) / nodes as f64).sqrt()
}

/// A sentence for each small test set that a claim about a point is judged on. Data sets are names
/// and numbers of test nodes.
pub(super) fn notes<'a>(
    claims: &[ClaimSpec],
    runs: &[RunRow],
    data: impl Iterator<Item = (&'a str, usize)>,
) -> Vec<String> {
    // One name may be that of several graphs: the smallest says the most.
    let mut nodes: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, test) in data.filter(|(_, test)| (1..ENOUGH).contains(test)) {
        let least = nodes.entry(name).or_insert(test);
        *least = test.min(*least);
    }
    let fine = claims.iter().filter(|claim| {
        let margin = claim.compare.margin();
        let of_test = is_accuracy(&claim.measure) && !claim.measure.starts_with("val_");
        of_test && margin.is_some_and(|margin| margin <= FINE)
    });
    let fine: Vec<_> = fine
        .map(|claim| (claim, claim.compare.cells(runs.iter().map(Named::from))))
        .collect();
    let mut notes = Vec::new();
    for (name, nodes) in nodes {
        let own = runs.iter().filter(|run| run.dataset == name);
        let own: Vec<&RunRow> = own.filter(|run| run.metric() == Metric::Accuracy).collect();
        let asked = fine
            .iter()
            .filter(|(_, cells)| own.iter().any(|run| cells.contains(run.cell.as_str())));
        let ids = distinct(asked.map(|(claim, _)| claim.id.as_str()));
        let scores = own.iter().filter_map(|run| run.measured?.test_accuracy);
        let (false, Some(scores)) = (ids.is_empty(), Summary::of(scores)) else {
            continue;
        };
        notes.push(format!(
            "{name} has {nodes} test nodes, which tell {:.1} points from chance (95 %, of two models of {:.0} % that err independently; \
             less of models that err alike): the verdicts on {} are about these nodes, and about others only with a larger test set",
            100.0 * resolved(scores.mean, nodes),
            100.0 * scores.mean,
            ids.join(", ")
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::Measured;

    #[test]
    fn chance_is_that_of_two_binomial_shares() {
        // Two polls of 1,067 people each at 50 %: 3 points each, and √2 times that for two.
        assert!((resolved(0.5, 1067) - 0.03 * 2.0_f64.sqrt()).abs() < 1e-4);
        assert!(resolved(1.0, 10).abs() < 1e-12);
    }

    fn runs(cell: &str) -> Vec<RunRow> {
        let run = RunRow {
            cell: cell.to_owned(),
            strategy: cell.to_owned(),
            dataset: "cora".to_owned(),
            ..RunRow::finished(Measured {
                test_accuracy: Some(0.8),
                ..Measured::default()
            })
        };
        vec![run]
    }

    fn claim(measure: &str, margin: f64) -> ClaimSpec {
        toml::from_str(&format!(
            "id = 'near'\nsource = 's'\nstatement = 'x'\nmeasure = '{measure}'\n\
             compare = {{ strategy = 'b', to = 'full', within = {margin} }}"
        ))
        .unwrap()
    }

    #[test]
    fn a_claim_about_a_point_on_a_small_set_is_told_once_and_others_are_not() {
        let rows = [runs("full"), runs("b")].concat();
        let told = |claims: &[ClaimSpec], test| notes(claims, &rows, [("cora", test)].into_iter());
        let near = claim("test_accuracy", 0.01);
        let both = told(&[near.clone(), near.clone()], 1000);
        assert_eq!(both.len(), 1);
        assert!(
            both[0].contains("cora has 1000 test nodes, which tell 3.5 points"),
            "{both:?}"
        );
        assert!(both[0].contains("the verdicts on near are"), "{both:?}");
        assert!(told(&[near], 5000).is_empty());
        assert!(told(&[claim("test_accuracy", 0.05)], 1000).is_empty());
        assert!(told(&[claim("payload_bytes", 0.01)], 1000).is_empty());
        assert!(told(&[claim("val_accuracy", 0.01)], 1000).is_empty());
    }
}
