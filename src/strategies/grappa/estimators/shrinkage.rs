//! Pulling weights towards 1, which trades a little bias for less variance.

/// Add-κ smoothing of a coverage: `1 + λ_v (c_v − 1)` with `λ_v = d/(d + κ)`, which for one hop is
/// `(d_local + κ)/(d + κ)`. *(Derived, §4.8.)*
pub(crate) fn smoothed(coverage: f64, degree: usize, kappa: f64) -> f64 {
    let degree = degree as f64;
    if degree == 0.0 {
        return 1.0;
    }
    shrunk(coverage, degree / (degree + kappa))
}

/// `(d_local + 1)/(d + 2)`, with `d_local = c_v d`. *(The authors' code,
/// `fill_w_reampling_sampling_result_to_coo`: `max(i, 1)/(j + 1)` of degrees i in the chunks and j
/// in the whole graph, both with the self-loop that `augmentation_dgl_g` adds.)*
pub(crate) fn over_two_more(coverage: f64, degree: usize) -> f64 {
    let degree = degree as f64;
    (coverage * degree + 1.0) / (degree + 2.0)
}

/// Shrinkage of a weight towards 1: `1 + λ (w − 1)`. *(The paper's form.)*
pub(crate) fn shrunk(weight: f64, lambda: f64) -> f64 {
    1.0 + lambda * (weight - 1.0)
}

/// The plug-in `τ̂² = s_w²/b` of a batch weight from its `b` node weights; 0 for fewer than two, of
/// which no variance can be told. A factor `1 − b/n`, as for draws without replacement from a
/// worker's n nodes, would say that the weight of a whole part has no error: but what is random
/// there is the partition. *(Derived.)*
pub(crate) fn sampling_variance(weights: &[f64]) -> f64 {
    let b = weights.len() as f64;
    if b < 2.0 {
        return 0.0;
    }
    let mean = weights.iter().sum::<f64>() / b;
    let variance = weights.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / (b - 1.0);
    variance / b
}

/// λ of James and Stein (1961), positive part, for J weights of equal variance, given their number
/// and `Σ (w_j − 1)²`, which is all that workers need to tell each other:
/// `max(0, 1 − (J − 2) τ² / Σ (w_j − 1)²)`. It improves on no shrinkage whatever the true weights
/// are if J > 2, and is 1 otherwise. *(Derived, §4.8.)*
pub(crate) fn james_stein_of_sums(weights: usize, signal: f64, variance: f64) -> f64 {
    positive_part(weights.saturating_sub(2) as f64 * variance, signal)
}

/// `max(0, 1 − noise/signal)`; 0 without a signal.
pub(crate) fn positive_part(noise: f64, signal: f64) -> f64 {
    if signal > 0.0 {
        (1.0 - noise / signal).max(0.0)
    } else {
        0.0
    }
}

/// The weight, or `cap` if that is less. Horvitz and Thompson's weights reach `1/ρ`. *(The authors'
/// code, with 1.)*
pub(crate) fn capped(weight: f64, cap: Option<f64>) -> f64 {
    cap.map_or(weight, |cap| weight.min(cap))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn smoothing_one_hop_adds_kappa_to_both_counts(
            degree in 1..50_usize,
            share in 0.0..1.0_f64,
            kappa in 0.0..5.0_f64,
        ) {
            let local = (share * degree as f64).floor();
            let expected = (local + kappa) / (degree as f64 + kappa);
            prop_assert!((smoothed(local / degree as f64, degree, kappa) - expected).abs() < 1e-12);
        }

        #[test]
        fn the_authors_weight_is_theirs_of_degrees_with_self_loops(
            degree in 0..50_usize,
            share in 0.0..=1.0_f64,
        ) {
            let local = (share * degree as f64).floor();
            let coverage = if degree == 0 { 1.0 } else { local / degree as f64 };
            // As their loop has it, of what their graph's degrees are.
            let (source_i_deg, source_g_ideg) = (local as i64 + 1, degree as i64 + 1);
            let up = (source_i_deg - 1).max(0);
            let theirs = ((up as f64 + 1.0) / (source_g_ideg as f64 + 1.0)).min(1.0);
            prop_assert!((over_two_more(coverage, degree) - theirs).abs() < 1e-12);
        }

        #[test]
        fn shrinkage_goes_from_one_to_the_weight(weight in 0.0..4.0_f64, lambda in 0.0..1.0_f64) {
            prop_assert_eq!(shrunk(weight, 0.0), 1.0);
            prop_assert!((shrunk(weight, 1.0) - weight).abs() < 1e-12);
            let between = shrunk(weight, lambda);
            prop_assert!(between >= weight.min(1.0) - 1e-12 && between <= weight.max(1.0) + 1e-12);
        }

        #[test]
        fn smoothed_and_capped_weights_are_positive_and_below_the_cap(
            coverage in 0.0..=1.0_f64,
            degree in 0..50_usize,
            kappa in 0.1..5.0_f64,
            expected in 0.05..=1.0_f64,
            cap in 0.1..4.0_f64,
        ) {
            let weight = capped(smoothed(coverage, degree, kappa) / smoothed(expected, degree, kappa), Some(cap));
            prop_assert!(weight > 0.0 && weight <= cap);
        }

    }

    #[test]
    fn plain_numbers_are_put_together() {
        // (J − 2) τ² = 0.05 of a signal of 0.5.
        assert!((james_stein_of_sums(3, 0.5, 0.05) - 0.9).abs() < 1e-15);
        assert_eq!(james_stein_of_sums(2, 0.5, 9.0), 1.0);
        assert_eq!(james_stein_of_sums(0, 0.0, 0.0), 0.0);
        // s² = 1/2 of two draws.
        assert!((sampling_variance(&[0.0, 1.0]) - 0.25).abs() < 1e-15);
        assert_eq!(sampling_variance(&[0.3]), 0.0);
        assert_eq!(smoothed(1.0, 0, 0.0), 1.0);
    }
}
