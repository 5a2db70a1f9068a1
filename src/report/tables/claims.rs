//! The claims and what came of them.

use super::{Entry, Table, columns};
use crate::experiment::rows::ClaimRow;
use crate::report::format;

/// The measured value with its interval: `0.012 [0.004, 0.02]`.
pub fn measured(claim: &ClaimRow) -> String {
    let Some(measured) = claim.measured else {
        return "–".into();
    };
    let measured = format::quantity(measured);
    match (claim.low, claim.high) {
        (Some(low), Some(high)) => {
            format!(
                "{measured} [{}, {}]",
                format::quantity(low),
                format::quantity(high)
            )
        }
        _ => measured,
    }
}

/// One row per claim.
pub fn claims(claims: &[ClaimRow]) -> Table {
    Table {
        name: "claims",
        caption: "Claims, what was expected, what was measured (with its interval over seeds), and the verdict."
            .into(),
        columns: columns(&["claim", "source", "expected", "#measured", "verdict"]),
        rows: claims
            .iter()
            .map(|claim| {
                vec![
                    Entry::new(&claim.statement),
                    Entry::new(&claim.source),
                    Entry::new(&claim.expected),
                    Entry::new(measured(claim)),
                    Entry { text: claim.verdict.clone(), best: claim.verdict == ClaimRow::REPRODUCED },
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
        claim.low = None;
        assert_eq!(measured(&claim), "−0.012");
        claim.measured = None;
        assert_eq!(measured(&claim), "–");
    }
}
