//! Exact biases of the gradient of one mean-aggregation layer with a linear head `W` and squared
//! loss `½‖W z − y‖²` (§4.4 T5). *(All derived.)*
//!
//! The gradient `(W z − y) zᵀ` is quadratic in the aggregate z, so its bias is `W` times what the
//! estimator adds to `E z zᵀ`. For the mean over a simple random sample of m of d neighbours,
//! `E[z̄ z̄ᵀ | m] = z zᵀ + S² (1/m − 1/d)`; averaging over m, weighted or not, gives the rest.

/// `S²`, the covariance of a node's d neighbours with divisor `d − 1`, `[width, width]` row by row;
/// zero for fewer than two.
pub(super) fn population_covariance(rows: &[Vec<f64>]) -> Vec<f64> {
    let Some(width) = rows.first().map(Vec::len) else {
        return Vec::new();
    };
    let d = rows.len() as f64;
    let mean: Vec<f64> = (0..width)
        .map(|i| rows.iter().map(|row| row[i]).sum::<f64>() / d)
        .collect();
    let divisor = (d - 1.0).max(1.0);
    let entry = |i: usize, j: usize| {
        rows.iter()
            .map(|row| (row[i] - mean[i]) * (row[j] - mean[j]))
            .sum::<f64>()
            / divisor
    };
    (0..width * width)
        .map(|k| entry(k / width, k % width))
        .collect()
}

/// The covariance of `Σ_u a_u I_u x_u / π_u`, `Σ_u Σ_u' a_u a_u' (π_uu'/(π_u π_u') − 1) x_u x_u'ᵀ`,
/// `[width, width]` row by row. `joint(u, u')` is the probability that both are seen, `π_u` on the
/// diagonal. If all are seen independently with chance 1/K this is `(K − 1) Σ a² x xᵀ` (§4.2).
pub(super) fn ht_covariance(
    coefficients: &[f64],
    rows: &[Vec<f64>],
    joint: impl Fn(usize, usize) -> f64,
) -> Vec<f64> {
    let width = rows.first().map_or(0, Vec::len);
    let mut covariance = vec![0.0; width * width];
    for (u, row) in rows.iter().enumerate() {
        for (other, column) in rows.iter().enumerate() {
            let excess = joint(u, other) / (joint(u, u) * joint(other, other)) - 1.0;
            let factor = coefficients[u] * coefficients[other] * excess;
            for (k, value) in covariance.iter_mut().enumerate() {
                *value += factor * row[k / width] * column[k % width];
            }
        }
    }
    covariance
}

/// `(1 − p0)/(ρ d) − 1/d`: times `W S²` the bias of weighting the local mean by c/ρ.
pub(super) fn node_weight_factor(rho: f64, empty: f64, degree: usize) -> f64 {
    let d = degree as f64;
    (1.0 - empty) / (rho * d) - 1.0 / d
}

/// `E(1/m | m ≥ 1) − 1/d`: times `W S²` the bias of the plain local mean, given that it is not of
/// nothing. By Jensen never less than [`node_weight_factor`], for
/// `(1 − p0)/(ρ d) = 1/E(m | m ≥ 1)`.
pub(super) fn nonempty_factor(mean_inverse: f64, degree: usize) -> f64 {
    mean_inverse - 1.0 / degree as f64
}

/// `E(1/m | m ≥ 1)` for a distribution of m over 0, 1, 2, …; 0 if m is always 0.
pub(super) fn mean_inverse(distribution: &[f64]) -> f64 {
    let some = distribution.iter().enumerate().skip(1);
    let (mut sum, mut chance) = (0.0, 0.0);
    for (m, probability) in some {
        sum += probability / m as f64;
        chance += probability;
    }
    if chance > 0.0 { sum / chance } else { 0.0 }
}

/// The distribution over 0…`draws` of how many independent draws of chance `probability` succeed:
/// of `d_local` under independent assignment.
pub(super) fn binomial(draws: usize, probability: f64) -> Vec<f64> {
    let mut distribution = vec![1.0];
    for _ in 0..draws {
        let mut next = vec![0.0; distribution.len() + 1];
        for (count, chance) in distribution.iter().enumerate() {
            next[count] += chance * (1.0 - probability);
            next[count + 1] += chance * probability;
        }
        distribution = next;
    }
    distribution
}

/// The bias `W · C` of the gradient, `[classes, width]`, for a head `[classes, width]` and what is
/// added to `E z zᵀ`, `[width, width]`.
pub(super) fn squared_loss_bias(head: &[f64], added: &[f64], width: usize) -> Vec<f64> {
    let entry = |row: &[f64], column: usize| {
        row.iter()
            .zip(added.iter().skip(column).step_by(width))
            .map(|(a, b)| a * b)
            .sum()
    };
    head.chunks_exact(width.max(1))
        .flat_map(|row| (0..width).map(move |column| entry(row, column)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_node_weight_is_never_more_biased_than_the_plain_mean_given_something(d in 1..20_usize, workers in 1..9_usize) {
            let chance = 1.0 / workers as f64;
            let local = binomial(d, chance);
            let node = node_weight_factor(chance, local[0], d);
            let plain = nonempty_factor(mean_inverse(&local), d);
            prop_assert!((local.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            prop_assert!(node >= -1e-12 && node <= plain + 1e-12);
        }
    }

    #[test]
    fn one_neighbour_has_no_covariance_and_none_has_no_matrix() {
        assert_eq!(population_covariance(&[vec![3.0, 1.0]]), [0.0; 4]);
        assert!(population_covariance(&[]).is_empty());
        assert!(ht_covariance(&[], &[], |_, _| 1.0).is_empty());
        assert_eq!(mean_inverse(&[1.0]), 0.0);
    }
}
