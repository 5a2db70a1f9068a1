//! The claims and what came of them.

use super::{Entry, Table, columns};
use crate::experiment::rows::ClaimRow;
use crate::experiment::statistics::Statistics;
use crate::report::format;

/// The measured value with its interval: `0.012 [0.004, 0.02]`; where of some runs a bound alone is
/// known, such as of those that never reached a target, the interval alone, and how many those are.
pub(crate) fn measured(claim: &ClaimRow) -> String {
    let end = |end: Option<f64>| end.map_or("?".to_owned(), format::quantity);
    let finite = |end: Option<f64>| end.filter(|end| end.is_finite());
    let interval = match (claim.low, claim.high) {
        // Bounds of nothing, such as of targets that no run reached.
        (low, high) if finite(low).is_none() && finite(high).is_none() => None,
        (low, high) => Some(format!("[{}, {}]", end(low), end(high))),
    };
    let censored = (claim.censored > 0).then(|| {
        format!(
            "with a bound alone for {} of {} seeds",
            claim.censored, claim.seeds
        )
    });
    if claim.measured.is_none() && interval.is_none() && claim.censored > 0 {
        return format!(
            "nothing: a bound alone for {} of {} seeds",
            claim.censored, claim.seeds
        );
    }
    let parts = [claim.measured.map(format::quantity), interval, censored];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        "–".into()
    } else {
        parts.join(" ")
    }
}

/// The p-value that decided, corrected for the family.
pub(crate) fn p_value(claim: &ClaimRow) -> String {
    match claim.p_adjusted {
        None => "–".into(),
        Some(p) if p < 0.001 => "< 0.001".into(),
        Some(p) => format!("{p:.3}"),
    }
}

/// One row per claim; `judging` says how verdicts come about, if that is known.
pub(crate) fn claims(claims: &[ClaimRow], judging: Option<&Statistics>) -> Table {
    let paper = |text: &str| Entry::new(if text.is_empty() { "–" } else { text });
    Table {
        name: "claims",
        caption: format!(
            "Claims, what the paper says, what was expected of our runs, what was measured (with its interval over seeds), the \
             distance from the bound that these seeds tell with a chance of 80 %, the p-value that decides, and the verdict.{}",
            judging.map_or(String::new(), |statistics| format!(" {statistics}"))
        ),
        columns: columns(&[
            "id",
            "claim",
            "source",
            "#paper",
            "expected",
            "#measured",
            "#can be told",
            "#p",
            "verdict",
        ]),
        rows: claims
            .iter()
            .map(|claim| {
                vec![
                    Entry::new(&claim.id),
                    Entry::new(&claim.statement),
                    Entry::new(&claim.source),
                    paper(&claim.paper),
                    Entry::new(&claim.expected),
                    Entry::new(measured(claim)),
                    Entry::new(
                        claim
                            .detectable
                            .map_or_else(|| "–".into(), format::quantity),
                    ),
                    Entry::new(p_value(claim)),
                    Entry {
                        text: claim.verdict.clone(),
                        best: claim.verdict == ClaimRow::REPRODUCED,
                    },
                ]
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_stands_beside_its_mean_and_one_seed_has_none() {
        let mut claim = ClaimRow {
            measured: Some(-0.012),
            low: Some(-0.02),
            high: Some(0.0),
            ..ClaimRow::default()
        };
        assert_eq!(measured(&claim), "−0.012 [−0.02, 0]");
        (claim.low, claim.high) = (None, None);
        assert_eq!(measured(&claim), "−0.012");
        claim.measured = None;
        (claim.seeds, claim.censored) = (3, 2);
        let text = "[−0.02, ?] with a bound alone for 2 of 3 seeds";
        assert_eq!(
            measured(&ClaimRow {
                low: Some(-0.02),
                ..claim.clone()
            }),
            text
        );
        // No run has reached its target: bounds of nothing.
        (claim.high, claim.censored) = (Some(f64::INFINITY), 3);
        assert_eq!(measured(&claim), "nothing: a bound alone for 3 of 3 seeds");
        (claim.low, claim.high, claim.censored) = (None, None, 0);
        assert_eq!(measured(&claim), "–");
    }
}
