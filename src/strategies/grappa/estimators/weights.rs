//! What the loss of a node, the gradient of a batch or the message of an edge is multiplied by.

/// Horvitz and Thompson's weight of a node, `w = c/ρ`: with the mean over seen neighbours,
/// `c z̄ = (1/d) Σ I x`, so its expectation is the full mean exactly if all neighbours are seen
/// equally often; otherwise it is their mean weighted by how often. 0 for what is never seen.
/// *(Derived, §4.3; the authors' code has `c` alone.)*
///
/// It divides any weight by its expectation; `normalise = "rho"`.
pub(crate) fn over_expectation(weight: f64, expected: f64) -> f64 {
    if expected > 0.0 {
        weight / expected
    } else {
        0.0
    }
}

/// Hájek's weight of a node whose neighbours are averaged: 1, because the mean over seen neighbours
/// is already divided by how many there are, and 0 for a node none of whose neighbours is seen,
/// which says nothing. Divided by its expectation `1 − p0` it is unbiased for any exchangeable
/// design (§4.4 T2). A node without neighbours counts fully. *(Derived.)*
pub(crate) fn node_hajek(seen: usize, degree: usize) -> f64 {
    if seen > 0 || degree == 0 { 1.0 } else { 0.0 }
}

/// Horvitz and Thompson's weight of one message, `1/π`; 0 for one that is never seen. With global
/// degrees, `Σ_u a I x/π` is unbiased if every message can be seen. *(Derived, §4.2; `GraphSAINT`'s
/// `1/α` when every part runs each step.)*
pub(crate) fn edge_ht(inclusion: f64) -> f64 {
    if inclusion > 0.0 {
        1.0 / inclusion
    } else {
        0.0
    }
}

/// The mean; none of nothing.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The batch weight `mean(w_v)`, or 1 of no nodes. *(The authors' code's; the nearest to node
/// weighting if gradients are exchangeable, §4.7.)*
pub(crate) fn mean_or_one(weights: &[f64]) -> f64 {
    mean(weights).unwrap_or(1.0)
}

/// The batch weight nearest to node weighting if gradients are uncorrelated: `Σ γ_v w_v / Σ γ_v`
/// with `γ_v = E‖g_v‖²`. *(Derived, §4.7.)*
pub(crate) fn batch_norms(squared_norms: &[f64], weights: &[f64]) -> f64 {
    let weighted = squared_norms
        .iter()
        .zip(weights)
        .map(|(norm, weight)| norm * weight);
    ratio(weighted.sum(), squared_norms.iter().sum(), weights)
}

/// A cheap `γ_v`: the squared gradient of cross-entropy in the last layer's weights and bias,
/// `‖softmax − onehot‖² (1 + ‖h‖²)`, for errors `[classes]` and the last layer's inputs `[hidden]`.
/// *(Derived, §4.7.)*
pub(crate) fn squared_gradient_norm(error: &[f64], hidden: &[f64]) -> f64 {
    let square = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
    square(error) * (1.0 + square(hidden))
}

/// A quotient, or the mean of the weights where there is nothing to divide by.
pub(crate) fn ratio(numerator: f64, denominator: f64, weights: &[f64]) -> f64 {
    if denominator > 0.0 {
        numerator / denominator
    } else {
        mean_or_one(weights)
    }
}

/// What the loss of a training node counts in the sum over all workers, in a step of so many nodes:
/// each worker's mean loss times `N b_i / Σ_j b_j`, over N workers, is the mean over all nodes.
/// *(Derived, §4.6.)*
pub(crate) fn share_of_loss(weight: f64, nodes: usize) -> f32 {
    (weight / nodes as f64) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_of_all_workers_add_up_to_the_mean_over_all_nodes(
            batches in vec(1..6_usize, 1..5), value in -2.0..2.0_f64,
        ) {
            let all: usize = batches.iter().sum();
            let shares = batches.iter().map(|&b| b as f64 * f64::from(share_of_loss(value, all)));
            prop_assert!((shares.sum::<f64>() - value).abs() < 1e-6);
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
        assert_eq!(batch_norms(&[], &[]), 1.0);
    }
}
