//! Pulling weights towards 1, which trades a little bias for less variance.

/// Add-κ smoothing of a coverage: `1 + λ_v (c_v − 1)` with `λ_v = d/(d + κ)`, which for one hop is `(d_local + κ)/(d + κ)`. κ = 1 is near the
/// weight of the authors' code, `max(d_local, 1)/(d + 1)`: the same for nodes without local neighbours, and `1/(d + 1)` more for all others.
/// *(Derived, §4.8.)*
#[must_use]
pub fn smoothed(coverage: f64, degree: usize, kappa: f64) -> f64 {
    let degree = degree as f64;
    if degree == 0.0 {
        return 1.0;
    }
    shrunk(coverage, degree / (degree + kappa))
}

/// Shrinkage of a weight towards 1: `1 + λ (w − 1)`. *(The paper's form.)*
#[must_use]
pub fn shrunk(weight: f64, lambda: f64) -> f64 {
    1.0 + lambda * (weight - 1.0)
}

/// The λ with the least mean squared error for a weight `w = ω + e` with `Var e = τ²`: `(ω − 1)²/((ω − 1)² + τ²)`; 0 if there is neither
/// signal nor noise. *(Derived, §4.8.)*
#[must_use]
pub fn optimal_lambda(omega: f64, variance: f64) -> f64 {
    let signal = (omega - 1.0).powi(2);
    if signal > 0.0 {
        signal / (signal + variance)
    } else {
        0.0
    }
}

/// The plug-in `τ̂² = s_w²/b · (1 − b/n)` of a batch weight from its `b` node weights, drawn without replacement from the `population` of a
/// worker's n; without the last factor if what is random is the partition (`None`). 0 for fewer than two weights, of which no
/// variance can be told. *(Derived, §4.8.)*
#[must_use]
pub fn sampling_variance(weights: &[f64], population: Option<usize>) -> f64 {
    let b = weights.len() as f64;
    if b < 2.0 {
        return 0.0;
    }
    let mean = weights.iter().sum::<f64>() / b;
    let variance = weights.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / (b - 1.0);
    let drawn = population.map_or(0.0, |n| (b / n.max(1) as f64).min(1.0));
    variance / b * (1.0 - drawn)
}

/// λ from the batch weights of all workers and their variances: `max(0, 1 − Σ τ̂_j² / Σ (w_j − 1)²)`, which puts unbiased estimates into
/// [`optimal_lambda`]. *(Derived, §4.8.)*
#[must_use]
pub fn pooled_lambda(weights: &[f64], variances: &[f64]) -> f64 {
    positive_part(variances.iter().sum(), signal(weights))
}

/// λ of James and Stein (1961), positive part, for J weights of equal variance: `max(0, 1 − (J − 2) τ² / Σ (w_j − 1)²)`. It improves on no
/// shrinkage whatever the true weights are if J > 2, and is 1 otherwise. *(Derived, §4.8.)*
#[must_use]
pub fn james_stein(weights: &[f64], variance: f64) -> f64 {
    james_stein_of_sums(weights.len(), signal(weights), variance)
}

/// [`james_stein`] given the number of weights and `Σ (w_j − 1)²`, which is all that workers need to tell each other. *(Derived, §4.8.)*
#[must_use]
pub fn james_stein_of_sums(weights: usize, signal: f64, variance: f64) -> f64 {
    positive_part(weights.saturating_sub(2) as f64 * variance, signal)
}

fn signal(weights: &[f64]) -> f64 {
    weights.iter().map(|w| (w - 1.0).powi(2)).sum()
}

fn positive_part(noise: f64, signal: f64) -> f64 {
    if signal > 0.0 {
        (1.0 - noise / signal).max(0.0)
    } else {
        0.0
    }
}

/// The best mixture `(1 − λ) ĝ0 + λ ĝ1` of two gradient estimators, from the second moments `E⟨e_i, e_j⟩` of their errors:
/// `(m00 − m01)/(m00 + m11 − 2 m01)`, clipped to `[0, 1]`; 0 if they are the same. If ĝ1 is unbiased, `m00 = ‖β‖² + V0`, `m01 = C` and `m11 = V1`, which is
/// the formula of §4.8. *(Derived.)*
#[must_use]
pub fn gradient_lambda(m00: f64, m01: f64, m11: f64) -> f64 {
    let distance = m00 + m11 - 2.0 * m01;
    if distance > 0.0 {
        ((m00 - m01) / distance).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

/// The weight, or `cap` if that is less. Horvitz and Thompson's weights reach `1/ρ`. *(The authors' code, with 1.)*
#[must_use]
pub fn capped(weight: f64, cap: Option<f64>) -> f64 {
    cap.map_or(weight, |cap| weight.min(cap))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
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
        // s² = 1/2 of two draws, out of four.
        assert!((sampling_variance(&[0.0, 1.0], None) - 0.25).abs() < 1e-15);
        assert!((sampling_variance(&[0.0, 1.0], Some(4)) - 0.125).abs() < 1e-15);
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
        assert_eq!(sampling_variance(&[0.3], Some(1)), 0.0);
        assert_eq!(gradient_lambda(1.0, 1.0, 1.0), 0.0);
        assert_eq!(smoothed(1.0, 0, 0.0), 1.0);
    }
}
