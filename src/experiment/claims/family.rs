//! Claims that are corrected together.

use super::ClaimSpec;
use crate::experiment::statistics::{Correction, Statistics, holm};

impl ClaimSpec {
    /// What it is corrected with: one family for each statement of a paper, where none is named.
    fn family(&self) -> (bool, &str) {
        let named = self.family.as_deref();
        // A family may be called as a source is.
        (named.is_some(), named.unwrap_or(&self.source))
    }
}

/// The one-sided p-value that decides a claim at the first step of Holm's method, the hardest,
/// where there is one look.
pub(super) fn first_tail(claim: &ClaimSpec, claims: &[ClaimSpec], statistics: &Statistics) -> f64 {
    let family = claims
        .iter()
        .filter(|other| other.family() == claim.family());
    let together = match statistics.correction {
        Correction::Holm => family.count(),
        Correction::None => 1,
    };
    // The decisive p-value is twice the smaller of two one-sided ones.
    (1.0 - statistics.level) / 2.0 / together as f64
}

/// P-values corrected within each family; those of claims with nothing to measure do not count.
pub(super) fn adjusted(
    claims: &[ClaimSpec],
    p_values: &[Option<f64>],
    correction: Correction,
) -> Vec<Option<f64>> {
    let mut adjusted = p_values.to_vec();
    if correction == Correction::None {
        return adjusted;
    }
    for (first, claim) in claims.iter().enumerate() {
        // Each family is corrected once, at its first claim.
        if claims[..first]
            .iter()
            .any(|other| other.family() == claim.family())
        {
            continue;
        }
        let family: Vec<usize> = (first..claims.len())
            .filter(|&index| claims[index].family() == claim.family() && p_values[index].is_some())
            .collect();
        let of_family: Vec<f64> = family.iter().filter_map(|&index| p_values[index]).collect();
        for (&index, p) in family.iter().zip(holm(&of_family)) {
            adjusted[index] = Some(p);
        }
    }
    adjusted
}
