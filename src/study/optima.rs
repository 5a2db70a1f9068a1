//! Weights and mixtures with the least error, given what a study can know.

use crate::strategies::grappa::estimators::{james_stein_of_sums, positive_part, ratio};

/// The batch weight `w_b` that minimises `‖w_b ḡ − G*‖²`: `⟨ḡ, G*⟩/‖ḡ‖²`, given the plain and the
/// weighted mean (or sum) of the batch's gradients. The mean of `weights` if the plain one
/// vanishes. *(Derived, §4.7.)*
pub(super) fn batch_projection(plain: &[f64], weighted: &[f64], weights: &[f64]) -> f64 {
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum();
    ratio(product(plain, weighted), product(plain, plain), weights)
}

/// λ from the batch weights of all workers and their variances:
/// `max(0, 1 − Σ τ̂_j² / Σ (w_j − 1)²)`, which puts unbiased estimates into the λ with the least
/// mean squared error, `(ω − 1)²/((ω − 1)² + τ²)`. *(Derived, §4.8.)*
pub(super) fn pooled_lambda(weights: &[f64], variances: &[f64]) -> f64 {
    positive_part(variances.iter().sum(), signal(weights))
}

/// λ of James and Stein (1961), positive part, for J weights of equal variance:
/// `max(0, 1 − (J − 2) τ² / Σ (w_j − 1)²)`. It improves on no shrinkage whatever the true weights
/// are if J > 2, and is 1 otherwise (0 without any weight). *(Derived, §4.8.)*
pub(super) fn james_stein(weights: &[f64], variance: f64) -> f64 {
    james_stein_of_sums(weights.len(), signal(weights), variance)
}

fn signal(weights: &[f64]) -> f64 {
    weights.iter().map(|w| (w - 1.0).powi(2)).sum()
}

/// The best mixture `(1 − λ) ĝ0 + λ ĝ1` of two gradient estimators, from the second moments
/// `E⟨e_i, e_j⟩` of their errors: `(m00 − m01)/(m00 + m11 − 2 m01)`, clipped to `[0, 1]`; 0 if they
/// are the same. If ĝ1 is unbiased, `m00 = ‖β‖² + V0`, `m01 = C` and `m11 = V1`, which is the
/// formula of §4.8. *(Derived.)*
pub(super) fn gradient_lambda(m00: f64, m01: f64, m11: f64) -> f64 {
    let distance = m00 + m11 - 2.0 * m01;
    if distance > 0.0 {
        ((m00 - m01) / distance).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategies::grappa::estimators::{batch_norms, mean_or_one};
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// The batch weight `w_b = 1ᵀΓw / 1ᵀΓ1` that minimises `E‖w_b ḡ − (1/b) Σ w_v g_v‖²`, for
    /// `Γ_vv' = E⟨g_v, g_v'⟩`, `[b, b]` row by row; where the mean gradient vanishes, any weight
    /// does, and it is the mean. *(Derived, §4.7.)*
    fn batch_gram(gram: &[f64], weights: &[f64]) -> f64 {
        let b = weights.len();
        let columns: Vec<f64> = (0..b)
            .map(|v| gram.iter().skip(v).step_by(b).sum())
            .collect();
        ratio(
            columns
                .iter()
                .zip(weights)
                .map(|(column, weight)| column * weight)
                .sum(),
            columns.iter().sum(),
            weights,
        )
    }

    /// The λ with the least mean squared error for a weight `w = ω + e` with `Var e = τ²`:
    /// `(ω − 1)²/((ω − 1)² + τ²)`; 0 if there is neither signal nor noise. *(Derived, §4.8.)*
    fn optimal_lambda(omega: f64, variance: f64) -> f64 {
        let signal = (omega - 1.0).powi(2);
        if signal > 0.0 {
            signal / (signal + variance)
        } else {
            0.0
        }
    }

    /// Some gradients `[b][3]` and a weight for each.
    fn batches() -> impl Strategy<Value = (Vec<Vec<f64>>, Vec<f64>)> {
        (1..6_usize).prop_flat_map(|b| (vec(vec(-2.0..2.0_f64, 3), b), vec(0.0..3.0_f64, b)))
    }

    fn gram(gradients: &[Vec<f64>]) -> Vec<f64> {
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        gradients
            .iter()
            .flat_map(|a| gradients.iter().map(move |b| product(a, b)))
            .collect()
    }

    fn sum(gradients: &[Vec<f64>], weights: &[f64]) -> Vec<f64> {
        (0..3)
            .map(|i| gradients.iter().zip(weights).map(|(g, w)| w * g[i]).sum())
            .collect()
    }

    proptest! {
        #[test]
        fn no_weight_on_a_grid_brings_a_batch_nearer_to_node_weighting((gradients, weights) in batches()) {
            let plain = sum(&gradients, &vec![1.0; weights.len()]);
            let ideal = sum(&gradients, &weights);
            let size = plain.iter().map(|x| x * x).sum::<f64>();
            // Where the plain gradients cancel any weight is as good, and rounding decides.
            prop_assume!(size > 1e-3);
            let distance = |w: f64| plain.iter().zip(&ideal).map(|(p, i)| (w * p - i).powi(2)).sum::<f64>();
            let best = batch_gram(&gram(&gradients), &weights);
            for step in -400..=400 {
                prop_assert!(distance(best) <= distance(f64::from(step) / 40.0) + 1e-9);
            }
            prop_assert!((best - batch_projection(&plain, &ideal, &weights)).abs() < 1e-6 * (1.0 + best.abs()));
        }

        #[test]
        fn exchangeable_gradients_make_the_batch_weight_the_mean(
            weights in vec(0.0..3.0_f64, 1..8),
            own in 0.1..4.0_f64,
            share in 0.0..1.0_f64,
        ) {
            let b = weights.len();
            let gram: Vec<f64> = (0..b * b).map(|i| if i % (b + 1) == 0 { own } else { share * own }).collect();
            prop_assert!((batch_gram(&gram, &weights) - mean_or_one(&weights)).abs() < 1e-12);
        }

        #[test]
        fn weights_that_agree_are_the_batch_weight((gradients, _) in batches(), weight in 0.0..3.0_f64) {
            let weights = vec![weight; gradients.len()];
            let size = sum(&gradients, &vec![1.0; weights.len()]).iter().map(|x| x * x).sum::<f64>();
            prop_assume!(size > 1e-3);
            prop_assert!((batch_gram(&gram(&gradients), &weights) - weight).abs() < 1e-9);
            let norms: Vec<f64> = gradients.iter().map(|g| g.iter().map(|x| x * x).sum()).collect();
            prop_assert!((batch_norms(&norms, &weights) - weight).abs() < 1e-9);
        }

        #[test]
        fn uncorrelated_gradients_weigh_by_their_size(norms in vec(0.1..4.0_f64, 4), weights in vec(0.0..3.0_f64, 4)) {
            let gram: Vec<f64> = (0..16).map(|i| if i % 5 == 0 { norms[i / 5] } else { 0.0 }).collect();
            prop_assert!((batch_gram(&gram, &weights) - batch_norms(&norms, &weights)).abs() < 1e-12);
        }

        #[test]
        fn more_noise_means_more_shrinkage(omega in -1.0..3.0_f64, less in 0.0..2.0_f64, more in 0.0..2.0_f64, ws in vec(0.0..2.0_f64, 3..9)) {
            let falls = |lambda: &dyn Fn(f64) -> f64| {
                let (low, high) = (lambda(less + more), lambda(less));
                (0.0..=1.0).contains(&low) && low <= high && high <= 1.0
            };
            prop_assert!(falls(&|t| optimal_lambda(omega, t)));
            prop_assert!(falls(&|t| pooled_lambda(&ws, &vec![t; ws.len()])));
            prop_assert!(falls(&|t| james_stein(&ws, t)));
        }

        #[test]
        fn the_optimal_lambda_has_the_least_error_on_a_grid(omega in -1.0..3.0_f64, variance in 0.01..2.0_f64) {
            // E (1 + λ(w − 1) − ω)² = (1 − λ)² (ω − 1)² + λ² τ².
            let error = |l: f64| (1.0 - l).powi(2) * (omega - 1.0).powi(2) + l * l * variance;
            let best = optimal_lambda(omega, variance);
            prop_assert!((0..=200).all(|i| error(best) <= error(f64::from(i) / 200.0) + 1e-12));
        }

        #[test]
        fn the_best_mixture_of_two_estimators_has_the_least_error_on_a_grid(
            first in vec(-2.0..2.0_f64, 6), second in vec(-2.0..2.0_f64, 6),
        ) {
            let mean = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / 6.0;
            let (m00, m01, m11) = (mean(&first, &first), mean(&first, &second), mean(&second, &second));
            let error = |l: f64| (1.0 - l).powi(2) * m00 + 2.0 * l * (1.0 - l) * m01 + l * l * m11;
            let best = gradient_lambda(m00, m01, m11);
            prop_assert!((0..=200).all(|i| error(best) <= error(f64::from(i) / 200.0) + 1e-9));
        }
    }

    #[test]
    fn the_pooled_estimates_put_plain_numbers_together() {
        // Σ (w − 1)² = 0.5, Στ² = 0.2, (J − 2) τ² = 0.05.
        assert!((pooled_lambda(&[0.5, 1.5, 1.0], &[0.1, 0.1, 0.0]) - 0.6).abs() < 1e-15);
        assert!((james_stein(&[0.5, 1.5, 1.0], 0.05) - 0.9).abs() < 1e-15);
        assert_eq!(james_stein(&[0.5, 1.5], 9.0), 1.0);
    }

    #[test]
    fn the_spec_formula_is_the_case_of_an_unbiased_second_estimator() {
        let (bias2, v0, v1, c) = (0.4, 0.3, 0.9, 0.2);
        let expected = (bias2 + v0 - c) / (bias2 + v0 + v1 - 2.0 * c);
        assert!((gradient_lambda(bias2 + v0, c, v1) - expected).abs() < 1e-15);
    }

    #[test]
    fn weights_without_signal_or_noise_stay_one() {
        assert_eq!(optimal_lambda(1.0, 0.0), 0.0);
        assert_eq!(
            (pooled_lambda(&[1.0], &[0.0]), james_stein(&[], 0.0)),
            (0.0, 0.0)
        );
        assert_eq!(gradient_lambda(1.0, 1.0, 1.0), 0.0);
        assert_eq!(batch_gram(&[0.0], &[0.25]), 0.25);
        assert_eq!(batch_projection(&[0.0], &[0.0], &[0.5, 1.0]), 0.75);
    }
}
