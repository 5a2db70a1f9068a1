//! What the loss of a node, the gradient of a batch or the message of an edge is multiplied by.

/// Horvitz and Thompson's weight of a node, `w = c/ρ`: with the mean over seen neighbours, `c z̄ = (1/d) Σ I x`, so its expectation is the full mean
/// exactly if all neighbours are seen equally often; otherwise it is their mean weighted by how often. 0 for what is
/// never seen. *(Derived, §4.3; the authors' code has `c` alone.)*
///
/// It divides any weight by its expectation; `normalise = "rho"`.
#[must_use]
pub fn over_expectation(weight: f64, expected: f64) -> f64 {
    if expected > 0.0 {
        weight / expected
    } else {
        0.0
    }
}

/// Hájek's weight of a node whose neighbours are averaged: 1, because the mean over seen neighbours is already divided by how
/// many there are, and 0 for a node none of whose neighbours is seen, which says nothing. Divided by its expectation `1 − p0` it is unbiased for
/// any exchangeable design (§4.4 T2). A node without neighbours counts fully. *(Derived.)*
#[must_use]
pub fn node_hajek(seen: usize, degree: usize) -> f64 {
    if seen > 0 || degree == 0 { 1.0 } else { 0.0 }
}

/// Horvitz and Thompson's weight of one message, `1/π`; 0 for one that is never seen. With global degrees, `Σ_u a I x/π` is unbiased if every
/// message can be seen. *(Derived, §4.2; `GraphSAINT`'s `1/α` when every part runs each step.)*
#[must_use]
pub fn edge_ht(inclusion: f64) -> f64 {
    if inclusion > 0.0 {
        1.0 / inclusion
    } else {
        0.0
    }
}

/// The mean; none of nothing.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The batch weight `mean(w_v)`, or 1 of no nodes. *(The authors' code's; the nearest to node weighting if gradients are exchangeable, §4.7.)*
#[must_use]
pub fn mean_or_one(weights: &[f64]) -> f64 {
    mean(weights).unwrap_or(1.0)
}

/// The batch weight `w_b = 1ᵀΓw / 1ᵀΓ1` that minimises `E‖w_b ḡ − (1/b) Σ w_v g_v‖²`, for `Γ_vv' = E⟨g_v, g_v'⟩`, `[b, b]` row by row; where
/// the mean gradient vanishes, any weight does, and it is the mean. *(Derived, §4.7.)*
#[must_use]
pub fn batch_gram(gram: &[f64], weights: &[f64]) -> f64 {
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

/// [`batch_gram`] for the gradients as they are: `⟨ḡ, G*⟩/‖ḡ‖²`, given the plain and the weighted mean (or sum) of the batch's gradients. The mean of
/// `weights` if the plain one vanishes. *(Derived, §4.7.)*
#[must_use]
pub fn batch_projection(plain: &[f64], weighted: &[f64], weights: &[f64]) -> f64 {
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum();
    ratio(product(plain, weighted), product(plain, plain), weights)
}

/// [`batch_gram`] if gradients are uncorrelated: `Σ γ_v w_v / Σ γ_v` with `γ_v = E‖g_v‖²`. *(Derived, §4.7.)*
#[must_use]
pub fn batch_norms(squared_norms: &[f64], weights: &[f64]) -> f64 {
    let weighted = squared_norms
        .iter()
        .zip(weights)
        .map(|(norm, weight)| norm * weight);
    ratio(weighted.sum(), squared_norms.iter().sum(), weights)
}

/// A cheap `γ_v`: the squared gradient of cross-entropy in the last layer's weights and bias, `‖softmax − onehot‖² (1 + ‖h‖²)`, for errors
/// `[classes]` and the last layer's inputs `[hidden]`. *(Derived, §4.7.)*
#[must_use]
pub fn squared_gradient_norm(error: &[f64], hidden: &[f64]) -> f64 {
    let square = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
    square(error) * (1.0 + square(hidden))
}

fn ratio(numerator: f64, denominator: f64, weights: &[f64]) -> f64 {
    if denominator > 0.0 {
        numerator / denominator
    } else {
        mean_or_one(weights)
    }
}

/// What a worker's mean gradient is multiplied by before gradients are averaged over workers, `N b_i / Σ_j b_j`, so that every node of a step counts
/// the same. *(Derived, §4.6.)*
#[must_use]
pub fn worker_scale(batch: usize, all_batches: usize, workers: usize) -> f64 {
    if all_batches == 0 {
        return 1.0;
    }
    (workers * batch) as f64 / all_batches as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

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
        fn scaled_worker_means_average_to_the_mean_over_all_nodes(batches in vec(0..5_usize, 1..5), value in -2.0..2.0_f64) {
            let all: usize = batches.iter().sum();
            prop_assume!(all > 0);
            let scaled = batches.iter().map(|&b| worker_scale(b, all, batches.len()) * value);
            prop_assert!((scaled.sum::<f64>() / batches.len() as f64 - value).abs() < 1e-12);
        }
    }

    #[test]
    fn the_gradient_norm_is_that_of_the_last_layer() {
        // Weights' gradient error × hidden, bias's gradient error.
        let (error, hidden) = ([0.3, -0.3], [2.0, -1.0, 0.5]);
        let mut square = error.iter().map(|e| e * e).sum::<f64>();
        for e in error {
            square += hidden.iter().map(|h| (e * h).powi(2)).sum::<f64>();
        }
        assert!((squared_gradient_norm(&error, &hidden) - square).abs() < 1e-15);
    }

    #[test]
    fn nothing_to_go_by_is_no_reason_for_infinities() {
        assert_eq!(mean_or_one(&[]), 1.0);
        assert_eq!((over_expectation(0.0, 0.0), edge_ht(0.0)), (0.0, 0.0));
        assert_eq!(
            (node_hajek(0, 0), node_hajek(0, 3), node_hajek(1, 3)),
            (1.0, 0.0, 1.0)
        );
        assert_eq!(batch_gram(&[0.0], &[0.25]), 0.25);
        assert_eq!(batch_projection(&[0.0], &[0.0], &[0.5, 1.0]), 0.75);
        assert_eq!(batch_norms(&[], &[]), 1.0);
        assert_eq!(worker_scale(0, 0, 4), 1.0);
    }
}
