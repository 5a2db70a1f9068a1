//! The claims and what came of them.

use super::{Entry, Table, columns};
use crate::experiment::rows::{ClaimRow, ClaimVerdict};
use crate::experiment::statistics::{MOST_SEEDS, Statistics};
use crate::report::format;

/// A value of a claim, or a difference of two: bytes and seconds as everywhere, all else as it is.
fn told(claim: &ClaimRow, value: f64) -> String {
    let text = claim.quantity.and_then(|of| of.with_unit(value));
    text.unwrap_or_else(|| format::quantity(value))
}

/// The measured value with its interval: `0.012 [0.004, 0.02]`; where of some runs a bound alone is
/// known, such as of those that never reached a target, the interval alone, and how many those are.
pub(crate) fn measured(claim: &ClaimRow) -> String {
    let end = |end: Option<f64>| end.map_or("?".to_owned(), |end| told(claim, end));
    let finite = |end: Option<f64>| end.filter(|end| end.is_finite());
    let interval = match (claim.low, claim.high) {
        // Bounds of nothing, such as of targets that no run reached.
        (low, high) if finite(low).is_none() && finite(high).is_none() => None,
        (low, high) => Some(format!("[{}, {}]", end(low), end(high))),
    };
    let censored = (claim.censored > 0).then(|| {
        format!(
            "with only a bound known for {} of {} seeds",
            claim.censored, claim.seeds
        )
    });
    if claim.measured.is_none() && interval.is_none() && claim.censored > 0 {
        return format!(
            "nothing: for {} of {} seeds only a bound is known: a target was not reached, a training diverged, or a busy machine took the time",
            claim.censored, claim.seeds
        );
    }
    let moved = (claim.repartition_bytes)
        .map(|moved| format!("+ up to {} repartitioned", format::bytes(moved)));
    let parts = [
        claim.measured.map(|measured| told(claim, measured)),
        interval,
        censored,
        moved,
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        "–".into()
    } else {
        parts.join(" ")
    }
}

/// The seeds that were measured; of an open claim how many would tell the mean as it is, too.
fn seeds(claim: &ClaimRow) -> String {
    match claim.seeds_needed {
        Some(needed) if claim.verdict == ClaimVerdict::Inconclusive => {
            format!("{} of {}", claim.seeds, format::grouped(needed as f64))
        }
        // The mean lies too near to its bound.
        None if claim.verdict == ClaimVerdict::Inconclusive && claim.detectable.is_some() => {
            let most = format::grouped(MOST_SEEDS as f64);
            format!("{} of over {most}", claim.seeds)
        }
        _ => claim.seeds.to_string(),
    }
}

/// The distance from the bound that these seeds tell; a dash where nothing is known of it.
pub(crate) fn detectable(claim: &ClaimRow) -> String {
    claim
        .detectable
        .map_or_else(|| "–".into(), |distance| told(claim, distance))
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
             distance from the bound that these seeds tell with a chance of 80 %, how many they are (of an open claim also how many would \
             tell what was measured), the p-value that decides, and the verdict.{}",
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
            "#seeds",
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
                    Entry::new(detectable(claim)),
                    Entry::new(seeds(claim)),
                    Entry::new(p_value(claim)),
                    Entry {
                        text: claim.verdict.to_string(),
                        best: claim.verdict == ClaimVerdict::Reproduced,
                    },
                ]
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::Quantity;

    #[test]
    fn an_open_claim_says_how_many_seeds_would_tell() {
        let mut claim = ClaimRow {
            seeds: 5,
            seeds_needed: Some(1_517),
            verdict: ClaimVerdict::Inconclusive,
            ..ClaimRow::default()
        };
        assert_eq!(seeds(&claim), "5 of 1517");
        claim.verdict = ClaimVerdict::Reproduced;
        assert_eq!(seeds(&claim), "5");
        (claim.verdict, claim.seeds_needed) = (ClaimVerdict::Inconclusive, None);
        assert_eq!(seeds(&claim), "5");
        claim.detectable = Some(0.02);
        assert_eq!(seeds(&claim), "5 of over 10\u{2009}000");
    }

    #[test]
    fn no_node_data_stands_beside_what_repartitioning_moved() {
        let claim = ClaimRow {
            measured: Some(0.0),
            repartition_bytes: Some(35_300_000.0),
            ..ClaimRow::default()
        };
        assert_eq!(measured(&claim), "0 + up to 35.3 MB repartitioned");
    }

    #[test]
    fn a_finding_has_a_unit() {
        let claim = ClaimRow {
            quantity: Some(Quantity::Bytes),
            measured: Some(99_466_939_376_636.0),
            low: Some(9e13),
            high: Some(1.1e14),
            detectable: Some(5e12),
            ..ClaimRow::default()
        };
        assert_eq!(measured(&claim), "99.5 TB [90.0 TB, 110 TB]");
        let table = claims(&[claim], None);
        let texts: Vec<&str> = table.rows[0].iter().map(|entry| &*entry.text).collect();
        assert!(texts.contains(&"5.00 TB"), "{texts:?}");
    }

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
        let text = "[−0.02, ?] with only a bound known for 2 of 3 seeds";
        assert_eq!(
            measured(&ClaimRow {
                low: Some(-0.02),
                ..claim.clone()
            }),
            text
        );
        // No run has reached its target: bounds of nothing.
        (claim.high, claim.censored) = (Some(f64::INFINITY), 3);
        assert_eq!(
            measured(&claim),
            "nothing: for 3 of 3 seeds only a bound is known: a target was not reached, a training diverged, or a busy machine took the time"
        );
        (claim.low, claim.high, claim.censored) = (None, None, 0);
        assert_eq!(measured(&claim), "–");
    }
}
